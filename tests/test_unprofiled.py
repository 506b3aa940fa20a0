"""Kernels without counters: what they are predicted as, beside kernels of known laws.

Expected: by hand, from what `synthetic.frugal` says of its compute and its bandwidth kernel.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Limits, Measurements, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.search import TOO_SLOW
from mlscale.data.datasets import path
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import MeasuredPoint
from mlscale.model import prediction_table
from mlscale.model.shipped import model_for, shipped_model
from mlscale.model.unprofiled import (
    AS_KEPT,
    AS_THE_MEAN,
    POWER_AS_THE_MEAN,
    complete,
    exchanging,
    with_exchanges_kept,
)
from mlscale.predictors.baselines import MeanSurface
from mlscale.readers.reading import import_profile

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = train(frugal.measurements(), MID, "nearest")
SLOW = made.GRID.index(HardwareConfig(8, 400.0, 700.0))


def three(power_w: tuple[float, float, float] = (60.0, 40.0, np.nan)) -> Profiles:
    """A compute kernel of 3 x 2 ms, a bandwidth kernel of 1 x 4 ms, and one of 5 x 1 ms.

    The last has no counters.
    """
    two = frugal.measurements(per_group=1).profiles(MID)
    return replace(
        two,
        kernels=(*two.kernels, "unknown"),
        applications=(*two.applications, "unknown"),
        time_ms=np.array([2.0, 4.0, 1.0]),
        power_w=np.array(power_w),
        counters=np.vstack([two.counters, np.full(two.counters.shape[1], np.nan)]),
        launches=np.array([3.0, 1.0, 5.0]),
    )


class TestClosedForm:
    def test_time_is_that_of_the_profiled_weighted_by_time(self) -> None:
        # At 400 MHz the compute kernel takes twice its time, the bandwidth kernel the same: of
        # 6 ms and 4 ms, (6 x 2 + 4 x 1) / 10.
        predictions = MODEL.predict(three())
        assert predictions["time"].values[:, *SLOW] == pytest.approx([2.0, 1.0, 1.6], rel=1e-9)
        assert predictions.time_ms[2, *SLOW] == pytest.approx(1.6)

    def test_power_is_weighted_by_energy(self) -> None:
        # Both kernels' power factor is 34.48 / 65.84 at 400 MHz. The mean power is
        # (6 x 60 + 4 x 40) / 10.
        predictions = MODEL.predict(three())
        assert predictions.power_w is not None
        expected = 52.0 * 34.48 / 65.84
        assert predictions.power_w[2, *SLOW] == pytest.approx(expected, rel=1e-9)
        measured = MODEL.predict(three((60.0, 40.0, 90.0)))
        assert measured.power_w is not None
        expected = 90 * 34.48 / 65.84
        assert measured.power_w[2, *SLOW] == pytest.approx(expected, rel=1e-9)

    def test_energy_weighs_the_power_factor(self) -> None:
        # Of factors 2 and 1 at energies of 6 ms x 60 W and 4 ms x 40 W.
        predictions = MODEL.predict(three())
        grid, power = predictions.grid, predictions["power"]
        factors = np.ones((2, *grid.shape)) * np.array([2.0, 1.0])[:, None, None, None]
        of_two = {q: replace(power, values=factors, flags=((), ())) for q in ("time", "power")}
        _, surfaces = complete(three(), of_two)
        assert surfaces["power"].values[2] == pytest.approx((360 * 2 + 160) / 520)
        assert surfaces["time"].values[2] == pytest.approx((6 * 2 + 4) / 10)

    def test_it_is_flagged_and_the_others_are_as_without_it(self) -> None:
        every, two = MODEL.predict(three()), MODEL.predict(three().select([0, 1]))
        assert every.flags == (*two.flags, (AS_THE_MEAN,))
        for quantity, surfaces in two.items():
            assert (every[quantity].values[:2] == surfaces.values).all()
        assert every.warnings == two.warnings


class TestIntervals:
    def test_the_ends_by_hand(self) -> None:
        """Profiled kernels that no clock changes, from 0.95 to 1.05; the base is 8, 800 and 700.

        At 1000 MHz of memory what memory binds takes 0.7; at 1000 MHz of engine and 16 CUs what
        the CUs bind takes 8 / 16 x 800 / 1000; at 400 MHz of engine 800 / 400. Of power no law.
        """
        time = MODEL.predict(three())["time"]
        ones = np.ones((2, *time.grid.shape))
        flat = replace(time, values=ones, low=0.95 * ones, high=1.05 * ones, flags=((), ()))
        _, surfaces = complete(three(), {"time": flat, "power": flat})
        for setting, low, high in (
            ((8, 800.0, 700.0), 0.95, 1.05),
            ((8, 800.0, 1000.0), 0.7, 1.05),
            ((16, 1000.0, 700.0), 0.4, 1.05),
            ((8, 400.0, 1000.0), 0.7, 2.0),
        ):
            at = (2, *time.grid.index(HardwareConfig(*setting)))
            ends = [(of.low[at], of.high[at]) for of in surfaces.values() if of.low is not None]  # type: ignore[index]
            assert ends == [pytest.approx((low, high)), pytest.approx((0.95, 1.05))], setting


class TestExchanges:
    def named(self, *names: str) -> Profiles:
        return replace(three(), kernels=names)

    def test_no_clock_changes_their_time_with_counters_or_without(self) -> None:
        profiles = self.named("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "gemm", "ncclKernel_Send")
        times = MODEL.predict(profiles)["time"]
        assert (times.values[[0, 2]] == 1).all()
        assert (times.values[1] == MODEL.predict(three())["time"].values[1]).all()
        assert times.flags[0] == times.flags[2] == (AS_KEPT,)
        assert AS_KEPT not in times.flags[1]

    def test_no_flag_says_that_a_kept_time_is_the_mean(self) -> None:
        """The last two have no counters; of the first of them power alone is the others' mean."""
        two = self.named("gemm", "ncclKernel_Send", "axpy")
        profiles = replace(two, counters=np.where([[True], [False], [False]], two.counters, np.nan))
        flags = MODEL.predict(profiles).flags
        assert flags[1] == (AS_KEPT, POWER_AS_THE_MEAN)
        assert flags[2] == (AS_THE_MEAN,)

    def test_they_are_no_part_of_the_mean(self) -> None:
        """Nor of its power and interval: by hand, of the compute kernel alone, 60 W of it."""
        profiles = self.named("gemm", "ncclKernel_Send", "axpy")
        predictions = MODEL.predict(profiles)
        assert predictions["time"].values[:, *SLOW] == pytest.approx([2.0, 1.0, 2.0], rel=1e-9)
        assert predictions.power_w is not None
        expected = 60 * 34.48 / 65.84
        assert predictions.power_w[2, *SLOW] == pytest.approx(expected, rel=1e-9)
        power = predictions["power"]
        values = np.ones((2, *power.grid.shape)) * np.array([1.0, 9.0])[:, None, None, None]
        of_two = replace(power, values=values, low=0.9 * values, high=1.1 * values, flags=((), ()))
        _, surfaces = complete(profiles, {"time": of_two, "power": of_two})
        at = (2, *SLOW)
        ends = surfaces["power"].low, surfaces["power"].high
        assert [of[at] for of in ends if of is not None] == pytest.approx([0.9, 1.1])

    def test_they_are_the_mean_where_no_other_kernel_is_profiled(self) -> None:
        """Of 6 ms that follow the clock and 4 ms that do not, by their counters."""
        times = MODEL.predict(self.named("ncclKernel_Send", "ncclKernel_Recv", "axpy"))["time"]
        assert times.values[:, *SLOW] == pytest.approx([1.0, 1.0, 1.6], rel=1e-9)

    def test_the_interval_by_hand(self) -> None:
        """From base 8, 800, 700: the CUs alone 800 / 400, the memory alone 700 / 1000."""
        time = MODEL.predict(three())["time"]
        some = replace(time, low=0.9 * time.values, high=1.1 * time.values)
        kept = with_exchanges_kept(self.named("gemm", "ncclKernel_Send", "axpy"), some)
        assert kept.low is not None
        assert kept.high is not None
        for setting, low, high in (
            ((8, 800.0, 700.0), 1.0, 1.0),
            ((8, 400.0, 700.0), 1.0, 2.0),
            ((8, 400.0, 1000.0), 0.7, 2.0),
        ):
            at = (1, *time.grid.index(HardwareConfig(*setting)))
            assert (kept.low[at], kept.high[at]) == pytest.approx((low, high)), setting
        assert some.low is not None
        assert (kept.low[[0, 2]] == some.low[[0, 2]]).all()

    def test_their_power_is_that_of_the_times_kept(self) -> None:
        """A lower clock takes no work away: they draw more than a kernel of like counters."""
        clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
        profiles = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=clocks)
        watts = {"power_w": np.full(2, 300.0), "metadata": {"power_kind": "board"}}
        found = []
        for name in ("ncclDevKernel_AllReduce", "gemm"):
            named = replace(profiles, kernels=("triad", name), **watts)
            predictions = model_for(shipped_model(named)[1], named).predict(named)
            assert predictions.power_w is not None
            slower = predictions.grid.index(HardwareConfig(132, 1200.0, 2619.0))
            found.append(predictions.power_w[1, *slower])
        assert 1.2 * found[1] < found[0] < 300

    def test_a_measured_time_tells_more(self) -> None:
        profiles = self.named("gemm", "ncclKernel_Send", "ncclKernel_Recv")
        at = HardwareConfig(8, 400.0, 700.0)
        point = MeasuredPoint(at, np.array([4.0, 6.0, np.nan]), None)
        time = MODEL.predict(three())["time"]
        kept = with_exchanges_kept(replace(profiles, points=(point,)), time)
        assert (kept.values[:2] == time.values[:2]).all()
        assert (kept.values[2] == 1).all()

    @pytest.mark.parametrize(
        ("name", "is_exchange"),
        [
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", True),
            ("_Z31ncclDevKernel_SendRecvP19ncclDevKernelArgs", True),
            ("void vllm::cross_device_reduce_1stage<half, 8>(vllm::RankData *)", True),
            ("void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 2>(Params)", True),
            ("multimem_all_reduce_kernel", True),
            ("allreduce_prototype_twoshot", True),
            ("void flashinfer::allreduce_fusion_kernel_oneshot_lamport<half, 8>(Params)", True),
            ("RcclKernelScalarBroadcast(DeviceControl_t*, void*, int)", True),
            ("mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*)", True),
            ("void nvshmemi_reduce_kernel<float, (rdxn_ops)1>(int, float *)", True),
            ("my_nccl_test", False),
            ("pack_nccl_buffer_kernel", False),
        ],
    )
    def test_names(self, name: str, is_exchange: bool) -> None:
        """As NCCL, RCCL, MSCCL++, NVSHMEM, vLLM, TensorRT-LLM and torch give them."""
        found = exchanging(self.named("gemm", name, "axpy"))
        assert found.tolist() == [False, is_exchange, False]

    def test_a_sampled_run_is_none_whatever_its_name(self) -> None:
        run = replace(self.named("ncclKernel", "b", "c"), metadata={"profile_kind": "sampled"})
        assert not exchanging(run).any()


