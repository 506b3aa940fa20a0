"""The whole run: what it costs and could cost, and every kernel's part of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlscale.advice.caps import CapAdvice
from mlscale.advice.objectives import objective_name
from mlscale.advice.recommendation import Advice, Recommendation, Setting
from mlscale.counters.roofline import BALANCED, LEAST_BOUND, RooflinePlace, roofline
from mlscale.data.grid import AXES
from mlscale.data.profiles import Profiles
from mlscale.model.predictions import INTERVAL
from mlscale.model.unprofiled import AS_KEPT
from mlscale.report.charts import chart, front_chart, front_table, roofline_chart
from mlscale.report.kernel_report import COSTS
from mlscale.report.levers import power_caps
from mlscale.report.markup import (
    Child,
    Markup,
    block,
    config_in_words,
    element,
    folded,
    joined,
    name,
    paragraph,
    part,
    percent,
    range_in_words,
    row,
    scale_and_unit,
    soft,
    table,
    terms,
)
from mlscale.text import counted, number, rounded, share_in_percent

_LEAST_LABELLED = 0.02  # of the run's time
_MOST_ROWS = 30  # of kernels without a section of their own, before they are folded away
_CLOCK_HEADERS = {"engine_mhz": "engine MHz", "memory_mhz": "memory MHz"}
_MEANINGS = {
    "memory-bound": "a lower engine clock costs little time, a lower memory clock much",
    "core-bound": "time goes with the engine clock; the memory clock matters little",
    "balanced": "both clocks matter",
    "latency-bound": "reaches neither peak: waits for latency, or has too little work",
    "not known": "the counters do not give both shares",
    "no counters": "predicted like the profiled kernels on average",
    "other GPUs": "exchanges data between GPUs: its time is taken to stay at every clock",
}


@dataclass(frozen=True, eq=False)
class RunReport:
    """All kernels of a run; shown: the positions of those that have sections of their own."""

    advice: Advice
    profiles: Profiles
    shown: tuple[int, ...]

    @cached_property
    def axes(self) -> list[str]:
        """Those that the grid varies."""
        grid = self.advice.surfaces["time"].grid
        return [axis for axis in AXES if len(getattr(grid, axis)) > 1]

    @property
    def axis_headers(self) -> list[str]:
        """Of the settings that the grid varies."""
        cus = self.advice.whole_run.base.config.cu_axis or "CUs"
        return [_CLOCK_HEADERS.get(axis, cus) for axis in self.axes]

    @cached_property
    def places(self) -> tuple[RooflinePlace, ...]:
        """Of every kernel between the GPU's peaks."""
        return roofline(self.profiles)

    @cached_property
    def by_share(self) -> tuple[int, ...]:
        """The positions of all kernels, those of most of the run's time first."""
        return tuple(sorted(range(len(self.advice.kernels)), key=lambda k: -self.share(k)))

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """The positions of the kernels that are not shown in full."""
        return tuple(k for k in self.by_share if k not in set(self.shown))

    def share(self, k: int) -> float:
        """A kernel's share of the kernels' time at the base, 0 to 1."""
        return (self.advice.kernels[k].share_percent or 0.0) / 100

    def bound(self, k: int) -> str:
        """What bounds a kernel, in a word or two."""
        if AS_KEPT in self.advice.kernels[k].flags:
            return "other GPUs"
        if not self.profiles.has_counters[k]:
            return "no counters"
        return self.places[k].bound or "not known"

    def settings(self, point: Setting) -> list[Child]:
        """Those that the grid varies, at one point."""
        return [f"{getattr(point.config, axis):g}" for axis in self.axes]

    def launches(self, kernels: Sequence[int]) -> list[Child]:
        """Of these kernels together; nothing where the profile does not say."""
        if self.advice.workload.launches is None:
            return []
        return [rounded(float(self.profiles.weights[list(kernels)].sum()))]


def _change(kernel: Recommendation, cost: str) -> str:
    """Of time_ms, power_w or energy_mj, from the base to the best."""
    return percent(getattr(kernel.best, cost) / getattr(kernel.base, cost) - 1)


def whole_run(run: RunReport, caps: CapAdvice | None, commands: Markup | None) -> Markup:
    """The section of the run. caps, commands: the run under power caps, what sets it, if asked."""
    has_front = bool(run.advice.whole_run.front)
    return element(
        "section",
        element("h2", "Whole run"),
        element(
            "div",
            block(_facts(run), _costs(run), None if has_front else _front(run.advice)),
            block(_front(run.advice)) if has_front else None,
            block(_roofline(run)),
            block(_bounds(run), is_wide=not has_front),
            block(power_caps(caps), is_wide=True) if caps else None,
            block(commands, is_wide=True) if commands else None,
            block(_shown_kernels(run), is_wide=True),
            block(_other_kernels(run), is_wide=True) if run.rest else None,
            class_="columns",
        ),
        class_="run",
        id="run",
    )


