"""Tables in blocks: Arrow's and the row by row one say the same, wherever blocks end."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic.exports import (
    BASE,
    NCU,
    V3_TRACE,
    long_page,
    long_rows,
    rocprof_v1,
    rocprofv3,
    wide_page,
)

from mlscale import InputError
from mlscale.profilers import ImportedTable, import_exports
from mlscale.profilers.exports import blocks, text_lines
from mlscale.profilers.exports.cells import ArrowCells, ListedCells
from mlscale.profilers.exports.reader import open_export
from mlscale.profilers.exports.values import parse_number, quick_number

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
TIMES = [(1000 * i, 1000 * i + 400 + i) for i in range(40)]
V1 = rocprof_v1({"SQ_WAVES": 10, "FETCH_SIZE": 5}, times=TIMES, launches=40)
PAGES = {
    "ncu details": long_page(
        *(long_rows(i, metrics={**NCU, "gpu__time_duration.sum": ("us", f"{i + 1}.25")})
          for i in range(30))
    ),
    "ncu raw": wide_page([{"gpu__time_duration.sum": f"{1000 + i:,}"} for i in range(30)]),
    "rocprof": V1,
    "rocprofv3": rocprofv3({"SQ_WAVES": 10, "FETCH_SIZE": 5}),
    "rocprofv3 trace": V3_TRACE,
}  # fmt: skip


def imported(path: Path, text: str) -> ImportedTable:
    path.write_text(text)
    return import_exports([path], device="made-gpu", base=BASE)


@pytest.fixture
def by_arrow(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[bool]]:
    """Small files are read by Arrow too, in blocks of so many characters; which blocks were."""
    read: list[bool] = []
    original = blocks._by_arrow

    def noted(*given: object) -> blocks.Block | None:
        block = original(*given)  # type: ignore[arg-type]
        read.append(block is not None)
        return block

    def set_up(size: int) -> list[bool]:
        monkeypatch.setattr(blocks, "LEAST_FOR_ARROW", 0)
        monkeypatch.setattr(text_lines, "BLOCK", size)
        monkeypatch.setattr(blocks, "_by_arrow", noted)
        return read

    return set_up


@pytest.mark.parametrize("size", [300, 2000, 1 << 20])
@pytest.mark.parametrize("page", PAGES)
def test_arrow_reads_what_csv_reads(
    tmp_path: Path, page: str, size: int, by_arrow: Callable[[int], list[bool]]
) -> None:
    """The same table, however many launches, and parts of one, are in a block."""
    expected = imported(tmp_path / "run.csv", PAGES[page])
    read = by_arrow(size)
    table = imported(tmp_path / "run.csv", PAGES[page])
    assert any(read)
    assert table.launches == expected.launches
    assert table.table.text == expected.table.text
    for name, values in expected.table.numbers.items():
        np.testing.assert_allclose(table.table.numbers[name], values, rtol=1e-12, err_msg=name)


DAMAGES = {
    "value": (
        '"5,000"',
        '"5,00"',
        "row {row}, column 'Metric Value', metric 'dram__.*': '5,00' has a",
    ),
    "quote": ('"5,000"', '"5,0"00"', "row {row}: is not valid CSV"),
    "field": ('"5,000"', '"5","000"', "row {row}: has 16 fields, the header has 15"),
    "number": ('"20","77"', '"2O","77"', "row {row}, column 'ID': '2O' is not a launch's number"),
    "cut off": ('"5,000"\n', '"5,000', "row {row}: is not valid CSV"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_error_in_a_late_block_names_its_row(
    tmp_path: Path, damage: str, by_arrow: Callable[[int], list[bool]]
) -> None:
    """The row is counted here by the ends of lines before the damage."""
    by_arrow(3000)
    before, after, message = DAMAGES[damage]
    text = PAGES["ncu details"]
    at = text.index('"20","77"')
    at = text.index(before, at)
    row = text.count("\n", 0, at) + 1
    with pytest.raises(InputError, match=message.format(row=row)):
        imported(tmp_path / "run.csv", text[:at] + after + text[at + len(before) :])


@pytest.mark.parametrize("odd", ["\n", "  \n", '"a ""quoted"" name"', ' "after a blank"'])
def test_what_is_not_plain_is_read_row_by_row(
    tmp_path: Path, odd: str, by_arrow: Callable[[int], list[bool]]
) -> None:
    read = by_arrow(1 << 20)
    line = '1,"f",64,64\n'
    text = "Index,KernelName,grd,wgr\n" + line.replace('"f"', odd if '"' in odd else '"f"')
    (tmp_path / "run.csv").write_text(text + (odd if odd.endswith("\n") else "") + line)
    with open_export(tmp_path / "run.csv") as export:
        [block] = blocks.blocks(export, [1])
    assert read == [False]
    assert block.cells[1].text(1) == "f"
    assert block.lines.tolist() == [2, 4 if odd.endswith("\n") else 3]


@pytest.mark.parametrize("at", [0, 61, 62, 63, 64, 65, 127, 128, 5000])
@pytest.mark.parametrize(
    ("line", "plain"),
    [('"a,b",""', True), ('"a,"b",c"', False), ('a",b,"c', False), ('",",d"', False)],
)
def test_quotes_that_balance_but_are_not_in_turn_are_not_plain(
    tmp_path: Path, at: int, line: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`at`: where in the text they stand; by hand, whether each that opens is then closed."""
    monkeypatch.setattr(blocks, "_AT_ONCE", 1024)
    (tmp_path / "run.csv").write_text("Index,KernelName,grd,wgr\n")
    with open_export(tmp_path / "run.csv") as export:
        text = np.frombuffer(("." * at + "\n" * bool(at) + line + "\n").encode(), np.uint8)
        assert blocks._is_plain(export, text) is plain