class TestOfTheRun:
    def test_a_kernel_like_the_mean_changes_no_advice_of_the_lowest_clock(self) -> None:
        with_it = advise(MODEL, three(), "clock").whole_run
        without = advise(MODEL, three().select([0, 1]), "clock").whole_run
        assert with_it.best.config == without.best.config
        assert with_it.best.slowdown_percent == pytest.approx(without.best.slowdown_percent)


class TestMemoryClock:
    """6 and 4 ms in counted kernels, whose energy is least at another memory clock, 1000 MHz."""

    LEFT = "the memory clock is left as it is: 33.3 % of the run's time is in kernels without"

    def test_is_left_where_kernels_without_counters_may_need_it(self) -> None:
        """By hand: 5 ms of 15."""
        assert advise(MODEL, three().select([0, 1])).whole_run.best.config.memory_mhz == 1000
        advice = advise(MODEL, three())
        assert any(str(warning).startswith(self.LEFT) for warning in advice.warnings)
        all_of_it = [advice.whole_run, *advice.kernels]
        offered = [point.config for one in all_of_it for point in (one.best, *one.front)]
        assert {config.memory_mhz for config in offered} == {700}

    def test_kernels_that_exchange_data_are_none_of_these(self) -> None:
        """Their time is kept at every clock, whatever the others do."""
        names = ("gemm", "axpy", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
        advice = advise(MODEL, replace(three(), kernels=names))
        assert advice.whole_run.best.config.memory_mhz == 1000
        assert not any("memory clock" in warning.text for warning in advice.warnings)

    def test_changes_where_such_kernels_hardly_count(self) -> None:
        """By hand: 0.1 ms of 10.1, 0.99 %; 0.11 ms of 10.11 are 1.09 %."""
        for launches, changes in ((0.1, True), (0.11, False)):
            profiles = replace(three(), launches=np.array([3.0, 1.0, launches]))
            best = advise(MODEL, profiles).whole_run.best.config
            assert (best.memory_mhz != 700) is changes

    def test_the_quickest_of_a_kernel_that_is_too_slow_is_at_it_too(self) -> None:
        """By hand: the kernel bound by bandwidth stays at 4 ms, and may take 4 x 10 / 15."""
        advice = advise(MODEL, three(), "time", Limits(max_time_ms=10.0))
        assert TOO_SLOW in advice.kernels[1].flags
        assert {kernel.best.config.memory_mhz for kernel in advice.kernels} == {700}


class TestLittleCover:
    """6 and 4 ms in counted kernels, and a millisecond in 'unknown', as often as said."""

    @staticmethod
    def run(unknown: float) -> Profiles:
        return replace(three(), launches=np.array([3.0, 1.0, unknown]))

    def test_is_refused_with_what_to_profile(self) -> None:
        """By hand: 91 ms of 101; of 90 and 10 ms they take nine tenths and no more."""
        with refused(
            r"^90.1 % of the run's time is in kernels without counters, .*: 'unknown' \(90 %\); or "
        ):
            advise(MODEL, self.run(91))
        advise(MODEL, self.run(90))
        advise(MODEL, self.run(91).select([0, 1]))

    def test_exchanges_between_gpus_do_not_count(self) -> None:
        """By hand: 37 ms of 41 beside 6 ms of exchanges, which have counters."""
        names = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "bandwidth0", "unknown")
        with refused(r"^78.7 % of the run's time is in kernels without counters"):
            advise(MODEL, replace(self.run(37), kernels=names))
        advise(MODEL, self.run(37))


class TestTimesAlone:
    def no_counters(self) -> Profiles:
        profiles = three()
        return replace(profiles, counters=np.full(profiles.counters.shape, np.nan))

    def test_are_refused_with_what_to_profile(self) -> None:
        with refused(
            r"no kernel has counters, .* of the kernels that take most time: 'compute0' \(40 %\), "
            r"'unknown' \(33 %\), 'bandwidth0' \(27 %\)$"
        ):
            MODEL.predict(self.no_counters())

    def test_are_enough_for_a_predictor_that_needs_no_counters(self) -> None:
        table: Measurements = frugal.measurements()
        predictors = {"time": MeanSurface(quantity="time").fit(table, MID)}
        model = replace(MODEL, predictors=predictors)
        assert model.predict(self.no_counters())["time"].flags == ((), (), ())


def test_a_large_table_in_parts_is_as_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prediction_table.write_csv(MODEL, three(), None, tmp_path / "at-once.csv")
    monkeypatch.setattr(prediction_table, "PART", MODEL.grid.size)
    prediction_table.write_csv(MODEL, three(), None, tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "at-once.csv").read_text()
