"""What a board can supply: its limits in the device table, and what it was measured to draw.

Numbers by hand; an H100's 700 W are of NVIDIA's sheet.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import frugal

from mlscale import HardwareConfig
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.supply import UNLIMITED, Supply, drawn_w, supply_of, with_held_ends
from mlscale.data.surfaces import Surfaces


def test_predictions_may_be_just_above_what_was_measured_below_the_limit() -> None:
    """By hand: an H100 has 700 W. 2 % above 699 W is 712.98, above 600 W nothing beyond 700."""
    near, far = supply_of("h100-sxm5", 699.0, 300.0), supply_of("h100-sxm5", 600.0)
    assert near.suffices(np.array([712.9, 713.1])).tolist() == [True, False]
    assert far.suffices(np.array([700.0, 700.1])).tolist() == [True, False]
    assert near.most_w == near.default_w == 700


def test_the_limit_that_the_run_had_is_all_that_is_supplied() -> None:
    """By hand: 350 W are stated, also of a GPU that nobody knows, and whatever the table has."""
    for device in ("h100-sxm5", "made-gpu"):
        free = supply_of(device, 300.0, cap_w=350.0)
        assert free.suffices(np.array([350.0, 350.1])).tolist() == [True, False]
        assert (free.holds, free.under(np.array([200.0])).tolist()) == (False, [200.0])
        # 343 of 350 W, 98 %: held, and of a cap of 200 W it draws 196.
        held = supply_of(device, 343.0, cap_w=350.0)
        assert held.suffices(np.array([343.0, 343.1])).tolist() == [True, False]
        assert held.suffices_by_default(np.array([343.1])).tolist() == [False]
        assert (held.holds, held.under(np.array([200.0])).tolist()) == (True, [196.0])


def test_what_was_drawn_under_a_higher_limit_than_the_bases_does_not_count() -> None:
    """Beside a base of 80 W under 80: 90 W under 100 W, 85 under 80 W or under an unknown one."""
    base = replace(frugal.new_kernels(), power_w=np.array([50.0, 80.0]), power_cap_w=80.0)
    at, times_ms = HardwareConfig(8, 1000.0, 700.0), np.array([1.0, 2.0])
    for watts, cap_w, most_w in ((90.0, 100.0, 80), (85.0, 80.0, 85), (85.0, np.nan, 80)):
        one = MeasuredPoint(at, times_ms, np.array([watts, watts]), power_cap_w=cap_w)
        assert drawn_w(replace(base, points=(one,))) == most_w


def test_of_a_gpu_without_a_known_limit_nothing_is_known() -> None:
    """The device table does not have it."""
    assert supply_of("made-gpu", 300.0) == UNLIMITED


def test_the_most_that_was_drawn_is_of_all_clocks_and_kernels() -> None:
    """50 and 80 W at the base; 90 W at a further clock, where the second has no power."""
    both = replace(frugal.new_kernels(), power_w=np.array([50.0, 80.0]))
    at, times_ms = HardwareConfig(8, 1000.0, 700.0), np.array([1.0, 2.0])
    assert drawn_w(both) == 80
    one = MeasuredPoint(at, times_ms, np.array([90.0, np.nan]))
    assert drawn_w(replace(both, points=(one,))) == 90
    without = replace(both, power_w=None, points=(MeasuredPoint(at, times_ms, None),))
    assert drawn_w(without) == 0


# Intervals of a board that supplies no more than its limit.

BASE = HardwareConfig(8, 400.0, 700.0)


def ends(clocks: list[float], at_clocks: list[tuple[float, float, float]]) -> Surfaces:
    """One kernel over engine clocks, at one CU count and memory clock."""
    grid = ConfigGrid((8,), tuple(clocks), (700.0,))
    low, value, high = (np.array(of).reshape(1, 1, -1, 1) for of in zip(*at_clocks, strict=True))
    return Surfaces(grid, BASE, value, ((),), low, high)


def high_of(held: dict[str, Surfaces]) -> tuple[list[float], list[float]]:
    """The high ends of time [ms] and power [W]."""
    highs = [held[quantity].high for quantity in ("time", "power")]
    assert all(high is not None for high in highs)
    time_ms, power_w = (np.ravel(high).tolist() for high in highs)
    return time_ms, power_w


# At 800 MHz 1 ms (to 1.1) and 150 W (to 250), at 400 MHz 2 ms (to 2.2) and 100 W (to 100). Held to
# 200 W, the high end runs 2/3 of the time at 800 MHz, at 200 W.
HELD_MS = 1 / (2 / 3 / 1.1 + 1 / 3 / 2.2)
TO_200_W = Supply(200, 200)


@pytest.mark.parametrize(
    ("clocks", "time_ms", "power_w", "supply", "high_ms", "high_w"),
    [
        # The clock that even by its value needs too much stays as it is.
        ([400, 800, 900], [(2, 2, 2.2), (0.9, 1, 1.1), (0.8, 0.9, 1.0)],
         [(100, 100, 100), (120, 150, 250), (150, 220, 300)], TO_200_W,
         [2.2, HELD_MS, 1.0], [100, 200, 300]),
        # Two clocks that may need too much end at the same lower ones: at 1000 MHz up to 300 W, the
        # GPU goes down from there too until it dithers between 400 MHz, the highest that keeps
        # 200 W, and 800, the next.
        ([400, 800, 1000], [(2, 2, 2.2), (0.9, 1, 1.1), (0.7, 0.8, 0.9)],
         [(100, 100, 100), (120, 150, 250), (140, 180, 300)], TO_200_W,
         [2.2, HELD_MS, HELD_MS], [100, 200, 200]),
        # By the high ends, 250 and 300 W, no clock keeps 200 W: it runs at the lowest, 2.2 ms.
        ([400, 800], [(2, 2, 2.2), (0.9, 1, 1.1)], [(100, 150, 250), (120, 180, 300)], TO_200_W,
         [2.2, 2.2], [200, 200]),
        # At 800 MHz it may need 250 W, at 1000 MHz 195 were measured: the GPU goes down, not up to
        # the 0.7 ms of 1000 MHz.
        ([400, 800, 1000], [(2, 2, 2.2), (0.9, 1, 1.1), (0.7, 0.7, 0.7)],
         [(100, 100, 100), (120, 150, 250), (195, 195, 195)], Supply(200, 200, 195),
         [2.2, HELD_MS, 0.7], [100, 200, 195]),
        # No time ends earlier for that: 1 / (2/3 / 1.1 + 1/3 / 1.0) = 1.06 ms are less than 1.1.
        ([400, 800], [(0.9, 1.0, 1.0), (0.5, 0.8, 1.1)], [(100, 100, 100), (120, 150, 250)],
         TO_200_W, [1.0, 1.1], [100, 200]),
        # A board that drew 701 W at most is predicted to draw 712, 1.6 % more, which the slack of
        # 2 % lets stand: the high end is not below what is predicted.
        ([400, 800], [(1.9, 2.0, 2.2), (1.0, 1.0, 1.0)], [(690, 712, 760), (650, 650, 650)],
         Supply(701, 701, 701), [2.2, 1.0], [712, 650]),
    ],
)  # fmt: skip
def test_where_power_may_be_too_much_the_interval_is_of_a_lower_clock(
    clocks: list[float], time_ms: Any, power_w: Any, supply: Supply, high_ms: Any, high_w: Any
) -> None:
    """Of each clock the low end, the value and the high end."""
    given = {"time": ends(clocks, time_ms), "power": ends(clocks, power_w)}
    held_ms, held_w = high_of(with_held_ends(given, supply))
    assert held_ms == pytest.approx(high_ms, rel=1e-9)
    assert held_w == pytest.approx(high_w, rel=1e-9)
    assert with_held_ends(given, UNLIMITED) is given
    assert with_held_ends(given, Supply(800, 800)) is given


def test_each_cu_count_and_memory_clock_has_its_own() -> None:
    # As at 400 and 800 MHz above, at 8 CUs and 1400 MHz of the memory; at 4 CUs half the power, at
    # 700 MHz of the memory a tenth of the power: only one of eight may need too much.
    grid = ConfigGrid((4, 8), (400.0, 800.0), (700.0, 1400.0))
    factor = np.array([[[0.05, 0.5]] * 2, [[0.1, 1.0]] * 2])[None]
    time_ms, high_ms = np.array([2, 1.0]), np.array([2.2, 1.1])
    power_w, high_w = np.array([100, 150.0]), np.array([100, 250.0])
    whole = np.ones((1, 2, 2, 2))
    times, powers = (
        [whole * of[:, None] * by for of in both]
        for both, by in (((time_ms, high_ms), 1.0), ((power_w, high_w), factor))
    )
    given = {
        quantity: Surfaces(grid, BASE, value, ((),), value, high)
        for quantity, (value, high) in (("time", times), ("power", powers))
    }
    expected = whole * high_ms[:, None]
    expected[0, 1, 1, 1] = HELD_MS
    held = high_of(with_held_ends(given, Supply(200, 200)))[0]
    assert held == pytest.approx(expected.ravel().tolist(), rel=1e-9)
