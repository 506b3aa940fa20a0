"""Maps of numbers: errors by base (Fig. 10 and 11 of Wu et al., HPCA 2015), choices of clusters."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from mlscale.arrays import Floats
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.report.style import (
    AXIS_LABELS,
    COLOUR_MAP,
    ink,
    one_panel,
    panels_in_rows,
    save_figure,
    with_origin,
)
from mlscale.studies.base import Row

PANELS_IN_ROW = 2
MOST_NUMBERS = 100  # cells of a panel, beyond which the numbers could not be read


def heat_maps(
    title: str, errors: Mapping[HardwareConfig, float], headings: Mapping[float | None, str]
) -> Figure:
    """Fig. 10 and 11: mean error [%] of each base, a panel for each engine clock.

    CU count by memory clock, that downwards as in the paper. headings: of the panel of each engine
    clock, and of None if there is one panel only. An axis with one step is left out: two axes make
    one panel, one makes a row.
    """
    steps = {axis: sorted({getattr(base, axis) for base in errors}) for axis in AXES}
    long = [axis for axis in AXES if len(steps[axis]) > 1]
    across, down = long[0], long[-1]
    fixed = {axis: of[0] for axis, of in steps.items() if axis not in long}
    engines = steps["engine_mhz"] if len(long) == 3 else [None]
    columns = min(PANELS_IN_ROW, len(engines))
    width = max(4.0, 0.45 * len(steps[across]) + 1, 5.8 / columns)
    height = 3.5 if down != across else 2.3
    figure, panels = panels_in_rows(title, len(engines), columns, (width, height), (1.2, 0.7))
    shades = Normalize(min(errors.values()), max(errors.values()))
    for panel, engine in zip(panels, engines, strict=True):
        table = np.empty((len(steps[down]) if down != across else 1, len(steps[across])))
        for base, error in errors.items():
            if engine in (None, base.engine_mhz):
                row = steps[down].index(getattr(base, down)) if down != across else 0
                table[row, steps[across].index(getattr(base, across))] = error
        image = _map(panel, table, shades, [[f"{error:.1f}" for error in row] for row in table])
        _name_steps(panel, steps, across, down)
        at = fixed if engine is None else {**fixed, "engine_mhz": engine}
        where = ", ".join(f"base {AXIS_LABELS[axis]}: {step:g}" for axis, step in at.items())
        panel.set_title(f"{where}\n{headings[engine]}".strip(), fontsize=8)
    bar = figure.colorbar(image, ax=panels, shrink=0.8, aspect=40)
    bar.set_label("mean absolute\npercentage error [%]")
    return figure


def draw_confusion(folder: Path, row: Row, origin: str | None) -> list[Path]:
    """Draw the matrix of a row of the study `classifier`; the files. Raises InputError."""
    counts = np.array(row["confusion"])
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    title = (
        f"wu on {with_origin(row['table'], origin)}, {row['quantity']}\n{row['accuracy']:.0f} % of "
        "the choices for held-out kernels are the oracle's"
    )
    size = 2.4 + 0.35 * len(counts)
    figure, panel = one_panel(max(5.5, size + 1.2), size, title)
    image = _map(panel, shares, Normalize(0, 100), [[f"{n:g}" for n in row] for row in counts])
    panel.set_aspect("equal")
    clusters = [str(cluster + 1) for cluster in range(len(counts))]
    panel.set_xticks(range(len(counts)), clusters, fontsize=8)
    panel.set_yticks(range(len(counts)), clusters, fontsize=8)
    panel.set_xlabel("chosen cluster, by its mean scaling value")
    panel.set_ylabel("nearest cluster (oracle)")
    figure.colorbar(image, label="share of the row [%]")
    stem = f"confusion-{row['table']}-{row['quantity']}-{row['features']}"
    return save_figure(figure, folder / stem)


def _map(panel: Axes, table: Floats, shades: Normalize, texts: list[list[str]]) -> AxesImage:
    """A coloured cell for each value, with its text where there are few enough to be read."""
    image = panel.imshow(table, cmap=COLOUR_MAP, norm=shades, aspect="auto")
    if table.size <= MOST_NUMBERS:
        for (y, x), value in np.ndenumerate(table):
            colour = ink(to_hex(image.cmap(shades(value))))
            panel.text(x, y, texts[y][x], ha="center", va="center", fontsize=7, color=colour)
    return image


def _name_steps(panel: Axes, steps: Mapping[str, list[float]], across: str, down: str) -> None:
    panel.set_xticks(range(len(steps[across])), [f"{s:g}" for s in steps[across]], fontsize=8)
    panel.set_xlabel(f"base {AXIS_LABELS[across]}", fontsize=9)
    if down == across:
        panel.set_yticks([])
    else:
        panel.set_yticks(range(len(steps[down])), [f"{s:g}" for s in steps[down]], fontsize=8)
        panel.set_ylabel(f"base {AXIS_LABELS[down]}", fontsize=9)
