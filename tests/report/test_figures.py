"""Pictures of the report: numbers and marks stand where they belong."""

import itertools
import re

import numpy as np
import pytest
from html_page import Node, parse
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlscale import ConfigGrid
from mlscale.report.figures import (
    WIDTH,
    Curve,
    HeatMap,
    axis_chart,
    colour,
    front_chart,
    ink,
    range_bar,
    svg,
)

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

    def test_no_mark_at_another_cu_count(self) -> None:
        text = heat_map(base=(1, 1, 0), best=(1, 2, 1)).at_cu_count(0)
        assert "best" not in text
        assert "base" not in text

    def test_base_that_is_best_says_both(self) -> None:
        rows = cells(parse(heat_map((0, 0, 0), (0, 0, 0)).at_cu_count(0)))
        assert value_and_note(rows[1][0]) == ["1.00", "base, best"]
        assert rows[1][0].kinds == ["base", "best"]

    def test_the_lowest_is_darkest_and_the_scale_is_that_of_all_cu_counts(self) -> None:
        fills = [
            [cell.attributes["style"][11:18] for row in cells(parse(table)) for cell in row]
            for table in (heat_map().at_cu_count(c) for c in (0, 1))
        ]
        assert fills[0][3] == colour(0.0)  # value 1, bottom left
        assert fills[1][2] == colour(1.0)  # value 12, top right
        # By hand: ln 6 / ln 12.
        assert fills[0][2] == colour(np.log(6) / np.log(12))

    def test_one_value_everywhere_has_one_colour(self) -> None:
        flat = HeatMap("Time", "ms", GRID, np.ones((2, 3, 2)), (0, 0, 0), (0, 0, 0))
        assert {flat.share(1.0)} == {0.5}
        parse(flat.at_cu_count(0) + flat.legend())

    def test_small_numbers_are_written_out(self) -> None:
        tiny = HeatMap("Time", "ms", GRID, VALUES * 1e-6, (0, 0, 0), (0, 0, 0))
        assert value_and_note(cells(parse(tiny.at_cu_count(0)))[0][0])[0] == "0.00000200"

    def test_says_what_it_is(self) -> None:
        table = parse(heat_map().at_cu_count(1)).one("table")
        assert table.attributes["aria-label"] == (
            "Time [ms] at 8 compute units, engine clock by memory clock"
        )

    def test_legend_names_both_ends(self) -> None:
        legend = parse(heat_map().legend())
        assert legend.text == "1.00 ms  12.0 ms"
        scale = legend.one("span", "scale").attributes
        assert scale["aria-label"] == "scale of colours"
        stops = re.findall("#[0-9a-f]{6}", scale["style"])
        assert (stops[0], stops[-1]) == (colour(0.0), colour(1.0))


class TestColours:
    def test_ink_of_known_colours(self) -> None:
        """WCAG 2.1: black on white has 21, the most; #777777 on white the well-known 4.48."""
        assert contrast("#000000", "#ffffff") == pytest.approx(21)
        assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
        assert [ink(fill) for fill in ("#ffffff", "#000000", "#777777")] == [
            "#000000",
            "#ffffff",
            "#000000",
        ]

    @given(st.floats(0, 1))
    def test_text_can_be_read_on_every_colour(self, share: float) -> None:
        """WCAG 2.1 asks for 4.5 (level AA)."""
        assert contrast(colour(share), ink(colour(share))) >= 4.5

    def test_is_even_in_lightness(self) -> None:
        """It never gets darker from low to high, so that it reads without colour too."""
        against_black = [contrast(colour(i / 100), "#000000") for i in range(101)]
        assert against_black == sorted(against_black)


def lines(figure: Figure) -> dict[str, Line2D]:
    """The lines of a chart by label or name."""
    (axes,) = figure.axes
    return {line.get_gid() or str(line.get_label()): line for line in axes.get_lines()}


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Neighbouring labels of the horizontal axis whose boxes meet, in matplotlib's own font."""
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    boxes = sorted(
        ((label.get_window_extent(), label.get_text()) for label in labels),
        key=lambda box: float(box[0].x0),
    )
    return [
        (text, other) for (box, text), (next_box, other) in itertools.pairwise(boxes)
        if box.x1 >= next_box.x0
    ]  # fmt: skip


