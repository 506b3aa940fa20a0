"""The tidy table from Parquet: what is read, what is refused, and damage that is noticed."""

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale.data.table_files import read_table, write_table
from mlscale.errors import InputError


class TestParquet:
    def test_holds_what_the_csv_holds(self, tmp_path: Path) -> None:
        from_csv = read_table(write_csv(tmp_path / "table.csv", rows()))
        from_parquet = read_table(write_parquet(tmp_path / "table.parquet", rows()))
        assert from_parquet.text == from_csv.text
        assert list(from_parquet.numbers) == list(from_csv.numbers)
        for name, values in from_csv.numbers.items():
            assert same_bits(from_parquet.numbers[name], values)

    @pytest.mark.parametrize("name", ["table.parquet", "table.pq", "TABLE.PARQUET"])
    def test_is_known_by_its_suffix(self, tmp_path: Path, name: str) -> None:
        assert len(read_table(write_parquet(tmp_path / name, rows()))) == 8

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([1, None], pa.int64()),
            pa.array([1.0, None], pa.float32()),
            pa.array([1.0, math.nan], pa.float64()),
        ],
        ids=["null-int", "null-float", "nan"],
    )
    def test_null_is_nan_and_never_zero(self, tmp_path: Path, column: pa.Array) -> None:
        pq.write_table(pa.table({"kernel": ["a", "b"], "x": column}), tmp_path / "t.parquet")
        values = read_table(tmp_path / "t.parquet").numbers["x"]
        assert values[0] == 1.0
        assert math.isnan(values[1])

    def test_a_column_of_nulls_alone_is_nan(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"kernel": ["a"], "x": pa.nulls(1)}), tmp_path / "t.parquet")
        assert math.isnan(read_table(tmp_path / "t.parquet").numbers["x"][0])

    def test_a_dictionary_of_names_is_text(self, tmp_path: Path) -> None:
        names = pa.array(["b", "a", "b"]).dictionary_encode()
        pq.write_table(pa.table({"kernel": names, "x": [1, 2, 3]}), tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").text["kernel"] == ["b", "a", "b"]

    def test_a_count_beyond_53_bits_is_rounded(self, tmp_path: Path) -> None:
        # Hand: 2 ** 53 + 2 has a double of its own; the largest 64-bit counts are rounded.
        counts = pa.array([2**53 + 2, 2**63 - 1], pa.int64())
        pq.write_table(pa.table({"kernel": ["a", "b"], "x": counts}), tmp_path / "t.parquet")
        values = read_table(tmp_path / "t.parquet").numbers["x"]
        assert values.tolist() == [9007199254740994.0, 9.223372036854775807e18]

    def test_the_index_that_pandas_saves_is_no_counter(self, tmp_path: Path) -> None:
        # As the unnamed leading column of a CSV.
        import pandas as pd

        frame = pd.DataFrame({"kernel": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, index=[0, 1, 5])
        frame.to_parquet(tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").columns == ("kernel", "x")

    def test_text_where_a_number_belongs(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"kernel": ["a"], "time_ms": ["fast"]}), path)
        with refused("t.parquet: column 'time_ms' holds string; numbers are needed there"):
            read_table(path)

    def test_a_missing_name(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"kernel": ["a", None], "x": [1, 2]}), path)
        with refused("t.parquet: row 2, column 'kernel': is empty"):
            read_table(path)

    def test_columns_of_one_name(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        pq.write_table(twice, path)
        with refused("t.parquet: two columns have the same name"):
            read_table(path)

    def test_no_rows(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "t.parquet")
        with refused("t.parquet: has no rows"):
            read_table(tmp_path / "t.parquet")

    @pytest.mark.parametrize("content", [b"kernel,x\nk,1\n", b"PAR1", b"\x00" * 100])
    def test_what_is_no_parquet(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "t.parquet").write_bytes(content)
        with refused("t.parquet: is not a readable Parquet file"):
            read_table(tmp_path / "t.parquet")

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "t.parquet", rows())
        path.write_bytes(path.read_bytes()[:-20])
        with refused("t.parquet: is not a readable Parquet file"):
            read_table(path)

    def test_a_name_that_is_not_text_any_more(self, tmp_path: Path) -> None:
        # One damaged byte in the data, uncompressed so that it is found.
        path = tmp_path / "t.parquet"
        table = pa.table({"kernel": ["damaged"], "x": [1.0]})
        pq.write_table(table, path, compression="none", use_dictionary=False)
        path.write_bytes(path.read_bytes().replace(b"damaged", b"dam\xffged"))
        with refused("t.parquet: "):
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

    def test_any_damaged_bit_is_noticed_or_changes_nothing(self, tmp_path: Path) -> None:
        # The footer holds the names of the columns, the number of rows and the metadata.
        path = tmp_path / "t.parquet"
        table = replace(read_table(write_csv(tmp_path / "t.csv", rows())), metadata={"x": "y"})
        write_table(table, path)
        content = path.read_bytes()
        for bit in range(5, 8 * len(content), 83):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            with suppress(InputError):
                again = read_table(path)
                assert (again.text, again.metadata) == (table.text, table.metadata)
                assert again.numbers.keys() == table.numbers.keys()
                for name, values in table.numbers.items():
                    np.testing.assert_array_equal(again.numbers[name], values)

    @pytest.mark.parametrize("name", ["loads", "kernel", "time_ms"])
    def test_a_damaged_column_name_is_noticed(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "t.parquet"
        write_table(read_table(write_csv(tmp_path / "t.csv", rows())), path)
        content, place = path.read_bytes(), 0
        assert content.count(name.encode()) > 1  # in the schema, and for each row group
        while (place := content.find(name.encode(), place + 1)) >= 0:
            damaged = bytearray(content)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            try:
                columns = read_table(path).columns
            except InputError as error:
                assert "is damaged: column" in str(error)  # noqa: PT017
            else:
                assert name in columns
