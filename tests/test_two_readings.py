"""The script that compares predictions from two readings with sweeps of other people's GPUs."""

from pathlib import Path

import numpy as np
import pytest
import two_readings


def test_a_table_has_a_workload_by_kernel_and_memory_clock(tmp_path: Path) -> None:
    """By hand: two kernels, one at two memory clocks; 500 MHz is below 0.4 of 1500."""
    path = tmp_path / "own.csv"
    path.write_text(
        "kernel,engine_mhz,memory_mhz,time_ms,power_w\n"
        "a,1500,7001,1,100\na,750,7001,2,60\na,500,7001,3,50\na,1500,14001,0.9,120\nb,1500,7001,4,90\n"
    )
    sweeps = two_readings.read_sweeps(path)
    assert [(clocks.tolist(), memory) for clocks, _, _, memory in sweeps] == [
        ([750, 1500], 7001),
        ([1500], 14001),
        ([1500], 7001),
    ]
    assert sweeps[0][1].tolist() == [2, 1]
    assert sweeps[0][2].tolist() == [60, 100]


def test_the_second_reading_is_at_two_thirds_or_just_below() -> None:
    assert two_readings.second_of(np.array([500.0, 900.0, 1000.0, 1100.0, 1500.0])) == 2
    assert two_readings.second_of(np.array([1400.0, 1500.0])) == 0


def test_a_power_law_is_a_straight_line() -> None:
    clocks = np.array([500.0, 1000.0, 1500.0])
    assert two_readings.line(clocks, clocks**-0.7) == pytest.approx(clocks**-0.7)
