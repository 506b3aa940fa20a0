"""The tidy table from CSV, and what both kinds of file share: read, refused, and where."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.tidy import refused, rows, write_csv, write_parquet

from mlscale.data.table import Table
from mlscale.data.table_files import read_table, table_from_frame, write_table
from mlscale.errors import InputError

WRITERS = {"csv": write_csv, "parquet": write_parquet}


def csv_file(folder: Path, content: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestCsv:
    def test_one_that_is_too_large_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        path = csv_file(tmp_path, "kernel,time_ms\nk,1\n")
        with path.open("r+b") as file:
            file.truncate((4 << 30) + 1)  # takes no room on the disk
        with refused("table.csv: has more than 4 GiB; split it, or make Parquet of it"):
            read_table(path)

    def test_text_and_numbers(self, tmp_path: Path) -> None:
        # Hand. Cells keep commas and quotes; a number may have blanks around it.
        table = read_table(
            csv_file(tmp_path, 'kernel,device,time_ms,x\n"a, ""b""",gpu, 1.5 ,-2e-3\nc,gpu,4,0\n')
        )
        assert table.text == {"kernel": ['a, "b"', "c"], "device": ["gpu", "gpu"]}
        assert list(table.numbers) == ["time_ms", "x"]
        np.testing.assert_array_equal(table.numbers["time_ms"], [1.5, 4.0])
        np.testing.assert_array_equal(table.numbers["x"], [-0.002, 0.0])
        assert len(table) == 2
        assert table.metadata == {}

    def test_identity_stays_text_even_if_it_looks_like_a_number(self, tmp_path: Path) -> None:
        table = read_table(csv_file(tmp_path, "kernel,application,x\n007,1e3,1\nnan,NA,2\n"))
        assert table.text == {"kernel": ["007", "nan"], "application": ["1e3", "NA"]}

    @pytest.mark.parametrize(
        "content",
        [
            b"\xef\xbb\xbfkernel,x\nk,1\n",
            b"kernel,x\r\nk,1\r\n",
            b"kernel,x\nk,1",
            b"kernel,x\nk,1\n\n\n",
            b" kernel , x\nk,1\n",
            b",kernel,x\n0,k,1\n",
            b'"","kernel","x"\n"0","k","1"\n',
        ],
        ids=["bom", "crlf", "no-last-end", "blank-end", "blanks", "index", "quoted-index"],
    )
    def test_is_read_alike_however_it_was_saved(self, tmp_path: Path, content: bytes) -> None:
        table = read_table(csv_file(tmp_path, content))
        assert table.columns == ("kernel", "x")
        assert table.text["kernel"] == ["k"]
        assert table.numbers["x"].tolist() == [1.0]

    @pytest.mark.parametrize(
        "cell", ["", " ", "nan", "NaN", "NA", "n/a", "N/A", "null", "None", "-"]
    )
    def test_what_is_not_given_is_nan_and_never_zero(self, tmp_path: Path, cell: str) -> None:
        # docs/file-formats.md lists these cells.
        values = read_table(csv_file(tmp_path, f"kernel,x,y\nk,{cell},5\nl,2,6\n")).numbers
        assert math.isnan(values["x"][0])
        assert values["x"][1] == 2.0
        assert values["y"].tolist() == [5.0, 6.0]

    @pytest.mark.parametrize("rows_of_it", [1, 200_000])
    @pytest.mark.parametrize("index", ["0", "gemm 1"])
    def test_an_index_that_pandas_saved_twice_is_no_counter(
        self, tmp_path: Path, rows_of_it: int, index: str
    ) -> None:
        """Of a small file and of one that Arrow reads; blanks around a known GPU are none of it."""
        content = "Unnamed: 0,kernel,device,x\n" + f"{index},k, p100 ,1\n" * rows_of_it
        table = read_table(csv_file(tmp_path, content))
        assert table.columns == ("kernel", "device", "x")
        assert set(table.text["device"]) == {"p100"}

    def test_an_index_of_words_is_left_out_of_a_frame_and_of_parquet(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"Unnamed: 0": ["a", "b"], "kernel": ["k", "l"], "x": [1.0, 2.0]})
        frame.to_parquet(tmp_path / "table.parquet")
        for table in (table_from_frame(frame), read_table(tmp_path / "table.parquet")):
            assert table.columns == ("kernel", "x")

    def test_dates_are_no_numbers(self) -> None:
        frame = pd.DataFrame({"kernel": ["k"], "when": [pd.Timestamp("2026-01-01")]})
        for column in (frame, frame.assign(when=pd.Timedelta(5, "s"))):
            with refused("the frame: column 'when' holds .*; numbers are needed there"):
                table_from_frame(column)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", "table.csv: is empty"),
            (" \n", "table.csv: is empty"),
            ("kernel,time_ms\n", "table.csv: has a header but no rows"),
            ("kernel,time_ms", "table.csv: has a header but no rows"),
            ("kernel,x,y,x\nk,1,2,3\n", "table.csv: row 1: column 'x' is there twice"),
            ("x,kernel,x\n1,k,3\n", "table.csv: row 1: column 'x' is there twice"),
            ("kernel,x, x\nk,1,2\n", "table.csv: row 1: column 'x' is there twice"),
            ("kernel,,x\nk,1,2\n", "table.csv: row 1: column 2 has no name; give it one"),
            ("kernel,x,\nk,1,\n", "table.csv: row 1: column 3 has no name; give it one"),
            ("kernel;x\nk;1,5\n", "row 1: 'kernel;x' is one column; the first row names the"),
            ("kernel\tx\nk\t1\n", "row 1: 'kernel.x' is one column; the first row names"),
            ("sep=;\nkernel;x\n", "row 1: 'sep=;' is one column; the first row names"),
            ("# by hand\nkernel,x\nk,1\n", "row 1: '# by hand' is one column; .* commas between"),
            ("kernel,x\nk,1\nl\n", "table.csv: row 3: has 1 fields, the header has 2"),
            ("kernel,x\nk,1\nl,1,2\n", "table.csv: row 3: has 3 fields, the header has 2"),
            ("kernel,x\nk,1\nl,fast\n", "table.csv: row 3, column 'x': 'fast' is not a number"),
            (
                "kernel,x\nk,ok\n",
                "'ok' is not a number; a column of words is no counter, take it out",
            ),
            ("kernel,x\nk,1 ms\n", "table.csv: row 2, column 'x': '1 ms' is not a number"),
            (
                'kernel,x\nk,"1,5"\n',
                "row 2, column 'x': '1,5' is not a number; write it with a decimal point",
            ),
            ("kernel,x\nk,0x10\n", "table.csv: row 2, column 'x': '0x10' is not a number"),
            ("kernel,x\nk,\nl,fast\n", "table.csv: row 3, column 'x': 'fast' is not a number"),
            ("kernel,x\nk,1\n ,2\n", "table.csv: row 3, column 'kernel': is empty"),
            ("kernel,device,x\nk,,1\n", "table.csv: row 2, column 'device': is empty"),
            ("kernel,x\nk," + "1" * 200_000 + "\n", "table.csv: row 2: is not valid CSV"),
        ],
    )
    def test_names_file_row_and_column(self, tmp_path: Path, content: str, problem: str) -> None:
        with refused(problem):
            read_table(csv_file(tmp_path, content))

    @pytest.mark.parametrize(
        ("content", "row"),
        [
            ("kernel,x\nk,1\n\nl,fast\n", 4),
            ('kernel,x\n"k\nk",1\nl,fast\n', 4),
            ("\nkernel,x\nk,fast\n", 3),
        ],
        ids=["blank line", "cell of two lines", "blank first line"],
    )
    def test_the_row_is_the_line_that_an_editor_shows(
        self, tmp_path: Path, content: str, row: int
    ) -> None:
        # Hand: lines counted from 1.
        with refused(f"table.csv: row {row}, column 'x': 'fast' is not a number"):
            read_table(csv_file(tmp_path, content))

    def test_a_ragged_row_after_a_blank_line(self, tmp_path: Path) -> None:
        # Hand: the fourth line of the file.
        with refused("table.csv: row 4: has 1 fields, the header has 2"):
            read_table(csv_file(tmp_path, "kernel,x\nk,1\n\nl\n"))

    def test_a_cell_of_two_lines_gives_one_line_of_message(self, tmp_path: Path) -> None:
        with refused("row 2, column 'x': 'very.*fast' is not a number"):
            read_table(csv_file(tmp_path, 'kernel,x\nk,"very\nfast"\n'))

    @pytest.mark.parametrize(
        "content",
        [b"\x00\x01\x02\xff", b"\x89PNG\r\n\x1a\n", b"kernel,x\nk,\x00\n", b"PAR1abc\x15\x04\x00"],
    )
    def test_a_binary_file_is_refused(self, tmp_path: Path, content: bytes) -> None:
        with refused(
            "table.csv: is not a text file.*a table is CSV .of a spreadsheet: 'CSV UTF-8'."
        ):
            read_table(csv_file(tmp_path, content))

    def test_a_spreadsheet_or_a_model_is_told_by_its_archive(self, tmp_path: Path) -> None:
        """Hand: the first bytes of every ZIP archive."""
        with refused("table.csv: is a ZIP archive, .* save a spreadsheet as 'CSV UTF-8'"):
            read_table(csv_file(tmp_path, b"PK\x03\x04\x14\x00"))

    def test_text_of_another_encoding_says_which_is_needed(self, tmp_path: Path) -> None:
        with refused("table.csv: .*UTF-8"):
            read_table(csv_file(tmp_path, "kernel,µs\nk,1\n".encode("latin-1")))


