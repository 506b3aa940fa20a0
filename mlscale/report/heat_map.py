"""Heat maps: a quantity over engine and memory clock at one CU count, its numbers written in."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, Index
from mlscale.report.markup import Markup, element
from mlscale.report.numbers import number, times
from mlscale.report.palette import colour

_CELL_HEIGHT = 40
_LEFT, _TOP, _BOTTOM = 70, 8, 44
_LEGEND_STEPS = 24


@dataclass(frozen=True, eq=False)
class Surface:
    """One quantity of one kernel over the grid: values (C, E, M), positive; where base and best
    are; its name and unit for the reader.
    """  # noqa: D205

    name: str
    unit: str
    grid: ConfigGrid
    values: Floats
    base: Index
    best: Index

    def share(self, value: float) -> float:
        """Where a value stands between the lowest and the highest, by its logarithm; 0 to 1."""
        low, high = np.log(self.values.min()), np.log(self.values.max())
        return 0.5 if low == high else float((np.log(value) - low) / (high - low))

    def note(self, index: Index) -> str:
        """What stands below a value: base and best by name, any other as a multiple of the base."""
        names = [name for name in ("base", "best") if getattr(self, name) == index]
        return ", ".join(names) or times(self.values[index] / self.values[self.base])


def heat_map(surface: Surface, cu: int) -> Markup:
    """The map at one index of the CU count; engine clock to the right, memory clock upwards."""
    grid = surface.grid
    engines, memories = grid.engine_mhz, grid.memory_mhz
    width = _cell_width(surface)
    bottom = _TOP + _CELL_HEIGHT * len(memories)
    cells = [
        _cell(surface, (cu, e, m), _LEFT + width * e, bottom - _CELL_HEIGHT * (m + 1), width)
        for m in reversed(range(len(memories)))
        for e in range(len(engines))
    ]
    across = [
        _label(f"{step:g}", _LEFT + width * (e + 0.5), bottom + 16)
        for e, step in enumerate(engines)
    ]
    up = [
        _label(f"{step:g}", _LEFT - 8, bottom - _CELL_HEIGHT * (m + 0.5) + 4, "end")
        for m, step in enumerate(memories)
    ]
    middle = (_TOP + bottom) / 2
    titles = [
        _label("engine clock [MHz]", _LEFT + width * len(engines) / 2, bottom + 36, small=True),
        element(
            "text",
            "memory [MHz]",
            x=14,
            y=middle,
            text_anchor="middle",
            class_="small",
            transform=f"rotate(-90 14 {middle:g})",
        ),
    ]
    title = (
        f"{surface.name} [{surface.unit}] at {grid.cu_count[cu]} compute units, "
        "engine clock by memory clock"
    )
    size = (max(_LEFT + width * len(engines) + 4, 190), max(bottom + _BOTTOM, 120))
    return picture(title, size, *cells, *across, *up, *titles)


def legend(surface: Surface) -> Markup:
    """The scale of colours, from the lowest to the highest value."""
    low, high = (number(v, 3) for v in (surface.values.min(), surface.values.max()))
    bars = [
        element(
            "rect",
            x=7 * i,
            y=0,
            width=7.5,
            height=12,
            fill=colour(i / (_LEGEND_STEPS - 1))[0],
        )
        for i in range(_LEGEND_STEPS)
    ]
    scale = picture("scale of colours", (7 * _LEGEND_STEPS, 12), *bars)
    return element("p", f"{low} {surface.unit} ", scale, f" {high} {surface.unit}", class_="legend")


def picture(title: str, size: tuple[float, float], *content: Markup | None) -> Markup:
    """An SVG picture with its name, of a width and height in CSS pixels."""
    width, height = size
    return element(
        "svg",
        element("title", title),
        *content,
        role="img",
        aria_label=title,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
    )


def _cell_width(surface: Surface) -> int:
    """Room for the longest number and for the notes of base and best, in CSS pixels."""
    texts: Sequence[str] = [number(v, 3) for v in surface.values.flat]
    notes = [surface.note(surface.best), surface.note(surface.base)]
    widest = max(7.5 * max(map(len, texts)), 6.5 * max(map(len, notes)))
    return max(58, 12 + math.ceil(widest))


def _cell(surface: Surface, index: Index, x: float, y: float, width: float) -> Markup:
    value = float(surface.values[index])
    fill, ink = colour(surface.share(value))
    marks = [name for name in ("base", "best") if getattr(surface, name) == index]
    frames = [
        element(
            "rect",
            x=x + 2.5,
            y=y + 2.5,
            width=width - 5,
            height=_CELL_HEIGHT - 5,
            fill="none",
            stroke=ink,
            stroke_width=2,
            stroke_dasharray=None if name == "base" else "5 3",
        )
        for name in marks
    ]
    middle = x + width / 2
    return element(
        "g",
        element("rect", x=x, y=y, width=width, height=_CELL_HEIGHT, fill=fill),
        *frames,
        element("text", number(value, 3), x=middle, y=y + 18, text_anchor="middle", fill=ink),
        element(
            "text",
            surface.note(index),
            x=middle,
            y=y + 32,
            text_anchor="middle",
            fill=ink,
            class_="small",
        ),
        class_=" ".join(["cell", *marks]),
    )


def _label(text: str, x: float, y: float, anchor: str = "middle", small: bool = False) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_="small" if small else None)