def _facts(report: RunReport) -> Markup:
    """What the run is made of."""
    advice, profiles = report.advice, report.profiles
    run = advice.workload
    total = len(profiles.kernels)
    if run.is_sampled and run.launches is None:
        return terms([("Runs", f"{total}, as averages of a monitor's log")])
    kernels = counted(total, "kernel")
    launches = f"{kernels}, each run once, as the profile gives no launches"
    if run.launches is not None:
        word = "launch" if run.launches == 1 else "launches"
        launches = f"{rounded(run.launches)} {word} of {kernels}"
    pairs: list[tuple[str, Child]] = [("Launches", launches)]
    lacking = total - int(profiles.has_counters.sum())
    text = f"{share_in_percent(run.counters_cover_percent / 100)} % of the kernels' time"
    if lacking:
        text += f"; {lacking} of {total} kernels have no counters"
    pairs.append(("Counters cover", text))
    return terms(pairs)


def _costs(report: RunReport) -> Markup:
    """The run at the base and at the best configuration, and what changes."""
    advice, run = report.advice, report.advice.whole_run
    is_clock = advice.objective == "clock"
    least = "lowest engine clock" if is_clock else f"least {objective_name(advice.objective)}"
    has_intervals = run.best.slowdown_range is not None
    rows: list[list[Child]] = [
        [header, base, best, None, None]
        for header, base, best in zip(
            report.axis_headers, report.settings(run.base), report.settings(run.best), strict=True
        )
    ]
    ranges = {"time_ms": run.best.slowdown_range}
    if advice.objective == "energy" and run.best.saving_range is not None:
        ranges["energy_mj"] = (-run.best.saving_range[1], -run.best.saving_range[0])
    for quantity, cost in COSTS.items():
        at_base, at_best = getattr(run.base, cost), getattr(run.best, cost)
        if at_base is None:
            continue
        scale, unit = scale_and_unit(at_base, cost)
        values = [number(at_base / scale), number(at_best / scale)]
        ends = ranges.get(cost)
        between = ends and range_in_words(ends)
        if between and cost == "time_ms" and advice.is_bounded:
            between = f"{between} (bounds)"
        rows.append([f"{quantity} {unit}", *values, _change(run, cost), between])
    headers = ["", "at the base", "at the best", "change"]
    if has_intervals:
        headers.append(INTERVAL)
    else:
        rows = [row[:-1] for row in rows]
    text = f"Best configuration: {least}{advice.limits.under()}."
    return joined(paragraph(text), table(headers, rows))


def _front(advice: Advice) -> Markup:
    """The Pareto front of the run, drawn and in numbers."""
    heading, run = "Time against energy of the run", advice.whole_run
    if not run.front:
        return part(heading, paragraph("Energy is not known, so there is no Pareto front."))
    points = list(dict.fromkeys([*run.front, run.base, run.best]))
    time, energy = (np.array([getattr(p, q) for p in points]) for q in ("time_ms", "energy_mj"))
    on_front = np.array([point in run.front for point in points])
    base, best = points.index(run.base), points.index(run.best)
    title = "energy against time of the run on its Pareto front, with base and best"
    ms, time_unit = scale_and_unit(time[base], "time_ms")
    mj, energy_unit = scale_and_unit(energy[base], "energy_mj")
    time, energy, units = time / ms, energy / mj, (time_unit, energy_unit)
    figure = front_chart(time, energy, on_front, base, best, units)
    caption = "The Pareto front of the run: nothing is as quick and as frugal"
    names = [
        config_in_words(point.config)
        + "".join(f" ({word})" for word in ("base", "best") if point == getattr(run, word))
        for point in points
    ]
    in_numbers = front_table(names, time, energy, on_front, base, units)
    return part(
        heading,
        row(chart(caption, figure, title, "run front")),
        folded(f"The {len(run.front)} points of the front as a table", in_numbers),
    )


