"""The made HD 7970 data set: its size, its laws, and the four shapes of Wu et al., Fig. 1."""

import numpy as np
import pytest
from make_hd7970 import (
    GRID,
    TIME_NOISE,
    TYPICAL,
    SyntheticKernels,
    make_hd7970,
    occupancy,
    run_kernels,
)

from mlscale.counters.features import TABLE_2
from mlscale.data.measurements import Measurements

HIGH = (7, 7, 6)


@pytest.fixture(scope="module")
def made() -> Measurements:
    return make_hd7970(seed=0)


def kernel(**numbers: float) -> SyntheticKernels:
    """One kernel of which only these numbers matter: all others cost nothing."""
    idle = {
        **dict.fromkeys(TYPICAL, 0.0),
        "active_lanes": 1,
        "lines": 4,
        "parallelism": 1,
        "workgroups": 100_000,
        "vgprs": 24,
        "waves_per_workgroup": 4,
        "dram_efficiency": 1,
    }
    return {name: np.array([value]) for name, value in {**idle, **numbers}.items()}


def test_is_the_papers_grid_and_size(made: Measurements) -> None:
    # Wu et al., section IV: 8 CU counts, 8 engine and 7 memory clocks, 108 kernels of 49
    # applications; Table II has 22 features.
    assert made.grid.shape == (8, 8, 7)
    assert (made.grid.cu_count[0], made.grid.cu_count[-1]) == (4, 32)
    assert (made.grid.engine_mhz[0], made.grid.engine_mhz[-1]) == (300, 1000)
    assert (made.grid.memory_mhz[0], made.grid.memory_mhz[-1]) == (475, 1375)
    assert len(set(made.kernels)) == 108
    assert len(set(made.applications)) == 49
    assert made.counter_names == TABLE_2
    assert len(TABLE_2) == 22
    assert made.metadata["origin"] == "made"
    assert made.metadata["power_kind"] == "dynamic"
    assert all(name.startswith("made.") for name in made.applications)


def test_every_number_is_possible(made: Measurements) -> None:
    assert (made.time_ms > 0).all()
    assert (made.quantity("power") > 0).all()
    # The board's limit is 250 W; dynamic power must stay below it.
    assert made.quantity("power").max() < 250
    at = dict(zip(TABLE_2, np.moveaxis(made.counters, -1, 0), strict=True))
    assert np.nanmin(made.counters) >= 0
    for share in ("VALUInsts", "VALUUtilization", "CacheHit", "Occupancy"):
        assert at[share].max() <= 102  # percent, and noise of half a percent
    instructions = sum(at[name] for name in TABLE_2[:6])
    np.testing.assert_allclose(instructions, 100, rtol=1e-9)
    # 264 GB/s of DRAM bandwidth (section IV) are never exceeded.
    moved = at["ReadBandwidth"] + at["WriteBandwidth"]
    assert moved.max() < 264e9 * 1.02


def test_the_same_seed_gives_the_same_numbers(made: Measurements) -> None:
    again, other = make_hd7970(seed=0), make_hd7970(seed=1)
    np.testing.assert_array_equal(again.time_ms, made.time_ms)
    np.testing.assert_array_equal(again.counters, made.counters)
    assert not np.array_equal(other.time_ms, made.time_ms)


class TestShapesOfFigure1:
    """What Fig. 1 shows, as ratios between corners of the grid; bounds leave room for noise."""

    @staticmethod
    def speed_ups(made: Measurements, shape: str) -> list[float]:
        """Time with each axis in turn at its lowest, over time with all at their highest."""
        time = made.time_ms[made.kernels.index(f"made.fig1.{shape}")]
        lowest = [(0, 7, 6), (7, 0, 6), (7, 7, 0)]
        return [float(time[corner] / time[HIGH]) for corner in lowest]

    def test_by_the_ratios_of_the_axes(self, made: Measurements) -> None:
        """32 / 4 CUs, 1000 / 300 MHz and 1375 / 475 MHz; with four CUs latency begins to show."""
        assert self.speed_ups(made, "compute") == pytest.approx([8, 10 / 3, 1], rel=0.05)
        *core, memory = self.speed_ups(made, "bandwidth")
        assert core == pytest.approx([1, 1], abs=0.2)
        assert memory == pytest.approx(1375 / 475, rel=0.06)
        balanced = self.speed_ups(made, "balanced")
        assert min(balanced) > 1.3
        assert balanced[0] < 6

    def test_contended_is_fastest_with_some_of_the_cus(self, made: Measurements) -> None:
        time = made.time_ms[made.kernels.index("made.fig1.contended"), :, -1, -1]
        fastest = int(time.argmin())
        assert 0 < fastest < 7
        assert time[-1] > 1.5 * time[fastest]


