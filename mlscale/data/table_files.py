"""Tidy tables in files: read from CSV and Parquet, taken over from pandas, and written.

A CSV file is read by the standard library, so that a profile needs NumPy and nothing heavier. A
large one is read by Arrow where that is installed, some ten times as fast and to the same table;
what Arrow stumbles over is read again by the standard library, which names the row.

Arrow's own conversions to Python import pandas, which takes longer than most of the work here:
numbers pass between Arrow and NumPy in memory that they share.
"""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats
from mlscale.data.column_names import (
    NO_COLUMNS,
    RATED,
    RATED_UNITS,
    UNITS,
    Columns,
    read_title,
    source_meant,
)
from mlscale.data.devices import find_device, register_facts
from mlscale.data.grid import AXES
from mlscale.data.table import (
    IDENTITY,
    MEASURED,
    SAVED_INDEX,
    Table,
    divided,
    mapped,
    require_header,
    with_device_keys,
)
from mlscale.errors import InputError, extra_named, warn
from mlscale.files import (
    MOST_TIMES,
    MOST_UNPACKED,
    HeldFile,
    hold,
    parse_json_object,
    read_bytes,
    whole_file,
    write_text,
)
from mlscale.parameters import command, parameter
from mlscale.text import (
    delimiter_of,
    from_spreadsheet_cell,
    plain_number,
    spreadsheet_cell,
    with_point,
    without_controls,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_LARGEST_BYTES = 4 << 30  # larger files are not read as a whole
_LARGE_CSV_BYTES = 1 << 20  # Arrow saves more time than its import takes
_PEEKED = 8192  # bytes by which a file that is no text is told
_BLOCK_ROWS = 10_000  # so many are held as text at a time
_NOT_GIVEN = ("", "nan", "nan(ind)", "-nan(ind)", "na", "n/a", "null", "none", "-", "auto")
_LIKE_A_NUMBER = re.compile(r"[\s\d_.,+-]*(e[+-]?\d+|x[\da-f]+|inf|infinity)?\s*", re.IGNORECASE)

_PARQUET = (".parquet", ".pq")
_METADATA_KEY = b"mlscale"
_ROWS_WRITTEN = 100_000  # at a time, at least
_BUFFER_BYTES = 1 << 16  # so much of a column is read at a time


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet by its name."""
    return path.suffix.lower() in _PARQUET


def is_tidy(file: Path | HeldFile, columns: Columns = NO_COLUMNS) -> bool:
    """Whether a file is a tidy table: it is Parquet, or its header has the columns.

    columns: its names for them, see `mapped`. A file that cannot be read counts as one, so that
    its reader says why.
    """
    if isinstance(file, Path) and is_parquet(file):
        return True
    try:
        line = hold(file).first_line
        header = next(csv.reader([line], delimiter=delimiter_of(line)), [])
    except csv.Error:
        return False
    except InputError:
        return True
    names = {name.strip().lstrip("\ufeff") for name in header}
    called = [str(said) for said in columns.values()]
    called += [said.rpartition(":")[0] for said in called]
    is_of_runs = "kernel" in names or {"engine_mhz", "time_ms"} <= names
    if not is_of_runs and any((t := read_title(name)) and t.what == "moment" for name in names):
        return False  # a log
    return len((names - {""}) & {"kernel", *AXES, "time_ms", "power_w", *called}) > 1


def read_table(
    file: Path | str | HeldFile,
    needs: Collection[str] = (),
    columns: Columns = NO_COLUMNS,
    leaves_texts: bool = True,
) -> Table:
    """Read a tidy table, CSV or (by its suffix) Parquet. Raises InputError.

    needs: columns without which it is refused before a cell is read. columns: see `mapped`.
    leaves_texts: see `read_csv`; else such a column is refused.
    Names are taken without escape sequences and control characters.
    A device of your own that its metadata describe is known by its key from then on.
    """
    file = Path(file) if isinstance(file, str) else file
    if isinstance(file, Path) and is_parquet(file):
        return _checked(_read_parquet(file, needs, columns, leaves_texts))
    held = hold(file)
    table = read_csv(held, needs=needs, columns=columns, leaves_texts=leaves_texts)
    plain = held.path.with_suffix("") if held.packer else held.path
    beside = plain.with_suffix(".meta.json")
    if beside.is_file():
        table.metadata.update(parse_json_object(read_bytes(beside), str(beside)))
    return _checked(table)


def write_table(table: Table, path: Path | str) -> None:
    """Write a tidy table, CSV or (by its suffix) Parquet, with its metadata. Raises InputError."""
    path = Path(path)
    if is_parquet(path):
        with extra_named("Parquet"):
            import pyarrow as pa
        arrow = pa.table({**table.text, **table.numbers})
        metadata = {_METADATA_KEY: json.dumps(table.metadata)}
        write_tables(path, iter([arrow.replace_schema_metadata(metadata)]))
        return
    words = [map(spreadsheet_cell, cells) for cells in table.text.values()]
    numbers = [map(_csv_number, values.tolist()) for values in table.numbers.values()]
    beside = path.with_suffix(".meta.json")
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(spreadsheet_cell, table.columns))
        writer.writerows(zip(*words, *numbers, strict=True))
        file.flush()
        if table.metadata:
            write_text(beside, json.dumps(table.metadata, indent=1) + "\n")
    if not table.metadata:
        beside.unlink(missing_ok=True)


def _csv_number(value: float) -> str:
    return "" if value != value else repr(value).removesuffix(".0")  # noqa: PLR0124


def _checked(table: Table) -> Table:
    """The table with names that can be shown, and devices by their keys. Raises InputError."""
    table.check_text()
    for name, cells in table.text.items():
        table.text[name] = _renamed(cells, without_controls)
    register_facts(table.metadata, table.source)
    return with_device_keys(_completed(table))


def _completed(table: Table) -> Table:
    """Times of RATED_UNITS of work by a rate, and powers by energies, where a table lacks them."""
    told, numbers = [t for name in table.numbers if (t := read_title(name))], {**table.numbers}
    rates, energies = ([t for t in told if t.what == what] for what in ("rate", "energy_j"))
    if len(rates) == 1 and not source_meant("time_ms", table.columns):
        name = rates[0].text
        warn("M02", f"{table.source}: time and energy are for {RATED}, by column '{name}'", "note")
        numbers["time_ms"] = 1e3 * RATED_UNITS / table.positive(name)
        del numbers[name]
    if len(energies) == 1 and "time_ms" in numbers and not source_meant("power_w", table.columns):
        joules = UNITS["energy"][energies[0].unit or "J"] * numbers[energies[0].text]
        if (joules > 0).all():
            warn("T05", f"{table.source}: power is '{energies[0].text}' over time_ms", "note")
            numbers["power_w"] = 1e3 * joules / numbers["time_ms"]
            del numbers[energies[0].text]
    return replace(table, numbers=numbers)


def _renamed(cells: list[str], rename: Callable[[str], str]) -> list[str]:
    """The cells under other names; each distinct one is renamed once."""
    names = {cell: rename(cell) for cell in set(cells)}
    is_same = all(cell == name for cell, name in names.items())
    return cells if is_same else [names[cell] for cell in cells]


def read_csv(
    file: Path | HeldFile,
    words: Collection[str] = IDENTITY,
    needs: Collection[str] = (),
    repeated: Collection[str] = (),
    columns: Columns = NO_COLUMNS,
    leaves_texts: bool = False,
) -> Table:
    """Read a CSV file with a header: columns named in `words` as text, all others as numbers.

    needs: columns without which it is refused before a cell is read. repeated: names that may come
    again, as NAME.1 the second time. columns: see `mapped`; those called '' are not read.
    leaves_texts: a further column of words, and not of what was measured, is left out with a
    warning. Blank lines are skipped, a saved index is left out. Raises InputError, which names
    row and column.
    """
    held = hold(file)
    path = held.path
    with _open_csv(held) as reader:
        header = _read_header(path, reader, repeated)
        left_out, columns = divided(columns)
        header = ["" if name in left_out else name for name in header]
        require_header(str(path), needs, {*header, *columns})
        words = {*words, *_words_of(columns)}
        texts = {name for name in header if leaves_texts and _may_be_text(name, columns)}
        table = None
        is_plain = held.encoding == "utf-8-sig" and reader.dialect.delimiter == ","
        if is_plain and held.size_bytes > _LARGE_CSV_BYTES and has_arrow():
            table = _csv_by_arrow(held, header, words, reader.line_num)
        if table is None:
            table = _csv_by_rows(path, header, words, reader, texts)
    for name, cells in table.text.items():
        table.text[name] = _renamed(cells, from_spreadsheet_cell)
    return mapped(table, columns)


def _words_of(columns: Columns) -> Iterator[str]:
    """The columns of a file that hold words by what `columns` says."""
    return (str(said) for name, said in columns.items() if name in IDENTITY)


def _may_be_text(name: str, columns: Columns) -> bool:
    """Whether a column is not of what was measured, nor one that `columns` takes for it."""
    title = read_title(name)
    is_measured = title is not None and title.what not in ("moment", "name", "gpu")
    said = [*map(str, columns.values())]
    taken = (*said, *(one.rpartition(":")[0] for one in said))
    return not (is_measured or _is_index(name) or name in (*MEASURED, *taken))


def _are_words(cells: Iterable[str]) -> bool:
    """Whether most cells that are given are words, and no numbers however they are written."""
    counts = {c: n for c, n in Counter(cells).items() if c.strip().casefold() not in _NOT_GIVEN}
    words = sum(n for cell, n in counts.items() if not _LIKE_A_NUMBER.fullmatch(cell))
    return 2 * words > sum(counts.values())


def _tell_texts(source: Path | str, texts: Collection[str]) -> None:
    """Warn of columns of words that are left out."""
    if texts:
        warn("T09", f"{source}: left out, as they contain text: {', '.join(map(repr, texts))}")


def csv_header(file: Path | HeldFile, repeated: Collection[str] = ()) -> list[str]:
    """The names of the columns of a CSV file, see `read_csv`. Raises InputError."""
    held = hold(file)
    with _open_csv(held) as reader:
        return _read_header(held.path, reader, repeated)


@contextmanager
def _open_csv(held: HeldFile) -> Iterator[Any]:
    """Give the rows of a file. Raises InputError where it is not text, also in the block."""
    path = held.path
    not_text = (
        f"{path}: is not a text file in UTF-8 or UTF-16; a table is CSV (of a spreadsheet: 'CSV "
        "UTF-8'), or Parquet named *.parquet"
    )
    try:
        if held.size_bytes > _LARGEST_BYTES:
            raise InputError(
                f"{path}: has more than {_LARGEST_BYTES >> 30} GiB; split it, or convert it to "
                f"Parquet, whose size does not matter: {command('advise FILE', output='DIR/')}"
            )
        with held.open() as file:
            start = held.head[:_PEEKED].lstrip(b"\xef\xbb\xbf \t\r\n")
            if (b"\0" in start and held.encoding != "utf-16") or start.startswith(b"PK\x03\x04"):
                raise InputError(not_text)
            if start.startswith((b"{", b"[")):
                raise InputError(
                    f"{path}: is JSON; a table is CSV or Parquet, and 'mlscale import' makes one "
                    "of profilers' traces, monitors' logs and kernel_tuner's files"
                )
            text = io.TextIOWrapper(file, held.encoding, newline="")
            yield csv.reader(text, delimiter=delimiter_of(held.first_line))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise InputError(not_text) from None


def _read_header(path: Path, reader: Any, repeated: Collection[str]) -> list[str]:
    """The names in the first row that is not blank, '' for a leading column without a name."""
    _, first = next(_numbered_rows(path, reader), (0, []))
    header = [from_spreadsheet_cell(name.strip()) for name in first]
    where = f"{path}: row {reader.line_num}"
    if not any(header):
        raise InputError(f"{path}: is empty")
    for position, name in enumerate(header):
        if name in header[:position] and name in repeated:
            header[position] = f"{name}.1"
        elif name in header[:position]:
            raise InputError(f"{where}: column '{name}' appears twice")
        elif position and not name:
            raise InputError(
                f"{where}: column {position + 1} has no name; give it one, or delete it"
            )
    return header


def _numbered_rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not blank, after the line at which it begins. Raises InputError."""
    begin = reader.line_num + 1
    try:
        for row in reader:
            if row:
                yield begin, row
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}: row {reader.line_num}: is not valid CSV: {error}") from None


