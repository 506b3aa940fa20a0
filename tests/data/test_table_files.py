"""Tidy tables read and written: CSV by either way, Parquet, frames, fleets, and what is refused.

Expected numbers are those that stand in the files; rows in messages are lines counted by hand. By
hand: tidy.rows() counts 1, 2, 3, 4 ms over engine x memory, 101 to 104 W, and 10 ms, 10 W more for
the second kernel.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Capture, main, refuse, succeed
from hypothesis import given
from hypothesis import strategies as st
from synthetic.dvfs import rows as dvfs_rows
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale import DataWarning, HardwareConfig, Measurements, files, read, read_profiles, train
from mlscale.data import table_files
from mlscale.data.column_names import source_meant
from mlscale.data.fleet import Fleet, row_groups
from mlscale.data.table import Table
from mlscale.data.table_files import is_tidy, read_table, table_from_frame, write_table
from mlscale.errors import InputError

ONE = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
PACKERS = (gzip, bz2, lzma)
both_kinds = pytest.mark.parametrize("suffix", ["csv", "parquet"])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of CSV are a block."""
    monkeypatch.setattr(table_files, "_BLOCK_ROWS", 2)


def csv_file(folder: Path, content: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestCsv:
    @pytest.fixture(autouse=True, params=[1 << 20, 0], ids=["by rows", "by Arrow"])
    def _large(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """From so many bytes on Arrow reads a CSV."""
        monkeypatch.setattr(table_files, "_LARGE_CSV_BYTES", request.param)

    @pytest.mark.parametrize(
        "content",
        [
            b"kernel,x,y\na,1,\nb,2,.5\nc,-3e5,0\n",
            b"\xef\xbb\xbfkernel,x,y\na,1,\nb,2,.5\nc,-3e5,0\n",
            b"kernel,x,y\r\na,1,\r\nb,2,.5\r\nc,-3e5,0\r\n",
            b" kernel , x,y\na, 1 , nan\nb,2,.5\nc,-3e5,0",
            b"\n\nkernel,x,y\n\na,1,\nb,2,.5\n\nc,-3e5,0\n\n",
            b",kernel,x,y\n0,a,1,-\n1,b,2,.5\n2,c,-3e5,0\n",
            b'"","kernel","x","y"\n"0","a","1",""\n"1","b","2",".5"\n"2","c","-3e5","0"\n',
            b"Unnamed: 0,kernel,x,y\nI a,a,1,N/A\nI b,b,2,.5\nI c,c,-3e5,0\n",
            *(module.compress(b"kernel,x,y\na,1,\nb,2,.5\nc,-3e5,0\n") for module in PACKERS),
        ],
        ids=["plain", "bom", "crlf", "blanks", "blank lines", "index", "quoted", "two indices",
             "gz", "bz2", "xz"],
    )  # fmt: skip
    @pytest.mark.parametrize("held", [4 << 20, 16], ids=["short", "long"])
    def test_is_read_alike_however_it_was_saved(
        self, tmp_path: Path, content: bytes, held: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "HELD", held)  # bytes of a file that is opened once
        monkeypatch.setattr(files, "PIECE", held // 2)
        table = read_table(csv_file(tmp_path, content))
        assert table.columns == ("kernel", "x", "y")
        assert table.text["kernel"] == ["a", "b", "c"]
        np.testing.assert_array_equal(table.numbers["x"], [1, 2, -3e5])
        np.testing.assert_array_equal(table.numbers["y"], [math.nan, 0.5, 0])
        with refused("row (4|6|8), column 'x': the value is -300000; it must be positive"):
            table.positive("x")

    @pytest.mark.parametrize(
        "cell", ["", " ", "nan", "NaN", "NA", "n/a", "null", "None", "-", "nan(ind)"]
    )
    def test_what_is_not_given_is_nan_and_never_zero(self, tmp_path: Path, cell: str) -> None:
        # docs/reference/files.md lists these cells.
        values = read_table(csv_file(tmp_path, f"kernel,x\nk,{cell}\nl,2\n")).numbers["x"]
        np.testing.assert_array_equal(values, [math.nan, 2.0])

    def test_names_stay_as_they_are(self, tmp_path: Path) -> None:
        content = 'kernel,application,x\n007,"a, ""b""",1\nnan,a"b,2\n"two\nlines",c,3\n\'=1,d,4\n'
        table = read_table(csv_file(tmp_path, content))
        assert table.text["kernel"] == ["007", "nan", "two lines", "=1"]
        assert table.text["application"] == ['a, "b"', 'a"b', "c", "d"]

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    @pytest.mark.parametrize("mark", ";\t")
    def test_semicolons_and_tabs_may_have_decimal_commas(
        self, tmp_path: Path, mark: str, encoding: str
    ) -> None:
        content = "kernel;time_ms;x\r\nf(1,2);0,5;1.5\r\ng;-1e3;2".replace(";", mark)
        path = csv_file(tmp_path, content.encode(encoding))
        table = read_table(path)
        assert is_tidy(path)
        assert table.text["kernel"] == ["f(1,2)", "g"]
        assert {n: v.tolist() for n, v in table.numbers.items()} == {
            "time_ms": [0.5, -1000.0],
            "x": [1.5, 2.0],
        }

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", "is empty"),
            (" \n", "is empty"),
            ("kernel,time_ms", "has a header but no rows"),
            ("kernel,x, x\nk,1,2\n", "row 1: column 'x' appears twice"),
            ("kernel,,x\nk,1,2\n", "row 1: column 2 has no name; give it one"),
            ("kernel;x\nk;1.070,00\n", r"row 2, column 'x': '1\.070,00' is not a number; write"),
            ("kernel,x\nk,1\n\nl\n", "row 4: has 1 fields, the header has 2"),
            ("kernel,x\nk,1\nl,2\nm,1,2\n", "row 4: has 3 fields, the header has 2"),
            (
                "kernel,x\nk,1\nl,2\nm,fast 1\n",
                "row 4, column 'x': 'fast 1' is not a number; columns={'x': ''} lea",
            ),
            ('kernel,x\n"k\nk",1\nl,1 ms\n', "row 4, column 'x': '1 ms' is not a number"),
            ("\nkernel,x\nk,0x10\n", "row 3, column 'x': '0x10' is not a number"),
            ("kernel,x\nk,1_0\n", "row 2, column 'x': '1_0' is not a number"),
            (
                "kernel,x\nk,1\nl,ok\n",
                "'ok' is not a number; columns={'x': ''} leaves the column out",
            ),
            ('kernel,x\nk,"1,5"\n', "'1,5' is not a number; write it with a decimal point"),
            ("kernel,x\nk,1\nl,2\n ,2\n", "row 4, column 'kernel': is empty"),
            ("kernel,device,x\nk,,1\n", "row 2, column 'device': is empty"),
            ('kernel,x\n"k,1\n' + 50_000 * "l,2\n", "row [0-9]+: is not valid CSV: field larger"),
            (b"\x89PNG\r\n\x1a\n", "is not a text file.*of a spreadsheet: 'CSV UTF-8'"),
            (b"PK\x03\x04\x14\x00", "is not a text file.*of a spreadsheet: 'CSV UTF-8'"),
            ("kernel,µs\nk,1\n".encode("latin-1"), "is not a text file in UTF-8 or UTF-16"),
            ('{"traceEvents": []}', "is JSON; a table is CSV or Parquet"),
        ],
    )
    def test_is_refused_with_file_row_and_column(
        self, tmp_path: Path, content: str | bytes, problem: str
    ) -> None:
        with refused(f"table.csv: .*{problem}"):
            read_table(csv_file(tmp_path, content))

    def test_too_large_a_file_is_refused_unread(self, tmp_path: Path) -> None:
        path = csv_file(tmp_path, "kernel,time_ms\nk,1\n")
        with path.open("r+b") as file:
            file.truncate((4 << 30) + 1)  # takes no room on the disk
        with refused("table.csv: has more than 4 GiB; split it, or convert it to Parquet"):
            read_table(path)


CELLS = st.text("a\"',\n =1", max_size=3) | st.sampled_from(["1.5", "-inf", "NaN", "1e999"])


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_both_ways_give_the_same_table_or_the_same_complaint(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]
) -> None:
    """Of any cells, quoted or not."""
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    lines = [",".join(row) for row in (("kernel", "x"), *cells)]

    def outcome() -> Any:
        try:
            with warnings.catch_warnings():  # a column of words warns
                warnings.simplefilter("ignore", DataWarning)
                table = read_table(path)
        except InputError as error:
            return str(error)
        return table.text, [*table.lines], {name: repr(v) for name, v in table.numbers.items()}

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("kernel", "x"), *cells])
    for content in (path.read_text("utf-8"), "\n".join(lines)):
        path.write_text(content, encoding="utf-8")
        by_rows = outcome()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_files, "_LARGE_CSV_BYTES", 0)
            assert outcome() == by_rows