class TestAxisChart:
    STEPS = (400.0, 800.0, 1000.0)

    def one(self, *curves: Curve) -> Figure:
        return axis_chart("engine clock [MHz]", self.STEPS, 1, curves)

    def test_points_are_proportional_to_step_and_factor(self) -> None:
        figure = self.one(Curve("time", np.array([2.0, 1.0, 0.8])))
        (axes,) = figure.axes
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > 2
        np.testing.assert_array_equal(lines(figure)["time"].get_xdata(), self.STEPS)
        np.testing.assert_array_equal(lines(figure)["time"].get_ydata(), [2.0, 1.0, 0.8])

    def test_the_base_has_a_line_and_a_word(self) -> None:
        figure = self.one(Curve("time", np.array([2.0, 1.0, 0.8])))
        np.testing.assert_array_equal(lines(figure)["base-line"].get_xdata(), [800, 800])
        (word,) = figure.axes[0].texts
        assert (word.get_text(), word.get_position()[0]) == ("base", 800)

    def test_curves_differ_by_dashes_and_marks_and_are_named(self) -> None:
        ones = np.ones(3)
        figure = self.one(*(Curve(name, ones) for name in ("time", "power", "energy")))
        curves = [lines(figure)[name] for name in ("time", "power", "energy")]
        assert len({line.get_marker() for line in curves}) == 3
        assert len({line.get_color() for line in curves}) == 3
        drawn = parse(svg(figure, "t", "s"))
        dashes = [
            re.findall("stroke-dasharray: [^;]*", path.attributes["style"])
            for path in drawn.all("path")
            if "stroke-width: 2" in path.attributes.get("style", "")
        ]
        assert len({str(dash) for dash in dashes}) == 3
        assert {"time", "power", "energy"} <= set(drawn.texts("text"))

    def test_an_interval_is_a_band_around_the_curve(self) -> None:
        values = np.array([2.0, 1.0, 0.8])
        figure = self.one(Curve("time", values, values * 0.9, values * 1.1))
        (band,) = figure.axes[0].collections
        assert isinstance(band, PolyCollection)
        corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
        for step, value in zip(self.STEPS, values, strict=True):
            assert {(step, float(0.9 * value)), (step, float(1.1 * value))} <= corners
        assert figure.axes[0].get_ylim()[1] > 2.2
        assert len(parse(svg(figure, "t", "s")).all("g", "band")) == 1

    @settings(deadline=None, max_examples=20)
    @given(
        st.lists(st.floats(1, 1e4), min_size=2, max_size=30, unique=True).map(sorted),
        st.data(),
    )
    def test_labels_of_steps_never_overlap_and_the_base_has_one(
        self, steps: list[float], data: st.DataObject
    ) -> None:
        base = data.draw(st.integers(0, len(steps) - 1))
        figure = axis_chart("x", steps, base, [Curve("time", np.ones(len(steps)))])
        labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
        assert labels[base] == f"{steps[base]:g}"
        assert overlapping(figure) == []


