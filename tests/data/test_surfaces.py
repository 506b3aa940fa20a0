"""Surfaces between the steps of the grid: geometric interpolation, and no extrapolation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Surfaces
from mlscale.data.surfaces import configuration_weights, interpolate, scaling_bounds

BASE = HardwareConfig(8, 800.0, 700.0)
exponents = st.floats(-2.0, 1.0)
inside = st.builds(
    HardwareConfig, st.integers(4, 16), st.floats(400.0, 1000.0), st.floats(400.0, 1000.0)
)


def power_law(law: tuple[float, float, float], config: HardwareConfig) -> float:
    """Closed form: the factor to BASE of a time that is a power of each setting."""
    return (
        (config.cu_count / BASE.cu_count) ** law[0]
        * (config.engine_mhz / BASE.engine_mhz) ** law[1]
        * (config.memory_mhz / BASE.memory_mhz) ** law[2]
    )


def surfaces_of(*laws: tuple[float, float, float]) -> Surfaces:
    values = np.array([[power_law(law, config) for config in made.GRID] for law in laws])
    return Surfaces(made.GRID, BASE, values.reshape(-1, *made.GRID.shape), flags=((),) * len(laws))


class TestAPowerLaw:
    @settings(max_examples=100)
    @given(st.tuples(exponents, exponents, exponents), inside)
    def test_is_met_exactly_everywhere_inside(
        self, law: tuple[float, float, float], config: HardwareConfig
    ) -> None:
        factor, _ = surfaces_of(law).at(config)
        assert factor[0] == pytest.approx(power_law(law, config), rel=1e-12)

    def test_of_each_kernel(self) -> None:
        # Closed form; several kernels keep their order.
        laws = [*made.LAWS.values()]
        config = HardwareConfig(6, 900.0, 450.0)
        factors, _ = surfaces_of(*laws).at(config)
        expected = [power_law(law, config) for law in laws]
        np.testing.assert_allclose(factors, expected, rtol=1e-12)


class TestByHand:
    GRID = ConfigGrid((4,), (400.0, 900.0), (100.0, 400.0))
    VALUES = np.array([[[[1.0, 4.0], [9.0, 64.0]]]])

    @pytest.mark.parametrize(
        ("engine", "memory", "expected", "between"),
        [
            (400.0, 100.0, 1.0, False),
            (900.0, 400.0, 64.0, False),
            # 600 is the geometric mean of 400 and 900, 200 that of 100 and 400.
            (600.0, 100.0, 3.0, True),
            (600.0, 400.0, 16.0, True),
            (400.0, 200.0, 2.0, True),
            # The geometric mean of all four: (1 x 4 x 9 x 64) ** (1/4) = 2304 ** (1/4).
            (600.0, 200.0, math.sqrt(48.0), True),
        ],
    )
    def test_geometric_means(
        self, engine: float, memory: float, expected: float, between: bool
    ) -> None:
        factors, flagged = interpolate(self.VALUES, self.GRID, HardwareConfig(4, engine, memory))
        np.testing.assert_allclose(factors, [expected], rtol=1e-14)
        assert flagged is between

    def test_a_third_of_the_way(self) -> None:
        # Hand: from 100 to 800 MHz, 200 is log 2 / log 8 = 1/3 of the way; 27 ** (1/3) = 3.
        grid = ConfigGrid((1,), (100.0, 800.0), (500.0,))
        values = np.array([[[[1.0], [27.0]]]])
        factors, flagged = interpolate(values, grid, HardwareConfig(1, 200.0, 500.0))
        assert factors[0] == pytest.approx(3.0, rel=1e-14)
        assert flagged

    def test_the_factor_at_the_base_is_one(self) -> None:
        factors, between = surfaces_of(*made.LAWS.values()).at(BASE)
        np.testing.assert_array_equal(factors, 1.0)
        assert not between

    @settings(max_examples=60)
    @given(arrays(np.float64, (1, 3, 4, 3), elements=st.floats(0.01, 100.0)), inside)
    def test_stays_within_the_surrounding_points(
        self, values: np.ndarray, config: HardwareConfig
    ) -> None:
        # Property: a weighted mean of the corners of the cell lies between them.
        cell = values[0]
        for position, axis in enumerate(("cu_count", "engine_mhz", "memory_mhz")):
            steps = getattr(made.GRID, axis)
            low = max(i for i, step in enumerate(steps) if step <= getattr(config, axis))
            high = min(i for i, step in enumerate(steps) if step >= getattr(config, axis))
            cell = np.take(cell, range(low, high + 1), axis=position)
        factors, _ = interpolate(values, made.GRID, config)
        assert cell.min() * (1 - 1e-12) <= factors[0] <= cell.max() * (1 + 1e-12)


class TestSingleSteps:
    GRID = ConfigGrid((28,), (1000.0,), (5000.0, 5500.0))
    VALUES = np.array([[[[1.0, 0.9]]]])

    def test_the_step_itself(self) -> None:
        factors, between = interpolate(self.VALUES, self.GRID, HardwareConfig(28, 1000.0, 5500.0))
        assert factors[0] == pytest.approx(0.9, rel=1e-15)
        assert not between

    def test_between_the_steps_of_the_axis_that_has_some(self) -> None:
        # Hand: the middle in logarithms, sqrt(1 x 0.9).
        target = HardwareConfig(28, 1000.0, math.sqrt(5000.0 * 5500.0))
        factors, between = interpolate(self.VALUES, self.GRID, target)
        assert factors[0] == pytest.approx(math.sqrt(0.9), rel=1e-12)
        assert between

    @pytest.mark.parametrize(
        ("config", "problem"),
        [
            (HardwareConfig(27, 1000.0, 5000.0), r"cu_count 27 is outside the grid \(28\)"),
            (HardwareConfig(28, 1000.5, 5000.0), r"engine_mhz 1000.5 is outside the grid \(1000\)"),
        ],
    )
    def test_any_other_value_is_refused(self, config: HardwareConfig, problem: str) -> None:
        with refused(problem):
            interpolate(self.VALUES, self.GRID, config)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (HardwareConfig(3, 800.0, 700.0), r"cu_count 3 is outside the grid \(4, 8, 16\)"),
        (HardwareConfig(17, 800.0, 700.0), r"cu_count 17 .*does not extrapolate"),
        (HardwareConfig(8, 399.5, 700.0), r"engine_mhz 399.5 .*400, 600, 800, 1000"),
        (HardwareConfig(8, 800.0, 1000.5), r"memory_mhz 1000.5 .*400, 700, 1000"),
        (HardwareConfig(8, math.nan, 700.0), "engine_mhz nan is outside"),
        (HardwareConfig(8, 800.0, math.inf), "memory_mhz inf is outside"),
    ],
)
def test_outside_the_range_is_refused(config: HardwareConfig, problem: str) -> None:
    with refused(problem):
        surfaces_of((-1.0, -1.0, 0.0)).at(config)


def test_configuration_weights_on_a_large_grid_need_little_memory() -> None:
    """By hand: halfway in the logarithm between 2 steps of each clock, a quarter for each corner.

    Of 250 000 configurations, whose square would need 500 GB.
    """
    steps = tuple(float(2**k) for k in range(2)) + tuple(5.0 + k for k in range(498))
    grid = ConfigGrid((4,), steps, steps)
    weights = configuration_weights(grid, HardwareConfig(4, 2**0.5, 2**0.5)).reshape(500, 500)
    assert weights[:2, :2] == pytest.approx(0.25)
    assert weights.sum() == pytest.approx(1)


def test_bounds_by_hand() -> None:
    """4 CUs at 500 MHz: the core's part takes 4 times as long; half the memory clock: twice."""
    grid = ConfigGrid((4, 8), (500.0, 1000.0), (700.0, 1400.0))
    least, most = scaling_bounds(grid, grid.highest)
    assert most[0, 0].tolist() == pytest.approx([4, 4])
    assert most[1, 1].tolist() == pytest.approx([2, 1])
    assert least.ravel() == pytest.approx(np.ones(grid.size))
    faster, _ = scaling_bounds(grid, grid.config((0, 0, 0)))
    assert faster[1, 1, 1] == pytest.approx(1 / 4)


def test_what_intervals_hold_by_hand() -> None:
    """An end counts as within; without intervals nothing is said."""
    grid = ConfigGrid((4,), (400.0, 800.0, 1200.0), (500.0,))
    ones = np.ones((1, *grid.shape))
    plain = Surfaces(grid, grid.highest, ones)
    measured = np.array([0.9, 1.2, 1.3]).reshape(ones.shape)
    assert plain.holds(measured) is None
    wide = Surfaces(grid, grid.highest, ones, (), 0.9 * ones, 1.2 * ones)
    assert wide.holds(measured).ravel().tolist() == [True, True, False]  # type: ignore[union-attr]