WORDS = st.text("'=+-@ak,\"", min_size=1, max_size=4)


@given(names=st.lists(WORDS, min_size=1, max_size=4, unique=True), word=WORDS)
def test_names_that_begin_as_a_formula_come_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], word: str
) -> None:
    """Of every cell of words in the CSV a spreadsheet makes words, of the counter's name too."""
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    numbers = {"time_ms": np.ones(len(names)), f"{word}_counter": -np.arange(1.0, 1 + len(names))}
    write_table(Table("made", {"kernel": names}, numbers), path)
    with path.open(encoding="utf-8", newline="") as file:
        header, *cells = csv.reader(file)
    for cell in (*header, *(row[0] for row in cells)):
        assert len(cell) == 1 or cell[0] not in "=+-@"
    table = read_table(path)
    assert table.text["kernel"] == names
    assert table.numbers.keys() == numbers.keys()


class TestParquet:
    @pytest.mark.parametrize("name", ["table.parquet", "table.pq", "TABLE.PARQUET"])
    def test_holds_what_the_csv_holds(self, tmp_path: Path, name: str) -> None:
        from_csv = read_table(write_csv(tmp_path / "table.csv", rows()))
        from_parquet = read_table(write_parquet(tmp_path / name, rows()))
        assert from_parquet.text == from_csv.text
        assert from_parquet.columns == from_csv.columns
        for column, values in from_csv.numbers.items():
            assert same_bits(from_parquet.numbers[column], values)

    @pytest.mark.parametrize(
        ("cells", "values"),
        [
            (pa.array([1, None], pa.int64()), [1, math.nan]),
            (pa.array([1.0, None], pa.float32()), [1, math.nan]),
            (pa.array([1.0, math.nan]), [1, math.nan]),
            (pa.nulls(2), [math.nan, math.nan]),
            # Beyond 2^53 + 2, which has a double of its own, counts are rounded.
            (pa.array([2**53 + 2, 2**63 - 1]), [9007199254740994.0, 9.223372036854775807e18]),
        ],
        ids=["null of integers", "null of floats", "nan", "nulls alone", "beyond 53 bits"],
    )
    def test_numbers(self, tmp_path: Path, cells: pa.Array, values: list[float]) -> None:
        pq.write_table(pa.table({"kernel": ["a", "b"], "x": cells}), tmp_path / "t.parquet")
        np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").numbers["x"], values)

    def test_names_may_be_a_dictionary(self, tmp_path: Path) -> None:
        names = pa.array(["b", "a", "b"]).dictionary_encode()
        pq.write_table(pa.table({"kernel": names, "x": [1, 2, 3]}), tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").text["kernel"] == ["b", "a", "b"]

    @pytest.mark.parametrize(
        ("table", "problem"),
        [
            (pa.table({"kernel": ["a"], "x": [b"fast"]}), "column 'x' holds binary; numbers are"),
            (pa.table({"kernel": ["a", None], "x": [1, 2]}), "row 2, column 'kernel': is empty"),
            (pa.table({"x": pa.array([], pa.float64())}), "has no rows"),
            (pa.Table.from_arrays([[1], [2]], names=["x", "x"]), "two columns have the same name"),
            (
                pa.table({"kernel": ["k"]}).replace_schema_metadata({b"mlscale": b"{"}),
                "metadata: is not valid JSON",
            ),
        ],
    )
    def test_is_refused(self, tmp_path: Path, table: pa.Table, problem: str) -> None:
        pq.write_table(table, tmp_path / "t.parquet")
        with refused(f"t.parquet: {problem}"):
            read_table(tmp_path / "t.parquet")

    def test_what_is_none_or_cut_off(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "t.parquet", rows())
        for content in (b"", b"kernel,x\nk,1\n", b"PAR1", path.read_bytes()[:-20]):
            path.write_bytes(content)
            with refused("t.parquet: is not a readable Parquet file"):
                read_table(path)

    def test_a_damaged_page_is_noticed(self, tmp_path: Path) -> None:
        # Every bit of the file but the footer's; the writer gives each page a checksum.
        path = tmp_path / "t.parquet"
        write_table(read_table(write_csv(tmp_path / "t.csv", rows())), path)
        whole, content = read_table(path), path.read_bytes()
        footer = int.from_bytes(content[-8:-4], "little")
        for bit in range(32, 8 * (len(content) - 8 - footer), 37):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                table = read_table(path)
            except InputError as error:
                assert "is not a readable Parquet file" in str(error)  # noqa: PT017
            else:
                assert table.text == whole.text
                for name, values in whole.numbers.items():
                    np.testing.assert_array_equal(table.numbers[name], values)

    def test_is_read_without_pandas_whose_import_takes_longer(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        write_table(ONE, path)
        read = f"from mlscale.data.table_files import read_table; read_table({str(path)!r})"
        code = f"import sys; {read}; print('pandas' in sys.modules)"
        command = [sys.executable, "-c", code]
        assert subprocess.run(command, check=True, capture_output=True).stdout == b"False\n"


@both_kinds
class TestBothKinds:
    def test_what_cannot_be_read(self, tmp_path: Path, suffix: str) -> None:
        (tmp_path / "file").write_bytes(b"x")
        for name, problem in (("t", "No such file or directory"), ("file/t", "Not a directory")):
            with refused(f"t.{suffix}: cannot be read: {problem}"):
                read_table(tmp_path / f"{name}.{suffix}")
        (tmp_path / f"t.{suffix}").mkdir()
        with refused(f"t.{suffix}: .*is a directory".replace("is a", "[Ii]s a")):
            read_table(tmp_path / f"t.{suffix}")

    def test_metadata_are_kept_with_unknown_keys_until_others_are_written(
        self, tmp_path: Path, suffix: str
    ) -> None:
        path = tmp_path / f"t.{suffix}"
        for metadata in ({"faults": {"k": "truly µ"}, "mine": [1, None, 2.5]}, {}):
            write_table(Table("made", ONE.text, ONE.numbers, metadata), path)
            assert read_table(path).metadata == metadata

    def test_what_cannot_be_written_leaves_nothing(self, tmp_path: Path, suffix: str) -> None:
        with refused(f"nowhere/t.{suffix}: cannot be written"):
            write_table(ONE, tmp_path / "nowhere" / f"t.{suffix}")
        (tmp_path / f"t.{suffix}").mkdir()
        with refused(f"t.{suffix}: is a directory"):
            write_table(ONE, tmp_path / f"t.{suffix}")
        assert [path.name for path in tmp_path.iterdir()] == [f"t.{suffix}"]


class TestMetadata:
    def test_of_a_csv_stand_beside_it_and_of_a_parquet_in_its_schema(self, tmp_path: Path) -> None:
        write_table(ONE, tmp_path / "t.v1.csv")
        write_table(ONE, tmp_path / "t.parquet")
        beside = (tmp_path / "t.v1.meta.json").read_text()
        in_schema = pq.read_schema(tmp_path / "t.parquet").metadata[b"mlscale"]
        assert json.loads(beside) == json.loads(in_schema) == ONE.metadata
        assert not (tmp_path / "t.meta.json").exists()
        (tmp_path / "t.v1.csv.gz").write_bytes(gzip.compress((tmp_path / "t.v1.csv").read_bytes()))
        assert read_table(tmp_path / "t.v1.csv.gz").metadata == ONE.metadata

    def test_damaged(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "t.csv", rows())
        for content, problem in (("{", "is not valid JSON"), ("[]", "must hold a JSON object")):
            (tmp_path / "t.meta.json").write_text(content)
            with refused(f"t.meta.json: {problem}"):
                read_table(path)

    def test_a_table_whose_metadata_cannot_be_written_is_not_kept(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "t.csv", rows())
        before = path.read_bytes()
        (tmp_path / "t.meta.json").mkdir()
        with refused("meta.json: is a directory"):
            write_table(ONE, path)
        assert path.read_bytes() == before


class TestFrame:
    def test_a_saved_index_is_no_counter_of_it_and_of_its_parquet(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"Unnamed: 0": ["a", "b"], "kernel": ["k", "l"], "x": [1.0, 2.0]})
        frame.set_index(pd.Index([3, 5])).to_parquet(tmp_path / "table.parquet")
        for table in (table_from_frame(frame), read_table(tmp_path / "table.parquet")):
            assert table.columns == ("kernel", "x")
        by_kernel = table_from_frame(frame.set_index("kernel"))
        assert by_kernel.text["kernel"] == ["k", "l"]

    def test_dates_are_no_numbers(self) -> None:
        frame = pd.DataFrame({"kernel": ["k"], "when": [pd.Timestamp("2026-01-01")]})
        for column in (frame, frame.assign(when=pd.Timedelta(5, "s"))):
            with refused("the frame: column 'when' holds .*; numbers are needed there"):
                table_from_frame(column)
        with pytest.warns(DataWarning, match="the frame: left out, as they contain text: 'when'"):
            assert table_from_frame(frame.assign(when="now")).columns == ("kernel",)

    def test_a_column_of_any_kind_is_left_out_by_name(self, tmp_path: Path) -> None:
        """A Parquet file's, and a frame's, were refused as no numbers all the same."""
        frame = pd.DataFrame({"kernel": ["k"], "x": [1.0], "when": [pd.Timestamp("2026-01-01")]})
        for one in (frame, frame.assign(when=True), frame.assign(when=[[1]])):
            one.to_parquet(tmp_path / "table.parquet")
            for table in (
                table_from_frame(one, columns={"when": ""}),
                read_table(tmp_path / "table.parquet", columns={"when": ""}),
            ):
                assert table.columns == ("kernel", "x")

    def test_what_is_not_given_as_pandas_reads_it_from_csv(self) -> None:
        """A column with 'auto' holds texts in a frame."""
        file = io.StringIO("kernel,engine_mhz\nk,auto\nk,1000\n")
        table = table_from_frame(pd.read_csv(file))
        np.testing.assert_array_equal(table.numbers["engine_mhz"], [np.nan, 1000])


def test_a_rate_stands_for_times_and_energies_for_powers(tmp_path: Path) -> None:
    """By hand: a million units at 200 per s take 5000 s; 30 J in 100 ms are 300 W."""
    rated = csv_file(tmp_path, "device,engine_mhz,tokens_per_s,power_w\nmade,1000,200,300\n")
    for read_one in (read_table, lambda path: table_from_frame(pd.read_csv(path))):
        with pytest.warns(DataWarning, match="time and energy are for 1,000,000 units of work, by"):
            table = read_one(rated)
        assert table.numbers["time_ms"].tolist() == [5e6]
    text = "device,engine_mhz,time_ms,energy (mJ),peak power [W]\nmade,1000,100,30000,900\n"
    with pytest.warns(DataWarning, match=r"power is 'energy \(mJ\)' over time_ms"):
        assert read_table(csv_file(tmp_path, text)).numbers["power_w"].tolist() == [300]


BASE = HardwareConfig(4, 800.0, 700.0)


def renamed(name: str, column: str, per_unit: float) -> list[dict[str, Any]]:
    """tidy.rows() with a column under another name, times a number."""
    return [
        {column if n == name else n: v * per_unit if n == name else v for n, v in row.items()}
        for row in rows()
    ]


PER_UNIT = {
    "time_ms": {"s": 1e-3, "ms": 1, "us": 1e3, "ns": 1e6},
    "engine_mhz": {"Hz": 1e6, "kHz": 1e3},
    "memory_mhz": {"MHz": 1, "GHz": 1e-3},
    "power_w": {"mW": 1e3, "W": 1, "kW": 1e-3},
}


@pytest.mark.parametrize(("name", "unit"), [(n, unit) for n in PER_UNIT for unit in PER_UNIT[n]])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_units(tmp_path: Path, name: str, unit: str, kind: str) -> None:
    table, columns = renamed(name, "a: b", PER_UNIT[name][unit]), {name: f"a: b:{unit}"}
    if kind == "frame":
        found = Measurements.from_frame(pd.DataFrame(table), columns=columns)
    else:
        write = write_csv if kind == "csv" else write_parquet
        found = read(write(tmp_path / f"t.{kind}", table), columns=columns)
    plain = Measurements.from_frame(pd.DataFrame(rows()))
    assert (found.grid, found.counter_names) == (plain.grid, plain.counter_names)
    np.testing.assert_allclose(found.time_ms, plain.time_ms, rtol=1e-15)
    np.testing.assert_allclose(found.quantity("power"), plain.quantity("power"), rtol=1e-15)


def test_performance_in_place_of_time() -> None:
    """Rates of 1, 1/2, 1/4 in a second take 1000, 2000, 4000 ms."""
    table = [{**row, "fps": 2.0**-k} for k, row in enumerate(rows(["alone"]))]
    frame = pd.DataFrame(table).drop(columns="time_ms")
    with pytest.warns(DataWarning, match="if 'fps' is relative to a reference"):
        found = Measurements.from_frame(frame, columns={"time_ms": "fps:1/s"})
    assert found.time_ms.ravel().tolist() == [1000, 2000, 4000, 8000]


def test_a_unit_in_the_name_counts_and_a_column_that_is_replaced_is_told() -> None:
    """2 us are 0.002 ms."""
    frame = pd.DataFrame([{**row, "runtime_us": 2.0} for row in rows(["alone"])])
    with pytest.warns(DataWarning, match="time_ms=runtime_us replaces its column 'time"):
        found = Measurements.from_frame(frame, columns={"time_ms": "runtime_us"})
    assert found.time_ms.ravel().tolist() == [0.002] * 4


# What each command says of an axis "L1 kB", of the steps 16 and 128, that stands for CUs.
AT_BASE = "base L1 kB=128,engine=800,memory=700"
MODEL = ("--model", "m.mlscale")
PREDICT = ("predict", "t.csv", *MODEL, "--at", "L1 kB=16")
ADVISE = ("advise", "t.csv", *MODEL, "--minimize", "time", "--commands")
STUDY = ("t.csv", "--base", "L1 kB=128,engine=800,memory=700", "--predictor", "mean-surface")
NAMED = [
    (("show", "m.mlscale", "--all"), "L1 kB 16 to 128 in 2 steps; engine 400"),
    (PREDICT, "  L1 kB    time   slower"),
    ((*PREDICT, "--base", "cu=128"), " on gtx980, measured at 128 L1 kB, 800 / 700 MHz"),
    ((*PREDICT[:4], "--also", "t.csv@L1 kB=16"), "cannot use further measured points"),
    (ADVISE, "Set L1 kB to 16 (now 128)"),
    (ADVISE, "no known command sets L1 kB"),
    (("study", "errors", *STUDY, "--all"), AT_BASE),
    (("study", "advice", *STUDY), AT_BASE),
]


@pytest.mark.usefixtures("in_an_empty_folder", "one_process")
def test_an_axis_of_any_name(capsys: Capture) -> None:
    """L1 sizes on a GPU that has fewer CUs; a step of the larger takes eight times as long."""
    both = [
        {"L1 kB": size, **row, "device": "gtx980", "time_ms": row["time_ms"] * size}
        for size in (16, 128)
        for row in rows()
    ]
    for row in both:
        del row["cu_count"]
    file, given = write_csv(Path("t.csv"), both), ("--map", "cu_count=L1 kB")
    out, _ = succeed(capsys, "train", *STUDY, *given, "-o", "m.mlscale")
    assert " at 8 settings of gtx980" in " ".join(out.split())
    for command, said in NAMED:
        main([*command, *(given if command[0] != "show" else ())])
        assert said in "".join(capsys.readouterr())
    succeed(capsys, "report", "t.csv", *MODEL, *given, "-o", "r.html")
    page = Path("r.html").read_text()
    assert '"cu_axis":"L1 kB"' in page
    assert read(file, columns={"cu_count": "L1 kB"}).counter_names == ("loads",)


def test_constants_counters_and_what_the_device_tells() -> None:
    """The GTX 980 has 16 SMs; one column can name two things."""
    frame = pd.DataFrame(rows()).drop(columns=["cu_count", "device", "application"])
    columns: dict[str, str | float] = {
        "cu_count": 3, "device": "gtx980", "application": "kernel", "ipc": "loads",
    }  # fmt: skip
    found = Measurements.from_frame(frame, columns=columns)
    assert (found.grid.cu_count, found.device) == ((3,), "gtx980")
    assert found.applications == found.kernels
    assert found.counter_names == ("ipc",)
    del columns["cu_count"]
    assert Measurements.from_frame(frame, columns=columns).grid.cu_count == (16,)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"time_ms": "tme_ms"}, "time_ms=tme_ms: there is no column 'tme_ms'; is 'time_ms' m"),
        ({"kernel": "name"}, "the mapping kernel=name: there is no column 'name'"),
        ({"engin_mhz": "loads"}, "engin_mhz=loads: there is no 'engin_mhz'; did you mean engine_m"),
        ({"cu": "loads"}, "the mapping cu=loads: there is no 'cu'; did you mean cu_count?"),
        ({"power": 3}, "the mapping power=3: there is no 'power'; did you mean power_w?"),
        ({"ipc": "loads", "time_ms": "loads:us"}, "time_ms=loads:us: 'loads' is ipc already; each"),
        ({"time_ms": "loads:MHz"}, "the unit 'MHz' must be one of s, ms, us, ns, 1/s"),
        ({"cu_count": "loads:kHz"}, "the unit 'kHz' must be left out there"),
    ],
)
def test_refused(columns: dict[str, str | float], said: str) -> None:
    with refused(said):
        Measurements.from_frame(pd.DataFrame(rows()), columns=columns)


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("engine_mhz", ("core_clock", "sm_clock", "freq", "gpu_clock", "Core Freq (GHz):GHz")),
        ("memory_mhz", ("mem_freq", "mem_clock", "memF")),
        ("cu_count", ("num_sms", "cus", "sms")),
        ("time_ms", ("duration_ns:ns", "runtime_ms", "time_us:us", "duration:UNIT")),
        ("kernel", ("kernel_name",)),
        ("device", ("gpu",)),
        ("power_w", ("power/W",)),
        ("application", ("app", "benchmark")),
    ],
)
def test_usual_names(name: str, sources: tuple[str, ...]) -> None:
    for source in sources:
        assert source_meant(name, ["other", source.partition(":")[0]]) == source
    assert source_meant("time_ms", ["other", "inst_executed"]) is None


