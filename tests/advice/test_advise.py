"""Advice from a model and a profile: known optima, what is refused, properties of the whole run.

Numbers by hand from the kernels of synthetic.frugal: a compute and a bandwidth kernel of 2 and 4 ms
and 65.84 W at the base (8 CUs, 800 and 700 MHz), of 34.48, 45.12, 65.84 and 100 W at 400, 600, 800
and 1000 MHz. The compute kernel's time goes with 1 / (CUs x engine clock), the other's with
1 / memory clock.
"""

import doctest
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictor_calls import counted
from synthetic import bottleneck_kernels, frugal
from synthetic.frugal import MID, new_kernels
from synthetic.tidy import refused

from mlscale import HardwareConfig, Measurements, Model, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice
from mlscale.advice.search import TOO_SLOW
from mlscale.data.datasets import path
from mlscale.data.profiles import MeasuredPoint
from mlscale.model.shipped import model_for, shipped_model
from mlscale.notes import Note
from mlscale.readers.reading import import_profile

MODEL = train(frugal.measurements(), MID, "nearest")


def model_of_kind(kind: str | None) -> Model:
    return train(frugal.measurements(power_kind=kind), MID, "nearest")


def model_without_power() -> Model:
    return train(replace(frugal.measurements(), power_samples=None), MID, "nearest")


class TestKnownTruth:
    def test_the_most_frugal_clocks_are_found(self) -> None:
        # The compute kernel at 16 CUs and 600 MHz: 2 ms x 8/16 x 800/600 = 4/3 ms. The bandwidth
        # kernel: 4 ms x 700/1000; the CU count changes nothing, so the fewest are taken.
        advice = advise(MODEL, new_kernels())
        assert advice.objective == "energy"
        compute, bandwidth = advice.kernels
        assert (compute.kernel, compute.best.config.cu_count) == ("compute0", 16)
        assert compute.best.config.engine_mhz == 600
        assert compute.best.time_ms == pytest.approx(4 / 3, rel=1e-9)
        assert compute.best.energy_mj == pytest.approx(4 / 3 * 45.12, rel=1e-9)
        assert compute.base.energy_mj == pytest.approx(2 * 65.84, rel=1e-9)
        saving = 100 * (1 - 4 / 3 * 45.12 / (2 * 65.84))
        assert compute.best.saving_percent == pytest.approx(saving, rel=1e-9)
        assert compute.best.slowdown_percent == pytest.approx(-100 / 3, rel=1e-9)
        assert bandwidth.best.config == HardwareConfig(4, 400.0, 1000.0)
        assert bandwidth.best.energy_mj == pytest.approx(4 * 0.7 * 34.48, rel=1e-9)

    def test_edp_asks_for_more_speed(self) -> None:
        # (30 + 70 x^3) / x^2 is least at 1000 MHz; of the bandwidth kernel still at 400.
        compute, bandwidth = advise(MODEL, new_kernels(), "edp").kernels
        assert compute.best.config.engine_mhz == 1000
        assert bandwidth.best.config.engine_mhz == 400

    def test_together_the_energies_are_added(self) -> None:
        # At 16 CUs and 1000 MHz memory, with g = 30 + 70 x^3: 2 ms x 8/16 x 0.8/x x g for the
        # compute kernel, 2.8 ms x g for the other; 165.5, 186.5, 250.2 and 360 mJ by x.
        advice = advise(MODEL, new_kernels())
        best = advice.whole_run.best
        assert best.config == HardwareConfig(16, 400.0, 1000.0)
        found = (best.time_ms, best.power_w, best.energy_mj)
        assert found == pytest.approx((4.8, 34.48, 4.8 * 34.48), rel=1e-9)
        # 4.8 ms of 6, and 4.8 x 34.48 mJ of 6 x 65.84.
        assert repr(advice) == (
            "<Advice on energy for 2 kernels: cu=16,engine=400,memory=1000, time -20.0 %, energy "
            "-58.1 % against the base cu=8,engine=800,memory=700>"
        )

    def test_launches_say_which_kernel_decides(self) -> None:
        # With g = 30 + 70 x^3 at 16 CUs and 1000 MHz memory: the compute kernel needs 0.8/x x g,
        # least at 600 MHz (60.16 mJ; 68.96 at 400), the bandwidth kernel 2.8 x g, least at 400
        # (96.5 mJ; 126.3 at 600). 100 launches of the former: 6142 mJ at 600 MHz, 6993 at 400.
        advice = advise(MODEL, new_kernels((100.0, 1.0)))
        best = advice.whole_run.best
        assert best.config == HardwareConfig(16, 600.0, 1000.0)
        assert best.time_ms == pytest.approx(100 * 4 / 3 + 2.8, rel=1e-9)
        assert best.energy_mj == pytest.approx((100 * 4 / 3 + 2.8) * 45.12, rel=1e-9)
        assert advice.whole_run.base.time_ms == pytest.approx(204)
        parts = [(kernel.launches, kernel.share_percent) for kernel in advice.kernels]
        assert parts == [(100, pytest.approx(200 / 2.04)), (1, pytest.approx(4 / 2.04))]

    def test_the_front_runs_from_quick_to_frugal(self) -> None:
        # 16 CUs at 1000, 800 and 600 MHz: less energy at each step; 400 MHz needs more again. The
        # memory clock changes nothing, so the lowest stands for all.
        compute = advise(MODEL, new_kernels()).kernels[0]
        assert [point.config.engine_mhz for point in compute.front] == [1000, 800, 600]
        assert {point.config.memory_mhz for point in compute.front} == {400}
        assert compute.front[-1] == compute.best

    def test_one_launch_of_one_kernel_is_the_whole_run(self) -> None:
        one = new_kernels().select([0])
        advice = advise(MODEL, one)
        assert advice.whole_run.best == advice.kernels[0].best
        advice = advise(MODEL, replace(one, launches=np.array([10.0])))
        assert advice.whole_run.base.time_ms == pytest.approx(20)

    def test_the_run_as_measured_at_further_points(self) -> None:
        # 3 x 2.5 + 4.5 ms of 3 x 2 + 4; (7.5 x 50 + 4.5 x 60) / 12 W.
        data = bottleneck_kernels.measurements(8)
        base = data.grid.mid
        profiles = data.profiles(base).select([0, 1])
        config, unsure = (replace(base, engine_mhz=mhz) for mhz in data.grid.engine_mhz[:2])
        points = (
            MeasuredPoint(config, np.array([2.5, 4.5]), np.array([50.0, 60.0])),
            MeasuredPoint(unsure, np.array([2.2, np.nan]), None),
        )
        times, launches = np.array([2.0, 4.0]), np.array([3.0, 1.0])
        profiles = replace(profiles, time_ms=times, launches=launches, points=points)
        [measured] = advise(train(data, base, "bottleneck"), profiles, "time").measured
        assert (measured.config, measured.time_ms) == (config, pytest.approx(12))
        assert measured.slowdown_percent == pytest.approx(20)
        assert measured.power_w == pytest.approx(53.75)


