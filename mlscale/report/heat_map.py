"""Heat maps of a kernel, as tables: docs/decisions/0013-report-figures.md says why."""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, Index
from mlscale.data.surfaces import relative_values
from mlscale.report.markup import Markup, cu_in_words, element, paragraph, times
from mlscale.report.style import COLOUR_MAP, ink
from mlscale.text import number

MOST_COLUMNS = 12  # of a heat map that a reader can take in


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A quantity of a kernel over the grid: values (C, E, M), positive; its name and unit for
    the reader; where base and best are.
    """  # noqa: D205

    name: str
    unit: str
    grid: ConfigGrid
    values: Floats
    base: Index
    best: Index

    @cached_property
    def factors(self) -> Floats:
        """Return the values relative to that at the base."""
        return relative_values(self.values, self.base)

    def at_cu_count(self, c: int) -> Markup:
        """Return the table at one CU count; engine clock to the right, memory upwards."""
        shown, memories = self.shown_engines, self.grid.memory_mhz
        engines = [self.grid.engine_mhz[e] for e in shown]
        rows = [
            element(
                "tr",
                element("th", f"{memories[m]:g}", scope="row"),
                *(self._cell((c, e, m)) for e in shown),
            )
            for m in reversed(range(len(memories)))
        ]
        clocks = [element("th", f"{clock:g}", scope="col") for clock in engines]
        below = element("td", "engine clock [MHz]", class_="axis-name", colspan=len(engines))
        cu_count = cu_in_words(self.grid.cu_count[c])
        title = f"{self.name} [{self.unit}] at {cu_count}, engine clock by memory clock"
        side = element(
            "tr",
            element(
                "td",
                element("span", "memory [MHz]"),
                class_="axis-name side",
                rowspan=len(rows) + 1,
            ),
        )
        corner = element("td")
        return element(
            "table",
            element("tbody", side, *rows),
            element(
                "tfoot",
                element("tr", corner, corner, *clocks),
                element("tr", corner, corner, below),
            ),
            class_="map",
            aria_label=title,
        )

    @property
    def shown_engines(self) -> list[int]:
        """Return the engine clocks with a column: of many the ends, base, best and some between."""
        count = len(self.grid.engine_mhz)
        if count <= MOST_COLUMNS:
            return list(range(count))
        even = np.linspace(0, count - 1, MOST_COLUMNS - 2).round().astype(int).tolist()
        return sorted({*even, self.base[1], self.best[1]})

    def legend(self) -> Markup:
        """Return the scale of colours, from the lowest to the highest value."""
        stops = ",".join(colour(stop / 8) for stop in range(9))
        scale = element(
            "span",
            class_="scale",
            role="img",
            aria_label="scale of colours",
            style=f"background:linear-gradient(to right,{stops})",
        )
        low, high = (f"{number(v, 3)} {self.unit}" for v in (self.values.min(), self.values.max()))
        return paragraph(f"{low} ", scale, f" {high}", kind="legend")

    def share(self, value: float) -> float:
        """Return where a value stands between lowest and highest, by its logarithm; 0 to 1."""
        low, high = self._ends
        return 0.5 if low == high else (math.log(value) - low) / (high - low)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The logarithms of the lowest and the highest value."""
        return math.log(self.values.min()), math.log(self.values.max())

    def _cell(self, index: Index) -> Markup:
        """Return a value, and below it 'base', 'best' or its multiple of the base."""
        value = float(self.values[index])
        fill = colour(self.share(value))
        marks = [mark for mark in ("base", "best") if getattr(self, mark) == index]
        note = ", ".join(marks) or times(self.factors[index])
        return element(
            "td",
            number(value, 3),
            element("small", note),
            class_=" ".join(marks) or None,
            style=f"background:{fill};color:{ink(fill)}",
        )


def colour(share: float) -> str:
    """Return the colour at a share from 0 to 1."""
    return _colours()[round(share * (len(_colours()) - 1))]


@cache
def _colours() -> tuple[str, ...]:
    """Return the colours of the map: one by one they would cost a fifth of the page."""
    return tuple(map(to_hex, colormaps[COLOUR_MAP](np.linspace(0, 1, 256))))