WORDS = st.text("'=+-@ak,\"", min_size=1, max_size=4)


@given(names=st.lists(WORDS, min_size=1, max_size=4, unique=True), word=WORDS)
def test_names_that_begin_as_a_formula_come_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], word: str
) -> None:
    """Of every cell of words in the CSV a spreadsheet makes words, of the counter's name too."""
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    counter = f"{word}_counter"
    numbers = {"time_ms": np.ones(len(names)), counter: -np.arange(1.0, 1 + len(names))}
    write_table(Table("made", {"kernel": names}, numbers), path)
    with path.open(encoding="utf-8", newline="") as file:
        header, *cells = csv.reader(file)
    for cell in (*header, *(row[0] for row in cells)):
        assert len(cell) == 1 or cell[0] not in "=+-@"
    table = read_table(path)
    assert table.text["kernel"] == names
    assert table.numbers.keys() == numbers.keys()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
class TestBothKinds:
    def test_missing_file(self, tmp_path: Path, suffix: str) -> None:
        with refused(f"t.{suffix}: cannot be read: No such file or directory"):
            read_table(tmp_path / f"t.{suffix}")

    def test_directory(self, tmp_path: Path, suffix: str) -> None:
        (tmp_path / f"t.{suffix}").mkdir()
        with refused(f"t.{suffix}: cannot be read: Is a directory"):
            read_table(tmp_path / f"t.{suffix}")

    def test_below_a_file(self, tmp_path: Path, suffix: str) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with refused(f"t.{suffix}: cannot be read: Not a directory"):
            read_table(tmp_path / "file" / f"t.{suffix}")

    def test_empty_file(self, tmp_path: Path, suffix: str) -> None:
        (tmp_path / f"t.{suffix}").touch()
        with refused(f"t.{suffix}: is empty"):
            read_table(tmp_path / f"t.{suffix}")

    def test_metadata_are_kept_with_unknown_keys(self, tmp_path: Path, suffix: str) -> None:
        metadata = {"origin": "made", "faults": {"k": "none, truly µ"}, "mine": [1, None, 2.5]}
        path = tmp_path / f"t.{suffix}"
        write_table(Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, metadata), path)
        assert read_table(path).metadata == metadata

    def test_old_metadata_do_not_stick_to_a_new_table(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"t.{suffix}"
        for metadata in ({"origin": "made"}, {}):
            write_table(Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, metadata), path)
        assert read_table(path).metadata == {}

    def test_what_cannot_be_written_leaves_nothing(self, tmp_path: Path, suffix: str) -> None:
        table = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
        with refused(f"nowhere/t.{suffix}: cannot be written"):
            write_table(table, tmp_path / "nowhere" / f"t.{suffix}")
        (tmp_path / f"t.{suffix}").mkdir()
        with refused(f"t.{suffix}: is a directory"):
            write_table(table, tmp_path / f"t.{suffix}")
        assert [path.name for path in tmp_path.iterdir()] == [f"t.{suffix}"]


