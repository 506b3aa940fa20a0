"""Surfaces between the steps of the grid, and beyond it; numbers by hand and by closed forms."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Surfaces
from mlscale.data.grid import ENDS
from mlscale.data.surfaces import (
    WIDENING,
    by_power_laws,
    carried,
    configuration_weights,
    distance_beyond,
    interpolate,
    positions,
    scaling_bounds,
    widened_beyond,
)

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


@settings(max_examples=100)
@given(st.tuples(exponents, exponents, exponents), inside)
def test_a_power_law_is_met_exactly_everywhere_inside(
    law: tuple[float, float, float], config: HardwareConfig
) -> None:
    factor, _ = surfaces_of(law).at(config)
    assert factor[0] == pytest.approx(power_law(law, config), rel=1e-12)


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
def test_between_the_steps_are_geometric_means(
    engine: float, memory: float, expected: float, between: bool
) -> None:
    grid = ConfigGrid((4,), (400.0, 900.0), (100.0, 400.0))
    values = np.array([[[[1.0, 4.0], [9.0, 64.0]]]])
    factors, flagged = interpolate(values, grid, HardwareConfig(4, engine, memory))
    np.testing.assert_allclose(factors, [expected], rtol=1e-14)
    assert flagged is between


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (HardwareConfig(3, 800.0, 700.0), r"cu_count 3 is outside the grid \(4, 8, 16\)"),
        (HardwareConfig(8, 399.5, 700.0), r"engine_mhz 399.5 .*400, 600, 800, 1000"),
        (HardwareConfig(8, 800.0, 1000.5), r"memory_mhz 1000.5 .*does not extrapolate"),
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


# Beyond the grid: power laws are met exactly, intervals widen by the stated rule.

INNER = ConfigGrid((8,), (500.0, 1000.0), (700.0, 1400.0))
WIDER = ConfigGrid((8,), (250.0, 500.0, 1000.0, 2000.0), (350.0, 700.0, 1400.0))


@pytest.mark.parametrize(
    ("values", "engine_mhz", "to_mhz", "way", "expected"),
    [
        # Beyond the last step it stays; at sqrt(500 x 1000) it is half way between the logarithms.
        ([1.0, 3.0], (500.0, 1000.0), (250.0, 500000**0.5), (), [1, 2]),
        # By the slope: one step of a factor of 2 below and above, 1 - 2 and 3 + 2.
        ([1.0, 3.0], (500.0, 1000.0), (250.0, 2000.0), (ENDS,), [-1, 5]),
        # An axis of one step has no slope.
        ([3.0], (500.0,), (250.0, 500.0, 1000.0), (ENDS,), [3, 3, 3]),
        # The grid itself stays as it is.
        ([2.0, 7.0, 1.0], (500.0, 600.0, 900.0), (400.0, 500.0, 600.0, 900.0), (), [2, 2, 7, 1]),
    ],
)
def test_carried(
    values: list[float], engine_mhz: Any, to_mhz: Any, way: Any, expected: list[float]
) -> None:
    """Along the engine clock."""
    grid, to = (ConfigGrid((8,), steps, (700.0,)) for steps in (engine_mhz, to_mhz))
    assert carried(np.array(values), grid, to, *way) == pytest.approx(expected)


def test_positions_of_a_grid_in_a_wider_one() -> None:
    """Engine steps 1 and 2 of 4, memory steps 1 and 2 of 3."""
    assert positions(INNER, WIDER).tolist() == [4, 5, 7, 8]  # type: ignore[union-attr]
    assert positions(WIDER, INNER) is None


def test_distance_is_the_sum_of_the_logarithms() -> None:
    distance = distance_beyond(INNER, WIDER)[0] / np.log(2)
    assert distance == pytest.approx(np.array([[2, 1, 1], [1, 0, 0], [1, 0, 0], [2, 1, 1]]))


def test_intervals_widen_with_the_distance() -> None:
    """1.1 times up and down inside; a clock of half the lowest: its power 1 + WIDENING log 2."""
    ones = np.ones((1, *WIDER.shape))
    surfaces = widened_beyond(
        Surfaces(WIDER, INNER.mid, 2 * ones, (), 2 / 1.1 * ones, 2.2 * ones), INNER, "time"
    )
    assert surfaces.low is not None
    assert surfaces.high is not None
    times = 1 + WIDENING * np.log(2)
    assert surfaces.high[0, 0, 0, 1] == pytest.approx(2 * 1.1**times)
    assert surfaces.low[0, 0, 0, 1] == pytest.approx(2 * 1.1**-times)
    assert surfaces.high[0, 0, 1:3, 1:] == pytest.approx(2.2)


def test_power_may_rise_by_the_clocks_cube_above_the_highest_engine_clock() -> None:
    """Twice the highest: 2^2 times as high an upper end as that of time; the lower ends are one."""
    ones = np.ones((1, *WIDER.shape))
    surfaces = Surfaces(WIDER, INNER.mid, ones, (), ones / 1.1, 1.1 * ones)
    time, power = (widened_beyond(surfaces, INNER, quantity) for quantity in ("time", "power"))
    assert time.high is not None
    assert power.high is not None
    ratio = np.divide(power.high, time.high)[0, 0]
    assert ratio == pytest.approx(np.repeat([[1], [1], [1], [4]], 3, axis=1))
    assert np.array_equal(time.low, power.low)  # type: ignore[arg-type]


@given(exponents, exponents, exponents)
def test_power_laws_are_met_exactly(cu: float, engine: float, memory: float) -> None:
    inner = ConfigGrid((8, 16), (500.0, 1000.0), (700.0, 1400.0))
    wider = ConfigGrid((4, 8, 16, 64), (300.0, 500.0, 1000.0, 1700.0), (700.0, 1400.0, 2000.0))
    law = (cu, engine, memory)
    base = inner.config((0, 0, 0))
    known = made.surface(law, inner)[None]
    found = by_power_laws(Surfaces(inner, base, known, (), known / 1.2, known * 1.3), wider)
    truth = made.surface(law, wider)
    truth = truth / truth[1, 1, 0]
    assert found.values[0] == pytest.approx(truth, rel=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert found.low[0] == pytest.approx(truth / 1.2, rel=1e-9)
    assert found.high[0] == pytest.approx(truth * 1.3, rel=1e-9)
