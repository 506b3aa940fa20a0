"""Arrow and NumPy: arrays of shared memory, and large CSV files.

Arrow's own conversions import pandas, which takes longer than most of the work here.

Tidy tables in Parquet, whole or a row group at a time, with their metadata and checksums.

Tidy tables read from and written to CSV or Parquet, with their metadata.

CSV is read with the standard library, so that a profile needs NumPy and nothing heavier; a large
file, which would take seconds, with Arrow.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats
from mlscale.files import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

import binascii
import csv
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from mlscale.data.devices import find_device
from mlscale.data.grid import AXES
from mlscale.data.table import (
    IDENTITY,
    SAVED_INDEX,
    Table,
    as_read,
    require_columns,
    with_device_keys,
)
from mlscale.errors import InputError, extra_named
from mlscale.files import parse_json_object, whole_file, write_text
from mlscale.text import from_spreadsheet_cell, plain_number, shortened, spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd


_NEEDS_CARE = (b'"', b"\r", b"\0")  # a CSV file with one of these is not read by Arrow


def has_arrow() -> bool:
    """Whether Arrow is installed, which is quick on large files of text; all else works without."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return False
    return pa is not None


def arrow_numbers(values: NDArray[Any]) -> "pa.Array":
    """Return numbers or truth values as an Arrow array, null for NaN."""
    import pyarrow as pa

    given = pa.py_buffer(np.packbits(values == values, bitorder="little"))  # noqa: PLR0124
    content = np.packbits(values, bitorder="little") if values.dtype == bool else values
    buffers = [given, pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def arrow_strings(words: Iterable[str]) -> "pa.Array":
    """Return words as an Arrow array."""
    import pyarrow as pa

    encoded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numpy_values(array: "pa.Array") -> NDArray[Any]:
    """Return an Arrow array of numbers without nulls, which shares its memory."""
    kind, (_, content) = np.dtype(array.type.to_pandas_dtype()), array.buffers()
    return np.frombuffer(content, kind, len(array), kind.itemsize * array.offset)


def numpy_floats(column: "pa.ChunkedArray") -> Floats:
    """Return a column of numbers as floats, NaN for null."""
    import pyarrow as pa

    array = column.cast(pa.float64(), safe=False).combine_chunks()
    given, values = array.buffers()[0], numpy_values(array)
    if given is None:
        return values
    bits = np.frombuffer(given, np.uint8)
    is_given = np.unpackbits(bits, bitorder="little", count=array.offset + len(array))
    return np.where(is_given[array.offset :], values, np.nan)


def read_plain_csv(path: Path, text: Collection[str]) -> dict[str, list[str] | Floats] | None:
    """Read the columns of a CSV file, ten times as fast as the standard library.

    text: the columns that hold words; all others hold numbers, NaN where a cell is empty. The
    answer is None for a file with anything beyond that, such as quotes, blank lines, or an error.
    """
    import pyarrow as pa
    from pyarrow import csv

    content = read_bytes(path)
    if any(mark in content for mark in _NEEDS_CARE):
        return None
    try:
        first = content.partition(b"\n")[0].decode("utf-8-sig")
        names = [name.strip() for name in first.split(",")]
        if "" in names or len(set(names)) < len(names):
            return None
        types = {name: pa.string() if name in text else pa.float64() for name in names}
        arrow = csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(column_names=names, skip_rows=1),
            csv.ParseOptions(quote_char=False),
            csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    if arrow.num_rows != lines - 1:
        return None
    return {
        name: arrow[name].to_pylist() if name in text else numpy_floats(arrow[name])
        for name in names
    }


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


_LONGEST_HEADER = 1 << 20
_LARGE_CSV_BYTES = 1 << 20
_LARGEST_CSV_BYTES = 4 << 30
_NOT_GIVEN = ("", "nan", "na", "n/a", "null", "none", "-")


def read_table(path: Path | str, needs: Collection[str] = ()) -> Table:
    """Read a tidy table, CSV or (by its suffix) Parquet. Raises InputError.

    needs: columns without which it is refused before a cell is read.
    Names are taken without escape sequences and control characters.
    A device of one's own that its metadata describe is known by its key from then on.
    """
    path = Path(path)
    table = read_parquet(path, needs) if is_parquet(path) else _read_csv(path, needs)
    table.check_text()
    return as_read(table)


def _read_csv(path: Path, needs: Collection[str]) -> Table:
    size = 0
    with suppress(OSError):  # the reader says why it cannot be read
        size = path.stat().st_size if path.is_file() else 0
    if size > _LARGEST_CSV_BYTES:
        raise InputError(
            f"{path}: has more than {_LARGEST_CSV_BYTES >> 30} GiB; split it, or make Parquet of "
            "it, of which predict and advise take a fleet of any size (-o DIR/)"
        )
    is_plain = size > _LARGE_CSV_BYTES and has_arrow()
    table = (_read_plain_csv(path) if is_plain else None) or _read_any_csv(path, needs)
    for name, cells in table.text.items():
        table.text[name] = [from_spreadsheet_cell(cell) for cell in cells]
    numbers = {from_spreadsheet_cell(name): values for name, values in table.numbers.items()}
    table = replace(table, numbers=numbers)
    beside = path.with_suffix(".meta.json")
    if beside.is_file():
        table.metadata.update(parse_json_object(read_bytes(beside), str(beside)))
    return table


def is_tidy(path: Path) -> bool:
    """Tell a tidy table from a profiler's file: it is Parquet, or its header has the columns.

    A file that cannot be read counts as one, so that its reader says why.
    """
    if is_parquet(path):
        return True
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            header = next(csv.reader([file.readline(_LONGEST_HEADER)]), [])
    except csv.Error:
        return False
    except OSError:
        return True
    names = {name.strip().lstrip("\ufeff") for name in header}
    return len(names & {"kernel", *AXES, "time_ms"}) > 1


def _read_any_csv(path: Path, needs: Collection[str]) -> Table:
    header, rows, lines = read_csv_rows(path)
    require_columns(str(path), needs, header)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    text = {name: [*columns[name]] for name in header if name in IDENTITY}
    table = Table(str(path), text, {}, {}, lines)
    for name in header:
        if not (name in IDENTITY or name.startswith(SAVED_INDEX)):
            table.numbers[name] = parse_numbers(columns[name], name, table)
    return table


def _read_plain_csv(path: Path) -> Table | None:
    """Read a file whose rows are a line each, without quotes; None where it is another."""
    columns = read_plain_csv(path, IDENTITY)
    if columns is None:
        return None
    table = Table(str(path), {}, {}, {}, tuple(range(2, 2 + len(next(iter(columns.values()))))))
    for name, column in columns.items():
        if isinstance(column, list):
            table.text[name] = column
        elif not name.startswith(SAVED_INDEX):
            table.numbers[name] = column
    return table


def read_csv_rows(
    path: Path, repeated: Collection[str] = ()
) -> tuple[list[str], list[list[str]], tuple[int, ...]]:
    """Read header, rows, and the line at which each row begins; no cell is interpreted.

    Blank lines are passed over; a leading column without a name (a saved index) is left out.
    repeated: names that may come again, as NAME.1 the second time. Raises InputError.
    """
    numbered = _numbered_rows(path)
    if not numbered or not any(name.strip() for name in numbered[0][1]):
        raise InputError(f"{path}: is empty")
    (first, names), *body = numbered
    header = [name.strip() for name in names]
    for name in set(repeated) & set(header):
        again = header.index(name) + 1
        header[again:] = [f"{n}.1" if n == name else n for n in header[again:]]
    if not body:
        raise InputError(f"{path}: has a header but no rows")
    count = Counter(header)
    for name in header[1:]:
        if not name or count[name] > 1:
            problem = f"column '{name}' is there twice"
            if not name:
                problem = f"column {header.index('', 1) + 1} has no name; give it one, or delete it"
            raise InputError(f"{path}: row {first}: {problem}")
    is_parted = any(mark in header[0] for mark in ";\t") or max(len(row) for _, row in body) > 1
    if len(header) == 1 and is_parted:
        raise InputError(
            f"{path}: row {first}: '{shortened(header[0])}' is one column; the first row names the "
            "columns, with commas between them, and numbers have a decimal point"
        )
    for line, row in body:
        if len(row) != len(header):
            raise InputError(
                f"{path}: row {line}: has {len(row)} fields, the header has {len(header)}"
            )
    begin = 0 if header[0] else 1
    rows = [row[begin:] if begin else row for _, row in body]
    return header[begin:], rows, tuple(line for line, _ in body)


def _numbered_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Every row that is not blank, with the line at which it begins."""
    reader = csv.reader(io.StringIO(_decode(path), newline=""))
    numbered, begin = [], 1
    try:
        for row in reader:
            if row:
                numbered.append((begin, row))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}: row {reader.line_num}: is not valid CSV: {error}") from None
    return numbered


def _decode(path: Path) -> str:
    content = read_bytes(path)
    if content.startswith(b"PK\x03\x04"):
        raise InputError(
            f"{path}: is a ZIP archive, as mlscale's models and spreadsheets (.xlsx) are; a table "
            "is CSV or Parquet: save a spreadsheet as 'CSV UTF-8'"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if text.lstrip().startswith(("{", "[")):
        raise InputError(
            f"{path}: is JSON; a table is CSV or Parquet, and 'mlscale import' makes one of "
            "profilers' traces, monitors' logs and kernel_tuner's files"
        )
    if "\0" in text:
        raise InputError(
            f"{path}: is not a text file in UTF-8; a table is CSV (of a spreadsheet: 'CSV UTF-8'), "
            "or Parquet named *.parquet"
        )
    return text


def parse_numbers(cells: tuple[str, ...], name: str, table: Table) -> Floats:
    """Parse a column of numbers; NaN where a cell is empty or says so. Raises InputError."""
    together = "".join(cells)
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            return np.fromiter(map(float, cells), np.float64, len(cells))
    values = np.full(len(cells), np.nan)
    for position, cell in enumerate(cells):
        if cell.strip().casefold() not in _NOT_GIVEN:
            try:
                values[position] = plain_number(cell)
            except ValueError:
                hint = ""
                if "," in cell:
                    hint = "; write it with a decimal point, and nothing between thousands"
                elif not any(map(str.isdigit, together)):
                    hint = "; a column of words is no counter, take it out"
                raise InputError(
                    f"{table.source}: {table.row(position)}, column '{name}': "
                    f"'{cell}' is not a number{hint}"
                ) from None
    return values


def table_from_frame(
    frame: "pd.DataFrame", needs: Collection[str] = (), device: str | None = None
) -> Table:
    """Take over a pandas DataFrame; its named index levels are columns too. Raises InputError.

    needs: columns without which it is refused before a cell is read. device: of all rows.
    """
    if not hasattr(frame, "columns"):
        raise InputError(f"frame must be a pandas DataFrame, not {type(frame).__name__}")
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    table = Table("the frame", {}, {})
    if not frame.columns.is_unique:
        raise InputError(f"{table.source}: two columns have the same name")
    if not len(frame):
        raise InputError(f"{table.source}: has no rows")
    if device is not None and "device" not in frame.columns:
        frame = frame.assign(device=device)
    require_columns(table.source, needs, [str(name) for name in frame.columns])
    for name, column in frame.items():
        if name in IDENTITY:
            cells = column.astype(object).where(column.notna(), "")
            table.text[str(name)] = cells.map(str).tolist()
            continue
        if str(name).startswith(SAVED_INDEX):
            continue
        table.numbers[str(name)] = _floats_of(column, f"{table.source}: column '{name}'")
    table.check_text()
    table = with_device_keys(table)
    if device is not None:
        _call_device(table, device)
    return table


def _floats_of(column: "pd.Series[Any]", where: str) -> Floats:
    """The cells of a frame's column, NaN where not given. Raises InputError."""
    is_of_time = column.dtype.kind in "mM"  # dates, and spans of time
    with suppress(TypeError, ValueError):
        if not is_of_time:
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
    raise InputError(f"{where} holds {column.dtype}; numbers are needed there, or take it out")


def _call_device(table: Table, device: str) -> None:
    """Name the device of all rows. Raises InputError where they are of several, or of another."""
    meant, said = find_device(device.strip()), sorted({*table.text["device"]})
    key = device if meant is None else meant.key
    if len(said) > 1 or (said != [key] and find_device(said[0]) is not None):
        raise InputError(
            f"{table.source}: column 'device' holds {', '.join(said)}, but the device is said to "
            f"be '{device}'; take the rows of one device, and leave out what you say of it"
        )
    table.text["device"] = [key] * len(table)


def write_table(table: Table, path: Path | str) -> None:
    """Write a tidy table, CSV or (by its suffix) Parquet, with its metadata. Raises InputError."""
    path = Path(path)
    if is_parquet(path):
        write_parquet(table, path)
        return
    words = [map(spreadsheet_cell, cells) for cells in table.text.values()]
    columns = [*words, *(_cells(values) for values in table.numbers.values())]
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(spreadsheet_cell, table.columns))
        writer.writerows(zip(*columns, strict=True))
        file.flush()
        if table.metadata:
            write_text(path.with_suffix(".meta.json"), json.dumps(table.metadata, indent=1) + "\n")
    if not table.metadata:
        path.with_suffix(".meta.json").unlink(missing_ok=True)


def _cells(values: Floats) -> list[str]:
    return ["" if np.isnan(v) else repr(v).removesuffix(".0") for v in values.tolist()]
