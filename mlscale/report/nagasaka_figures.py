"""The figures of Nagasaka et al. 2010 from any table: Fig. 2 to 5, each as PNG and SVG."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mlscale.papers.nagasaka import BASELINE
from mlscale.report.style import COLOURS, save_figure
from mlscale.studies.nagasaka import Grouping, PowerCase, model_row, unseen_rows

_ACTUAL, _ESTIMATED = "#000000", "#999999"
_UNSEEN = COLOURS[1]
_BY_KERNEL, _BY_APPLICATION = COLOURS[4], COLOURS[0]
_NEGATIVE = COLOURS[1]
_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}


def draw(folder: Path, cases: Sequence[PowerCase], chosen: str) -> list[Path]:
    """Fig. 2 to 5 of every table, with the chosen set of counters; returns the files.

    Fig. 2 to 4: the kernels as in the paper, where the table has enough, else all; Fig. 5: all.
    Raises InputError where a file cannot be written.
    """
    files = []
    for table in dict.fromkeys(case.table for case in cases):
        everyone, *as_in_paper = [case for case in cases if case.table == table]
        case = as_in_paper[0] if as_in_paper else everyone
        unseen = {row["kernel"] for one in (everyone, case) for row in unseen_rows(one)}
        files += [
            *draw_sets(case, folder / f"{table}-nagasaka-fig2"),
            *draw_watts(case, chosen, unseen, folder / f"{table}-nagasaka-fig3"),
            *draw_contributions(case, chosen, folder / f"{table}-nagasaka-fig4"),
            *draw_watts(everyone, chosen, unseen, folder / f"{table}-nagasaka-fig5"),
        ]
    return files


def draw_sets(case: PowerCase, stem: Path) -> list[Path]:
    """Fig. 2: squared error and error ratio of the sets of counters, for both groupings of folds.

    Returns the files. Raises InputError.
    """
    sets = tuple(case.inputs.sets)
    figure = Figure(figsize=(10, 1.5 + 0.42 * len(sets)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_title(case, "power by sets of counters"), fontsize=10)
    rows = np.arange(len(sets))[::-1]
    squared, percent = figure.subplots(1, 2, sharey=True)
    baseline = ["//" if name == BASELINE else "" for name in sets]
    colours: dict[Grouping, str] = {"kernel": _BY_KERNEL, "application": _BY_APPLICATION}
    for position, (grouping, colour) in enumerate(colours.items()):
        results = [case.result(name, grouping) for name in sets]
        for panel, values in (
            (squared, [r.mean_squared_error_w2 for r in results]),
            (percent, [float(r.errors_percent.mean()) for r in results]),
        ):
            bars = panel.barh(
                rows + 0.2 - 0.4 * position,
                values,
                height=0.38,
                color=colour,
                hatch=baseline,
                edgecolor="white",
            )
            labels = [f"{value:.{1 if value < 100 else 0}f}" for value in values]
            panel.bar_label(bars, labels, fontsize=8, padding=3, bbox=_WHITE)
    for panel, label in ((squared, "average squared error [W²]"), (percent, "average error [%]")):
        panel.set_xlabel(label)
        panel.margins(x=0.12)
        panel.spines[["top", "right"]].set_visible(False)
    squared.set_yticks(rows, sets)
    handles = [
        Patch(facecolor=_BY_KERNEL, label="ten folds by kernel, as in the paper"),
        Patch(facecolor=_BY_APPLICATION, label="ten folds by application"),
        Patch(facecolor="#BBBBBB", edgecolor="white", hatch="//", label="no counters (baseline)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return save_figure(figure, stem)


def draw_watts(case: PowerCase, chosen: str, unseen: Collection[str], stem: Path) -> list[Path]:
    """Fig. 3 and 5: actual and estimated watts of each kernel, by actual power.

    unseen: the kernels that the model cannot see, which are hatched and marked by a star. Returns
    the files. Raises InputError.
    """
    kernels, actual_w = case.inputs.kernels, case.inputs.power_w
    estimated_w = case.result(chosen).estimated_w.mean(axis=0)
    order = np.argsort(actual_w, kind="stable")
    blind = [kernels[k] in unseen for k in order]
    figure = Figure(figsize=(8, 1.8 + 0.27 * len(kernels)), layout="constrained")
    FigureCanvasAgg(figure)
    title = _title(case, f"power estimated with {chosen} counters, folds by application")
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
    return save_figure(figure, stem)


def draw_contributions(case: PowerCase, chosen: str, stem: Path) -> list[Path]:
    """Fig. 4: the average share of each counter, and of the intercept, in the estimated power.

    Of the model that all kernels of the case give. Returns the files. Raises InputError.
    """
    shares = model_row(case, chosen)["contribution_percent"]
    names, percent = list(shares), np.array(list(shares.values()))
    figure = Figure(figsize=(7, 1.4 + 0.36 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    title = _title(case, f"what the estimated power is made of, {chosen} counters")
    figure.suptitle(title, fontsize=10)
    panel: Axes = figure.subplots()
    rows = np.arange(len(names))[::-1]
    negative = percent < 0
    bars = panel.barh(
        rows,
        percent,
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
    return save_figure(figure, stem)


def _title(case: PowerCase, what: str) -> str:
    count = len(case.inputs.kernels)
    return (
        f"{case.table}: {what}\n{count} kernels ({case.kernels}), {case.device}, base {case.base}"
    )