def test_a_time_under_another_name_is_not_power_alone() -> None:
    with refused(
        "no column 'time_ms'; is 'runtime_us' meant.*columns={'time_ms': 'runtime_us:us'}"
    ):
        Measurements.from_frame(pd.DataFrame(renamed("time_ms", "runtime_us", 1e3)))


def test_the_same_model_and_prediction(capsys: Capture, tmp_path: Path) -> None:
    """From mapped and plain columns, of a table, a data frame and a fleet."""
    plain, other = rows(["a", "b", "c"]), []
    for row in plain:
        row["loads"] = row["time_ms"] * 7
        other.append({**row, "dur": row["time_ms"] / 1024, "mhz": row["engine_mhz"]})
        del other[-1]["time_ms"], other[-1]["engine_mhz"]
    columns = {"time_ms": "dur:s", "engine_mhz": "mhz"}
    frame = pd.DataFrame(plain).assign(time_ms=lambda f: f["time_ms"] / 1.024)
    models = [
        train(Measurements.from_frame(pd.DataFrame(table), columns=named), BASE, "nearest")
        for table, named in ((frame, {}), (other, columns))
    ]
    profile = [row for row in other if (row["mhz"], row["memory_mhz"]) == (800, 700)]
    named = read_profiles(pd.DataFrame(profile), BASE, "made-gpu", columns)
    one, two = models[0].predict(frame), models[1].predict(named)
    np.testing.assert_allclose(two.time_ms, one.time_ms, rtol=1e-12)
    models[1].save(tmp_path / "m.mlscale")
    file = write_parquet(tmp_path / "p.parquet", profile)
    given = ["--map", "time_ms=dur:s,engine_mhz=mhz"]
    out, _ = succeed(capsys, "predict", tmp_path / "m.mlscale", file, *given, "--format", "csv")
    assert out.count("\n") == 1 + two.time_ms.size
    succeed(capsys, "predict", tmp_path / "m.mlscale", file, *given, "-o", f"{tmp_path}/fleet/")
    [part] = (tmp_path / "fleet").glob("*.parquet")
    np.testing.assert_allclose(pd.read_parquet(part)["time_ms"], two.time_ms.ravel(), rtol=1e-12)