def _is_index(name: str) -> bool:
    """Whether a column is an index that was saved with the table."""
    return not name or name.startswith(SAVED_INDEX)


def _csv_by_rows(
    path: Path, header: list[str], words: Collection[str], reader: Any, texts: Collection[str]
) -> Table:
    """The rows below the header; texts: which may be left out. Raises InputError."""
    kept = [name for name in header if not _is_index(name)]
    text: dict[str, list[str]] = {name: [] for name in kept if name in words}
    blocks: dict[str, list[Floats]] = {name: [] for name in kept if name not in words}
    lines: list[int] = []
    rows = _numbered_rows(path, reader)
    point = str if reader.dialect.delimiter == "," else with_point
    known: dict[str, str] = {}  # equal names are held once
    while block := list(islice(rows, _BLOCK_ROWS)):
        for line, row in block:
            if len(row) != len(header):
                raise InputError(
                    f"{path}: row {line}: has {len(row)} fields, the header has {len(header)}"
                )
        table = Table(str(path), {}, {}, lines=[line for line, _ in block])
        columns = dict(zip(header, zip(*(row for _, row in block), strict=True), strict=True))
        for name, cells in text.items():
            cells += [known.setdefault(cell, cell) for cell in columns[name]]
        for name, parts in [*blocks.items()]:
            try:
                parts.append(_parse_numbers(columns[name], name, table, point))
            except InputError:
                if lines or name not in texts or not _are_words(columns[name]):
                    raise
                del blocks[name]
        lines += table.lines
    if not lines:
        raise InputError(f"{path}: has a header but no rows")
    _tell_texts(path, [name for name in kept if name not in {*text, *blocks}])
    numbers = {name: np.concatenate(parts) for name, parts in blocks.items()}
    return Table(str(path), text, numbers, lines=lines)


