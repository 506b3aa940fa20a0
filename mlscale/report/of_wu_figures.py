"""The figures of the studies of wu alone: its choices of clusters, its features; PNG and SVG."""

from pathlib import Path

import numpy as np

from mlscale.report.base_heat_maps import COLOUR_MAP, MOST_NUMBERS
from mlscale.report.style import (
    COLOURS,
    bars_with_values,
    name_rows,
    new_figure,
    save_figure,
    with_origin,
)
from mlscale.studies.base import Row, Rows
from mlscale.studies.importance import ALL, SHUFFLED


def draw_confusion(folder: Path, row: Row, origin: str | None) -> list[Path]:
    """Draw the matrix of a row of the study `classifier`; the files. Raises InputError."""
    counts = np.array(row["confusion"], dtype=float)
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    title = (
        f"wu on {with_origin(row['table'], origin)}, {row['quantity']}: {row['accuracy']:.0f} % of "
        "the choices for held-out kernels are the oracle's"
    )
    size = 2.4 + 0.35 * len(counts)
    figure = new_figure(max(5.5, size + 1.2), size, title, fontsize=9)
    panel = figure.subplots()
    image = panel.imshow(shares, cmap=COLOUR_MAP, vmin=0, vmax=100)
    ticks = range(len(counts))
    panel.set_xticks(ticks, [str(tick + 1) for tick in ticks], fontsize=8)
    panel.set_yticks(ticks, [str(tick + 1) for tick in ticks], fontsize=8)
    panel.set_xlabel("chosen cluster, by its mean scaling value")
    panel.set_ylabel("nearest cluster (oracle)")
    if counts.size <= MOST_NUMBERS:
        for (y, x), count in np.ndenumerate(counts):
            colour = "black" if shares[y, x] > 50 else "white"
            panel.text(x, y, f"{count:g}", ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(image, label="share of the row [%]")
    stem = f"confusion-{row['table']}-{row['quantity']}-{row['features']}"
    return save_figure(figure, folder / stem)


def draw_importance(folder: Path, rows: Rows, origin: str | None) -> list[Path]:
    """Draw the rows of a table, quantity and kind of features; the files. Raises InputError.

    Left the increase of the error by each shuffled feature, right the error of the best few; bars
    are standard errors.
    """
    first = rows[0]
    shuffled = [row for row in rows if row["what"] == SHUFFLED]
    subsets = sorted(
        (row for row in rows if row["what"] != SHUFFLED), key=lambda row: row["n_features"]
    )
    title = f"{with_origin(first['table'], origin)}\nerror of {first['quantity']} by wu"
    figure = new_figure(11, 1.6 + 0.24 * len(shuffled), title, fontsize=10)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    heights = name_rows(
        left,
        [row["feature"] for row in shuffled],
        "increase where it is shuffled [points of %]",
        upwards=False,
    )
    increases = np.array([row["increase"] for row in shuffled])
    bars_with_values(left, heights, increases, COLOURS[0], [False] * len(shuffled))
    right.errorbar(
        range(len(subsets)),
        [row["mape"] for row in subsets],
        [row["standard_error"] or 0 for row in subsets],
        color=COLOURS[1],
        marker="o",
        capsize=3,
    )
    right.set_xticks(range(len(subsets)), [_name(row) for row in subsets], fontsize=8)
    right.set_ylim(bottom=0)
    right.set_ylabel("mean error, held out [%]")
    right.grid(visible=True, axis="y", alpha=0.3)
    stem = f"importance-{first['table']}-{first['quantity']}-{first['features']}"
    return save_figure(figure, folder / stem)


def _name(row: Row) -> str:
    return f"all {row['n_features']}" if row["what"] == ALL else f"best {row['n_features']}"
