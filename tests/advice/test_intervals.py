"""Intervals of what an advice saves, and what the board cannot supply: by hand and by property.

By hand from the kernels of synthetic.frugal (see test_advise.py), their power times a factor:
34.48, 45.12, 65.84 and 100 W over the engine clock. Limits of boards are the device table's: 700 W
of an H100, 450 W of an RTX 4090, and of an H20 400 W that may be raised to 500.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_calls import counted
from synthetic import frugal
from synthetic.frugal import MID, new_kernels

from mlscale import HardwareConfig, Profiles, load, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Choice, Costs, Terms, Workload
from mlscale.advice.search import best_of_kernels, best_of_run, recommendations
from mlscale.data.datasets import path as shipped
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces
from mlscale.model.predictions import ABOVE_LIMIT
from mlscale.predictors.baselines import Nearest, NoScaling
from mlscale.studies.fleet import advise_fleet, advise_part, joined, restored, run_base, state_of

MODEL = replace(train(frugal.measurements(), MID, "nearest"), device="h100-sxm5")
TIME = Terms("time", Limits())


class UnsureOfNothing(frugal.Unsure, NoScaling):
    """Time and power as at the base, give or take."""

    name = "unsure-of-nothing"


class UnsureNearest(frugal.Unsure, Nearest):
    name = "unsure-nearest"


class Slightly(NoScaling):
    """1 % more than at the base, at every other configuration."""

    name = "slightly"

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        same = super().predict(profiles, grid)
        values = 1.01 * same.values
        values[:, *same.grid.index(same.base)] = 1
        return replace(same, values=values)


UNSURE = frugal.model_of(UnsureOfNothing)
UNSURE_NEAREST = replace(frugal.model_of(UnsureNearest), device="h100-sxm5")


def kernels(factor: float, device: str = "h100-sxm5") -> Profiles:
    """Both kernels at so many times the power."""
    both = new_kernels()
    return replace(both, device=device, power_w=factor * both.quantity("power"))


class TestIntervals:
    @pytest.mark.parametrize(
        ("objective", "low", "high"),
        [
            ("energy", 100 * (1 - 1.2**2), 100 * (1 - 0.9**2)),
            ("edp", 100 * (1 - 1.2**3), 100 * (1 - 0.9**3)),
            ("time", -20.0, 10.0),
        ],
    )
    def test_by_hand(self, objective: str, low: float, high: float) -> None:
        """0.9 to 1.2 times the time and the power at the base; for all kernels the same, added."""
        limits = Limits(max_slowdown_percent=30)
        advice = advise(UNSURE, new_kernels(), objective, limits)
        for one in (*advice.kernels, advice.whole_run):
            assert one.best.saving_percent == pytest.approx(0, abs=1e-9)
            assert one.best.saving_range == pytest.approx((low, high), rel=1e-12)
            assert one.best.slowdown_range == pytest.approx((-10.0, 20.0), rel=1e-12)

    def test_each_misses_half_as_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two intervals of 95 % hold at once for at least 90 %; time and power keep their 90 %."""
        calls = counted(monkeypatch, UnsureOfNothing)
        advise(UNSURE, new_kernels(), "energy")
        assert calls == [
            ("predict_interval", quantity, pytest.approx(coverage))
            for coverage in (0.9, 0.95)
            for quantity in ("time", "power")
        ]
        calls.clear()
        advise(UNSURE, new_kernels(power=False), "time")
        assert calls == [("predict_interval", "time", pytest.approx(0.9))]

    def test_none_where_a_predictor_has_none(self) -> None:
        assert advise(MODEL, new_kernels()).kernels[0].best.saving_range is None
        predictors = {**UNSURE.predictors, "power": MODEL.predictors["power"]}
        half = replace(UNSURE, predictors=predictors)
        assert advise(half, new_kernels()).kernels[0].best.saving_range is None


Ends = tuple[float, float, float]  # low, value, high
NUMBER = st.floats(1, 90)
ENDS = st.tuples(NUMBER, NUMBER, NUMBER).map(lambda three: tuple(sorted(three)))


def saving_of_power(times: list[Ends], powers: list[Ends]) -> Choice:
    """The best of a run at half the clock of the base, where kernels take 1 ms at 100 W."""
    grid = ConfigGrid((8,), (400.0, 800.0), (700.0,))

    def surfaces(at_base: float, ends: list[Ends]) -> Surfaces:
        low, value, high = np.array(ends).T[:, :, None, None, None]
        sides = [np.concatenate([end, 0 * end + at_base], axis=2) for end in (value, low, high)]
        return Surfaces(grid, grid.highest, sides[0], ((),) * len(ends), *sides[1:])

    both = {"time": surfaces(1.0, times), "power": surfaces(100.0, powers)}
    costs = Costs.from_surfaces(both, both["power"].values, np.ones(len(times)), UNLIMITED)
    terms, run = Terms("power", Limits()), costs.summed()
    [whole] = recommendations(run, terms, best_of_run(run, terms)[:1])
    assert whole.best.config.engine_mhz == 400
    return whole.best


