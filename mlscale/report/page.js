"use strict";
// The page to move: reads what stands in #data, builds #page, and shows one setting of one run.
// No name is ever markup: all text is put in by `el`, as text.

const RUNS = JSON.parse(document.getElementById("data").textContent).runs;
const MAX_PERCENT = 60; // of the slider of the limit; beyond it there is no limit
const AXES = { e: "engine clock", m: "memory clock", c: "CUs" };
const QUANTITIES = ["time", "power", "energy"];
const MARKS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const MEANINGS = {
  "memory-bound": "a lower engine clock costs it little time",
  "core-bound": "its time goes with the engine clock",
  "balanced": "both clocks matter to it",
  "latency-bound": "it reaches neither peak",
  "other GPUs": "it exchanges data between GPUs",
};

// Elements.

const shown = (text) => String(text).replace(MARKS,
  (mark) => "\\u" + mark.codePointAt(0).toString(16).padStart(4, "0"));

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value == null || (value === false && !name.startsWith("aria"))) continue;
    if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : shown(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false)
    .map((child) => (child instanceof Node ? child : shown(child))));
  return node;
}

const el = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Numbers, as a reader wants them.

const UNITS = {
  time: [[1e-3, "µs"], [1, "ms"], [1e3, "s"]],
  power: [[1e-3, "mW"], [1, "W"], [1e3, "kW"]],
  energy: [[1e-3, "µJ"], [1, "mJ"], [1e3, "J"], [1e6, "kJ"], [1e9, "MJ"]],
};
const digits = (value, count = 4) => value.toLocaleString("en",
  { maximumSignificantDigits: count, useGrouping: value >= 9999.5 }).replace(/,/g, "\u2009");
const change = (percent) => {
  if (percent == null || !isFinite(percent)) return "not known";
  const text = Math.abs(percent).toFixed(Math.abs(percent) < 99.95 ? 1 : 0);
  return (+text === 0 ? "±" : percent < 0 ? "−" : "+") + text + " %";
};
const unitOf = (quantity, value) =>
  UNITS[quantity].filter(([size]) => value >= size * 0.9995).pop() || UNITS[quantity][0];
function inUnits(quantity, value) {
  const [size, unit] = unitOf(quantity, value);
  return `${digits(value / size)} ${unit}`;
}
const share = (percent) => (percent == null ? "–" : percent < 0.05 ? "< 0.1" : percent.toFixed(1));

// What the file carries: see mlscale/report/surfaces.py.

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function unpacked(differences) {
  let last = 0, slope = 0;
  return differences.map((difference) => {
    if (difference == null) return NaN;
    slope += difference;
    last += slope;
    return Math.exp(last * 1e-4);
  });
}

function subjectOf(row) {
  const subject = { time: null, power: null, energy: null };
  for (const name of QUANTITIES.filter((one) => row[one])) {
    const [base, packed, ...ends] = row[name];
    const value = name === "energy"
      ? subject.time.value.map((factor, i) => factor * subject.power.value[i]) : unpacked(packed);
    const [low, high] = ends.map((end) => (end ? unpacked(end) : [...value]));
    subject[name] = { base, value, low, high };
  }
  return subject;
}

async function prepare(run) {
  const { document: found } = run;
  run.grid = run.grid && await inflated(run.grid);
  run.kernels = found.kernels.map((kernel, k) =>
    ({ ...kernel, k, ...(run.grid ? run.grid.kernels[k] : {}) }));
  if (!run.grid) return;
  const { c, e, m } = run.grid.axes;
  run.size = c.length * e.length * m.length;
  run.at = (place) => (place.c * m.length + place.m) * e.length + place.e;
  run.place = (i) => ({
    e: i % e.length, m: Math.floor(i / e.length) % m.length, c: Math.floor(i / e.length / m.length),
  });
  const [bc, be, bm] = run.grid.base;
  run.base = { c: bc, e: be, m: bm };
  run.whole = subjectOf(run.grid.run);
  run.kernels.forEach((kernel) => { kernel.subject = subjectOf(kernel); });
  run.moving = ["e", "c", "m"].filter((axis) => run.grid.axes[axis].length > 1);
  for (const choice of [...found.front, ...(found.menu || []), found.expected, found.answer]) {
    exact(run, run.whole, choice, choice);
  }
  run.kernels.forEach((kernel) => exact(run, kernel.subject, kernel.at_answer, found.answer));
}

// Where the document has a number, it is shown, not the surface's 4 digits.
function exact(run, subject, costs, choice) {
  const place = costs && choice && placeOn(run.grid.axes, choice.at);
  if (!place) return;
  for (const [name, key] of [["time", "time_ms"], ["power", "power_w"], ["energy", "energy_mj"]]) {
    if (!subject[name] || !costs[key]) continue;
    ["value", "low", "high"].forEach((side, k) => {
      if (costs[key][k] == null || !subject[name][side]) return;
      subject[name][side][run.at(place)] = costs[key][k] / subject[name].base;
    });
  }
}

function placeOn(axes, at) {
  const place = {};
  for (const [name, key] of [["c", "cu_count"], ["e", "engine_mhz"], ["m", "memory_mhz"]]) {
    place[name] = axes[name].indexOf(at[key]);
    if (place[name] < 0) return null;
  }
  return place;
}

// What is chosen.

const S = { run: 0, both: false, c: 0, e: 0, m: 0, max: null, kernel: -1, sort: "share", filter: "",
  heat: "time", dragging: false };
const run = () => RUNS[S.run];
const axis = (name) => run().grid.axes[name];
const here = () => run().at(S);
const subject = () => (S.kernel < 0 ? run().whole : run().kernels[S.kernel].subject);
const percentAt = (quantity, i, side = "value") =>
  (quantity && quantity[side] ? 100 * (quantity[side][i] - 1) : null);
