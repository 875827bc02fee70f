// The map of the cluster: its nodes, and who leads what.
import { Absent, html, useEffect, useState } from "/page/lib.js";
import { get, overview } from "/page/api.js";
import { Ring, Spark, TimeLine, colour, shape } from "/page/charts.js";
import { LANES, describe, gathered } from "/page/happenings.js";
import { bytes, number, plural, rate } from "/page/words.js";

const CELLS_WIDE = 600;
const CELLS_MOST = 6000;
const LINE_MS = 10 * 60_000;

export function ClusterView({ store, open }) {
  useEffect(() => store.use("map", () => get("/v1/partition-map")), []);
  useEffect(() => store.use("quorum", () => get("/v1/quorum")), []);
  useEffect(() => store.use("topics", () => overview(store)), []);
  const { nodes, map, quorum } = store.values;
  if (!nodes || !map) return html`<${Absent} reason=${store.stranger ? "" : store.problems.nodes ?? store.problems.map} />`;
  return html`
    <section class="sheet" aria-label="Nodes">
      <div class="spread"><h2>${plural(nodes.nodes.length, "node")}, ${plural(count(map), "partition")} of ${plural(map.topics.length, "topic")}</h2>
        <div class="row small soft">records in, all topics: <b class="figure">${rate(store.rate("records"))}</b>
          <${Spark} series=${store.rates("records")} width=${150} label="Records per second" /></div></div>
      <${Racks} nodes=${nodes.nodes} map=${map} quorum=${quorum} open=${open} />
    </section>
    <section class="sheet" aria-label="Who leads what">
      <div class="spread"><h2>Who leads what</h2><button class="primary" onClick=${() => open({ kind: "create" })}>Create a topic</button></div>
      <${Spread} map=${map} nodes=${nodes.nodes} />
      <${Field} map=${map} />
    </section>
    <section class="sheet" aria-label="The last ten minutes"><h2>The last ten minutes</h2><${Recent} store=${store} /></section>`;
}

const count = (map) => map.topics.reduce((sum, topic) => sum + topic.leaders.length, 0);

function leaderships(map) {
  const led = new Map();
  for (const topic of map.topics) for (const leader of topic.leaders) led.set(leader, (led.get(leader) ?? 0) + 1);
  return led;
}

function Racks({ nodes, map, quorum, open }) {
  const racks = group(nodes);
  const led = leaderships(map), whole = Math.max(1, count(map));
  return html`<div class="racks">${[...racks].sort().map(([rack, members]) => html`
    <div class="rack" key=${rack}>${(rack || racks.size > 1) && html`<div class="name">${rack ? `rack ${rack}` : "no rack"}</div>`}
      ${members.map((node) => html`<${Node} key=${node.node_id} node=${node} led=${led.get(node.node_id) ?? 0} whole=${whole} quorum=${quorum} open=${open} />`)}
    </div>`)}</div>`;
}

function group(nodes) {
  const racks = new Map();
  for (const node of nodes) racks.set(node.rack ?? "", [...(racks.get(node.rack ?? "") ?? []), node]);
  return racks;
}

function stateOf(node) {
  if (!node.roles.includes("broker")) return ["controller", "soft"];
  if (node.state === "fenced") return ["fenced: does not answer", "bad"];
  if (node.state === "stopping") return ["shuts down", "warn"];
  if (node.is_drained) return ["drained", "warn"];
  return ["active", "good"];
}

function Node({ node, led, whole, quorum, open }) {
  const [state, tone] = stateOf(node);
  const isBroker = node.roles.includes("broker");
  const leads = quorum?.leader_id === node.node_id;
  return html`<article class="node" data-node=${node.node_id}>
    <${Ring} share=${led / whole} tint=${colour(node.node_id)} isDashed=${node.state === "fenced"}>
      <text x="66" y="72" text-anchor="middle" style=${{ fontSize: "30px", fontWeight: 700 }}>${node.node_id}</text>
      <text class="soft" x="66" y="90" text-anchor="middle">${isBroker ? `leads ${number(led)}` : "no records"}</text>
      ${leads && html`<g><path d="M53 29l4 5 4-7 5 7 5-7 4 7 4-5-3 13h-20z" fill="var(--warn)"><title>leads the metadata quorum</title></path></g>`}
    </${Ring}>
    <div class="state"><span class="tag ${tone}">${state}</span></div>
    <div class="small soft">${leads ? "leads the quorum" : node.roles.includes("controller") ? "votes" : "follows"}${isBroker ? html` · ${plural(node.replica_count ?? 0, "replica")}` : ""}</div>
    <div class="bars">${(node.log_dirs ?? []).map((dir) => {
      const used = dir.total_bytes ? 1 - dir.free_bytes / dir.total_bytes : 0;
      return dir.error ? html`<div><span class="tag bad">${dir.path}: ${dir.error}</span></div>`
        : html`<div title="${dir.path}: ${bytes(dir.free_bytes)} of ${bytes(dir.total_bytes)} are free">disk ${Math.round(used * 100)} % full
          <div class="meter ${used > 0.9 ? "full" : ""}"><i style=${{ width: `${used * 100}%` }}></i></div></div>`;
    })}${node.out_of_sync_count > 0 && html`<span class="tag warn">${plural(node.out_of_sync_count, "replica")} not in sync</span>`}</div>
    ${isBroker && html`<button class="small" onClick=${() => open({ kind: node.is_drained ? "undrain" : "drain", node })}>${node.is_drained ? "Undrain" : "Drain"}</button>`}
    ${node.roles.includes("controller") && !leads && html` <button class="small" onClick=${() => open({ kind: "transfer", node })}>Let it lead</button>`}
  </article>`;
}

