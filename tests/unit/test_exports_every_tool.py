"""What must hold for each tool alike: encodings, missing cells, doubled columns, bad durations.

Expected numbers are those of the plain made file, which test_exports_readers.py checks by hand.
"""

from pathlib import Path

import numpy as np
import pytest
from exported import (
    NCU,
    NVPROF_METRICS,
    NVPROF_TRACE,
    V3_TRACE,
    codexl,
    long_page,
    long_rows,
    read,
    rocprof_v1,
    rocprofv3,
    row,
    wide_page,
)

from mlscale import DataWarning, InputError

AMD = {
    "SQ_WAVES": 10, "SQ_INSTS_VALU": 500, "SQ_INSTS_SALU": 200, "SQ_INSTS_SMEM": 50,
    "SQ_INSTS_VMEM_RD": 100, "SQ_INSTS_VMEM_WR": 50, "SQ_INSTS_LDS": 100, "FETCH_SIZE": 10,
}  # fmt: skip
# The files of a run, the device, and a counter's cell with the feature that rests on it.
RUNS: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "ncu details": ((long_page(),), "made-gpu", '"Kbyte","20"', "ReadBandwidth"),
    "ncu raw": ((wide_page(),), "made-gpu", '"20","5,000"', "ReadBandwidth"),
    "nvprof": (
        (NVPROF_METRICS, NVPROF_TRACE), "p100", ",976.562500KB/s\n", "ReadBandwidth"),
    "rocprof": (
        (rocprof_v1(AMD, times=[(0, 1000)]),), "mi210", ",100,10,5,0,1000,", "ReadBandwidth"),
    "rocprofv3": (
        (rocprofv3(AMD), V3_TRACE), "mi210", '"FETCH_SIZE",10.000000,', "ReadBandwidth"),
    "codexl": ((codexl(),), "hd7970", " 4.00, ", "ReadBandwidth"),
}  # fmt: skip
NUMBERS = {
    "ncu details": "20", "ncu raw": "20", "nvprof": "976.562500KB/s", "rocprof": "10",
    "rocprofv3": "10.000000", "codexl": "4.00",
}  # fmt: skip


def with_cell(tool: str, number: str) -> tuple[str, ...]:
    """The run with another cell in the counter's place."""
    texts, _, cell, _ = RUNS[tool]
    assert cell in texts[0]
    head, _, tail = cell.rpartition(NUMBERS[tool])
    if tool == "rocprof":  # ',100,10,5,': the cell is the first 10
        head, tail = ",100,", ",5,0,1000,"
    return (texts[0].replace(cell, f"{head}{number}{tail}"), *texts[1:])


@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_change_nothing(tmp_path: Path, tool: str, encoding: str, end: str) -> None:
    texts, device, *_ = RUNS[tool]
    plain = read(tmp_path, *texts, device=device)
    encoded = [text.replace("\n", end).encode(encoding) for text in texts]
    other = read(tmp_path, *encoded, device=device)
    assert other.table.text == plain.table.text
    assert other.table.numbers.keys() == plain.table.numbers.keys()
    for name, values in plain.table.numbers.items():
        np.testing.assert_array_equal(other.table.numbers[name], values)


@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize("cell", ["n/a", "nan", "inf", "<OVERFLOW>", ""])
def test_a_missing_counter_is_missing(tmp_path: Path, tool: str, cell: str) -> None:
    _, device, _, feature = RUNS[tool]
    plain = read(tmp_path, *RUNS[tool][0], device=device)
    assert row(plain)[feature] > 0
    imported = read(tmp_path, *with_cell(tool, cell), device=device)
    assert imported.features[feature].status == "missing"
    assert feature not in imported.table.numbers
    assert imported.kernels == plain.kernels


@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize("cell", ["-3", "12;5", "many", "0x10", "1,2,3"])
def test_a_wrong_counter_is_refused(tmp_path: Path, tool: str, cell: str) -> None:
    quoted = f'"{cell}"' if "," in cell and "ncu" not in tool else cell
    with pytest.raises(InputError, match=r"export\d\.csv: row \d+"):
        read(tmp_path, *with_cell(tool, quoted), device=RUNS[tool][1])


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("ncu details", "Metric Value"), ("ncu raw", "gpu__time_duration.sum"),
        ("nvprof", "Avg"), ("rocprof", "SQ_WAVES"), ("rocprofv3", "Counter_Value"),
        ("codexl", "VALUInsts"),
    ],
)  # fmt: skip
def test_a_doubled_column_is_refused(tmp_path: Path, tool: str, name: str) -> None:
    texts, device, *_ = RUNS[tool]
    mark = f'"{name}"' if f'"{name}"' in texts[0] else name
    assert texts[0].count(mark) >= 1
    doubled = texts[0].replace(mark, f"{mark},{mark}", 1)
    with pytest.raises(InputError, match=f"column '{name}' is there twice; which one is meant"):
        read(tmp_path, doubled, *texts[1:], device=device)


@pytest.mark.parametrize(
    ("texts", "device"),
    [
        ((rocprof_v1(AMD, 2, [(0, 1000), (5000, 5000)]),), "mi210"),
        ((rocprof_v1(AMD, 2, [(0, 1000), (5000, 4000)]),), "mi210"),
        ((NVPROF_METRICS, NVPROF_TRACE.replace("3,60,", "3,0,")), "p100"),
        ((NVPROF_METRICS, NVPROF_TRACE.replace("3,60,", "3,-60,")), "p100"),
        ((rocprofv3(AMD), V3_TRACE.replace("5000,9000", "9000,9000")), "mi210"),
        ((rocprofv3(AMD), V3_TRACE.replace("5000,9000", "9000,5000")), "mi210"),
        ((long_page(
            long_rows(0),
            long_rows(1, metrics={**NCU, "gpu__time_duration.sum": ("ns", "0")})),), "made-gpu"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*were timed:mlscale.DataWarning")
def test_a_launch_without_a_positive_time_is_left_out_and_told(
    tmp_path: Path, texts: tuple[str, ...], device: str
) -> None:
    """Of two launches one is left; its time is that of the other."""
    with pytest.warns(DataWarning, match="1 .*without a positive time"):
        imported = read(tmp_path, *texts, device=device)
    expected = {"p100": 0.04, "made-gpu": 0.01}.get(device, 0.001 if len(texts) == 1 else 0.002)
    assert row(imported)["time_ms"] == pytest.approx(expected)


def test_two_memory_clocks_in_one_file(tmp_path: Path) -> None:
    pages = [
        long_rows(i, metrics={**NCU, "DRAM Frequency": ("Mhz", mhz)})
        for i, mhz in enumerate(("500", "600"))
    ]
    with pytest.raises(InputError, match="memory_mhz is 500 in one launch and 600 in another"):
        read(tmp_path, long_page(*pages))


def test_all_counters_zero_of_one_kernel(tmp_path: Path) -> None:
    zeros = dict.fromkeys(AMD, 0)
    with pytest.raises(InputError, match=r"SQ_WAVES is 0|every counter is 0"):
        read(tmp_path, rocprofv3(zeros), device="mi300x")
