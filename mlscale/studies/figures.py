"""The figures of studies and of surfaces, and how they look; PNG and SVG each.

- Of studies: the errors or regrets of each kernel, a row of dots for each that is compared, as wide
  as a phone can show; and predictions against what was measured, a panel for each predictor.
- Predictions beside what was measured or simulated, over CUs and over clocks.

Colours are told apart by colour-blind readers, and never the only sign.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from mlscale.advice.objectives import objective_name
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES
from mlscale.files import whole_file
from mlscale.model.plots import new_figure
from mlscale.model.predictions import Predictions
from mlscale.studies.base import Rows, grouped
from mlscale.studies.candidates import BASELINES, ORACLE
from mlscale.studies.regret import EXPECTED, STRATEGIES
from mlscale.text import counted

if TYPE_CHECKING:
    import pandas as pd

MARKERS = "osD^vP*X"
# Okabe and Ito, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
DPI = 150
WIDTH = 5.6  # inches: 9 points are read on a phone
FONT = 9
# Beyond it values stand on a logarithmic axis, which is straight below 1 %.
STRAIGHT_RATIO, STRAIGHT_PERCENT = 20.0, 1.0
NAMES = {"kernel": "kernel held out", "run": "random run of kernels held out"}
MOST_PREDICTORS = 3  # panels beside one another
UNITS = {"time": "ms", "power": "W"}
ERROR_LABEL = "mean absolute percentage error [%]"
_PLAIN, _LEARNT = "#777777", COLOURS[0]


def draw_errors(folder: Path, kernels: Rows, origins: Mapping[str, str | None]) -> list[Path]:
    """A strip of kernels' mean errors for each predictor, a figure for each table and quantity.

    kernels: the rows of kernels.csv; origins: of each table. Returns the paths:
    errors-TABLE-QUANTITY.png and .svg. Raises InputError where one cannot be written.
    """
    written = []
    for (table, quantity), rows in grouped(kernels, "table", "quantity").items():
        title = f"{with_origin(table, origins[table])}\nerror of {quantity}, each {NAMES['kernel']}"
        values = {"": _by_name(rows, "predictor", "kernel", "mape")}
        figure = strips(title, values, (*BASELINES, ORACLE), ERROR_LABEL, "baseline or bound")
        written += save_figure(figure, folder / f"errors-{table}-{quantity}")
    return written


def draw_predictions(
    folder: Path, errors: Rows, predictions: "pd.DataFrame", origins: Mapping[str, str | None]
) -> list[Path]:
    """Predicted against measured, a figure for each table and quantity, a panel for each predictor.

    Of those that learn the MOST_PREDICTORS that err least, before baselines, never the oracle.
    errors, predictions: the rows of errors.csv and predictions.csv; origins: of each table. Returns
    the paths: predictions-TABLE-QUANTITY.png and .svg. Raises InputError where one cannot be
    written.
    """
    keys, written = ["table", "quantity", "predictor", "features"], []
    points = dict(list(predictions.fillna({"features": ""}).groupby(keys)))
    for (table, quantity), rows in grouped(errors, "table", "quantity").items():
        ranked = sorted(rows, key=lambda row: (row["predictor"] in BASELINES, row["mape"]))
        best = [row for row in ranked if row["predictor"] != ORACLE][:MOST_PREDICTORS]
        title = f"{with_origin(table, origins[table])}\n{quantity}, each {NAMES['kernel']}"
        figure = new_figure(0.6 + 2.6 * len(best), 3.7, title)
        panels = figure.subplots(1, len(best), sharex=True, sharey=True, squeeze=False)[0]
        for panel, row in zip(panels, best, strict=True):
            features = row["features"] or ""
            _against_measured(panel, points[table, quantity, row["predictor"], features])
            name = f"{row['predictor']} {features}".strip()
            panel.set_title(f"{name}: MAPE {row['mape']:.2f} %", fontsize=FONT)
            panel.set_xlabel(f"measured [{UNITS[quantity]}]", fontsize=FONT)
        panels[0].set_ylabel(f"predicted [{UNITS[quantity]}]", fontsize=FONT)
        written += save_figure(figure, folder / f"predictions-{table}-{quantity}")
    return written


def _against_measured(panel: Axes, points: "pd.DataFrame") -> None:
    """A dot for each prediction, on logarithmic axes; on the diagonal it is right."""
    look: Any = {"s": 5, "alpha": 0.4, "color": _LEARNT, "linewidths": 0, "rasterized": True}
    panel.scatter(points.measured, points.predicted, **look)
    panel.set(xscale="log", yscale="log", aspect="equal")
    low, high = points.measured.min(), points.measured.max()
    panel.plot([low, high], [low, high], color="black", linewidth=0.8)
    for axis in (panel.xaxis, panel.yaxis):
        _plain_numbers(axis, (1.0, 2.0, 5.0) if high < 100 * low else (1.0,))
    panel.tick_params(labelsize=FONT)
    panel.grid(visible=True, alpha=0.3)


def _plain_numbers(axis: Axis, subs: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these multiples of the powers of ten."""
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def draw_regrets(folder: Path, choices: Rows, origins: Mapping[str, str | None]) -> list[Path]:
    """A strip of regrets for each advisor, a figure for each table and objective.

    choices: the rows of choices.csv, of kernels or of runs; those that break a limit have no
    regret. Those of expected times are not drawn where cautious ones stand beside. Returns the
    paths: advice-TABLE-OBJECTIVE.png and .svg. Raises InputError.
    """
    written = []
    for (table, objective), rows in grouped(choices, "table", "objective").items():
        what = "run" if "run" in rows[0] else "kernel"
        regret = f"regret of {objective_name(objective)}, each {NAMES[what]}"
        title = f"{with_origin(table, origins[table])}\n{regret}"
        drawn = [row for row in rows if row["rule"] != EXPECTED]
        compared = [row for row in drawn if row["regret_percent"] is not None]
        if not compared:
            continue
        values = {"": _by_name(compared, "advisor", what, "regret_percent")}
        figure = strips(title, values, STRATEGIES, "regret [%]", "without a predictor")
        written += save_figure(figure, folder / f"advice-{table}-{objective}")
    return written


