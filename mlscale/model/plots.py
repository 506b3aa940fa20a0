"""Figures: new ones, and curves over an axis with their bands, for `plot` in Python."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import extra_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXIS_LABELS = {
    "cu_count": "CU count",
    "engine_mhz": "engine clock [MHz]",
    "memory_mhz": "memory clock [MHz]",
}


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity (T,) over the steps of an axis, such as engine_mhz; low, high: None for no band.

    label: of the quantity, with its unit. limit: of it, None for no line.
    """

    axis: str
    steps: Floats
    label: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    limit: float | None = None


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


def draw_curves(title: str, curves: Sequence[Curve], advised: float | None = None) -> "Figure":
    """A figure with a panel for each curve; advised: a step to mark."""
    figure = new_figure(0.6 + 3.6 * len(curves), 3.4, title)
    for panel, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        _draw(panel, curve)
        if advised is not None:
            panel.axvline(advised, color="#009E73", label="advised")
        if advised is not None or curve.limit is not None:
            panel.legend(fontsize=9)
    return figure


def _draw(panel: "Axes", curve: Curve) -> None:
    order = np.argsort(curve.steps, kind="stable")
    steps = curve.steps[order]
    panel.plot(steps, curve.values[order], color="#0072B2", marker="." if len(steps) < 30 else "")
    if curve.low is not None and curve.high is not None and np.isfinite(curve.low).any():
        low, high = curve.low[order], curve.high[order]
        panel.fill_between(steps, low, high, color="#0072B2", alpha=0.2, lw=0, label="90 %")
    if curve.limit is not None:
        panel.axhline(curve.limit, color="#D55E00", linestyle="--", label="limit")
    panel.set_xlabel(AXIS_LABELS[curve.axis], fontsize=9)
    panel.set_ylabel(curve.label, fontsize=9)
    panel.tick_params(labelsize=9)
    panel.grid(visible=True, alpha=0.3)
