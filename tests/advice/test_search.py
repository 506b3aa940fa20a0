"""The search: intervals whose ends are not in order, and what the board cannot supply."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import frugal
from synthetic import kernels as made

from mlscale import HardwareConfig, Profiles, load, train
from mlscale.advice.advise import Terms, WholePower, advise
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Run, Search
from mlscale.data.datasets import path as shipped
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.supply import Supply, drawn_w
from mlscale.data.surfaces import Surfaces
from mlscale.model.predictions import ABOVE_LIMIT
from mlscale.predictors.baselines import Nearest, NoScaling
from mlscale.studies.fleet import advise_part, advise_run, run_base

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = replace(train(frugal.measurements(), MID, "nearest"), device="h100-sxm5")


class Unsure(frugal.Unsure, Nearest):
    name = "unsure"


class Slightly(NoScaling):
    """1 % more than at the base, at every other configuration."""

    name = "slightly"

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        same = super().predict(profiles, grid)
        values = 1.01 * same.values
        values[:, *same.grid.index(same.base)] = 1
        return replace(same, values=values)


UNSURE = replace(frugal.model_of(Unsure), device="h100-sxm5")

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
        left_out = next(warning for warning in advice.warnings if "left out" in warning)
        assert "; up to 2 % above what was measured counts as within it (" in left_out

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
        model = load(shipped("runs.mlscale")).for_gpu(run.device, grid, run.base)
        assert drawn_w(run) == 560
        advice = advise(model, run, "time")
        assert advice.whole_run.best.config == fast.config
        assert advice.supply == Supply(560, 560, 560)
        assert not any("left out" in warning for warning in advice.warnings)

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

    def test_of_dynamic_power_the_rest_is_supplied_too(self) -> None:
        # With 680 W beside it the base draws 745.84 W, and 780 at 1000 MHz; an H100 has 700.
        dynamic = replace(
            train(frugal.measurements(power_kind="dynamic"), MID, "nearest"), device="h100-sxm5"
        )
        advice = advise(dynamic, profiles(1), "time", static_power_w=680.0)
        assert advice.whole_run.best.config.engine_mhz == 800
        assert advice.supply.most_w == pytest.approx(745.84)
        # Where the rest is not known, what alone is too much cannot be: 800 W at 1000 MHz.
        alone = advise(dynamic, profiles(8), "time")
        assert alone.whole_run.best.config.engine_mhz == 800
        marks = [ABOVE_LIMIT in flags for flags in dynamic.predict(profiles(8)).columns()["flags"]]
        marked = np.reshape(marks, (2, *dynamic.grid.shape)).any(axis=(0, 1, 3))
        assert marked.tolist() == [mhz == 1000 for mhz in dynamic.grid.engine_mhz]
        assert advise(dynamic, profiles(7), "time").whole_run.best.config.engine_mhz == 1000

    def test_no_limit_needs_raising_for_what_the_slack_lets_stand(self) -> None:
        # 699 W at the base, and 705 everywhere else: 1.01 times what was drawn.
        by_slack = Slightly(quantity="power").fit(frugal.measurements(), MID)
        model = replace(MODEL, predictors={**MODEL.predictors, "power": by_slack})
        both = replace(profiles(1), power_w=np.full(2, 699.0))
        advice = advise(model, both, "time")
        assert advice.whole_run.best.power_w == pytest.approx(705.99)
        [note] = [warning for warning in advice.warnings if "limit" in warning]
        assert note.endswith(
            "a kernel draws 706 W as predicted, the board's limit is 700 W: up to 2 % above what "
            "was measured counts as within it"
        )
        assert not any("limit" in w for w in advise(model, profiles(1), "time").warnings)

    def test_the_interval_is_of_the_clock_that_the_gpu_is_lowered_to(self) -> None:
        # The compute kernel, 2 ms at the base; at 16 CUs 1 ms at 800 MHz and 0.8 at 1000, up to a
        # fifth more. Of 6.5 times the power 428 W and 650, up to 513.5 and 780: for the part S of
        # the time in which 780 S + 513.5 (1 - S) = 700 W it runs at 1000 MHz.
        advice = advise(UNSURE, profiles(6.5).select([0]), "time")
        share = (700 - 1.2 * 427.96) / (780 - 1.2 * 427.96)
        latest_ms = 1 / (share / 0.96 + (1 - share) / 1.2)
        assert advice.whole_run.best.config.engine_mhz == 1000
        assert advice.whole_run.slowdown_range is not None
        assert advice.whole_run.slowdown_range[1] == pytest.approx(50 * latest_ms - 100, rel=1e-9)

    def test_a_run_in_parts_is_held_as_one(self) -> None:
        # 12 times the power is 790 W at the base, in the first part: so the 750 W of the second
        # part's compute kernel at 1000 MHz are possible, and for the whole run 800 MHz.
        hot, cool = profiles(12), profiles(7.5)
        terms = Terms("time", Limits(), None, WholePower("board", 0.0, None), ())
        base = run_base([hot, cool], terms)
        (_, of_hot), (columns, of_cool) = (
            advise_part(MODEL, of, terms, base) for of in (hot, cool)
        )
        assert columns["engine_mhz"][0] == 1000
        both = advise_run(MODEL, of_hot + of_cool, terms, Run(4, None, 0.0, 100.0), ())
        assert both.whole_run.best.config.engine_mhz == 800

    def test_a_run_in_parts_has_the_interval_of_one(self) -> None:
        run = profiles(6.5)
        terms = Terms("time", Limits(), None, WholePower("board", 0.0, None), ())
        base = run_base([run], terms)
        one, other = (advise_part(UNSURE, run.select([k]), terms, base)[1] for k in (0, 1))
        parts = advise_run(UNSURE, one + other, terms, Run(2, None, 0.0, 100.0), ())
        whole = advise(UNSURE, run, "time").whole_run
        assert parts.whole_run.slowdown_range == pytest.approx(whole.slowdown_range, rel=1e-9)

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