@pytest.mark.parametrize("at", [0, 7, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("odd", ["\n", " 2,3,4,5\n", "\t2,3,4,5\n", "2,3,4,5\n"])
@pytest.mark.parametrize("is_ncu", [False, True])
def test_a_line_that_begins_oddly_is_not_plain(
    tmp_path: Path, at: int, odd: str, is_ncu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`at`: where in the text it begins, near the end of a part of 1024 bytes too.

    A line without a quote at its beginning is odd where the tool quotes all, as ncu does.
    """
    monkeypatch.setattr(blocks, "_AT_ONCE", 1024)
    plain = '"1",2,3\n'
    above = '"' + "1" * (at - 7) + '",2,3\n' if at else ""
    ncu = next(line for line in long_page().splitlines() if line.startswith('"ID"'))
    header = ncu if is_ncu else "Index,KernelName,grd,wgr"
    (tmp_path / "run.csv").write_text(header + "\n")
    with open_export(tmp_path / "run.csv") as export:
        for line in (plain, odd):
            text = np.frombuffer((above + line + plain).encode(), np.uint8)
            expected = line == plain or (odd[0] == "2" and not is_ncu)
            assert blocks._is_plain(export, text) is expected


def test_a_garbled_name_is_refused_with_its_row(
    tmp_path: Path, by_arrow: Callable[[int], list[bool]]
) -> None:
    """Arrow alone would call the kernel 'a,b"'."""
    read = by_arrow(1 << 20)
    path = tmp_path / "run.csv"
    path.write_text('Index,KernelName,grd,wgr,obj\n1,"a,"b",64,64,x"\n')
    with pytest.raises(InputError, match="row 2: is not valid CSV"):
        import_exports([path], device="made-gpu", base=BASE)
    assert read == [False]


NUMBER = st.one_of(
    st.integers(0, 10**12).map(lambda value: f"{value:,}"),
    st.integers(0, 10**12).map(str),
    st.decimals(0, 10**9, places=2).map(lambda value: f"{value:,}"),
    st.text("0123456789,.", max_size=9),
    st.sampled_from(["", "n/a", "1e5", " 7", "-3", "12,34", "0,123", "1234,567", "1,234.5"]),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(NUMBER, min_size=1, max_size=6))
def test_numbers_of_arrow_are_those_of_python(texts: list[str]) -> None:
    """All that quick_number reads, and nothing that parse_number refuses or reads otherwise."""
    for text, value in zip(texts, ArrowCells(pa.array(texts)).numbers().tolist(), strict=True):
        assert (quick := quick_number(text)) is None or value == quick
        assert math.isnan(value) or value == parse_number(text, "")


@settings(max_examples=100)
@given(st.lists(st.text("0123456789 -", max_size=20), min_size=1, max_size=5))
def test_whole_numbers_of_arrow_are_those_of_python(texts: list[str]) -> None:
    ours, theirs = (cells.wholes() for cells in (ArrowCells(pa.array(texts)), ListedCells(texts)))
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert ours.tolist() == theirs.tolist()


def test_a_launch_of_more_rows_than_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_LARGEST_LAUNCH", 1000)
    monkeypatch.setattr(text_lines, "BLOCK", 300)
    with pytest.raises(InputError, match="row 3: this launch has more than 0 MiB of rows"):
        imported(tmp_path / "run.csv", long_page())