def _parse_numbers(
    cells: Sequence[str], name: str, table: Table, point: Callable[[str], str]
) -> Floats:
    """A column of numbers; NaN where a cell is empty or says so; see `with_point`. InputError."""
    together = "".join(cells)
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            return np.fromiter(map(float, cells), np.float64, len(cells))
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell.strip().casefold() in _NOT_GIVEN:
            continue
        try:
            values[row] = plain_number(point(cell))
        except ValueError:
            hint = ""
            if "," in cell:
                hint = "; write it with a decimal point, without thousands separators"
            elif name not in MEASURED:
                hint = f"; {parameter('columns', {name: ''})} leaves the column out"
            where = table.cell(row, name)
            raise InputError(f"{where}: '{cell}' is not a number{hint}") from None
    return values


def _csv_by_arrow(
    held: HeldFile, header: list[str], words: Collection[str], header_lines: int
) -> Table | None:
    """The same by Arrow; None where it meets an error, or does not take each line for a row."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    word, number = pa.dictionary(pa.int32(), pa.string()), pa.float64()
    types = {name: word if name in words else number for name in header if not _is_index(name)}
    try:
        cells = arrow_csv.ConvertOptions(
            column_types=types, include_columns=[*types], null_values=[""]
        )
        rows = arrow_csv.ReadOptions(column_names=header, skip_rows=header_lines)
        with held.open() as file:
            arrow = arrow_csv.read_csv(file, rows, convert_options=cells)
    except pa.ArrowInvalid:
        return None
    with held.open() as file:
        lines = range(header_lines + 1, 1 + sum(1 for _ in file))
    if arrow.num_rows != len(lines):
        return None
    return replace(_from_arrow(arrow, held.path, words), lines=lines)


def has_arrow() -> bool:
    """Whether Arrow is installed, which is fast on large text files; all else works without."""
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


def _from_arrow(arrow: "pa.Table", path: Path, words: Collection[str]) -> Table:
    """The columns and metadata of an Arrow table. Raises InputError."""
    metadata = (arrow.schema.metadata or {}).get(_METADATA_KEY, b"{}")
    table = Table(str(path), {}, {}, parse_json_object(metadata, f"{path}: metadata"))
    for name in arrow.column_names:
        if name in words:
            table.text[name] = _cells(arrow[name])
        elif not _is_index(name):
            table.numbers[name] = _numbers(arrow[name])
    return table


def _cells(column: "pa.ChunkedArray") -> list[str]:
    """The cells of a column of names, empty where null; equal names are held once."""
    cells: list[str] = []
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        names = [str(name) for name in encoded.dictionary.to_pylist()]
        cells += ["" if at is None else names[at] for at in encoded.indices.to_pylist()]
    return cells


def _numbers(column: "pa.ChunkedArray") -> Floats:
    """The cells of a column of numbers, NaN where null."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    array = column.cast(pa.float64(), safe=False).combine_chunks()
    given, content = array.buffers()
    values = np.frombuffer(content, np.float64, len(array), 8 * array.offset)
    if given is None:
        return values
    end = array.offset + len(array)
    is_given = np.unpackbits(np.frombuffer(given, np.uint8), bitorder="little", count=end)
    return np.where(is_given[array.offset :], values, np.nan)


