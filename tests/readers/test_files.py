"""Files opened by their content, blocks of columns, and cells as numbers; made by hand."""

import bz2
import gzip
import lzma
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.tidy import refused

from mlscale import InputError
from mlscale.files import hold, read_bytes
from mlscale.readers import columns, files, registry
from mlscale.readers.columns import Block, labels, number, product
from mlscale.readers.files import Sheet, open_file
from mlscale.readers.kernel_tuner import read_document
from mlscale.readers.launches import Facts
from mlscale.readers.registry import Kind
from mlscale.readers.torch_trace import read as read_events

ROWS = b'{"a": 1}' * 99
KINDS = {"id": str, "name": str, "value": float}
READERS = (
    Kind("made", "made", "a made table", "id, name, value"),
    Kind("made", "made", "made JSON", json="events"),
    Kind("made", "made", "a made database", tables="made_"),
    Kind("", "made", "a made summary", "name, mean", instead="is not read"),
)


@pytest.fixture(autouse=True)
def _made_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "READERS", READERS)


def opened(folder: Path, content: str | bytes) -> Sheet:
    path = folder / "made.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    sheet = open_file(path)
    assert sheet is not None
    return sheet


def values(sheet: Sheet, **how: Any) -> list[list[float]]:
    """The numbers of each block."""
    return [block.numbers("value").tolist() for block in sheet.blocks(KINDS, **how)]


def rows(count: int) -> str:
    """Rows with a blank behind a name; three rows have one id each."""
    return "".join(f'{i // 3},"name, {i % 2} ",{i}\n' for i in range(count))


def read_trace(path: Path) -> object:
    """The launches of a trace of PyTorch."""
    kind = Kind("torch_trace", "torch", "PyTorch's profiler", json="traceEvents")
    return [*read_events(Sheet(hold(path), kind), Facts(), ())]


class TestOpen:
    def test_a_table_by_its_columns_wherever_they_stand(self, tmp_path: Path) -> None:
        sheet = opened(tmp_path, "Processing, as ever\n\nvalue, other ,name,id\n5,x,k,0\n")
        assert (sheet.header, sheet.header_line) == (("value", "other", "name", "id"), 3)
        [block] = sheet.blocks({"name": str, "value": str, "lacking": str})
        assert [(name, block.cells(name)) for name in ("name", "value")] == [
            ("name", ["k"]), ("value", ["5"]),
        ]  # fmt: skip
        assert block.where(0, "name") == f"{tmp_path}/made.csv: row 4, column 'name'"
        with refused("row 3 is a header of a made table, but lacks more"):
            sheet.require("name", "more")

    @pytest.mark.parametrize(
        ("content", "encoding"),
        [("id,name,value\r\n0,k\u00e4,5\r\n", "utf-8-sig"), ("id,name,value\n0,k\u00e4,5", "utf-8"),
         ("id,name,value\r\n0,k\u00e4,5\r\n", "utf-16"), ("id,name,value\r0,k\u00e4,5\r", "utf-8")],
    )  # fmt: skip
    def test_encodings_and_ends_of_lines(self, tmp_path: Path, content: str, encoding: str) -> None:
        [block] = opened(tmp_path, content.encode(encoding)).blocks(KINDS)
        assert [block.cells(name) for name in KINDS] == [["0"], ["k\u00e4"], ["5"]]

    def test_json_by_a_name_in_it_and_sqlite_by_its_tables(self, tmp_path: Path) -> None:
        for content in (b' {"events": []}', gzip.compress(b'{"events": []}', mtime=0)):
            assert opened(tmp_path, content).kind is READERS[1]
        path = tmp_path / "made.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE made_rows (id INTEGER)")
        assert open_file(path) == Sheet(hold(path), READERS[2])

    @pytest.mark.parametrize("content", [b"nothing, that\nis known\n", b'{"other": 1}', b"[7] a\n"])
    def test_of_no_kind(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "other.txt"
        path.write_bytes(content)
        assert open_file(path) is None

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (
                b"x\n==ERROR== no permission\n",
                "no kernel launch; the profiler says: ==ERROR== no p",
            ),
            (b"name,mean\nk,5\n", "row 1: a made summary is not read"),
            (b"id,name\0", "is not text; export the profiler's report as CSV"),
            (b"PK\x03\x04", "is compressed; unpack it first"),
            (gzip.compress(b"SQLite format 3\0", mtime=0), "is compressed; unpack it first"),
            *(
                (packed[:-9], "cannot be unpacked")
                for packed in (
                    gzip.compress(ROWS, mtime=0),
                    bz2.compress(ROWS),
                    lzma.compress(ROWS),
                )
            ),
            (b"\xfd7zXZ\0" + b"x" * 99, "cannot be unpacked"),
            (b"SQLite format 3\0" + b"x" * 100, "cannot be read as SQLite"),
            (b"," * (files.BLOCK + 1), "row 1: is longer than 4 MiB"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: bytes, message: str) -> None:
        with refused(message):
            opened(tmp_path, content)

    @pytest.mark.parametrize("read", [read_bytes, open_file, read_trace, read_document])
    def test_what_unpacks_to_too_much(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
    ) -> None:
        """In place of 2 GiB and 200 times the size a KiB and as much."""
        monkeypatch.setattr("mlscale.files.MOST_UNPACKED", 1 << 10)
        monkeypatch.setattr("mlscale.files.MOST_TIMES", 1)
        path = tmp_path / "bomb.json.gz"
        path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (1 << 20), mtime=0))
        with refused(r"bomb.json.gz: unpacks to more than \S+ GiB, the"):
            read(path)

    def test_no_file(self, tmp_path: Path) -> None:
        with refused("cannot be read: No such file"):
            open_file(tmp_path / "none.csv")
        with refused("is not a regular file"):
            open_file(tmp_path)


