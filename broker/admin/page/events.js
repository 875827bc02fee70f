// What happened, as it happens.
import { html, useState } from "/page/lib.js";
import { TimeLine } from "/page/charts.js";
import { Happened } from "/page/cluster.js";
import { LANES, describe } from "/page/happenings.js";
import { plural } from "/page/words.js";

const SHOWN = 200;

export function EventsView({ store }) {
  const [lanes, setLanes] = useState(new Set(LANES));
  const events = store.events.filter((event) => lanes.has(describe(event).lane));
  const end = Date.now(), begin = events.length ? Math.min(end - 60_000, events[0].timestamp_ms) : end - 600_000;
  const marks = events.map((event) => {
    const { sign, tint, lane, sentence } = describe(event);
    return { time: event.timestamp_ms, lane: LANES.indexOf(lane), tint, shape: sign, title: sentence };
  });
  const turn = (lane) => setLanes((before) => {
    const after = new Set(before);
    if (!after.delete(lane)) after.add(lane);
    return after;
  });
  return html`<section class="sheet">
      <div class="spread"><h2>${plural(events.length, "event")} that this page has seen</h2>
        <span class="tag ${store.isStreaming ? "good" : "bad"}">${store.isStreaming ? "they come as they happen" : "the stream is broken; trying again"}</span></div>
      <div class="row" role="group" aria-label="Kinds">${LANES.map((lane) => html`
        <label class="row small"><input type="checkbox" style=${{ width: "auto" }} checked=${lanes.has(lane)} onChange=${() => turn(lane)} />${lane}</label>`)}</div>
      <${TimeLine} marks=${marks} lanes=${LANES} begin=${begin} end=${end} label="Events over time" />
    </section>
    <section class="sheet" aria-live="polite">
      ${events.length === 0 && html`<p class="empty">Nothing has happened since this page was opened.</p>`}
      <ul class="happened">${events.slice(-SHOWN).reverse().map((event) => html`<${Happened} key=${event.id} event=${event} />`)}</ul>
    </section>`;
}
