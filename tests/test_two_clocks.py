"""The tool that compares predictions from two readings with sweeps of other people's GPUs."""

from pathlib import Path

import numpy as np
import pytest
import two_clocks

KERNELS = """workload,kernel,is_auto_baseline,effective_core_clock,effective_mem_clock,\
time_per_launch_mean_ms,avg_power_mean_W
mm,k,1,,,1.0,300
mm,k,0,1500,9501,1.2,169
mm,k,0,1200,9501,1.4,120
mm,k,0,600,9501,2.4,80
mm,k,0,600,5001,2.5,60
"""


def test_of_a_table_the_capped_rows_and_other_memory_clocks_are_left_out(tmp_path: Path) -> None:
    """By hand: an RTX 3060's limit is 170 W, so that 169 W are near it."""
    path = tmp_path / "kernels.csv"
    path.write_text(KERNELS)
    [(clocks, times, watts, memory_mhz)] = two_clocks.read_kernels(path, "rtx3060")
    assert (clocks.tolist(), times.tolist(), watts.tolist()) == ([600, 1200], [2.4, 1.4], [80, 120])
    assert memory_mhz == 9501


def test_a_table_of_ones_own_has_a_workload_by_kernel_and_memory_clock(tmp_path: Path) -> None:
    """By hand: two kernels, one at two memory clocks; 500 MHz is below 0.4 of 1500."""
    path = tmp_path / "own.csv"
    path.write_text(
        "kernel,engine_mhz,memory_mhz,time_ms,power_w\n"
        "a,1500,7001,1,100\na,750,7001,2,60\na,500,7001,3,50\na,1500,14001,0.9,120\nb,1500,7001,4,90\n"
    )
    sweeps = two_clocks.sweeps_of(path, "rtx5090")
    assert [(clocks.tolist(), memory) for clocks, _, _, memory in sweeps] == [
        ([750, 1500], 7001),
        ([1500], 14001),
        ([1500], 7001),
    ]
    assert sweeps[0][1].tolist() == [2, 1]
    assert sweeps[0][2].tolist() == [60, 100]


def test_a_table_of_kernels_is_known_by_its_columns(tmp_path: Path) -> None:
    (tmp_path / "kernels.csv").write_text(KERNELS)
    [(clocks, *_)] = two_clocks.sweeps_of(tmp_path / "kernels.csv", "rtx3060")
    assert clocks.tolist() == [600, 1200]


def test_the_second_reading_is_at_two_thirds_or_just_below() -> None:
    assert two_clocks.second_of(np.array([500.0, 900.0, 1000.0, 1100.0, 1500.0])) == 2
    assert two_clocks.second_of(np.array([1400.0, 1500.0])) == 0


def test_a_power_law_is_a_straight_line() -> None:
    clocks = np.array([500.0, 1000.0, 1500.0])
    assert two_clocks.line(clocks, clocks**-0.7) == pytest.approx(clocks**-0.7)
