// The node's HTTP administration. Every function returns what the node says, or throws a Problem.

export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail);
    this.status = status;
    this.title = title;
  }
}

const PATIENCE_MS = 8000;

export async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: method === "GET" ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE_MS),
    cache: "no-store",
  });
  const text = await response.text();
  const value = text ? JSON.parse(text) : null;
  // /ready says with 503 what is wrong, in the form of an answer.
  if (!response.ok && (value === null || value.title !== undefined)) {
    throw new Problem(response.status, value?.title ?? String(response.status), value?.detail ?? response.statusText);
  }
  return value;
}

export const get = (path) => ask("GET", path);

export function path(strings, ...values) {
  return strings.reduce((whole, part, index) => whole + encodeURIComponent(values[index - 1]) + part);
}

// All topics with their sums, from which rates are drawn.
export async function overview(store) {
  const topics = [];
  for (let token = ""; token !== null && topics.length < 2000;) {
    const page = await get(`/v1/topics?page_size=500${token && `&page_token=${encodeURIComponent(token)}`}`);
    topics.push(...page.topics);
    token = page.next;
  }
  for (const topic of topics) store.sample(`topic ${topic.name}`, topic.high_watermarks);
  store.sample("records", topics.reduce((sum, topic) => sum + (topic.is_internal ? 0 : topic.high_watermarks ?? 0), 0));
  return topics;
}

// All pages of a list of /v3, as far as `most` items.
export async function all(first, most = 2000) {
  const items = [];
  for (let next = first; next && items.length < most;) {
    const page = await get(next);
    items.push(...page.data);
    const url = page.metadata.next && new URL(page.metadata.next, location.href);
    next = url && url.pathname + url.search;
  }
  return items;
}