class TestLimits:
    def test_a_slowdown_is_of_the_run(self) -> None:
        # At 8 CUs and 700 MHz the compute kernel takes 33 % more at 600 MHz and twice the time at
        # 400 MHz, the bandwidth kernel the same. Of 2 ms beside 4 ms: 11 % and 33 % of the run.
        profiles = new_kernels(power=False)
        for most, engine_mhz in ((11.0, 800), (11.2, 600), (33.4, 400)):
            advice = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=most))
            assert advice.whole_run.best.config == HardwareConfig(8, engine_mhz, 700.0)
        in_run = [kernel.in_run and kernel.in_run.slowdown_percent for kernel in advice.kernels]
        assert in_run == pytest.approx([100, 0], abs=1e-9)
        [flag] = advice.whole_run.flags
        assert flag.text.startswith(
            "the limit of 33.4 % is for the whole run: 1 of 2 kernels (33 %"
        )
        # By itself it keeps the limit: 800 MHz.
        assert advice.kernels[0].best.config.engine_mhz == 600

    def test_a_limit_of_time_is_of_the_run(self) -> None:
        # 100 x 2 ms + 4 ms at the base; at 600 MHz 33 % more of the former: 270.67 ms.
        profiles = new_kernels((100.0, 1.0), power=False)
        for most, engine_mhz in ((270.0, 800), (271.0, 600)):
            advice = advise(MODEL, profiles, "clock", Limits(max_time_ms=most))
            assert advice.whole_run.best.config.engine_mhz == engine_mhz

    def test_a_kernel_that_cannot_be_as_quick_as_the_run_is_told(self) -> None:
        # The compute kernel needs 0.8 ms at least, 40 % of the base's; the bandwidth kernel 2.8
        # ms, 70 %. A run of 3.6 ms of 6 ms, 60 %, is possible.
        advice = advise(MODEL, new_kernels(), limits=Limits(max_time_ms=3.7))
        compute, bandwidth = advice.kernels
        assert compute.best.time_ms <= 3.7 / 6 * 2 + 1e-9
        assert TOO_SLOW not in compute.flags
        assert bandwidth.best.time_ms == pytest.approx(2.8)
        assert TOO_SLOW in bandwidth.flags

    def test_power_is_of_every_kernel(self) -> None:
        # The bandwidth kernel draws twice the power of the other: 90.24 W at 600 MHz, 131.68 W
        # at 800 MHz. The mean over the run would allow more.
        profiles = replace(new_kernels((1000.0, 1.0)), power_w=np.array([65.84, 131.68]))
        best = advise(MODEL, profiles, "time", Limits(max_power_w=100)).whole_run.best
        assert best.config.engine_mhz == 600
        assert best.power_w == pytest.approx(45.12, rel=1e-2)
        # Alone the other is quickest at 1000 MHz, and within 70 W at 800.
        for most_w, engine_mhz in ((100, 1000), (70, 800)):
            compute, _ = advise(MODEL, profiles, "time", Limits(max_power_w=most_w)).kernels
            assert compute.best.config.engine_mhz == engine_mhz

    def test_the_lowest_clock_within_a_slowdown(self) -> None:
        # At the base's 8 CUs the compute kernel takes 2 ms x 800 / engine: 33 % more at 600 MHz.
        # The bandwidth kernel does not know the engine clock. CUs and memory clock stay.
        profiles = new_kernels(power=False)
        advice = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=0))
        best = [kernel.best.config for kernel in (*advice.kernels, advice.whole_run)]
        assert best == [HardwareConfig(8, mhz, 700.0) for mhz in (800.0, 400.0, 800.0)]
        assert advice.kernels[1].best.saving_percent == pytest.approx(50)  # 400 of 800 MHz
        # 2.67 ms at 600 MHz, 4 ms at 400 MHz: a limit of 3 ms leaves 600 MHz.
        limited = advise(MODEL, profiles.select([0]), "clock", Limits(max_time_ms=3))
        assert limited.kernels[0].best.config.engine_mhz == 600

    def test_what_nothing_keeps_is_refused_with_the_nearest(self) -> None:
        # 0.8 ms and 2.8 ms at the quickest. The compute kernel is as quick with 100 W; the other,
        # of twice the power, stays below 101 W up to 600 MHz (90.24 W) only.
        with refused("the whole run: no configuration keeps a time of at most 1.5 ms; .* 3.6 ms$"):
            advise(MODEL, new_kernels(), limits=Limits(max_time_ms=1.5))
        profiles = replace(
            new_kernels(), time_ms=np.array([2.0, 0.1]), power_w=np.array([65.84, 131.68])
        )
        with refused("keeps a power of at most 101 W and a time of at most 0.88 ms; the least is"):
            advise(MODEL, profiles, "time", Limits(max_time_ms=0.88, max_power_w=101))


