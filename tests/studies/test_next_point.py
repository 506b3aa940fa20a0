"""study next-profile with a predictor of the user's, whose errors and choices are known."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pytest
from mlscale.studies.next_point import NextPointStudy
from synthetic.tidy import refused

from mlscale import ConfigGrid, Measurements, Predictor, Profiles, Surfaces, study
from mlscale.predictions import COVERAGE

GRID = ConfigGrid((8,), (500.0, 1000.0), (400.0, 800.0, 1600.0))
BASE = GRID.config((0, 0, 0))
FIRST_ERROR = 0.4  # of the prediction without further points; each point halves it


@dataclass
class Halving(Predictor):
    """Predicts (1 + 0.4 / 2^points) times the truth, and asks for the last configuration first."""

    def fit(self, training: Any, base: Any) -> Self:
        self.surface_ = training.relative("time", base)[0]
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        factor = 1 + FIRST_ERROR / 2 ** len(profiles.points)
        values = np.repeat(factor * self.surface_[None], len(profiles.kernels), axis=0)
        return Surfaces(grid or GRID, profiles.base, values)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        assert coverage == COVERAGE
        surfaces = self.predict(profiles, grid)
        values = surfaces.values
        return replace(surfaces, low=values / 1.2, high=values * 1.2)

    def widths_ahead(self, profiles: Profiles, coverage: float = 0.9) -> tuple[Any, Any]:
        assert coverage == COVERAGE
        kernels = len(profiles.kernels)
        return np.ones(kernels), np.tile(np.arange(GRID.size, 0.0, -1), (kernels, 1))


def table() -> Measurements:
    """Three kernels of one surface: time is 1 / engine clock."""
    time = np.broadcast_to(500.0 / np.array(GRID.engine_mhz)[:, None], (1, 3, *GRID.shape)).copy()
    names = ("a", "b", "c")
    return Measurements("gpu", GRID, names, names, time, None, (), np.empty((*time.shape, 0)))


def test_errors_and_choices_are_those_of_the_predictor() -> None:
    # Closed form: 40, 20 and 10 %; the interval reaches down to 1 / 1.2, the truth
    # where the prediction is at most 20 % above it.
    rows = study(
        "next-profile", table(), Halving(), jobs=1, base=BASE, points=2, quantity="time"
    ).to_dict("records")
    np.testing.assert_allclose([row["mape"] for row in rows], [40, 20, 10], rtol=1e-12)
    assert [row["coverage"] for row in rows] == [0, pytest.approx(100), 100]


def test_it_is_asked_for_the_narrowest_that_is_not_yet_measured() -> None:
    planned = NextPointStudy(
        name="next-profile", tables={"t": table()}, predictors=[Halving()], base=BASE, points=2
    )
    chosen = planned.files(planned.results())["chosen"]
    configs = [str(config) for config in GRID]
    of_a = [row["chosen"] for row in chosen if row["kernel"] == "a"]
    assert of_a == ["", configs[-1], configs[-2]]
    assert planned.settings == {"predictor": "Halving"}


@pytest.mark.parametrize(
    ("predictors", "message"),
    [
        (["wu"], "'wu' makes nothing of further measured points"),
        (["bottleneck"], "'bottleneck' does not apply to 't'"),
        (["bottleneck", "wu"], "the study 'next-profile' takes one predictor"),
    ],
)
def test_what_cannot_be_studied_is_refused(predictors: list[str], message: str) -> None:
    planned = NextPointStudy(name="next-profile", tables={"t": table()}, predictors=predictors)
    with refused(message):
        planned.parts  # noqa: B018
