"""The search: intervals whose ends are not in order, and what the board cannot supply."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import frugal
from synthetic import kernels as made

from mlscale import HardwareConfig, Profiles, load, train
from mlscale.advice.advise import advise
from mlscale.advice.held import with_held_ends
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Search
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.public import path as shipped
from mlscale.data.supply import UNLIMITED, Supply, drawn_w, supply_of
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
            "there than 700 W, the highest power limit known of the board, or the most it was "
            "measured to draw (800 W at most as predicted); the GPU lowers its clock instead"
        ) in advice.warnings

    def test_what_the_base_drew_is_possible(self) -> None:
        # 12 times the power is 790 W at the base: what was measured was possible.
        advice = advise(MODEL, profiles(12), "time")
        assert advice.whole_run.best.config.engine_mhz == 800

    def test_what_was_measured_elsewhere_is_possible(self) -> None:
        # An RTX 4090 has 450 W in the table; this one drew 560 W at 2520 MHz, the further point.
        grid = ConfigGrid((128,), (1260.0, 1890.0, 2520.0), (10501.0,))
        fast = MeasuredPoint(grid.highest, np.array([1.1]), np.array([560.0]))
        run = Profiles(
            "rtx4090",
            grid.config((0, 0, 0)),
            kernels=("run",),
            applications=("run",),
            time_ms=np.array([2.0]),
            power_w=np.array([220.0]),
            counter_names=(),
            counters=np.empty((1, 0)),
            metadata={"profile_kind": "sampled"},
            points=(fast,),
        )
        model = load(shipped("nvidia-sampled.mlscale")).for_gpu(run.device, grid, run.base)
        assert drawn_w(run) == 560
        advice = advise(model, run, "time")
        assert advice.whole_run.best.config == fast.config
        assert advice.supply == Supply(560, 560, 560)
        assert not any("left out" in warning for warning in advice.warnings)

    def test_predictions_may_be_just_above_what_was_measured_below_the_limit(self) -> None:
        # Hand: an H100 has 700 W. 2 % above 699 W is 712.98, above 600 W nothing beyond the limit.
        near, far = supply_of("h100-sxm5", 699.0, 300.0), supply_of("h100-sxm5", 600.0)
        assert near.suffices(np.array([712.9, 713.1])).tolist() == [True, False]
        assert far.suffices(np.array([700.0, 700.1])).tolist() == [True, False]
        assert near.most_w == near.default_w == 700

    def test_a_best_above_the_default_limit_says_so(self) -> None:
        # An H20 ships with 400 W and may be set to 500: 4.5 times the power is 450 W at 1000 MHz.
        model, both = replace(MODEL, device="h20"), replace(profiles(4.5), device="h20")
        raised = [w for w in advise(model, both, "time").warnings if "default limit" in w]
        words = (
            "at the best clocks a kernel draws 450 W as predicted, more than the board's default "
            "limit of 400 W: unless that is raised (to 500 W at most), the GPU lowers its clock"
        )
        assert raised == [words]
        assert not any("default limit" in w for w in advise(model, both, "energy").warnings)

    def test_where_power_may_be_too_much_the_interval_is_of_a_lower_clock(self) -> None:
        # Hand: at 800 MHz 1 ms (to 1.1) and 150 W (to 250), at 400 MHz 2 ms (to 2.2) and 100 W
        # (to 100). Held to 200 W, the high end runs 2/3 of the time at 800 MHz: 1 / (2/3 / 1.1 +
        # 1/3 / 2.2) ms, at 200 W. The clock that even by its value needs too much stays as it is.
        grid = ConfigGrid((8,), (400.0, 800.0, 900.0), (700.0,))
        base = HardwareConfig(8, 400.0, 700.0)

        def made_up(low: list[float], value: list[float], high: list[float]) -> Surfaces:
            ends = (np.array(of).reshape(1, 1, 3, 1) for of in (value, low, high))
            values, *both = ends
            return Surfaces(grid, base, values, ((),), *both)

        given = {
            "time": made_up([2, 0.9, 0.8], [2, 1, 0.9], [2.2, 1.1, 1.0]),
            "power": made_up([100, 120, 150], [100, 150, 220], [100, 250, 300]),
        }
        held = with_held_ends(given, Supply(200, 200))
        assert held["time"].high is not None
        assert held["power"].high is not None
        lowered_ms = 1 / (2 / 3 / 1.1 + 1 / 3 / 2.2)
        assert held["time"].high.ravel() == pytest.approx([2.2, lowered_ms, 1.0], rel=1e-9)
        assert held["power"].high.ravel() == pytest.approx([100, 200, 300], rel=1e-9)
        assert with_held_ends(given, UNLIMITED) is given
        assert with_held_ends(given, Supply(400, 400)) is given

    def test_an_interval_holds_a_power_just_above_a_measured_one(self) -> None:
        # A board that drew 701 W at most is predicted to draw 712, 1.6 % more, which the slack of
        # 2 % lets stand: the high end is not below what is predicted.
        given = {
            "time": surfaces(1.0, [(1.9, 2.0, 2.2)]),
            "power": surfaces(650.0, [(690.0, 712.0, 760.0)]),
        }
        high_w = with_held_ends(given, Supply(701, 701, 701))["power"].high
        assert high_w is not None
        assert high_w.ravel() == pytest.approx([712, 650])

    def test_the_quickest_of_a_kernel_that_is_too_slow_can_be_supplied(self) -> None:
        # Hand: of the run of 2 ms, 1.6 are allowed, 80 %. At 800 and 1400 MHz it takes 1.5 ms: the
        # second kernel gains by the memory clock, the first, at its 1 ms, by the engine clock
        # alone, and at 1000 MHz (0.7 ms) it would draw 900 W.
        grid = ConfigGrid((8,), (400.0, 800.0, 1000.0), (700.0, 1400.0))
        base = HardwareConfig(8, 800.0, 700.0)
        time_ms = np.array([[[2, 2], [1, 1], [0.7, 0.7]], [[1, 0.5], [1, 0.5], [1, 0.5]]])
        power_w = np.array([[[100, 100], [300, 300], [900, 900]], [[100.0, 100]] * 3])
        both = {
            quantity: Surfaces(grid, base, values[:, None], ((), ()))
            for quantity, values in (("time", time_ms), ("power", power_w))
        }
        limits = Limits(max_time_ms=1.6)
        search = Search(both, np.ones(2), "energy", limits, True, Supply(700, 700))
        best, too_slow = search.best_of_kernels
        assert too_slow.tolist() == [True, False]
        assert search.surfaces["time"].grid.config(np.unravel_index(best[0], grid.shape)) == base
