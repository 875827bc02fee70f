// Events of the cluster in words and signs.
import { plural } from "/page/words.js";

const partition = (event) => `${event.topic}-${event.partition}`;
const list = (ids) => ids.join(", ");
const node = (id) => (id === null || id < 0 ? "no node" : `node ${id}`);

// By kind: sign, tone, lane of the time line, sentence.
const KINDS = {
  "broker-registered": ["square", "accent", "nodes", (e) => `Node ${e.broker_id} has registered${e.rack ? ` in rack ${e.rack}` : ""}`],
  "broker-unregistered": ["cross", "soft", "nodes", (e) => `Node ${e.broker_id} was unregistered`],
  "broker-fenced": ["cross", "bad", "nodes", (e) => `Node ${e.broker_id} is fenced: it does not answer`],
  "broker-unfenced": ["up", "good", "nodes", (e) => `Node ${e.broker_id} is active`],
  "controlled-shutdown-begun": ["down", "warn", "nodes", (e) => `Node ${e.broker_id} shuts down`],
  "broker-drained": ["down", "warn", "nodes", (e) => `Node ${e.broker_id} is drained: others lead`],
  "broker-undrained": ["up", "good", "nodes", (e) => `Node ${e.broker_id} may lead again`],
  "log-directories-failed": ["cross", "bad", "nodes", (e) => `Node ${e.broker_id} lost ${plural(e.directories.length, "log directory", "log directories")}`],
  "controller-registered": ["square", "accent", "quorum", (e) => `Controller ${e.controller_id} has registered`],
  "quorum-leader-changed": ["diamond", "warn", "quorum", (e) => `${e.leader_id === null ? "A new leader" : `Node ${e.leader_id}`} leads the metadata quorum in epoch ${e.epoch}`],
  "feature-changed": ["square", "accent", "quorum", (e) => `Feature ${e.name}: level ${e.old_level} → ${e.new_level}`],
  "topic-created": ["up", "good", "topics", (e) => `Topic ${e.topic} was created with ${plural(e.partition_count, "partition")}`],
  "topic-deleted": ["cross", "soft", "topics", (e) => `Topic ${e.topic} was deleted`],
  "partitions-added": ["up", "good", "topics", (e) => `Topic ${e.topic}: ${e.old_count} → ${e.new_count} partitions`],
  "leader-changed": ["diamond", "warn", "leaders", (e) => `${partition(e)}: leader ${node(e.old_leader)} → ${node(e.new_leader)} (epoch ${e.leader_epoch})`],
  "isr-shrunk": ["down", "warn", "replicas", (e) => `${partition(e)}: ${list(e.removed)} left the ISR, which is ${list(e.isr)}`],
  "isr-expanded": ["up", "good", "replicas", (e) => `${partition(e)}: ${list(e.added)} joined the ISR, which is ${list(e.isr)}`],
  "reassignment-begun": ["square", "accent", "replicas", (e) => `${partition(e)} moves: to ${list(e.adding) || "–"}, from ${list(e.removing) || "–"}`],
  "reassignment-ended": ["square", "good", "replicas", (e) => `${partition(e)} has moved: replicas ${list(e.replicas)}`],
  "configs-changed": ["square", "accent", "configs", (e) => `Configs of ${e.resource_name || "all nodes"}: ${e.changes.map(change).join(", ") || plural(e.count, "change")}`],
  summary: ["diamond", "warn", "leaders", (e) => `${plural(e.count, "partition")} at once: ${SUMMARIES[e.of] ?? e.of}`],
  gap: ["dot", "soft", "nodes", () => "Here some events are missing"],
};
export const NAMES = Object.keys(KINDS);

const SUMMARIES = {
  "leader-changed": "leader changed", "isr-shrunk": "ISR shrunk", "isr-expanded": "ISR expanded",
  "topic-created": "topics created", "topic-deleted": "topics deleted",
  "reassignment-begun": "reassignment begun", "reassignment-ended": "reassignment ended",
};
const change = (one) => (one.value === null ? `${one.name} reset` : `${one.name} = ${one.is_hidden ? "hidden" : one.value}`);

export const LANES = ["quorum", "nodes", "leaders", "replicas", "topics", "configs"];

// Events of one kind that one entry of the metadata log made, as one: the first, and how many more.
export function gathered(events) {
  const groups = [];
  for (const event of events) {
    const key = `${event.kind} ${String(event.id).split(".")[0]}`;
    const last = groups.find((group) => group.key === key);
    if (last) last.more += 1;
    else groups.push({ key, event, more: 0 });
  }
  return groups;
}

export function describe(event) {
  const [sign, tone, lane, sentence] = KINDS[event.kind] ?? ["dot", "soft", "nodes", (e) => e.kind];
  return { sign, tint: `var(--${tone})`, lane, sentence: sentence(event) };
}
