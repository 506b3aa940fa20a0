"""The study of extrapolation: errors by hand, exact laws, and nothing of an edge leaks in."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mlscale.studies.extrapolation import ExtrapolationStudy, edges, on_edge, without_edge
from synthetic import bottleneck_kernels, profiled
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, Measurements
from mlscale.studies import extrapolation
from mlscale.studies.base import Edge, PredictorStudy
from mlscale.studies.regret import RegretStudy

GRID = ConfigGrid((4,), (500.0, 1000.0, 2000.0, 4000.0), (700.0,))
LOWEST, HIGHEST = ("engine_mhz", "lowest"), ("engine_mhz", "highest")


def table(times: list[list[float]]) -> Measurements:
    """Kernels at the engine clocks 500, 1000, 2000 and 4000 MHz; base 2000."""
    time = np.array(times).reshape(-1, *GRID.shape)
    return profiled.measurements(GRID, time, None, {"loads": np.ones(len(time))})


def rows(data: Measurements, *predictors: str, **options: Any) -> dict[tuple[str, str], Any]:
    """The rows of a study of the time over the engine clock, by predictor and end."""
    given = {"predictors": predictors, "quantity": "time", "seeds": 1, **options}
    study = ExtrapolationStudy(name="extrapolation", tables={"t": data}, **given)
    return {
        (row["predictor"], row["end"]): row
        for row in study.rows(study.results())
        if row["axis"] == "engine_mhz"
    }


class TestByHand:
    # a follows the clock; b is 1 but for 1.5 at 500 and 0.5 at 4000 MHz.
    DATA = table([[4.0, 2.0, 1.0, 0.5], [1.5, 1.0, 1.0, 0.5]])

    def test_no_scaling(self) -> None:
        """Against 1 of the base: a errs 75, 50, 100 % at 500, 1000, 4000 MHz; b 33.3, 0, 100."""
        found = rows(self.DATA, "no-scaling")
        lowest, highest = found["no-scaling", "lowest"], found["no-scaling", "highest"]
        assert lowest["step"] == 500
        assert lowest["mape_outside"] == pytest.approx((75 + 100 / 3) / 2)
        assert lowest["mape_inside"] == pytest.approx((50 + 100 + 0 + 100) / 4)
        assert highest["mape_outside"] == pytest.approx(100)
        assert highest["mape_inside"] == pytest.approx((75 + 50 + 100 / 3) / 4)
        assert highest["ratio"] == pytest.approx(100 / highest["mape_inside"])
        # It learns nothing, so training with the edge changes nothing; two applications.
        assert lowest["mape_trained"] == lowest["mape_outside"]
        assert lowest["standard_error_outside"] == pytest.approx((75 - 100 / 3) / 2)

    def test_what_knows_no_law_goes_on_as_between_its_last_steps(self) -> None:
        """The other kernel is the mean surface. Without 500: of b from 1 and 1 on to 1, a says 2
        to 4; so a errs 75, b 4/1.5. Trained with it, a is told 1.5 (62.5 %), b 4 as before."""
        found = rows(self.DATA, "mean-surface")["mean-surface", "lowest"]
        of_b = 100 * (4 / 1.5 - 1)
        assert found["mape_outside"] == pytest.approx((75 + of_b) / 2)
        assert found["mape_trained"] == pytest.approx((62.5 + of_b) / 2)
        assert found["coverage_outside"] is None


def test_a_law_that_all_kernels_follow_is_met_beyond_the_edge() -> None:
    """Every kernel is a power law of all axes, so what goes on by power laws errs by nothing."""
    data = made.measurements(per_group=2, laws={"contended": made.LAWS["contended"]})
    found = rows(data, "mean-surface", "core-bound")
    assert found["mean-surface", "lowest"]["mape_outside"] == pytest.approx(0, abs=1e-9)
    assert found["mean-surface", "highest"]["mape_outside"] == pytest.approx(0, abs=1e-9)
    assert found["core-bound", "highest"]["mape_outside"] > 10


@pytest.mark.parametrize("predictor", ["mean-surface", "nearest", "wu"])
def test_the_edge_is_not_seen(predictor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times at the edge that are a million times too long: what is predicted there stays, so the
    error is 100 % of them, and what is predicted inside stays too."""
    monkeypatch.setattr(extrapolation, "edges", lambda *_: [LOWEST])  # of six
    data = made.measurements(per_group=2)
    spoilt = data.time_samples.copy()
    spoilt[:, :, on_edge(data.grid, LOWEST)] *= 1e6
    options = {"features": ["raw"], "clusters": 2}
    clean = rows(data, predictor, **options)[predictor, "lowest"]
    odd = rows(replace(data, time_samples=spoilt), predictor, **options)[predictor, "lowest"]
    assert odd["mape_outside"] == pytest.approx(100, abs=0.01)
    assert odd["mape_inside"] == clean["mape_inside"]
    assert odd["mape_trained"] != pytest.approx(odd["mape_outside"], abs=0.01)  # that one sees it


class TestEdges:
    def test_are_those_without_the_base_of_axes_with_three_steps(self) -> None:
        grid = ConfigGrid((4, 8), (500.0, 1000.0, 2000.0), (700.0,))
        assert edges("t", grid, grid.config("mid")) == [LOWEST, HIGHEST]
        assert edges("t", grid, grid.config("highest")) == [LOWEST]

    def test_a_table_without_any_is_refused(self) -> None:
        grid = ConfigGrid((4, 8), (500.0,), (700.0,))
        with refused("'t': no axis has 3 steps"):
            edges("t", grid, grid.mid)

    @pytest.mark.parametrize("edge", [LOWEST, ("memory_mhz", "highest"), ("cu_count", "lowest")])
    def test_one_is_cut_off_whole(self, edge: Edge) -> None:
        data = made.measurements(per_group=1)
        cut, mask = without_edge(data, edge), on_edge(data.grid, edge)
        assert cut.grid.size == data.grid.size - mask.sum()
        assert (cut.time_ms.ravel() == data.time_ms[:, ~mask].ravel()).all()
        assert cut.counter_samples.shape[2:5] == cut.power_samples.shape[2:] == cut.grid.shape  # type: ignore[union-attr]


def test_random_kernels_are_refused() -> None:
    with refused("the protocol 'random-kernels' is not for 'extrapolation'"):
        rows(TestByHand.DATA, "no-scaling", split="random-kernels")


@pytest.mark.parametrize("study", [ExtrapolationStudy, RegretStudy])
def test_the_default_predictor_is_that_of_the_studys_base(study: type[PredictorStudy]) -> None:
    """Counted at the highest clocks alone: nothing is asked of the middle, where none were."""
    data = bottleneck_kernels.measurements(kernels=4)
    counters = np.full_like(data.counter_samples, np.nan)
    counters[:, :, -1, -1, -1] = data.counter_samples[:, :, -1, -1, -1]
    tables = {"t": replace(data, counter_samples=counters)}
    parts = study(name="s", tables=tables, predictors=["default"], base="highest").parts
    assert "bottleneck" in {part.candidate.name for part in parts}