def strips(
    title: str,
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    plain: Sequence[str],
    label: str,
    plain_label: str,
) -> Figure:
    """A panel for each title, in it a row of dots for each name, the least mean at the top.

    panels: by title, which may be empty, and name the values [%]; a box from quartile to quartile
    stands below the dots, and the mean is a diamond with its number beside. plain: the names that
    are compared against, in grey and hollow; plain_label says what they are.
    """
    heights = [1.0 + 0.36 * len(names) for names in panels.values()]
    figure = new_figure(WIDTH, 0.5 + sum(heights), title)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, (heading, names) in zip(axes, panels.items(), strict=True):
        _draw_strips(panel, names, plain, label)
        panel.set_title(heading, fontsize=FONT, parse_math=False)
    handles: list[Artist] = [
        Line2D([], [], color=_LEARNT, marker="o", linestyle="", label="learnt"),
        Line2D([], [], color=_PLAIN, marker="o", mfc="none", linestyle="", label=plain_label),
        Line2D([], [], color="black", marker="D", linestyle="", label="mean"),
        Patch(color="black", alpha=0.2, lw=0, label="middle half"),
    ]
    legend_below(figure, handles, 2)
    return figure


def error_figure(kernels: Rows) -> Figure:
    """A strip of kernels' mean errors for each predictor, a panel for each table and quantity.

    kernels: the rows of kernels.csv.
    """
    panels = {
        " ".join(key): _by_name(rows, "predictor", "kernel", "mape")
        for key, rows in grouped(kernels, "table", "quantity").items()
    }
    return strips("", panels, (*BASELINES, ORACLE), ERROR_LABEL, "baseline or bound")


def _draw_strips(
    panel: Axes, values: Mapping[str, Sequence[float]], plain: Sequence[str], label: str
) -> None:
    order = sorted(values, key=lambda name: -float(np.mean(values[name])))
    beside: Any = {"xycoords": ("axes fraction", "data"), "fontsize": FONT}
    for place, name in enumerate(order):
        each = np.sort(values[name])
        is_plain = name.partition(" ")[0] in plain
        colour = _PLAIN if is_plain else _LEARNT
        low, high = np.percentile(each, [25, 75])
        panel.barh(place, high - low, left=low, height=0.6, color=colour, alpha=0.2)
        aside = 0.22 * (np.arange(len(each)) % 3 - 1)
        face = "none" if is_plain else colour
        dots: Any = {"s": 12, "facecolors": face, "edgecolors": colour, "linewidths": 0.8}
        panel.scatter(each, place + aside, clip_on=False, **dots)
        mean = float(each.mean())
        panel.plot(mean, place, "D", color="black", markersize=6, clip_on=False)
        panel.annotate(f"{mean:.2f}", (1.02, place), va="center", **beside)
    panel.annotate("mean", (1.02, len(order) - 0.4), **beside)
    panel.set_yticks(range(len(order)), order, fontsize=FONT)
    panel.set_ylim(-0.6, len(order) - 0.4)
    _percent_axis(panel, [value for each in values.values() for value in each])
    panel.set_xlabel(label, fontsize=FONT)


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