class TestMeanPower:
    def test_falls_where_times_rise(self) -> None:
        # 80 W of 1 ms (1 to 1) and 20 W of 1 ms (0.25 to 4): 50 W, 68 W at the low ends and
        # 32 W at the high ones, against 100 W.
        best = saving_of_power([(1.0, 1.0, 1.0), (0.25, 1.0, 4.0)], [(80.0,) * 3, (20.0,) * 3])
        assert best.saving_percent == pytest.approx(50, rel=1e-9)
        assert best.saving_range == pytest.approx((32, 68), rel=1e-9)

    @given(st.lists(ENDS, min_size=4, max_size=4))
    def test_lies_between_its_ends(self, ends: list[Ends]) -> None:
        best = saving_of_power(ends[:2], ends[2:])
        assert best.saving_range is not None
        assert best.saving_range[0] <= best.saving_percent <= best.saving_range[1]


class TestTheBoardsLimit:
    def test_what_the_board_cannot_supply_is_left_out(self) -> None:
        # 8 times the power is 800 W at 1000 MHz, 526.72 W at 800; an H100 may be set to 700 W.
        free = advise(replace(MODEL, device="made-gpu"), kernels(8, "made-gpu"))
        assert not any("left out" in warning.text for warning in free.warnings)
        advice = advise(MODEL, kernels(8), "time")
        assert advice.whole_run.best.config == HardwareConfig(16, 800.0, 1000.0)
        assert {kernel.best.config.engine_mhz for kernel in advice.kernels} <= {400, 600, 800}
        for one in (advice.whole_run, *advice.kernels):
            assert all((point.power_w or 0) <= 700 for point in one.front)
        size = advice.surfaces["time"].grid.size
        said = f"{size // 4} of {size} configurations are left out: a kernel would draw up to 800 W"
        assert [w for w in advice.warnings if w.text.startswith(said) and "700 W" in w.text]

    def test_what_the_base_drew_is_possible(self) -> None:
        # 12 times the power is 790 W at the base: what was measured was possible.
        advice = advise(MODEL, kernels(12), "time")
        assert advice.whole_run.best.config.engine_mhz == 800
        left_out = next(warning for warning in advice.warnings if "left out" in warning.text)
        assert "; up to 2 % above what was measured counts as within it" in left_out.text

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
        advice = advise(model, run, "time")
        assert advice.whole_run.best.config == fast.config
        assert advice.supply == Supply(560, 560, 560)
        assert not any("are left out" in warning.text for warning in advice.warnings)

    def test_a_best_above_the_default_limit_says_so(self) -> None:
        # An H20 ships with 400 W and may be set to 500: 4.5 times the power is 450 W at 1000 MHz.
        model = replace(MODEL, device="h20")
        [told] = [
            w for w in advise(model, kernels(4.5, "h20"), "time").warnings if "default" in w.text
        ]
        assert told.text.startswith(
            "at the best clocks a kernel would draw 450 W, more than the board's default "
            "limit of 400 W: unless that is raised (to 500 W at most)"
        )
        frugal_one = advise(model, kernels(4.5, "h20"), "energy")
        assert not any("default limit" in warning.text for warning in frugal_one.warnings)

    def test_of_dynamic_power_the_rest_is_supplied_too(self) -> None:
        # With 680 W beside it the base draws 745.84 W, and 780 at 1000 MHz; an H100 has 700.
        trained = train(frugal.measurements(power_kind="dynamic"), MID, "nearest")
        dynamic = replace(trained, device="h100-sxm5")
        advice = advise(dynamic, kernels(1), "time", static_power_w=680.0)
        assert advice.whole_run.best.config.engine_mhz == 800
        assert advice.supply.most_w == pytest.approx(745.84)
        # Where the rest is not known, what alone is too much cannot be: 800 W at 1000 MHz.
        assert advise(dynamic, kernels(8), "time").whole_run.best.config.engine_mhz == 800
        marks = [ABOVE_LIMIT in flags for flags in dynamic.predict(kernels(8)).columns()["flags"]]
        marked = np.reshape(marks, (2, *dynamic.grid.shape)).any(axis=(0, 1, 3))
        assert marked.tolist() == [mhz == 1000 for mhz in dynamic.grid.engine_mhz]
        assert advise(dynamic, kernels(7), "time").whole_run.best.config.engine_mhz == 1000

    def test_no_limit_needs_raising_for_what_the_slack_lets_stand(self) -> None:
        # 699 W at the base, and 705.99 everywhere else: 1.01 times what was drawn.
        by_slack = Slightly(quantity="power").fit(frugal.measurements(), MID)
        model = replace(MODEL, predictors={**MODEL.predictors, "power": by_slack})
        advice = advise(model, replace(kernels(1), power_w=np.full(2, 699.0)), "time")
        assert advice.whole_run.best.power_w == pytest.approx(705.99)
        [note] = [warning for warning in advice.warnings if "limit" in warning.text]
        assert "706 W, and the board's limit is 700 W: up to 2 % above what was" in note.text

    def test_the_interval_is_of_the_clock_that_the_gpu_is_lowered_to(self) -> None:
        # The compute kernel, 2 ms at the base; at 16 CUs 1 ms at 800 MHz and 0.8 at 1000, up to a
        # fifth more. Of 6.5 times the power 428 W and 650, up to 513.5 and 780: for the part S of
        # the time in which 780 S + 513.5 (1 - S) = 700 W it runs at 1000 MHz.
        best = advise(UNSURE_NEAREST, kernels(6.5).select([0]), "time").whole_run.best
        share = (700 - 1.2 * 427.96) / (780 - 1.2 * 427.96)
        latest_ms = 1 / (share / 0.96 + (1 - share) / 1.2)
        assert best.config.engine_mhz == 1000
        assert best.slowdown_range is not None
        assert best.slowdown_range[1] == pytest.approx(50 * latest_ms - 100, rel=1e-9)

    def test_the_quickest_of_a_kernel_that_is_too_slow_can_be_supplied(self) -> None:
        # Of the run of 2 ms, 1.6 are allowed, 80 %. At 800 and 1400 MHz it takes 1.5 ms: the
        # second kernel gains by the memory clock, the first, at its 1 ms, by the engine clock
        # alone, and at 1000 MHz (0.7 ms) it would draw 900 W.
        grid = ConfigGrid((8,), (400.0, 800.0, 1000.0), (700.0, 1400.0))
        time_ms = np.array([[[2, 2], [1, 1], [0.7, 0.7]], [[1, 0.5], [1, 0.5], [1, 0.5]]])
        power_w = np.array([[[100, 100], [300, 300], [900, 900]], [[100.0, 100]] * 3])
        times, powers = (of[:, None, None] for of in (time_ms, power_w))
        supply, base = Supply(700, 700), HardwareConfig(8, 800.0, 700.0)
        costs = Costs(grid, base, np.ones(2), times, powers, powers[:, 0], supply)
        best, too_slow = best_of_kernels(costs, Terms("energy", Limits(max_time_ms=1.6)), 2.0)
        assert too_slow.tolist() == [True, False]
        assert best[0] == costs.base_place


