// The few things that the page changes. Each shows the command of the terminal that does the same.
import { html, useEffect, useRef, useState } from "/page/lib.js";
import { ask, path } from "/page/api.js";
import { shell } from "/page/words.js";

// By kind: title, fields, command and request.
const ACTIONS = {
  create: {
    title: () => "Create a topic", button: "Create",
    fields: [["name", "Name", ""], ["partitions", "Partitions", "3"], ["replicas", "Replicas (empty: as the cluster's default)", ""]],
    command: (given) => `penstock topic create ${shell(given.name || "NAME")} --partitions ${shell(given.partitions || "1")}${given.replicas ? ` --replication-factor ${shell(given.replicas)}` : ""}`,
    run: (given, cluster) => ask("POST", path`/v3/clusters/${cluster}/topics`, {
      topic_name: given.name, partitions_count: Number(given.partitions), ...(given.replicas ? { replication_factor: Number(given.replicas) } : {}),
    }),
  },
  alter: {
    title: ({ topic }) => `Alter ${topic.name}`, button: "Alter",
    fields: [["config", "Config, as retention.ms", "retention.ms"], ["value", "Value (empty: the default again)", ""]],
    command: (given, { topic }) => `penstock topic alter ${shell(topic.name)} ${given.value ? `--set ${shell(`${given.config}=${given.value}`)}` : `--unset ${shell(given.config)}`}`,
    run: (given, cluster, { topic }) => ask("POST", path`/v3/clusters/${cluster}/topics/${topic.name}/configs:alter`, {
      data: [given.value ? { name: given.config, value: given.value, operation: "SET" } : { name: given.config, operation: "DELETE" }],
    }),
  },
  delete: {
    title: ({ topic }) => `Delete ${topic.name} with all its records`, button: "Delete", isDangerous: true,
    fields: [["again", "Write its name again", ""]],
    command: (_given, { topic }) => `penstock topic delete ${shell(topic.name)}`,
    isReady: (given, { topic }) => given.again === topic.name,
    run: (_given, cluster, { topic }) => ask("DELETE", path`/v3/clusters/${cluster}/topics/${topic.name}`),
  },
  transfer: {
    title: ({ node }) => `Let node ${node.node_id} lead the metadata quorum`, button: "Transfer", fields: [],
    command: (_given, { node }) => `penstock quorum transfer --to ${node.node_id}`,
    run: (_given, _cluster, { node }) => ask("POST", "/v1/quorum/transfer", { to: node.node_id }),
  },
  drain: {
    title: ({ node }) => `Drain node ${node.node_id}: others lead its partitions`, button: "Drain", fields: [],
    command: (_given, { node }) => `penstock drain ${node.node_id}`,
    run: (_given, _cluster, { node }) => ask("PUT", path`/v1/brokers/${node.node_id}/maintenance`),
  },
  undrain: {
    title: ({ node }) => `Let node ${node.node_id} lead again`, button: "Undrain", fields: [],
    command: (_given, { node }) => `penstock drain ${node.node_id} --undo`,
    run: (_given, _cluster, { node }) => ask("DELETE", path`/v1/brokers/${node.node_id}/maintenance`),
  },
};

export function Dialogs({ dialog, close, store }) {
  return dialog && html`<${Action} key=${JSON.stringify(dialog)} dialog=${dialog} close=${close} store=${store} />`;
}

function Action({ dialog, close, store }) {
  const action = ACTIONS[dialog.kind];
  const [given, setGiven] = useState(Object.fromEntries(action.fields.map(([name, , first]) => [name, first])));
  const [problem, setProblem] = useState(null);
  const [isRunning, setRunning] = useState(false);
  const element = useRef(null);
  useEffect(() => { element.current.showModal(); }, []);
  const cluster = store.values.nodes?.cluster_id;
  const run = async (event) => {
    event.preventDefault();
    setRunning(true);
    try {
      await action.run(given, cluster, dialog);
      store.refresh();
      close();
    } catch (refused) {
      setProblem(refused.message);
      setRunning(false);
    }
  };
  const isReady = !action.isReady || action.isReady(given, dialog);
  return html`<dialog ref=${element} onClose=${close} aria-labelledby="action">
    <form onSubmit=${run}>
      <h2 id="action">${action.title(dialog)}</h2>
      ${action.fields.map(([name, label]) => html`<label key=${name}>${label}
        <input name=${name} value=${given[name]} onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} autocomplete="off" /></label>`)}
      <div><div class="small soft">The same in a terminal</div><div class="command"><code>${action.command(given, dialog)}</code>
        <button type="button" onClick=${() => navigator.clipboard?.writeText(action.command(given, dialog))}>Copy</button></div></div>
      ${problem && html`<div class="problem" role="alert">${problem}</div>`}
      <div class="row"><button class=${action.isDangerous ? "danger" : "primary"} disabled=${isRunning || !isReady || !cluster}>${isRunning ? "…" : action.button}</button>
        <button type="button" onClick=${close}>Leave it</button></div>
    </form></dialog>`;
}
