"""The advice as a table for a terminal."""

from collections.abc import Sequence

import numpy as np

from mlscale.advice.objectives import SAME, objective_name, slowdown_percent
from mlscale.advice.recommendation import WHOLE_RUN, Advice, OperatingPoint, Recommendation
from mlscale.advice.verdict import verdict
from mlscale.cli.text import (
    AXIS_HEADINGS,
    columns,
    flag_lines,
    interval_cell,
    kernel_names,
    setting_cells,
    warning_lines,
    without_empty,
)
from mlscale.data.grid import HardwareConfig
from mlscale.data.sequence import run_in_sequence
from mlscale.data.surfaces import BOUNDED
from mlscale.predictions import INTERVAL
from mlscale.text import number, share_in_percent

MOST_KERNELS = 10  # that have a line of their own
MOST_POINTS = 12  # of a front
MOST_CLOCKS = 6  # of bounds
_OF_KERNELS = (
    "; a kernel's numbers are of one launch\nat its own best, in run % is its time at the best of "
    "the whole run"
)


def advice_table(advice: Advice, device: str, base: HardwareConfig) -> str:
    """Return the verdict, the best configurations, the front, flags and warnings."""
    largest, others = _by_share(advice)
    if advice.is_bounded and not advice.run.is_one_launch:  # alike for all kernels
        largest, others = [], []
    has_saving = advice.objective != "clock"
    of_time, of_saving = _interval_headings(advice)
    headers = ["kernel", "share %", *AXIS_HEADINGS, *_costs(advice), "time %", of_time]
    if has_saving:
        headers += ["saves %", of_saving]
    headers.append("in run %")
    names = kernel_names(kernel.kernel or "" for kernel in (*largest, *others))
    lines = [_line(names[kernel.kernel or ""], kernel, advice) for kernel in largest]
    if others:
        lines.append(_line_of_others(others, headers, advice))
    if not advice.run.is_one_launch:
        lines.append(_line(WHOLE_RUN, advice.whole_run, advice))
    least = f"Least {objective_name(advice.objective)}" if has_saving else "Lowest engine clock"
    text = f"{verdict(advice)}\n\n{least}{advice.limits.under()}:\n"
    text += columns(*without_empty(headers, lines))
    percents = "time % and saves % are" if has_saving else "time % is"
    text += f"\n\nbase {base} on {device}; {percents} against it"
    if largest and not advice.run.is_one_launch:
        text += _OF_KERNELS
    if advice.is_bounded:
        text += f"; times are the longest that they can be{_over_clocks(advice)}"
    else:
        text += _front(advice)
    text += _measured(advice)
    flags = flags_of_kernels(advice)
    notes = flag_lines(flags, most=MOST_KERNELS)
    notes += [f"flag: {WHOLE_RUN}: {flag}\n" for flag in advice.whole_run.flags]
    notes += warning_lines(advice.warnings)
    return f"{text}\n\n{''.join(notes)}" if notes else f"{text}\n"


def _interval_headings(advice: Advice) -> tuple[str, str]:
    """How tables head the ends of time, and those of what is saved, in which power may be."""
    of_time = "bounds" if advice.is_bounded else INTERVAL
    return of_time, of_time if advice.objective == "time" else INTERVAL


def flags_of_kernels(advice: Advice) -> dict[str, tuple[str, ...]]:
    """The flags by kernel, those of most time first, without the one that the verdict says."""
    return {
        kernel.kernel or "": tuple(flag for flag in kernel.flags if flag != BOUNDED)
        for kernel in sorted(advice.kernels, key=_percent, reverse=True)
    }


def _by_share(advice: Advice) -> tuple[list[Recommendation], list[Recommendation]]:
    """The kernels of most time, and the others. One other has the line that it would be told in."""
    ordered = sorted(advice.kernels, key=_percent, reverse=True)
    count = MOST_KERNELS if len(ordered) > MOST_KERNELS + 1 else len(ordered)
    return ordered[:count], ordered[count:]


def _percent(of: Recommendation) -> float:
    return 100.0 if of.share is None else of.share.percent


def _line(name: str, of: Recommendation, advice: Advice) -> list[str]:
    has_share = of.share is not None and not advice.run.is_one_launch
    percent = "" if advice.run.is_one_launch else share_in_percent(_percent(of) / 100)
    slowdown = [f"{of.slowdown_percent:+z.1f}", interval_cell(of.slowdown_range)]
    cells = [name, percent, *_cells(of.best), *slowdown]
    if advice.objective != "clock":
        cells += [f"{of.saving_percent:z.1f}", interval_cell(of.saving_range)]
    most = advice.limits.max_slowdown_percent
    is_slower = has_share and most is not None and of.slowdown_in_run_percent > most + SAME
    in_run = f"{of.slowdown_in_run_percent:+z.1f}" if has_share else ""
    if is_slower:
        in_run += ", above the limit"
    return [*cells, in_run]


