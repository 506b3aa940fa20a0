"""The sections of a kernel: its surfaces, the decision to take, and what a prediction rests on."""

import numpy as np

from mlscale.advice.objectives import objective_values, saving_percent
from mlscale.counters.words import meaning, readable
from mlscale.data.grid import AXES
from mlscale.predictions import ABOVE_LIMIT, COVERAGE
from mlscale.predictors.features import ClusterChoice, Explanation
from mlscale.report.charts import (
    ChartCurve,
    axis_chart,
    chart,
    front_chart,
    front_table,
    range_bar,
)
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
    names,
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
_NEIGHBOURS = 5
_MEMBERS = 6
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
    for c, cu_count in enumerate(counts):
        caption = element("figcaption", cu_in_words(cu_count))
        figure = element("figure", caption, heat_map.at_cu_count(c))
        maps.append(element("div", figure, class_="scroll"))
    if len(counts) <= _MOST_MAPS:
        return row(*maps)
    first = sorted({heat_map.base[0], heat_map.best[0]})
    others = [c for c in range(len(counts)) if c not in first]
    summary = f"{heat_map.name} at {len(others)} further CU counts"
    others_shown = folded(summary, row(*(maps[c] for c in others)))
    return joined(row(*(maps[c] for c in first)), others_shown)


def axis_curves(report: KernelReport) -> Markup:
    """A chart for each axis with more than one step, through the base."""
    heading = "Along each axis through the base"
    steps = {axis: getattr(report.grid, axis) for axis in AXES}
    if all(len(of_axis) == 1 for of_axis in steps.values()):
        return part(heading, paragraph("The grid has one configuration; there are no curves."))
    charts, fixed = [], []
    for a, axis in enumerate(AXES):
        label = "compute units" if axis == "cu_count" else AXIS_LABELS[axis]
        if len(steps[axis]) == 1:
            fixed.append(f"{label}: {steps[axis][0]:g} only")
            continue
        curves = [_curve(report, quantity, a) for quantity in report.quantities]
        title = f"{', '.join(report.quantities)} relative to the base along {label}"
        figure = axis_chart(label, steps[axis], report.base[a], curves)
        charts.append(chart(label, figure, title, f"{report.name!a} {axis}"))
    at_once = " in which time and power lie at once" if "power" in report.quantities else ""
    bands = f"Bands: {100 * COVERAGE:g} % intervals{at_once}, as the model gives them."
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
    """The kernel's features against the training range, and the counters of its profile."""
    heading = "Counters against the training range"
    if not report.has_counters:
        return part(heading, paragraph(WITHOUT_COUNTERS))
    explanation = report.explanations.get("time")
    if explanation is None:
        text = "This predictor looks at no counters, or does not say which."
        return part(heading, paragraph(text), _all_counters(report))
    rows = [_feature_row(report, explanation, f) for f in range(len(explanation.names))]
    headers = ["feature", "in the range", "this kernel", "lowest trained", "highest trained"]
    return part(
        heading,
        soft(
            f"{len(rows)} features of the kind '{explanation.kind}', computed from the profile. "
            "The bar is the range over the training kernels, the dot this kernel; an arrow: "
            "outside the range, where no training kernel tells what happens."
        ),
        table([*headers, "note"], rows, words=(0, 1, 5), long=5),
        _all_counters(report),
    )


def _all_counters(report: KernelReport) -> Markup | None:
    """Every counter of the profile, folded away."""
    if not report.counters:
        return None
    rows: list[list[Child]] = [
        [
            name(counter),
            readable(counter, value),
            meaning(counter),
            "yes" if counter in report.counters_used else "not as it is",
        ]
        for counter, value in report.counters.items()
    ]
    return folded(
        f"All {len(report.counters)} counters of the profile",
        table(["counter", "value", "what it is", "looked at"], rows, words=(0, 2, 3), long=2),
    )


