"""How the figures of studies and papers look, and how they are written.

Colours are told apart by colour-blind readers, and never the only sign.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mlscale.arrays import Floats, Mask
from mlscale.files import whole_file

MARKERS = "osD^vP*X"
# Okabe and Ito, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
AXIS_LABELS = {
    "cu_count": "CU count",
    "engine_mhz": "engine clock [MHz]",
    "memory_mhz": "memory clock [MHz]",
}
HATCH = "//"
DPI = 150


def with_origin(table: str, origin: str | None) -> str:
    """The name of a table for a heading; data that were not measured are called so.

    origin: 'made', 'simulated', 'measured', or None where the table does not say.
    """
    return f"{table} ({origin} data, not measured)" if origin in ("made", "simulated") else table


def new_figure(width: float, height: float, title: str = "", fontsize: int = 11) -> Figure:
    """Return a figure of that size [inches] that needs no display, with a title alone."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=fontsize)
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg; the same figure gives the same files. Raises InputError."""
    written = []
    _lay_out(figure)
    for kind in ("png", "svg"):
        path = stem.with_name(f"{stem.name}.{kind}")
        metadata = {"Date": None} if kind == "svg" else {}
        with whole_file(path) as temporary, rc_context({"svg.hashsalt": "mlscale"}):
            figure.savefig(temporary, format=kind, dpi=DPI, metadata=metadata)
        written.append(path)
    return written


def _lay_out(figure: Figure) -> None:
    """Place the panels once and for all: else each file places them anew and draws twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.dpi = DPI
        engine.execute(figure)
        figure.set_layout_engine(None)


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int) -> None:
    """Draw the key to a whole figure, below its panels."""
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8)


def bars_with_values(
    panel: Axes,
    rows: Floats,
    values: Sequence[float] | Floats,
    colours: Sequence[str] | str,
    hatched: Sequence[bool] | Mask,
    height: float = 0.75,
) -> None:
    """Horizontal bars at heights of the panel, the value beside each to three digits or so."""
    hatches = [HATCH if one else "" for one in hatched]
    bars = panel.barh(rows, values, height=height, color=colours, hatch=hatches, edgecolor="white")
    texts = [f"{value:.{1 if abs(value) < 100 else 0}f}" for value in values]
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    panel.bar_label(bars, texts, fontsize=8, padding=3, bbox=white)


def name_rows(panel: Axes, names: Sequence[str], label: str, upwards: bool = True) -> Floats:
    """Name the rows of a panel of horizontal bars and its axis; where the rows are, (n,)."""
    rows = np.arange(len(names), dtype=np.float64)[:: 1 if upwards else -1]
    panel.set_yticks(rows, names, fontsize=8)
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.set_xlabel(label)
    panel.margins(x=0.12)
    panel.spines[["top", "right"]].set_visible(False)
    return rows
