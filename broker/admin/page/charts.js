// Small pictures, drawn as SVG.
import { html } from "/page/lib.js";
import { clock } from "/page/words.js";

const COLOURS = 8;

// The colour of a node; its number is always beside it, for the colours come again after eight.
export function colour(nodeId) {
  return nodeId === null || nodeId < 0 ? "var(--bad)" : `var(--n${nodeId % COLOURS})`;
}

export function Spark({ series, width = 120, height = 26, label }) {
  if (series.length < 2) return html`<svg class="spark" width=${width} height=${height} role="img" aria-label="${label}: no values yet"></svg>`;
  const begin = series[0][0], end = series[series.length - 1][0];
  const most = Math.max(1e-9, ...series.map(([, value]) => value));
  const points = series.map(([time, value]) =>
    `${(1 + (width - 2) * (time - begin) / Math.max(1, end - begin)).toFixed(1)},${(height - 2 - (height - 5) * value / most).toFixed(1)}`);
  return html`<svg class="spark" width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label=${label}>
    <polygon points="1,${height - 1} ${points.join(" ")} ${width - 1},${height - 1}" fill="var(--accent)" opacity=".16" />
    <polyline points=${points.join(" ")} fill="none" stroke="var(--accent)" stroke-width="1.6" />
  </svg>`;
}

// A ring: the share of all leaders that a node has, around its number.
export function Ring({ share, tint, children, isDashed }) {
  const radius = 52, around = 2 * Math.PI * radius;
  return html`<svg viewBox="0 0 132 132" aria-hidden="true">
    <circle cx="66" cy="66" r=${radius} fill="none" stroke="var(--faint)" stroke-width="13" stroke-dasharray=${isDashed ? "5 6" : undefined} />
    <circle cx="66" cy="66" r=${radius} fill="none" stroke=${tint} stroke-width="13" transform="rotate(-90 66 66)"
      stroke-dasharray="${(share * around).toFixed(1)} ${around.toFixed(1)}" />
    ${children}
  </svg>`;
}

// Time from left to right, a lane for each kind; `marks` are {time, lane, tint, shape, title}.
export function TimeLine({ marks, lanes, begin, end, label, height = 26 }) {
  const width = 900, left = 120;
  const place = (time) => left + (width - left - 12) * (time - begin) / Math.max(1, end - begin);
  const whole = lanes.length * height + 22;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => begin + part * (end - begin));
  return html`<div class="scroll"><svg viewBox="0 0 ${width} ${whole}" width="100%" style=${{ minWidth: "560px", maxWidth: "1180px" }} role="img" aria-label=${label}>
    ${lanes.map((lane, index) => html`
      <text class="soft" x="0" y=${index * height + 17}>${lane}</text>
      <line class="axis" x1=${left} x2=${width} y1=${index * height + 13} y2=${index * height + 13} />`)}
    ${ticks.map((time, index) => html`<text class="soft" x=${place(time)} y=${whole - 5} text-anchor=${index === ticks.length - 1 ? "end" : "middle"}>${clock(time)}</text>`)}
    ${marks.filter((mark) => mark.time >= begin || mark.until >= begin).map((mark) => mark.until
      ? html`<rect x=${place(Math.max(begin, mark.time))} y=${mark.lane * height + 5} rx="3" height="16"
          width=${Math.max(2, place(mark.until) - place(Math.max(begin, mark.time)))} fill=${mark.tint}><title>${mark.title}</title></rect>
          ${place(mark.until) - place(Math.max(begin, mark.time)) > 40 && html`<text x=${place(Math.max(begin, mark.time)) + 6} y=${mark.lane * height + 17} style=${{ fill: "var(--sheet)", fontWeight: 700 }}>${mark.text}</text>`}`
      : html`<path d=${SHAPES[mark.shape] ?? SHAPES.dot} fill=${mark.tint} transform="translate(${place(mark.time)} ${mark.lane * height + 13})"><title>${mark.title}</title></path>`)}
  </svg></div>`;
}

const SHAPES = {
  dot: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
  square: "M-5 -5h10v10h-10z",
  diamond: "M0 -6.5l6.5 6.5l-6.5 6.5l-6.5 -6.5z",
  up: "M0 -6l6 10h-12z",
  down: "M0 6l6 -10h-12z",
  cross: "M-5 -3.4l1.6 -1.6l3.4 3.4l3.4 -3.4l1.6 1.6l-3.4 3.4l3.4 3.4l-1.6 1.6l-3.4 -3.4l-3.4 3.4l-1.6 -1.6l3.4 -3.4z",
};

export function shape(kind) { return SHAPES[kind] ?? SHAPES.dot; }