class TestPower:
    def test_by_default_the_lowest_clock_where_energy_cannot_be_known(self) -> None:
        for model, profiles in (
            (model_without_power(), new_kernels()),
            (MODEL, new_kernels(power=False)),
            (model_of_kind("dynamic"), new_kernels()),
        ):
            advice = advise(model, profiles)
            assert (advice.objective, advice.limits.max_slowdown_percent) == ("clock", 5)
            assert (advice.kernels[0].best.energy_mj, advice.kernels[0].front) == (None, ())
            said = "looking for the lowest clock, not least energy"
            assert any(said in warning.text for warning in advice.warnings)

    def test_dynamic_power_is_least_where_board_power_is(self) -> None:
        best = advise(model_of_kind("dynamic"), new_kernels(), "power").kernels[0].best
        assert (best.config.engine_mhz, best.energy_mj) == (400, None)

    def test_unknown_power_is_taken_for_board_power_and_said(self) -> None:
        advice = advise(model_of_kind(None), new_kernels())
        assert advice.objective == "energy"
        assert advice.warnings[0].text.startswith("power_w is assumed to be board power")
        assert not advise(MODEL, new_kernels()).warnings


def test_kernels_that_wait_for_other_gpus_are_told() -> None:
    """4 of 6 ms."""
    for name, is_told in (("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", True), ("pack_nccl", False)):
        advice = advise(MODEL, replace(new_kernels(), kernels=("gemm", name)))
        said = "66.7 % of the run's time goes to exchanging data between GPUs"
        assert any(said in warning.text for warning in advice.warnings) == is_told


