"""Surfaces beyond their grid: power laws are met exactly, intervals widen by the stated rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import kernels as made

from mlscale.data.grid import ENDS, ConfigGrid
from mlscale.data.surfaces import (
    WIDENING,
    Surfaces,
    by_power_laws,
    carried,
    distance_beyond,
    positions,
    widened_beyond,
)

INNER = ConfigGrid((8,), (500.0, 1000.0), (700.0, 1400.0))
WIDER = ConfigGrid((8,), (250.0, 500.0, 1000.0, 2000.0), (350.0, 700.0, 1400.0))
exponents = st.floats(-2, 2)


class TestCarried:
    def test_stays_beyond_the_last_step_and_is_linear_between(self) -> None:
        """Along the engine clock 1 and 3, at sqrt(500 x 1000) half way between their logarithms."""
        grid, to = (ConfigGrid((8,), s, (700.0,)) for s in ((500.0, 1000.0), (250.0, 500000**0.5)))
        assert carried(np.array([1.0, 3.0]), grid, to) == pytest.approx([1.0, 2.0])

    def test_goes_on_by_the_slope(self) -> None:
        """One step of a factor of 2 below and above: 1 - 2 and 3 + 2."""
        grid = ConfigGrid((8,), (500.0, 1000.0), (700.0,))
        to = ConfigGrid((8,), (250.0, 2000.0), (700.0,))
        assert carried(np.array([1.0, 3.0]), grid, to, ENDS) == pytest.approx([-1, 5])

    def test_an_axis_of_one_step_has_no_slope(self) -> None:
        to = ConfigGrid((4, 8, 16), (500.0, 1000.0), (700.0, 1400.0))
        moved = carried(np.arange(4.0), INNER, to, ENDS).reshape(3, 4)
        assert moved == pytest.approx(np.tile(np.arange(4.0), (3, 1)))

    def test_leaves_the_grid_itself_as_it_is(self) -> None:
        values = np.random.default_rng(0).normal(size=(3, INNER.size))
        home = positions(INNER, WIDER)
        assert carried(values, INNER, WIDER)[:, home] == pytest.approx(values)


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
