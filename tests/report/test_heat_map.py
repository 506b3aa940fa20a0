"""Heat maps: numbers, marks and colours stand where they belong. Numbers by hand."""

import re

import numpy as np
from html_page import Node, parse
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps
from matplotlib.colors import to_hex

from mlscale import ConfigGrid
from mlscale.report.heat_map import MOST_COLUMNS, HeatMap
from mlscale.studies.figures import ink

GRID = ConfigGrid((4, 8), (400.0, 800.0, 1000.0), (500.0, 700.0))
# By hand: value = 1 + index in the order of the grid, 1 to 12.
VALUES = np.arange(1.0, 13.0).reshape(2, 3, 2)


def heat_map(
    base: tuple[int, int, int] = (1, 1, 0), best: tuple[int, int, int] = (0, 0, 0)
) -> HeatMap:
    return HeatMap("Time", "ms", GRID, VALUES, base, best)


def cells(table: Node) -> list[list[Node]]:
    """The cells by row from the top and column from the left."""
    rows = [[td for td in row.all("td") if td.all("small")] for row in table.all("tr")]
    return [row for row in rows if row]


def value_and_note(cell: Node) -> list[str]:
    note = cell.one("small").text
    return [cell.text.removesuffix(note), note]


def colour(share: float) -> str:
    """At a share of the scale, from 0 to 1, as matplotlib has it."""
    return to_hex(colormaps["cividis"](share))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21. Source: WCAG 2.1, section 1.4.3."""

    def luminance(code: str) -> float:
        shares = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


class TestHeatMap:
    def test_cells_stand_at_their_clocks(self) -> None:
        """Engine clock to the right, memory clock upwards; values of the second CU count."""
        rows = cells(parse(heat_map().at_cu_count(1)))
        shown = [[value_and_note(cell)[0] for cell in row] for row in rows]
        assert shown == [["8.00", "10.0", "12.0"], ["7.00", "9.00", "11.0"]]

    def test_labels_stand_beside_their_cells(self) -> None:
        """Each row begins with its memory clock; the clocks below are as many as the columns."""
        table = parse(heat_map().at_cu_count(0))
        body = [row for row in table.one("tbody").all("tr") if row.all("th")]
        assert [row.one("th").text for row in body] == ["700", "500"]
        assert all(len(row.all("td")) == 3 for row in body)
        clocks, name = table.one("tfoot").all("tr")
        assert clocks.texts("th") == ["400", "800", "1000"]
        side = table.one("tbody").all("td", "side")
        assert [(td.text, td.attributes["rowspan"]) for td in side] == [("memory [MHz]", "3")]
        assert name.text == "engine clock [MHz]"
        # The columns of the foot begin below the first cell: name and label stand before it.
        assert len(clocks.all("td")) == len(name.all("td")) - 1 == 2

    def test_base_and_best_are_marked_in_words_and_by_frames(self) -> None:
        rows = cells(parse(heat_map(base=(1, 1, 0), best=(1, 2, 1)).at_cu_count(1)))
        assert value_and_note(rows[1][1]) == ["9.00", "base"]
        assert value_and_note(rows[0][2]) == ["12.0", "best"]
        framed = {(r, c): cell.kinds for r, row in enumerate(rows) for c, cell in enumerate(row)}
        assert {place: kinds for place, kinds in framed.items() if kinds} == {
            (1, 1): ["base"],
            (0, 2): ["best"],
        }

    def test_the_lowest_is_darkest_and_the_scale_is_that_of_all_cu_counts(self) -> None:
        fills = [
            [cell.attributes["style"][11:18] for row in cells(parse(table)) for cell in row]
            for table in (heat_map().at_cu_count(c) for c in (0, 1))
        ]
        assert fills[0][3] == colour(0.0)  # value 1, bottom left
        assert fills[1][2] == colour(1.0)  # value 12, top right
        # By hand: ln 6 / ln 12.
        assert fills[0][2] == colour(np.log(6) / np.log(12))

    def test_legend_names_both_ends(self) -> None:
        legend = parse(heat_map().legend())
        assert legend.text == "1.00 ms  12.0 ms"
        scale = legend.one("span", "scale").attributes
        assert scale["aria-label"] == "scale of colours"
        stops = re.findall("#[0-9a-f]{6}", scale["style"])
        assert (stops[0], stops[-1]) == (colour(0.0), colour(1.0))


class TestColours:
    @given(st.floats(0, 1))
    def test_text_can_be_read_on_every_colour(self, share: float) -> None:
        """WCAG 2.1 asks for 4.5 (level AA)."""
        assert contrast(colour(share), ink(colour(share))) >= 4.5


def test_of_many_clocks_ends_base_and_best_have_columns() -> None:
    clocks = tuple(np.arange(900.0, 1980.0, 15.0))
    grid = ConfigGrid((8,), clocks, (500.0, 700.0))
    values = np.arange(1.0, grid.size + 1).reshape(grid.shape)
    many = HeatMap("Time", "ms", grid, values, (0, 33, 1), (0, 50, 0))
    shown = many.shown_engines
    assert len(shown) <= MOST_COLUMNS
    assert {0, 33, 50, len(clocks) - 1} <= set(shown)
    first, second = cells(parse(many.at_cu_count(0)))
    assert len(first) == len(second) == len(shown)
    notes = [value_and_note(cell)[1] for cell in first]
    assert notes[shown.index(33)] == "base"