def test_a_word_that_maps_nothing(capsys: Capture, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "t.csv", rows())
    given = ["train", file, "--base", "mid", "-o", tmp_path / "m", "--map", "time_ms"]
    assert "'time_ms' is not NAME=COLUMN[:UNIT]" in refuse(capsys, tmp_path, *given)


def test_no_launches_of_the_benchmark(capsys: Capture, tmp_path: Path) -> None:
    """The RTX 2070 Super's file has the columns blocks and warps, and nothing in them."""
    table = [{**row, "blocks": "", "warps": "", "ipc": ""} for row in dvfs_rows()]
    file = write_csv(tmp_path / "raw.csv", table)
    succeed(capsys, "import", "dvfs", file, "--device", "rtx2070s", "-o", tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").counter_names == ()


def test_the_frame_is_not_changed() -> None:
    frame = pd.DataFrame(renamed("time_ms", "t", 1))
    table = table_from_frame(frame, columns={"time_ms": "t"})
    assert "t" in frame
    assert "t" not in table.columns
    assert same_bits(table.numbers["time_ms"], frame["t"].to_numpy())


def write(path: Path, *names: str, rows: int = 3) -> None:
    """Rows of zeros, two in a row group."""
    pq.write_table(pa.table({name: [0.0] * rows for name in names}), path, row_group_size=2)


def test_the_row_groups_of_a_folder_stand_in_the_order_of_its_files(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", "time_ms")
    write(tmp_path / "a.pq", "time_ms", rows=2)
    write(tmp_path / "c.parquet", "time_ms", rows=0)
    for name in ("d.csv", "_SUCCESS", ".a.parquet.crc"):
        (tmp_path / name).touch()
    with pytest.warns(DataWarning, match=r"only Parquet files .*; ignored: d\.csv$"):
        groups, columns = row_groups(tmp_path)
    assert [(group.path.name, group.number) for group in groups] == [
        ("a.pq", 0), ("b.parquet", 0), ("b.parquet", 1),
    ]  # fmt: skip
    assert columns == ("time_ms",)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.parquet", "cannot be read: No such file or directory"),
        ("f.csv", "a fleet is a Parquet file, or a folder of them"),
        ("in", "holds no Parquet file"),
        ("empty.parquet", "has no rows"),
        ("unlike/b.parquet", "column 'launches' is not in all files of the fleet$"),
    ],
)
def test_what_is_no_fleet(tmp_path: Path, name: str, problem: str) -> None:
    for folder in ("in", "unlike"):
        (tmp_path / folder).mkdir()
    (tmp_path / "f.csv").write_text("kernel,time_ms\nk,1\n")
    write(tmp_path / "in" / "_unfinished.parquet", "time_ms")
    write(tmp_path / "empty.parquet", "time_ms", rows=0)
    write(tmp_path / "unlike" / "a.parquet", "time_ms", "launches")
    write(tmp_path / "unlike" / "b.parquet", "time_ms")
    with refused(f"{name}: {problem}"):
        row_groups(tmp_path / name.removesuffix("/b.parquet"))


