"""The figures of section V of Wu et al., HPCA 2015, from the rows of a study; PNG and SVG each.

Where a study was repeated, the range over the seeds is drawn.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.report.map_figures import heat_maps
from mlscale.report.style import (
    COLOURS,
    MARKERS,
    error_axis,
    legend_below,
    new_figure,
    one_panel,
    save_figure,
    with_origin,
)
from mlscale.studies.candidates import ORACLE
from mlscale.studies.wu2015 import BIN_WIDTH, BINS, CLUSTER_COUNTS
from mlscale.studies.wu2015_summary import (
    BoxStatistics,
    Row,
    Spread,
    boxes,
    by_base,
    labels,
    overall,
    shares,
)

BESIDE = ("mean-surface", "nearest")  # the baselines that are drawn; the table has all
_GREYS = {"mean-surface": ("0.25", "--"), "nearest": ("0.55", ":")}
_HATCHES = ("", "///", "...", "xx")
LEAST_DISTANCE = 0.035  # of two labelled ticks, as a share of the axis


@dataclass(frozen=True)
class FigureSubject:
    """What a figure is of. origin: 'made', 'simulated', 'measured' or None, as the table says."""

    predictor: str
    table: str
    quantity: str
    origin: str | None

    def title(self, rest: str, rows: Sequence[Row]) -> str:
        """Return the heading of a figure."""
        seeds = len({row["seed"] for row in rows})
        repeated = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
        return f"{with_origin(self.table, self.origin)}\n{rest}, {repeated}"


def draw_study(study: str, folder: Path, subject: FigureSubject, rows: Sequence[Row]) -> list[Path]:
    """Draw a study's figures into a folder, from the rows of one table and quantity.

    Returns the paths: STUDY-TABLE-QUANTITY.png and .svg; for base-configuration two of each,
    -heat-maps and -boxes. Raises InputError where one cannot be written.
    """
    written = []
    stem = f"{study}-{subject.table}-{subject.quantity}"
    for suffix, figure in _DRAWINGS[study](subject, rows).items():
        written += save_figure(figure, folder / f"{stem}{suffix}")
    return written


def base_configuration(subject: FigureSubject, rows: Sequence[Row]) -> dict[str, Figure]:
    """Fig. 10 and 11 for every engine clock, and Fig. 12."""
    names = labels(rows, subject.predictor, *BESIDE)
    errors = {base: spread.mean for base, spread in by_base(rows)[names[0]].items()}
    heading = f"error of {subject.quantity} by base configuration, {_in_words(names[0])}"
    engines: list[float | None] = [None, *boxes(rows)[names[0]]]
    headings = {engine: _means(rows, names, engine) for engine in engines}
    maps = heat_maps(subject.title(heading, rows), errors, headings)
    return {"-heat-maps": maps, "-boxes": engine_clock_boxes(subject, rows)}


def _means(rows: Sequence[Row], names: Sequence[str], engine: float | None) -> str:
    """The mean of each label, of the bases of one engine clock or of all; ours with its seeds."""
    means = overall([row for row in rows if engine in (None, row["engine_mhz"])])
    ours, *others = (f"{_in_words(name)} {means[name].mean:.1f} %" for name in names)
    spread = means[names[0]]
    if spread.low < spread.high:
        ours += f" (seeds {spread.low:.1f} to {spread.high:.1f})"
    return f"mean: {ours}\n{', '.join(others)}"


def engine_clock_boxes(subject: FigureSubject, rows: Sequence[Row]) -> Figure:
    """Fig. 12: mean, standard deviation and extremes over the bases of each engine clock.

    Where an engine clock has one base only there is nothing to box: its error is a point.
    """
    names, by_name = labels(rows, subject.predictor, *BESIDE), boxes(rows)
    engines = list(by_name[names[0]])
    title = subject.title(f"error of {subject.quantity} over the bases", rows)
    figure, panel = one_panel(max(6.0, 0.75 * len(engines) + 2), 4.6, title)
    width = 0.8 / len(names)
    boxed = any(box.bases > 1 for box in by_name[names[0]].values())
    handles: list[Artist] = []
    for position, name in enumerate(names):
        places = _bar_places(len(engines), position, len(names), width)
        of_engine = [[row for row in rows if row["engine_mhz"] == engine] for engine in engines]
        spreads = [overall(part)[name] for part in of_engine]
        means, seeds = [spread.mean for spread in spreads], _whiskers(spreads)
        if boxed:
            look: dict[str, Any] = {
                "facecolor": COLOURS[position],
                "alpha": 0.45,
                "hatch": _HATCHES[position],
            }
            _boxes(panel, list(by_name[name].values()), places, 0.85 * width, look)
            panel.errorbar(places, means, yerr=seeds, fmt="none", ecolor="black", elinewidth=3)
            handles.append(Patch(label=_in_words(name), **look))
        else:
            points: dict[str, Any] = {
                "color": COLOURS[position],
                "marker": MARKERS[position],
                "linestyle": "",
            }
            panel.errorbar(places, means, yerr=seeds, capsize=4, markersize=8, **points)
            handles.append(Line2D([], [], markersize=8, label=_in_words(name), **points))
    keys = {"mean; box: ± 1 std; whiskers: min, max of the bases": 1.5} if boxed else {}
    if len({row["seed"] for row in rows}) > 1:
        keys["range of the mean over the seeds"] = 3 if boxed else 1.5
    handles += [Line2D([], [], color="black", lw=width, label=key) for key, width in keys.items()]
    panel.set_xticks(range(len(engines)), [f"{engine:g}" for engine in engines])
    panel.set_xlabel("base engine clock [MHz]")
    error_axis(panel)
    legend_below(figure, handles, 2)
    return figure


def _boxes(
    panel: Axes, of: Sequence[BoxStatistics], places: Floats, width: float, look: dict[str, Any]
) -> None:
    """Boxes in the paper's meaning, at places along the axis."""
    panel.bxp(
        [
            {
                "med": box.mean,
                "q1": box.mean - box.std,
                "q3": box.mean + box.std,
                "whislo": box.low,
                "whishi": box.high,
            }
            for box in of
        ],
        positions=places,
        widths=width,
        showfliers=False,
        patch_artist=True,
        boxprops=look,
        medianprops={"color": "black"},
        manage_ticks=False,
    )


