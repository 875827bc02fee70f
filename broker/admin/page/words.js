// Numbers and times as people read them.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) { count /= 1024; unit += 1; }
  return `${count >= 100 || unit === 0 ? Math.round(count) : count.toFixed(1)} ${UNITS[unit]}`;
}

export function number(count) {
  if (count === null || count === undefined) return "–";
  return count.toLocaleString("en-US", { maximumFractionDigits: count < 10 && count % 1 ? 1 : 0 });
}

export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? "–" : `${number(perSecond)}/s`;
}

export function age(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// What a shell takes as one word.
export function shell(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
}
