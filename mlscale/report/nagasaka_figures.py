"""The figures of Nagasaka et al. 2010 from any table: Fig. 2 to 5, each as PNG and SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mlscale.report.wang_chu_figures import COLOURS, save

Floats = NDArray[np.float64]

_ACTUAL, _ESTIMATED = "#000000", "#999999"
_UNSEEN = COLOURS[1]
_BY_KERNEL, _BY_APPLICATION = COLOURS[4], COLOURS[0]
_NEGATIVE = COLOURS[1]
_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}


@dataclass(frozen=True)
class SetBars:
    """Fig. 2, one set of counters: errors by the grouping of the folds; baseline: no counters."""

    name: str
    error_percent: tuple[float, float]
    squared_w2: tuple[float, float]
    baseline: bool


def draw_sets(folder: Path, title: str, sets: Sequence[SetBars], stem: str) -> list[Path]:
    """Fig. 2: average squared error and error ratio of the sets of counters.

    Each pair of bars: folds by kernel, and by application. Returns the files. Raises InputError.
    """
    figure = Figure(figsize=(10, 1.5 + 0.42 * len(sets)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    rows = np.arange(len(sets))[::-1]
    squared, percent = figure.subplots(1, 2, sharey=True)
    colours = (_BY_KERNEL, _BY_APPLICATION)
    for panel, values, label, form in (
        (squared, [s.squared_w2 for s in sets], "average squared error [W²]", "%.3g"),
        (percent, [s.error_percent for s in sets], "average error ratio [%]", "%.1f"),
    ):
        for position, colour in enumerate(colours):
            bars = panel.barh(
                rows + 0.2 - 0.4 * position,
                [pair[position] for pair in values],
                height=0.38,
                color=colour,
                hatch=["//" if s.baseline else "" for s in sets],
                edgecolor="white",
            )
            panel.bar_label(bars, fmt=form, fontsize=8, padding=3, bbox=_WHITE)
        panel.set_xlabel(label)
        panel.margins(x=0.12)
        panel.spines[["top", "right"]].set_visible(False)
    squared.set_yticks(rows, [s.name for s in sets])
    handles = [
        Patch(facecolor=_BY_KERNEL, label="ten folds by kernel, as in the paper"),
        Patch(facecolor=_BY_APPLICATION, label="ten folds by application"),
        Patch(facecolor="#BBBBBB", edgecolor="white", hatch="//", label="no counters (baseline)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return save(figure, folder / stem)


def draw_watts(
    folder: Path,
    title: str,
    kernels: Sequence[str],
    actual_w: Floats,
    estimated_w: Floats,
    unseen: Sequence[str],
    stem: str,
) -> list[Path]:
    """Fig. 3 and 5: actual and estimated watts of each kernel, by actual power.

    actual_w and estimated_w (K,) [W]; unseen: the kernels that the model cannot see, which are
    hatched and marked by a star. Returns the files. Raises InputError.
    """
    order = np.argsort(actual_w, kind="stable")
    blind = [kernels[k] in unseen for k in order]
    figure = Figure(figsize=(8, 1.8 + 0.27 * len(kernels)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    panel = figure.subplots()
    rows = np.arange(len(kernels))
    panel.barh(rows + 0.2, actual_w[order], height=0.38, color=_ACTUAL)
    panel.barh(
        rows - 0.2,
        estimated_w[order],
        height=0.38,
        color=[_UNSEEN if b else _ESTIMATED for b in blind],
        hatch=["//" if b else "" for b in blind],
        edgecolor="white",
        linewidth=0.5,
    )
    errors = 100 * (estimated_w / actual_w - 1)
    ends = np.maximum(actual_w, estimated_w)
    for row, k in enumerate(order):
        panel.annotate(
            f"{errors[k]:+.0f} %", (ends[k], row), (4, 0), textcoords="offset points", va="center"
        ).set_fontsize(7)
    names = [f"{kernels[k]} *" if b else kernels[k] for k, b in zip(order, blind, strict=True)]
    panel.set_yticks(rows, names, fontsize=8)
    panel.set_ylim(-0.6, len(kernels) - 0.4)
    panel.margins(x=0.1)
    panel.set_xlabel("average power [W]; beside the bars: (estimated - actual) / actual")
    panel.spines[["top", "right"]].set_visible(False)
    handles = [
        Patch(facecolor=_ACTUAL, label="actual"),
        Patch(facecolor=_ESTIMATED, label="estimated, held out"),
    ]
    if any(blind):
        handles.append(
            Patch(
                facecolor=_UNSEEN,
                edgecolor="white",
                hatch="//",
                label="* estimated, held out: the model cannot see all of the kernel",
            )
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return save(figure, folder / stem)


def draw_contributions(
    folder: Path, title: str, names: Sequence[str], ratios_percent: Floats, stem: str
) -> list[Path]:
    """Fig. 4: the average share of each counter, and of the intercept, in the estimated power.

    names and ratios_percent (F + 1,) [%], the intercept last. Returns the files. Raises
    InputError.
    """
    figure = Figure(figsize=(7, 1.4 + 0.36 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    panel: Axes = figure.subplots()
    rows = np.arange(len(names))[::-1]
    negative = ratios_percent < 0
    bars = panel.barh(
        rows,
        ratios_percent,
        height=0.7,
        color=[_NEGATIVE if n else _BY_APPLICATION for n in negative],
        hatch=["//" if n else "" for n in negative],
        edgecolor="white",
    )
    panel.bar_label(bars, fmt="%.1f", fontsize=8, padding=3, bbox=_WHITE)
    panel.axvline(0, color="grey", linewidth=0.8)
    panel.margins(x=0.12)
    panel.set_yticks(rows, names, fontsize=9)
    panel.set_xlabel("average contribution to the estimated power [%]")
    panel.spines[["top", "right"]].set_visible(False)
    return save(figure, folder / stem)
