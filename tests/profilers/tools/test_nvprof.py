"""nvprof's files, made excerpts; the expected values are worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
from synthetic.exports import BASE, NVPROF_METRICS, NVPROF_TRACE, read, row

from mlscale import DataWarning
from mlscale.profilers.tools.nvprof import in_file_units, parse_metric


def test_metrics_and_trace(tmp_path: Path) -> None:
    """VALU 500 of 1000 thread instructions; KB/s are binary: 976.5625 KB/s = 1e6 B/s."""
    imported = read(tmp_path, NVPROF_METRICS, NVPROF_TRACE, device=None, base={**BASE})
    values = row(imported)
    expected = {
        "time_ms": 0.05, "VALUInsts": 50, "VALUUtilization": 80, "V_IPC": 2 * 0.5 * 0.5,
        "Occupancy": 25, "ReadBandwidth": 1e6, "MemUnitBusy": 30, "NumWorkGroups": 20,
        "workgroups": 20, "warps": 40, "sm_efficiency": 0.5, "inst_executed": 1000,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert imported.table.text["device"] == ["p100"]
    assert imported.table.text["application"] == ["app"]
    assert imported.features["VALUInsts"].status == "nearest"
    assert imported.features["ReadBandwidth"].status == "exact"


@pytest.mark.parametrize(
    ("unit", "value", "in_file"),
    [("%", 50, 0.5), ("B/s", 3 * 2**30, 3), ("B", 3 * 2**30, 3 * 2**30), ("", 50, 50)],
)
def test_columns_have_the_units_of_the_public_tables(
    unit: str, value: float, in_file: float
) -> None:
    """Shares, and GB/s of 2^30 bytes, as models were trained with."""
    assert in_file_units(np.array([float(value)]), unit).tolist() == [in_file]


def test_bank_conflicts_from_metrics_alone(tmp_path: Path) -> None:
    """150 replays; 1000 instructions at 2 a cycle, active half the time: 1000 cycles."""
    shared = {
        "shared_load_transactions": 300, "shared_store_transactions": 100,
        "inst_executed_shared_loads": 200, "inst_executed_shared_stores": 50,
    }  # fmt: skip
    more = "".join(
        f'"Tesla P100-PCIE-16GB (0)","k(int, float*)",2,"{name}","of {name}",0,0,{value}\n'
        for name, value in shared.items()
    )
    imported = read(tmp_path, NVPROF_METRICS + more, NVPROF_TRACE, device=None)
    assert row(imported)["LDSBankConflict"] == pytest.approx(15)
    assert imported.features["LDSBankConflict"].status == "nearest"


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("678.5MB/s", (678.5 * 2**20, "B/s")), ("1.5GB/s", (1.5 * 2**30, "B/s")),
        ("98.5%", (98.5, "%")), ("Mid (5)", (5, "level")), ("7714", (7714, "")),
    ],
)  # fmt: skip
def test_glued_units(cell: str, value: tuple[float, str]) -> None:
    assert parse_metric(cell, "here") == value


def test_summary_has_a_unit_for_each_column(tmp_path: Path) -> None:
    """Avg in us beside Max in ms; the second table is not read."""
    text = (
        '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,us,ms,\n'
        '"GPU activities",68.7,268.35,6000,44.725000,43.106000,1.791976,"k(int)"\n'
        '"GPU activities",4.8,19.1,2000,9.551000,8.992000,0.014209,"[CUDA memcpy DtoD]"\n\n'
        '==9== Unified Memory profiling result:\n"Device","Count"\nTotal: 49\n'
    )
    with pytest.warns(DataWarning, match="times without counters"):
        imported = read(tmp_path, text)
    assert imported.table.numbers["time_ms"] == pytest.approx([0.044725])
    assert imported.launches == 6000


@pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
@pytest.mark.parametrize("start", ["1e308", "", "n/a"])
def test_a_start_that_cannot_be_is_not_known(tmp_path: Path, start: str) -> None:
    """The other launch alone tells when the GPU waits: never."""
    lines = NVPROF_TRACE.splitlines()
    row = max(n for n, line in enumerate(lines) if "k(int" in line)
    lines[row] = ",".join([start, *lines[row].split(",")[1:]])
    whole, damaged = (
        read(folder, NVPROF_METRICS, text, device="p100").table
        for folder, text in ((tmp_path, NVPROF_TRACE), (tmp_path, "\n".join(lines)))
    )
    assert whole.metadata["idle_ms"] == pytest.approx(0.96)  # 2.04 to 3 ms
    assert damaged.metadata["idle_ms"] == 0
    assert damaged.numbers["time_ms"].tolist() == whole.numbers["time_ms"].tolist()
