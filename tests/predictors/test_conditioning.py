"""Conditioning on further points: Gaussian closed form, properties, recovery of a known truth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_errors import mean_error
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused

from mlscale import HardwareConfig, MeasuredPoint, Measurements, Model, Profiles, train
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.model import IntervalScores
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePrior,
    condition,
    misfit_of,
    random_walk,
)
from mlscale.predictors.intervals import LEVELS

MID = made.CLOCKS.mid
CORNER = HardwareConfig(16, 1100.0, 1000.0)
OTHER_CORNER = HardwareConfig(16, 500.0, 4000.0)


def measured(profiles: Profiles, truth: Measurements, *configs: HardwareConfig) -> Profiles:
    """The profiles with the truth at further configurations."""
    there = [truth.profiles(config) for config in configs]
    points = [
        MeasuredPoint(config, own.time_ms, own.power_w)
        for config, own in zip(configs, there, strict=True)
    ]
    return replace(profiles, points=(*profiles.points, *points))


def misread(truth: Measurements) -> Profiles:
    """Profiles whose counters show half the DRAM traffic that the times are made of."""
    right = truth.profiles(truth.grid.mid)
    return replace(right, counters=0.5 * right.counters)


@pytest.fixture(scope="module")
def trained() -> Bottleneck:
    return Bottleneck(intervals=False).fit(made.measurements(16), MID)


@pytest.fixture(scope="module")
def model() -> Model:
    return train(made.measurements(8), MID, "bottleneck", intervals=False)


@pytest.fixture(scope="module")
def new() -> Measurements:
    return made.measurements(9, seed=1)


def test_a_random_walk_has_the_variance_of_the_way_two_clocks_share() -> None:
    """By hand: from the base both ways, a variance of 0.25 for each unit of the way."""
    misfit = random_walk(np.array([-3.0, -1.0, 0.0, 2.0, 0.5]), 0.5)
    expected = np.zeros((5, 5))
    expected[:2, :2] = [[3, 1], [1, 1]]
    expected[3:, 3:] = [[2, 0.5], [0.5, 0.5]]
    assert misfit.T @ misfit == pytest.approx(0.25 * expected)


class TestClosedForm:
    """A linear prior is a Gaussian conditional: mean and covariance from the full matrices."""

    @pytest.fixture
    def linear(self) -> tuple[SurfacePrior, np.ndarray, np.ndarray]:
        random = np.random.default_rng(0)
        basis, misfit = random.normal(size=(2, 6)), 0.1 * random.normal(size=(3, 6))
        mean, variance = random.normal(size=(2, 4)), random.uniform(0.5, 2, (2, 4))
        prior = SurfacePrior(lambda latents: latents.T @ basis, mean, variance, misfit)
        return prior, basis, random.normal(size=(4, 2))

    def test_of_mean_and_variance(
        self, linear: tuple[SurfacePrior, np.ndarray, np.ndarray]
    ) -> None:
        prior, basis, logs = linear
        at = np.eye(6)[[1, 4]]
        found = condition(prior, MeasuredRatios(at, logs))
        for k in range(4):
            before = (basis.T * prior.variance[:, k]) @ basis + prior.misfit.T @ prior.misfit
            gain = before @ at.T @ np.linalg.inv(at @ before @ at.T + RATIO_NOISE**2 * np.eye(2))
            mean = prior.mean[:, k] @ basis
            after = before - gain @ at @ before
            assert found.logs[k] == pytest.approx(mean + gain @ (logs[k] - at @ mean), abs=1e-6)
            assert found.narrowing()[k] == pytest.approx(
                np.sqrt(np.diag(after) / np.diag(before)), abs=1e-6
            )

    def test_a_missing_point_is_none(
        self, linear: tuple[SurfacePrior, np.ndarray, np.ndarray]
    ) -> None:
        prior, _, logs = linear
        logs[2, 1] = np.nan
        found = condition(prior, MeasuredRatios(np.eye(6)[[1, 4]], logs))
        alone = condition(prior, MeasuredRatios(np.eye(6)[[1]], logs[:, :1]))
        assert found.logs[2] == pytest.approx(alone.logs[2], abs=1e-5)
        assert found.narrowing()[2] == pytest.approx(alone.narrowing()[2], abs=1e-5)

    def test_a_strange_kernel_does_not_make_the_misfit(self) -> None:
        # By hand: sizes 1, 1, 1, 100; the last counts as 3: (3 * 1 + 9) / 4 = 3.
        misfit = misfit_of(np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [100.0, 100.0]]))
        assert np.diag(misfit.T @ misfit) == pytest.approx([3, 3])


class TestProperties:
    @settings(max_examples=25)
    @given(factor=st.floats(0.2, 5), engine=st.floats(500, 1100), memory=st.floats(1000, 4000))
    def test_one_point_moves_the_prediction_towards_it(
        self, trained: Bottleneck, new: Measurements, factor: float, engine: float, memory: float
    ) -> None:
        """On and off the grid's steps, however far the measurement is from the prediction."""
        base, config = new.profiles(MID), HardwareConfig(16, engine, memory)
        before, _ = trained.predict(base).at(config)
        point = MeasuredPoint(config, base.time_ms * before * factor, None)
        after, _ = trained.predict(replace(base, points=(point,))).at(config)
        moved = np.log(after / before)
        assert (np.sign(np.log(factor)) * moved >= -1e-9).all()
        assert (np.abs(moved) <= abs(np.log(factor)) + 1e-9).all()

    def test_kernels_without_points_are_predicted_as_before(
        self, trained: Bottleneck, new: Measurements
    ) -> None:
        base = new.profiles(MID)
        time_ms = np.full(len(base.kernels), np.nan)
        time_ms[0] = 2 * base.time_ms[0]
        values = trained.predict(base).values
        found = trained.predict(
            replace(base, points=(MeasuredPoint(CORNER, time_ms, None),))
        ).values
        assert (found[1:] == values[1:]).all()
        assert (found[0] != values[0]).any()

    def test_a_point_that_no_training_kernel_explains_is_flagged(
        self, trained: Bottleneck, new: Measurements
    ) -> None:
        """Five times the time that is predicted, of the first kernel; the others as predicted."""
        base = new.profiles(MID)
        factor, _ = trained.predict(base).at(CORNER)
        factor[0] *= 5
        point = MeasuredPoint(CORNER, base.time_ms * factor, None)
        first, *others = trained.predict(replace(base, points=(point,))).flags
        assert "unlike the training kernels" in first[-1].text
        assert not any("not like" in flag.text for flags in others for flag in flags)


