"""Tidy tables read from and written to CSV or Parquet, with their metadata.

CSV is read with the standard library, so that a profile needs NumPy and nothing heavier; a large
file, which would take seconds, with Arrow.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.arrow import has_arrow, read_plain_csv
from mlscale.data.device_table import find_device
from mlscale.data.grid import AXES
from mlscale.data.parquet import is_parquet, read_parquet, write_parquet
from mlscale.data.table import (
    IDENTITY,
    SAVED_INDEX,
    Table,
    as_read,
    require_columns,
    with_device_keys,
)
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes, whole_file, write_text
from mlscale.text import (
    from_spreadsheet_cell,
    plain_number,
    shortened,
    spreadsheet_cell,
)

if TYPE_CHECKING:
    import pandas as pd

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
