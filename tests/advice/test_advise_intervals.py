"""Intervals of what an advice saves, by hand from those of time and power."""

from dataclasses import replace

import pytest
from predictor_calls import counted
from synthetic import frugal
from synthetic import kernels as made
from synthetic.frugal import new_kernels

from mlscale import train
from mlscale.advice.advise import advise
from mlscale.advice.search import Recommendation
from mlscale.predictors.baselines import NoScaling

MID = made.GRID.mid
MODEL = train(frugal.measurements(), MID, "nearest")


class Unsure(frugal.Unsure, NoScaling):
    """Time and power as at the base, give or take."""

    name = "unsure"


UNSURE = frugal.model_of(Unsure)


class TestIntervals:
    def chosen(self, objective: str) -> Recommendation:
        return advise(UNSURE, new_kernels(), objective).kernels[0]

    @pytest.mark.parametrize(
        ("objective", "low", "high"),
        [
            ("energy", 100 * (1 - 1.2**2), 100 * (1 - 0.9**2)),
            ("edp", 100 * (1 - 1.2**3), 100 * (1 - 0.9**3)),
            ("time", -20.0, 10.0),
        ],
    )
    def test_by_hand(self, objective: str, low: float, high: float) -> None:
        assert self.chosen(objective).saving_percent == 0
        assert self.chosen(objective).saving_range == pytest.approx((low, high), rel=1e-12)

    def test_the_slowdown_has_its_own(self) -> None:
        # By hand: 0.9 to 1.2 times the time at the base; for all kernels the same, added.
        advice = advise(UNSURE, new_kernels())
        for choice in advice.recommendations:
            assert choice.slowdown_range == pytest.approx((-10.0, 20.0), rel=1e-12)
        assert advice.whole_run.saving_range == pytest.approx(
            (100 * (1 - 1.2**2), 100 * (1 - 0.9**2)), rel=1e-12
        )

    def test_each_interval_misses_half_as_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two intervals of 95 % hold at once for at least 90 %; time alone keeps its 90 %."""
        calls = counted(monkeypatch, Unsure)
        self.chosen("energy")
        assert calls == [("predict_interval", q, pytest.approx(0.95)) for q in ("time", "power")]
        calls.clear()
        advise(UNSURE, new_kernels(power=False), "time")
        assert calls == [("predict_interval", "time", pytest.approx(0.9))]

    def test_none_without_intervals(self) -> None:
        assert advise(MODEL, new_kernels()).kernels[0].saving_range is None
        half = replace(UNSURE, predictors={**UNSURE.predictors})
        half.predictors["power"] = MODEL.predictors["power"]
        assert advise(half, new_kernels()).kernels[0].saving_range is None
