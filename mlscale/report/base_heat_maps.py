"""Heat maps of errors by base: Fig. 10 and 11 of Wu et al., HPCA 2015."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from mlscale.data.grid import AXES, HardwareConfig
from mlscale.report.style import AXIS_LABELS, new_figure

COLOUR_MAP = "cividis"  # even in lightness, the same to colour-blind readers
PANELS_IN_ROW = 2
MOST_NUMBERS = 100  # cells of a panel, beyond which the numbers could not be read

Errors = dict[HardwareConfig, float]


def heat_maps(title: str, errors: Errors, headings: Mapping[float | None, str]) -> Figure:
    """Fig. 10 and 11: mean error [%] of each base, a panel for each engine clock.

    CU count by memory clock. headings: of the panel of each engine clock, and of None if there is
    one panel only. An axis with one step is left out: two axes make one panel, one makes a row.
    """
    steps = {axis: sorted({getattr(base, axis) for base in errors}) for axis in AXES}
    long = [axis for axis in AXES if len(steps[axis]) > 1]
    across, down = long[0], long[-1]
    engines = steps["engine_mhz"] if len(long) == 3 else [None]
    columns = min(PANELS_IN_ROW, len(engines))
    rows = math.ceil(len(engines) / columns)
    width = max(4.0, 0.45 * len(steps[across]) + 1)
    height = 3.5 if down != across else 2.3
    figure = new_figure(max(7.0, width * columns + 1.2), height * rows + 0.7, title)
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for panel in panels[len(engines) :]:
        panel.set_visible(False)
    shades = Normalize(min(errors.values()), max(errors.values()))
    for panel, engine in zip(panels, engines, strict=False):
        part = {b: error for b, error in errors.items() if engine in (None, b.engine_mhz)}
        image = _heat_map(panel, part, steps, across, down, shades)
        fixed = {axis: of[0] for axis, of in steps.items() if axis not in long}
        if engine is not None:
            fixed["engine_mhz"] = engine
        where = ", ".join(f"base {AXIS_LABELS[axis]}: {step:g}" for axis, step in fixed.items())
        panel.set_title(f"{where}\n{headings[engine]}".strip(), fontsize=8)
    bar = figure.colorbar(image, ax=panels[: len(engines)], shrink=0.8, aspect=40)
    bar.set_label("mean absolute\npercentage error [%]")
    return figure


def _heat_map(
    panel: Axes,
    errors: Errors,
    steps: Mapping[str, Sequence[float]],
    across: str,
    down: str,
    shades: Normalize,
) -> AxesImage:
    """One panel; memory clocks downwards as in the paper."""
    one_row = down == across
    table = np.empty((1 if one_row else len(steps[down]), len(steps[across])))
    for base, error in errors.items():
        row = 0 if one_row else steps[down].index(getattr(base, down))
        table[row, steps[across].index(getattr(base, across))] = error
    image = panel.imshow(table, cmap=COLOUR_MAP, norm=shades, aspect="auto")
    panel.set_xticks(range(table.shape[1]), [f"{step:g}" for step in steps[across]], fontsize=8)
    panel.set_xlabel(f"base {AXIS_LABELS[across]}", fontsize=9)
    if one_row:
        panel.set_yticks([])
    else:
        panel.set_yticks(range(len(table)), [f"{step:g}" for step in steps[down]], fontsize=8)
        panel.set_ylabel(f"base {AXIS_LABELS[down]}", fontsize=9)
    if table.size <= MOST_NUMBERS:
        for (y, x), error in np.ndenumerate(table):
            colour = "black" if shades(error) > 0.5 else "white"
            panel.text(x, y, f"{error:.1f}", ha="center", va="center", fontsize=7, color=colour)
    return image
