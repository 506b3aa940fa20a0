"""Damaged and doubtful exports: each is refused in one line, or read right; nothing is guessed."""

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic.exports import (
    NCU,
    long_page,
    long_rows,
    quoted,
    read,
    rocprof_v1,
    rocprofv3,
    wide_page,
)

from mlscale import InputError
from mlscale.profilers import import_exports
from mlscale.profilers.exports.text_lines import LONGEST_LINE

V1 = rocprof_v1({"SQ_WAVES": 10, "SQ_INSTS_VALU": 5}, times=[(0, 1000)])
V3 = rocprofv3({"SQ_WAVES": 10})


def with_metric(name: str, unit: str, value: str) -> str:
    return long_page(long_rows(metrics={**NCU, name: (unit, value)}))


def units_below(page: str) -> str:
    header, units, *launches = page.splitlines()
    return "\n".join([header, *launches, units])


TIME = "gpu__time_duration.sum"
CASES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "no table": ("hello\nworld\n", "holds no table .* begins with 'hello'"),
    "binary": (b"\x89PNG\r\n\x00\x00", "is not text"),
    "utf-16 without a mark": (long_page().encode("utf-16-le"), "is not text"),
    "cut off in a row": (long_page()[:-40], r"row 19: is not valid CSV|has 14 fields"),
    "header only": (wide_page([]), "has a header but no kernel launch"),
    "unit row missing": (wide_page(units=False), "row 2: the row of units is missing"),
    "unit row moved": (units_below(wide_page()), "row 2: the row of units is missing"),
    "unit unknown": (with_metric(TIME, "fortnight", "3"), "the unit 'fortnight' is not one"),
    "unit of another kind": (with_metric(TIME, "byte", "3"), "the unit 'byte' is not one"),
    "unit of a clock": (
        with_metric("sm__cycles_elapsed.avg.per_second", "byte", "3"),
        "the unit 'byte' is not one"),
    "unit of a share": (
        with_metric("lts__t_sector_hit_rate.pct", "inst", "3"), "the unit 'inst' is not one"),
    "unit left out": (with_metric("dram__bytes_read.sum", "", "3"), "the unit '' is not one"),
    "decimal comma": (with_metric(TIME, "us", "12,5"), "'12,5' has a decimal comma"),
    "dots for thousands of a sum": (
        with_metric("smsp__inst_executed.sum", "inst", "1.234"),
        "'1.234' is ambiguous",
    ),
    "dots for thousands": (with_metric(TIME, "ns", "1.234"), "'1.234' is ambiguous"),
    "comma in a percentage": (
        with_metric("lts__t_sector_hit_rate.pct", "%", "12,345"), "'12,345' is ambiguous"),
    "negative counter": (with_metric("dram__bytes_read.sum", "byte", "-3"), "'-3' is negative"),
    "no time": (rocprof_v1({"SQ_WAVES": 4}), "says no time of 'f.int, int.'"),
    "rounded timestamps": (V1.replace(",0,1000,", ",8.1E+14,8.1E+14,"), "by a spreadsheet"),
    "no waves": (V1.replace(",10,5,", ",0,5,"), "SQ_WAVES is 0"),
    "metric with two values": (
        long_page(long_rows() + long_rows(metrics={TIME: ("ns", "9")})), "has two values"),
    "launch comes again": (
        long_page(long_rows(0), long_rows(1), long_rows(0)), "launch 0 of process 77 comes again"),
    "one launch, two kernels": (
        long_page(long_rows(0), long_rows(0, kernel="other")),
        "launch 0 of process 77 comes again, here of 'other'"),
    "dispatch twice": (V1 + V1.splitlines()[1], "dispatch 0 is there twice"),
    "two clocks": (
        long_page(*(long_rows(i, metrics={**NCU, "SM Frequency": ("Mhz", mhz)})
                    for i, mhz in enumerate(("1000", "1200")))),
        "engine_mhz is 1000 in one launch and 1200 in another"),
    "clock against --base": (with_metric("SM Frequency", "Mhz", "1200"), "--base says 1000"),
    "SMs against --base": (with_metric("launch__sm_count", "SM", "80"), "says 80 CUs, --base"),
    "line too long": ("x" * (LONGEST_LINE + 2), "row 1: is longer than 4 MiB"),
    "long line in the table": (
        long_page() + '"' + "x" * (LONGEST_LINE + 2), "row 20: is longer than 4 MiB"),
    "field too long": (
        long_page(long_rows(kernel="k" * 300_000)), "row 3: is not valid CSV: field larger"),
    "field over two lines": (long_page().replace("app", "a\npp", 2), "row|valid CSV"),
    "size in words": (V1.replace(",640,", ",six,"), "row 2, column 'grd': 'six' is not a size"),
    "counter beyond all": (
        with_metric("dram__bytes_read.sum", "byte", "1e30"), "'1e30' is more than any counter"),
    "second row of units": (
        wide_page([{}]) + wide_page().splitlines()[1].replace("Kbyte", "byte") + "\n",
        "row 4, column 'gpu__time_duration.sum': 'ns' is not a number"),
    "size of nothing": (long_page(long_rows(grid="(0, 1, 1)")), "has a size of 0"),
    "no kernel name": (long_page(long_rows(kernel=" ")), "the kernel's name is empty"),
    "damaged kernel name": (
        long_page(long_rows(kernel="k\u00e4")).encode("latin-1"), "damaged text"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    text, message = CASES[case]
    with pytest.raises(InputError, match=message) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path))
    assert "\n" not in str(refused.value)


