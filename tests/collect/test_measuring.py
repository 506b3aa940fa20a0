"""Samples from a played-back GPU, against the law its recording was made by."""

import pytest
import replayed
from replayed import Faults, ReplayGpu, made_power_w, made_time_ms

from mlscale.collect import measuring
from mlscale.collect.device import Reading
from mlscale.collect.entries import Entry
from mlscale.collect.measuring import MODES, KernelSample, mean_power_w, measure
from mlscale.collect.suite import select

ENTRY: Entry = select(["few_threads_1"])[0]


def sample(
    gpu: ReplayGpu, window_s: float = 2.0, cu_count: int = 8, **options: object
) -> KernelSample:
    launch = gpu.partition(cu_count).prepare(ENTRY, ENTRY.case())
    return measure(launch, gpu.sensors, window_s, **options)  # type: ignore[arg-type]


class TestTime:
    def test_is_that_of_one_launch(self) -> None:
        found = sample(ReplayGpu())
        assert found.time_ms == pytest.approx(made_time_ms(ENTRY.name, 8, replayed.ENGINE))
        assert found.time_spread_percent == pytest.approx(0, abs=1e-9)
        assert found.engine_mhz == replayed.ENGINE
        assert found.memory_mhz == replayed.MEMORY

    def test_without_power_is_the_same_and_takes_less(self) -> None:
        with_power, without = ReplayGpu(), ReplayGpu()
        assert sample(without, 0.0).time_ms == pytest.approx(sample(with_power).time_ms)
        assert without.now < with_power.now / 3

    def test_spread_is_the_quartiles_distance_over_the_median(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Batches of 1, 2, 3, 4, 5 times the time in turn: quartiles 2 and 4, median 3: 67 %."""
        elapsed = replayed.ReplayBatch.elapsed_ms
        turns = iter(range(10**6))

        def in_turn(self: replayed.ReplayBatch) -> float:
            return elapsed(self) * (1 + next(turns) % 5)

        monkeypatch.setattr(replayed.ReplayBatch, "elapsed_ms", in_turn)
        assert sample(ReplayGpu(), 5.0).time_spread_percent == pytest.approx(200 / 3, rel=0.02)

    def test_batches_grow_as_the_clocks_rise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A kernel that takes a tenth of its first time soon still fills batches of 20 ms.

        The first three batches come from idle clocks; each later one, but those queued when the
        clocks rose, holds 10 to 20 ms, so that three outlast the 10 ms between readings.
        """
        submit = replayed.ReplayLaunch.submit
        lengths: list[float] = []

        def cold_at_first(self: replayed.ReplayLaunch, count: int) -> replayed.ReplayBatch:
            batch = submit(self, count)
            if len(lengths) < 3:
                self.gpu.busy_until += 9 * batch.elapsed / 1e3
                batch.elapsed, batch.end = 10 * batch.elapsed, self.gpu.busy_until
            lengths.append(batch.elapsed)
            return batch

        monkeypatch.setattr(replayed.ReplayLaunch, "submit", cold_at_first)
        gpu = ReplayGpu()
        assert sample(gpu).time_ms == pytest.approx(made_time_ms(ENTRY.name, 8, gpu.engine))
        assert min(lengths[:8]) < 10
        assert min(lengths[12:]) > 10

    def test_while_the_sensor_settles_does_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The kernel is half as fast for 0.4 s of 0.5 s settling; 0.3 s of measuring follow."""
        submit = replayed.ReplayLaunch.submit

        def slow_at_first(self: replayed.ReplayLaunch, count: int) -> replayed.ReplayBatch:
            return submit(self, 2 * count if self.gpu.now < 0.4 else count)

        monkeypatch.setattr(replayed.ReplayLaunch, "submit", slow_at_first)
        gpu = ReplayGpu()
        found = sample(gpu, 0.3)
        assert found.time_ms == pytest.approx(made_time_ms(ENTRY.name, 8, gpu.engine))
        assert found.time_spread_percent == pytest.approx(0, abs=1e-9)


class TestPower:
    @pytest.mark.parametrize("mode", ["energy", "instant", "average", "usage"])
    def test_is_that_of_the_running_kernel(self, mode: str) -> None:
        found = sample(ReplayGpu(mode=mode))
        assert found.power_w == pytest.approx(made_power_w(8, replayed.ENGINE), rel=0.01)
        assert found.power_s == pytest.approx(2.0, abs=0.1)

    @pytest.mark.parametrize("mode", ["energy", "instant", "average"])
    def test_of_too_short_a_window_is_not_reported(self, mode: str) -> None:
        found = sample(ReplayGpu(mode=mode), 0.4)
        assert found.power_w is None
        assert found.time_ms > 0

    def test_that_is_not_sensed_is_missing(self) -> None:
        assert sample(ReplayGpu(mode="none")).power_w is None

    def test_energy_counts_from_change_to_change(self) -> None:
        """100 W in steps of 0.1 s, read every 0.07 s: 100 W to within a reading, no step's bias."""
        readings = [
            Reading(t, None, None, 0, None, 100.0 * (t // 0.1) * 0.1, None)
            for t in (0.07 * k for k in range(31))
        ]
        # 2.1 s; the last minus the first reading alone would say 20/21 of it at the worst.
        assert mean_power_w(readings, MODES["energy"]) == pytest.approx(100.0, rel=0.035)

    def test_energy_that_hardly_changes_is_not_reported(self) -> None:
        readings = [
            Reading(0.1 * k, None, None, 0, None, 100.0 * (k // 10), None) for k in range(30)
        ]
        assert mean_power_w(readings, MODES["energy"]) is None


class TestThrottling:
    def test_is_measured_again_after_a_rest(self) -> None:
        found = sample(ReplayGpu(Faults(throttle={ENTRY.name: 2})))
        assert (found.throttled, found.attempts) == (False, 3)

    def test_that_lasts_is_flagged(self) -> None:
        found = sample(ReplayGpu(Faults(throttle={ENTRY.name: 99}, throttle_bits=0x44)))
        assert (found.throttled, found.attempts, found.reasons) == (True, 3, 0x44)
        assert measuring.throttling(found.reasons) == "power cap, hardware thermal slowdown"

    def test_locked_or_idle_clocks_are_none(self) -> None:
        """0x1 idle, 0x2 clocks as set, 0x100 display: NVML's bits that lower nothing."""
        found = sample(ReplayGpu(Faults(throttle={ENTRY.name: 99}, throttle_bits=0x103)))
        assert (found.throttled, found.attempts) == (False, 1)

    def test_a_clock_away_from_the_locked_one_is_flagged(self) -> None:
        assert sample(ReplayGpu(), locked=(1200, None)).throttled
        assert not sample(ReplayGpu(), locked=(1600, 3000)).throttled
