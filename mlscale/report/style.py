"""How figures look, and how they are written: sizes, colours, axes, keys.

Colours are told apart by colour-blind readers, and never the only sign.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.arrays import Floats, Mask
from mlscale.files import whole_file

MARKERS = "osD^vP*X"
# Okabe and Ito, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
COLOUR_MAP = "cividis"  # even in lightness, the same to colour-blind readers
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


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Return a figure of that size [inches] that needs no display, with a title alone."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def one_panel(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """A figure of that size [inches] with a title and one panel."""
    figure = new_figure(width, height, title)
    return figure, figure.subplots()


def panels_in_rows(
    title: str,
    count: int,
    columns: int,
    each: tuple[float, float],
    beside: tuple[float, float],
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, at most `columns` in a row.

    each: width and height of a panel, beside: of what stands beside them all [inches]; sharex and
    sharey: as in matplotlib.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(each[0] * columns + beside[0], each[1] * rows + beside[1], title)
    grid = figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    panels = list(grid.flat)
    for panel in panels[count:]:
        panel.set_visible(False)
    return figure, panels[:count]


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


def shades(count: int) -> list[tuple[str, str]]:
    """A colour and a marker for each of so many steps, dark to light."""
    colours = colormaps["viridis"](np.linspace(0, 0.85, count))
    return [(to_hex(one), MARKERS[n % len(MARKERS)]) for n, one in enumerate(colours)]


@cache
def ink(fill: str) -> str:
    """Return black or white, whichever contrasts more with a colour (WCAG 2.1, section 1.4.3)."""
    channels = np.array([int(fill[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"


def factor_axis(panel: Axes, *ticks: float) -> None:
    """A logarithmic axis upwards, so that a factor is as high everywhere; ticks: in a decade."""
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=ticks))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_locator(NullLocator())


def error_axis(panel: Axes, label: str = "mean absolute percentage error [%]") -> None:
    """An axis upwards from 0, with lines across."""
    panel.set_ylabel(label)
    panel.set_ylim(bottom=0)
    panel.grid(visible=True, axis="y", alpha=0.3)


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
