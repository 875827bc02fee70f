// Consumer groups, and how far they are behind.
import { Absent, html, useEffect } from "/page/lib.js";
import { all, get, path } from "/page/api.js";
import { Spark, colour } from "/page/charts.js";
import { number, plural } from "/page/words.js";

export function GroupsView({ store, rest }) {
  const cluster = store.values.nodes?.cluster_id;
  const [opened] = rest;
  useEffect(() => cluster && store.use("groups", async () => {
    const groups = await all(path`/v3/clusters/${cluster}/consumer-groups`);
    const known = await Promise.all(groups.slice(0, 100).map(async (group) => {
      try {
        const lag = await get(path`/v3/clusters/${cluster}/consumer-groups/${group.consumer_group_id}/lag-summary`);
        store.sample(`lag ${group.consumer_group_id}`, lag.total_lag);
        return { ...group, lag };
      } catch (problem) { return { ...group, problem: problem.message }; }
    }));
    return known.sort((one, other) => (other.lag?.total_lag ?? -1) - (one.lag?.total_lag ?? -1));
  }), [cluster]);
  const { groups } = store.values;
  if (!groups) return html`<${Absent} reason=${store.stranger ? "" : store.problems.groups} />`;
  const most = Math.max(1, ...groups.map((group) => group.lag?.total_lag ?? 0));
  return html`<section class="sheet"><h2>${plural(groups.length, "group")}, by how far behind they are</h2>
    ${groups.length === 0 && html`<p class="empty">No group has joined or committed yet.</p>`}
    <div class="grouplags">${groups.map((group) => html`<div key=${group.consumer_group_id}>
      <div class="lagline">
        <a href="#/groups/${group.consumer_group_id === opened ? "" : encodeURIComponent(group.consumer_group_id)}">${group.consumer_group_id}</a>
        <span class="track" title=${group.problem ?? `${number(group.lag.total_lag)} records behind`}>
          <i style=${{ width: `${100 * (group.lag?.total_lag ?? 0) / most}%` }}></i>
          <b>${group.problem ? "–" : `${number(group.lag.total_lag)} behind`}</b></span>
        <span class="tag ${group.state === "STABLE" ? "good" : "warn"}">${group.state.toLowerCase()}</span>
      </div>
      ${group.consumer_group_id === opened && html`<${Group} store=${store} cluster=${cluster} id=${opened} />`}
    </div>`)}</div></section>`;
}

function Group({ store, cluster, id }) {
  useEffect(() => store.use(`group ${id}`, async () => {
    const [lags, consumers] = await Promise.all([
      all(path`/v3/clusters/${cluster}/consumer-groups/${id}/lags`),
      all(path`/v3/clusters/${cluster}/consumer-groups/${id}/consumers`),
    ]);
    return { lags, consumers };
  }), [id]);
  const found = store.values[`group ${id}`];
  if (!found) return html`<${Absent} reason=${store.stranger ? "" : store.problems[`group ${id}`]} />`;
  const most = Math.max(1, ...found.lags.map((one) => one.lag ?? 0));
  const numbers = new Map(found.consumers.map((consumer, index) => [consumer.consumer_id, index]));
  return html`<div style=${{ padding: ".5rem .6rem 1rem" }}>
    <div class="row small soft" style=${{ marginBottom: ".4rem" }}>lag over time <${Spark} series=${store.samples.get(`lag ${id}`) ?? []} width=${220} height=${34} label="Lag over time" />
      ${found.consumers.map((consumer, index) => html`<span class="tag" title=${consumer.consumer_id}><span style=${{ color: colour(index) }}>■</span> ${consumer.client_id || consumer.consumer_id}</span>`)}</div>
    <div class="grouplags">${found.lags.map((one) => html`<div class="lagline small" key="${one.topic_name}-${one.partition_id}">
      <span>${one.topic_name}-${one.partition_id}</span>
      <span class="track" title="committed ${number(one.current_offset)} of ${number(one.log_end_offset)}">
        <i style=${{ width: `${100 * (one.lag ?? 0) / most}%`, background: one.consumer_id ? colour(numbers.get(one.consumer_id) ?? 0) : "var(--soft)" }}></i>
        <b>${number(one.lag)}</b></span>
      <span class="soft">${one.client_id || "no reader"}</span></div>`)}</div></div>`;
}