const mayBeSet = (i) => run().grid.state[i] === "0";
const sooner = (max) => (max == null ? Infinity : max + 1e-6);

const placeOf = (at) => placeOn(run().grid.axes, at);

function keyOf(objective, i) {
  const { time, power } = run().whole;
  if (objective === "clock") return axis("e")[run().place(i).e];
  if (objective === "time") return time.value[i];
  if (!power) return Infinity;
  const exponent = { power: 0, energy: 1, edp: 2, ed2p: 3 }[objective];
  return power.value[i] * time.value[i] ** exponent;
}

// As `mlscale advise` searches: what surely keeps the limit, else what is expected to.
function best(objective, max) {
  const { time } = run().whole, base = run().base;
  let settings = [...Array(run().size).keys()].filter(mayBeSet);
  if (objective === "clock") {
    settings = settings.filter((i) => run().place(i).c === base.c && run().place(i).m === base.m);
  }
  const keeps = (side) => settings.filter((i) => percentAt(time, i, side) <= sooner(max));
  const sure = keeps(time.high ? "high" : "value");
  let found = null, least = [Infinity, Infinity];
  for (const i of sure.length ? sure : keeps("value")) {
    const keys = [keyOf(objective, i), time.value[i]];
    const isTie = Math.abs(keys[0] / least[0] - 1) < 1e-9;
    if (isTie ? keys[1] < least[1] : keys[0] < least[0]) [found, least] = [i, keys];
  }
  return found == null ? base : run().place(found);
}

function advised(max) {
  const { document: found, limit } = run();
  if (max === limit && found.answer) return placeOf(found.answer.at) || run().base;
  const offer = (found.menu || []).find((one) => one.max_slowdown_percent === max);
  return (offer && placeOf(offer.at)) || best(found.objective, max);
}

function start(number) {
  S.run = number;
  S.kernel = -1;
  S.filter = "";
  S.max = run().limit;
  if (run().grid) Object.assign(S, advised(S.max));
}

function readHash() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = +words.get("run");
  start(RUNS[number] ? number : 0);
  S.both = words.get("run") === "both" && RUNS.length > 1;
  if (!run().grid) return;
  for (const name of "cem") {
    const place = words.has(name) ? axis(name).indexOf(+words.get(name)) : -1;
    if (place >= 0) S[name] = place;
  }
  if (words.has("max")) S.max = words.get("max") === "any" ? null : clamp(+words.get("max") || 0);
  const kernel = +words.get("k") - 1;
  if (run().kernels[kernel]) S.kernel = kernel;
}

const clamp = (percent) => Math.min(MAX_PERCENT, Math.max(0, percent));

function writeHash() {
  const words = new URLSearchParams();
  if (RUNS.length > 1) words.set("run", S.both ? "both" : S.run);
  if (run().grid) for (const name of run().moving) words.set(name, axis(name)[S[name]]);
  if (run().grid) words.set("max", S.max == null ? "any" : +S.max.toFixed(2));
  if (S.kernel >= 0) words.set("k", S.kernel + 1);
  try {
    history.replaceState(null, "", `#${words}`);
  } catch {
    // Some viewers of files allow no history; the page works without.
  }
}

// Moving: every change asks for one frame, however many come before it.

let isAsked = false;
function go(change_) {
  Object.assign(S, change_);
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    update();
  });
}
const step = (name, by) => go({ [name]: Math.min(axis(name).length - 1, Math.max(0, S[name] + by)) });
const selectKernel = (k) => go({ kernel: S.kernel === k ? -1 : k });

function keysMove(event, name, other) {
  const by = { ArrowRight: 1, ArrowUp: other ? 0 : 1, ArrowLeft: -1, ArrowDown: other ? 0 : -1,
    Home: -1e9, End: 1e9, PageUp: 5, PageDown: -5 }[event.key];
  const upward = other && { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!by && !upward) return;
  event.preventDefault();
  if (by) step(name, by);
  else step(other, upward);
}

// The tip beside the pointer, or beside what has the focus.

const tip = el("div", { id: "tip", role: "status" });
function tell(lines, x, y) {
  tip.replaceChildren(...lines.filter(Boolean).map((line) => el("div", {}, line)));
  tip.style.display = lines.length ? "block" : "none";
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - tip.offsetHeight - 8))}px`;
}
const hush = () => tell([], 0, 0);
const settingWords = (place) => run().moving.map((name) => `${digits(axis(name)[place[name]], 6)} ${
  { e: "MHz", m: "MHz memory", c: run().grid.cu_axis }[name]}`).join(", ") || "the one setting";
function effectLines(i) {
  const { time, energy } = subject();
  return [
    settingWords(run().place(i)),
    time && `${inUnits("time", time.base * time.value[i])} (${change(percentAt(time, i))})`,
    energy && `${inUnits("energy", energy.base * energy.value[i])} (${change(percentAt(energy, i))})`,
    !mayBeSet(i) && `not offered: ${run().grid.reasons[run().grid.state[i]]}`,
  ];
}

// Charts. Each has what is drawn once (`build`) and what a move changes (`move`); it is built anew
// when its key or its width changes.

let sizes = 0; // counts how often the window changed its size
function chart(host, keyOfChart, build) {
  let key = null, move = null;
  return () => {
    const now = JSON.stringify([sizes, keyOfChart()]);
    if (now !== key) {
      key = now;
      move = build(host, Math.round(host.clientWidth) || 300);
    }
    if (move) move();
  };
}

function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / size - 1e-9); k * size <= high + size * 1e-9; k++) {
    found.push(+(k * size).toPrecision(10));
  }
  return found;
}

function frame(host, width, height, xs, ys, words) {
  const left = 56, right = 14, top = words.y ? 30 : 12, bottom = words.x ? 44 : 26;
  const x = (v) => left + (v - xs[0]) / (xs[1] - xs[0] || 1) * (width - left - right);
  const y = (v) => height - bottom - (v - ys[0]) / (ys[1] - ys[0] || 1) * (height - top - bottom);
  const root = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": words.label });
  const format = words.format || ((v) => digits(v, 5));
  for (const v of ticks(...ys, height < 200 ? 4 : 5)) {
    root.append(draw("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "rule" }),
      draw("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, format(v)));
  }
  for (const v of ticks(...xs, Math.max(3, Math.min(6, Math.floor(width / 75))))) {
    root.append(draw("text", { x: x(v), y: height - bottom + 18, "text-anchor": "middle" },
      digits(v, 5)));
  }
  if (words.y) root.append(draw("text", { x: 0, y: 12, class: "axis" }, words.y));
  if (words.x) {
    root.append(draw("text", { x: width - right, y: height - 6, "text-anchor": "end",
      class: "axis" }, words.x));
  }
  host.replaceChildren(root);
  return { root, x, y, left, right: width - right, top, bottom: height - bottom };
}

const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
const percents = (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${digits(Math.abs(v), 4)} %`;