function Spread({ map, nodes }) {
  const led = leaderships(map), whole = Math.max(1, count(map));
  const brokers = nodes.filter((node) => node.roles.includes("broker"));
  return html`<div class="leaders" role="img" aria-label=${`Leaders: ${brokers.map((node) => `node ${node.node_id} ${led.get(node.node_id) ?? 0}`).join(", ")}`}>
    ${brokers.filter((node) => led.get(node.node_id)).map((node) => html`<span key=${node.node_id} style=${{ flexGrow: led.get(node.node_id), background: colour(node.node_id) }}
      title="node ${node.node_id} leads ${led.get(node.node_id)} of ${whole}">${node.node_id}</span>`)}
    ${led.get(-1) && html`<span style=${{ flexGrow: led.get(-1), background: "var(--bad)" }} title="${led.get(-1)} without a leader">none</span>`}
  </div>`;
}

export function Cells({ topic, tight }) {
  return html`<div class="cells">${topic.leaders.map((leader, index) => {
    const isLess = topic.in_sync[index] < topic.replicas[index];
    const said = `${topic.topic_name}-${index}: ${leader < 0 ? "no leader" : `led by node ${leader}`}, ${topic.in_sync[index]} of ${topic.replicas[index]} replicas in sync`;
    return html`<a key=${index} href="#/topics/${encodeURIComponent(topic.topic_name)}" class="cell ${tight ? "tight" : ""} ${leader < 0 ? "none" : isLess ? "less" : ""}"
      style=${{ backgroundColor: colour(leader) }} title=${said} aria-label=${said} data-partition="${topic.topic_name}-${index}" data-leader=${leader}></a>`;
  })}</div>`;
}

function Field({ map }) {
  const [withInternal, setInternal] = useState(false);
  const topics = map.topics.filter((topic) => withInternal || !topic.topic_name.startsWith("__"));
  const whole = topics.reduce((sum, topic) => sum + topic.leaders.length, 0);
  let left = CELLS_MOST;
  const shown = topics.filter((topic) => (left -= topic.leaders.length) > -topic.leaders.length);
  return html`
    ${topics.length === 0 && html`<p class="empty">There are no topics yet. The first one can be created here, or is, by the first record of a producer.</p>`}
    <div class="field" style=${{ marginTop: ".8rem" }}>${shown.map((topic) => html`
      <div class="topic" key=${topic.topic_name}><h3><a href="#/topics/${encodeURIComponent(topic.topic_name)}">${topic.topic_name}</a></h3>
        <${Cells} topic=${topic} tight=${whole > CELLS_WIDE} /></div>`)}</div>
    ${shown.length < topics.length && html`<p class="soft">and ${plural(topics.length - shown.length, "more topic")}</p>`}
    <div class="legend"><span><i class="cell" style=${{ background: "var(--n0)" }}></i>one partition, in the colour of its leader</span>
      <span><i class="cell less" style=${{ backgroundColor: "var(--n0)" }}></i>a replica is not in sync</span>
      <span><i class="cell none"></i>no leader</span>
      <label class="row"><input type="checkbox" style=${{ width: "auto" }} checked=${withInternal} onChange=${() => setInternal(!withInternal)} />internal topics too</label></div>`;
}

function Recent({ store }) {
  const end = Date.now(), begin = end - LINE_MS;
  const marks = store.events.filter((event) => event.timestamp_ms >= begin).map((event) => {
    const { sign, tint, lane, sentence } = describe(event);
    return { time: event.timestamp_ms, lane: LANES.indexOf(lane), tint, shape: sign, title: sentence };
  });
  return html`<${TimeLine} marks=${marks} lanes=${LANES} begin=${begin} end=${end} label="Events of the last ten minutes" />
    <ul class="happened">${gathered(store.events.slice().reverse()).slice(0, 5).map(({ key, event, more }) => html`<${Happened} key=${key} event=${event} more=${more} />`)}</ul>`;
}

export function Happened({ event, more = 0 }) {
  const { sign, tint, sentence } = describe(event);
  return html`<li><time>${new Date(event.timestamp_ms).toLocaleTimeString("en-GB")}</time>
    <${Sign} sign=${sign} tint=${tint} /><span>${sentence}${more > 0 && html` <span class="soft">and ${more} more</span>`}</span></li>`;
}

export function Sign({ sign, tint }) {
  return html`<svg width="18" height="18" viewBox="-9 -9 18 18" aria-hidden="true"><path d=${shape(sign)} fill=${tint} /></svg>`;
}
