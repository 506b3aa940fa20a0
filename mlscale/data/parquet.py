"""Tidy tables in Parquet, whole or a row group at a time, with their metadata and checksums."""

import binascii
import json
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.arrow import numpy_floats
from mlscale.data.table import IDENTITY, SAVED_INDEX, Table, as_read, require_columns
from mlscale.errors import InputError, extra_named
from mlscale.files import parse_json_object, read_bytes, whole_file

_SUFFIXES = (".parquet", ".pq")
_METADATA_KEY = b"mlscale"
_CHECKSUM_KEY = b"mlscale_crc32"
_LARGEST_BYTES = 4 << 30
_ROWS_WRITTEN = 100_000  # at a time, at least
_BUFFER_BYTES = 1 << 16  # of a column that is read part by part


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name."""
    return path.suffix.lower() in _SUFFIXES


@extra_named("Parquet")
def read_parquet(path: Path, needs: Collection[str] = ()) -> Table:
    """Read a whole file as it is. Raises InputError, also where a column it needs is missing."""
    import pyarrow as pa

    with parquet_file(path, pa.BufferReader(read_bytes(path))) as file:
        _check_size(path, file.metadata)
        arrow = file.read()
        if arrow.num_rows != file.metadata.num_rows:
            raise InputError(f"{path}: is damaged: it has {arrow.num_rows} of its rows")
    if arrow.num_rows == 0:
        raise InputError(f"{path}: has no rows")
    require_columns(str(path), needs, arrow.schema.names)
    return _table(arrow, path)


def read_row_group(
    path: Path, number: int, most: int, names: Sequence[str] | None = None
) -> Iterator[Table]:
    """Read a row group, at most so many rows at a time, each part a table.

    names: of the columns, by default all. Raises InputError, naming the row group.
    """
    import pyarrow as pa

    where = f"{path}: row group {number}"
    with parquet_file(path, None, where) as file:
        groups = [file.metadata.row_group(g).num_rows for g in range(number + 1)]
        begin = end = sum(groups[:-1])
        for batch in file.iter_batches(most, [number], names):
            lines = tuple(range(end + 1, end + 1 + batch.num_rows))
            table = replace(_table(pa.Table.from_batches([batch]), path), lines=lines)
            table.check_text()
            yield as_read(table)
            end += batch.num_rows
        if end - begin != groups[-1]:
            raise InputError(f"{where}: is damaged: it has {end - begin} of its rows")


@contextmanager
def parquet_file(path: Path, content: Any = None, where: str = "") -> Iterator[Any]:
    """Give an open ParquetFile. What cannot be read of it in the block is an InputError.

    content: the file's, by default read from the path as needed; where: what the message names.
    """
    with extra_named("Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    try:
        reading = {} if content else {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
        with pq.ParquetFile(content or path, page_checksum_verification=True, **reading) as file:
            _check_names(path, file)
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{path}: two columns have the same name")
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError, binascii.Error) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{where or path}: is not a readable Parquet file: {reason}") from None


def _table(arrow: Any, path: Path) -> Table:
    """The columns and metadata of an Arrow table or record batch. Raises InputError."""
    pairs = arrow.schema.metadata or {}
    metadata = pairs.get(_METADATA_KEY, b"{}")
    if pairs.get(_CHECKSUM_KEY, _checksum(metadata)) != _checksum(metadata):
        raise InputError(f"{path}: is damaged: its metadata do not fit their checksum")
    table = Table(str(path), {}, {}, parse_json_object(metadata, f"{path}: metadata"))
    for name in arrow.schema.names:
        if name in IDENTITY:
            table.text[name] = _words(arrow[name], f"{path}: column '{name}'")
        elif not name.startswith(SAVED_INDEX):
            table.numbers[name] = _numbers(arrow[name], f"{path}: column '{name}'")
    return table


def _words(column: Any, where: str) -> list[str]:
    """The cells of a column of names, empty where null. Raises InputError."""
    try:
        cells = column.to_pylist()
    except UnicodeDecodeError:
        cells = [b""]
    if any(isinstance(cell, bytes) for cell in cells):
        raise InputError(f"{where} holds damaged text")
    return ["" if cell is None else str(cell) for cell in cells]


def _numbers(column: Any, where: str) -> Floats:
    """The cells of a column of numbers, NaN where null. Raises InputError."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return numpy_floats(column)
    raise InputError(f"{where} holds {column.type}; numbers are needed there, or take it out")


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse what a few compressed bytes blow up to. metadata: of a Parquet file."""
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    in_memory = 8 * metadata.num_rows * metadata.num_columns
    if max(unpacked, in_memory) > _LARGEST_BYTES:
        raise InputError(
            f"{path}: unpacks to {metadata.num_rows} rows x {metadata.num_columns} columns, more "
            f"than {_LARGEST_BYTES >> 30} GiB; is it a table of kernels?"
        )


def _check_names(path: Path, file: Any) -> None:
    """Refuse names that are not those of the Arrow schema that the writer put beside them.

    A damaged byte would rename a column: no checksum covers the names. file: a ParquetFile.
    """
    import pyarrow as pa

    beside = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if beside is None:
        return
    names = pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(beside))).names
    for name, again in zip(file.schema_arrow.names, names, strict=False):
        if name != again:
            raise InputError(f"{path}: is damaged: column {name!a} is called {again!a} too")


@extra_named("Parquet")
def write_tables(
    path: Path, tables: Iterator[Any], footer: Callable[[], dict[str, str]] = dict
) -> None:
    """Write Arrow tables of one schema as one file, whole or not at all; none of no table.

    Raises InputError. footer: gives, once all are written, what else the file says of itself.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(tables, None)
    if first is None:
        return
    with (
        whole_file(path) as temporary,
        pq.ParquetWriter(
            temporary, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        waiting, rows = [first], first.num_rows
        for table in tables:
            if rows >= _ROWS_WRITTEN:
                writer.write_table(pa.concat_tables(waiting))
                waiting, rows = [], 0
            waiting.append(table)
            rows += table.num_rows
        writer.write_table(pa.concat_tables(waiting))
        writer.add_key_value_metadata(footer())


@extra_named("Parquet")
def write_parquet(table: Table, path: Path) -> None:
    """Write a tidy table whole or not at all. Raises InputError."""
    import pyarrow as pa

    arrow = pa.table({**table.text, **table.numbers})
    content = json.dumps(table.metadata).encode()
    metadata = {_METADATA_KEY: content, _CHECKSUM_KEY: _checksum(content)}
    write_tables(path, iter([arrow.replace_schema_metadata(metadata)]))


def _checksum(content: bytes) -> bytes:
    return str(zlib.crc32(content)).encode()
