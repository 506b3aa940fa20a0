"""Line charts along an axis, and the scatter of time and energy with its Pareto front."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.report.heat_map import picture
from mlscale.report.markup import Markup, element, joined

WIDTH, HEIGHT = 340, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 20, 44
_CHARACTER = 7.0
_MARKS = ("circle", "square", "triangle")
_DASHES = (None, "7 4", "2 3")


@dataclass(frozen=True)
class Line:
    """A curve: its name, its place (which gives colour, dashes and mark), its values, and
    perhaps an interval around them.
    """  # noqa: D205

    name: str
    place: int
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class _Frame:
    """The area of a chart: ranges of x and y, and where a point of them is drawn."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        return _between(value, self.x_range, (_LEFT, WIDTH - _RIGHT))

    def y(self, value: float) -> float:
        return _between(value, self.y_range, (HEIGHT - _BOTTOM, _TOP))


def curves(title: str, label: str, steps: Sequence[float], base: int, lines: list[Line]) -> Markup:
    """Factors along one axis through the base; steps of the axis, base the index of its own."""
    tops = [line.values if line.high is None else line.high for line in lines]
    frame = _Frame((steps[0], steps[-1]), (0.0, 1.05 * max(float(top.max()) for top in tops)))
    at_base = frame.x(steps[base])
    parts = [
        _axes(frame, _far_apart(frame, steps, base), label, "factor to the base"),
        _rule(at_base, _TOP, at_base, HEIGHT - _BOTTOM, "base-line"),
        _text("base", at_base, _TOP - 6, _anchor(at_base)),
    ]
    for line in lines:
        colours = f"line-{line.place}"
        x = [frame.x(step) for step in steps]
        if line.low is not None and line.high is not None:
            around = [*zip(x, line.high, strict=True), *reversed([*zip(x, line.low, strict=True)])]
            points = _points((h, frame.y(v)) for h, v in around)
            parts.append(element("polygon", points=points, class_=f"band {colours}"))
        placed = [(h, frame.y(v)) for h, v in zip(x, line.values, strict=True)]
        parts.append(_path(placed, line.place))
        parts += [_mark(h, v, line.place) for h, v in placed]
    return picture(title, (WIDTH, HEIGHT), *parts)


def key_to_lines(lines: list[Line]) -> Markup:
    """Which curve is which, by mark, dashes and colour."""
    samples = [
        element(
            "span",
            picture(
                line.name, (34, 12), _path([(2, 6), (32, 6)], line.place), _mark(17, 6, line.place)
            ),
            f" {line.name}",
        )
        for line in lines
    ]
    return element("p", joined(*samples, between=" "), class_="legend")


def scatter(title: str, time_ms: Floats, energy_mj: Floats, front: Mask, base: int) -> Markup:
    """Every configuration by time and energy; the front joined; the base by a diamond.

    time_ms, energy_mj, front: (N,), base an index into them.
    """
    frame = _Frame(_roomy(time_ms), _roomy(energy_mj))
    order = np.flatnonzero(front)[np.argsort(time_ms[front], kind="stable")]
    placed = [(frame.x(t), frame.y(e)) for t, e in zip(time_ms, energy_mj, strict=True)]
    on_front = [placed[i] for i in order]
    x, y = placed[base]
    diamond = _points([(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)])
    others = [_circle(*placed[i], 2.5, "dot") for i in np.flatnonzero(~front)]
    return picture(
        title,
        (WIDTH, HEIGHT),
        _axes(frame, _thinned(frame, _ticks(*frame.x_range)), "time [ms]", "energy [mJ]"),
        *others,
        _path(on_front, 0),
        *(_mark(h, v, 0) for h, v in on_front),
        element("polygon", points=diamond, class_="base-mark"),
        _text("base", x, y - 11, _anchor(x)),
    )


