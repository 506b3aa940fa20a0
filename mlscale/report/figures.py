"""Pictures of surfaces, drawn with matplotlib without a display."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.files import whole_file

MARKERS = "osD^vP*X"
# Okabe and Ito, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
AXIS_LABELS = {
    "cu_count": "CU count",
    "engine_mhz": "engine clock [MHz]",
    "memory_mhz": "memory clock [MHz]",
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size [inches] that needs no display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg; the same figure gives the same files. Raises InputError."""
    written = []
    for kind in ("png", "svg"):
        path = stem.with_name(f"{stem.name}.{kind}")
        metadata = {"Date": None} if kind == "svg" else {}
        with whole_file(path) as temporary, rc_context({"svg.hashsalt": "mlscale"}):
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
        written.append(path)
    return written


def draw_surface(
    path: Path,
    title: str,
    grid: ConfigGrid,
    base: HardwareConfig,
    predicted_ms: Floats,
    actual_ms: Floats,
) -> None:
    """Time against engine clock: a panel for each CU count, a colour for each memory clock.

    predicted_ms and actual_ms: (C, E, M) [ms]; predicted dashed, actual solid with markers, the
    base ringed. Writes a PNG. Raises InputError where it cannot be written.
    """
    panels = len(grid.cu_count)
    memory = [
        (clock, colour, MARKERS[m % len(MARKERS)])
        for m, (clock, colour) in enumerate(zip(grid.memory_mhz, _shades(grid), strict=True))
    ]
    figure = new_figure(2.6 * panels + 1.2, 4.4)
    axes = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    for c, (panel, cu_count) in enumerate(zip(axes, grid.cu_count, strict=True)):
        for m, (_, colour, marker) in enumerate(memory):
            panel.plot(grid.engine_mhz, actual_ms[c, :, m], color=colour, marker=marker, ms=4)
            panel.plot(grid.engine_mhz, predicted_ms[c, :, m], color=colour, linestyle="--")
        if cu_count == base.cu_count:
            at_base = actual_ms[grid.index(base)]
            panel.plot(base.engine_mhz, at_base, "o", ms=12, mfc="none", mec="black")
        panel.set_title(f"{cu_count} CUs", fontsize=10)
        panel.set_xlabel("engine clock [MHz]")
        panel.set_xticks(grid.engine_mhz)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("kernel time [ms]")
    axes[0].set_ylim(bottom=0)
    figure.suptitle(title, fontsize=11)
    handles = [
        Line2D([], [], color=colour, marker=marker, label=f"memory {clock:g} MHz")
        for clock, colour, marker in memory
    ]
    handles += [
        Line2D([], [], color="grey", label="actual"),
        Line2D([], [], color="grey", linestyle="--", label="predicted"),
        Line2D([], [], linestyle="", marker="o", ms=10, mfc="none", mec="black", label="base"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=8)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)


def _shades(grid: ConfigGrid) -> Floats:
    """A colour for each memory clock, dark to light, told apart by colour-blind readers."""
    return np.asarray(colormaps["viridis"](np.linspace(0, 0.85, len(grid.memory_mhz))))
