// What the page knows: asked every two seconds, and at once when the node tells of an event. Each part is asked by itself,
// so that one that fails leaves the others fresh.
import { NAMES } from "/page/happenings.js";

const INTERVAL_MS = 2000;
const LATE_MS = 7000;
// What a person may not see is asked for again seldom: permissions change, and each refusal is a line in a log.
const REFUSED_MS = 30000;
const EVENTS_KEPT = 500;
const SAMPLES_KEPT = 150;

export class Store {
  constructor() {
    this.parts = new Map();
    this.values = {};
    this.problems = {};
    // Why the node does not know who looks at the page. Then nothing more is asked: a browser would ask for a password each time.
    this.stranger = null;
    this.events = [];
    this.lastHeardMs = Date.now();
    this.listeners = new Set();
    this.samples = new Map();
    this.isStreaming = false;
    this.timer = setInterval(() => this.refresh(), INTERVAL_MS);
    // What is shown grows old also when nothing arrives.
    setInterval(() => this.tell(), 1000);
    this.stream();
  }

  get isLate() { return Date.now() - this.lastHeardMs > LATE_MS; }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell() { for (const listener of this.listeners) listener(); }

  // A view names what it shows; it is asked for as long as the view is there.
  use(name, load) {
    const users = this.parts.get(name);
    if (users) users.count += 1;
    else { this.parts.set(name, { load, count: 1, isAsking: false }); this.ask(name); }
    return () => {
      const part = this.parts.get(name);
      part.count -= 1;
      if (part.count === 0) this.parts.delete(name);
    };
  }

  refresh() {
    for (const [name, part] of this.parts) if (Date.now() - (part.refusedMs ?? 0) > REFUSED_MS) this.ask(name);
  }

  async ask(name) {
    const part = this.parts.get(name);
    if (!part || part.isAsking || this.stranger) return;
    part.isAsking = true;
    try {
      const value = await part.load(this);
      this.values[name] = value;
      delete this.problems[name];
      this.lastHeardMs = Date.now();
    } catch (problem) {
      // A refusal is an answer, too: the node is there.
      if (problem.status !== undefined) this.lastHeardMs = Date.now();
      if (problem.status === 401) this.stranger = problem.message;
      if (problem.status === 403) part.refusedMs = Date.now();
      this.problems[name] = problem.message;
    } finally {
      part.isAsking = false;
      this.tell();
    }
  }

  // A series of a number that grows, from which rates are drawn.
  sample(name, value) {
    if (value === null || value === undefined) return;
    const series = this.samples.get(name) ?? [];
    series.push([Date.now(), value]);
    if (series.length > SAMPLES_KEPT) series.shift();
    this.samples.set(name, series);
  }

  // [time, per second] between every two samples; a number that fell (a deleted topic) counts as 0.
  rates(name) {
    const series = this.samples.get(name) ?? [];
    return series.slice(1).map(([time, value], index) => {
      const [before, previous] = series[index];
      return [time, Math.max(0, (value - previous) / Math.max(0.001, (time - before) / 1000))];
    });
  }

  rate(name) {
    const rates = this.rates(name).slice(-3);
    return rates.length ? rates.reduce((sum, [, value]) => sum + value, 0) / rates.length : null;
  }

  stream() {
    if (this.stranger) return;
    // All that the node remembers, and what comes; a browser that was cut off names the last one it has.
    const source = new EventSource("/v1/events?since=-1.0");
    source.onopen = () => { this.isStreaming = true; this.tell(); };
    source.onerror = () => {
      this.isStreaming = false;
      this.tell();
      // After a refusal the browser does not try again by itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.stream(), 3000);
    };
    for (const kind of NAMES) source.addEventListener(kind, (message) => this.happened(JSON.parse(message.data)));
  }

  happened(event) {
    // Before the first event that a node remembers is a gap, which is no news.
    if (event.timestamp_ms === 0 || this.events.some((known) => known.id === event.id)) return;
    this.events.push(event);
    this.events.sort((one, other) => one.timestamp_ms - other.timestamp_ms);
    if (this.events.length > EVENTS_KEPT) this.events.splice(0, this.events.length - EVENTS_KEPT);
    this.lastHeardMs = Date.now();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.refresh(), 60);
    this.tell();
  }
}