def _roofline(run: RunReport) -> Markup:
    """Where the kernels stand between the GPU's peaks, drawn."""
    heading = "Place on the roofline"
    known = [k for k in run.by_share if run.places[k].bound is not None]
    if not known:
        text = "The profile does not have the shares of peak that tell memory- from core-bound."
        return part(heading, paragraph(text))
    shares = [run.share(k) for k in known]
    labels = [
        str(run.shown.index(k) + 1) if share > _LEAST_LABELLED and k in run.shown else ""
        for k, share in zip(known, shares, strict=True)
    ]
    core, dram = (np.array([getattr(run.places[k], q) for k in known]) for q in ("core", "dram"))
    figure = roofline_chart(core, dram, np.array(shares), labels)
    title = "use of DRAM bandwidth against use of the core's busiest unit, a dot for each kernel"
    caption = "A dot is a kernel, as large as its share of the run; numbers as in the table below"
    return part(heading, chart(caption, figure, title, "roofline"))


def _bounds(run: RunReport) -> Markup:
    """How much of the run is bound by what, in words."""
    share_of: dict[str, list[float]] = {}
    for k in run.by_share:
        share_of.setdefault(run.bound(k), []).append(run.share(k))
    rows: list[list[Child]] = [
        [bound, str(len(shares)), share_in_percent(sum(shares)), _MEANINGS[bound]]
        for bound, shares in sorted(share_of.items(), key=lambda item: -sum(item[1]))
    ]
    return part(
        "What bounds the run",
        table(["bound", "kernels", "% of time", "what it means"], rows, words=(0, 3), long=3),
        soft(
            "Shares of peak at the base: of the DRAM bandwidth, and of the busiest unit that runs "
            f"at the engine clock. Latency-bound: below {100 * LEAST_BOUND:g} % of both; balanced: "
            f"within {100 * BALANCED:g} points."
        ),
    )


def _shown_kernels(run: RunReport) -> Markup:
    """The kernels that have sections of their own, with links to them."""
    has_energy = run.advice.whole_run.base.energy_mj is not None
    headers = ["", "kernel", *_row_headers(run), "time ms", "time there"]
    headers += ["energy there"] if has_energy else []
    headers += ["bound", "flags"]
    rows = []
    for i, k in enumerate(run.shown, start=1):
        kernel = run.advice.kernels[k]
        link = element("a", name(run.profiles.kernels[k]), href=f"#kernel-{i}")
        there = [_change(kernel, cost) for cost in ("time_ms", "energy_mj")[: 1 + has_energy]]
        cells = [number(kernel.base.time_ms), *there, run.bound(k), str(len(kernel.flags))]
        rows.append([str(i), link, *_row(run, k), *cells])
    sums = [_sum(run, run.by_share, "whole run", len(headers) - 1)]
    if run.rest:
        sums = [
            _sum(run, run.shown, f"these {len(run.shown)}", len(headers) - 1),
            _sum(run, run.rest, f"the other {len(run.rest)}, below", len(headers) - 1),
            *sums,
        ]
    return element(
        "nav",
        element("h3", "Kernels", id="kernels"),
        soft(
            "The best clocks are those for the kernel alone; there its time and energy change "
            "against the base as shown."
        ),
        table(headers, rows, words=(1, len(headers) - 2), sums=[["", *row] for row in sums]),
        aria_label="Kernels",
    )


def _other_kernels(run: RunReport) -> Markup:
    """The kernels without sections of their own, and their sum."""
    headers = ["kernel", *_row_headers(run), "bound"]
    rows = [[name(run.profiles.kernels[k]), *_row(run, k), run.bound(k)] for k in run.rest]
    sums = [_sum(run, run.rest, "sum", len(headers))]
    whole = table(headers, rows, words=(0, len(headers) - 1), sums=sums)
    if len(rows) > _MOST_ROWS:
        whole = folded(f"All {len(rows)} as a table", whole)
    one = len(rows) == 1
    return part(
        "The other kernel" if one else f"The other {len(rows)} kernels",
        soft("mlscale report --kernel NAME shows one in full."),
        whole,
    )


def _row_headers(run: RunReport) -> list[str]:
    launches = ["launches"] if run.advice.workload.launches is not None else []
    return [*launches, "% of time", *(f"best {header}" for header in run.axis_headers)]


def _row(run: RunReport, k: int) -> list[Child]:
    """Launches, share, and the best settings for this kernel alone."""
    return [
        *run.launches([k]),
        share_in_percent(run.share(k)),
        *run.settings(run.advice.kernels[k].best),
    ]


def _sum(run: RunReport, kernels: Sequence[int], label: str, width: int) -> list[Child]:
    """Launches and share of some kernels together, filled up to a width."""
    row: list[Child] = [label, *run.launches(kernels)]
    row.append(share_in_percent(sum(run.share(k) for k in kernels)))
    return [*row, *[None] * (width - len(row))]
