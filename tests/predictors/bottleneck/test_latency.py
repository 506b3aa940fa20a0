"""Kernels that use no unit: on another GPU their intervals reach as far as their parts scale."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import ConfigGrid, Profiles
from mlscale.counters.kernel_use import KernelUse
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.bottleneck.latency import (
    FLAG,
    scaling_bounds,
    waits,
    with_scaling_bounds,
)

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (700.0, 1400.0))
BASE = GRID.config((1, 1, 1))


def use(**shares: float) -> KernelUse:
    """Two kernels: one of those shares, and one that half uses its memory."""
    names = KernelUse.__dataclass_fields__
    numbers = {name: np.array([shares.get(name, np.nan), np.nan]) for name in names}
    numbers["memory"][1], numbers["issue"][1] = 0.5, 0.1
    return KernelUse(**numbers)


def two_profiles() -> Profiles:
    profiles = made.measurements().profiles(made.measurements().grid.mid)
    return profiles.select([0, 1])


def test_a_kernel_waits_that_uses_no_unit() -> None:
    assert waits(two_profiles(), use(memory=0.1, issue=0.2)).tolist() == [True, False]
    assert waits(two_profiles(), use(memory=0.1, issue=0.2, l2=0.4)).tolist() == [False, False]


def test_nobody_knows_where_the_use_of_the_core_lacks() -> None:
    assert waits(two_profiles(), use(memory=0.1)).tolist() == [False, False]


def test_a_further_measured_time_tells() -> None:
    profiles = two_profiles()
    point = MeasuredPoint(profiles.base, np.array([1.0, np.nan]), None)
    known = replace(profiles, points=(point,))
    assert waits(known, use(memory=0.1, issue=0.2)).tolist() == [False, False]


def test_bounds_by_hand() -> None:
    """4 CUs at 500 MHz: the core's part takes 4 times as long; half the memory clock: twice."""
    least, most = scaling_bounds(GRID, BASE)
    assert most[0, 0].tolist() == pytest.approx([4, 4])
    assert most[1, 1].tolist() == pytest.approx([2, 1])
    assert least.ravel() == pytest.approx(np.ones(GRID.size))
    faster, _ = scaling_bounds(GRID, GRID.config((0, 0, 0)))
    assert faster[1, 1, 1] == pytest.approx(1 / 4)


def test_intervals_reach_both_bounds_of_those_kernels_alone() -> None:
    ones = np.ones((2, *GRID.shape))
    surfaces = Surfaces(GRID, BASE, ones, ((), ()), 0.9 * ones, 1.1 * ones)
    wider = with_scaling_bounds(surfaces, np.array([True, False]))
    assert wider.flags == ((FLAG,), ())
    assert wider.low is not None
    assert wider.high is not None
    assert wider.high[0, 0, 0, 0] == pytest.approx(4)
    assert wider.low[0, 0, 0, 0] == pytest.approx(0.9)
    assert np.array_equal(wider.high[1], surfaces.high[1])  # type: ignore[index]
