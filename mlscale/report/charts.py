"""Charts as matplotlib's SVG.

The charts of the page take their colours from its style sheet, so that they follow light and
dark: docs/decisions/0013-report-figures.md.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mlscale.arrays import Floats, Mask
from mlscale.counters.roofline import BALANCED, LEAST_BOUND
from mlscale.report.labels import LabelBox, label_boxes
from mlscale.report.markup import Markup, element, percent, picture, table
from mlscale.text import number

WIDTH, HEIGHT = 340, 242  # [CSS pixels]: a chart fits a phone
_MOST_MARKS = 16  # of a curve whose marks do not meet
_MARKERS = "os^"
_DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 18, 24, 50
_FRAME = (WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM)  # of the axes [CSS pixels]
_LINE = 12.0  # height of a label of ten points
_WORD = 6.5  # so wide [CSS pixels] is a letter of the words of a picture, on average
_FAR = 16.0  # from the edge of a dot: a label further off has a line to it [CSS pixels]
_CHARACTER = 7.0  # so wide [CSS pixels] is a digit of an axis' labels in a wide font
_NAMED = "band|front|other|base-line|base-mark|bounds|kernels"  # groups whose ids become classes
# What stands in matplotlib's output, and what of style.css it becomes.
_COLOURS = ("#0072b2", "#c24e00", "#00795a")
_RULE, _PAPER, _INK = "#cbd2d9", "#ffffff", "#010101"
_FROM_STYLE_SHEET = {
    **{colour: f"var(--line-{place})" for place, colour in enumerate(_COLOURS)},
    _RULE: "var(--rule)",
    _PAPER: "var(--paper)",
    _INK: "currentColor",
}


@dataclass(frozen=True, eq=False)
class ChartCurve:
    """A quantity along an axis: its name, values, and perhaps an interval around them, (n,)."""

    name: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


def axis_chart(
    label: str, steps: Sequence[float], base: int | None, curves: Sequence[ChartCurve]
) -> Figure:
    """Factors to the base along one axis; base: its index in the steps, None if it is not there."""
    figure, axes = _chart(label, "factor to the base")
    if base is not None:
        at_base: dict[str, Any] = {"linewidth": 1, "linestyle": ":", "gid": "base-line"}
        axes.axvline(steps[base], color=_INK, clip_on=False, **at_base)
        below = axes.get_xaxis_transform()
        axes.text(steps[base], -0.165, "base", transform=below, ha="center", fontsize=11)
        axes.xaxis.labelpad = 16
    for curve, colour_, marker, dashes in zip(curves, _COLOURS, _MARKERS, _DASHES, strict=False):
        if curve.low is not None and curve.high is not None:
            band: dict[str, Any] = {"alpha": 0.18, "linewidth": 0, "gid": "band"}
            axes.fill_between(steps, curve.low, curve.high, color=colour_, clip_on=False, **band)
        look = _curve(colour_, marker, len(steps))
        axes.plot(steps, curve.values, linestyle=dashes, label=curve.name, **look)
    axes.set_ylim(bottom=0)
    ticks = _labelled(steps, base or 0)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.99),
        ncols=3,
        frameon=False,
        fontsize=11,
        borderpad=0.2,
        handlelength=2.6,
        columnspacing=1.4,
    )
    return figure


def front_chart(
    time: Floats,
    energy: Floats,
    front: Mask,
    base: int,
    best: int | None = None,
    units: tuple[str, str] = ("ms", "mJ"),
) -> Figure:
    """Every configuration by time and energy; the front joined, base and best in a frame.

    time, energy, front: (N,), in these units; base, best: indices into them.
    """
    figure, axes = _chart(f"time [{units[0]}]", f"energy [{units[1]}]")
    axes.plot(
        time[~front],
        energy[~front],
        "o",
        color=_INK,
        alpha=0.45,
        ms=5,
        mew=0,
        clip_on=False,
        gid="other",
    )
    order = np.flatnonzero(front)[np.argsort(time[front], kind="stable")]
    look = _curve(_COLOURS[0], "o", len(order))
    axes.plot(time[order], energy[order], label="front", gid="front", **look)
    marks = {base: "base"} if best in (None, base) else {base: "base", best: "best"}
    for i, word in marks.items():
        at, marker = (time[i], energy[i]), "D" if word == "base" else "s"
        axes.plot(*at, marker, ms=10, mfc="none", mec=_INK, mew=2, clip_on=False, gid="base-mark")
        axes.annotate(word, at, (0, 9), textcoords="offset points", ha="center", fontsize=11)
    axes.margins(0.1)
    axes.set_xticks(_fitting_ticks(axes))
    return figure


def front_table(
    names: Sequence[str],
    time: Floats,
    energy: Floats,
    front: Mask,
    base: int,
    units: tuple[str, str],
) -> Markup:
    """The front in numbers, the quickest first; names (N,): of the configurations.

    The rest is as in `front_chart`.
    """
    rows = [
        [
            names[i],
            number(time[i]),
            percent(time[i] / time[base] - 1),
            number(energy[i]),
            percent(energy[i] / energy[base] - 1),
        ]
        for i in np.flatnonzero(front)[np.argsort(time[front], kind="stable")]
    ]
    costs = [f"time {units[0]}", "to base", f"energy {units[1]}", "to base"]
    return table(["on the Pareto front", *costs], rows)


def roofline_chart(core: Floats, dram: Floats, run: Floats, labels: Sequence[str]) -> Figure:
    """Kernels between the peaks of core and DRAM; the larger a dot, the more of the run it is.

    core, dram, run: shares from 0 to 1, (N,); labels: beside the dots, '' for none. The dashed
    lines divide the page's words: latency-bound below, balanced between the two others.
    """
    figure, axes = _chart("busiest unit of the core [% of peak]", "DRAM bandwidth [% of peak]")
    sizes = np.maximum(30, 1500 * run)  # [square points]
    top = max(1.0, float(np.max(core, initial=1)), float(np.max(dram, initial=1))) * 100
    least, gap = 100 * LEAST_BOUND, 100 * BALANCED
    lines = [
        ([0, least, least], [least, least, 0]),
        ([least - gap, top - gap], [least, top]),
        ([least, top], [least - gap, top - gap]),
    ]
    for x, y in lines:
        axes.plot(x, y, color=_INK, alpha=0.6, linewidth=1, linestyle=(0, (4, 3)), gid="bounds")
    words = {"memory-bound": (3.0, top - 5), "latency-bound": (3.0, least - 7)}
    words["core-bound"] = (top * (1 - (len("core-bound") * _WORD + 4) / _FRAME[0]), 4)
    for word, at in words.items():
        axes.text(*at, word, fontsize=10)
    axes.scatter(
        100 * core,
        100 * dram,
        s=sizes,
        color=_COLOURS[0],
        alpha=0.55,
        edgecolor=_PAPER,
        linewidth=1,
        clip_on=False,
        gid="kernels",
    )
    _label(axes, np.column_stack([core, dram]) * 100, np.sqrt(sizes / np.pi), labels, words, top)
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    return figure


def _label(
    axes: Axes,
    places: Floats,
    radii: Floats,
    labels: Sequence[str],
    words: Mapping[str, tuple[float, float]],
    top: float,
) -> None:
    """Write labels beside dots (N, 2), where no dot and no word lies; a line leads to one far off.

    radii: of the dots (N,) [points]; words: those of the picture, each with where it begins; top:
    the end of both axes.
    """
    scale = np.array(_FRAME) / top
    taken = []
    for word, (x, y) in words.items():
        width = len(word) * _WORD
        taken.append(LabelBox(x * scale[0] + width / 2, y * scale[1] + _LINE / 3, width, _LINE))
    dots = [(*at, radius) for at, radius in zip((places * scale).tolist(), radii, strict=True)]
    sizes = [(len(label) * _CHARACTER, _LINE if label else 0.0) for label in labels]
    boxes = label_boxes(dots, sizes, taken, _FRAME)
    for label, box, at, radius in zip(labels, boxes, places, radii, strict=True):
        if box is None:
            continue
        centre = np.array([box.x, box.y]) / scale
        away = float(np.hypot(*((centre - at) * scale)))
        if away > radius + _FAR:
            end = centre + (at - centre) * _LINE * 0.7 / away
            axes.plot(*zip(at, end, strict=True), color=_INK, linewidth=0.7, zorder=0)
        axes.text(centre[0], centre[1], label, ha="center", va="center", fontsize=10)


def svg(figure: Figure, title: str, salt: str) -> Markup:
    """A chart as an element of the page; salt: tells its ids from those of every other chart."""
    file = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata=no_metadata)
    _, _, content = file.getvalue().partition("</defs>")  # matplotlib's own style stands before
    content = content.removesuffix("</svg>\n")
    content = re.sub(r' id="[\w.]+_\d+"| transform="rotate\(-0 [^"]*"', "", content)
    content = re.sub(rf'(<g) id="({_NAMED})"', r'\1 class="\2"', content)
    content = re.sub(r"font-family: [^;\"]*(; )?", "", content)
    content = re.sub(
        r"\d+\.\d+", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), content
    )
    content = re.sub(r"\s*\n\s*", " ", content)
    for colour_, variable in _FROM_STYLE_SHEET.items():
        content = content.replace(colour_, variable)
    return picture(content, title, WIDTH, HEIGHT)


def chart(caption: str, figure: Figure, title: str, salt: str) -> Markup:
    """A chart below its caption; title and salt: as for `svg`."""
    drawn = svg(figure, title, salt)
    return element("figure", element("figcaption", caption), drawn, class_="chart")


def _chart(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """Return an empty chart with its axes named, transparent, lines across at the ticks of y."""
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    FigureCanvasSVG(figure)
    width, height = _FRAME
    axes = figure.add_axes((_LEFT / WIDTH, _BOTTOM / HEIGHT, width / WIDTH, height / HEIGHT))
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.set_xlabel(x_label, fontsize=11)
    axes.set_ylabel(y_label, fontsize=11)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=_RULE, linewidth=1, clip_on=False)
    axes.tick_params(axis="y", length=0, labelsize=11)
    axes.tick_params(axis="x", color=_INK, labelsize=11)
    return figure, axes


def _curve(colour_: str, marker: str, count: int) -> dict[str, Any]:
    """How a line through so many points looks."""
    marks = {"marker": marker if count <= _MOST_MARKS else None, "ms": 7, "mec": _PAPER, "mew": 1}
    return {"color": colour_, "linewidth": 2, "clip_on": False, **marks}


def _labelled(steps: Sequence[float], base: int) -> list[float]:
    """The steps whose labels do not overlap: the base's, the ends', then as many as fit."""
    pixels = _FRAME[0] / 1.1 / ((steps[-1] - steps[0]) or 1)
    shown: list[float] = []
    for step in [steps[base], steps[0], steps[-1], *steps]:
        if all(
            abs(step - other) * pixels > _CHARACTER * len(f"{step:g}{other:g}") / 2 + 4
            for other in shown
        ):
            shown.append(step)
    return sorted(shown)


def _fitting_ticks(axes: Axes) -> list[float]:
    """Return round numbers of the horizontal axis whose labels do not meet or leave the picture."""
    low, high = axes.get_xlim()
    pixels = _FRAME[0] / (high - low)
    ticks: list[float] = []
    for most in (5, 4, 3, 2):
        ticks = [
            t
            for t in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
            if low <= t <= high
        ]
        labels = axes.xaxis.get_major_formatter().format_ticks(ticks)
        width = _CHARACTER * max(map(len, labels), default=0)
        ticks = [t for t in ticks if (high - t) * pixels + _RIGHT > width / 2]
        if len(ticks) < 2 or (ticks[1] - ticks[0]) * pixels > width + 4:
            break
    return ticks