// Time, power or energy over one axis, as a change against the base.
function curve(host, name, axisName) {
  const others = ["c", "e", "m"].filter((one) => one !== axisName);
  const key = () => [S.run, S.kernel, name === "time" && S.max, ...others.map((one) => S[one])];
  return chart(host, key, (_, width) => {
    const quantity = subject()[name], steps = axis(axisName);
    if (!quantity) return host.replaceChildren();
    const places = steps.map((_, k) => run().at({ ...S, [axisName]: k }));
    const of = (side) => places.map((i) => percentAt(quantity, i, side));
    const values = of("value"), lows = of("low"), highs = of("high");
    const known = values.filter(isFinite);
    let low = Math.min(0, ...known), high = Math.max(0, ...known);
    const span = Math.max(high - low, 5);
    if (quantity.low) {
      low = Math.max(Math.min(low, ...lows.filter(isFinite)), low - span);
      high = Math.min(Math.max(high, ...highs.filter(isFinite)), high + span);
    }
    const isLimited = name === "time" && S.max != null;
    if (isLimited) high = Math.max(high, Math.min(S.max * 1.3, high + span));
    const pad = (high - low) * 0.06;
    const view = frame(host, width, 190, [steps[0], steps[steps.length - 1]],
      [low - pad, high + pad], { format: percents, label: `change of ${name} over ${
        axisName === "c" ? run().grid.cu_axis : AXES[axisName]}, in percent`,
      x: axisName === "c" ? run().grid.cu_axis : "MHz" });
    const at = (k, percent) => [view.x(steps[k]),
      view.y(Math.min(high + pad, Math.max(low - pad, percent)))];
    const drawn = values.map((_, k) => k).filter((k) => isFinite(values[k]));
    if (quantity.low) {
      const up = drawn.map((k) => at(k, highs[k])), down = drawn.map((k) => at(k, lows[k]));
      view.root.append(draw("path", { d: `${path(up.concat(down.reverse()))}Z`, class: "band" }));
    }
    view.root.append(
      draw("line", { x1: view.left, x2: view.right, y1: view.y(0), y2: view.y(0), class: "zero" }));
    if (isLimited) {
      const y = at(0, S.max)[1];
      view.root.append(
        draw("line", { x1: view.left, x2: view.right, y1: y, y2: y, class: "limit" }),
        draw("text", { x: view.left + 6, y: y - 6, class: "over" },
          `limit ${digits(S.max)} %`));
    }
    view.root.append(draw("path", { d: path(drawn.map((k) => at(k, values[k]))), class: "line" }));
    for (const dot of measuredDots(name, axisName)) {
      view.root.append(draw("circle", { cx: view.x(dot.step), cy: view.y(Math.min(high + pad,
        Math.max(low - pad, dot.percent))), r: 5, class: "measured" },
      draw("title", {}, `measured: ${change(dot.percent)}`)));
    }
    return knob(view, quantity, steps, axisName, name, at);
  });
}

function knob(view, quantity, steps, axisName, name, at) {
  const line = draw("line", { y1: view.top, y2: view.bottom, class: "cursor" });
  const dot = draw("circle", { r: 7, class: "knob" });
  if (name === "time") {
    filled(dot, { tabindex: 0, role: "slider", "aria-label": AXES[axisName],
      "aria-valuemin": steps[0], "aria-valuemax": steps[steps.length - 1],
      onkeydown: (event) => keysMove(event, axisName) }, []);
  }
  view.root.append(line, dot);
  view.root.classList.add("drag");
  const drag = (event) => {
    const box = view.root.getBoundingClientRect();
    const share_ = (event.clientX - box.left - view.left) / (view.right - view.left);
    const wanted = steps[0] + share_ * (steps[steps.length - 1] - steps[0]);
    const far = (k) => Math.abs(steps[k] - wanted);
    go({ [axisName]: steps.reduce((found, _, k) => (far(k) < far(found) ? k : found), 0) });
  };
  view.root.onpointerdown = (event) => {
    view.root.setPointerCapture(event.pointerId);
    S.dragging = true;
    drag(event);
    view.root.onpointermove = drag;
  };
  view.root.onpointerup = view.root.onpointercancel = () => {
    view.root.onpointermove = null;
    go({ dragging: false });
  };
  return () => {
    const [x, y] = at(S[axisName], percentAt(quantity, here()) || 0);
    filled(line, { x1: x, x2: x }, []);
    filled(dot, { cx: x, cy: y, "aria-valuenow": steps[S[axisName]],
      "aria-valuetext": `${settingWords(S)}: ${change(percentAt(quantity, here()))}` }, []);
  };
}