def _axes(frame: _Frame, x_ticks: Sequence[float], x_label: str, y_label: str) -> Markup:
    left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = [_rule(left, bottom, right, bottom, "axis"), _rule(left, _TOP, left, bottom, "axis")]
    for tick in x_ticks:
        parts += [_rule(frame.x(tick), bottom, frame.x(tick), bottom + 4, "axis")]
        parts += [_text(f"{tick:g}", _label_x(frame, tick), bottom + 16)]
    for tick in _ticks(*frame.y_range):
        parts += [_rule(left, frame.y(tick), right, frame.y(tick), "grid-line")]
        parts += [_text(f"{tick:g}", left - 6, frame.y(tick) + 4, "end")]
    middle = (_TOP + bottom) / 2
    turned = {"transform": f"rotate(-90 11 {middle:g})", "text_anchor": "middle"}
    parts.append(_text(x_label, (left + right) / 2, HEIGHT - 8))
    parts.append(element("text", y_label, x=11, y=middle, class_="small", **turned))
    return element("g", *parts)


def _far_apart(frame: _Frame, steps: Sequence[float], base: int) -> list[float]:
    """The steps whose labels do not overlap; the base's first, then from the lowest up."""
    kept: list[float] = []
    for step in [steps[base], steps[0], steps[-1], *steps]:
        if all(_gap(frame, step, other) > 3 for other in kept):
            kept.append(step)
    return sorted(kept)


def _thinned(frame: _Frame, ticks: list[float]) -> list[float]:
    """Every tick, every second, or as few as their labels need not to overlap."""
    every = 1
    while any(_gap(frame, *pair) < 3 for pair in itertools.pairwise(ticks[::every])):
        every += 1
    return ticks[::every]


def _gap(frame: _Frame, one: float, other: float) -> float:
    """The room between the labels of two steps."""
    width = _CHARACTER * (len(f"{one:g}") + len(f"{other:g}")) / 2
    return abs(_label_x(frame, one) - _label_x(frame, other)) - width


def _label_x(frame: _Frame, tick: float) -> float:
    """Where the middle of a label stands: below its tick, but inside the picture."""
    return min(frame.x(tick), WIDTH - 2 - _CHARACTER * len(f"{tick:g}") / 2)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, four to nine of them, or the one number."""
    if low == high:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(s * power for s in (5, 2, 1) if s * power * 4 <= (high - low) * (1 + 1e-9))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _roomy(values: Floats) -> tuple[float, float]:
    """The range of values with a little room on both sides."""
    low, high = float(values.min()), float(values.max())
    room = 0.08 * (high - low) or 0.1 * high
    return low - room, high + room


def _between(value: float, of: tuple[float, float], onto: tuple[float, float]) -> float:
    share = 0.5 if of[0] == of[1] else (value - of[0]) / (of[1] - of[0])
    return round(onto[0] + float(share) * (onto[1] - onto[0]), 2)


def _path(points: Sequence[tuple[float, float]], place: int) -> Markup:
    return element(
        "polyline",
        points=_points(points),
        class_=f"curve line-{place}",
        stroke_dasharray=_DASHES[place],
    )


def _mark(x: float, y: float, place: int) -> Markup:
    colours = f"mark line-{place}"
    match _MARKS[place]:
        case "square":
            return element("rect", x=x - 3.5, y=y - 3.5, width=7, height=7, class_=colours)
        case "triangle":
            corners = _points([(x, y - 5), (x + 4.5, y + 3.5), (x - 4.5, y + 3.5)])
            return element("polygon", points=corners, class_=colours)
        case _:
            return _circle(x, y, 4, colours)


def _circle(x: float, y: float, radius: float, kind: str) -> Markup:
    return element("circle", cx=x, cy=y, r=radius, class_=kind)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.6g},{y:.6g}" for x, y in points)


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _anchor(x: float) -> str:
    """Where a text hangs so that it stays inside the picture."""
    return "start" if x < _LEFT + 20 else "end" if x > WIDTH - _RIGHT - 20 else "middle"


def _text(text: str, x: float, y: float, anchor: str = "middle") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_="small")