class TestFrontChart:
    TIME = np.array([1.0, 2.0, 3.0, 2.5])
    ENERGY = np.array([9.0, 5.0, 4.0, 8.0])

    def test_the_front_is_joined_in_order_of_time_and_the_base_is_marked(self) -> None:
        front = np.array([True, True, True, False])
        figure = front_chart(self.TIME[[2, 0, 1, 3]], self.ENERGY[[2, 0, 1, 3]], front, 3)
        drawn = lines(figure)
        np.testing.assert_array_equal(drawn["front"].get_xydata(), [(1, 9), (2, 5), (3, 4)])
        np.testing.assert_array_equal(drawn["other"].get_xydata(), [(2.5, 8)])
        np.testing.assert_array_equal(drawn["base-mark"].get_xydata(), [(2.5, 8)])
        assert drawn["base-mark"].get_marker() == "D"
        assert [text.get_text() for text in figure.axes[0].texts] == ["base"]
        assert "base" in parse(svg(figure, "t", "s")).texts("text")

    def test_one_configuration_is_a_point(self) -> None:
        one = np.array([2.0])
        figure = front_chart(one, one, np.array([True]), 0)
        assert len(lines(figure)["front"].get_xydata()) == 1
        assert len(parse(svg(figure, "t", "s")).all("g", "front")) == 1

    @settings(deadline=None, max_examples=20)
    @given(st.floats(1e-6, 1e6), st.floats(1e-4, 10))
    def test_points_and_labels_stay_inside(self, low: float, spread: float) -> None:
        time = low * (1 + spread * np.linspace(0, 1, 5))
        front = np.array([True, False, False, False, True])
        figure = front_chart(time, time[::-1], front, 2)
        assert overlapping(figure) == []
        (axes,) = figure.axes
        assert len(axes.get_xticks()) >= 1
        whole = figure.bbox
        for text in [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts]:
            box = text.get_window_extent()
            if text.get_text() and spread >= 1e-2:  # closer ones need too many digits
                assert box.x0 >= whole.x0
                assert box.x1 <= whole.x1
        for line in axes.get_lines():
            at = axes.transData.transform(line.get_xydata())
            assert (at >= 0).all()
            assert (at <= [whole.x1, whole.y1]).all()


class TestSvg:
    def chart(self) -> Figure:
        ones = np.ones(3)
        return axis_chart("x", (1.0, 2.0, 3.0), 1, [Curve("time", ones, ones / 2, ones * 2)])

    def test_is_named_for_those_who_do_not_see_it(self) -> None:
        picture = parse(svg(self.chart(), "the title", "salt")).one("svg")
        assert picture.attributes["role"] == "img"
        assert picture.attributes["aria-label"] == picture.one("title").text == "the title"

    def test_is_the_same_each_time_and_its_ids_are_its_own(self) -> None:
        assert svg(self.chart(), "t", "one") == svg(self.chart(), "t", "one")
        ids = [set(re.findall(' id="(.*?)"', svg(self.chart(), "t", salt))) for salt in ("a", "b")]
        assert ids[0]
        assert not ids[0] & ids[1]
        used = re.findall(r'(?:href="|url\()#(\w+)', svg(self.chart(), "t", "a"))
        assert set(used) <= ids[0]

    def test_all_colours_are_those_of_the_style_sheet(self) -> None:
        """So that dark pages have light lines."""
        text = svg(self.chart(), "t", "s")
        assert re.findall("#[0-9a-f]{6}", text) == []
        assert {"var(--line-0)", "var(--rule)"} <= set(re.findall(r"var\(--[\w-]+\)", text))

    def test_fits_a_phone(self) -> None:
        """At most 358 px wide: a phone of 390 px less the page's margins."""
        assert WIDTH <= 358
        assert parse(svg(self.chart(), "t", "s")).one("svg").attributes["width"] == f"{WIDTH}"


class TestRangeBar:
    @pytest.mark.parametrize(
        ("share", "kind", "style"),
        [
            (None, None, None),
            (0.0, "dot", "left:0%"),
            (0.25, "dot", "left:25%"),
            (1.0, "dot", "left:100%"),
            (-0.01, "below", None),
            (1.01, "above", None),
        ],
    )
    def test_dots_and_arrows_stand_where_they_belong(
        self, share: float | None, kind: str | None, style: str | None
    ) -> None:
        bar = parse(range_bar("name", share)).one("span", "range-bar")
        marks = [node for node in bar.nodes() if node is not bar]
        assert [mark.kinds for mark in marks] == ([[kind]] if kind else [])
        assert [mark.attributes.get("style") for mark in marks] == ([style] if kind else [])

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
        bar = parse(range_bar("x", share)).one("span", "range-bar").attributes
        assert (bar["role"], bar["aria-label"], bar["title"]) == ("img", words, words)
