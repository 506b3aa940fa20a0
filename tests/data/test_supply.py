"""What a board can supply: its limits in the device table, and what it was measured to draw."""

from dataclasses import replace

import numpy as np
from synthetic import frugal

from mlscale import HardwareConfig
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.supply import UNLIMITED, drawn_w, supply_of


def test_predictions_may_be_just_above_what_was_measured_below_the_limit() -> None:
    """By hand: an H100 has 700 W. 2 % above 699 W is 712.98, above 600 W nothing beyond 700."""
    near, far = supply_of("h100-sxm5", 699.0, 300.0), supply_of("h100-sxm5", 600.0)
    assert near.suffices(np.array([712.9, 713.1])).tolist() == [True, False]
    assert far.suffices(np.array([700.0, 700.1])).tolist() == [True, False]
    assert near.most_w == near.default_w == 700


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