def cluster_count(subject: FigureSubject, rows: Sequence[Row]) -> dict[str, Figure]:
    """Fig. 13 and 16: a line for each base above; their mean and the baselines below.

    The lines of the bases stand side by side, so that none hides another.
    """
    each, over_all = by_base(rows), overall(rows)
    names = labels(rows, subject.predictor)
    title = subject.title(f"error of {subject.quantity} by clusters", rows)
    figure = new_figure(7, 8.4, title)
    upper, lower = figure.subplots(2, 1)
    bases = list(each[names[0]])
    for position, base in enumerate(bases):
        aside = 0.2 * (position - (len(bases) - 1) / 2)
        spreads = [each[name][base] for name in names]
        _line(upper, names, spreads, position, str(base), aside=aside)
    upper.set_title("each base", fontsize=10)
    mean = f"{subject.predictor}, mean of the bases"
    _line(lower, names, [over_all[name] for name in names], 0, mean)
    _levels(lower, {name: over_all[name] for name in labels(rows, *BESIDE)})
    lower.set_title("mean of the bases, and baselines", fontsize=10)
    for panel in (upper, lower):
        _cluster_axis(panel, names)
        error_axis(panel)
        panel.set_ylim(top=1.5 * panel.get_ylim()[1])  # room for the legend
        panel.legend(fontsize=8, loc="upper right")
    return {"": figure}


def error_distribution(subject: FigureSubject, rows: Sequence[Row]) -> dict[str, Figure]:
    """Fig. 14 and 17: the share of all values in bins of 10 %, the last from 100 %."""
    by_name, names = shares(rows), labels(rows, subject.predictor, *BESIDE)
    bases = len({tuple(row[axis] for axis in AXES) for row in rows})
    title = subject.title(f"errors of {subject.quantity}, all {bases} bases", rows)
    figure, panel = one_panel(8, 4.8, title)
    width = 0.85 / len(names)
    for position, name in enumerate(names):
        spreads = list(by_name[name].values())
        baseline = name in BESIDE
        panel.bar(
            _bar_places(BINS, position, len(names), width),
            [spread.mean for spread in spreads],
            width,
            yerr=_whiskers(spreads),
            color="white" if baseline else COLOURS[position],
            edgecolor="black",
            hatch=_HATCHES[1 + BESIDE.index(name)] if baseline else "",
            linewidth=0.6,
            error_kw={"linewidth": 0.8},
            label=_in_words(name),
        )
    lows = [BIN_WIDTH * position for position in range(BINS)]
    ticks = [f"{low:g} to\n< {low + BIN_WIDTH:g}" for low in lows[:-1]]
    panel.set_xticks(range(BINS), [*ticks, f"≥ {lows[-1]:g}"], fontsize=8)
    panel.set_xlabel("absolute percentage error [%]")
    error_axis(panel, "share of all predictions [%]")
    panel.legend(fontsize=9)
    return {"": figure}


