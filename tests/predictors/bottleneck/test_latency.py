"""What no unit explains waits: for DRAM or the core, by Little's law; intervals of one reading."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import ConfigGrid, HardwareConfig, Profiles
from mlscale.counters.kernel_use import KernelUse
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import Surfaces
from mlscale.papers.wang_chu import dram_latency_cycles
from mlscale.papers.wang_chu_inputs import load_gpu
from mlscale.predictors.bottleneck.curve import (
    DRAM_US,
    ENGINE_CYCLES,
    GpuPeaks,
    KernelLoad,
    KernelTraits,
    dram_share,
    latency_log_ratios,
    waiting_slowdown,
)
from mlscale.predictors.bottleneck.model import (
    FLUSHED_FLAG,
    SHORT_FLAG,
    holding_bounds,
    waiting_note,
    waits,
)

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (700.0, 1400.0))
BASE = GRID.config((1, 1, 1))


def use(**shares: float) -> KernelUse:
    """Two kernels: one of those shares, and one that half uses its memory."""
    names = KernelUse.__dataclass_fields__
    numbers = {name: np.array([shares.get(name, np.nan), np.nan]) for name in names}
    numbers["memory"][1], numbers["issue"][1] = 0.5, 0.1
    return KernelUse(**numbers)


def two_profiles() -> Profiles:
    profiles = made.measurements().profiles(made.measurements().grid.mid)
    size = {"counter_names": ("workgroup_size",), "counters": np.array([[256.0], [256.0]])}
    return replace(profiles.select([0, 1]), device="gtx980", **size)


def test_a_kernel_waits_that_uses_no_unit() -> None:
    assert waits(two_profiles(), use(memory=0.1, issue=0.2)).tolist() == [True, False]
    assert waits(two_profiles(), use(memory=0.1, issue=0.2, l2=0.4)).tolist() == [False, False]


def test_a_further_measured_time_tells() -> None:
    profiles = two_profiles()
    point = MeasuredPoint(profiles.base, np.array([1.0, np.nan]), None)
    known = replace(profiles, points=(point,))
    assert waits(known, use(memory=0.1, issue=0.2)).tolist() == [False, False]


def test_the_share_that_waits_for_dram_by_hand() -> None:
    """On a GTX 980 at 1000 and 3500 MHz, a tenth of 224 GB/s is 175 requests of 128 bytes a us.

    Each takes 0.277 us at the engine clock and 0.223 us in DRAM, so 87.5 of them are in flight.
    """
    profiles = replace(two_profiles(), base=HardwareConfig(16, 1000.0, 3500.0))

    def share(**launch: float) -> float:
        return float(dram_share(profiles, use(memory=0.1, **launch))[0])

    assert share(workgroups=50, waves_per_workgroup=4) == pytest.approx(0.4376, abs=1e-4)
    assert share(workgroups=50, waves_per_workgroup=1) == 1
    assert share(workgroups=1e6, waves_per_workgroup=8) == pytest.approx(87.5175 / 1024)
    assert share(occupancy=0.5) == pytest.approx(87.5175 / 512)
    assert share(occupancy=0.5, workgroups=64, waves_per_workgroup=2) == pytest.approx(
        87.5175 / 128
    )
    assert np.isnan(share())
    # Table II has no size of a workgroup, so that its number does not tell the waves.
    profiles = replace(profiles, counter_names=(), counters=np.empty((2, 0)))
    assert np.isnan(share(workgroups=50, waves_per_workgroup=1))
    assert share(occupancy=0.5, workgroups=50, waves_per_workgroup=1) == pytest.approx(
        87.5175 / 512
    )


def test_a_wave_of_amds_asks_for_twice_as_much_at_once() -> None:
    """On an MI300X at 1000 and 1300 MHz, a tenth of 5325 GB/s is 2080 requests of 256 bytes a us.

    Each takes 0.5001 us, so 1040 are in flight, of 304 x 32 waves at full occupancy.
    """
    base = HardwareConfig(304, 1000.0, 1300.0)
    profiles = replace(two_profiles(), device="mi300x", base=base)
    share = dram_share(profiles, use(memory=0.1, occupancy=0.25))[0]
    assert share == pytest.approx(2080 * 0.5001 / (0.25 * 304 * 32), rel=1e-6)


def test_the_access_is_that_of_the_paper() -> None:
    """At 1000 and 1000 MHz a cycle is a nanosecond: Eq. (4) of Wang and Chu, in cycles."""
    gpu = load_gpu("gtx980")
    cycles = dram_latency_cycles(1000, 1000, gpu.dram_latency_slope, gpu.dram_latency_offset)
    assert pytest.approx(float(cycles)) == 1e3 * (ENGINE_CYCLES / 1000 + DRAM_US)


def test_waiting_times_by_hand() -> None:
    """Half the engine clock doubles 0.277 of 0.5 us; half the memory clock adds a fourth of 0.223.

    The numbers are those of Wang and Chu (2018), Eq. (4), at 1000 MHz.
    """
    logs = latency_log_ratios(np.array([0.0, 1.0]), np.zeros(2), GRID, BASE)
    ratios = np.exp(logs).reshape(2, *GRID.shape)
    assert ratios[0, 1].tolist() == [[2, 2], pytest.approx([1, 1])]
    assert ratios[1, 1, :, 1].tolist() == pytest.approx([(2 * 277.32 + 222.78) / 500.1, 1])
    assert ratios[1, 1, 1, 0] == pytest.approx((277.32 + 1.5 * 222.78) / 500.1)


def test_a_queue_before_dram_by_hand() -> None:
    """At half load a request of M/D/1 waits half a service: 1.5 accesses, a third of it the queue.

    So a share of 0.4 is one of 0.6, and at half the memory clock the queue takes twice as long.
    """
    logs = latency_log_ratios(np.array([0.4]), np.array([0.5]), GRID, BASE)
    ratios = np.exp(logs).reshape(GRID.shape)
    access, at_half = 500.1, 277.32 + 1.5 * 222.78
    of_dram = (at_half / access + 0.5 * 2) / 1.5
    assert ratios[1, 1, 0] == pytest.approx(0.6 * of_dram + 0.4)


def slowdown(memory: float, busiest: float, share: float = 1.0) -> np.ndarray:
    """Of a kernel that waits for DRAM for that share, in engine cycles, at p = 5; GRID's clocks."""
    clocks = ConfigGrid((8,), GRID.engine_mhz, GRID.memory_mhz)
    numbers = use(memory=memory, issue=busiest)
    traits = KernelTraits(numbers, np.array([share, np.nan]))
    load = KernelLoad.from_traits(traits, GpuPeaks("gtx980", clocks, BASE, 1.0, 1.0), np.ones(1), 1)
    return np.exp(waiting_slowdown(np, load, np.array([5.0])))[0].reshape(2, 2)