@pytest.mark.parametrize(("profiled_only", "most_w"), [(False, 310.0), (True, 300.0)])
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_the_most_that_was_drawn_is_of_every_part_and_of_the_kernels_that_are_kept(
    tmp_path: Path, at_once: int, profiled_only: bool, most_w: float
) -> None:
    """310 W are of a kernel without counters; neither it nor the one of 300 W stands last."""
    powers_w = [300.0, 240.0, 250.0, 310.0, 200.0]
    counters = [0.5, 0.5, 0.5, None, 0.5]
    table = pa.table({"power_w": powers_w, "sm_active": counters})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    base = HardwareConfig(80, 1380.0, 877.0)
    fleet = Fleet(*row_groups(tmp_path / "f.parquet"), "v100", base, profiled_only, has_power=True)
    assert fleet.most_drawn_w(at_once) == most_w


def test_a_parquet_file_is_unpacked_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 100,000 rows with one name of 1 MB would be 100 GB; what it says of itself is 1 MB.

    Columns of other kinds are not unpacked, and numbers are counted as they are.
    """
    rows = 100_000
    name, digits = (
        pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [letter * 1_000_000])
        for letter in "k1"
    )
    numbers = pa.array(np.ones(rows))
    path = tmp_path / "made.parquet"
    pq.write_table(pa.table({"kernel": name, "time_ms": numbers}), path, store_schema=False)
    with refused("row 1, column 'kernel': is too long a name"):
        read_table(path)
    pq.write_table(pa.table({"kernel": numbers, "note": digits}), path, store_schema=False)
    with refused("column 'note' holds string; numbers are needed there; change or delete it"):
        read_table(path)
    pq.write_table(pa.table({"kernel": ["a"] * rows, "time_ms": numbers}), path)
    monkeypatch.setattr(table_files, "_LARGEST_BYTES", 1 << 20)
    with refused("unpacks to 100000 rows x 2 columns, more than 0.000977 GiB; is it a table"):
        read_table(path)
    names = pa.array(["a", "b" * (2 << 20)])  # its pages say that they are 2 MiB
    pq.write_table(pa.table({"kernel": names, "time_ms": [1.0, 2.0]}), path)
    with monkeypatch.context() as patched, refused("2 rows x 2 columns, more than 0.000977 GiB"):
        patched.setattr(pq.ParquetFile, "read", None)  # is not called
        read_table(path)
