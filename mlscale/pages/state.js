"use strict";
// What the page shows: the runs that stand in #data, and which setting of which run is chosen.
// Three files make one script: state.js, charts.js, page.js. No name is ever markup: all text is
// put in by `el`, as text.

const RUNS = JSON.parse(document.getElementById("data").textContent).runs;
const MAX_PERCENT = 60, STEP = 0.5; // of the slider of the limit; beyond it there is no limit
const AXES = { e: "engine clock", m: "memory clock", c: "CUs" };
const QUANTITIES = ["time", "power", "energy"];
const COSTS = { time: "time_ms", power: "power_w", energy: "energy_mj" }; // in the document
const CHANGES = { time: "slowdown_percent", power: "power_percent", energy: "energy_percent" };
const SETS = { cu_count: "CUs", engine_mhz: "MHz", memory_mhz: "MHz memory", power_cap_w: "W" };
const AT = { c: "cu_count", e: "engine_mhz", m: "memory_mhz" };
const MARKS = /[\p{C}\p{Zl}\p{Zp}]/gu; // what cannot be seen, or turns the writing
const MEANINGS = {
  "memory-bound": "a lower engine clock costs it little time",
  "core-bound": "its time follows the engine clock",
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

const line = (x1, y1, x2, y2, kind) => draw("line", { x1, y1, x2, y2, class: kind });
const label = (x, y, text, anchor = "start", kind = null) =>
  draw("text", { x, y, "text-anchor": anchor, class: kind }, text);
const dotAt = ([cx, cy], r, kind) => draw("circle", { cx, cy, r, class: kind });

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

// What the file carries: see mlscale/pages/surfaces.py.

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
  for (const [name, key] of Object.entries(COSTS)) {
    if (!subject[name] || !costs[key]) continue;
    ["value", "low", "high"].forEach((side, k) => {
      if (costs[key][k] == null || !subject[name][side]) return;
      subject[name][side][run.at(place)] = costs[key][k] / subject[name].base;
    });
  }
}

function placeOn(axes, at) {
  const place = {};
  for (const [name, key] of Object.entries(AT)) {
    place[name] = axes[name].indexOf(at[key]);
    if (place[name] < 0) return null;
  }
  return place;
}

// What is chosen.

const S = { run: 0, both: false, c: 0, e: 0, m: 0, max: null, kernel: -1, sort: "share", filter: "",
  heat: "time", dragging: false };
const run = () => RUNS[S.run];
const isCapped = (one) => "power_cap_w" in one.document.base; // its answer is a power cap
const axis = (name) => run().grid.axes[name];
const here = () => run().at(S);
const subject = () => (S.kernel < 0 ? run().whole : run().kernels[S.kernel].subject);
const percentAt = (quantity, i, side = "value") =>
  (quantity && quantity[side] ? 100 * (quantity[side][i] - 1) : null);
const mayBeSet = (i) => run().grid.state[i] === "0";
const sooner = (max) => (max == null ? Infinity : max + 1e-6);
const isOver = (percent) => percent != null && percent > sooner(S.max);

const placeOf = (at) => at && placeOn(run().grid.axes, at);

// What `mlscale advise` answers within a limit: places has the run's own limit first, then each
// step of the slider, then no limit.
function within(max) {
  const { choices, places } = run().within;
  const last = places.length - 1, step = 1 + Math.floor(max / STEP + 1e-9);
  return choices[places[max === run().limit ? 0
    : max == null ? last : Math.min(Math.max(step, 1), last - 1)] ?? 0];
}

const advised = (max) => placeOf(within(max).at) || run().base;

function start(number) {
  S.run = number;
  S.kernel = -1;
  S.filter = "";
  S.max = run().limit;
  if (run().grid) Object.assign(S, advised(S.max));
}

let address = ""; // as last read or written here

function readHash() {
  address = location.hash;
  const words = new URLSearchParams(address.slice(1));
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

const clamp = (percent) => Math.min(Math.max(MAX_PERCENT, run().limit),
  Math.max(Math.min(0, run().limit), percent));

function writeHash() {
  if (location.hash !== address) return; // changed from outside, and about to be read
  const words = new URLSearchParams();
  if (RUNS.length > 1) words.set("run", S.both ? "both" : S.run);
  if (run().grid) for (const name of run().moving) words.set(name, axis(name)[S[name]]);
  if (run().grid) words.set("max", S.max == null ? "any" : +S.max.toFixed(2));
  if (S.kernel >= 0) words.set("k", S.kernel + 1);
  try {
    history.replaceState(null, "", `#${words}`);
    address = location.hash;
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

const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }; // along a list

function keysMove(event, name, other) {
  const by = { ArrowRight: 1, ArrowUp: other ? 0 : 1, ArrowLeft: -1, ArrowDown: other ? 0 : -1,
    Home: -1e9, End: 1e9, PageUp: 5, PageDown: -5 }[event.key];
  const upward = other && { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!by && !upward) return;
  event.preventDefault();
  if (by) step(name, by);
  else step(other, upward);
}
