"""The tool that compares predictions from one ncu profile with another's sweeps."""

import csv
from pathlib import Path

import numpy as np
import one_profile
import pytest
from synthetic.profiled import profiles

from mlscale import HardwareConfig


def test_a_launch_that_takes_longer_than_ncu_says_waits_for_the_host() -> None:
    kernel = {(1470.0, 9501.0): (6.0, 90.0), (1890.0, 9501.0): (5.0, 100.0)}
    assert one_profile.is_of_gpu(kernel, 4.5)
    assert not one_profile.is_of_gpu(kernel, 2.0)


def test_ratios_are_of_the_base_and_none_under_the_power_limit() -> None:
    """By hand: an RTX 3060's limit is 170 W."""
    base = HardwareConfig(28, 1470.0, 7501.0)
    made = profiles({}, [2.0], base, "rtx3060", kernels=("mm.k",), power_w=np.array([100.0]))
    measured = {"mm.k": {(1470.0, 7501.0): (2.0, 100.0), (1800.0, 7501.0): (1.7, 169.0)}}
    assert np.isnan(one_profile.ratios(measured, made, (1800.0, 7501.0))).all()
    measured["mm.k"][1050.0, 7501.0] = (2.8, 60.0)
    own = one_profile.ratios(measured, made, (1050.0, 7501.0))
    assert own.ravel() == pytest.approx([1.4, 0.6])


def test_a_table_has_times_by_clocks_and_metrics_once(tmp_path: Path) -> None:
    names = [one_profile.column_of(m) for m in (*one_profile.METRICS, *one_profile.LAUNCH)]
    names.append(one_profile.column_of(one_profile.DURATION))
    head = (
        "workload,kernel,is_auto_baseline,effective_core_clock,effective_mem_clock,"
        "time_per_launch_mean_ms,avg_power_mean_W," + ",".join(names)
    )
    tail = ",".join(["50"] * len(names))
    rows = [f"mm,k,1,,,9,9,{tail}", f"mm,k,0,1050,9501,2.8,60,{tail}"]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    path.write_text(path.read_text().replace("mm,k,1,", "mm,k,1," + "9" * 200_000, 1))
    limit = csv.field_size_limit()  # 131 072 characters by default
    measured, metrics = one_profile.read_table(path)
    assert csv.field_size_limit() == limit
    assert measured == {"mm.k": {(1050.0, 9501.0): (2.8, 60.0)}}
    assert set(metrics["mm.k"].values()) == {"50"}
