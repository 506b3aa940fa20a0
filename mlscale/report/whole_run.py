"""The whole run: what it costs and could cost, and every kernel's part of it."""

import numpy as np

from mlscale.advice.cap_advice import CapAdvice
from mlscale.advice.recommendation import Advice
from mlscale.counters.roofline import BALANCED, LEAST_BOUND
from mlscale.predictions import INTERVAL
from mlscale.report.figures import chart, front_chart, roofline_chart
from mlscale.report.levers import power_caps
from mlscale.report.markup import (
    Child,
    Markup,
    block,
    config_in_words,
    element,
    folded,
    joined,
    paragraph,
    percent,
    table,
    terms,
)
from mlscale.report.run_kernels import (
    RunReport,
    axis_headers,
    change,
    other_kernels,
    range_in_words,
    scale_and_unit,
    settings,
    shown_kernels,
)
from mlscale.text import counted, number, rounded, share_in_percent, time_in_words

_LEAST_LABELLED = 0.02  # of the run's time
_MEANINGS = {
    "memory-bound": "a lower engine clock costs little time, a lower memory clock much",
    "core-bound": "time goes with the engine clock; the memory clock matters little",
    "balanced": "both clocks matter",
    "latency-bound": "reaches neither peak: waits for latency, or has too little work",
    "not known": "the counters do not give both shares",
    "no counters": "predicted like the profiled kernels on average",
}


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
            block(shown_kernels(run), is_wide=True),
            block(other_kernels(run), is_wide=True) if run.rest else None,
            class_="columns",
        ),
        class_="run",
        id="run",
    )


def _facts(report: RunReport) -> Markup:
    """What the run is made of."""
    advice, profiles = report.advice, report.profiles
    run = advice.run
    total = len(profiles.kernels)
    if run.is_sampled and run.launches is None:
        return terms([("Runs", f"{total}, as averages of a monitor's log")])
    kernels = counted(total, "kernel")
    launches = f"{kernels}, each run once, as the profile gives no launches"
    if run.launches is not None:
        word = "launch" if run.launches == 1 else "launches"
        launches = f"{rounded(run.launches)} {word} of {kernels}"
    pairs: list[tuple[str, Child]] = [("Launches", launches)]
    if run.idle_beside_ms:
        text = f"{time_in_words(run.idle_beside_ms)} in which the GPU waits between kernels"
        text += "; no clock changes it, and times, power and energy here are without it"
        pairs.append(("Idle beside", text))
    lacking = total - int(profiles.has_counters.sum())
    text = f"{share_in_percent(run.counters_cover_percent / 100)} % of the kernels' time"
    if lacking:
        text += f"; {lacking} of {total} kernels have no counters"
    pairs.append(("Counters cover", text))
    return terms(pairs)


def _costs(report: RunReport) -> Markup:
    """The run at the base and at the best configuration, and what changes."""
    advice, run, grid = report.advice, report.advice.whole_run, report.grid
    least = "lowest engine clock" if advice.objective == "clock" else f"least {advice.objective}"
    has_intervals = run.slowdown_range is not None
    rows: list[list[Child]] = [
        [header, base, best, None, None]
        for header, base, best in zip(
            axis_headers(grid), settings(run.base, grid), settings(run.best, grid), strict=True
        )
    ]
    ranges = {"time_ms": run.slowdown_range}
    if advice.objective == "energy" and run.saving_range is not None:
        ranges["energy_mj"] = (-run.saving_range[1], -run.saving_range[0])
    for cost, quantity in _COSTS.items():
        at_base, at_best = getattr(run.base, cost), getattr(run.best, cost)
        if at_base is None:
            continue
        scale, unit = scale_and_unit(at_base, cost)
        values = [number(at_base / scale), number(at_best / scale)]
        ends = ranges.get(cost)
        rows.append(
            [f"{quantity} {unit}", *values, change(run, cost), ends and range_in_words(ends)]
        )
    headers = ["", "at the base", "at the best", "change"]
    if has_intervals:
        headers.append(INTERVAL)
    else:
        rows = [row[:-1] for row in rows]
    text = f"Best configuration: {least}{advice.limits.under()}."
    return joined(paragraph(text), table(headers, rows))


