"""The picture of a kernel over CU count and clocks: predicted with intervals, beside the truth."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.data.surfaces import absolute_values
from mlscale.files import whole_file
from mlscale.predictions import Predictions
from mlscale.report.style import MARKERS, legend_below, new_figure


def draw_surface(
    path: Path, title: str, predictions: Predictions, true_ms: Floats, origin: str
) -> None:
    """Write a PNG of the first kernel's time. Raises InputError where it cannot be written.

    true_ms: (C, E, M) [ms]; origin: how it was got, 'measured' or 'simulated', the name of its
    lines in the legend.
    """
    figure = surface_figure(title, predictions, true_ms, origin)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)


def surface_figure(title: str, predictions: Predictions, true_ms: Floats, origin: str) -> Figure:
    """Time against engine clock: a panel for each CU count, a colour for each memory clock.

    The truth is solid with markers, the prediction dashed in the band of its interval, the base
    ringed.
    """
    grid, base = predictions.grid, predictions.base
    memory = [
        (clock, colour, MARKERS[m % len(MARKERS)])
        for m, (clock, colour) in enumerate(zip(grid.memory_mhz, _shades(grid), strict=True))
    ]
    panels = len(grid.cu_count)
    figure = new_figure(2.6 * panels + 1.2, 4.4, title)
    axes = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    ends = _interval_ms(predictions)
    for c, (panel, cu_count) in enumerate(zip(axes, grid.cu_count, strict=True)):
        for m, (_, colour, marker) in enumerate(memory):
            if ends:
                low, high = (end[c, :, m] for end in ends)
                panel.fill_between(grid.engine_mhz, low, high, color=colour, alpha=0.15, lw=0)
            panel.plot(grid.engine_mhz, true_ms[c, :, m], color=colour, marker=marker, ms=4)
            predicted_ms = predictions.time_ms[0, c, :, m]
            panel.plot(grid.engine_mhz, predicted_ms, color=colour, linestyle="--")
        if cu_count == base.cu_count:
            at_base = true_ms[grid.index(base)]
            panel.plot(base.engine_mhz, at_base, "o", ms=12, mfc="none", mec="black")
        _describe(panel, cu_count, grid)
    axes[0].set_yscale("log")  # so that a factor is as high everywhere
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel("kernel time [ms]")
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker=marker, label=f"memory {clock:g} MHz")
        for clock, colour, marker in memory
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


def _interval_ms(predictions: Predictions) -> tuple[Floats, Floats] | None:
    """Return both ends of the first kernel's time (C, E, M) [ms]; None without intervals."""
    surfaces, at_base = predictions["time"], predictions.profiles.quantity("time")
    if surfaces.low is None or surfaces.high is None:
        return None
    return absolute_values(surfaces.low, at_base)[0], absolute_values(surfaces.high, at_base)[0]


def _describe(panel: Axes, cu_count: int, grid: ConfigGrid) -> None:
    panel.set_title(f"{cu_count} CUs", fontsize=10)
    panel.set_xlabel("engine clock [MHz]")
    panel.set_xticks(grid.engine_mhz)
    panel.tick_params(axis="x", labelsize=8)
    panel.grid(visible=True, alpha=0.3)


def _shades(grid: ConfigGrid) -> Floats:
    """Return a colour for each memory clock, dark to light, told apart by colour-blind readers."""
    return np.asarray(colormaps["viridis"](np.linspace(0, 0.85, len(grid.memory_mhz))))
