"""Charts of the page: numbers and marks stand where they belong. Numbers by hand."""

import itertools
import re

import numpy as np
import pytest
from html_page import parse
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlscale.report.charts import ChartCurve, axis_chart, front_chart, roofline_chart, svg


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

    def one(self, *curves: ChartCurve) -> Figure:
        return axis_chart("engine clock [MHz]", self.STEPS, 1, curves)

    def test_points_are_proportional_to_step_and_factor(self) -> None:
        figure = self.one(ChartCurve("time", np.array([2.0, 1.0, 0.8])))
        (axes,) = figure.axes
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > 2
        np.testing.assert_array_equal(lines(figure)["time"].get_xdata(), self.STEPS)
        np.testing.assert_array_equal(lines(figure)["time"].get_ydata(), [2.0, 1.0, 0.8])

    def test_the_base_has_a_line_and_a_word(self) -> None:
        figure = self.one(ChartCurve("time", np.array([2.0, 1.0, 0.8])))
        np.testing.assert_array_equal(lines(figure)["base-line"].get_xdata(), [800, 800])
        (word,) = figure.axes[0].texts
        assert (word.get_text(), word.get_position()[0]) == ("base", 800)

    def test_an_interval_is_a_band_around_the_curve(self) -> None:
        values = np.array([2.0, 1.0, 0.8])
        figure = self.one(ChartCurve("time", values, values * 0.9, values * 1.1))
        (band,) = figure.axes[0].collections
        assert isinstance(band, PolyCollection)
        corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
        for step, value in zip(self.STEPS, values, strict=True):
            assert {(step, float(0.9 * value)), (step, float(1.1 * value))} <= corners
        assert figure.axes[0].get_ylim()[1] > 2.2
        assert len(parse(svg(figure, "t", "s")).all("g", "band")) == 1

    @settings(max_examples=8)
    @given(
        st.lists(st.floats(1, 1e4), min_size=2, max_size=30, unique=True).map(sorted),
        st.data(),
    )
    def test_labels_of_steps_never_overlap_and_the_base_has_one(
        self, steps: list[float], data: st.DataObject
    ) -> None:
        base = data.draw(st.integers(0, len(steps) - 1))
        figure = axis_chart("x", steps, base, [ChartCurve("time", np.ones(len(steps)))])
        [axes] = figure.axes
        labels = [label.get_text() for label in axes.get_xticklabels()]
        label_of_tick = dict(zip(axes.get_xticks().tolist(), labels, strict=True))
        assert label_of_tick[steps[base]] == f"{steps[base]:g}"
        assert "" not in labels
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

    def test_the_best_is_marked_too_and_units_are_as_given(self) -> None:
        front = np.array([True, True, True, False])
        figure = front_chart(self.TIME, self.ENERGY, front, 3, 1, ("s", "kJ"))
        (axes,) = figure.axes
        assert [text.get_text() for text in axes.texts] == ["base", "best"]
        assert [line.get_xydata().tolist() for line in axes.get_lines()[2:]] == [
            [[2.5, 8.0]],
            [[2.0, 5.0]],
        ]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("time [s]", "energy [kJ]")


class TestRooflineChart:
    CORE, DRAM, RUN = np.array([0.1, 0.8]), np.array([0.9, 0.2]), np.array([0.75, 0.25])

    def test_dots_stand_at_their_shares_and_grow_with_the_run(self) -> None:
        (axes,) = roofline_chart(self.CORE, self.DRAM, self.RUN, ["1", ""]).axes
        (dots,) = axes.collections
        np.testing.assert_allclose(dots.get_offsets(), [(10, 90), (80, 20)])
        large, small = dots.get_sizes()
        assert large == pytest.approx(3 * small)
        words = [text.get_text() for text in axes.texts]
        assert words == ["memory-bound", "latency-bound", "core-bound", "1"]

    def test_the_lines_divide_as_the_words_do(self) -> None:
        """60 % of both peaks, and 10 points to both sides of the diagonal."""
        (axes,) = roofline_chart(self.CORE, self.DRAM, self.RUN, ["", ""]).axes
        corner, above, below = (line.get_xydata().tolist() for line in axes.get_lines())
        assert corner == [[0, 60], [60, 60], [60, 0]]
        assert above == [[50, 60], [90, 100]]
        assert below == [[60, 50], [100, 90]]


class TestSvg:
    def chart(self) -> Figure:
        ones = np.ones(3)
        return axis_chart("x", (1.0, 2.0, 3.0), 1, [ChartCurve("time", ones, ones / 2, ones * 2)])

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