// What was measured beside the base, of the whole run, where the other axes are as chosen.
function measuredDots(name, axisName) {
  if (S.kernel >= 0) return [];
  const keys = { c: "cu_count", e: "engine_mhz", m: "memory_mhz" };
  const dots = run().document.measured.map((one) => ({ at: one.at, percent:
    (one[{ time: "slowdown_percent", power: "power_percent", energy: "energy_percent" }[name]]
      || [null])[0] }));
  for (const one of run().measured) {
    const value = one.measured[{ time: "time_ms", power: "power_w", energy: "energy_mj" }[name]];
    const isWhole = one.share_percent > 99.9 || name === "power";
    const base = run().whole[name] && run().whole[name].base;
    dots.push({ at: one.at, percent: value && base && isWhole ? 100 * (value / base - 1) : null });
  }
  return dots.filter((dot) => dot.percent != null && Object.keys(keys).every((other) =>
    other === axisName || dot.at[keys[other]] === axis(other)[S[other]]))
    .map((dot) => ({ ...dot, step: dot.at[keys[axisName]] }))
    .filter((dot) => dot.step >= axis(axisName)[0] && dot.step <= axis(axisName).at(-1));
}

// Time against energy: all settings, the front, and the limit.
function pareto(host) {
  return chart(host, () => [S.run, S.kernel, S.max], (_, width) => {
    const { time, energy } = subject();
    if (!energy) return host.replaceChildren();
    const all = [...Array(run().size).keys()].filter((i) => isFinite(energy.value[i]));
    const front = frontOf(all.filter(mayBeSet), time, energy);
    const [ms, msUnit] = unitOf("time", time.base), [mj, mjUnit] = unitOf("energy", energy.base);
    const slowest = Math.max(...front.map((i) => time.value[i]), 1.1);
    const worst = Math.max(...front.map((i) => energy.value[i]), 1.02);
    const least = Math.min(...front.map((i) => energy.value[i]), 1);
    const quickest = Math.min(...front.map((i) => time.value[i]), 1);
    const wide = (slowest - quickest) * 0.08, tall = (worst - least) * 0.12;
    const view = frame(host, width, 300,
      [(quickest - wide) * time.base / ms, (slowest + 3 * wide) * time.base / ms],
      [(least - tall) * energy.base / mj, (worst + tall) * energy.base / mj],
      { x: `time [${msUnit}]`, y: `energy [${mjUnit}]`, label: `energy [${mjUnit}] against time [${msUnit}]` });
    const at = (i) => [view.x(time.value[i] * time.base / ms),
      view.y(energy.value[i] * energy.base / mj)];
    if (S.max != null) {
      const x = Math.max(view.left, view.x(time.base / ms * (1 + S.max / 100)));
      if (x < view.right) {
        view.root.append(draw("rect", { x, y: view.top, width: view.right - x,
          height: view.bottom - view.top, class: "forbidden" }),
        draw("line", { x1: x, x2: x, y1: view.top, y2: view.bottom, class: "limit" }));
      }
    }
    const isInside = ([x, y]) => x >= view.left - 1 && x <= view.right + 1 && y >= view.top - 1
      && y <= view.bottom + 1;
    const onFront = new Set(front), dots = all.filter((i) => isInside(at(i)));
    const others = dots.filter((i) => !onFront.has(i)).map(at);
    if (others.length) {
      view.root.append(draw("path", { class: "others",
        d: others.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("") }));
    }
    view.root.append(draw("path", { d: path(front.map(at)), class: "front" }));
    for (const i of front) {
      const [cx, cy] = at(i);
      view.root.append(draw("circle", { cx, cy, r: 3.5, class: "dot" }));
    }
    const base = run().at(run().base), [bx, by] = at(base);
    view.root.append(draw("circle", { cx: bx, cy: by, r: 6, class: "base" }),
      draw("text", { x: bx + 11, y: by + 4, class: "axis" }, "base"));
    const now = draw("circle", { r: 8, class: "knob" });
    view.root.append(now);
    const nearest = (event) => {
      const box = view.root.getBoundingClientRect();
      const far = (i) => Math.hypot(at(i)[0] - event.clientX + box.left,
        at(i)[1] - event.clientY + box.top);
      const found = dots.reduce((one, i) => (far(i) < far(one) ? i : one), dots[0]);
      return far(found) < 40 ? found : null;
    };
    filled(view.root, { tabindex: 0, class: "click",
      onpointermove: (event) => {
        const i = nearest(event);
        tell(i == null ? [] : effectLines(i), event.clientX, event.clientY);
      },
      onpointerleave: hush,
      onclick: (event) => {
        const i = nearest(event);
        if (i != null) go(run().place(i));
      },
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        const far = (i) => Math.abs(time.value[i] - time.value[here()]);
        const k = front.reduce((one, i, at_) => (far(i) < far(front[one]) ? at_ : one), 0);
        go(run().place(front[Math.min(front.length - 1, Math.max(0, k + by))]));
      } }, []);
    return () => {
      const [cx, cy] = at(here());
      filled(now, { cx, cy }, []);
      now.style.display = isInside([cx, cy]) ? "" : "none";
    };
  });
}

function frontOf(settings, time, energy) {
  const inOrder = settings.sort((i, j) => time.value[i] - time.value[j]
    || energy.value[i] - energy.value[j]);
  let least = Infinity;
  return inOrder.filter((i) => {
    if (energy.value[i] >= least - 1e-9) return false;
    least = energy.value[i];
    return true;
  });
}