def _feature_row(report: KernelReport, explanation: Explanation, f: int) -> list[Child]:
    feature, kernel = explanation.names[f], report.position
    value = float(explanation.values[kernel, f])
    low, high = float(explanation.minimum[f]), float(explanation.maximum[f])
    status = str(report.feature_status.get(feature, ""))
    notes = [] if status in ("", "exact") else [f"{status} by the profiler"]
    share = None
    if np.isnan(value):
        stand_in = low + explanation.points[kernel, f] * (high - low)
        notes.insert(0, f"missing, taken as {readable(feature, stand_in)}")
    elif low == high:
        share = 0.5 if value == low else float(np.copysign(2, value - low))
        notes += [] if value == low else ["differs from the one trained value"]
    else:
        share = (value - low) / (high - low)
        if not 0 <= share <= 1:
            side, excess = ("below", -share) if share < 0 else ("above", share - 1)
            notes.insert(0, f"{side} the range by {100 * excess:.3g} % of it")
    if words := meaning(feature):
        notes.append(words)
    values = (readable(feature, each) for each in (value, low, high))
    return [name(feature), range_bar(feature, share), *values, "; ".join(notes)]


def neighbours(report: KernelReport) -> Markup:
    """The nearest training kernels, and the clusters that were chosen."""
    explanation = report.explanations.get("time")
    clusters = any(each.choices for each in report.explanations.values())
    heading = f"Nearest training kernels{' and clusters' if clusters else ''}"
    if explanation is None:
        return part(heading, paragraph("This predictor has none to show."))
    parts = [_nearest(explanation, report.position)]
    if not clusters:
        parts.append(paragraph("This predictor sorts kernels into no clusters."))
    for quantity, each in report.explanations.items():
        if each.choices:
            rows = [_cluster_row(each, choice, report.position) for choice in each.choices]
            headers = ["region", "cluster", "training kernels that are given the same cluster"]
            parts.append(element("h4", f"Clusters chosen for {quantity}"))
            parts.append(table(headers, rows, words=(0, 1, 2), long=2))
    return part(heading, *parts)


def _nearest(explanation: Explanation, position: int) -> Markup:
    near = explanation.nearest(position, _NEIGHBOURS)
    if not near:
        return paragraph(
            "The model file does not keep the training kernels' features, so the nearest "
            "ones cannot be named; a model trained with this version keeps them."
        )
    usual = explanation.usual_distance()
    text = "Distance in the features above, each scaled to 0 to 1 by its training range."
    if usual is not None:
        text += f" Between training kernels the nearest other is {number(usual, 3)} away (median)."
    rows = [[name(kernel), number(round(distance, 9), 3)] for kernel, distance in near]
    return joined(soft(text), table(["training kernel", "distance"], rows))


def _cluster_row(explanation: Explanation, choice: ClusterChoice, kernel: int) -> list[Child]:
    cluster = int(choice.chosen[kernel])
    members: Child = "not kept in the model file"
    if explanation.training is not None:
        positions = np.flatnonzero(choice.training == cluster)
        kernels = [explanation.training.kernels[n] for n in positions]
        members = names(kernels, _MEMBERS) if kernels else "none"
    return [choice.region, f"{cluster + 1} of {choice.count}", members]


def extrapolation(report: KernelReport) -> Markup:
    """What lies outside the training data, and the flags that `predict` prints."""
    inside = "every feature lies inside the training range" if report.explanations else "none"
    flags = joined(paragraph("Flags, as predict prints them:"), bullets(report.advice.flags))
    beyond = "none is interpolated or outside it"
    if report.trained_range is not None:
        beyond = f"those outside {report.trained_range.bounds} are extrapolated"
        beyond += "" if report.run.is_bounded else ", with wider intervals"
    own = paragraph("A kernel of this name is among the training kernels.")
    return part(
        "What is extrapolated",
        flags if report.advice.flags else paragraph(f"Flags: {inside}."),
        paragraph(
            f"All {report.grid.size} configurations shown are steps of the model's grid; {beyond}."
        ),
        own if report.was_trained_on else None,
    )


def every_configuration(report: KernelReport) -> Markup:
    """All numbers as one table, folded away."""
    headers = ["compute units", "engine MHz", "memory MHz"]
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
