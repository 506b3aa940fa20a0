"""Figures: new ones, and quantities over an axis with their bands, for `plot` in Python."""

import io
import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import extra_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXIS_LABELS = {
    "cu_count": "CU count",
    "engine_mhz": "engine clock [MHz]",
    "memory_mhz": "memory clock [MHz]",
}
TITLE_WIDTH = 60  # characters


@extra_named("a figure")
def new_figure(width: float, height: float, title: str = "") -> "Figure":
    """A figure of that size [inches] that needs no display, with a title alone.

    A notebook shows it by itself.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            png = io.BytesIO()
            self.savefig(png, format="png")
            return png.getvalue()

    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_curves(
    title: str,
    axis: str,
    steps: Floats,
    panels: Mapping[str, Mapping[str, Floats]],
    limit: float = math.inf,
    advised: float | None = None,
) -> "Figure":
    """A figure with a panel for each quantity over the steps (T,) of an axis, such as engine_mhz.

    The panels stand below one another, so that a phone shows them nearly in their size.

    panels: by label, with the unit, 'values' (T,) and, where there is a band, its 'low' and 'high'.
    limit: of the first panel's quantity. advised: a step to mark.
    """
    figure = new_figure(5.6, 0.6 + 2.4 * len(panels), textwrap.fill(title, TITLE_WIDTH))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    order = np.argsort(steps)
    marker = "." if len(steps) < 30 else ""
    for panel, (label, sides) in zip(axes, panels.items(), strict=True):
        curve = {name: side[order] for name, side in sides.items()}
        panel.plot(steps[order], curve["values"], color="#0072B2", marker=marker)
        if "low" in curve:
            band = {"color": "#0072B2", "alpha": 0.2, "lw": 0, "label": "90 %"}
            panel.fill_between(steps[order], curve["low"], curve["high"], **band)
        if advised is not None:
            panel.axvline(advised, color="#009E73", label="advised")
        panel.set_ylabel(label, fontsize=9)
        panel.tick_params(labelsize=9)
        panel.grid(visible=True, alpha=0.3)
    axes[-1].set_xlabel(AXIS_LABELS[axis], fontsize=9)
    if math.isfinite(limit):
        axes[0].axhline(limit, color="#D55E00", linestyle="--", label="limit")
    if advised is not None:
        axes[0].legend(fontsize=9)
    return figure