class Shown(NamedTuple):
    """A kernel that was measured or simulated, and what a model predicts of it from one profile."""

    known: Measurements
    predictions: Predictions

    def draw(self, panel: Axes, quantity: str, axis: str, at: Any, look: tuple[str, str]) -> None:
        """Draw a quantity over an axis; at: an index of the grid with a slice for that axis."""
        steps, (colour, marker) = getattr(self.known.grid, axis), look
        known, predicted = (getattr(each, QUANTITIES[quantity])[0][at] for each in self)
        panel.plot(steps, known, color=colour, marker=marker, ms=4)
        panel.plot(steps, predicted, "--", color=colour)
        panel.set_xticks(steps, [f"{step:g}" for step in steps])
        panel.tick_params(labelsize=FONT)
        panel.grid(visible=True, alpha=0.3)
        panel.set_yscale("log")  # so that a factor is as high everywhere
        _plain_numbers(panel.yaxis, (1.0, 2.0, 5.0))

    def ring(self, panel: Axes, quantity: str, axis: str) -> None:
        """Ring the profile."""
        place, profiles = getattr(self.predictions.base, axis), self.predictions.profiles
        look: Any = {"ms": 12, "mfc": "none", "mec": "black", "clip_on": False}
        panel.plot(place, profiles.quantity(quantity), "o", **look)


def surfaces_figure(over_cus: Shown, over_clocks: Shown) -> Figure:
    """Time and power over CUs; below another kernel's time over clocks, a panel for each CU count.

    What is known is solid with markers, what is predicted dashed, the profile ringed.
    """
    figure, grid = new_figure(WIDTH, 8), over_clocks.known.grid
    parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.8])
    above, below = parts
    for part, shown in ((above, over_cus), (below, over_clocks)):
        title = f"{shown.known.kernels[0]} on {shown.known.device}"
        title += f" ({shown.known.metadata['origin']})"
        part.suptitle(title, fontsize=FONT, parse_math=False)
    for panel, quantity in zip(above.subplots(1, 2), UNITS, strict=True):
        panel.set_xscale("log")
        over_cus.draw(panel, quantity, "cu_count", np.s_[:, -1, -1], (_LEARNT, MARKERS[0]))
        over_cus.ring(panel, quantity, "cu_count")
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xlabel("CUs or SMs", fontsize=FONT)
        panel.set_ylabel(f"{quantity} [{UNITS[quantity]}]", fontsize=FONT)
    looks = shades(len(grid.memory_mhz))
    panels = below.subplots(-(-len(grid.cu_count) // 2), 2, sharex=True, sharey=True)
    for c, (panel, cu_count) in enumerate(zip(panels.flat, grid.cu_count, strict=False)):
        for m, look in enumerate(looks):
            over_clocks.draw(panel, "time", "engine_mhz", np.s_[c, :, m], look)
        if cu_count == over_clocks.predictions.base.cu_count:
            over_clocks.ring(panel, "time", "engine_mhz")
        panel.set_title(counted(cu_count, "CU"), fontsize=FONT)
    below.supxlabel("engine clock [MHz]", fontsize=FONT)
    below.supylabel("time [ms]", fontsize=FONT)
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker=marker, label=f"memory {clock:g} MHz")
        for clock, (colour, marker) in zip(grid.memory_mhz, looks, strict=True)
    ]
    handles += [
        Line2D([], [], color="grey", marker="o", ms=4, label="measured or simulated"),
        Line2D([], [], color="grey", linestyle="--", label="predicted"),
        Line2D([], [], linestyle="", marker="o", ms=10, mfc="none", mec="black", label="profile"),
    ]
    legend_below(figure, handles, 2)
    return figure


def with_origin(table: str, origin: str | None) -> str:
    """The name of a table for a heading; data that were not measured are called so.

    origin: 'made', 'simulated', 'measured', or None where the table does not say.
    """
    return f"{table} ({origin} data, not measured)" if origin in ("made", "simulated") else table


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg; the same figure gives the same files. Raises InputError."""
    engine = figure.get_layout_engine()
    if engine is not None:  # once and for all: else each file places the panels anew
        figure.dpi = DPI
        engine.execute(figure)
        figure.set_layout_engine(None)
    written = []
    for kind in ("png", "svg"):
        path = stem.with_name(f"{stem.name}.{kind}")
        metadata = {"Date": None} if kind == "svg" else {}
        with whole_file(path) as temporary, rc_context({"svg.hashsalt": "mlscale"}):
            figure.savefig(temporary, format=kind, dpi=DPI, metadata=metadata)
        written.append(path)
    return written


def shades(count: int) -> list[tuple[str, str]]:
    """A colour and a marker for each of so many steps, dark to light."""
    colours = colormaps["viridis"](np.linspace(0, 0.85, count))
    return [(to_hex(one), MARKERS[n % len(MARKERS)]) for n, one in enumerate(colours)]


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int) -> None:
    """Draw the key to a whole figure, below its panels."""
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8)
