"""A run that comes in parts: what it takes and draws at the base, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic.frugal import new_kernels

from mlscale.advice.advise import Terms, WholePower
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Search
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import Surfaces
from mlscale.studies.fleet import Sums, run_base

HIGHEST = HardwareConfig(8, 1000.0, 700.0)


@pytest.mark.parametrize("order", [1, -1])
def test_the_base_of_a_run_is_that_of_all_its_parts(order: int) -> None:
    # 3 x 2 ms + 4 ms beside 4 ms; 65.84 W of the first part and half of it, 10 W more throughout.
    both = new_kernels((3.0, 1.0))
    assert both.power_w is not None
    part = both.select([1])
    part.power_w[:] *= 0.5  # type: ignore[index]
    power = WholePower("dynamic", static_w=10.0, absent=None)
    base = run_base([both, part][::order], Terms("energy", Limits(), 10.0, power, ()))
    assert base.time_ms == pytest.approx(14)
    assert base.peak_w == pytest.approx(75.84)


def test_what_was_drawn_elsewhere_counts() -> None:
    # 65.84 W at the base, and 90 W at a further clock, where the other kernel has no power.
    point = MeasuredPoint(HIGHEST, np.array([1.6, 4.0]), np.array([90.0, np.nan]))
    power = WholePower("board", static_w=0.0, absent=None)
    parts = [new_kernels(), replace(new_kernels(), points=(point,))]
    assert run_base(parts, Terms("energy", Limits(), None, power, ())).peak_w == 90


def test_sums_of_parts_are_those_of_one_run() -> None:
    # 2 ms at 30 W and 6 ms at 70 W: 8 ms at 60 W, and what must be supplied is the larger.
    one, other = (
        Sums(*(np.full((1, 1, 1, 1), value) for value in (time_ms, power_w)), np.array([[[peak]]]))
        for time_ms, power_w, peak in ((2.0, 30.0, 90.0), (6.0, 70.0, 80.0))
    )
    both = one + other
    assert both.power_w is not None
    assert both.peak_w is not None
    found = [float(of.item()) for of in (both.time_ms, both.power_w, both.peak_w)]
    assert found == pytest.approx([8, 60, 90])


def test_the_peak_of_a_part_is_what_is_predicted_of_its_most_demanding_kernel() -> None:
    """Not an end of its interval: 90 W, of 81 to 108."""
    grid = ConfigGrid((8,), (1000.0,), (700.0,))
    watts = np.array([60.0, 90.0]).reshape(2, 1, 1, 1)
    times = Surfaces(grid, HIGHEST, np.ones_like(watts), (), 0.9 + 0 * watts, 1.2 + 0 * watts)
    powers = Surfaces(grid, HIGHEST, watts, (), 0.9 * watts, 1.2 * watts)
    search = Search(
        {"time": times, "power": powers}, np.array([3.0, 1.0]), "energy", Limits(), True
    )
    sums = Sums.from_search(search)
    assert sums.peak_w is not None
    assert sums.power_w is not None
    assert sums.peak_w.tolist() == [[[90]]]
    assert sums.time_ms.ravel() == pytest.approx([4, 3.6, 4.8])
    assert sums.power_w.ravel()[0] == pytest.approx((3 * 60 + 90) / 4)
