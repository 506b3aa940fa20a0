"""The sections of a kernel: its surfaces, the decision to take, its counters and flags."""

import numpy as np

from mlscale.advice.objectives import objective_values, saving_percent
from mlscale.counters.roofline import meaning, readable
from mlscale.data.grid import AXES
from mlscale.model.predictions import ABOVE_LIMIT, COVERAGE
from mlscale.report.charts import ChartCurve, axis_chart, chart, front_chart, front_table
from mlscale.report.heat_map import HeatMap
from mlscale.report.kernel_report import KernelReport
from mlscale.report.markup import (
    Child,
    Markup,
    bullets,
    config_in_words,
    cu_in_words,
    element,
    folded,
    joined,
    name,
    paragraph,
    part,
    row,
    soft,
    table,
    times,
)
from mlscale.studies.figures import AXIS_LABELS
from mlscale.text import number

WITHOUT_COUNTERS = (
    "The profile has no counters of this kernel, only its time; the flags say what is taken for "
    "its surfaces."
)
_MOST_MAPS = 4
_OBJECTIVES = {
    "time": "shortest time",
    "energy": "lowest energy",
    "edp": "lowest EDP",
    "ed2p": "lowest ED2P",
    "power": "lowest power",
}


def heat_maps(report: KernelReport) -> Markup:
    """A heat map for each quantity and CU count."""
    maps = []
    for quantity, values in report.quantities.items():
        unit, index = report.units[quantity], report.best(quantity)
        heat_map = HeatMap(quantity.capitalize(), unit, report.grid, values, report.base, index)
        best = (
            f"Best: {number(values[index], 3)} {unit}, {times(report.factors(quantity)[index])}"
            f" of the base, at {config_in_words(report.grid.config(index))}."
        )
        heading = element("h4", f"{heat_map.name} [{unit}]")
        columns, clocks = len(heat_map.shown_engines), len(report.grid.engine_mhz)
        if columns < clocks:
            best += f" {columns} of {clocks} engine clocks are shown; the table below has all."
        shown = joined(heading, paragraph(best), heat_map.legend(), _maps(heat_map))
        maps.append(element("div", shown, class_="quantity"))
    return part(
        "Surfaces",
        soft(
            "Each cell is one configuration: the predicted value and, below it, its multiple of "
            "the value at the base. The base has a solid frame, the lowest value that may be set "
            "(best) a dashed one."
        ),
        _of_best(report),
        row(*maps),
    )


def _maps(heat_map: HeatMap) -> Markup:
    """A map for each CU count; of many, those with base and best, the others folded away."""
    counts = heat_map.grid.cu_count
    maps = []
    for c in range(len(counts)):
        caption = element("figcaption", cu_in_words(heat_map.grid.config((c, 0, 0))))
        figure = element("figure", caption, heat_map.at_cu_count(c))
        maps.append(element("div", figure, class_="scroll"))
    if len(counts) <= _MOST_MAPS:
        return row(*maps)
    first = sorted({heat_map.base[0], heat_map.best[0]})
    others = [c for c in range(len(counts)) if c not in first]
    summary = f"{heat_map.name} at {len(others)} further {heat_map.grid.cu_axis or 'CU counts'}"
    others_shown = folded(summary, row(*(maps[c] for c in others)))
    return joined(row(*(maps[c] for c in first)), others_shown)


def axis_curves(report: KernelReport) -> Markup:
    """A chart for each axis with more than one step, through the base."""
    heading = "Along each axis through the base"
    steps = {axis: getattr(report.grid, axis) for axis in AXES}
    if all(len(of_axis) == 1 for of_axis in steps.values()):
        return part(heading, paragraph("The grid has one configuration; there are no curves."))
    charts, fixed, cus = [], [], report.grid.cu_axis or "compute units"
    for a, axis in enumerate(AXES):
        label = cus if axis == "cu_count" else AXIS_LABELS[axis]
        if len(steps[axis]) == 1:
            fixed.append(f"{label}: {steps[axis][0]:g} only")
            continue
        curves = [_curve(report, quantity, a) for quantity in report.quantities]
        title = f"{', '.join(report.quantities)} relative to the base along {label}"
        figure = axis_chart(label, steps[axis], report.base[a], curves)
        charts.append(chart(label, figure, title, f"{report.name!a} {axis}"))
    bands = f"Bands: {100 * COVERAGE:g} % intervals, as the model gives them."
    if report.run.is_bounded:
        bands = f"Bands: of time its bounds, of power {100 * COVERAGE:g} % intervals."
    return part(
        heading,
        row(*charts),
        soft(bands) if report.intervals else None,
        _of_limit(report),
        paragraph(f"Not varied in this model's grid: {'; '.join(fixed)}.") if fixed else None,
    )


def _curve(report: KernelReport, quantity: str, axis: int) -> ChartCurve:
    """A quantity relative to the base along one axis, the other two at the base."""
    cut: list[int | slice] = list(report.base)
    cut[axis] = slice(None)
    surfaces = (report.factors(quantity), *report.interval_factors(quantity))
    return ChartCurve(quantity, *(surface[tuple(cut)] for surface in surfaces))


