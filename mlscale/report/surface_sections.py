"""Sections on the surfaces: heat maps, curves along each axis, and every configuration."""

from collections.abc import Sequence

import numpy as np

from mlscale.advice.advise import COVERAGE
from mlscale.data.grid import AXES
from mlscale.report.blocks import line, spoken, table
from mlscale.report.charts import Line, curves, key_to_lines
from mlscale.report.heat_map import Surface, heat_map, legend
from mlscale.report.kernel_report import UNITS, Facts
from mlscale.report.markup import Child, Markup, element, joined
from mlscale.report.numbers import number, times

_MOST_MAPS = 4
_LABELS = {
    "cu_count": "compute units",
    "engine_mhz": "engine clock [MHz]",
    "memory_mhz": "memory clock [MHz]",
}


def heat_maps(facts: Facts) -> Markup:
    """A heat map for each quantity and CU count."""
    parts = [
        element("h3", "Surfaces"),
        line(
            "Each cell is one configuration: the predicted value and, below it, its multiple of "
            "the value at the base. The base has a solid frame, the lowest value of the whole grid "
            "(best) a dashed one.",
            kind="soft",
        ),
    ]
    for quantity, values in facts.quantities.items():
        unit = UNITS[quantity]
        surface = Surface(
            quantity.capitalize(), unit, facts.grid, values, facts.base, facts.best(quantity)
        )
        best = (
            f"Best: {number(values[surface.best], 3)} {unit}, "
            f"{times(values[surface.best] / values[surface.base])} of the base, at "
            f"{spoken(facts.config(surface.best))}."
        )
        parts += [element("h4", f"{surface.name} [{unit}]"), line(best), legend(surface)]
        parts.append(_maps(surface))
    return joined(*parts)


def _maps(surface: Surface) -> Markup:
    """A map for each CU count; of many, those with base and best, the others folded away."""
    counts = surface.grid.cu_count
    maps = [
        element("div", _captioned(cu, heat_map(surface, c)), class_="scroll")
        for c, cu in enumerate(counts)
    ]
    if len(counts) <= _MOST_MAPS:
        return element("div", *maps, class_="row")
    first = sorted({surface.base[0], surface.best[0]})
    others = [c for c in range(len(counts)) if c not in first]
    folded = element(
        "details",
        element("summary", f"{surface.name} at {len(others)} further CU counts"),
        element("div", *(maps[c] for c in others), class_="row"),
    )
    return joined(element("div", *(maps[c] for c in first), class_="row"), folded)


def _captioned(cu: int, picture: Markup) -> Markup:
    units = "compute unit" if cu == 1 else "compute units"
    return element("figure", element("figcaption", f"{cu} {units}"), picture)


def axis_curves(facts: Facts) -> Markup:
    """A chart for each axis with more than one step, through the base."""
    heading = element("h3", "Along each axis through the base")
    long = [a for a, axis in enumerate(AXES) if len(getattr(facts.grid, axis)) > 1]
    if not long:
        return joined(heading, line("The grid has one configuration; there are no curves."))
    charts = []
    lines: list[Line] = []
    for a in long:
        cut: list[int | slice] = list(facts.base)
        cut[a] = slice(None)
        lines = [
            _relative(facts, quantity, place, tuple(cut))
            for place, quantity in enumerate(facts.quantities)
        ]
        label = _LABELS[AXES[a]]
        steps = getattr(facts.grid, AXES[a])
        title = f"{', '.join(facts.quantities)} relative to the base along {label}"
        chart = curves(title, label, steps, facts.base[a], lines)
        charts.append(element("figure", element("figcaption", label), chart, class_="chart plot"))
    band = None
    if facts.intervals:
        band = line(f"Bands: {100 * COVERAGE:g} % intervals as the model gives them.", kind="soft")
    single = [
        f"{_LABELS[axis]}: {getattr(facts.grid, axis)[0]:g} only"
        for a, axis in enumerate(AXES)
        if a not in long
    ]
    note = line(f"Not varied in this model's grid: {'; '.join(single)}.") if single else None
    grid = element("div", *charts, class_="row")
    return joined(heading, key_to_lines(lines), grid, band, note)


def _relative(facts: Facts, quantity: str, place: int, cut: tuple[int | slice, ...]) -> Line:
    values = facts.quantities[quantity]
    base = values[facts.base]
    low, high = facts.intervals.get(quantity, (None, None))
    return Line(
        quantity,
        place,
        values[cut] / base,
        None if low is None else low[cut] / base,
        None if high is None else high[cut] / base,
    )


def every_configuration(facts: Facts) -> Markup:
    """All numbers as one table, folded away."""
    headers = ["compute units", "engine MHz", "memory MHz"]
    for quantity in facts.quantities:
        headers += [f"{quantity} {UNITS[quantity]}", f"{quantity} to base"]
        headers += [f"low {UNITS[quantity]}", f"high {UNITS[quantity]}"] * (
            quantity in facts.intervals
        )
    rows = [_row(facts, index) for index in np.ndindex(facts.grid.shape)]
    return element(
        "details",
        element("summary", f"All {facts.grid.size} configurations as a table"),
        table(headers, rows, words=()),
    )


def _row(facts: Facts, index: tuple[int, ...]) -> Sequence[Child]:
    c, e, m = index
    config = facts.config((c, e, m))
    cells: list[Child] = [f"{getattr(config, axis):g}" for axis in AXES]
    for quantity, values in facts.quantities.items():
        cells += [number(values[index]), times(values[index] / values[facts.base])]
        if quantity in facts.intervals:
            cells += [number(bound[index]) for bound in facts.intervals[quantity]]
    return cells
