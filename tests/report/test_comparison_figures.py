"""What the figures of errors, regrets and next profiles show, by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from mlscale.report.comparison_figures import error_by_points, strips

from mlscale.report import comparison_figures

VALUES = {"good": [1.0, 2.0, 3.0, 6.0], "nearest": [4.0, 6.0], "no-scaling": [0.0, 20.0]}


def drawn(values: dict[str, list[float]]) -> Axes:
    [panel] = strips("title", values, ("nearest", "no-scaling"), "error [%]", "baseline").axes
    return panel


def row(name: str, kernel: str, mape: float, seed: int = 0, features: str | None = None) -> Any:
    of = {"table": "t", "quantity": "time", "predictor": name, "features": features}
    return {**of, "seed": seed, "application": kernel, "kernel": kernel, "mape": mape}


class TestStrips:
    def test_names_stand_from_the_least_mean_at_the_top(self) -> None:
        panel = drawn(VALUES)  # means 3, 5 and 10
        assert [t.get_text() for t in panel.get_yticklabels()] == ["no-scaling", "nearest", "good"]
        assert [t.get_text() for t in panel.texts] == ["10.00", "5.00", "3.00", "mean"]

    def test_every_value_is_a_dot_and_baselines_are_hollow(self) -> None:
        panel = drawn(VALUES)
        dots = [np.asarray(c.get_offsets())[:, 0].tolist() for c in panel.collections]
        assert dots == [[0, 20], [4, 6], [1, 2, 3, 6]]
        assert [len(c.get_facecolors()) for c in panel.collections] == [0, 0, 1]

    def test_boxes_are_from_quartile_to_quartile(self) -> None:
        # Of 1, 2, 3, 6 the quartiles are 1.75 and 3.75.
        boxes = [(p.get_x(), p.get_x() + p.get_width()) for p in drawn(VALUES).patches]
        assert boxes == [(5, 15), (4.5, 5.5), (1.75, 3.75)]

    @pytest.mark.parametrize(("largest", "scale"), [(12.0, "linear"), (900.0, "symlog")])
    def test_the_axis_holds_all_values(self, largest: float, scale: str) -> None:
        panel = drawn({"one": [0.0, 1.0, 2.0, largest]})
        assert panel.get_xscale() == scale
        low, high = panel.get_xlim()
        assert low == 0
        assert largest <= high

    def test_no_regret_at_all_can_be_drawn(self) -> None:
        assert drawn({"one": [0.0, 0.0]}).get_xlim() == (0, 1)


class TestFiles:
    def test_errors_are_means_over_seeds_by_kernel(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [row("wu", "a", 4), row("wu", "a", 6, seed=1), row("wu", "b", 1)]
        rows += [row("nn", "a", 2, features="raw"), row("nn", "a", 3, features="rates")]
        seen: list[dict[str, list[float]]] = []

        def keep(title: str, values: dict[str, list[float]], *rest: Any) -> Any:
            seen.append(values)
            assert title.splitlines()[0] == "t (simulated data, not measured)"
            return strips(title, values, *rest)

        monkeypatch.setattr(comparison_figures, "strips", keep)
        paths = comparison_figures.draw_errors(tmp_path, rows, {"t": "simulated"})
        assert [path.name for path in paths] == ["errors-t-time.png", "errors-t-time.svg"]
        assert seen == [{"wu": [5, 1], "nn raw": [2], "nn rates": [3]}]

    @pytest.mark.parametrize("of", ["kernel", "run"])
    def test_a_choice_that_breaks_a_limit_is_not_drawn(self, of: str, tmp_path: Path) -> None:
        shared = {"table": "t", "objective": "edp", "features": None}
        rows = [
            {**shared, "advisor": "stay-at-base", of: 1, "regret_percent": None},
            {**shared, "advisor": "bottleneck", of: 1, "regret_percent": 2.5},
        ]
        _, svg = comparison_figures.draw_regrets(tmp_path, rows, {"t": None})
        said = svg.read_text()
        assert "<!-- bottleneck -->" in said
        assert "stay-at-base" not in said
        assert ("random run" in said) == (of == "run")
        assert comparison_figures.draw_regrets(tmp_path, rows[:1], {"t": None}) == []


class TestErrorByPoints:
    def test_each_figure_is_a_line_over_the_points(self) -> None:
        rows = [
            {"points": n, "mape": 8 - n, "p90": 20 - n, "median_kernel": 5 - n,
             "worst_kernel_mape": 60 - n}
            for n in range(3)
        ]  # fmt: skip
        [panel] = error_by_points("title", rows).axes
        lines = {str(line.get_label()): list(line.get_ydata()) for line in panel.lines}
        assert lines["mean"] == [8, 7, 6]
        assert lines["worst kernel"] == [60, 59, 58]
        assert len({line.get_color() for line in panel.lines}) == len(lines) == 4
        assert panel.get_ylim()[0] == 0
