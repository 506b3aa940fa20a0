"""What mlscale collect writes goes on: counters to the features, models, and errors by CU count.

The recordings are made (tests/replayed.py), and so are the counters of the stand-in for ncu.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, succeed
from replayed import DEVICE, ENGINE, ReplayGpu, made_time_ms, use

from mlscale import read
from mlscale.counters.kernel_use import kernel_use
from mlscale.profilers.mapping import obtainable_features

__all__ = ["use"]
H200 = replace(DEVICE, name="NVIDIA H200", cu_count=132, engine_mhz=1980.0, memory_mhz=3201.0)
COUNTS = (8, 40, 72, 104, 132)
KERNELS = "copy_4m,triad_4m,scan_4m,few_threads_1,few_threads_8,chase_16k,reduction_4m,nbody*"
# Every metric that is asked for, of every kernel named after the CU count; the same rules for all.
NCU = """
import csv, sys
given = sys.argv[1:]
names = given[given.index("--metrics") + 1].split(",")
after = given.index("mlscale.collect.launch_once")
cu_count, kernels = int(given[after + 1]), given[after + 2:]
fixed = {
    "gpu__time_duration.sum": 50_000, "launch__grid_size": 1024, "launch__block_size": 256,
    "sm__cycles_elapsed.avg.per_second": 1.6e9, "dram__cycles_elapsed.avg.per_second": 3e9,
    "sm__cycles_elapsed.sum": 80_000 * cu_count, "sm__maximum_warps_per_active_cycle_pct": 100,
    "lts__t_sector_hit_rate.pct": 50, "dram__bytes_read.sum": 4e6, "dram__bytes_write.sum": 2e6,
}
unit = {"time": "ns", "second": "hz", "bytes": "byte", "pct": "%", "cycles": "cycle"}
head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
        "Block Size", "Grid Size", "Device", "CC"]
units = [next((u for part, u in unit.items() if part in name and "launch" not in name), "inst")
         for name in names]
units = ["hz" if "per_second" in name else one for name, one in zip(names, units)]
with open(given[given.index("--log-file") + 1], "w", newline="") as file:
    rows = csv.writer(file, quoting=csv.QUOTE_ALL)
    rows.writerow([*head, *names])
    rows.writerow([""] * len(head) + units)
    for number, kernel in enumerate(kernels):
        row = [number, 1, "python", "h", kernel, 1, 7, "(256, 1, 1)", "(1024, 1, 1)", 0, "9.0"]
        rows.writerow([*row, *(fixed.get(name, 1000 * (number + 1)) for name in names)])
"""


@pytest.fixture
def table(capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection on a made H200, with counters."""
    ncu = tmp_path / "ncu"
    ncu.write_text(f"#!{sys.executable}{NCU}")
    ncu.chmod(0o755)
    monkeypatch.setattr("mlscale.collect.counters.NsightCompute.find", lambda: str(ncu))
    use(ReplayGpu(info=H200, offered=COUNTS))
    out, err = succeed(capsys, "collect", "--kernels", KERNELS, "-o", tmp_path / "out")
    assert err == ""
    assert "device table" not in out
    return tmp_path / "out" / "measurements.csv"


def test_counters_are_those_that_the_predictors_read(table: Path) -> None:
    """The fake's 4 MB read and 2 MB written in 50 us are 80 and 40 GB/s; what is asked is there."""
    data = read(table)
    assert data.device == "h200"
    known = dict(zip(data.counter_names, data.counters[0, 0, 0, 0], strict=True))
    assert known["ReadBandwidth"] == pytest.approx(80e9)
    assert known["WriteBandwidth"] == pytest.approx(40e9)
    assert set(obtainable_features("ncu")) <= set(known)
    use = kernel_use(data.profiles(data.grid.parse("cu=132")))
    # 120 GB/s of the H200's 6144 bits x 2 transfers x 3000 MHz (4608 GB/s)
    assert use.memory == pytest.approx(120 / 4608)


def test_bottleneck_is_what_is_trained(table: Path, capsys: Capture, tmp_path: Path) -> None:
    """The device is in the device table, and the DRAM traffic is among the counters."""
    model = tmp_path / "m.mlscale"
    out, err = succeed(capsys, "train", table, "--base", "cu=132", "-o", model)
    assert err == ""
    assert "'bottleneck' for time and power, 10 kernels of 7 applications, 5 config" in out


def test_errors_by_cu_count(table: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of the recordings is work over CUs, and 10 us: what is trained finds it.

    No scaling is off by 1 - t(132) / t(cu), by hand from that law; Wu et al. come much nearer.
    """
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    out, _ = succeed(
        capsys, "study", "errors", table, "--base", "cu=132", "--seeds", "1", "--clusters", "2",
        "--quantity", "time", "--predictor", "wu", "--json",
    )  # fmt: skip
    document = json.loads(out)
    mape = {row["predictor"]: row["mape"] for row in document["rows"]}
    at_base = {k: made_time_ms(k, 132, ENGINE) for k in read(table).kernels}
    off = [
        1 - base / made_time_ms(kernel, cu_count, ENGINE)
        for kernel, base in at_base.items()
        for cu_count in COUNTS[:-1]
    ]
    assert mape["no-scaling"] == pytest.approx(100 * np.mean(off), rel=1e-5)
    assert mape["wu"] < 6
