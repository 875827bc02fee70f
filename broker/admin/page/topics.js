// Topics and their partitions: where the replicas are, who leads, how fast records come.
import { Absent, html, useEffect, useState } from "/page/lib.js";
import { get, overview, path } from "/page/api.js";
import { Spark, colour } from "/page/charts.js";
import { Cells } from "/page/cluster.js";
import { bytes, number, plural, rate } from "/page/words.js";

export function TopicsView({ store, rest, open }) {
  const [wanted, setWanted] = useState("");
  const [opened] = rest;
  useEffect(() => store.use("map", () => get("/v1/partition-map")), []);
  useEffect(() => store.use("topics", () => overview(store)), []);
  const { topics, map } = store.values;
  if (!topics || !map) return html`<${Absent} reason=${store.stranger ? "" : store.problems.topics ?? store.problems.map} />`;
  const byName = new Map(map.topics.map((topic) => [topic.topic_name, topic]));
  const shown = topics.filter((topic) => topic.name.includes(wanted) && byName.has(topic.name))
    .sort((one, other) => one.is_internal - other.is_internal || one.name.localeCompare(other.name));
  return html`<section class="sheet">
    <div class="spread"><h2>${plural(topics.length, "topic")}</h2>
      <div class="row"><input aria-label="Only topics with" placeholder="only with …" style=${{ width: "11rem" }} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
        <button class="primary" onClick=${() => open({ kind: "create" })}>Create a topic</button></div></div>
    ${shown.length === 0 && html`<p class="empty">No topic ${wanted ? `has ${wanted} in its name` : "yet"}.</p>`}
    <div class="topics">${shown.map((topic) => html`<div key=${topic.name}>
      <div class="topicline" aria-expanded=${topic.name === opened}>
        <a class="name" href="#/topics/${topic.name === opened ? "" : encodeURIComponent(topic.name)}">${topic.name}</a>
        <${Cells} topic=${byName.get(topic.name)} tight=${byName.get(topic.name).leaders.length > 60} />
        <span class="figure small">${bytes(topic.size_bytes)}<br /><span class="soft">${rate(store.rate(`topic ${topic.name}`))}</span></span>
        <${Spark} series=${store.rates(`topic ${topic.name}`)} label="Records per second of ${topic.name}" />
      </div>
      ${topic.name === opened && html`<${Topic} store=${store} name=${opened} open=${open} />`}
    </div>`)}</div>
  </section>`;
}

function Topic({ store, name, open }) {
  useEffect(() => store.use(`topic ${name}`, async () => {
    const found = await get(path`/v1/topics?topic=${name}&page_size=500`);
    for (const one of found.topics[0]?.partitions ?? []) store.sample(`partition ${name}-${one.partition}`, one.high_watermark);
    return found.topics[0];
  }), [name]);
  const topic = store.values[`topic ${name}`];
  if (!topic) return html`<${Absent} reason=${store.stranger ? "" : store.problems[`topic ${name}`]} />`;
  const nodes = [...new Set(topic.partitions.flatMap((one) => [...one.replicas]))].sort((one, other) => one - other);
  return html`<div style=${{ padding: ".4rem .6rem 1rem" }}>
    <div class="row" style=${{ marginBottom: ".5rem" }}>
      <button onClick=${() => open({ kind: "alter", topic })}>Alter</button>
      <button class="danger" onClick=${() => open({ kind: "delete", topic })}>Delete</button>
      <span class="soft small mono">${topic.topic_id ?? ""}</span></div>
    <div class="scroll"><table class="matrix"><thead><tr><th>partition</th>${nodes.map((id) => html`<th key=${id}>node ${id}</th>`)}
      <th>epoch</th><th>first – next offset</th><th>size</th><th>records</th></tr></thead>
    <tbody>${topic.partitions.map((one) => html`<tr key=${one.partition}>
      <th>${one.partition}</th>
      ${nodes.map((id) => html`<td key=${id}><${Replica} one=${one} id=${id} /></td>`)}
      <td class="figure">${one.leader_epoch}</td>
      <td class="figure">${number(one.log_start_offset)} – ${number(one.high_watermark)}</td>
      <td class="figure">${bytes(one.size_bytes)}</td>
      <td><span class="row"><${Spark} series=${store.rates(`partition ${name}-${one.partition}`)} width=${90} height=${20} label="Records per second" />${rate(store.rate(`partition ${name}-${one.partition}`))}</span></td>
    </tr>`)}</tbody></table></div>
    <div class="legend"><span><i class="replica leads" style=${{ background: "var(--n0)", borderColor: "var(--n0)" }}>L</i> leads</span><span><i class="replica" style=${{ color: "var(--n0)" }}>✓</i> in sync</span>
      <span><i class="replica out" style=${{ color: "var(--bad)" }}>–</i> not in sync</span><span><i class="replica out" style=${{ color: "var(--warn)" }}>E</i> eligible to lead (ELR)</span></div>
  </div>`;
}

function Replica({ one, id }) {
  if (!one.replicas.includes(id)) return null;
  if (one.leader === id) return html`<span class="replica leads" style=${{ background: colour(id), borderColor: colour(id) }} title="leads">L</span>`;
  if (one.isr.includes(id)) return html`<span class="replica" style=${{ color: colour(id) }} title="in sync">✓</span>`;
  if ((one.elr ?? []).includes(id)) return html`<span class="replica out" style=${{ color: "var(--warn)" }} title="eligible leader replica">E</span>`;
  return html`<span class="replica out" style=${{ color: "var(--bad)" }} title="not in sync">–</span>`;
}
