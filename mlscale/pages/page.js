
// The page: tables, sliders, buttons, numbers, and what stands where in #page.

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
    const { time, energy } = one.percents;
    one.time.textContent = time == null ? "–" : change(time);
    one.energy.textContent = energy == null ? "–" : change(energy);
    one.bar.style.transform = `scaleX(${(Math.max(time || 0, 0) / longest).toFixed(3)})`;
    one.time.classList.toggle("over", isOver(time));
    one.bar.classList.toggle("red", isOver(time));
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
    longest = Math.max(5, ...rows.map(({ percents: { time } }) => time || 0));
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
  const { caps } = run().document;
  const between = (values) => (values && values[1] != null
    ? `${change(values[1])} to ${change(values[2])}` : "");
  const first = caps.findIndex((cap) => cap.time_ms);
  const unknown = first < 0 ? caps : caps.slice(0, first);
  const known = caps.slice(unknown.length), notes = known.map(() => el("td", { class: "wide soft" }));
  const rows = known.map((cap, k) => el("tr", {},
    el("td", { class: "n" }, `${digits(cap.cap_w)} W`),
    el("td", { class: "n" }, cap.at && cap.at.engine_mhz ? `${digits(cap.at.engine_mhz)} MHz` : "–"),
    el("td", { class: "n" }, change(cap.slowdown_percent?.[0])),
    el("td", { class: "n wide soft" }, between(cap.slowdown_percent)),
    el("td", { class: "n" }, change(cap.energy_percent?.[0])),
    notes[k]));
  const rest = unknown.length ? el("p", { class: "soft" }, `${digits(unknown[0].cap_w)} to ${
    digits(unknown.at(-1).cap_w)} W: not known; ${unknown.at(-1).flags.at(-1) || ""}`) : null;
  const limit = isCapped(run()) ? limitSlider() : null;
  const command = limit && commandLine(() => (within(S.max).cap_w === within(run().limit).cap_w
    ? [...run().document.commands?.set || [], ...(run().document.commands?.notes || [])
      .filter((note) => note.startsWith("for one GPU")).map((note) => `# ${note}`)]
    : [`# mlscale advise … --lever cap --max-slowdown ${S.max ?? 1000} --commands`]));
  const list = el("div", { class: "scroll", tabindex: 0 });
  moves.push(() => known.forEach((cap, k) => {
    const isOn = isCapped(run()) && cap.cap_w === within(S.max).cap_w;
    rows[k].classList.toggle("on", isOn);
    notes[k].textContent = isOn ? "the answer" : cap.flags.join("; ");
  }), ...(limit ? [limit.move, command.move] : []));
  requestAnimationFrame(() => { list.scrollTop = (list.querySelector(".on")?.offsetTop || 0) - 150; });
  return el("section", { class: "card" }, el("div", { class: "title" }, el("h2", {}, "Power caps"),
    limit && el("div", { class: "controls" }, limit.node), command && command.node), rest, filled(list, {}, [el("table", {},
    el("thead", {}, el("tr", {}, ...["cap", "mean clock", "time"].map((word) => el("th",
      { class: "n" }, word)), el("th", { class: "n wide" }, "90 %"), el("th", { class: "n" },
      "energy"), el("th", { class: "wide" }))), el("tbody", {}, rows))]));
}

