"""What the figures of errors, regrets and surfaces show, by hand, and how they are written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from mlscale import load, read
from mlscale.data.datasets import path
from mlscale.model.plots import new_figure
from mlscale.studies import figures
from mlscale.studies.figures import DPI, Shown, save_figure, strips, surfaces_figure

VALUES = {"good": [1.0, 2.0, 3.0, 6.0], "nearest": [4.0, 6.0], "no-scaling": [0.0, 20.0]}


def drawn(values: dict[str, list[float]]) -> Axes:
    [panel] = strips("title", {"": values}, ("nearest", "no-scaling"), "error [%]", "baseline").axes
    return panel


def row(name: str, kernel: str, mape: float, seed: int = 0, features: str | None = None) -> Any:
    case = {"table": "t", "quantity": "time", "predictor": name, "features": features}
    return {**case, "seed": seed, "application": kernel, "kernel": kernel, "mape": mape}


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

        def keep(title: str, panels: dict[str, dict[str, list[float]]], *rest: Any) -> Any:
            seen.append(panels[""])
            assert title.splitlines()[0] == "t (simulated data, not measured)"
            return strips(title, panels, *rest)

        monkeypatch.setattr(figures, "strips", keep)
        paths = figures.draw_errors(tmp_path, rows, {"t": "simulated"})
        assert [path.name for path in paths] == ["errors-t-time.png", "errors-t-time.svg"]
        assert seen == [{"wu": [5, 1], "nn raw": [2], "nn rates": [3]}]

    @pytest.mark.parametrize("what", ["kernel", "run"])
    def test_a_choice_that_breaks_a_limit_is_not_drawn(self, what: str, tmp_path: Path) -> None:
        shared = {"table": "t", "objective": "edp", "features": None, "rule": None}
        rows = [
            {**shared, "advisor": "stay-at-base", what: 1, "regret_percent": None},
            {**shared, "advisor": "bottleneck", what: 1, "regret_percent": 2.5},
        ]
        _, svg = figures.draw_regrets(tmp_path, rows, {"t": None})
        said = svg.read_text()
        assert "<!-- bottleneck -->" in said
        assert "stay-at-base" not in said
        assert ("random run" in said) == (what == "run")
        assert figures.draw_regrets(tmp_path, rows[:1], {"t": None}) == []


@pytest.fixture(scope="module")
def shown() -> Shown:
    """A simulated kernel at 48 configurations, and what the shipped model predicts of it."""
    model, table = load("simulated-gcn3"), read(path("simulated-gcn3.parquet"))
    kernel = table.select([table.applications.index("fastwalshtransform")])
    return Shown(kernel, model.predict(kernel.profiles(model.base)))


@pytest.fixture(scope="module")
def over_cus() -> Shown:
    """A measured kernel on 6 numbers of SMs."""
    model, table = load("h100-sms"), read(path("h100-suite.csv"))
    kernel = table.select([0])
    return Shown(kernel, model.predict(kernel.profiles(model.base)))


def lines(panel: Axes, style: str) -> list[list[float]]:
    """The heights of the lines of several points."""
    heights = [
        list(np.asarray(line.get_ydata())) for line in panel.lines if line.get_linestyle() == style
    ]
    return [line for line in heights if len(line) > 1]


def test_surfaces_show_every_value_that_is_known_and_predicted(
    shown: Shown, over_cus: Shown
) -> None:
    """Heights are those of the arrays: time and power; 4 panels (CU counts) of 3 memory clocks."""
    time, power, *panels = surfaces_figure(over_cus, shown).axes
    assert lines(time, "-") == [over_cus.known.time_ms[0, :, 0, 0].tolist()]
    assert over_cus.predictions.power_w is not None
    assert lines(power, "--") == [over_cus.predictions.power_w[0, :, 0, 0].tolist()]
    assert len(panels) == 4
    for c, panel in enumerate(panels):
        assert lines(panel, "-") == shown.known.time_ms[0, c].T.tolist()
        assert lines(panel, "--") == shown.predictions.time_ms[0, c].T.tolist()
        assert not panel.collections  # no bands
        ringed = [line for line in panel.lines if len(np.asarray(line.get_xdata())) == 1]
        assert len(ringed) == (panel.get_title() == "16 CUs")


def test_surfaces_say_what_is_simulated_and_have_plain_numbers(
    shown: Shown, over_cus: Shown
) -> None:
    figure = surfaces_figure(over_cus, shown)
    figure.draw_without_rendering()
    titles = [part.get_suptitle() for part in figure.subfigs]
    assert titles == [
        f"{over_cus.known.kernels[0]} on h100-sxm5 (measured)",
        "fastwalshtransform.fastWalshTransform.n8k on simulated-gcn3 (simulated)",
    ]
    assert {"0.02", "0.05"} <= {text.get_text() for text in figure.axes[2].get_yticklabels()}


def test_labels_stay_inside_and_apart_in_both_files(tmp_path: Path) -> None:
    """Two panels, whose labels of four lines need room that matplotlib does not leave unasked."""
    figure = new_figure(4, 2)
    left, right = figure.subplots(1, 2)
    for panel in (left, right):
        panel.set_ylabel("one\ntwo\nthree\nfour")
    files = save_figure(figure, tmp_path / "labels")
    assert [file.name for file in files] == ["labels.png", "labels.svg"]
    boxes = [panel.get_tightbbox() for panel in (left, right)]
    assert 0 <= boxes[0].x0 < boxes[0].x1 <= boxes[1].x0 < boxes[1].x1 <= 4 * DPI