class TestWhereMetadataStand:
    def test_beside_a_csv(self, tmp_path: Path) -> None:
        table = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
        write_table(table, tmp_path / "t.v1.csv")
        assert json.loads((tmp_path / "t.v1.meta.json").read_text()) == {"origin": "made"}

    def test_in_the_schema_of_a_parquet(self, tmp_path: Path) -> None:
        table = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
        write_table(table, tmp_path / "t.parquet")
        stored = pq.read_schema(tmp_path / "t.parquet").metadata[b"mlscale"]
        assert json.loads(stored) == {"origin": "made"}
        assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("{", r"t.meta.json: is not valid JSON"),
            ("[]", r"t.meta.json: must hold a JSON object, not list"),
            ("", r"t.meta.json: is empty"),
        ],
    )
    def test_damaged_beside_a_csv(self, tmp_path: Path, content: str, problem: str) -> None:
        path = write_csv(tmp_path / "t.csv", rows())
        (tmp_path / "t.meta.json").write_text(content)
        with refused(problem):
            read_table(path)

    def test_damaged_in_a_parquet(self, tmp_path: Path) -> None:
        table = pa.table({"kernel": ["k"]}).replace_schema_metadata({b"mlscale": b"{"})
        pq.write_table(table, tmp_path / "t.parquet")
        with refused("t.parquet: metadata: is not valid JSON"):
            read_table(tmp_path / "t.parquet")

    def test_a_table_whose_metadata_cannot_be_written_is_not_kept(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "t.csv", rows())
        before = path.read_bytes()
        table = Table("made", {"kernel": ["k"]}, {"x": np.ones(1)}, {"origin": "made"})
        (tmp_path / "t.meta.json").mkdir()
        with pytest.raises(InputError, match=r"meta\.json: is a directory"):
            write_table(table, path)
        assert path.read_bytes() == before


