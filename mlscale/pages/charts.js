
// The charts: over a clock, time against energy, what bounds each kernel, both clocks.

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
      const hadFocus = host.contains(document.activeElement);
      key = now;
      move = build(host, Math.round(host.clientWidth) || 300);
      if (hadFocus) host.querySelector("[tabindex='0'], button")?.focus();
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
    root.append(line(left, y(v), width - right, y(v), "rule"),
      label(left - 8, y(v) + 4, format(v), "end"));
  }
  for (const v of ticks(...xs, Math.max(3, Math.min(6, Math.floor(width / 75))))) {
    root.append(label(x(v), height - bottom + 18, digits(v, 5), "middle"));
  }
  if (words.y) root.append(label(0, 12, words.y));
  if (words.x) root.append(label(width - right, height - 6, words.x, "end"));
  host.replaceChildren(root);
  return { root, x, y, left, right: width - right, top, bottom: height - bottom };
}

const path = (points) => (points.length
  ? `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` : "");
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
    if (quantity.low && drawn.length) {
      const up = drawn.map((k) => at(k, highs[k])), down = drawn.map((k) => at(k, lows[k]));
      view.root.append(draw("path", { d: `${path(up.concat(down.reverse()))}Z`, class: "band" }));
    }
    view.root.append(line(view.left, view.y(0), view.right, view.y(0), "zero"));
    if (isLimited) {
      const y = at(0, S.max)[1];
      view.root.append(line(view.left, y, view.right, y, "limit"),
        label(view.left + 6, y - 6, `limit ${digits(S.max)} %`, "start", "over"));
    }
    view.root.append(draw("path", { d: path(drawn.map((k) => at(k, values[k]))), class: "line" }));
    for (const dot of measuredDots(name, axisName)) {
      const percent = Math.min(high + pad, Math.max(low - pad, dot.percent));
      view.root.append(dotAt([view.x(dot.step), view.y(percent)], 5, "measured"));
    }
    return knob(view, quantity, steps, axisName, name, at);
  });
}

function knob(view, quantity, steps, axisName, name, at) {
  const cursor = line(0, view.top, 0, view.bottom, "cursor"), dot = dotAt([0, 0], 7, "knob");
  if (name === "time") {
    filled(dot, { tabindex: 0, role: "slider", "aria-label": AXES[axisName],
      "aria-valuemin": steps[0], "aria-valuemax": steps[steps.length - 1],
      onkeydown: (event) => keysMove(event, axisName) }, []);
  }
  view.root.append(cursor, dot);
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
    const percent = percentAt(quantity, here()), [x, y] = at(S[axisName], percent);
    dot.style.display = isFinite(percent) ? "" : "none";
    if (!isFinite(percent)) return;
    filled(cursor, { x1: x, x2: x }, []);
    filled(dot, { cx: x, cy: y, "aria-valuenow": steps[S[axisName]],
      "aria-valuetext": `${settingWords(S)}: ${change(percent)}` }, []);
  };
}

// What was measured beside the base, of the whole run, where the other axes are as chosen.
function measuredDots(name, axisName) {
  if (S.kernel >= 0) return [];
  const dots = run().document.measured.map((one) =>
    ({ at: one.at, percent: (one[CHANGES[name]] || [null])[0] }));
  for (const one of run().measured) {
    const value = one.measured[COSTS[name]];
    const isWhole = one.share_percent > 99.9 || name === "power";
    const base = run().whole[name] && run().whole[name].base;
    dots.push({ at: one.at, percent: value && base && isWhole ? 100 * (value / base - 1) : null });
  }
  return dots.filter((dot) => dot.percent != null && Object.keys(AT).every((other) =>
    other === axisName || dot.at[AT[other]] === axis(other)[S[other]]))
    .map((dot) => ({ ...dot, step: dot.at[AT[axisName]] }))
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
        line(x, view.top, x, view.bottom, "limit"));
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
    const [bx, by] = at(run().at(run().base)), now = dotAt([0, 0], 8, "knob");
    view.root.append(...front.map((i) => dotAt(at(i), 3.5, "dot")), dotAt([bx, by], 6, "base"),
      label(bx + 11, by + 4, "base"), now);
    const nearest = (event) => {
      const box = view.root.getBoundingClientRect();
      const far = (i) => Math.hypot(at(i)[0] - event.clientX + box.left,
        at(i)[1] - event.clientY + box.top);
      const found = dots.reduce((one, i) => (far(i) < far(one) ? i : one), dots[0]);
      return far(found) < 40 ? found : null;
    };
    filled(view.root, { tabindex: 0, role: "application", class: "click",
      "aria-label": "energy against time: arrow keys go along the front",
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
        const by = ARROWS[event.key];
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
        [98, 4, "core-bound", "end"]].map(([x, y, word, anchor]) =>
        label(view.x(x), view.y(y), word, anchor, "zone")));
    view.root.setAttribute("role", "group");
    return () => discs.forEach((disc, k) =>
      disc.classList.toggle("on", kernels[k].k === S.kernel));
  });
}