// What bounds each kernel: shares of the peaks at the base, a disc as large as its share of time.
function bounds(host) {
  return chart(host, () => [S.run], (_, width) => {
    const kernels = run().kernels.filter((kernel) => kernel.shares);
    const view = frame(host, width, 300, [0, 100], [0, 100],
      { x: "busiest unit of the core [% of peak]", y: "DRAM [% of peak]",
        label: "what bounds each kernel" });
    view.root.append(
      draw("path", { class: "bound", d: path([[0, 60], [60, 60], [60, 0]]
        .map(([x, y]) => [view.x(x), view.y(y)])) }));
    const discs = kernels.map((kernel) => {
      const [dram, core] = kernel.shares;
      const lines = () => [`${kernel.number}  ${kernel.kernel}`,
        `${share(kernel.share_percent)} % of the run, ${kernel.bound}`,
        `${digits(dram, 3)} % of peak DRAM, ${digits(core, 3)} % of peak ${kernel.unit}`,
        MEANINGS[kernel.bound],
        `time ${change(percentAt(kernel.subject && kernel.subject.time, here()))} here`];
      return draw("circle", { cx: view.x(Math.min(100, core)), cy: view.y(Math.min(100, dram)),
        r: 4 + 2.6 * Math.sqrt(kernel.share_percent || 0), class: "disc", role: "button",
        tabindex: kernel === kernels[0] ? 0 : -1, "aria-label": kernel.kernel,
        onpointermove: (event) => tell(lines(), event.clientX, event.clientY),
        onpointerleave: hush, onblur: hush,
        onfocus: (event) => {
          const box = event.target.getBoundingClientRect();
          tell(lines(), box.right, box.bottom);
        },
        onclick: () => selectKernel(kernel.k),
        onkeydown: (event) => discKeys(event, discs, kernels.indexOf(kernel)) });
    });
    view.root.append(...[...discs].sort((a, b) => b.getAttribute("r") - a.getAttribute("r")),
      ...[[4, 88, "memory-bound", "start"], [4, 4, "latency-bound", "start"],
        [98, 4, "core-bound", "end"]].map(([x, y, word, anchor]) => draw("text",
        { x: view.x(x), y: view.y(y), "text-anchor": anchor, class: "zone" }, word)));
    view.root.setAttribute("role", "group");
    return () => discs.forEach((disc, k) =>
      disc.classList.toggle("on", kernels[k].k === S.kernel));
  });
}

function discKeys(event, discs, k) {
  if (event.key === "Enter" || event.key === " ") discs[k].onclick();
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (by || event.key === " ") event.preventDefault();
  if (!by) return;
  const next = discs[(k + by + discs.length) % discs.length];
  discs[k].setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}

// Time or energy over both clocks.
function heat(host) {
  return chart(host, () => [S.run, S.kernel, S.c, S.heat], (_, width) => {
    const quantity = subject()[S.heat] || subject().time, engines = axis("e"), memories = axis("m");
    const place = (e, m) => run().at({ ...S, e, m });
    const left = 62, over = 24, cell = (width - left - 8) / engines.length, tall = 30;
    const height = over + memories.length * tall + 46;
    const all = engines.flatMap((_e, e) => memories.map((_m, m) => quantity.value[place(e, m)]));
    const [low, high] = [Math.min(...all), Math.max(...all)].map(Math.log);
    const root = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0,
      role: "application", "aria-label": `${S.heat} over both clocks: arrow keys move`,
      class: "click", onpointerleave: hush, onkeydown: (event) => keysMove(event, "e", "m") });
    const top = (m) => over + (memories.length - 1 - m) * tall;
    memories.forEach((mhz, m) => {
      root.append(draw("text", { x: left - 8, y: top(m) + tall / 2 + 4, "text-anchor": "end" },
        digits(mhz, 6)));
      engines.forEach((_mhz, e) => {
        const i = place(e, m), depth = (Math.log(quantity.value[i]) - low) / (high - low || 1);
        root.append(draw("rect", { x: left + e * cell, y: top(m), width: cell - 1, height: tall - 1,
          rx: 2, class: mayBeSet(i) ? "cell" : "cell off",
          "fill-opacity": mayBeSet(i) ? (0.08 + 0.92 * depth).toFixed(3) : 0,
          onclick: () => go({ e, m }),
          onpointermove: (event) => tell(effectLines(i), event.clientX, event.clientY) }));
      });
    });
    const every = Math.ceil(engines.length * 56 / (width - left));
    engines.forEach((mhz, e) => {
      if (e % every) return;
      root.append(draw("text", { x: left + (e + 0.5) * cell, y: over + memories.length * tall + 16,
        "text-anchor": "middle" }, digits(mhz, 6)));
    });
    root.append(draw("text", { x: 0, y: 12 }, "memory clock [MHz]"),
      draw("text", { x: width - 8, y: height - 4, "text-anchor": "end" }, "engine clock [MHz]"));
    const now = draw("rect", { width: cell + 1, height: tall + 1, rx: 3, class: "now" });
    root.append(now);
    host.replaceChildren(root);
    return () => filled(now, { x: left + S.e * cell - 1, y: top(S.m) - 1 }, []);
  });
}

