"""The confusion matrix of wu's networks as a picture, PNG and SVG."""

from pathlib import Path
from typing import Any

import numpy as np

from mlscale.report.study_figures import COLOUR_MAP, MOST_NUMBERS
from mlscale.report.style import new_figure, save_figure, with_origin


def draw_confusion(folder: Path, row: dict[str, Any], origin: str | None) -> list[Path]:
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
