// What follows the pointer: values at a time, a line through all charts, zooming. The page is complete without it.
"use strict";
(() => {
  const { end, charts } = JSON.parse(document.getElementById("data").textContent);
  const all = document.querySelector(".charts");
  const plots = [...all.querySelectorAll(".plot")];
  const svgs = plots.map((plot) => plot.querySelector("svg"));
  const now = document.getElementById("now");
  const ticks = document.getElementById("ticks");
  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1500, 3000, 6000, 12000, 30000, 60000, 180000, 360000, 2160000];
  const LEAST = 10;
  let from = 0;
  let to = end;

  for (const plot of plots) {
    plot.insertAdjacentHTML("beforeend", '<div class="cross"></div><div class="pick"></div>');
  }
  const lines = [...all.querySelectorAll(".cross")];
  const picks = [...all.querySelectorAll(".pick")];

  const label = (unit, step) =>
    step >= 6000 ? `${Math.round(unit / 6000)} min` : `${(unit / 100).toFixed(step >= 100 ? 0 : step >= 10 ? 1 : 2)} s`;

  function show(newFrom, newTo) {
    const width = Math.min(end, Math.max(LEAST, newTo - newFrom));
    from = Math.max(0, Math.min(end - width, newFrom));
    to = from + width;
    for (const svg of svgs) {
      const high = svg.viewBox.baseVal.height;
      svg.setAttribute("viewBox", `${from} 0 ${width} ${high}`);
    }
    const step = STEPS.find((one) => one >= width / 7) ?? STEPS.at(-1);
    ticks.textContent = "";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const tick = document.createElement("span");
      tick.style.left = `${(100 * (at - from)) / width}%`;
      tick.textContent = label(at, step);
      ticks.append(tick);
    }
    all.classList.toggle("zoomed", width < end);
  }

  const share = (event) => {
    const box = plots[0].getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };

  function valueAt([times, values, unit], at) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= at) low = middle + 1;
      else high = middle;
    }
    const value = low ? values[low - 1] : null;
    if (value === null) return "";
    if (unit === " ms") return `${(value / 1e6).toPrecision(3)} ms`;
    return typeof value === "number" ? value.toLocaleString("en").replaceAll(",", "\u202f") + unit : value;
  }

  function point(event) {
    const part = share(event);
    const at = from + part * (to - from);
    all.classList.add("pointed");
    for (const line of lines) line.style.left = `${100 * part}%`;
    now.textContent = `${(at / 100).toFixed(2)} s`;
    for (const element of all.querySelectorAll("[data-value]")) {
      const [id, number] = element.dataset.value.split(":");
      const series = charts[id]?.[number];
      if (series) element.textContent = valueAt(series, at).split(":")[0];
    }
  }

  function leave() {
    all.classList.remove("pointed");
    now.textContent = "";
    for (const element of all.querySelectorAll("[data-value]")) element.textContent = "";
  }

  let picked = null;
  for (const plot of plots) {
    plot.addEventListener("pointermove", (event) => {
      point(event);
      if (picked === null) return;
      const [left, right] = [Math.min(picked, share(event)), Math.max(picked, share(event))];
      all.classList.add("picking");
      for (const pick of picks) {
        pick.style.left = `${100 * left}%`;
        pick.style.width = `${100 * (right - left)}%`;
      }
    });
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch" && event.button === 0) picked = share(event);
    });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("dblclick", () => show(0, end));
    plot.addEventListener("dragstart", (event) => event.preventDefault());
  }
  let suppressClick = false;
  document.addEventListener("pointerup", (event) => {
    if (picked === null) return;
    const [left, right] = [Math.min(picked, share(event)), Math.max(picked, share(event))];
    picked = null;
    all.classList.remove("picking");
    if (right - left > 0.01) {
      suppressClick = true;
      setTimeout(() => (suppressClick = false), 0);
      show(from + left * (to - from), from + right * (to - from));
    }
  });
  all.addEventListener("click", (event) => suppressClick && event.preventDefault(), true);

  const tools = document.getElementById("tools");
  const middle = () => (from + to) / 2;
  const zoom = (factor) => show(middle() - ((to - from) * factor) / 2, middle() + ((to - from) * factor) / 2);
  for (const [name, title, act] of [
    ["−", "Zoom out", () => zoom(2)],
    ["+", "Zoom in", () => zoom(0.5)],
    ["←", "Earlier", () => show(from - (to - from) / 3, to - (to - from) / 3)],
    ["→", "Later", () => show(from + (to - from) / 3, to + (to - from) / 3)],
    ["All", "Show the whole run", () => show(0, end)],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.title = title;
    button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    tools.append(button);
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-zoom]");
    if (target) show(...target.dataset.zoom.split(",").map(Number));
  });
  // What a link within the page leads to is not left folded.
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();

  const light = (event, isLit) => {
    const number = event.target.closest?.("[data-fault]")?.dataset.fault;
    if (!number) return;
    for (const one of document.querySelectorAll(`[data-fault="${number}"]`)) one.classList.toggle("lit", isLit);
  };
  document.addEventListener("pointerover", (event) => light(event, true));
  document.addEventListener("pointerout", (event) => light(event, false));
  show(0, end);
})();
