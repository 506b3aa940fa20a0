"""Pictures of the report: numbers and marks stand where they belong."""

import itertools
import re

import numpy as np
import pytest
from html_page import Node, parse
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale import ConfigGrid
from mlscale.report.charts import Line, curves, key_to_lines, scatter
from mlscale.report.heat_map import Surface, heat_map, legend
from mlscale.report.numbers import percent, times
from mlscale.report.palette import colour
from mlscale.report.range_bar import strip

GRID = ConfigGrid((4, 8), (400.0, 800.0, 1000.0), (500.0, 700.0))
# By hand: value = 1 + index in the order of the grid, 1 to 12.
VALUES = np.arange(1.0, 13.0).reshape(2, 3, 2)


def a_surface(
    base: tuple[int, int, int] = (1, 1, 0), best: tuple[int, int, int] = (0, 0, 0)
) -> Surface:
    return Surface("Time", "ms", GRID, VALUES, base, best)


def box(cell: Node) -> tuple[float, float]:
    """Left and top of a cell."""
    first = cell.all("rect")[0].attributes
    return float(first["x"]), float(first["y"])


def grid_of(svg: Node) -> list[list[Node]]:
    """The cells by row from the top and column from the left."""
    cells = svg.all("g", "cell")
    rows = sorted({box(cell)[1] for cell in cells})
    return [sorted((c for c in cells if box(c)[1] == y), key=box) for y in rows]


def points(text: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in text.split()]  # type: ignore[misc]


class TestHeatMap:
    def test_cells_stand_at_their_clocks(self) -> None:
        """Engine clock to the right, memory clock upwards; values of the second CU count."""
        svg = parse(heat_map(a_surface(), 1)).one("svg")
        shown = [[cell.texts("text")[0] for cell in row] for row in grid_of(svg)]
        assert shown == [["8.00", "10.0", "12.0"], ["7.00", "9.00", "11.0"]]

    def test_labels_stand_beside_their_cells(self) -> None:
        svg = parse(heat_map(a_surface(), 0)).one("svg")
        rows = grid_of(svg)
        labels = {node.text: node.attributes for node in svg.all("text")}
        width = float(rows[0][0].all("rect")[0].attributes["width"])
        for column, engine in enumerate(("400", "800", "1000")):
            assert float(labels[engine]["x"]) == box(rows[0][column])[0] + width / 2
        for row, memory in enumerate(("700", "500")):
            top = box(rows[row][0])[1]
            assert top < float(labels[memory]["y"]) < top + 40

    def test_base_and_best_are_marked_in_words_and_by_frames(self) -> None:
        surface = a_surface(base=(1, 1, 0), best=(1, 2, 1))
        rows = grid_of(parse(heat_map(surface, 1)).one("svg"))
        assert rows[1][1].texts("text") == ["9.00", "base"]
        assert rows[0][2].texts("text") == ["12.0", "best"]
        for row in rows:
            for cell in row:
                frames = [r for r in cell.all("rect") if r.attributes["fill"] == "none"]
                assert len(frames) == (cell in (rows[1][1], rows[0][2]))
        assert "stroke-dasharray" in rows[0][2].all("rect")[1].attributes
        assert "stroke-dasharray" not in rows[1][1].all("rect")[1].attributes

    def test_no_mark_at_another_cu_count(self) -> None:
        text = heat_map(a_surface(base=(1, 1, 0), best=(1, 2, 1)), 0)
        assert "best" not in text
        assert "base" not in text

    def test_base_that_is_best_says_both(self) -> None:
        rows = grid_of(parse(heat_map(a_surface((0, 0, 0), (0, 0, 0)), 0)).one("svg"))
        assert rows[1][0].texts("text") == ["1.00", "base, best"]

    def test_the_lowest_is_darkest_and_the_scale_is_that_of_all_cu_counts(self) -> None:
        fills = [
            [cell.all("rect")[0].attributes["fill"] for row in grid_of(svg) for cell in row]
            for svg in (parse(heat_map(a_surface(), cu)).one("svg") for cu in (0, 1))
        ]
        assert fills[0][3] == colour(0.0)[0]  # value 1, bottom left
        assert fills[1][2] == colour(1.0)[0]  # value 12, top right
        # By hand: ln 6 / ln 12.
        assert fills[0][2] == colour(np.log(6) / np.log(12))[0]

    def test_one_value_everywhere_has_one_colour(self) -> None:
        flat = Surface("Time", "ms", GRID, np.ones((2, 3, 2)), (0, 0, 0), (0, 0, 0))
        assert {flat.share(1.0)} == {0.5}
        parse(heat_map(flat, 0) + legend(flat))

    def test_everything_lies_inside_the_picture(self) -> None:
        svg = parse(heat_map(a_surface(), 0)).one("svg")
        width, height = (float(svg.attributes[name]) for name in ("width", "height"))
        for rect in svg.all("rect"):
            x, y, w, h = (float(rect.attributes[a]) for a in ("x", "y", "width", "height"))
            assert min(x, y) >= 0
            assert x + w <= width
            assert y + h <= height
        for text in svg.all("text"):
            assert 0 < float(text.attributes["x"]) < width
            assert 0 < float(text.attributes["y"]) < height

    def test_a_cell_is_wide_enough_for_its_number(self) -> None:
        """8.5 CSS pixels are more than a digit of 12 px in any usual font."""
        tiny = Surface("Time", "ms", GRID, VALUES * 1e-6, (0, 0, 0), (0, 0, 0))
        cell = parse(heat_map(tiny, 0)).all("g", "cell")[0]
        text = cell.texts("text")[0]
        assert text == "0.00000200"
        assert float(cell.all("rect")[0].attributes["width"]) >= 7.5 * len(text)

    def test_says_what_it_is(self) -> None:
        svg = parse(heat_map(a_surface(), 1)).one("svg")
        assert svg.attributes["role"] == "img"
        assert svg.attributes["aria-label"] == svg.one("title").text
        assert "8 compute units" in svg.one("title").text

    def test_legend_names_both_ends(self) -> None:
        assert parse(legend(a_surface())).text == "1.00 ms scale of colours 12.0 ms"


