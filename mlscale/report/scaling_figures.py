"""Surfaces as panels of lines, one for each step of an axis.

Of measured kernels, as in Fig. 1 of Wu et al., of clusters, and of a kernel's prediction.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.data.surfaces import absolute_values
from mlscale.files import whole_file
from mlscale.predictions import Predictions
from mlscale.predictors.wu.clusters import ClusterSurfaces
from mlscale.report.style import (
    AXIS_LABELS,
    DPI,
    factor_axis,
    legend_below,
    panels_in_rows,
    save_figure,
    shades,
)
from mlscale.text import counted

_COLUMNS = 4

Steps = tuple[str, Sequence[float]]  # an axis and its steps


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
    factor_axis(figure.axes[0], 1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    return figure


def draw_surface(
    path: Path, title: str, predictions: Predictions, true_ms: Floats, origin: str
) -> None:
    """Write a PNG of the first kernel's time. Raises InputError where it cannot be written.

    true_ms: (C, E, M) [ms]; origin: how it was got, 'measured' or 'simulated', the name of its
    lines in the legend.
    """
    figure = surface_figure(title, predictions, true_ms, origin)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI)


def surface_figure(title: str, predictions: Predictions, true_ms: Floats, origin: str) -> Figure:
    """Time against engine clock: a panel for each CU count, a colour for each memory clock.

    The truth is solid with markers, the prediction dashed in the band of its interval, the base
    ringed.
    """
    grid, base, surfaces = predictions.grid, predictions.base, predictions["time"]
    engines, looks = grid.engine_mhz, shades(len(grid.memory_mhz))
    ends = [end for end in (surfaces.low, surfaces.high) if end is not None]
    at_base_ms = predictions.profiles.quantity("time")
    ends_ms = [absolute_values(end, at_base_ms)[0] for end in ends]
    columns = len(grid.cu_count)
    figure, panels = panels_in_rows(title, columns, columns, (2.6, 4.4), (1.2, 0), sharey=True)
    for c, (panel, cu_count) in enumerate(zip(panels, grid.cu_count, strict=True)):
        for m, (colour, marker) in enumerate(looks):
            if ends_ms:
                low, high = (end[c, :, m] for end in ends_ms)
                panel.fill_between(engines, low, high, color=colour, alpha=0.15, lw=0)
            panel.plot(engines, true_ms[c, :, m], color=colour, marker=marker, ms=4)
            panel.plot(engines, predictions.time_ms[0, c, :, m], color=colour, linestyle="--")
        if cu_count == base.cu_count:
            at_base = true_ms[grid.index(base)]
            panel.plot(base.engine_mhz, at_base, "o", ms=12, mfc="none", mec="black")
        panel.set_title(counted(cu_count, "CU"), fontsize=10)
        panel.set_xlabel("engine clock [MHz]")
        panel.set_xticks(engines)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(visible=True, alpha=0.3)
    factor_axis(panels[0], 1.0, 2.0, 5.0)
    panels[0].set_ylabel("kernel time [ms]")
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker=marker, label=f"memory {clock:g} MHz")
        for clock, (colour, marker) in zip(grid.memory_mhz, looks, strict=True)
    ]
    handles += [
        Line2D([], [], color="grey", label=origin),
        Line2D([], [], color="grey", linestyle="--", label="predicted"),
    ]
    if ends and predictions.coverage:
        interval = f"{100 * predictions.coverage:g} % interval"
        handles.append(Patch(color="grey", alpha=0.15, lw=0, label=interval))
    ring = Line2D([], [], linestyle="", marker="o", ms=10, mfc="none", mec="black", label="base")
    legend_below(figure, [*handles, ring], len(handles) + 1)
    return figure


def _panels(
    title: str, label: str, surfaces: Mapping[str, Floats], across: Steps, lines: Steps
) -> Figure:
    """A panel for each named surface (steps across, steps of the lines); all share their axes.

    label: of the values. A horizontal line is at 1.
    """
    looks = shades(len(lines[1]))
    figure, panels = panels_in_rows(
        title, len(surfaces), _COLUMNS, (2.5, 2.2), (1.4, 1.6), sharex=True, sharey=True
    )
    for k, (panel, (name, values)) in enumerate(zip(panels, surfaces.items(), strict=True)):
        panel.axhline(1, color="grey", linewidth=0.6)
        for line, (colour, marker) in zip(values.T, looks, strict=True):
            panel.plot(across[1], line, color=colour, marker=marker, ms=3, linewidth=1)
        panel.tick_params(labelsize=7)
        panel.grid(visible=True, alpha=0.3)
        panel.set_title(name, fontsize=9)
        if k + _COLUMNS >= len(panels):
            panel.set_xlabel(AXIS_LABELS[across[0]], fontsize=8)
            panel.tick_params(labelbottom=True)
    figure.supylabel(label, fontsize=9)
    if len(lines[1]) > 1:
        handles = [
            Line2D([], [], color=colour, marker=marker, ms=4, label=_with_unit(lines[0], step))
            for step, (colour, marker) in zip(lines[1], looks, strict=True)
        ]
        legend_below(figure, handles, min(4, len(handles)))
    return figure


def _with_unit(axis: str, step: float) -> str:
    """Return a step of an axis for a reader, such as 'memory clock 700 MHz'."""
    name, _, unit = AXIS_LABELS[axis].partition(" [")
    return f"{name} {step:g} {unit.rstrip(']')}".rstrip()
