"""The centroids of wu's clusters as pictures: a panel for each cluster, PNG and SVG."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.data.grid import AXES
from mlscale.predictors.wu.surfaces import ClusterSurfaces
from mlscale.report.style import save_figure
from mlscale.report.surface_panels import surface_panels
from mlscale.text import counted


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
    figure = surface_panels(title, f"{quantity}, times the base's", surfaces, across, lines)
    panel = figure.axes[0]
    panel.set_yscale("log")  # so that a factor is as high everywhere
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_locator(NullLocator())
    return figure
