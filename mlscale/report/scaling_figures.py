"""Scaling surfaces side by side: of measured kernels, as in Fig. 1 of Wu et al., and of clusters.

A panel for each surface, a line for each step of its second axis; PNG and SVG each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.data.measurements import Measurements
from mlscale.predictors.wu.surfaces import ClusterSurfaces
from mlscale.report.style import (
    AXIS_LABELS,
    MARKERS,
    legend_below,
    new_figure,
    save_figure,
    with_origin,
)
from mlscale.studies.scaling import speed_ups
from mlscale.text import counted, shortened

_COLUMNS = 4

Steps = tuple[str, Sequence[float]]  # an axis and its steps


def draw_scaling(
    folder: Path, table: str, data: Measurements, kernels: Sequence[int]
) -> list[Path]:
    """Draw the speed-up of these kernels, by position, a panel each; the files. InputError.

    CU count across where it varies, else the engine clock; a line for each memory clock, else for
    each engine clock. A third axis stays at its highest step.
    """
    long = [axis for axis in AXES if len(getattr(data.grid, axis)) > 1] or ["engine_mhz"]
    across, lines = long[0], long[-1] if len(long) > 1 else _another(long[0])
    shown = {across, lines}
    part = tuple(slice(None) if axis in shown else slice(-1, None) for axis in AXES)
    order = [AXES.index(across), AXES.index(lines)]
    rates = speed_ups(data)
    surfaces = {
        f"({chr(ord('a') + n)}) {shortened(data.kernels[k], 28)}": np.moveaxis(
            rates[k][part], order, (0, 1)
        )[:, :, 0]
        for n, k in enumerate(kernels)
    }
    fixed = [_with_unit(axis, getattr(data.grid, axis)[-1]) for axis in AXES if axis not in shown]
    heading = f"{with_origin(table, data.metadata.get('origin'))} on {data.device}"
    title = f"{heading}\nspeed-up over the lowest configuration, {', '.join(fixed)}"
    figure = _panels(
        title,
        "speed-up",
        surfaces,
        (across, getattr(data.grid, across)),
        (lines, getattr(data.grid, lines)),
    )
    return save_figure(figure, folder / f"fig1-scaling-{table}")


def _another(axis: str) -> str:
    return next(one for one in AXES if one != axis)


def draw_centroids(
    folder: Path, title: str, quantity: str, regions: tuple[ClusterSurfaces, ...]
) -> list[Path]:
    """Draw the centroids of every region, a picture each; the files. Raises InputError."""
    written = []
    for region in regions:
        figure = centroid_figure(f"{title}\n{quantity}: {region.region}", quantity, region)
        cu_counts = region.grid.cu_count
        part = f"{cu_counts[0]}-cus" if len(cu_counts) == 1 else "cu-axis"
        written += save_figure(figure, folder / f"centroids-{quantity}-{part}")
    return written


def centroid_figure(title: str, quantity: str, region: ClusterSurfaces) -> Figure:
    """A panel for each cluster: the quantity as a multiple of the base along the longest axis.

    Of two axes the other is a line for each of its steps.
    """
    longest = sorted(AXES, key=lambda axis: -len(getattr(region.grid, axis)))
    across, lines = ((axis, getattr(region.grid, axis)) for axis in longest[:2])
    order = [AXES.index(across[0]), AXES.index(lines[0])]
    surfaces = {}
    for k, factors in enumerate(region.factors):
        kernels = ""
        if region.kernels is not None:
            kernels = f", {counted(len(region.kernels[k]), 'kernel')}"
        values = np.moveaxis(factors, order, (0, 1)).reshape(len(across[1]), -1)
        surfaces[f"cluster {k + 1}{kernels}"] = values
    figure = _panels(title, f"{quantity}, times the base's", surfaces, across, lines)
    panel = figure.axes[0]
    panel.set_yscale("log")  # so that a factor is as high everywhere
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_locator(NullLocator())
    return figure


def _panels(
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
            Line2D([], [], color=shade, marker=marker, ms=4, label=_with_unit(lines[0], step))
            for step, (shade, marker) in zip(lines[1], looks, strict=True)
        ]
        legend_below(figure, handles, min(4, len(handles)))
    return figure


def _with_unit(axis: str, step: float) -> str:
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
