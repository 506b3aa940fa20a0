"""The search: intervals whose ends are not in order, and what the board cannot supply."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import frugal
from synthetic import kernels as made

from mlscale import HardwareConfig, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Search
from mlscale.data.grid import ConfigGrid
from mlscale.data.surfaces import Surfaces

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = replace(train(frugal.measurements(), MID, "nearest"), device="h100-sxm5")

Ends = tuple[float, float, float]  # low, value, high
NUMBER = st.floats(1, 90)
ENDS = st.tuples(NUMBER, NUMBER, NUMBER).map(lambda three: tuple(sorted(three)))


def profiles(factor: float) -> Profiles:
    """2 and 4 ms at the base; of the power 34.48, 45.12, 65.84 and 100 W over the engine clock."""
    both = frugal.new_kernels()
    assert both.power_w is not None
    return replace(both, device="h100-sxm5", power_w=factor * both.power_w)


def surfaces(base: float, at_low: list[Ends]) -> Surfaces:
    """Of kernels at two engine clocks, the higher of which is the base."""
    grid = ConfigGrid((8,), (400.0, 800.0), (700.0,))
    low, value, high = (
        np.array([[end, base] for end in ends]).reshape(-1, 1, 2, 1)
        for ends in zip(*at_low, strict=True)
    )
    config = HardwareConfig(8, 800.0, 700.0)
    return Surfaces(grid, config, value, ((),) * len(at_low), low, high)


def run_range(times: list[Ends], powers: list[Ends]) -> tuple[float, float, float]:
    """Low end, value and high end of the saving of power of the run at the lower clock."""
    search = Search(
        {"time": surfaces(1.0, times), "power": surfaces(100.0, powers)},
        np.ones(len(times)),
        "power",
        Limits(),
        has_energy=True,
    )
    run = search.for_whole_run()
    assert run.best.config.engine_mhz == 400
    assert run.saving_range is not None
    return run.saving_range[0], run.saving_percent, run.saving_range[1]


class TestIntervals:
    def test_a_mean_power_falls_where_times_rise(self) -> None:
        # Hand: 80 W of 1 ms (1 to 1) and 20 W of 1 ms (0.25 to 4): 50 W, 68 W at the low ends and
        # 32 W at the high ones, against 100 W.
        low, value, high = run_range(
            [(1.0, 1.0, 1.0), (0.25, 1.0, 4.0)], [(80.0, 80.0, 80.0), (20.0, 20.0, 20.0)]
        )
        assert (low, value, high) == pytest.approx((32, 50, 68), rel=1e-9)

    @given(st.lists(ENDS, min_size=4, max_size=4))
    def test_the_value_lies_between_the_ends(self, ends: list[Ends]) -> None:
        low, value, high = run_range(ends[:2], ends[2:])
        assert low <= value <= high


class TestTheBoardsLimit:
    def test_what_the_board_cannot_supply_is_left_out(self) -> None:
        # 8 times the power is 800 W at 1000 MHz, 526.72 W at 800; an H100 may be set to 700 W.
        free = advise(replace(MODEL, device="made-gpu"), replace(profiles(8), device="made-gpu"))
        assert not any("left out" in warning for warning in free.warnings)
        advice = advise(MODEL, profiles(8), "time")
        assert advice.whole_run.best.config == HardwareConfig(16, 800.0, 1000.0)
        assert {kernel.best.config.engine_mhz for kernel in advice.kernels} <= {400, 600, 800}
        for one in (advice.whole_run, *advice.kernels):
            assert all((point.power_w or 0) <= 700 for point in one.front)
        quarter = advice.surfaces["time"].grid.size // 4
        assert (
            f"{quarter} of {4 * quarter} configurations are left out: a kernel would draw more "
            "there than the 700 W that the board may be set to, 800 W at most as predicted"
        ) in advice.warnings

    def test_what_the_base_drew_is_possible(self) -> None:
        # 12 times the power is 790 W at the base: what was measured was possible.
        advice = advise(MODEL, profiles(12), "time")
        assert advice.whole_run.best.config.engine_mhz == 800