@pytest.mark.parametrize(("name", "times"), [("bottleneck", 2), ("nearest", 1)])
def test_every_surface_is_predicted_once_for_each_coverage(
    name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A predictor without intervals once; with them for energy's ends a second time."""
    data = bottleneck_kernels.measurements(8)
    model = train(data, bottleneck_kernels.CLOCKS.mid, name)
    calls = counted(monkeypatch, type(model.predictors["time"]))
    advise(model, data.profiles(model.base))
    assert [quantity for _, quantity, _ in calls] == ["time", "power"] * times


def test_the_example_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """The docstring's answer is that of the shipped model: regression only."""
    monkeypatch.chdir(Path(__file__).parents[2])
    (example,) = doctest.DocTestFinder().find(advise, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


OBJECTIVES = st.sampled_from(["energy", "edp", "ed2p", "time", "power", "clock"])
COUNTS = st.lists(st.floats(0.01, 1e4), min_size=2, max_size=2).map(np.array)
LIMITS = st.sampled_from(
    [
        Limits(),
        Limits(max_slowdown_percent=10),
        Limits(max_power_w=95),
        Limits(max_power_w=95, max_slowdown_percent=40),
    ]
)


def assert_same_run(first: Advice, second: Advice, factor: float = 1.0) -> None:
    """That both advise the same, and that the second's times and energies are so much."""
    one, other = first.whole_run, second.whole_run
    assert one.best.config == other.best.config
    assert one.best.slowdown_percent == pytest.approx(other.best.slowdown_percent, abs=1e-9)
    assert one.best.saving_percent == pytest.approx(other.best.saving_percent, abs=1e-9)
    assert [point.config for point in one.front] == [point.config for point in other.front]
    for ours, theirs in ((one.best, other.best), (one.base, other.base)):
        assert theirs.time_ms == pytest.approx(factor * ours.time_ms)
        assert theirs.energy_mj == pytest.approx(factor * (ours.energy_mj or np.nan))
        assert theirs.power_w == pytest.approx(ours.power_w)


class TestPropertiesOfTheRun:
    @settings(max_examples=30)
    @given(OBJECTIVES, LIMITS, COUNTS, st.floats(0.1, 50))
    def test_more_launches_of_all_change_time_and_energy_alone(
        self, objective: str, limits: Limits, counts: np.ndarray, factor: float
    ) -> None:
        first = advise(MODEL, new_kernels(counts), objective, limits)
        second = advise(MODEL, new_kernels(factor * counts), objective, limits)
        assert_same_run(first, second, factor)
        for one, other in zip(first.kernels, second.kernels, strict=True):
            assert one.best == other.best
            assert one.share_percent == pytest.approx(other.share_percent)

    @settings(max_examples=30)
    @given(OBJECTIVES, LIMITS, COUNTS, st.floats(0.05, 0.95))
    def test_a_kernel_in_two_rows_gives_the_same_answer(
        self, objective: str, limits: Limits, counts: np.ndarray, part: float
    ) -> None:
        whole, rows = new_kernels(counts), new_kernels(counts).select([0, 0, 1])
        launches = np.array([part * counts[0], (1 - part) * counts[0], counts[1]])
        split = replace(rows, kernels=("part0", "part1", "other"), launches=launches)
        first, second = (advise(MODEL, of, objective, limits) for of in (whole, split))
        assert_same_run(first, second)

    @settings(max_examples=30)
    @given(COUNTS, st.floats(0, 40))
    def test_a_limit_holds_for_the_sum_of_the_kernels(
        self, counts: np.ndarray, most: float
    ) -> None:
        advice = advise(MODEL, new_kernels(counts), "power", Limits(max_slowdown_percent=most))
        assert advice.whole_run.best.slowdown_percent <= most + 1e-6
        by_kernel = sum(
            (kernel.launches or 0) * kernel.in_run.time_ms
            for kernel in advice.kernels
            if kernel.in_run
        )
        assert advice.whole_run.best.time_ms == pytest.approx(by_kernel)

    @settings(max_examples=15)
    @given(OBJECTIVES, LIMITS)
    def test_one_launch_each_is_what_no_launches_mean(self, objective: str, limits: Limits) -> None:
        once = new_kernels((1.0, 1.0))
        never_said = advise(MODEL, replace(once, launches=None), objective, limits)
        assert_same_run(never_said, advise(MODEL, once, objective, limits))


class TestMemoryClock:
    """Of a GPU that changes it only as its driver is loaded anew (nvidia-smi(1)), it is kept."""

    KEPT = (
        "the memory clock is left as it is: h100-sxm5 changes it only when its driver is "
        "reloaded, and the saving was measured on other GPUs only"
    )

    def gemm(self) -> Profiles:
        """A kernel of 7.5 % of the peak DRAM bandwidth, counted, at 520 W; made by hand."""
        clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
        both = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=clocks)
        return replace(both.select([1]), power_w=np.array([520.0]))

    def advised(self, profiles: Profiles, objective: str | None = None) -> Advice:
        return advise(model_for(shipped_model(profiles)[1], profiles), profiles, objective)

    @pytest.mark.parametrize("objective", ["energy", "clock"])
    def test_is_left_where_nothing_was_learnt_of_the_gpu(self, objective: str) -> None:
        """Its least energy is predicted at 1593 MHz, by a law of two boards with another memory."""
        advice = self.advised(self.gemm(), objective)
        one = advice.kernels[0]
        assert {point.config.memory_mhz for point in (one.best, *one.front)} == {2619}
        assert (Note("T06", self.KEPT) in advice.warnings) == (objective == "energy")

    def test_changes_after_a_run_at_another(self) -> None:
        profiles = self.gemm()
        config = replace(profiles.base, memory_mhz=1593.0)
        point = MeasuredPoint(config, profiles.time_ms * 1.01, np.array([480.0]))
        advice = self.advised(replace(profiles, points=(point,)))
        assert advice.keeps_memory is None
        assert advice.whole_run.best.config.memory_mhz == 1593

    def test_changes_by_a_model_of_the_gpu_itself(self) -> None:
        advice = advise(
            replace(MODEL, device="h100-sxm5"), replace(new_kernels(), device="h100-sxm5")
        )
        assert advice.keeps_memory is None
        assert advice.whole_run.best.config.memory_mhz != MID.memory_mhz

    def test_other_gpus_are_offered_theirs(self) -> None:
        """An RTX 3090 lists 5001, 9251 and 9501 MHz, which -lmc sets."""
        base = HardwareConfig(82, 1695.0, 9501.0)
        profiles = replace(self.gemm(), device="rtx3090", base=base, power_w=np.array([300.0]))
        assert self.advised(profiles).keeps_memory is None

    def test_a_lowest_clock_of_a_kernel_that_is_too_slow_is_sought_at_the_base_too(self) -> None:
        """Of 2.0 ms 1.9 are allowed. k2 follows the engine clock, 0.8 ms at 1000 MHz.

        k1 stays at 1 ms at all engine clocks, of which the lowest is shown; with the other memory
        clock or two CUs it would take 0.8.
        """
        table = [
            {"application": kernel, "kernel": kernel, "cu_count": cus, "engine_mhz": engine}
            | {"memory_mhz": memory, "loads": follows}
            | {"time_ms": 800 / engine if follows else 0.8 if (cus, memory) != (1, 800) else 1}
            for kernel, follows in (("k1", 0.0), ("k2", 1.0))
            for cus in (1, 2)
            for engine in (500.0, 800.0, 1000.0)
            for memory in (800.0, 1000.0)
        ]
        measured = Measurements.from_frame(pd.DataFrame(table), device="gtx980")
        base = HardwareConfig(1, 800, 800)
        model = train(measured, base, "nearest", neighbours=1)
        advice = advise(model, measured.profiles(base), "clock", Limits(max_time_ms=1.9))
        best = [one.best.config for one in (advice.whole_run, *advice.kernels)]
        assert best == [HardwareConfig(1, mhz, 800) for mhz in (1000, 500, 1000)]
        assert advice.kernels[0].flags[-1] == TOO_SLOW
