// The metadata quorum: who leads it, since when, and how far the log of each node is.
import { Absent, html, useEffect } from "/page/lib.js";
import { get } from "/page/api.js";
import { TimeLine, colour } from "/page/charts.js";
import { age, number, plural } from "/page/words.js";

export function QuorumView({ store, open }) {
  useEffect(() => store.use("quorum", () => get("/v1/quorum")), []);
  const { quorum } = store.values;
  if (!quorum) return html`<${Absent} reason=${store.stranger ? "" : store.problems.quorum} />`;
  return html`<section class="sheet">
      <h2>${quorum.leader_id === null || quorum.leader_id < 0 ? html`<span class="tag bad">no leader</span> ${quorum.reason ?? ""}` : `Node ${quorum.leader_id} leads in epoch ${quorum.epoch}`}</h2>
      <${Positions} quorum=${quorum} open=${open} />
    </section>
    <section class="sheet"><h2>Leaderships</h2><${Leaderships} store=${store} quorum=${quorum} /></section>`;
}

// Each log from its left end to how far it is; what is behind the committed offset is hatched by its absence.
function Positions({ quorum, open }) {
  const everyone = [...quorum.voters.map((one) => ({ ...one, isVoter: true })), ...quorum.observers];
  const end = Math.max(1, quorum.high_watermark ?? 0, ...everyone.map((one) => one.log_end_offset ?? 0));
  const begin = Math.max(0, end - 200);
  const part = (offset) => `${Math.max(0, 100 * (offset - begin) / (end - begin || 1))}%`;
  return html`<div class="grouplags">${everyone.map((one) => html`<div class="lagline" key=${one.node_id} data-voter=${one.node_id}>
    <span>node ${one.node_id} <span class="tag">${one.node_id === quorum.leader_id ? "leader" : one.isVoter ? "voter" : "observer"}</span></span>
    <span class="track" title=${one.log_end_offset === null ? "not heard" : `log end offset ${one.log_end_offset}`}>
      ${one.log_end_offset !== null && html`<i style=${{ width: part(one.log_end_offset), background: colour(one.node_id) }}></i>`}
      <b>${one.log_end_offset === null ? "not heard" : number(one.log_end_offset)}</b></span>
    <span class="small soft">${one.node_id === quorum.leader_id ? "" : one.log_end_offset === null ? "–" : one.lag ? `${plural(one.lag, "entry", "entries")} behind` : "caught up"}
      ${one.last_caught_up_age_ms > 3000 ? ` · ${age(one.last_caught_up_age_ms)} ago` : ""}</span>
  </div>`)}</div>
  <div class="legend"><span>the last ${number(end - begin)} entries of the log; committed: ${number(quorum.high_watermark)}</span></div>
  <div class="row" style=${{ marginTop: ".6rem" }}>${quorum.voters.filter((one) => one.node_id !== quorum.leader_id && one.log_end_offset !== null).map((one) => html`
    <button key=${one.node_id} onClick=${() => open({ kind: "transfer", node: one })}>Let node ${one.node_id} lead</button>`)}</div>`;
}

function Leaderships({ store, quorum }) {
  const changes = store.events.filter((event) => event.kind === "quorum-leader-changed" && event.leader_id !== null);
  const end = Date.now(), begin = Math.min(end - 120_000, changes[0]?.timestamp_ms ?? end);
  const ids = quorum.voters.map((one) => one.node_id);
  const bands = changes.map((event, index) => ({
    time: event.timestamp_ms, until: changes[index + 1]?.timestamp_ms ?? end, lane: Math.max(0, ids.indexOf(event.leader_id)),
    tint: colour(event.leader_id ?? -1), text: `epoch ${event.epoch}`, title: `node ${event.leader_id} leads epoch ${event.epoch}`,
  }));
  if (bands.length === 0 && quorum.leader_id >= 0) bands.push({
    time: begin, until: end, lane: Math.max(0, ids.indexOf(quorum.leader_id)), tint: colour(quorum.leader_id),
    text: `epoch ${quorum.epoch}`, title: `node ${quorum.leader_id} leads epoch ${quorum.epoch}; since when, this page has not seen`,
  });
  return html`<${TimeLine} marks=${bands} lanes=${ids.map((id) => `node ${id}`)} begin=${begin} end=${end} label="Who led the metadata quorum" />`;
}