class TestCurves:
    STEPS = (400.0, 800.0, 1000.0)

    def one(self, *lines: Line) -> Node:
        return parse(curves("title", "engine clock [MHz]", self.STEPS, 1, list(lines))).one("svg")

    def test_points_are_proportional_to_step_and_factor(self) -> None:
        """By hand: 800 is two thirds of the way; heights above 0 as 2 : 1 : 0.8."""
        svg = self.one(Line("time", 0, np.array([2.0, 1.0, 0.8])))
        (x0, y0), (x1, y1), (x2, y2) = points(svg.one("polyline", "curve").attributes["points"])
        assert (x1 - x0) / (x2 - x0) == pytest.approx(2 / 3, abs=1e-3)
        zero = max(float(line.attributes["y1"]) for line in svg.all("line", "axis"))
        assert (zero - y1) / (zero - y0) == pytest.approx(0.5, abs=1e-3)
        assert (zero - y2) / (zero - y0) == pytest.approx(0.4, abs=1e-3)

    def test_the_base_has_a_line_and_a_word(self) -> None:
        svg = self.one(Line("time", 0, np.array([2.0, 1.0, 0.8])))
        base = svg.one("line", "base-line").attributes["x1"]
        marks = [circle.attributes["cx"] for circle in svg.all("circle")]
        assert marks.index(base) == 1
        assert "base" in svg.texts("text")

    def test_curves_differ_by_dashes_and_marks(self) -> None:
        ones = np.ones(3)
        svg = self.one(*(Line(name, i, ones) for i, name in enumerate(("time", "power", "energy"))))
        dashes = [c.attributes.get("stroke-dasharray") for c in svg.all("polyline")]
        assert len(set(dashes)) == 3
        assert [len(svg.all(tag, "mark")) for tag in ("circle", "rect", "polygon")] == [3, 3, 3]
        key = parse(key_to_lines([Line("time", 0, ones), Line("power", 1, ones)]))
        assert [span.text.split()[-1] for span in key.all("span")] == ["time", "power"]

    def test_an_interval_is_a_band_around_the_curve(self) -> None:
        values = np.array([2.0, 1.0, 0.8])
        svg = self.one(Line("time", 0, values, values * 0.9, values * 1.1))
        band = points(svg.one("polygon", "band").attributes["points"])
        line = points(svg.one("polyline").attributes["points"])
        for (x, y), upper, lower in zip(line, band[:3], band[:2:-1], strict=True):
            assert (upper[0], lower[0]) == (x, x)
            assert upper[1] < y < lower[1]
            assert upper[1] >= 0

    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(st.floats(1, 1e4), min_size=2, max_size=30, unique=True).map(sorted),
        st.data(),
    )
    def test_labels_of_steps_never_overlap_and_the_base_has_one(
        self, steps: list[float], data: st.DataObject
    ) -> None:
        base = data.draw(st.integers(0, len(steps) - 1))
        line = Line("time", 0, np.ones(len(steps)))
        svg = parse(curves("t", "x", steps, base, [line])).one("svg")
        bottom = max(float(text.attributes["y"]) for text in svg.all("text")) - 20
        labels = [
            (float(t.attributes["x"]), t.text)
            for t in svg.all("text")
            if abs(float(t.attributes["y"]) - bottom) < 4
            and t.attributes["text-anchor"] == "middle"
        ]
        assert f"{steps[base]:g}" in [text for _, text in labels]
        for (x, text), (other, beside) in itertools.pairwise(labels):
            assert other - x >= 6 * (len(text) + len(beside)) / 2