_COSTS = {"time_ms": "time", "power_w": "power", "energy_mj": "energy"}


def _front(advice: Advice) -> Markup:
    """The Pareto front of the run, drawn and in numbers."""
    heading, run = element("h3", "Time against energy of the run"), advice.whole_run
    if not run.front:
        return joined(heading, paragraph("Energy is not known, so there is no Pareto front."))
    points = list(dict.fromkeys([*run.front, run.base, run.best]))
    time, energy = (np.array([getattr(p, q) for p in points]) for q in ("time_ms", "energy_mj"))
    on_front = np.array([point in run.front for point in points])
    base, best = points.index(run.base), points.index(run.best)
    title = "energy against time of the run on its Pareto front, with base and best"
    scales = [scale_and_unit(getattr(run.base, cost), cost) for cost in ("time_ms", "energy_mj")]
    (ms, time_unit), (mj, energy_unit) = scales
    units = (time_unit, energy_unit)
    figure = front_chart(time / ms, energy / mj, on_front, base, best, units)
    caption = "The Pareto front of the run: nothing is as quick and as frugal"
    rows = [
        [
            config_in_words(point.config)
            + "".join(f" ({word})" for word in ("base", "best") if point == getattr(run, word)),
            number(point.time_ms / ms),
            percent(point.time_ms / run.base.time_ms - 1),
            number(energy_mj / mj),
            percent(energy_mj / (run.base.energy_mj or np.nan) - 1),
        ]
        for point in run.front
        if (energy_mj := point.energy_mj) is not None
    ]
    costs = [f"time {time_unit}", "to base", f"energy {energy_unit}", "to base"]
    headers = ["on the Pareto front", *costs]
    return joined(
        heading,
        element(
            "div",
            chart(caption, figure, title, "run front"),
            class_="row",
        ),
        folded(f"The {len(rows)} points of the front as a table", table(headers, rows)),
    )


def _roofline(run: RunReport) -> Markup:
    """Where the kernels stand between the GPU's peaks, drawn."""
    heading = element("h3", "Place on the roofline")
    known = [k for k in run.by_share if run.places[k].bound is not None]
    if not known:
        text = "The profile does not have the shares of peak that tell memory- from core-bound."
        return joined(heading, paragraph(text))
    shares = [run.share(k) for k in known]
    labels = [
        str(run.shown.index(k) + 1) if share > _LEAST_LABELLED and k in run.shown else ""
        for k, share in zip(known, shares, strict=True)
    ]
    core, dram = (np.array([getattr(run.places[k], q) for k in known]) for q in ("core", "dram"))
    figure = roofline_chart(core, dram, np.array(shares), labels)
    title = "use of DRAM bandwidth against use of the core's busiest unit, a dot for each kernel"
    caption = "A dot is a kernel, as large as its share of the run; numbers as in the table below"
    return joined(heading, chart(caption, figure, title, "roofline"))


def _bounds(run: RunReport) -> Markup:
    """How much of the run is bound by what, in words."""
    share_of: dict[str, list[float]] = {}
    for k in run.by_share:
        share_of.setdefault(run.bound(k), []).append(run.share(k))
    rows: list[list[Child]] = [
        [bound, str(len(shares)), share_in_percent(sum(shares)), _MEANINGS[bound]]
        for bound, shares in sorted(share_of.items(), key=lambda item: -sum(item[1]))
    ]
    return joined(
        element("h3", "What bounds the run"),
        table(["bound", "kernels", "% of time", "what it means"], rows, words=(0, 3), long=3),
        paragraph(
            "Shares of peak at the base: of the DRAM bandwidth, and of the busiest unit that runs "
            f"at the engine clock. Latency-bound: below {100 * LEAST_BOUND:g} % of both; balanced: "
            f"within {100 * BALANCED:g} points.",
            kind="soft",
        ),
    )
