"""What must hold for each tool alike: encodings, missing cells, doubled columns, bad durations.

Expected numbers are those of the plain made file, which the tests of each tool check by hand.
"""

from pathlib import Path

import numpy as np
import pytest
from synthetic.exports import (
    NCU,
    V3_TRACE,
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
    "rocprof": (
        (rocprof_v1(AMD, times=[(0, 1000)]),), "mi210", ",100,10,5,0,1000,", "ReadBandwidth"),
    "rocprofv3": (
        (rocprofv3(AMD), V3_TRACE), "mi210", '"FETCH_SIZE",10.000000,', "ReadBandwidth"),
}  # fmt: skip
NUMBERS = {
    "ncu details": "20", "ncu raw": "20", "rocprof": "10",
    "rocprofv3": "10.000000",
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
@pytest.mark.parametrize("cell", ["n/a", "nan", "inf", "-inf", "<OVERFLOW>", "", "NULL"])
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
        ("rocprof", "SQ_WAVES"), ("rocprofv3", "Counter_Value"),
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
        ((rocprofv3(AMD), V3_TRACE.replace("5000,9000", "9000,9000")), "mi210"),
        ((rocprofv3(AMD), V3_TRACE.replace("5000,9000", "9000,5000")), "mi210"),
        ((rocprofv3(AMD), V3_TRACE.replace("5000,9000", "5000,n/a")), "mi210"),
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
    expected = {"made-gpu": 0.01}.get(device, 0.001 if len(texts) == 1 else 0.002)
    assert row(imported)["time_ms"] == pytest.approx(expected)


def test_kernels_of_which_nothing_is_left_are_named(tmp_path: Path) -> None:
    """A time of 3.2 us is 0.00 in ms; the other kernel has a launch of each kind, and stays."""
    times = (("0.00", "fill(int *)"), ("0.00", "gemm()"), ("1.10", "gemm()"))
    rows = [
        long_rows(number, kernel, {**NCU, "gpu__time_duration.sum": ("ms", time)})
        for number, (time, kernel) in enumerate(times)
    ]
    message = (
        "2 rows without a positive time were left out, and with them all of 1 kernel "
        r"\('fill\(int \*\)'\); where a short time is rounded to 0, export it in nanoseconds"
    )
    with pytest.warns(DataWarning, match=message):
        assert read(tmp_path, long_page(*rows)).table.text["kernel"] == ["gemm()"]


TIMED = {
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.sum",
    "sm__maximum_warps_per_active_cycle_pct",
}
NCU_ZEROS = {name: value if name in TIMED else (value[0], "0") for name, value in NCU.items()}


@pytest.mark.parametrize(
    ("texts", "device"),
    [
        ((long_page(long_rows(metrics=NCU_ZEROS)),), "made-gpu"),
        ((wide_page([{name: value for name, (_, value) in NCU_ZEROS.items()}]),), "made-gpu"),
        ((rocprof_v1(dict.fromkeys(AMD, 0), times=[(0, 1000)]),), "mi210"),
        ((rocprofv3(dict.fromkeys(AMD, 0)),), "mi210"),
    ],
    ids=RUNS,
)
def test_all_counters_zero_is_a_failure_of_the_profiler(
    tmp_path: Path, texts: tuple[str, ...], device: str
) -> None:
    """Also where sizes, cycles, occupancy and waves, which need no counting, are there."""
    with pytest.raises(InputError, match=r"(SQ_WAVES|every counter) is 0, which is a failure"):
        read(tmp_path, *texts, device=device)


@pytest.mark.parametrize("tool", RUNS)
@pytest.mark.parametrize("fields", ["one more", "far fewer"])
def test_a_ragged_row_is_refused(tmp_path: Path, tool: str, fields: str) -> None:
    """The last row of the counters' file; a details page may end rows early, but not so early."""
    texts, device, *_ = RUNS[tool]
    *rows, last = texts[0].rstrip("\n").split("\n")
    ragged = last + ",7" if fields == "one more" else ",".join(last.split(",")[:4])
    text = "\n".join([*rows, ragged]) + "\n"
    line = text.count("\n")
    with pytest.raises(InputError, match=rf"export0\.csv: row {line}: has \d+ fields, the header"):
        read(tmp_path, text, *texts[1:], device=device)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        (rocprofv3(AMD, 3000, 1000), "mi210"),
        (wide_page([{"gpu__time_duration.sum": "0"}]), "made-gpu"),
    ],
)
def test_a_file_of_launches_without_a_positive_time(tmp_path: Path, text: str, device: str) -> None:
    message = r"has a header but no kernel launch with a positive time \(\d+ without\)"
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, device=device)


@pytest.mark.parametrize(
    "said",
    [
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters",
        "Error: Library libfoo not found.",
    ],
)
def test_a_preamble_without_a_table_is_quoted(tmp_path: Path, said: str) -> None:
    text = f"==PROF== Connected to process 9 (./app)\nresult 7\n{said}\ndone, all\n"
    with pytest.raises(
        InputError, match="no kernels were profiled; the profiler says: "
    ) as refused:
        read(tmp_path, text)
    assert str(refused.value).endswith(said)


def test_a_time_that_no_kernel_takes_is_refused(tmp_path: Path) -> None:
    text = f"Time (%),Total Time (ns),Instances,Name\n100,{10**25},1,k\n"
    with pytest.raises(InputError, match=r"takes .* ms; it must be from 1e-09 to 1e\+15"):
        read(tmp_path, text, device="p100")