JOINS: dict[str, tuple[tuple[str, ...], str]] = {
    "passes with other launches": (
        (V1, rocprof_v1({"SQ_WAVES": 10}, 2, [(0, 9), (10, 19)])), "has 1 launch of .* has 2"),
    "passes with other kernels": ((V1, V1.replace("f(int, int)", "g(int)")), "has no 'f.int, int"),
    "passes with other waves": ((V3, rocprofv3({"SQ_WAVES": 20})), "SQ_WAVES is 10 in one pass"),
}  # fmt: skip


@pytest.mark.parametrize("case", JOINS)
def test_mismatched_files_are_refused(tmp_path: Path, case: str) -> None:
    texts, message = JOINS[case]
    with pytest.raises(InputError, match=message):
        read(tmp_path, *texts, device="mi300x")


def outcome(path: Path, tool: str | None = None) -> object:
    """The time column, or None where the file is refused in one line; anything else fails."""
    with warnings.catch_warnings(), contextlib.suppress(InputError):
        warnings.simplefilter("ignore")
        base = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 500.0}
        imported = import_exports([path], tool, device="made-gpu", base=base)
        for name, values in imported.table.numbers.items():
            assert not np.isinf(values).any(), name
        assert (imported.table.numbers["time_ms"] > 0).all()
        return imported
    return None


MADE = (long_page(), wide_page(), V1, V3)


def mutated(content: bytes, draw: Callable[[st.SearchStrategy[int]], int], junk: bytes) -> bytes:
    """Cut a stretch out and put junk in its place."""
    start = draw(st.integers(0, len(content)))
    return content[:start] + junk + content[start + draw(st.integers(0, 40)) :]


JUNK = st.one_of(
    st.sampled_from([b"", b",", b'"', b"\n", b"\r", b"\0", b"-", b"1e999", b"\xff\xfe", b"n/a"]),
    st.binary(max_size=8),
)
MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(data=st.data(), junk=JUNK)
@MANY
def test_mutated_made_files_are_a_table_or_one_line(
    tmp_path: Path, data: st.DataObject, junk: bytes
) -> None:
    path = tmp_path / "mutated.csv"
    path.write_bytes(mutated(data.draw(st.sampled_from(MADE)).encode(), data.draw, junk))
    outcome(path)


@given(data=st.data(), junk=JUNK)
@settings(MANY, max_examples=60)
def test_mutated_real_files_are_a_table_or_one_line(
    tmp_path: Path, data_folder: Path, data: st.DataObject, junk: bytes
) -> None:
    files = sorted(p for p in (data_folder / "profiler-exports").glob("*/*") if p.is_file())
    content = data.draw(st.sampled_from(files)).read_bytes()
    path = tmp_path / "mutated.csv"
    path.write_bytes(mutated(content, data.draw, junk))
    outcome(path)


@given(order=st.permutations(range(len(NCU))))
@settings(MANY, max_examples=20)
def test_the_order_of_rows_and_columns_changes_nothing(tmp_path: Path, order: list[int]) -> None:
    names = list(NCU)
    metrics = {names[i]: NCU[names[i]] for i in order}
    shuffled = read(tmp_path, long_page(long_rows(metrics=metrics)))
    plain = read(tmp_path, long_page())
    for name, values in plain.table.numbers.items():
        assert shuffled.table.numbers[name] == pytest.approx(values)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        import_exports([tmp_path])


def test_quoting_is_that_of_csv(tmp_path: Path) -> None:
    text = long_page(long_rows(kernel='k<""x"", int>'))
    assert read(tmp_path, text).table.text["kernel"] == ['k<"x", int>']
    assert quoted(["a"]) == '"a"\n'