// Kernels at the chosen setting.
function kernelTable(host) {
  const filter = el("input", { type: "search", placeholder: "filter by name", "aria-label":
    "filter kernels by name", oninput: () => go({ filter: filter.value }) });
  const count = el("span", { class: "soft" }), body = el("tbody");
  const sortBy = (name, words, kind) => el("th", { class: kind, "data-sort": name },
    el("button", { onclick: () => go({ sort: name }) }, words));
  const heads = [sortBy("share", "% of run", "n"), sortBy("time", "time here", "n"),
    sortBy("energy", "energy here", "n wide")];
  const rows = run().kernels.map((kernel) => {
    const time = el("td", { class: "n" }), energy = el("td", { class: "n wide" });
    const bar = el("span", { class: "bar" });
    const name = el("button", { class: "name", title: kernel.kernel,
      onclick: () => selectKernel(kernel.k) }, kernel.short || kernel.kernel);
    const row = el("tr", {}, el("td", { class: "n soft wide" }, kernel.number), el("td", { class: "names" }, name),
      el("td", { class: "n" }, share(kernel.share_percent)),
      el("td", { class: "wide word" }, kernel.bound || ""), time, el("td", { class: "bars wide" }, bar),
      energy);
    return { kernel, row, name, time, energy, bar };
  });
  host.replaceChildren(el("div", { class: "title" }, el("h2", {}, "Kernels"), rows.length > 8 && filter, count),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { class: "wide" }), el("th", {},
      "kernel"), heads[0], el("th", { class: "wide" }, "bound"), heads[1],
    el("th", { class: "wide" }), heads[2])), body));
  let order = "", longest = 5;
  const percentsOf = ({ share_percent: part, subject: of = {} }, i) =>
    ({ share: part || 0, time: percentAt(of.time, i), energy: percentAt(of.energy, i) });
  const show = (one) => {
    const { time, energy } = one.percents, isOver = S.max != null && time > S.max + 1e-6;
    one.time.textContent = time == null ? "–" : change(time);
    one.energy.textContent = energy == null ? "–" : change(energy);
    one.bar.style.transform = `scaleX(${(Math.abs(time || 0) / longest).toFixed(3)})`;
    one.time.classList.toggle("over", isOver);
    one.bar.classList.toggle("red", isOver);
    one.row.classList.toggle("on", one.kernel.k === S.kernel);
    one.name.setAttribute("aria-pressed", one.kernel.k === S.kernel);
  };
  // Rows off the screen wait until they come onto it, so that many kernels move as few do.
  const seen = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    const one = rows.find(({ row }) => row === target);
    one.isSeen = isIntersecting;
    if (isIntersecting) show(one);
  }), { rootMargin: "200px" });
  rows.forEach(({ row }) => seen.observe(row));
  onbeforeprint = () => rows.forEach(show);
  return () => {
    const i = run().grid ? here() : null;
    for (const one of rows) one.percents = percentsOf(one.kernel, i);
    longest = Math.max(5, ...rows.map(({ percents: { time } }) => Math.abs(time || 0)));
    rows.filter(({ isSeen }) => isSeen !== false).forEach(show);
    heads.forEach((head) => head.setAttribute("aria-sort",
      head.dataset.sort === S.sort ? "descending" : "none"));
    if (S.dragging) return;
    if (filter.value !== S.filter) filter.value = S.filter;
    const wanted = rows.filter(({ kernel }) =>
      kernel.kernel.toLowerCase().includes(S.filter.toLowerCase()))
      .sort((a, b) => (b.percents[S.sort] ?? -Infinity) - (a.percents[S.sort] ?? -Infinity)
        || a.kernel.k - b.kernel.k);
    count.textContent = wanted.length < rows.length ? `${wanted.length} of ${rows.length}` : "";
    const now = wanted.map(({ kernel }) => kernel.k).join();
    if (now === order) return;
    order = now;
    body.replaceChildren(...wanted.map(({ row }) => row));
  };
}

// Power caps, as the document has them.
function capTable() {
  const { caps, answer } = run().document;
  const set = answer && answer.set.power_cap_w;
  const between = (values) => (values && values[1] != null
    ? `${change(values[1])} to ${change(values[2])}` : "");
  const known = caps.filter((cap) => cap.time_ms), unknown = caps.filter((cap) => !cap.time_ms);
  const rows = known.map((cap) => el("tr", { class: cap.cap_w === set && "on" },
    el("td", { class: "n" }, `${digits(cap.cap_w)} W`),
    el("td", { class: "n" }, cap.at && cap.at.engine_mhz ? `${digits(cap.at.engine_mhz)} MHz` : "–"),
    el("td", { class: "n" }, change(cap.slowdown_percent[0])),
    el("td", { class: "n wide soft" }, between(cap.slowdown_percent)),
    el("td", { class: "n" }, cap.energy_percent ? change(cap.energy_percent[0]) : "not known"),
    el("td", { class: "wide soft" }, cap.cap_w === set ? "the answer" : cap.flags.join("; "))));
  const rest = unknown.length ? el("p", { class: "soft" }, `${digits(unknown[0].cap_w)} to ${
    digits(unknown.at(-1).cap_w)} W: not known; ${unknown.at(-1).flags.at(-1) || ""}`) : null;
  return el("section", { class: "card" }, el("h2", {}, "Power caps"), rest, el("div",
    { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, ...["cap", "mean clock", "time"].map((word) => el("th",
      { class: "n" }, word)), el("th", { class: "n wide" }, "90 %"), el("th", { class: "n" },
      "energy"), el("th", { class: "wide" }))), el("tbody", {}, rows))));
}

// Numbers, sliders, buttons, and the command.

function sliders() {
  const made = run().moving.map((name) => {
    const value = el("output");
    const input = el("input", { type: "range", min: 0, max: axis(name).length - 1, step: 1,
      id: `slider-${name}`, "data-axis": name, oninput: () => go({ [name]: +input.value }) });
    const title = name === "c" ? run().grid.cu_axis : AXES[name];
    return { node: el("label", {}, title, value, input), move: () => {
      input.value = S[name];
      value.textContent = `${digits(axis(name)[S[name]], 6)}${name === "c" ? "" : " MHz"}`;
      input.setAttribute("aria-valuetext", value.textContent);
    } };
  });
  const value = el("output");
  const input = el("input", { type: "range", id: "slider-max", min: 0, max: MAX_PERCENT + 0.5,
    step: 0.5, oninput: () => {
      const max = +input.value > MAX_PERCENT ? null : +input.value;
      go({ max, ...advised(max) });
    } });
  made.push({ node: el("label", {}, "at most slower by", value, input), move: () => {
    input.value = S.max == null ? MAX_PERCENT + 0.5 : S.max;
    value.textContent = S.max == null ? "any" : `${digits(S.max, 3)} %`;
  } });
  return made;
}

