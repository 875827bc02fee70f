// Transactions that are open, as bars of time; those that hang stand out.
import { Absent, html, useEffect } from "/page/lib.js";
import { get, path } from "/page/api.js";
import { TimeLine } from "/page/charts.js";
import { age, plural } from "/page/words.js";

const TINTS = { Ongoing: "var(--accent)", PrepareCommit: "var(--good)", PrepareAbort: "var(--warn)", PrepareEpochFence: "var(--warn)" };

export function TransactionsView({ store }) {
  useEffect(() => store.use("transactions", () => get("/v1/transactions")), []);
  const nodes = store.values.nodes?.nodes ?? [];
  const brokers = nodes.filter((node) => node.roles.includes("broker") && node.state !== "fenced").map((node) => node.node_id);
  useEffect(() => store.use("hanging", async () => {
    const found = await Promise.all(brokers.map((id) => get(path`/v1/transactions/hanging?broker_id=${id}`)));
    return { transactions: found.flatMap((one) => one.transactions) };
  }), [brokers.join()]);
  const { transactions, hanging } = store.values;
  if (!transactions) return html`<${Absent} reason=${store.stranger ? "" : store.problems.transactions} />`;
  const now = Date.now();
  const open = transactions.transactions.filter((one) => one.age_ms !== null).map((one) => ({ ...one, started_ms: now - one.age_ms })).slice(0, 60);
  const idle = transactions.transactions.length - open.length;
  const begin = Math.min(now - 60_000, ...open.map((one) => one.started_ms));
  const marks = open.map((one, lane) => ({
    time: one.started_ms, until: now, lane, tint: TINTS[one.state] ?? "var(--soft)", text: one.state,
    title: `${one.transactional_id}: ${one.state} for ${age(one.age_ms)}, ${plural(one.partitions?.length ?? 0, "partition")}`,
  }));
  const found = hanging?.transactions ?? [];
  return html`<section class="sheet"><h2>${plural(open.length, "transaction")} under way${idle > 0 ? `, ${plural(idle, "producer")} without one` : ""}</h2>
      ${open.length === 0 ? html`<p class="empty">No transaction is open.</p>`
        : html`<${TimeLine} marks=${marks} lanes=${open.map((one) => one.transactional_id.slice(0, 18))} begin=${begin} end=${now} label="Open transactions" />`}
    </section>
    <section class="sheet"><h2>Hanging</h2>
      ${store.problems.hanging && html`<p class="soft">${store.problems.hanging}</p>`}
      ${found.length === 0 ? html`<p class="empty">None: no partition waits for an end that will not come.</p>`
        : found.map((one) => html`<p key="${one.topic}-${one.partition}-${one.producer_id}"><span class="tag bad">hangs</span> ${one.topic}-${one.partition}: producer ${one.producer_id}, silent for ${age(one.idle_ms)}
          <div class="command"><code>penstock transactions abort --topic ${one.topic} --partition ${one.partition} --start-offset ${one.start_offset}</code></div></p>`)}
    </section>`;
}