@contextmanager
def parquet_file(path: Path, where: str = "", **reading: Any) -> Iterator[Any]:
    """Give an open ParquetFile. What cannot be read of it in the block is an InputError.

    Each text is held once, as a short file may have a long name in all of its rows. where: what the
    message names, by default the path. reading: options of ParquetFile.
    """
    with extra_named("Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True, **reading) as parquet:
            names = parquet.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{path}: two columns have the same name")
            leaves = [parquet.schema.column(n) for n in range(parquet.metadata.num_columns)]
            texts = [one.path for one in leaves if one.logical_type.type == "STRING"]
            reading |= {"metadata": parquet.metadata, "read_dictionary": texts}
        with pq.ParquetFile(path, page_checksum_verification=True, **reading) as parquet:
            yield parquet
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        problem = f"is not a readable Parquet file: {error}"
        if isinstance(error, OSError) and error.errno:
            problem = f"cannot be read: {os.strerror(error.errno)}"
        raise InputError(f"{where or path}: {problem}") from None


def _read_parquet(
    path: Path, needs: Collection[str], columns: Columns, leaves_texts: bool
) -> Table:
    """Read a file, counting what is unpacked: what it says may be wrong. Raises InputError."""
    import pyarrow as pa

    left_out, columns = divided(columns)
    words = {*IDENTITY, *_words_of(columns)}
    with parquet_file(path) as parquet:
        facts, schema = parquet.metadata, parquet.schema_arrow
        rows, names = facts.num_rows, [name for name in schema.names if name not in left_out]
        most = min(_LARGEST_BYTES, max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size))
        said = sum(facts.row_group(n).total_byte_size for n in range(facts.num_row_groups))
        bytes_, parts = 8 * rows * len(names), dict[str, Any]()
        if not rows:
            raise InputError(f"{path}: has no rows")
        require_header(str(path), needs, {*names, *columns})
        coded = [n for n in names if pa.types.is_dictionary(schema.field(n).type)]
        texts = {name for name in coded if leaves_texts and _may_be_text(name, columns)}
        _require_kinds(path, schema, [name for name in names if name not in texts], words)
        for name in names:
            if max(bytes_, said) <= most:
                parts[name] = parquet.read([name], use_threads=False)[name]
                bytes_ += parts[name].nbytes
        if max(bytes_, said) > most:
            told = f"{path}: unpacks to {rows} rows x {len(names)} columns, more than"
            raise InputError(f"{told} {most / (1 << 30):.3g} GiB; is it a table of kernels?")
        left = [name for name in parts if name in texts - words and _are_words(_cells(parts[name]))]
        _require_kinds(path, schema, texts.difference(left), words)
        _tell_texts(path, left)
        kept = {name: part for name, part in parts.items() if name not in left}
        arrow = pa.table(kept).replace_schema_metadata(schema.metadata)
        return mapped(_from_arrow(arrow, path, words), columns)


