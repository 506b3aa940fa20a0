"""Exports of a real H100, in tests/h100: 2026-11-26, driver 580.159.04, ncu 2025.3.1, PyTorch 2.11.

What they say is held against what CUDA's events and NVML said of the same work outside any tool
(`datasets/h100-operations.csv`). gemm_bf16_8192-dcgmi.txt is NVML's GPM in dcgmi dmon's columns.
"""

import csv
import json
from pathlib import Path

import pytest
from command import Capture, succeed

from mlscale.data.datasets import path
from mlscale.data.table import Table
from mlscale.data.table_files import read_table

HERE = Path(__file__).parent.parent / "h100"


def measured(operation: str) -> dict[str, float]:
    """On all SMs, outside any tool."""
    with path("h100-operations.csv").open(encoding="utf-8") as file:
        [row] = [
            row
            for row in csv.DictReader(file)
            if (row["operation"], row["sm_count"]) == (operation, "132")
        ]
    return {name: float(value) for name, value in row.items() if name != "operation"}


@pytest.fixture
def imported(capsys: Capture, tmp_path: Path) -> object:
    """A function: the table that `mlscale import` makes of a file, on all SMs."""

    def of(name: str, *options: str) -> Table:
        succeed(capsys, "import", HERE / name, "-o", tmp_path / "table.csv", *options)
        return read_table(tmp_path / "table.csv")

    return of


@pytest.mark.parametrize(
    ("file", "operation", "off"),
    [("ncu-gemm.csv", "gemm_bf16_8192", 0.01), ("ncu-layernorm.csv", "layernorm", 0.12)],
)
def test_ncu_times_a_launch_as_events_do(
    imported: object, file: str, operation: str, off: float
) -> None:
    """Alone a launch of the layer norm is quicker than one behind another."""
    table = imported(file, "--base", "cu=132")  # type: ignore[operator]
    assert table.numbers["time_ms"] == pytest.approx([measured(operation)["time_ms"]], rel=off)
    assert table.numbers["memory_mhz"] == pytest.approx([2619], rel=0.001)
    assert [*table.text["device"]] == ["h100-sxm5"]


def test_a_log_of_nvidia_smi(imported: object) -> None:
    """Copies of 1 GB for 4 s; the log's power is within 6 % of NVML's, read between its samples."""
    table = imported("copy_1g-nvidia-smi.csv")  # type: ignore[operator]
    assert table.numbers["power_w"] == pytest.approx([measured("copy_1g")["power_w"]], rel=0.06)
    assert table.numbers["engine_mhz"] == [1980]
    assert table.numbers["time_ms"] == pytest.approx([4100], rel=0.01)


@pytest.mark.filterwarnings("ignore:.*engine_mhz wanders")
def test_shares_by_gpm(imported: object) -> None:
    """Of a matrix product on tensor cores: no other pipe is at work. The share: regression only."""
    table = imported("gemm_bf16_8192-dcgmi.txt", "--device", "h100-sxm5", "--interval", "0.1")  # type: ignore[operator]
    assert table.numbers["tensor_active"] == pytest.approx([0.797], abs=1e-3)
    assert table.numbers["fp32_active"] == pytest.approx([0], abs=1e-3)


@pytest.mark.parametrize("name", ["ncu-gemm.csv", "ncu-layernorm.csv"])
def test_advice(capsys: Capture, name: str) -> None:
    out, _ = succeed(capsys, "advise", HERE / name, "--max-slowdown", "5")
    assert out.startswith("  Set the engine clock to ")


def test_a_training_step(capsys: Capture) -> None:
    """ncu counted 4 kernels of the trace's 71 in its 45 s; the trace has all launches."""
    names = ["ncu-step.csv", "trace-step.json.gz"]
    asked = [*(HERE / name for name in names), "--base", "engine=1980", "--json"]
    run = json.loads(succeed(capsys, "advise", *asked)[0])["run"]
    assert (run["launches"], run["kernels"]) == (1302, 71)
