"""The figures of the studies of errors, advice, next profiles and features; PNG and SVG each.

Each is as wide as a phone can show, with the names of what is compared as rows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from mlscale.advice.objectives import objective_name
from mlscale.report.style import (
    COLOURS,
    MARKERS,
    bars_with_values,
    error_axis,
    legend_below,
    name_rows,
    new_figure,
    one_panel,
    save_figure,
    with_origin,
)
from mlscale.studies.base import Row, Rows, grouped
from mlscale.studies.candidates import BASELINES, ORACLE
from mlscale.studies.importance import ALL, SHUFFLED
from mlscale.studies.regret import STRATEGIES

WIDTH = 5.6  # inches: 9 points are read on a phone
FONT = 9
# Beyond it values stand on a logarithmic axis, which is straight below 1 %.
STRAIGHT_RATIO, STRAIGHT_PERCENT = 20.0, 1.0
NAMES = {"kernel": "kernel held out", "run": "random run of kernels held out"}
_PLAIN, _LEARNT = "#777777", COLOURS[0]


def draw_errors(folder: Path, kernels: Rows, origins: Mapping[str, str | None]) -> list[Path]:
    """A strip of kernels' mean errors for each predictor, a figure for each table and quantity.

    kernels: the rows of kernels.csv; origins: of each table. Returns the paths:
    errors-TABLE-QUANTITY.png and .svg. Raises InputError where one cannot be written.
    """
    written = []
    for (table, quantity), rows in grouped(kernels, "table", "quantity").items():
        title = f"{with_origin(table, origins[table])}\nerror of {quantity}, each {NAMES['kernel']}"
        values = _by_name(rows, "predictor", "kernel", "mape")
        label = "mean absolute percentage error [%]"
        figure = strips(title, values, (*BASELINES, ORACLE), label, "baseline or bound")
        written += save_figure(figure, folder / f"errors-{table}-{quantity}")
    return written


def draw_regrets(folder: Path, choices: Rows, origins: Mapping[str, str | None]) -> list[Path]:
    """A strip of regrets for each advisor, a figure for each table and objective.

    choices: the rows of choices.csv, of kernels or of runs; those that break a limit have no
    regret. Returns the paths: advice-TABLE-OBJECTIVE.png and .svg. Raises InputError.
    """
    written = []
    for (table, objective), rows in grouped(choices, "table", "objective").items():
        of = "run" if "run" in rows[0] else "kernel"
        regret = f"regret of {objective_name(objective)}, each {NAMES[of]}"
        title = f"{with_origin(table, origins[table])}\n{regret}"
        compared = [row for row in rows if row["regret_percent"] is not None]
        if not compared:
            continue
        values = _by_name(compared, "advisor", of, "regret_percent")
        figure = strips(title, values, STRATEGIES, "regret [%]", "without a predictor")
        written += save_figure(figure, folder / f"advice-{table}-{objective}")
    return written


def draw_points(folder: Path, document: Row, origins: Mapping[str, str | None]) -> list[Path]:
    """Error over the number of further points, a figure for each table and quantity.

    Returns the paths: next-profile-TABLE-QUANTITY.png and .svg. Raises InputError.
    """
    written = []
    for (table, quantity), rows in grouped(document["rows"], "table", "quantity").items():
        title = (
            f"{with_origin(table, origins[table])}\nerror of {quantity}, {document['predictor']}"
        )
        figure = error_by_points(title, rows)
        written += save_figure(figure, folder / f"next-profile-{table}-{quantity}")
    return written


def draw_importance(folder: Path, rows: Rows, origin: str | None) -> list[Path]:
    """Draw the study of a table's features, of one quantity and kind; the files.

    Left the increase of the error by each shuffled feature, right the error of the best few; bars
    are standard errors. Raises InputError.
    """
    first = rows[0]
    shuffled = [row for row in rows if row["what"] == SHUFFLED]
    subsets = sorted(
        (row for row in rows if row["what"] != SHUFFLED), key=lambda row: row["n_features"]
    )
    title = f"{with_origin(first['table'], origin)}\nerror of {first['quantity']} by wu"
    figure = new_figure(11, 1.6 + 0.24 * len(shuffled), title)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    names = [row["feature"] for row in shuffled]
    heights = name_rows(left, names, "increase where it is shuffled [points of %]", upwards=False)
    increases = [row["increase"] for row in shuffled]
    bars_with_values(left, heights, increases, COLOURS[0], [False] * len(shuffled))
    right.errorbar(
        range(len(subsets)),
        [row["mape"] for row in subsets],
        [row["standard_error"] or 0 for row in subsets],
        color=COLOURS[1],
        marker="o",
        capsize=3,
    )
    subset_names = [
        f"{'all' if row['what'] == ALL else 'best'} {row['n_features']}" for row in subsets
    ]
    right.set_xticks(range(len(subsets)), subset_names, fontsize=8)
    error_axis(right, "mean error, held out [%]")
    stem = f"importance-{first['table']}-{first['quantity']}-{first['features']}"
    return save_figure(figure, folder / stem)


def strips(
    title: str,
    values: Mapping[str, Sequence[float]],
    plain: Sequence[str],
    label: str,
    plain_label: str,
) -> Figure:
    """A row of dots for each name, from the least mean (top) to the largest.

    values: by name [%]; a box from quartile to quartile stands below the dots, and the mean is a
    diamond with its number beside. plain: the names that are compared against, in grey and
    hollow; plain_label says what they are.
    """
    order = sorted(values, key=lambda name: -float(np.mean(values[name])))
    figure, panel = one_panel(WIDTH, 1.5 + 0.36 * len(order), title)
    for place, name in enumerate(order):
        each = np.sort(values[name])
        is_plain = name.partition(" ")[0] in plain
        colour = _PLAIN if is_plain else _LEARNT
        low, high = np.percentile(each, [25, 75])
        panel.barh(place, high - low, left=low, height=0.6, color=colour, alpha=0.2)
        aside = 0.22 * (np.arange(len(each)) % 3 - 1)
        face = "none" if is_plain else colour
        panel.scatter(
            each,
            place + aside,
            s=12,
            facecolors=face,
            edgecolors=colour,
            linewidths=0.8,
            clip_on=False,
        )
        mean = float(each.mean())
        panel.plot(mean, place, "D", color="black", markersize=6, clip_on=False)
        panel.annotate(
            f"{mean:.2f}", (1.02, place), xycoords=("axes fraction", "data"), fontsize=FONT,
            va="center", annotation_clip=False,
        )  # fmt: skip
    panel.annotate(
        "mean", (1.02, len(order) - 0.4), xycoords=("axes fraction", "data"), fontsize=FONT
    )
    panel.set_yticks(range(len(order)), order, fontsize=FONT)
    panel.set_ylim(-0.6, len(order) - 0.4)
    _percent_axis(panel, [value for each in values.values() for value in each])
    panel.set_xlabel(label, fontsize=FONT)
    handles: list[Artist] = [
        Line2D([], [], color=_LEARNT, marker="o", linestyle="", label="learnt"),
        Line2D([], [], color=_PLAIN, marker="o", mfc="none", linestyle="", label=plain_label),
        Line2D([], [], color="black", marker="D", linestyle="", label="mean"),
        Patch(color="black", alpha=0.2, lw=0, label="middle half"),
    ]
    legend_below(figure, handles, 2)
    return figure


def error_by_points(title: str, rows: Sequence[Row]) -> Figure:
    """Mean, median kernel, 90th percentile and worst kernel over the number of further points."""
    figure, panel = one_panel(WIDTH, 4.2, title)
    figures = {
        "worst kernel": "worst_kernel_mape",
        "90th percentile": "p90",
        "mean": "mape",
        "median kernel": "median_kernel",
    }
    points = [row["points"] for row in rows]
    for (name, key), colour, marker in zip(figures.items(), COLOURS, MARKERS, strict=False):
        percent, width = [row[key] for row in rows], 2 if name == "mean" else 1.2
        panel.plot(points, percent, color=colour, marker=marker, linewidth=width, label=name)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_xlabel("further points, each chosen by the predictor", fontsize=FONT)
    error_axis(panel, "absolute percentage error [%]")
    legend_below(figure, panel.get_legend_handles_labels()[0], 2)
    return figure


def _by_name(rows: Rows, who: str, what: str, value: str) -> dict[str, list[float]]:
    """The values of each kernel or run by predictor or advisor, the mean over seeds of each."""
    candidates = [name for name, _ in grouped(rows, who, "features")]
    several = {name for name in candidates if candidates.count(name) > 1}
    values: dict[str, list[float]] = {}
    for (name, features, _), group in grouped(rows, who, "features", what).items():
        called = f"{name} {features}" if name in several else name
        values.setdefault(called, []).append(float(np.mean([row[value] for row in group])))
    return values


def _percent_axis(panel: Axes, values: Sequence[float]) -> None:
    """From 0; where most values are small beside the largest, logarithmic from 1 % on."""
    largest = max(values)
    if largest > STRAIGHT_RATIO * max(float(np.median(values)), STRAIGHT_PERCENT / 10):
        panel.set_xscale("symlog", linthresh=STRAIGHT_PERCENT, linscale=0.6)
        ticks = [0.0, *(tick for n in range(6) for tick in (10.0**n, 3 * 10.0**n))]
        shown = [tick for tick in ticks if tick <= 1.1 * largest]
        panel.set_xticks(shown, [f"{tick:g}" for tick in shown], fontsize=FONT)
        panel.set_xlim(0, max(1.15 * largest, STRAIGHT_PERCENT))
    else:
        panel.set_xlim(0, 1.05 * largest or STRAIGHT_PERCENT)
    panel.minorticks_off()
    panel.grid(visible=True, axis="x", alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