class TestARunInParts:
    """A fleet's parts: their sums are those of one run."""

    def test_by_hand(self) -> None:
        # 2 ms at 30 W and 6 ms at 70 W: 8 ms at 60 W, and what must be supplied is the larger.
        one, other = (
            restored({"time_ms": [[[[[ms]]]]], "power_w": [[[[[watts]]]]], **rest}, MODEL)
            for ms, watts, rest in (
                (2.0, 30.0, {"peak_w": [[[[90.0]]]], "is_bounded": False}),
                (6.0, 70.0, {"peak_w": [[[[80.0]]]], "is_bounded": True}),
            )
        )
        state = state_of(joined(one, other))
        assert state["time_ms"] == [[[[[8]]]]]
        assert state["power_w"] == [[[[[60]]]]]
        assert (state["peak_w"], state["is_bounded"]) == ([[[[90]]]], True)

    @pytest.mark.parametrize("order", [1, -1])
    def test_the_base_is_that_of_all_parts(self, order: int) -> None:
        # 3 x 2 ms + 4 ms beside 4 ms; 65.84 W of the first part, and 90 W at a further clock of the
        # other, where the first kernel has no power; 10 W more throughout.
        both = new_kernels((3.0, 1.0))
        point = MeasuredPoint(MID, np.array([4.0]), np.array([90.0]))
        part = replace(both.select([1]), points=(point,))
        time_ms, peak_w = run_base([both, part][::order], replace(TIME, added_w=10.0))
        assert (time_ms, peak_w) == (pytest.approx(14), pytest.approx(100))

    def test_it_is_held_as_one(self) -> None:
        # 12 times the power is 790 W at the base, in the first part: so the 750 W of the second
        # part's compute kernel at 1000 MHz are possible, and for the whole run 800 MHz.
        hot, cool = kernels(12), kernels(7.5)
        base = run_base([hot, cool], TIME)
        (_, of_hot), (columns, of_cool) = (advise_part(MODEL, p, TIME, base) for p in (hot, cool))
        assert columns["engine_mhz"][0] == 1000
        workload = Workload(4, None, counters_cover_percent=100.0)
        both = advise_fleet(MODEL, joined(of_hot, of_cool), TIME, workload, ())
        assert both.whole_run.best.config.engine_mhz == 800

    def test_it_has_the_interval_of_one(self) -> None:
        run = kernels(6.5)
        base = run_base([run], TIME)
        parts = [advise_part(UNSURE_NEAREST, run.select([k]), TIME, base)[1] for k in (0, 1)]
        workload = Workload(2, None, counters_cover_percent=100.0)
        in_parts = advise_fleet(UNSURE_NEAREST, joined(*parts), TIME, workload, ())
        whole = advise(UNSURE_NEAREST, run, "time").whole_run.best
        ends = in_parts.whole_run.best.slowdown_range
        assert ends == pytest.approx(whole.slowdown_range, rel=1e-9)
