"""Heat maps of a kernel, as tables: docs/decisions/0013-report-figures.md says why."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize, to_hex

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, Index
from mlscale.data.surfaces import relative_values
from mlscale.report.markup import Markup, cu_in_words, element, paragraph, times
from mlscale.studies.figures import COLOUR_MAP, ink
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

    @cached_property
    def colours(self) -> Floats:
        """The colour of each value, by its logarithm from lowest to highest, (C, E, M, 4)."""
        return np.asarray(colormaps[COLOUR_MAP](Normalize()(np.log(self.values))))

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
        cu_count = cu_in_words(self.grid.config((c, 0, 0)))
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
        stops = ",".join(map(to_hex, colormaps[COLOUR_MAP](np.linspace(0, 1, 9))))
        scale = element(
            "span",
            class_="scale",
            role="img",
            aria_label="scale of colours",
            style=f"background:linear-gradient(to right,{stops})",
        )
        low, high = (f"{number(v, 3)} {self.unit}" for v in (self.values.min(), self.values.max()))
        return paragraph(f"{low} ", scale, f" {high}", kind="legend")

    def _cell(self, index: Index) -> Markup:
        """Return a value, and below it 'base', 'best' or its multiple of the base."""
        value = float(self.values[index])
        fill = to_hex(self.colours[index])
        marks = [mark for mark in ("base", "best") if getattr(self, mark) == index]
        note = ", ".join(marks) or times(self.factors[index])
        return element(
            "td",
            number(value, 3),
            element("small", note),
            class_=" ".join(marks) or None,
            style=f"background:{fill};color:{ink(fill)}",
        )
