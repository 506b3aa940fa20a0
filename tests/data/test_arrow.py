"""Tests for mlscale.data.arrow: what Arrow reads and converts is what the slow ways give."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.data import table_files
from mlscale.data.table import Table
from mlscale.data.table_files import (
    arrow_numbers,
    arrow_strings,
    numpy_floats,
    read_plain_csv,
    read_table,
    write_table,
)
from mlscale.errors import InputError

PLAIN = "kernel,time_ms,loads\na,1.5,\nb,2,3e5\n"
numbers = st.lists(st.floats(width=64, allow_infinity=False), min_size=1, max_size=9)


@given(numbers)
def test_numbers_come_back_with_nan_for_null(values: list[float]) -> None:
    array = np.array(values)
    column = pa.chunked_array([arrow_numbers(array), arrow_numbers(array)])
    assert column.null_count == 2 * np.isnan(array).sum()
    np.testing.assert_array_equal(numpy_floats(column), np.concatenate([array, array]))
    np.testing.assert_array_equal(numpy_floats(column[1:]), [*array[1:], *array])


def test_words_come_back() -> None:
    words = ["", "a", "größer", "a"]
    assert arrow_strings(words).to_pylist() == words


@given(st.lists(st.floats(), min_size=1, max_size=9))
def test_a_plain_file_reads_as_it_was_written(values: list[float]) -> None:
    kernels = [f"kernel {number}" for number in range(len(values))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.csv"
        write_table(Table("t", {"kernel": kernels}, {"time_ms": np.array(values)}), path)
        columns = read_plain_csv(path, ("kernel",))
    assert columns is not None
    assert columns["kernel"] == kernels
    np.testing.assert_array_equal(columns["time_ms"], values)


@pytest.mark.parametrize("newline", ["\n", ""])
def test_a_large_file_is_read_to_the_same_table(
    newline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + PLAIN.rstrip("\n") + newline, encoding="utf-8")
    small = read_table(path)
    assert read_plain_csv(path, ("kernel",)) is not None
    monkeypatch.setattr(table_files, "_LARGE_CSV_BYTES", 0)
    large = read_table(path)
    assert (large.text, large.lines) == (small.text, small.lines)
    assert large.numbers.keys() == small.numbers.keys()
    for name, values in small.numbers.items():
        np.testing.assert_array_equal(large.numbers[name], values)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("a,", '"a",'),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("b,", "\nb,"),
        PLAIN.replace("1.5", "n/a"),
        PLAIN.replace("kernel,", ",kernel,"),
        PLAIN.replace("loads", "time_ms"),
        PLAIN.replace("2,", "2,1,"),
        PLAIN.replace("2,", "two,"),
        PLAIN.replace("a,", "\0,"),
    ],
)
def test_what_needs_care_is_left_to_the_careful_reader(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_plain_csv(path, ("kernel",)) is None

    def outcome() -> object:
        try:
            table = read_table(path)
        except InputError as error:
            return str(error)
        return table.text, table.lines, {k: repr(v) for k, v in table.numbers.items()}

    small = outcome()
    monkeypatch.setattr(table_files, "_LARGE_CSV_BYTES", 0)
    assert outcome() == small


def test_parquet_is_read_without_pandas(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    numbers = {"time_ms": np.array([1.0, 2.0]), "loads": np.array([np.nan, 3.0])}
    write_table(Table("t", {"kernel": ["a", "b"]}, numbers), path)
    code = (
        "import sys; from mlscale.data.table_files import read_table; "
        "read_table(sys.argv[1]); print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output == "False\n"