class TestScatter:
    TIME = np.array([1.0, 2.0, 3.0, 2.5])
    ENERGY = np.array([9.0, 5.0, 4.0, 8.0])

    def test_the_front_is_joined_in_order_of_time_and_the_base_is_marked(self) -> None:
        front = np.array([True, True, True, False])
        svg = parse(scatter("t", self.TIME, self.ENERGY, front, 3)).one("svg")
        line = points(svg.one("polyline", "curve").attributes["points"])
        assert len(line) == 3
        assert [x for x, _ in line] == sorted(x for x, _ in line)
        assert [y for _, y in line] == sorted(y for _, y in line)  # downwards: less energy
        diamond = np.mean(points(svg.one("polygon", "base-mark").attributes["points"]), axis=0)
        (dot,) = svg.all("circle", "dot")
        centre = (float(dot.attributes["cx"]), float(dot.attributes["cy"]))
        np.testing.assert_allclose(diamond, centre, atol=0.01)
        # By hand: 2.5 lies between 2 and 3, in the middle.
        assert centre[0] == pytest.approx((line[1][0] + line[2][0]) / 2, abs=0.02)

    def test_one_configuration_is_a_point(self) -> None:
        one = np.array([2.0])
        svg = parse(scatter("t", one, one, np.array([True]), 0)).one("svg")
        assert len(svg.all("circle", "mark")) == 1

    @settings(deadline=None, max_examples=60)
    @given(st.floats(1e-6, 1e6), st.floats(1e-4, 10))
    def test_points_and_labels_stay_inside(self, low: float, spread: float) -> None:
        time = low * (1 + spread * np.linspace(0, 1, 5))
        front = np.array([True, False, False, False, True])
        svg = parse(scatter("t", time, time[::-1], front, 2)).one("svg")
        for circle in svg.all("circle"):
            assert 50 <= float(circle.attributes["cx"]) <= 340
            assert 0 <= float(circle.attributes["cy"]) <= 230
        assert len(svg.all("line", "grid-line")) >= 2


class TestStrip:
    def mark_of(self, share: float | None) -> list[float]:
        """Where the marks are: centres of dots, tips of arrows."""
        svg = parse(strip("name", share)).one("svg")
        dots = [float(dot.attributes["cx"]) for dot in svg.all("circle")]
        return dots + [points(tip.attributes["points"])[0][0] for tip in svg.all("polygon")]

    def test_dots_and_arrows_stand_where_they_belong(self) -> None:
        bar = parse(strip("name", None)).one("rect").attributes
        left, right = float(bar["x"]), float(bar["x"]) + float(bar["width"])
        assert self.mark_of(None) == []
        assert self.mark_of(0.0) == [left]
        assert self.mark_of(0.25) == [pytest.approx(left + (right - left) / 4)]
        assert self.mark_of(1.0) == [right]
        assert self.mark_of(-0.01)[0] < left
        assert self.mark_of(1.01)[0] > right

    @pytest.mark.parametrize(
        ("share", "words"),
        [
            (None, "x: missing"),
            (0.5, "x: inside the training range"),
            (-1.0, "x: below the training range"),
            (2.0, "x: above the training range"),
        ],
    )
    def test_says_it_in_words(self, share: float | None, words: str) -> None:
        assert parse(strip("x", share)).one("svg").attributes["aria-label"] == words


def test_numbers_by_hand() -> None:
    assert times(1.23456) == "\N{MULTIPLICATION SIGN}1.23"
    assert [percent(v) for v in (-0.1234, 0.04, 0.0, -0.0001)] == [
        "-12.3 %",
        "+4.0 %",
        "0.0 %",
        "0.0 %",
    ]


def test_every_picture_fits_a_phone_or_is_a_heat_map() -> None:
    """Charts are at most 358 px wide: a phone of 390 px less the page's margins."""
    ones = np.ones(2)
    for picture in (
        curves("t", "x", (1.0, 2.0), 0, [Line("time", 0, ones)]),
        scatter("t", ones, ones, np.array([True, True]), 0),
        strip("x", 0.5),
    ):
        assert int(re.findall(r'width="(\d+)"', picture)[0]) <= 358
