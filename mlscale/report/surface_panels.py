"""Surfaces over two axes side by side: a panel each, a line for each step of the second axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlscale.arrays import Floats
from mlscale.report.style import AXIS_LABELS, MARKERS, legend_below, new_figure

_COLUMNS = 4

Steps = tuple[str, Sequence[float]]  # an axis and its steps


def surface_panels(
    title: str, label: str, surfaces: Mapping[str, Floats], across: Steps, lines: Steps
) -> Figure:
    """A panel for each named surface (steps across, steps of the lines); all share their axes.

    label: of the values. A horizontal line is at 1.
    """
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(lines[1])))
    looks = [(shade, MARKERS[n % len(MARKERS)]) for n, shade in enumerate(shades)]
    columns = min(_COLUMNS, len(surfaces))
    rows = -(-len(surfaces) // columns)
    figure = new_figure(2.5 * columns + 1.4, 2.2 * rows + 1.6, title, fontsize=10)
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for panel in panels[len(surfaces) :]:
        panel.set_visible(False)
    for k, (panel, (name, values)) in enumerate(zip(panels, surfaces.items(), strict=False)):
        _draw(panel, across[1], values, looks)
        panel.set_title(name, fontsize=9)
        if k + columns >= len(surfaces):
            panel.set_xlabel(AXIS_LABELS[across[0]], fontsize=8)
            panel.tick_params(labelbottom=True)
    figure.supylabel(label, fontsize=9)
    if len(lines[1]) > 1:
        handles = [
            Line2D([], [], color=shade, marker=marker, ms=4, label=with_unit(lines[0], step))
            for step, (shade, marker) in zip(lines[1], looks, strict=True)
        ]
        legend_below(figure, handles, min(4, len(handles)))
    return figure


def with_unit(axis: str, step: float) -> str:
    """Return a step of an axis for a reader, such as 'memory clock 700 MHz'."""
    name, _, unit = AXIS_LABELS[axis].partition(" [")
    return f"{name} {step:g} {unit.rstrip(']')}".rstrip()


def _draw(
    panel: Axes, steps: Sequence[float], values: Floats, looks: Sequence[tuple[Floats, str]]
) -> None:
    panel.axhline(1, color="grey", linewidth=0.6)
    for line, (shade, marker) in zip(values.T, looks, strict=True):
        panel.plot(steps, line, color=shade, marker=marker, ms=3, linewidth=1)
    panel.tick_params(labelsize=7)
    panel.grid(visible=True, alpha=0.3)