def test_what_the_busiest_unit_explains_does_not_wait() -> None:
    """A unit that is always busy explains all; a use of 0.5 a 32nd, as much as nothing.

    At half the engine clock time in cycles is half of the time.
    """
    assert slowdown(0.0, 1.0) == pytest.approx(1, rel=0.02)
    idle = (2 * 277.32 + 222.78) / 500.1 / 2
    assert slowdown(0.0, 0.01)[0, 1] == pytest.approx(idle, rel=1e-2)
    assert idle < slowdown(0.0, 0.5)[0, 1] < 0.8
    assert slowdown(0.0, 0.8)[0, 1] > slowdown(0.0, 0.5)[0, 1]


def test_what_is_not_known_follows_the_engine_clock() -> None:
    """The waves, or the core's use."""
    assert slowdown(0.3, 0.1, np.nan) == pytest.approx(1)
    assert slowdown(0.3, np.nan) == pytest.approx(1, rel=0.02)


def test_intervals_reach_both_bounds_of_those_kernels_alone() -> None:
    ones = np.ones((2, *GRID.shape))
    surfaces = Surfaces(GRID, BASE, ones, ((), ()), 0.9 * ones, 1.1 * ones)
    wider = holding_bounds(surfaces, two_profiles(), use(memory=0.1, issue=0.2))
    assert wider.flags == ((waiting_note(),), ())
    assert wider.low is not None
    assert wider.high is not None
    assert wider.high[0, 0, 0, 0] == pytest.approx(4)
    assert wider.low[0, 0, 0, 0] == pytest.approx(0.9)
    assert np.array_equal(wider.high[1], surfaces.high[1])  # type: ignore[index]


def test_intervals_of_short_launches_reach_no_scaling() -> None:
    """The second kernel takes 10 us, and at half the clock twice as long, as is predicted."""
    twice = np.full((2, *GRID.shape), 2.0)
    surfaces = Surfaces(GRID, BASE, twice, ((), ()), 0.9 * twice, 1.1 * twice)
    short = replace(two_profiles(), time_ms=np.array([10.0, 0.010]))
    wider = holding_bounds(surfaces, short, use(memory=0.5, issue=0.2))
    assert wider.flags == ((), (SHORT_FLAG,))
    assert wider.low is not None
    assert (wider.low[1] == 1).all()
    assert (wider.low[0] == 1.8).all()
    point = MeasuredPoint(BASE, np.array([1.0, 0.015]), None)
    known = holding_bounds(surfaces, replace(short, points=(point,)), use(memory=0.5, issue=0.2))
    assert known.flags == ((), ())


@pytest.mark.parametrize(
    ("metadata", "time_ms", "is_flagged"),
    [
        ({"counter_tool": "ncu"}, 0.01, True),
        ({"counter_tool": "ncu"}, 0.1, False),
        ({"counter_tool": "ncu", "counter_caches": "warm"}, 0.01, False),
        ({"counter_tool": "nvprof"}, 0.01, False),
    ],
)
def test_a_launch_that_fits_in_the_cache(
    metadata: dict[str, str], time_ms: float, is_flagged: bool
) -> None:
    """At 1400 MHz a GTX 980 moves 90 GB/s at most: half of it is 0.4 MB in 10 us, of 2 MB of L2."""
    ones = np.ones((2, *GRID.shape))
    surfaces = Surfaces(GRID, BASE, ones, ((), ()), 0.9 * ones, 1.1 * ones)
    base = HardwareConfig(BASE.cu_count, BASE.engine_mhz, 1400.0)
    profiles = replace(
        two_profiles(), base=base, metadata=metadata, time_ms=np.array([10.0, time_ms])
    )
    wider = holding_bounds(surfaces, profiles, use(memory=0.9, issue=0.9))
    assert (FLUSHED_FLAG in wider.flags[1]) == is_flagged
    assert wider.high is not None
    assert wider.high[1, 1, 0, 1] == pytest.approx(2 if is_flagged else 1.1)