def _require_kinds(
    path: Path, schema: "pa.Schema", names: Iterable[str], words: Collection[str]
) -> None:
    """Raise InputError on columns that hold neither names nor numbers, before they are unpacked."""
    import pyarrow.types as of

    for name in names:
        kind = schema.field(name).type
        is_number = of.is_integer(kind) or of.is_floating(kind) or of.is_null(kind)
        if is_number or _is_index(name) or (name in words and not of.is_nested(kind)):
            continue
        what = "names" if name in words else "numbers"
        kind = kind.value_type if of.is_dictionary(kind) else kind
        told = f"{path}: column '{name}' holds {kind}"
        raise InputError(f"{told}; {what} are needed there; change or delete it")


def read_row_group(
    path: Path,
    number: int,
    most: int,
    names: Sequence[str] | None = None,
    columns: Columns = NO_COLUMNS,
) -> Iterator[Table]:
    """Read a row group, at most so many rows at a time, each part a table.

    names: of the file's columns, by default all. columns: see `mapped`. Raises InputError, naming
    the row group.
    """
    import pyarrow as pa

    where, words = f"{path}: row group {number}", {*IDENTITY, *_words_of(columns)}
    with parquet_file(path, where, pre_buffer=False, buffer_size=_BUFFER_BYTES) as parquet:
        _require_kinds(path, parquet.schema_arrow, names or parquet.schema_arrow.names, words)
        above = sum(parquet.metadata.row_group(group).num_rows for group in range(number))
        for batch in parquet.iter_batches(most, [number], names):
            lines = range(above + 1, above + batch.num_rows + 1)
            table = _from_arrow(pa.Table.from_batches([batch]), path, words)
            yield _checked(mapped(replace(table, lines=lines), columns))
            above += batch.num_rows