def pareto(report: KernelReport) -> Markup:
    """Time against energy, and the configurations that no other beats in both."""
    heading = "Time against energy"
    if report.missing_quantities:
        return part(heading, paragraph(report.missing_quantities))
    time, energy = (report.quantities[q].ravel() for q in ("time", "energy"))
    front = report.front.ravel()
    base = int(np.ravel_multi_index(report.base, report.grid.shape))
    names = [
        config_in_words(config) + (" (base)" if i == base else "")
        for i, config in enumerate(report.grid)
    ]
    title = "energy against time of every configuration, with the Pareto front"
    units = (report.units["time"], report.units["energy"])
    figure = front_chart(time, energy, front, base, None, units)
    caption = "Every configuration; the line joins the Pareto front, the diamond is the base"
    return part(
        heading,
        paragraph(
            f"{front.sum()} of {len(names)} configurations are on the front: no other is both "
            f"as quick and as frugal. The base is {'' if front[base] else 'not '}one of them."
        ),
        _of_best(report),
        row(
            chart(caption, figure, title, f"{report.name!a} front"),
            front_table(names, time, energy, front, base, units),
        ),
    )


def best(report: KernelReport) -> Markup:
    """The best configuration under each objective, and what it saves against the base."""
    needed = {"time": "time", "power": "power"}
    possible = [name for name in _OBJECTIVES if needed.get(name, "energy") in report.quantities]
    headers = ["objective", "best configuration", "saving"]
    headers += [f"{quantity} {report.units[quantity]}" for quantity in report.quantities]
    without = "Without limits; --max-power, --max-time and --max-slowdown set some."
    if report.run.limits.words():
        without = "Without the limits of the run: the table of kernels has the best within them."
    return part(
        "Best configurations",
        soft(
            f"{without} The saving is in the objective itself, against the base; EDP is energy x "
            "time, ED2P energy x time^2."
        ),
        _of_best(report),
        table(headers, [_best_row(report, objective) for objective in possible], words=(0, 1)),
        paragraph(report.missing_quantities) if report.missing_quantities else None,
    )


def _of_limit(report: KernelReport) -> Markup | None:
    return soft(report.limit_note) if report.limit_note else None


def _of_best(report: KernelReport) -> Markup | None:
    """What does not count as the best, and why."""
    notes = [note for note in (report.memory_note, report.limit_note) if note]
    return soft(" ".join(notes)) if notes else None


def _best_row(report: KernelReport, objective: str) -> list[Child]:
    """The configuration, the saving, and the quantities there."""
    index = report.best(objective)
    values = objective_values(objective, report.quantities["time"], report.quantities.get("power"))
    config = config_in_words(report.grid.config(index)) + (
        " (base)" if index == report.base else ""
    )
    saving = float(saving_percent(values[index], values[report.base]))
    quantities = [number(of_quantity[index]) for of_quantity in report.quantities.values()]
    return [_OBJECTIVES[objective], config, f"{saving:z.1f} %", *quantities]


def counters(report: KernelReport) -> Markup:
    """Every counter of the kernel's profile, folded away."""
    if not report.has_counters:
        return part("Counters", paragraph(WITHOUT_COUNTERS))
    rows: list[list[Child]] = [
        [
            name(counter),
            readable(counter, value),
            meaning(counter),
            "yes" if counter in report.counters_used else "not as it is",
        ]
        for counter, value in report.counters.items()
    ]
    return part(
        "Counters",
        folded(
            f"All {len(report.counters)} counters of the profile",
            table(["counter", "value", "what it is", "looked at"], rows, words=(0, 2, 3), long=2),
        ),
    )


def extrapolation(report: KernelReport) -> Markup:
    """What lies outside the training data, and the flags that `predict` prints."""
    flags = joined(
        paragraph("Flags, as predict prints them:"), bullets([*map(str, report.advice.flags)])
    )
    beyond = "none is interpolated or outside it"
    if report.trained_range is not None:
        beyond = f"those outside {report.trained_range.bounds} are extrapolated"
        beyond += "" if report.run.is_bounded else ", with wider intervals"
    own = paragraph("A kernel of this name is among the training kernels.")
    return part(
        "What is extrapolated",
        flags if report.advice.flags else paragraph("Flags: none."),
        paragraph(
            f"All {report.grid.size} configurations shown are steps of the model's grid; {beyond}."
        ),
        own if report.was_trained_on else None,
    )


def every_configuration(report: KernelReport) -> Markup:
    """All numbers as one table, folded away."""
    headers = [report.grid.cu_axis or "compute units", "engine MHz", "memory MHz"]
    columns: list[list[str]] = [[f"{getattr(c, axis):g}" for c in report.grid] for axis in AXES]
    for quantity, values in report.quantities.items():
        unit = report.units[quantity]
        headers += [f"{quantity} {unit}", f"{quantity} to base"]
        columns.append([number(v) for v in values.flat])
        columns.append([times(v) for v in report.factors(quantity).flat])
        if quantity in report.intervals:
            headers += [f"low {unit}", f"high {unit}"]
            columns += [[number(v) for v in end.flat] for end in report.intervals[quantity]]
    if report.limit_note:
        headers.append("note")
        columns.append(["" if of else ABOVE_LIMIT for of in report.is_supplied.flat])
    return folded(
        f"All {report.grid.size} configurations as a table",
        table(headers, list(zip(*columns, strict=True)), words=()),
    )