def _line_of_others(
    others: Sequence[Recommendation], headers: Sequence[str], advice: Advice
) -> list[str]:
    """A line that sums up the kernels that have none of their own."""
    percent = sum(map(_percent, others))
    slowdown = sum(_percent(kernel) * kernel.slowdown_in_run_percent for kernel in others) / percent
    cells = dict.fromkeys(headers, "-") | dict.fromkeys(_interval_headings(advice), "")
    cells |= {"kernel": f"and {len(others)} others", "share %": share_in_percent(percent / 100)}
    cells["in run %"] = f"{slowdown:+z.1f}"
    return [cells[header] for header in headers]


def _front(advice: Advice) -> str:
    """The front of the whole run, of a long one a few points, the best and the base among them."""
    run = advice.whole_run
    if not run.front:
        return ""
    places = set(np.linspace(0, len(run.front) - 1, MOST_POINTS).round().tolist())
    points = list(run.front)
    if len(points) > MOST_POINTS:
        ends = (run.best, run.base)
        points = [p for place, p in enumerate(points) if place in places or p in ends]
    more = ["all its points"] if len(points) < len(run.front) else []
    if not advice.run.is_one_launch:
        more.append("each kernel's")
    of_run = "" if advice.run.is_one_launch else " of the whole run"
    note = f" ({' and '.join(more)} with --format csv)" if more else ""
    marks = [", ".join(n for n in ("best", "base") if p == getattr(run, n)) for p in points]
    lines = [[*_cells(point), mark] for point, mark in zip(points, marks, strict=True)]
    table = columns([*AXIS_HEADINGS, *_costs(advice), ""], lines)
    return f"\n\nPareto front of time and energy{of_run}{note}:\n{table}"


def _over_clocks(advice: Advice) -> str:
    """The whole run at a few engine clocks: time between its bounds, and power."""
    run, time, power = advice.whole_run, advice.held["time"], advice.held.get("power")
    shares = [kernel.share for kernel in advice.kernels]
    launches = np.array([share.launches if share else 1.0 for share in shares])
    c, base, m = time.grid.index(run.base.config)
    best = time.grid.index(run.best.config)[1]
    headers = ["engine MHz", "time ms from", "to"]
    sides = [
        run_in_sequence(of, None, launches)[0] for of in (time.low, time.high) if of is not None
    ]
    if power:
        headers += ["power W", INTERVAL]
        ends = (power.values, power.low, power.high)
        sides += [run_in_sequence(time.values, of, launches)[1] for of in ends if of is not None]
    lines = []
    for e in _few(len(time.grid.engine_mhz), {base, best}):
        cells = [number(float(of[c, e, m])) for of in sides]
        between = [" to ".join(cells[3:])] if power else []
        mark = ", ".join(name for name, of in (("best", best), ("base", base)) if of == e)
        lines.append([f"{time.grid.engine_mhz[e]:g}", *cells[:3], *between, mark])
    power_too = ", and power at the longest time" if power else ""
    table = columns([*headers, ""], lines)
    return f"\n\nTime between its bounds{power_too}:\n{table}"


def _few(count: int, own: set[int]) -> list[int]:
    """At most MOST_CLOCKS of so many places, evenly spaced but for those of one's own."""
    places = set(np.linspace(0, count - 1, min(count, MOST_CLOCKS)).round().astype(int).tolist())
    for place in own - places:
        inner = places - own - {0, count - 1}
        places -= {min(inner, key=lambda other: abs(other - place))}
        places |= {place}
    return sorted(places)


def _measured(advice: Advice) -> str:
    """The whole run as it was measured at the further points; nothing without any."""
    headers = [*AXIS_HEADINGS, "time ms", "power W", "energy mJ", "time %"]
    lines = []
    for at in advice.measured:
        costs = [
            "" if cost is None else number(cost) for cost in (at.time_ms, at.power_w, at.energy_mj)
        ]
        slowdown = float(slowdown_percent(at.time_ms, advice.whole_run.base.time_ms))
        lines.append([*setting_cells(at.config), *costs, f"{slowdown:+z.1f}"])
    table = columns(*without_empty(headers, lines))
    return f"\n\nMeasured at further configurations:\n{table}" if lines else ""


def _costs(advice: Advice) -> list[str]:
    """The headers of what an operating point costs."""
    best = advice.whole_run.best
    costs = {"time ms": best.time_ms, "power W": best.power_w, "energy mJ": best.energy_mj}
    return [header for header, cost in costs.items() if cost is not None]


def _cells(point: OperatingPoint) -> list[str]:
    costs = (point.time_ms, point.power_w, point.energy_mj)
    return setting_cells(point.config) + [number(cost) for cost in costs if cost is not None]