function buttons() {
  const { answer, expected } = run().document;
  const to = (words, place, max = run().limit) =>
    el("button", { onclick: () => go({ ...place, max }) }, words);
  const at = (choice) => choice && placeOf(choice.at);
  return [
    to("base", run().base),
    at(answer) && to("advised", at(answer)),
    at(expected) && to("expected", at(expected)),
    run().whole.energy && to("least energy", best("energy", null), null),
  ];
}

function commandLine() {
  const code = el("code"), copy = el("button", { onclick: async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    copy.textContent = "copied";
    setTimeout(() => { copy.textContent = "copy"; }, 1200);
  } }, "copy");
  return { node: el("div", { class: "command" }, code, copy), move: () => {
    const words = commandsHere();
    code.textContent = words.join("\n");
    copy.hidden = words.every((line) => line.startsWith("#"));
  } };
}

function commandsHere() {
  const { commands, base, document: found } = run();
  if ("power_cap_w" in found.base) return (found.commands || { set: [] }).set;
  const moved = ["e", "m"].filter((name) => S[name] !== base[name]);
  if (!moved.length && S.c === base.c) return ["# nothing to set: this is the base"];
  const lines = moved.flatMap((name) => commands[{ e: "engine", m: "memory" }[name]]);
  if (!lines.length) return ["# no command is known that sets this"];
  return [...new Set(lines)].map((line) => line.replaceAll("{engine}", Math.round(axis("e")[S.e]))
    .replaceAll("{memory}", Math.round(commands.memory_mhz[S.m])));
}

function numbers(name, curveHost) {
  const big = el("b"), to = el("span"), ends = el("small");
  return { node: el("div", { class: "number", "data-quantity": name }, el("h3", {}, name), big, to,
    ends, curveHost), move: () => {
    const quantity = subject() && subject()[name], i = here();
    const isBound = run().document.run.is_bounded, percent = percentAt(quantity, i);
    const isOver = name === "time" && S.max != null && percent > S.max + 1e-6;
    if (!quantity || !isFinite(percent)) {
      big.textContent = "not known";
      to.textContent = ends.textContent = "";
      return;
    }
    big.textContent = inUnits(name, quantity.base * quantity.value[i]);
    to.textContent = i === run().at(run().base) ? "the base"
      : `${isBound && name === "time" && percent > 0 ? "at most " : ""}${change(percent)}`;
    to.className = isOver ? "over" : "";
    ends.textContent = quantity.low && i !== run().at(run().base) ? `${isBound ? "bounds" : "90 %"}: ${
      change(percentAt(quantity, i, "low"))} to ${change(percentAt(quantity, i, "high"))}` : "";
  } };
}

function sentences() {
  const lines = [], i = here(), { time, energy, power } = subject();
  const isBase = i === run().at(run().base);
  if (!mayBeSet(i)) lines.push(`Not offered: ${run().grid.reasons[run().grid.state[i]]}.`);
  const latest = percentAt(time, i, time.high ? "high" : "value");
  if (S.kernel < 0 && S.max != null && percentAt(time, i) <= S.max && latest > sooner(S.max)) {
    lines.push(`Expected to keep the limit of ${digits(S.max, 3)} %, not surely.`);
  }
  if (!power) lines.push("Power and energy are not known.");
  else if (!energy) lines.push("Energy is not known.");
  else if (!isBase && energy.high) {
    lines.push(percentAt(energy, i, "high") < 0 ? "Energy falls within the whole interval."
      : percentAt(energy, i, "low") > 0 ? "Energy rises within the whole interval."
        : "Energy may not fall: 0 lies within the interval.");
  }
  return lines.concat(run().measured.map(measuredSentence));
}

function measuredSentence({ at, measured, predicted, share_percent: percent }) {
  const parts = [["time", "time_ms"], ["power", "power_w"], ["energy", "energy_mj"]].map(
    ([name, key]) => {
      if (measured[key] == null) return null;
      const said = `${name} ${inUnits(name, measured[key])}`;
      if (!predicted[key]) return `${said}, nothing predicted`;
      const [value, low, high] = predicted[key];
      const isIn = low == null ? "" : measured[key] >= low && measured[key] <= high
        ? ", within the interval" : ", outside the interval";
      return `${said}, predicted ${inUnits(name, value)}${isIn}`;
    }).filter(Boolean);
  const part = percent > 0.1 && percent < 99.9 ? ` (kernels of ${digits(percent, 3)} % of the time)`
    : "";
  return `Measured at ${digits(at.engine_mhz, 6)} MHz${part}: ${parts.join("; ")}.`;
}

