"""Tidy tables read and written: CSV by either way, Parquet, data frames, and what is refused.

Expected numbers are those that stand in the files; rows in messages are lines counted by hand.
"""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale.data import table_files
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, table_from_frame, write_table
from mlscale.errors import DataWarning, InputError

ONE = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
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
        ],
        ids=["plain", "bom", "crlf", "blanks", "blank lines", "index", "quoted", "two indices"],
    )
    def test_is_read_alike_however_it_was_saved(self, tmp_path: Path, content: bytes) -> None:
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

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", "is empty"),
            (" \n", "is empty"),
            ("kernel,time_ms", "has a header but no rows"),
            ("kernel,x, x\nk,1,2\n", "row 1: column 'x' is there twice"),
            ("kernel,,x\nk,1,2\n", "row 1: column 2 has no name; give it one"),
            ("kernel;x\nk;1,5\n", "row 1: 'kernel;x' is one column; the first row names the"),
            ("kernel,x\nk,1\n\nl\n", "row 4: has 1 fields, the header has 2"),
            ("kernel,x\nk,1\nl,2\nm,1,2\n", "row 4: has 3 fields, the header has 2"),
            ("kernel,x\nk,1\nl,2\nm,fast 1\n", "row 4, column 'x': 'fast 1' is not a number$"),
            ('kernel,x\n"k\nk",1\nl,1 ms\n', "row 4, column 'x': '1 ms' is not a number"),
            ("\nkernel,x\nk,0x10\n", "row 3, column 'x': '0x10' is not a number"),
            ("kernel,x\nk,1_0\n", "row 2, column 'x': '1_0' is not a number"),
            ("kernel,x\nk,ok\n", "'ok' is not a number; a column of words is no counter, take"),
            ('kernel,x\nk,"1,5"\n', "'1,5' is not a number; write it with a decimal point"),
            ("kernel,x\nk,1\nl,2\n ,2\n", "row 4, column 'kernel': is empty"),
            ("kernel,device,x\nk,,1\n", "row 2, column 'device': is empty"),
            ('kernel,x\n"k,1\n' + 50_000 * "l,2\n", "row [0-9]+: is not valid CSV: field larger"),
            (b"\x89PNG\r\n\x1a\n", "is not a text file.*of a spreadsheet: 'CSV UTF-8'"),
            (b"PK\x03\x04\x14\x00", "is not a text file.*of a spreadsheet: 'CSV UTF-8'"),
            ("kernel,µs\nk,1\n".encode("latin-1"), "is not a text file in UTF-8"),
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
        with refused("table.csv: has more than 4 GiB; split it, or make Parquet of it"):
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
        assert list(from_parquet.numbers) == list(from_csv.numbers)
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
        ("columns", "problem"),
        [
            ({"kernel": ["a"], "x": ["fast"]}, "column 'x' holds string; numbers are needed"),
            ({"kernel": ["a", None], "x": [1, 2]}, "row 2, column 'kernel': is empty"),
            ({"x": pa.array([], pa.float64())}, "has no rows"),
        ],
    )
    def test_is_refused(self, tmp_path: Path, columns: dict[str, Any], problem: str) -> None:
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        with refused(f"t.parquet: {problem}"):
            read_table(tmp_path / "t.parquet")

    def test_columns_of_one_name(self, tmp_path: Path) -> None:
        twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        pq.write_table(twice, tmp_path / "t.parquet")
        with refused("t.parquet: two columns have the same name"):
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
        write_table(ONE, tmp_path / "table.parquet")
        code = (
            "import sys; from mlscale.data.table_files import read_table; "
            "read_table(sys.argv[1]); print('pandas' in sys.modules)"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "table.parquet")]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert output == "False\n"


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

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (0.0, "is 0; it must be positive and finite"),
            (-1.5, "is -1.5; it must be positive and finite"),
            (math.inf, "is inf; it must be positive and finite"),
            (1e-12, "is 1e-12; it must be from 1e-09 to 1e.15"),
            (math.nan, "is not given; it must be .*; leave out the rows without it"),
        ],
    )
    def test_a_bad_value_is_named_by_the_row_that_a_viewer_shows(
        self, tmp_path: Path, suffix: str, value: float, said: str
    ) -> None:
        table = rows()
        table[1]["time_ms"] = value
        write = write_csv if suffix == "csv" else write_parquet
        row = 3 if suffix == "csv" else 2  # of a CSV the header is the first
        with refused(f"t.{suffix}: row {row}, column 'time_ms': the value {said}$"):
            read_table(write(tmp_path / f"t.{suffix}", table)).positive("time_ms")


class TestMetadata:
    def test_of_a_csv_stand_beside_it_and_of_a_parquet_in_its_schema(self, tmp_path: Path) -> None:
        write_table(ONE, tmp_path / "t.v1.csv")
        write_table(ONE, tmp_path / "t.parquet")
        beside = (tmp_path / "t.v1.meta.json").read_text()
        in_schema = pq.read_schema(tmp_path / "t.parquet").metadata[b"mlscale"]
        assert json.loads(beside) == json.loads(in_schema) == ONE.metadata
        assert not (tmp_path / "t.meta.json").exists()

    def test_damaged(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "t.csv", rows())
        for content, problem in (("{", "is not valid JSON"), ("[]", "must hold a JSON object")):
            (tmp_path / "t.meta.json").write_text(content)
            with refused(f"t.meta.json: {problem}"):
                read_table(path)
        table = pa.table({"kernel": ["k"]}).replace_schema_metadata({b"mlscale": b"{"})
        pq.write_table(table, tmp_path / "t.parquet")
        with refused("t.parquet: metadata: is not valid JSON"):
            read_table(tmp_path / "t.parquet")

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
        for column in (frame, frame.assign(when=pd.Timedelta(5, "s")), frame.assign(when="now")):
            with refused("the frame: column 'when' holds .*; numbers are needed there"):
                table_from_frame(column)


def test_a_rate_stands_for_times_and_energies_for_powers(tmp_path: Path) -> None:
    """By hand: a million units at 200 per s take 5000 s; 30 J in 100 ms are 300 W."""
    rated = csv_file(tmp_path, "device,engine_mhz,tokens_per_s,power_w\nmade,1000,200,300\n")
    with pytest.warns(DataWarning, match="time and energy are of 1,000,000 units of work, by col"):
        table = read_table(rated)
    assert table.numbers["time_ms"].tolist() == [5e6]
    text = "device,engine_mhz,time_ms,energy (mJ),peak power [W]\nmade,1000,100,30000,900\n"
    with pytest.warns(DataWarning, match=r"power is 'energy \(mJ\)' over time_ms"):
        assert read_table(csv_file(tmp_path, text)).numbers["power_w"].tolist() == [300]