class TestPositive:
    """Where a bad value stands; both kinds of file count rows as their readers show them."""

    @pytest.mark.parametrize(("suffix", "row"), [("csv", 3), ("parquet", 2)])
    @pytest.mark.parametrize(
        ("value", "given"),
        [(0.0, "is 0"), (-1.5, "is -1.5"), (math.inf, "is inf"), (math.nan, "is not given")],
    )
    def test_names_the_row(
        self, tmp_path: Path, suffix: str, row: int, value: float, given: str
    ) -> None:
        content = rows()
        content[1]["time_ms"] = value
        table = read_table(WRITERS[suffix](tmp_path / f"t.{suffix}", content))
        where = f"t.{suffix}: row {row}, column 'time_ms': the value {given}; it must be positive"
        mend = "; leave out the rows without it" if math.isnan(value) else ""
        with refused(f"{where} and finite{mend}$"):
            table.positive("time_ms")

    def test_counts_the_others(self, tmp_path: Path) -> None:
        content = rows()
        for position in (2, 5, 7):
            content[position]["time_ms"] = 0
        table = read_table(write_csv(tmp_path / "t.csv", content))
        with refused(r"row 4, column 'time_ms': .* \(and 2 more rows\)$"):
            table.positive("time_ms")


def test_a_frame_may_name_the_gpu_as_tools_do() -> None:
    """As a file may; a name that the device table lacks stays as it is."""
    for name, key in (("NVIDIA GeForce RTX 3060", "rtx3060"), ("made-gpu", "made-gpu")):
        frame = pd.DataFrame([{"device": name, "kernel": "k", "x": 1.0}])
        assert table_from_frame(frame).text["device"] == [key]
