"""How the figures of studies and papers look, and how they are written."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

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
