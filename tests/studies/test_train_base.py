"""Training at one base and predicting from another: errors by hand, and what is refused."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytest
from synthetic import profiled
from synthetic.tidy import refused

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Profiles, Surfaces
from mlscale.predictors.base import Bases, Predictor, Training, single_gpu

GRID = ConfigGrid((4,), (500.0, 1000.0, 2000.0), (700.0,))
OPTIONS: dict[str, Any] = {"base": "engine=500", "seeds": 1, "jobs": 1, "quantity": "time"}


@dataclass
class SaysItsBase(Predictor):
    """Every factor is the engine clock of the training's base, in GHz."""

    name = "says-its-base"
    quantity: str = "time"

    def fit(self, training: Training, base: Bases) -> Self:
        """Keep the base."""
        _, self.base_ = single_gpu(self, training, base)
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The same factor everywhere."""
        shape = (len(profiles.kernels), *GRID.shape)
        return Surfaces(grid or GRID, profiles.base, np.full(shape, self.base_.engine_mhz / 1000))

    def grid_from(self, profiles: Profiles) -> ConfigGrid:  # noqa: ARG002
        """The grid of every table here."""
        return GRID


def constant_times() -> Measurements:
    """Two applications of a kernel each, whose times no clock changes."""
    return profiled.measurements(GRID, np.full((2, 1, 3, 1), 5.0), None, {"loads": np.ones(2)})


@pytest.mark.parametrize(("train_base", "error"), [("engine=1000", 0), ("highest", 100)])
def test_errors_by_hand(train_base: str, error: float) -> None:
    """The true factor is 1; 1000 MHz predict 1, and 2000 MHz 2, from the base 500 MHz."""
    table = {"t": constant_times()}
    frame = mlscale.study("errors", table, [SaysItsBase()], train_base=train_base, **OPTIONS)
    mape = dict(zip(frame["predictor"], frame["mape"], strict=True))
    assert mape["says-its-base"] == pytest.approx(error)
    assert mape["engine-bound"] == pytest.approx(100 * (0.5 + 0.75) / 2)
    assert set(frame["engine_mhz"]) == {500}
    assert not {"mean-surface", "nearest"} & set(mape)


def test_the_document_says_the_base_of_the_training() -> None:
    planned = mlscale.studies.study.plan(
        "errors", {"t": constant_times()}, predictors=[SaysItsBase()], train_base="highest"
    )
    highest = HardwareConfig(4, 2000.0, 700.0).as_dict()
    assert planned.settings["train_base"] == {"t": highest}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"predictors": ["nearest"]}, "'nearest' predicts from the base of its training alone"),
        ({"training": "pooled"}, "a train_base is for predictors that learn from the table"),
        ({"train_on": {"o": constant_times()}}, "a train_base is for predictors that learn"),
    ],
)
def test_what_cannot_be_studied(options: dict[str, Any], problem: str) -> None:
    with refused(problem):
        mlscale.study("errors", {"t": constant_times()}, train_base="mid", **OPTIONS, **options)