@extra_named("Parquet")
def write_tables(
    path: Path, tables: Iterator[Any], footer: Callable[[], dict[str, str]] = dict
) -> None:
    """Write Arrow tables of one schema as one file, whole or not at all; none without a table.

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


def table_from_frame(
    frame: "pd.DataFrame",
    needs: Collection[str] = (),
    device: str | None = None,
    columns: Columns = NO_COLUMNS,
) -> Table:
    """Convert a pandas DataFrame; its named index levels are columns too. Raises InputError.

    needs: columns without which it is refused before a cell is read. device: of all rows.
    columns: see `mapped`.
    """
    if not hasattr(frame, "columns"):
        kind = type(frame).__name__
        raise InputError(f"a table or a run is a file or a pandas DataFrame, not of type {kind}")
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    table = Table("the frame", {}, {})
    if not frame.columns.is_unique:
        raise InputError(f"{table.source}: two columns have the same name")
    if not len(frame):
        raise InputError(f"{table.source}: has no rows")
    if device is not None and "device" not in frame.columns:
        frame = frame.assign(device=device)
    left_out, columns = divided(columns)
    frame = frame.drop(columns=[*left_out], errors="ignore")
    require_header(table.source, needs, {*map(str, frame.columns), *columns})
    words, left = {*IDENTITY, *_words_of(columns)}, []
    for name, column in frame.items():
        if name in words:
            table.text[str(name)] = _texts_of(column)
        elif _may_be_text(str(name), columns) and _are_words(_texts_of(column, "O")):
            left.append(str(name))
        elif not _is_index(str(name)):
            table.numbers[str(name)] = _floats_of(column, f"{table.source}: column '{name}'")
    _tell_texts(table.source, left)
    table = _checked(mapped(table, columns))
    _call_device(table, device)
    return table


def _texts_of(column: "pd.Series[Any]", kind: str = "") -> list[str]:
    """The cells of a frame's column as texts, '' where not given; none of another kind."""
    is_other = kind and column.dtype.kind != kind
    return [] if is_other else column.astype(object).where(column.notna(), "").map(str).tolist()


def _floats_of(column: "pd.Series[Any]", where: str) -> Floats:
    """The cells of a frame's column, NaN where not given. Raises InputError."""
    column = column.where(~column.isin(_NOT_GIVEN)) if column.dtype.kind == "O" else column
    if column.dtype.kind not in "mM":  # dates, and spans of time
        with suppress(TypeError, ValueError):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
    raise InputError(f"{where} holds {column.dtype}; numbers are needed there; change or delete it")


def _call_device(table: Table, device: str | None) -> None:
    """Name the device of all rows, if it is said. InputError on rows of another known one."""
    if device is None:
        return
    meant = find_device(device.strip())
    key = device if meant is None else meant.key
    named = set(table.text["device"])
    others = sorted({name for name in named if find_device(name) or len(named) > 1} - {key})
    if others:
        raise InputError(
            f"{table.source}: column 'device' holds {', '.join(others)}, but the device given is "
            f"'{device}'; keep the rows of one device, or omit the device"
        )
    table.text["device"] = [key] * len(table)