// A server: tokens per joule over clock and clients, and its clocks as the document has them.
function serverCards() {
  const { server, answer, expected } = run().document, host = hostOf("heat");
  const names = Object.keys(server.clocks[0].latency_ms);
  const cells = (clock) => [...names.map((name) => [clock.latency_ms[name], name]),
    [clock.power_w], [rateOf(clock)], [clock.tokens_per_joule]].map(([[value, low, high], name]) =>
    el("td", { class: `n${clock.breaks.includes(name) ? " over" : ""}` }, digits(value, 3),
      low != null && el("span", { class: "soft wide" }, ` ${digits(low, 3)} – ${digits(high, 3)}`)));
  const rows = server.clocks.map((clock) => {
    const at = settingOf(clock), isAnswer = settingAt(answer) === at;
    const said = [isAnswer && "answer", settingAt(expected) === at && "expected",
      clock.is_measured && "run", clock.breaks.length && `above ${clock.breaks.join(", ")}`];
    return el("tr", { class: isAnswer ? "on" : null }, el("td", { class: "n" }, digits(at, 6)),
      cells(clock), el("td", {}, said.filter(Boolean).join(", ")));
  });
  moves.push(loadMap(host));
  const heads = [isCap() ? "cap [W]" : "MHz", ...names.map((name) => `${name} [ms]`), "W", "tokens/s", "tokens/J"];
  return [el("section", { class: "card" }, el("div", { class: "title" }, el("h2", {},
    `Tokens per joule over the ${isCap() ? "power cap" : "clock"}${server.loads ? " and clients" : ""}`), el("span",
    { class: "soft" }, "stronger colour: more; ±: half of the 90 % interval; framed: the answer")),
  host), el("section", { class: "card" }, el("h2", {}, `${isCap() ? "Power caps" : "Clocks"}${server.loads
    ? `, ${digits(server.clients)} clients` : ""}`), el("div", { class: "scroll", tabindex: 0 },
    el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { class: "n" }, head)),
      el("th"))), el("tbody", {}, rows))))];
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
  return isCapped(run()) ? made : [...made, limitSlider()];
}

function limitSlider() {
  const value = el("output");
  const input = el("input", { type: "range", id: "slider-max", min: 0, max: MAX_PERCENT + STEP,
    step: STEP, oninput: () => {
      const max = +input.value > MAX_PERCENT ? null : +input.value;
      go({ max, ...(run().grid && advised(max)) });
    } });
  return { node: el("label", {}, "slowdown limit", value, input), move: () => {
    input.value = S.max == null ? MAX_PERCENT + STEP : S.max;
    value.textContent = S.max == null ? "any" : `${digits(S.max, 3)} %`;
  } };
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
    run().within.least && to("least energy", placeOf(run().within.least), null),
  ];
}

function commandLine(commandsNow) {
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
    const words = commandsNow();
    code.textContent = words.join("\n");
    copy.hidden = words.every((line) => line.startsWith("#"));
  } };
}

function commandsHere() {
  const { commands, base } = run();
  const moved = ["e", "m"].filter((name) => S[name] !== base[name]);
  if (!moved.length && S.c === base.c) return ["# nothing to set: this is the base"];
  const lines = moved.flatMap((name) => commands[{ e: "engine", m: "memory" }[name]]);
  if (!lines.length || S.c !== base.c) lines.push("# no known command sets this");
  return [...new Set(lines)].map((line) => line.replaceAll("{engine}", Math.round(axis("e")[S.e]))
    .replaceAll("{memory}", Math.round(commands.memory_mhz[S.m])));
}

