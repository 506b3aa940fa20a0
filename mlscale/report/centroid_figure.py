"""The centroids of wu's clusters as pictures: a panel for each cluster, PNG and SVG."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.predictors.wu.surfaces import ClusterSurfaces
from mlscale.report.style import AXIS_LABELS, MARKERS, legend_below, new_figure, save_figure

_COLUMNS = 4


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
    across, lines = sorted(AXES, key=lambda axis: -len(getattr(region.grid, axis)))[:2]
    steps, of_lines = getattr(region.grid, across), getattr(region.grid, lines)
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(of_lines)))
    order = [AXES.index(across), AXES.index(lines)]
    count = len(region.factors)
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    figure = new_figure(2.5 * columns + 1, 2.2 * rows + 1.6, title, fontsize=10)
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for panel in panels[count:]:
        panel.set_visible(False)
    for k, panel in enumerate(panels[:count]):
        values = np.moveaxis(region.factors[k], order, (0, 1)).reshape(len(steps), -1)
        _draw(panel, np.array(steps), values, shades)
        kernels = "" if region.kernels is None else f", {_kernels(len(region.kernels[k]))}"
        panel.set_title(f"cluster {k + 1}{kernels}", fontsize=9)
        if k + columns >= count:
            panel.set_xlabel(AXIS_LABELS[across], fontsize=8)
            panel.tick_params(labelbottom=True)
    panels[0].set_yscale("log")  # so that a factor is as high everywhere
    panels[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].yaxis.set_minor_locator(NullLocator())
    figure.supylabel(f"{quantity}, times the base's", fontsize=9)
    if len(of_lines) > 1:
        name = AXIS_LABELS[lines].partition(" [")[0]
        handles = [
            Line2D([], [], color=shade, marker=marker, ms=4, label=f"{name} {step:g} MHz")
            for step, shade, marker in zip(of_lines, shades, _markers(len(of_lines)), strict=True)
        ]
        legend_below(figure, handles, min(4, len(handles)))
    return figure


def _draw(panel: Axes, steps: Floats, values: Floats, shades: Floats) -> None:
    panel.axhline(1, color="grey", linewidth=0.6)
    for line, shade, marker in zip(values.T, shades, _markers(len(shades)), strict=True):
        panel.plot(steps, line, color=shade, marker=marker, ms=3, linewidth=1)
    panel.tick_params(labelsize=7)
    panel.grid(visible=True, alpha=0.3)


def _markers(count: int) -> list[str]:
    return [MARKERS[n % len(MARKERS)] for n in range(count)]


def _kernels(count: int) -> str:
    return f"{count} kernel{'' if count == 1 else 's'}"