class TestMachine:
    def test_vector_alu_issues_one_wave_instruction_per_cu_and_cycle(self) -> None:
        # By hand: 100 000 workgroups of 4 waves of 1000 instructions on 32 CUs at 1 GHz; the
        # busiest CU has 3125 workgroups: 3125 x 4 x 1000 cycles = 12.5 ms.
        run = run_kernels(kernel(valu=1000), GRID)
        assert run.seconds[(0, *HIGH)] == pytest.approx(12.5e-3, rel=1e-3)
        assert run.counters["VALUBusy"][(0, *HIGH)] == pytest.approx(100, rel=1e-3)
        assert run.counters["V_IPC"][(0, *HIGH)] == pytest.approx(1, rel=1e-3)

    def test_dram_moves_192_bytes_a_memory_cycle(self) -> None:
        # By hand: 400 000 waves x 10 writes x 4 lines x 64 B = 1.024 GB; at 475 MHz the peak is
        # 91.2 GB/s: 11.23 ms. The p-norm of bounds adds a little.
        run = run_kernels(kernel(vector_write=10), GRID)
        assert run.seconds[0, 7, 7, 0] == pytest.approx(1.024e9 / 91.2e9, rel=0.02)
        assert run.counters["MemTime"][0, 7, 7, 0] == pytest.approx(1, rel=0.02)

    def test_few_workgroups_do_not_use_more_cus(self) -> None:
        # By hand: with 4 CUs one has two workgroups, 8000 cycles to issue beside a wave's own
        # chain of 4000; with 8 CUs and more every CU has one at most, 4000 beside 4000. The
        # bounds meet in a p-norm with p = 5.
        time = run_kernels(kernel(valu=1000, workgroups=6), GRID).seconds[0, :, -1, -1]
        assert time[0] == pytest.approx((8**5 + 4**5) ** 0.2 * 1e-6, rel=1e-3)
        assert time[1] == pytest.approx((4**5 + 4**5) ** 0.2 * 1e-6, rel=1e-3)
        np.testing.assert_allclose(time[1:], time[1], rtol=1e-9)

    @pytest.mark.parametrize(
        ("vgprs", "lds_bytes", "waves_per_workgroup", "waves"),
        [
            (24, 0, 4, 40),  # 256 / 24 = 10 waves on each of 4 SIMDs
            (84, 0, 4, 12),  # 3 on each
            (24, 16_384, 4, 16),  # 4 workgroups of 4 waves in 64 KB
            (24, 0, 1, 16),  # 16 workgroups a CU
        ],
    )
    def test_occupancy_by_hand(
        self, vgprs: int, lds_bytes: int, waves_per_workgroup: int, waves: int
    ) -> None:
        assert occupancy(*map(np.array, (vgprs, lds_bytes, waves_per_workgroup))) == waves

    def test_nothing_moved_is_missing_and_not_zero(self) -> None:
        run = run_kernels(kernel(valu=10), GRID)
        assert np.isnan(run.counters["FetchPerLoadByte"]).all()

    def test_noise_is_as_stated(self, made: Measurements) -> None:
        # A compute-bound kernel's times at one CU count and engine clock differ by noise alone.
        time = made.time_ms[made.kernels.index("made.fig1.compute")]
        spread = np.log(time).std(axis=2, ddof=1)
        assert np.sqrt((spread**2).mean()) == pytest.approx(TIME_NOISE, rel=0.15)