function numbers(name, curveHost) {
  const big = el("b"), to = el("span"), ends = el("small");
  return { node: el("div", { class: "number", "data-quantity": name }, el("h3", {}, name), big, to,
    ends, curveHost), move: () => {
    const quantity = subject() && subject()[name], i = here();
    const isBound = run().document.run.is_bounded, percent = percentAt(quantity, i);
    if (!quantity || !isFinite(percent)) {
      big.textContent = "not known";
      to.textContent = ends.textContent = "";
      return;
    }
    big.textContent = inUnits(name, quantity.base * quantity.value[i]);
    to.textContent = i === run().at(run().base) ? "the base"
      : `${isBound && name === "time" && percent > 0 ? "at most " : ""}${change(percent)}`;
    to.className = name === "time" && isOver(percent) ? "over" : "";
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
    lines.push(`Expected to keep the limit of ${digits(S.max, 3)} %, but not certain to.`);
  }
  if (!power) lines.push("Power and energy are not known.");
  else if (!energy) lines.push("Energy is not known.");
  else if (!isBase && energy.high) {
    lines.push(percentAt(energy, i, "high") < 0
      ? "Energy goes down even at the worst end of the interval."
      : percentAt(energy, i, "low") > 0 ? "Energy goes up even at the best end of the interval."
        : "Energy may not go down: the interval contains 0.");
  }
  return lines.concat(run().measured.map(measuredSentence));
}

function measuredSentence({ at, measured, predicted, share_percent: percent }) {
  const parts = Object.entries(COSTS).map(
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
  const settled = ({ answer }) => (!answer ? "–" : Object.entries(answer.set).map(([name, value]) =>
    (value == null ? "unlocked" : `${digits(value, 6)} ${SETS[name]}`)).join(", ") || "as it is");
  add("time at the base", (found) => inUnits("time", found.run.time_ms));
  add("energy at the base", (found) => (found.run.energy_mj
    ? inUnits("energy", found.run.energy_mj) : "not known"));
  add("set", settled);
  add("time there", ({ answer }) => change(answer?.slowdown_percent[0]));
  add("energy there", ({ answer }) => change(answer?.energy_percent?.[0]));
  add("sure", (found) => found.sure);
  const times = RUNS.map((one) => new Map(one.document.kernels.map((kernel) =>
    [kernel.kernel, kernel.share_percent == null ? null
      : kernel.share_percent / 100 * one.document.run.time_ms])));
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
  return [el("section", { class: "card both" }, el("h2", {}, "Both runs"),
    table(rows.slice(1), rows[0])),
  el("section", { class: "card both" }, el("h2", {}, "Kernels at the base"),
    table(kernels, ["kernel", ...RUNS.map((one) => one.name), "second to first"]))];
}

// The page of a run.

let moves = [];
const hostOf = (kind) => el("div", { class: `chart ${kind}` });
const page = document.getElementById("page");

function explorer() {
  const controls = sliders(), command = commandLine(commandsHere), who = el("p", { class: "who" });
  const said = el("div", { class: "said", role: "status" }), main = run().moving[0];
  const columns = QUANTITIES.filter((name) => name === "time" || run().whole[name]).map((name) => {
    const host = hostOf("curve"), number = numbers(name, host);
    return { ...number, redraw: main ? curve(host, name, main) : () => {} };
  });
  moves.push(...controls.map((one) => one.move), command.move,
    ...columns.flatMap((one) => [one.move, one.redraw]), chart(who, () => S.kernel, () => {
      const kernel = run().kernels[S.kernel];
      who.replaceChildren(...(kernel ? [el("strong", {}, `${kernel.number}  ${kernel.kernel}`),
        el("button", { onclick: () => go({ kernel: -1 }) }, "whole run"),
        placeOf(kernel.best.at) && el("button", { onclick: () => go(placeOf(kernel.best.at)) },
          "its best")].filter(Boolean) : ["Whole run"]));
    }), () => {
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
  const [left, right, map, overCus] = ["pareto", "bounds", "heat", "curve"].map(hostOf);
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
    const isKept = /[^0]/.test(run().grid.state) ? "; outlined: not offered" : "";
    card("Both clocks", map, heat(map), what, el("span", { class: "soft" },
      `stronger colour: more${isKept}`));
  }
  if (run().moving.includes("c") && run().moving[0] !== "c") {
    card(`Time over ${run().grid.cu_axis}`, overCus, curve(overCus, "time", "c"));
  }
  return el("div", { class: "cards" }, made);
}

function tabs() {
  if (RUNS.length < 2) return null;
  const tab = (words, isOn, number) => el("button", { "aria-pressed": isOn, onclick: () => {
    S.both = number == null;
    if (!S.both) start(number);
    build();
    page.querySelector(".tabs [aria-pressed=true]").focus();
  } }, words);
  return el("div", { class: "tabs" }, RUNS.map((one, k) =>
    tab(one.name, !S.both && S.run === k, k)), tab("side by side", S.both, null));
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
    const caps = run().document.caps ? capTable() : null;
    if (isCapped(run())) parts.push(caps);
    if (run().grid) parts.push(explorer(), cards());
    if (run().document.server) parts.push(...serverCards());
    if (!isCapped(run())) parts.push(caps);
    if (run().kernels.length) {
      const host = el("section", { class: "card kernels" });
      moves.push(kernelTable(host));
      parts.push(host);
    }
  }
  page.replaceChildren(...parts.filter(Boolean));
  update();
}

let hashTimer = null;
function update() {
  moves.forEach((move) => move());
  document.querySelector(`#head-${S.run} h1`).textContent = shown(within(S.max).headline);
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => { // later, as browsers refuse to note hundreds of moves
    hashTimer = null;
    writeHash();
  }, 100);
}

async function open() {
  if (!window.DecompressionStream || !CSS.supports("color", "light-dark(red, red)")) return;
  page.hidden = true; // the plain tables, which stay where this page cannot move
  try {
    await Promise.all(RUNS.map(prepare));
  } finally {
    page.hidden = false;
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