function discKeys(event, discs, k) {
  if (event.key === "Enter" || event.key === " ") discs[k].onclick();
  const by = ARROWS[event.key];
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
    const all = engines.flatMap((_e, e) => memories.map((_m, m) => place(e, m)));
    const isShown = (i) => mayBeSet(i) && isFinite(quantity.value[i]);
    const values = all.filter(isShown).map((i) => quantity.value[i]);
    const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log);
    const root = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0,
      role: "application", "aria-label": `${S.heat} over both clocks: arrow keys move`,
      class: "click", onpointerleave: hush, onkeydown: (event) => keysMove(event, "e", "m") });
    const top = (m) => over + (memories.length - 1 - m) * tall;
    memories.forEach((mhz, m) => {
      root.append(label(left - 8, top(m) + tall / 2 + 4, digits(mhz, 6), "end"));
      engines.forEach((_mhz, e) => {
        const i = place(e, m), depth = (Math.log(quantity.value[i]) - low) / (high - low || 1);
        root.append(draw("rect", { x: left + e * cell, y: top(m), width: cell - 1, height: tall - 1,
          rx: 2, class: isShown(i) ? "cell" : "cell off",
          "fill-opacity": isShown(i) ? (0.08 + 0.92 * depth).toFixed(3) : 0,
          onclick: () => go({ e, m }),
          onpointermove: (event) => tell(effectLines(i), event.clientX, event.clientY) }));
      });
    });
    const every = Math.ceil(engines.length * 56 / (width - left));
    engines.forEach((mhz, e) => {
      const where = [left + (e + 0.5) * cell, over + memories.length * tall + 16];
      if (e % every === 0) root.append(label(...where, digits(mhz, 6), "middle"));
    });
    root.append(label(0, 12, "memory clock [MHz]"),
      label(width - 8, height - 4, "engine clock [MHz]", "end"));
    const now = draw("rect", { width: cell + 1, height: tall + 1, rx: 3, class: "now" });
    root.append(now);
    host.replaceChildren(root);
    return () => filled(now, { x: left + S.e * cell - 1, y: top(S.m) - 1 }, []);
  });
}

// Tokens per joule of a server over its clock, and over the numbers of clients where several ran.
const settingOf = (cell) => cell.power_cap_w ?? cell.engine_mhz;
const isCap = () => isCapped(run());
const unit = () => (isCap() ? "W" : "MHz");
const settingAt = (choice) => choice && (isCap()
  ? choice.set.power_cap_w ?? run().document.base.power_cap_w : choice.at.engine_mhz);
const rateOf = (cell) => [cell.output_per_s, cell.output_range_per_s || []].flat();
function loadMap(host) {
  const { server, answer } = run().document, cells = server.loads || server.clocks;
  const loads = [...new Set(cells.map((cell) => cell.clients))];
  const clocks = [...new Set(cells.map(settingOf))].sort((a, b) => a - b);
  const values = cells.map((cell) => Math.log(cell.tokens_per_joule[0]));
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const within = ([, from, to], count = 3) =>
    (from == null ? "" : ` (${digits(from, count)} to ${digits(to, count)})`);
  const lines = (cell) => {
    const [value, from, to] = cell.tokens_per_joule;
    return [`${digits(settingOf(cell), 6)} ${unit()}${server.loads ? `, ${digits(cell.clients)} clients` : ""}`,
      `${digits(value, 3)} tokens/J${within([value, from, to])}`,
      `${digits(1 / value, 3)} J/token${within([1 / value, to && 1 / to, from && 1 / from])}`,
      `${digits(rateOf(cell)[0], 3)} tokens/s${within(rateOf(cell))}`,
      `${digits(cell.power_w[0], 3)} W${within(cell.power_w)}`,
      cell.is_measured ? "run" : "between measured clocks"];
  };
  return chart(host, () => S.run, (_, width) => {
    const left = server.loads ? 62 : 0, over = server.loads ? 24 : 0, tall = 46;
    const named = new Set([settingAt(answer),
      ...cells.filter((cell) => cell.is_measured).map(settingOf)]);
    const room = Math.max(2, Math.floor((width - left) / 62) - named.size);
    const evenly = new Set(Array.from({ length: room }, (_one, k) =>
      Math.round(k * (clocks.length - 1) / (room - 1))));
    const kept = clocks.filter((mhz, k) => evenly.has(k) || named.has(mhz));
    const wide = (width - left - 8) / kept.length, height = over + loads.length * tall + 46;
    const root = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `tokens per joule over the ${isCap() ? "cap" : "clock"} and clients`, onpointerleave: hush });
    const x = (mhz) => left + kept.indexOf(mhz) * wide;
    const y = (load) => over + (loads.length - 1 - loads.indexOf(load)) * tall;
    for (const cell of cells.filter((one) => kept.includes(settingOf(one)))) {
      const [value, , high] = cell.tokens_per_joule, middle = x(settingOf(cell)) + wide / 2;
      const depth = 0.06 + 0.5 * (Math.log(value) - low) / span, top = y(cell.clients);
      root.append(draw("rect", { x: x(settingOf(cell)), y: top, width: wide - 1, height: tall - 1,
        rx: 2, class: "cell", "fill-opacity": depth.toFixed(3),
        onpointermove: (event) => tell(lines(cell), event.clientX, event.clientY) }),
      label(middle, top + 20, digits(value, 3), "middle", "told"), label(middle, top + 36,
        high == null ? "run" : `±${digits(100 * (high / value - 1), 2)} %`, "middle", "through"));
    }
    kept.forEach((mhz) => root.append(label(x(mhz) + wide / 2, height - 30, digits(mhz, 6), "middle")));
    if (server.loads) {
      loads.forEach((load) => root.append(label(left - 8, y(load) + 27, digits(load), "end")));
      root.append(label(0, 12, "clients"));
    }
    root.append(label(width - 8, height - 6, isCap() ? "power cap [W]" : "engine clock [MHz]", "end"));
    if (answer) {
      root.append(draw("rect", { x: x(settingAt(answer)) - 1, y: y(server.loads && server.clients) - 1,
        width: wide + 1, height: tall + 1, rx: 3, class: "now" }));
    }
    host.replaceChildren(root);
  });
}