class TestRecovery:
    @pytest.mark.parametrize(("quantity", "before"), [("time", 15), ("power", 8)])
    def test_exact_points_give_the_surface_that_counters_hide(
        self, new: Measurements, quantity: str, before: float
    ) -> None:
        """Counters show half the traffic: 20 and 10 % off; two points leave less than 1 %."""
        predictor = Bottleneck(quantity=quantity, intervals=False).fit(made.measurements(16), MID)
        wrong = misread(new)
        assert mean_error(predictor, wrong, new) > before
        assert mean_error(predictor, measured(wrong, new, CORNER, OTHER_CORNER), new) < 1

    def test_a_time_tells_of_power(self, new: Measurements) -> None:
        """Without any power measured there, exact times halve power's error at least."""
        predictor = Bottleneck("power", intervals=False).fit(made.measurements(16), MID)
        wrong = misread(new)
        points = measured(wrong, new, CORNER, OTHER_CORNER).points
        of_time = replace(wrong, points=tuple(replace(point, power_w=None) for point in points))
        assert mean_error(predictor, of_time, new) < 0.5 * mean_error(predictor, wrong, new)

    def test_with_a_cu_axis(self) -> None:
        """Issue rates shown at half: 17 % off; three points leave under 1.5 %."""
        table, truth = made.with_cu_axis(24), made.with_cu_axis(9, seed=1)
        predictor = Bottleneck(intervals=False, amplitude=1.0).fit(table, table.grid.mid)
        right = truth.profiles(table.grid.mid)
        profiles = replace(right, counters=right.counters * np.array([1, 1, 0.5, 1]))
        assert mean_error(predictor, profiles, truth) > 12
        points = [
            HardwareConfig(4, 700, 700),
            HardwareConfig(32, 700, 700),
            HardwareConfig(32, 400, 400),
        ]
        profiles = measured(profiles, truth, *points)
        assert mean_error(predictor, profiles, truth) < 1.5


class TestIntervals:
    def test_narrow_with_points_most_where_measured(self, new: Measurements) -> None:
        predictor = Bottleneck(intervals=False).fit(made.measurements(12), MID)
        predictor.scores_ = IntervalScores(2 * LEVELS[None], np.empty(0), np.empty(0))
        base = new.profiles(MID)
        plain = predictor.predict_interval(base)
        given_one = predictor.predict_interval(measured(base, new, CORNER))
        assert plain is not None
        assert given_one is not None
        before, after = (
            np.log(surfaces.high / surfaces.low).reshape(len(base.kernels), -1)
            for surfaces in (plain, given_one)
        )
        assert (after <= before + 1e-12).all()
        there = int(np.ravel_multi_index(made.CLOCKS.index(CORNER), made.CLOCKS.shape))
        assert after[:, there].mean() < 0.3 * before[:, there].mean()


def test_a_point_outside_the_grid_is_refused(trained: Bottleneck, new: Measurements) -> None:
    point = MeasuredPoint(HardwareConfig(16, 2000.0, 1000.0), np.ones(9), None)
    with refused("engine_mhz 2000 is outside the grid"):
        trained.predict(replace(new.profiles(MID), points=(point,)))