@pytest.fixture(params=["arrow", "csv"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tables are read by Arrow, and by the csv module."""
    if request.param == "arrow":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(files, "LEAST_FOR_ARROW", 0 if request.param == "arrow" else 1 << 40)
    return str(request.param)


@pytest.mark.usefixtures("way")
class TestBlocks:
    @pytest.mark.parametrize("size", [40, 64, 1 << 20])
    def test_blocks_of_any_size_have_all_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
    ) -> None:
        """Rows of one id stand in one block where they are asked for together."""
        monkeypatch.setattr(files, "BLOCK", size)
        sheet = opened(tmp_path, f"id,name,value\n{rows(50)}")
        assert list(chain(*values(sheet))) == list(range(50))
        assert list(chain(*values(sheet, skipped=2))) == list(range(2, 50))
        together = values(sheet, together=("id", "lacking"))
        assert list(chain(*together)) == list(range(50))
        assert all(block[0] % 3 == 0 for block in together)
        lines = np.concatenate([block.lines for block in sheet.blocks(KINDS, together=["id"])])
        assert lines.tolist() == list(range(2, 52))

    def test_bytes_are_counted(self, tmp_path: Path) -> None:
        sheet = opened(tmp_path, f"id,name,value\n{rows(50)}")
        counted: list[int] = []
        sheet.progress = counted.append
        assert values(sheet)
        assert sum(counted) == sheet.path.stat().st_size

    def test_short_rows_where_a_reader_has_them(self, tmp_path: Path) -> None:
        text = "id,name,value,rule,type\n0,k,5,\n1,k,6,\n"
        assert values(opened(tmp_path, text), least=3) == [[5, 6]]
        longer = opened(tmp_path, f"{text}2,k,7,r,t\n3,k,8\n")
        assert values(longer, least=3) == [[5, 6, 7, 8]]
        [block] = longer.blocks({"rule": str}, least=3)
        assert block.cells("rule") == ["", "", "r", ""]

    def test_a_blank_line_ends_a_table_where_a_reader_says_so(self, tmp_path: Path) -> None:
        text = "id,name,value\n0,k,5\n\nother\n"
        assert values(opened(tmp_path, text), ends_at_blank=True) == [[5]]
        assert values(opened(tmp_path, text.replace("other", "1,k,6"))) == [[5, 6]]

    def test_numbers(self, tmp_path: Path) -> None:
        """Thousands with commas, what stands for none, and text behind a number by a parser."""
        text = 'id,name,value\n0,k,"1,234"\n1,5 W,"12,345,678.5"\n2,7,\'5\'\n3,n/a, 6\n'
        [block] = opened(tmp_path, text).blocks({**KINDS, "id": float})
        assert block.numbers("value").tolist() == [1234, 12_345_678.5, 5, 6]
        assert (block.numbers("id").dtype, block.cells("name")[2]) == (np.float64, "7")
        rest = block.take(np.array([1, 2]))
        assert rest.numbers("name", lambda cell: cell.removesuffix(" W")).tolist() == [5, 7]
        assert np.isnan(block.take(slice(3, None)).numbers("name")).all()

    @pytest.mark.parametrize(
        ("cell", "message"),
        [
            ("x", "row 3, column 'value': 'x' is not a number"),
            ("-3", "row 3, column 'value': '-3' cannot be a counter's value"),
            ("1e300", "row 3, column 'value': '1e300' cannot be a counter's value"),
            ('"1234,567"', "row 3, column 'value': .*decimal comma. export with LC_ALL=C"),
            ("5,6", "row 3: has 4 fields, the header has 3; is the file cut off"),
            ('"5', "row 3: is not valid CSV: .*; is it cut off"),
        ],
    )
    def test_cells_that_are_refused(self, tmp_path: Path, cell: str, message: str) -> None:
        text = f'id,name,value\n0,k,"1,000"\n1,k,{cell}\n2,k,{cell}\n'
        with refused(message):
            values(opened(tmp_path, text))


def test_a_text_of_no_row_is_not_read() -> None:
    """Rows that were left out may hold what is no number."""
    block = Block(Path("made"), np.array([2, 3]), {"value": labels(["x", "5"])})
    assert block.take(np.array([1])).numbers("value").tolist() == [5]


@pytest.mark.parametrize(
    ("parse", "cell", "value"),
    [
        (number, "10,195,552", 10_195_552), (number, "'5,376'", 5376), (number, "1.5e3", 1500),
        (number, "1,234.5", 1234.5), (number, "0.0000000000", 0), (product, "(98, 1, 2)", 196),
        (product, "64    1    1", 64), (product, "256", 256),
    ],
)  # fmt: skip
def test_cells(parse: Callable[[str], float], cell: str, value: float) -> None:
    assert parse(cell) == value


@pytest.mark.parametrize("cell", ["", " ", "n/a", "NaN", "-inf", "<OVERFLOW>", "9e999", "-"])
def test_cells_that_say_there_is_none(cell: str) -> None:
    assert np.isnan(number(cell))


@pytest.mark.parametrize(
    ("parse", "cell"),
    [
        *((number, cell) for cell in ("1_000", "0x10", "1.2.3", "\u0661\u0662", "1 000", "-1")),
        (product, "(0, 1, 1)"), (product, "8x8"), (product, "(1, 2, 3, 4)"),
    ],
)  # fmt: skip
def test_cells_that_are_none(parse: Callable[[str], float], cell: str) -> None:
    with pytest.raises(InputError):
        parse(cell)


@given(cells=st.lists(st.one_of(
    st.text("0123456789.,-", max_size=8), st.integers(0).map("{:,}".format),
    st.floats(0, 1e15).map(repr), st.sampled_from(["n/a", "inf", " 5 ", "+5", "1e5"]),
), min_size=1, max_size=4))  # fmt: skip
@settings(max_examples=400)
def test_arrow_reads_what_the_careful_way_does(cells: list[str]) -> None:
    """A column by Arrow, and each cell by itself."""
    pa = pytest.importorskip("pyarrow")

    def outcome(read: Callable[[], Any]) -> list[float] | str:
        try:
            return [-1.0 if np.isnan(value) else value for value in read()]
        except InputError:
            return "refused"

    column = columns._converted(pa.array(cells, pa.string()), float)
    block = Block(Path("made"), np.arange(len(cells)), {"value": column})
    alone = outcome(lambda: [number(cell.strip()) for cell in cells])
    assert outcome(lambda: block.numbers("value")) == alone