def oracle(subject: FigureSubject, rows: Sequence[Row]) -> dict[str, Figure]:
    """Fig. 15: the network and the oracle on the training set, over the number of clusters.

    The oracle is hollow and thick below the network, as they often are the same.
    """
    over_all = overall(rows)
    title = subject.title(f"error of {subject.quantity} on the training set", rows)
    figure, panel = one_panel(7, 4.8, title)
    below: dict[str, Any] = {
        "linewidth": 4.5,
        "markersize": 11,
        "markerfacecolor": "white",
        "alpha": 0.55,
    }
    above: dict[str, Any] = {}
    for position, predictor, look in ((1, ORACLE, below), (0, subject.predictor, above)):
        names = labels(rows, predictor)
        spreads = [over_all[name] for name in names]
        _line(panel, names, spreads, position, predictor, **look)
    _levels(panel, {name: over_all[name] for name in labels(rows, *BESIDE)})
    _cluster_axis(panel, labels(rows, subject.predictor))
    error_axis(panel)
    legend_below(figure, panel.get_legend_handles_labels()[0], 4)
    return {"": figure}


_DRAWINGS: dict[str, Callable[[FigureSubject, Sequence[Row]], dict[str, Figure]]] = {
    "base-configuration": base_configuration,
    "cluster-count": cluster_count,
    "error-distribution": error_distribution,
    "oracle": oracle,
}


def _in_words(label: str) -> str:
    """Return a label in words; one with a number of clusters ends in it."""
    return f"{label} clusters" if label[-1].isdigit() else label


def _bar_places(groups: int, position: int, count: int, width: float) -> Floats:
    """Return where the bars of one of `count` series stand in each group."""
    return np.arange(groups, dtype=np.float64) + width * (position - (count - 1) / 2)


def _whiskers(spreads: Sequence[Spread]) -> Floats:
    """From the mean to the range over the seeds, as error bars are given."""
    return np.array([[s.mean - s.low for s in spreads], [s.high - s.mean for s in spreads]])


def _line(
    panel: Axes,
    names: Sequence[str],
    spreads: Sequence[Spread],
    position: int,
    label: str,
    aside: float = 0.0,
    **look: Any,
) -> None:
    """Draw errors over the number of clusters, with the range over the seeds, moved aside."""
    panel.errorbar(
        np.array(_counts(names)) + aside,
        [spread.mean for spread in spreads],
        yerr=_whiskers(spreads),
        color=COLOURS[position % len(COLOURS)],
        marker=MARKERS[position % len(MARKERS)],
        **{"markersize": 5, "capsize": 3, "elinewidth": 0.8, **look},
        label=label,
        clip_on=False,  # a marker at 0 is seen whole
    )


def _levels(panel: Axes, levels: dict[str, Spread]) -> None:
    """Draw a level line for each baseline, shaded where the seeds range."""
    for name, level in levels.items():
        grey, style = _GREYS[name]
        panel.axhline(level.mean, color=grey, linestyle=style, label=name)
        panel.axhspan(level.low, level.high, color=grey, alpha=0.12, linewidth=0)


def _counts(names: Collection[str]) -> list[int]:
    """Return the numbers of clusters in labels."""
    return [int(name.split()[-1]) for name in names]


def _cluster_axis(panel: Axes, names: Sequence[str]) -> None:
    panel.set_xlabel("clusters in each set")
    counts = _counts(names)
    places = np.array(counts, dtype=np.float64)
    if counts[-1] > CLUSTER_COUNTS[-1]:
        panel.set_xscale("log")
        panel.minorticks_off()
        places = np.log(places)
    labelled = [len(counts) - 1]  # from the last one down, as far as the labels do not meet
    for tick in range(len(counts) - 2, -1, -1):
        if places[labelled[-1]] - places[tick] >= LEAST_DISTANCE * (places[-1] - places[0]):
            labelled.append(tick)
    panel.set_xticks(
        counts, [str(n) if t in labelled else "" for t, n in enumerate(counts)], fontsize=8
    )
