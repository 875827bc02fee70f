// The frame of the page: which view is shown, and whether what it shows is of now.
import { html, render, useEffect, useState } from "/page/lib.js";
import { Store } from "/page/store.js";
import { age, clock } from "/page/words.js";
import { get } from "/page/api.js";
import { ClusterView } from "/page/cluster.js";
import { TopicsView } from "/page/topics.js";
import { GroupsView } from "/page/groups.js";
import { TransactionsView } from "/page/transactions.js";
import { QuorumView } from "/page/quorum.js";
import { EventsView } from "/page/events.js";
import { Dialogs } from "/page/actions.js";

const VIEWS = [
  ["cluster", "Cluster", ClusterView],
  ["topics", "Topics", TopicsView],
  ["groups", "Groups", GroupsView],
  ["transactions", "Transactions", TransactionsView],
  ["quorum", "Quorum", QuorumView],
  ["events", "Events", EventsView],
];
const store = new Store();

function useHash() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const [view, ...rest] = hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return [VIEWS.find(([name]) => name === view) ? view : "cluster", rest];
}

function useTheme() {
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  return [theme, () => {
    const other = theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", other);
    setTheme(other);
  }];
}

function Page() {
  const [, setCount] = useState(0);
  const [view, rest] = useHash();
  const [theme, turn] = useTheme();
  const [dialog, open] = useState(null);
  useEffect(() => store.subscribe(() => setCount((count) => count + 1)), []);
  useEffect(() => store.use("ready", () => get("/ready")), []);
  useEffect(() => store.use("nodes", () => get("/v1/nodes")), []);
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || dialog) return;
      const index = Number(event.key) - 1;
      if (VIEWS[index]) location.hash = `#/${VIEWS[index][0]}`;
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [dialog]);
  const [, , View] = VIEWS.find(([name]) => name === view);
  const { ready, nodes } = store.values;
  const isOld = store.isLate || store.stranger;
  return html`
    <a class="skip" href="#main">To the content</a>
    <header class="top">
      <div class="brand"><img src="/page/icon.svg" alt="" /><h1>Penstock</h1></div>
      <nav aria-label="Views">${VIEWS.map(([name, title], index) => html`
        <a key=${name} href="#/${name}" aria-current=${name === view ? "page" : undefined} title="Key ${index + 1}">${title}</a>`)}</nav>
      <div class="where">
        ${nodes && html`<span class="mono" title="The id of the cluster">${nodes.cluster_id}</span>`}
        ${ready && html`<span>seen by node ${ready.node_id}</span>`}
        <span role="status"><span class="pulse ${isOld ? "late" : ""}"></span>${store.stranger ? "not signed in" : store.isLate ? "cut off" : "live"}</span>
        <button onClick=${turn} title="Light or dark">${theme === "dark" ? "Light" : "Dark"}</button>
      </div>
    </header>
    ${store.stranger && html`<div class="banner" role="alert">${store.stranger} <button onClick=${() => location.reload()}>Sign in</button></div>`}
    ${!store.stranger && store.isLate && html`<${CutOff} nodes=${nodes} ready=${ready} />`}
    ${!store.isLate && ready && !ready.is_ok && html`<div class="banner" role="alert">Node ${ready.node_id} is not ready: ${ready.reasons.map((reason) => reason.sentence).join(" ")}</div>`}
    <main id="main" class=${isOld ? "stale" : ""}><${View} store=${store} rest=${rest} open=${open} /></main>
    <${Dialogs} dialog=${dialog} close=${() => open(null)} store=${store} />`;
}

function CutOff({ nodes, ready }) {
  const others = (nodes?.nodes ?? []).filter((node) => node.admin?.length && node.node_id !== ready?.node_id);
  return html`<div class="banner" role="alert">
    ${ready ? `Node ${ready.node_id}` : "The node"} has not answered for ${age(Date.now() - store.lastHeardMs)}.
    What you see is of ${clock(store.lastHeardMs)}.
    ${others.length > 0 && html` Others may: ${others.map((node) => html`<a href=${node.admin[0]}>node ${node.node_id}</a> `)}`}
  </div>`;
}

render(html`<${Page} />`, document.getElementById("page"));