// Two runs side by side.
function bothRuns() {
  const rows = [["", ...RUNS.map((one) => one.name)]];
  const add = (words, value) => rows.push([words, ...RUNS.map((one) => value(one.document))]);
  const settled = (found) => (found.answer && Object.values(found.answer.set).length
    ? Object.entries(found.answer.set).map(([, value]) => digits(value, 6)).join(", ") : "–");
  add("time at the base", (found) => inUnits("time", found.run.time_ms));
  add("energy at the base", (found) => (found.run.energy_mj
    ? inUnits("energy", found.run.energy_mj) : "not known"));
  add("set", settled);
  add("time there", (found) => change(found.answer && found.answer.slowdown_percent[0]));
  add("energy there", (found) => change(found.answer && found.answer.energy_percent
    && found.answer.energy_percent[0]));
  add("sure", (found) => found.sure);
  const times = RUNS.map((one) => new Map(one.document.kernels.map((kernel) =>
    [kernel.kernel, (kernel.share_percent || 0) / 100 * one.document.run.time_ms])));
  const names = [...new Set(times.flatMap((of) => [...of.keys()]))].sort((a, b) =>
    Math.max(...times.map((of) => of.get(b) || 0)) - Math.max(...times.map((of) => of.get(a) || 0)));
  const ms = (value) => (value == null ? "–" : inUnits("time", value));
  const kernels = names.map((name) => {
    const [one, other] = times.map((of) => of.get(name));
    return [name, ms(one), ms(other), one && other ? change(100 * (other / one - 1)) : "–"];
  });
  const table = (lines, head) => el("table", {}, el("thead", {}, el("tr", {}, head.map((word, k) =>
    el("th", { class: k && "n" }, word)))), el("tbody", {}, lines.map((cells) => el("tr", {},
    cells.map((cell, k) => el("td", { class: k ? "n" : "names" }, cell))))));
  return [el("section", { class: "card" }, el("h2", {}, "Both runs"), table(rows.slice(1), rows[0])),
    el("section", { class: "card" }, el("h2", {}, "Kernels at the base"),
      table(kernels, ["kernel", ...RUNS.map((one) => one.name), "second to first"]))];
}

// The page of a run.

let moves = [];
const hostOf = (kind) => el("div", { class: `chart ${kind}` });
const page = document.getElementById("page");

function explorer() {
  const controls = sliders(), command = commandLine(), who = el("p", { class: "who" });
  const said = el("div", { class: "said", role: "status" }), main = run().moving[0];
  const columns = QUANTITIES.filter((name) => name === "time" || run().whole[name]).map((name) => {
    const host = hostOf("curve"), number = numbers(name, host);
    return { ...number, redraw: main ? curve(host, name, main) : () => {} };
  });
  moves.push(...controls.map((one) => one.move), command.move,
    ...columns.flatMap((one) => [one.move, one.redraw]), () => {
      const kernel = run().kernels[S.kernel];
      who.replaceChildren(...(kernel ? [el("strong", {}, `${kernel.number}  ${kernel.kernel}`),
        el("button", { onclick: () => go({ kernel: -1 }) }, "whole run"),
        placeOf(kernel.best.at) && el("button", { onclick: () => go(placeOf(kernel.best.at)) },
          "its best")].filter(Boolean) : ["Whole run"]));
      said.replaceChildren(...sentences().map((line) => el("p", {}, line)));
    });
  return el("section", { class: "card" }, el("div", { class: "controls" }, controls.map((one) =>
    one.node)), el("div", { class: "bar-of-buttons" }, buttons(), command.node), who,
  el("div", { class: "numbers" }, columns.map((one) => one.node)), said);
}

function cards() {
  const made = [], card = (title, host, redraw, ...more) => {
    moves.push(redraw);
    made.push(el("section", { class: "card" }, el("div", { class: "title" }, el("h2", {}, title),
      more), host));
  };
  const [left, right, map, line] = ["pareto", "bounds", "heat", "curve"].map(hostOf);
  if (run().whole.energy && run().moving.length) card("Time against energy", left, pareto(left));
  if (run().kernels.some((kernel) => kernel.shares)) {
    card("What bounds each kernel", right, bounds(right));
  }
  if (run().moving.includes("e") && run().moving.includes("m")) {
    const what = run().whole.energy ? ["time", "energy"].map((name) => el("button",
      { "aria-pressed": S.heat === name, onclick: (event) => {
        for (const one of event.target.parentNode.querySelectorAll("button")) {
          one.setAttribute("aria-pressed", one === event.target);
        }
        go({ heat: name });
      } }, name)) : [];
    const isKept = /[^0]/.test(run().grid.state) ? "; an outline is not offered" : "";
    card("Both clocks", map, heat(map), what, el("span", { class: "soft" },
      `darker is more${isKept}`));
  }
  if (run().moving.includes("c") && run().moving[0] !== "c") {
    card(`Time over ${run().grid.cu_axis}`, line, curve(line, "time", "c"));
  }
  return el("div", { class: "cards" }, made);
}

function tabs() {
  if (RUNS.length < 2) return null;
  const tab = (words, isOn, change_) => el("button", { role: "tab", "aria-selected": isOn,
    onclick: () => {
      change_();
      build();
    } }, words);
  return el("div", { class: "tabs", role: "tablist" }, RUNS.map((one, k) =>
    tab(one.name, !S.both && S.run === k, () => {
      S.both = false;
      start(k);
    })), tab("side by side", S.both, () => { S.both = true; }));
}

function themeButton() {
  const root = document.documentElement;
  return el("button", { class: "theme", onclick: () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  } }, "light / dark");
}

function build() {
  moves = [];
  hush();
  RUNS.forEach((_, k) => { document.getElementById(`head-${k}`).hidden = S.both || k !== S.run; });
  const parts = [tabs(), themeButton()];
  if (S.both) parts.push(...bothRuns());
  else {
    if (run().grid) parts.push(explorer(), cards());
    if (run().document.caps) parts.push(capTable());
    if (run().kernels.length) {
      const host = el("section", { class: "card kernels" });
      moves.push(kernelTable(host));
      parts.push(host);
    }
  }
  page.replaceChildren(...parts.filter(Boolean));
  update();
}

function update() {
  moves.forEach((move) => move());
  writeHash();
}

async function open() {
  try {
    await Promise.all(RUNS.map(prepare));
  } catch {
    page.append("This browser is too old for the page: take one of 2023 or later.");
    return;
  }
  document.body.append(tip);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") S.kernel < 0 ? hush() : go({ kernel: -1 });
  });
  addEventListener("resize", () => {
    sizes++;
    go({});
  });
  addEventListener("hashchange", () => {
    readHash();
    build();
  });
  readHash();
  build();
}
open();
