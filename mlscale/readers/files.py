"""A file as it is read: known by its content, its table in blocks of rows, its cells as numbers.

A reader says by `Form` what its files look like. `open_file` finds the form and gives a `Sheet`,
whose `blocks` are columns under the names of the header, wherever they stand. Blocks are bounded:
the file is never held as a whole.
"""

import csv
import io
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.table import LARGEST_COUNTER
from mlscale.errors import InputError
from mlscale.files import ByteProgress, no_progress
from mlscale.text import without_controls

BLOCK = 4 << 20  # bytes that are read at once, and no line is longer
LEAST_FOR_ARROW = 1 << 18  # bytes: for fewer the import of Arrow takes longer than it saves
_LONGEST_RUN = 64 << 20  # bytes of rows that must stay together
_LONGEST_HEADER = 1 << 20
_NEAR = 1 << 16  # bytes in which a header is looked for that lacks a column
_HEAD = 16 << 20  # bytes in which a JSON file says what it is
_MISSING = {
    *("", "n/a", "na", "nan", "-nan", "nan(ind)", "-nan(ind)", "inf", "-inf", "infinity"),
    *("null", "none", "<overflow>", "overflow", "-"),
}
_PLAIN = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,9})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_OF_THOUSANDS = r"^(\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?$"
_JSON = re.compile(rb"\x1f\x8b|(\xef\xbb\xbf)?\s*(\{|\[\s*[{\[\"])")
_COMPLAINT = re.compile(r"==ERROR==|SKIPPED: .* does not contain|Error: ")
_UNPACKED_BY = {
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\xfd7zXZ": "xz -d",
    b"BZh": "bzip2 -d",
    b"PK\x03\x04": "unzip",
}


class Labels(NamedTuple):
    """n cells as their distinct texts, in the order in which they come, and which each cell has."""

    codes: Indices
    texts: Sequence[str]

    @classmethod
    def of(cls, cells: Sequence[str]) -> "Labels":
        """Cells as labels."""
        index: dict[str, int] = {}
        codes = [index.setdefault(text, len(index)) for text in cells]
        return cls(np.array(codes, np.intp), list(index))

    def cells(self) -> list[str]:
        """All n texts."""
        return [self.texts[code] for code in self.codes.tolist()]

    def renamed(self, rename: Callable[[str], str]) -> "Labels":
        """The same cells with other texts, some of which may be alike then."""
        names = Labels.of([rename(text) for text in self.texts])
        return Labels(names.codes[self.codes], names.texts)

    def take(self, rows: Indices | slice) -> "Labels":
        """The cells of those rows."""
        return Labels(self.codes[rows], self.texts)


def number(text: str, where: str) -> float:
    """A cell as a number; NaN where it says that there is none, and for what is not finite.

    Thousands may have commas. Raises InputError, beginning with `where`, on anything else.
    """
    cell = text.strip().strip("'")
    if _PLAIN.fullmatch(cell):
        value = float(cell)
        return value if math.isfinite(value) else math.nan
    if cell.casefold() in _MISSING:
        return math.nan
    if _THOUSANDS.fullmatch(cell):
        return float(cell.replace(",", ""))
    if re.fullmatch(r"[+-]?[\d.]+,\d+", cell, re.ASCII):
        raise InputError(
            f"{where}: '{cell[:40]}' has a decimal comma; export with LC_ALL=C, on Windows with an "
            "English number format"
        )
    raise InputError(f"{where}: '{text[:40]}' is not a number")


def counter(text: str, where: str) -> float:
    """A number that counts: neither negative nor beyond what counters hold. Raises InputError."""
    value = number(text, where)
    if value < 0 or value >= LARGEST_COUNTER:
        raise InputError(f"{where}: '{text[:40]}' cannot be a counter's value")
    return value


def whole(text: str, where: str) -> float:
    """A whole number, not negative. Raises InputError."""
    if not re.fullmatch(r"[0-9]{1,18}(\.0+)?", text.strip()):
        raise InputError(f"{where}: '{text[:40]}' is not a whole number")
    return float(text)


def product(text: str, where: str) -> float:
    """The product of sizes such as '(98, 1, 1)' or '98 1 1'; NaN of none. Raises InputError."""
    sizes = re.findall(r"[0-9]{1,10}", text)
    if not text.strip():
        return math.nan
    if not re.fullmatch(r"\s*\(?[0-9\s,;]+\)?\s*", text) or not 1 <= len(sizes) <= 3:
        raise InputError(f"{where}: '{text[:40]}' is not a size such as (98, 1, 1)")
    if 0 in map(int, sizes):
        raise InputError(f"{where}: '{text[:40]}' has a size of 0")
    return float(math.prod(map(int, sizes)))


@dataclass(frozen=True)
class Block:
    """Rows that stand together: their lines (n,) in the file, and the columns that were asked for.

    A column is held as Labels, or as an array of Arrow until its texts are asked for. Every method
    that reads cells raises InputError, which names file, row and column.
    """

    path: Path
    lines: Indices
    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def where(self, row: int, name: str | None = None) -> str:
        """The beginning of a message about a row of the block."""
        place = f"{self.path}: row {self.lines[row]}"
        return place if name is None else f"{place}, column '{name}'"

    def text(self, name: str) -> Labels:
        """A column's texts."""
        column = self.columns[name]
        if not isinstance(column, Labels):
            encoded = column.dictionary_encode()
            codes = _numbers_of(encoded.indices, np.dtype(np.int32)).astype(np.intp)
            column = Labels(codes, [text.strip() for text in encoded.dictionary.to_pylist()])
            self.columns[name] = column
        return column

    def cells(self) -> dict[str, list[str]]:
        """All texts of each column."""
        return {name: self.text(name).cells() for name in self.columns}

    def numbers(self, name: str, parse: Callable[[str, str], float] = counter) -> Floats:
        """A column's numbers (n,); `parse` reads at a place a cell that is not plainly one."""
        is_strict = parse in (whole, product)
        read: Floats | None = None if is_strict else _by_cast(self.columns[name], np.float64)
        if read is not None:
            return read
        codes, texts = self.text(name)
        values = np.full(len(texts), math.nan) if is_strict else _quick_numbers(texts)
        rows = np.full(len(texts), -1)
        rows[codes[::-1]] = np.arange(len(codes))[::-1]  # the first of each text
        odd = (rows >= 0) & ~((values >= 0) & (values < LARGEST_COUNTER))
        for at in np.flatnonzero(odd).tolist():
            values[at] = parse(texts[at], self.where(int(rows[at]), name))
        return values[codes]

    def durations_s(self, begin: str, end: str) -> Floats:
        """The times [s] (n,) between two columns of nanoseconds, which no float holds exactly."""
        begins, ends = self._stamps_ns(begin), self._stamps_ns(end)
        return ((ends[0] - begins[0]) + (ends[1] - begins[1])) / 1e9

    def _stamps_ns(self, name: str) -> tuple[Indices, Floats]:
        """Times in whole nanoseconds, and what is beyond, as of means over passes."""
        if (read := _by_cast(self.columns[name], np.int64)) is not None:
            return read, np.zeros(len(read))
        labels = self.text(name)
        used, codes = np.unique(labels.codes, return_inverse=True)
        texts = [labels.texts[code] for code in used.tolist()]
        for at, text in enumerate(texts):
            if not re.fullmatch(r"[0-8]?[0-9]{1,18}(\.[0-9]{0,20})?", text):
                row = int(np.flatnonzero(codes == at)[0])
                raise InputError(
                    f"{self.where(row, name)}: '{text[:40]}' is not a time in nanoseconds; use the "
                    "file as the profiler wrote it"
                )
        parts = [text.partition(".") for text in texts]
        wholes = np.array([int(whole_) for whole_, _, _ in parts], np.int64)
        return wholes[codes], np.array([float(f"0.{part}") for _, _, part in parts])[codes]

    def take(self, rows: Indices | slice) -> "Block":
        """Those rows."""
        columns = {name: _taken(column, rows) for name, column in self.columns.items()}
        return Block(self.path, self.lines[rows], columns)

    def first_of_runs(self, *names: str) -> tuple[Indices, Indices]:
        """Where rows begin that differ from the one above in those columns; the run of each row."""
        differs = np.zeros(len(self), np.bool_)
        differs[:1] = True
        for name in names:
            codes = self.text(name).codes
            differs[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(differs), np.cumsum(differs) - 1


def _quick_numbers(texts: Sequence[str]) -> Floats:
    """Plain numbers, perhaps with commas between thousands; NaN where a text is none."""
    values = [
        float(text)
        if _PLAIN.fullmatch(text)
        else float(text.replace(",", ""))
        if _THOUSANDS.fullmatch(text)
        else math.nan
        for text in texts
    ]
    return np.array(values, np.float64)


def _taken(column: Any, rows: Indices | slice) -> Any:
    """Those rows of a column."""
    if isinstance(column, Labels):
        return column.take(rows)
    if isinstance(rows, slice):
        return column[rows]
    import pyarrow as pa

    content = pa.py_buffer(np.ascontiguousarray(rows, np.int64))
    return column.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, content]))


def _numbers_of(array: Any, kind: np.dtype[Any]) -> Any:
    """An array of Arrow without gaps; its own conversions would import pandas."""
    content, begin = array.buffers()[1], array.offset * kind.itemsize
    return np.frombuffer(content, kind, len(array), begin) if len(array) else np.empty(0, kind)


def _by_cast(column: Any, kind: type[np.generic]) -> Any:
    """A column of Arrow as numbers; None where it is none, or a cell is not plainly a counter."""
    if isinstance(column, Labels):
        return None
    import pyarrow as pa
    from pyarrow import compute

    if compute.any(compute.match_substring(column, ",")).as_py():
        if not compute.all(compute.match_substring_regex(column, _OF_THOUSANDS)).as_py():
            return None
        column = compute.replace_substring(column, ",", "")
    try:
        values = _numbers_of(column.cast(pa.from_numpy_dtype(kind)), np.dtype(kind))
    except pa.ArrowInvalid:
        return None
    return values if ((values >= 0) & (values < LARGEST_COUNTER)).all() else None


@dataclass(frozen=True)
class Form:
    """One kind of file that is read.

    Attributes:
        tool: what writes it, as 'ncu'.
        title: what a user is shown.
        read: the function that reads it: `read(sheet, facts, needed)` gives launches of a
            profiler's file, `read(sheet)` samples of a monitor's; None for a file that is not read.
        columns: names that the header of its CSV has, all of them, in any order; 'A|B' is either.
        lacks: names of which its header has none.
        line: a pattern of the line at which it begins, where it has no such header.
        json: a text that its JSON has near the beginning.
        gzip: whether its JSON may be packed so.
        tables: what the names of its SQLite tables begin with.
        every_row_quoted: below a header in quotes a line that does not begin with one is the
            program's own output.
        shortest: the last column that each row has; others may lack what is behind it.
        ends_at_blank: a blank line ends the table.
        instead: of a file that is not read, what to give in its place.
    """

    tool: str
    title: str
    read: Callable[..., Any] | None = None
    columns: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    line: re.Pattern[str] | None = None
    json: str = ""
    gzip: bool = False
    tables: str = ""
    every_row_quoted: bool = False
    shortest: str = ""
    ends_at_blank: bool = False
    instead: str = ""

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a header with those names is of this form."""
        present = set(names)
        has_all = all(present & set(one.split("|")) for one in self.columns)
        return bool(self.columns) and has_all and not present & set(self.lacks)


@dataclass
class Sheet:
    """An open file whose form is known.

    Attributes:
        path: the file.
        form: what it is.
        header: the names of its columns, stripped; none where it has no header.
        header_line: the row of the header, or of the line at which it begins.
        complaint: what the tool itself says above it that went wrong.
        is_quoted: whether the header stands in quotes.
        skipped: how many lines between the rows were no rows.
    """

    path: Path
    form: Form
    header: tuple[str, ...] = ()
    header_line: int = 1
    complaint: str = ""
    is_quoted: bool = False
    encoding: str = "utf-8-sig"
    progress: ByteProgress = no_progress
    skipped: int = field(default=0, init=False)
    _aside: int = field(default=0, init=False)  # lines skipped below which no row came yet
    _passed: int = field(default=0, init=False)  # the last of them
    _is_ended: bool = field(default=False, init=False)

    def find(self, *names: str) -> str | None:
        """The first of these columns that the header has; None without any."""
        return next((name for name in names if name in self.header), None)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line from the header, or the line at which it begins, on, with its number."""
        for data, line in _chunks(self.path, self.encoding, self.progress):
            for number_, text in enumerate(data.decode().removesuffix("\n").split("\n"), line):
                if number_ >= self.header_line:
                    yield number_, text

    def blocks(self, names: Sequence[str | None], together: Sequence[str] = ()) -> Iterator[Block]:
        """The rows below the header, with those columns that it has.

        together: rows that stand below each other with the same cells in these columns come in one
        block. Raises InputError on a row that is not as long as the header.
        """
        together = [name for name in together if name in self.header]
        wanted = [n for n in dict.fromkeys([*names, *together]) if n in self.header and n]
        held, held_line = b"", 0
        for data, line in _chunks(self.path, self.encoding, self.progress):
            below = self.header_line + 1 - line  # lines of this chunk up to the header
            if below > 0:
                cut = _end_of_line(data, below)
                data, line = data[cut:], line + below  # noqa: PLW2901
            data, line = held + data, held_line if held else line  # noqa: PLW2901
            block = self._block(data, line, wanted)
            held = b""
            if self._is_ended:
                if len(block):
                    yield block
                return
            if together and len(block):
                first = int(block.first_of_runs(*together)[0][-1])
                held_line = int(block.lines[first])
                held = data[_end_of_line(data, held_line - line) :]
                if len(held) > _LONGEST_RUN:
                    raise InputError(f"{block.where(first)}: too many rows belong together")
                block = block.take(np.arange(first))
            if len(block):
                yield block
        if held:
            yield self._block(held, held_line, wanted)

    def _block(self, data: bytes, line: int, wanted: list[str]) -> Block:
        is_large = len(data) >= LEAST_FOR_ARROW
        columns = _by_arrow(data, self.header, wanted, self._least()) if is_large else None
        if columns is not None:
            count = len(next(iter(columns.values())))
            return Block(self.path, np.arange(line, line + count), columns)
        lines: list[int] = []
        cells: dict[str, list[str]] = {name: [] for name in wanted}
        places = [(self.header.index(name), cells[name]) for name in wanted]
        for number_, row in self._rows(data, line):
            lines.append(number_)
            for place, column in places:
                column.append(row[place].strip())
        of_names = {name: Labels.of(column) for name, column in cells.items()}
        return Block(self.path, np.array(lines, np.intp), of_names)

    def _least(self) -> int:
        """How many fields a row has at least."""
        shortest = self.form.shortest
        return self.header.index(shortest) + 1 if shortest else len(self.header)

    def _rows(self, data: bytes, line: int) -> Iterator[tuple[int, list[str]]]:
        """The rows of whole lines, of which the first is that number. Raises InputError."""
        width, least = len(self.header), self._least()
        only_quoted = self.form.every_row_quoted and self.is_quoted
        lines = data.decode().removesuffix("\n").split("\n") if data else []
        for number_, text in enumerate(lines, line):
            if not text.strip():
                if self.form.ends_at_blank:
                    self._is_ended = True
                    return
                continue
            if only_quoted and not text.startswith('"'):
                self._aside += number_ > self._passed
                self._passed = max(self._passed, number_)
                continue
            where = f"{self.path}: row {number_}"
            try:
                [row] = csv.reader([text], strict=True, skipinitialspace=True)
            except csv.Error as error:
                raise InputError(f"{where}: is not valid CSV: {error}; is it cut off?") from None
            if not least <= len(row) <= width:
                raise InputError(
                    f"{where}: has {len(row)} fields, the header has {width}; is the file cut off?"
                )
            if number_ > self._passed:
                self.skipped, self._aside = self.skipped + self._aside, 0
            yield number_, row + [""] * (width - len(row))


def open_file(
    path: Path, forms: Sequence[Form], progress: ByteProgress = no_progress
) -> Sheet | None:
    """What a file is, by its content; None where it is of no form.

    Raises InputError where it cannot be read, is packed, or says itself what went wrong.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file")
        with path.open("rb") as binary:
            mark = binary.read(64)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not mark:
        raise InputError(f"{path}: is empty")
    if unpacker := next((by for begin, by in _UNPACKED_BY.items() if mark.startswith(begin)), None):
        raise InputError(f"{path}: is compressed; unpack it first: {unpacker} {path.name}")
    if mark.startswith(b"SQLite format 3\0"):
        return _of_database(path, forms)
    if _JSON.match(mark):
        return _of_json(path, forms, progress)
    encoding = "utf-16" if mark[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _of_text(path, forms, encoding, progress)


def _of_text(
    path: Path, forms: Sequence[Form], encoding: str, progress: ByteProgress
) -> Sheet | None:
    complaint = ""
    for data, first in _chunks(path, encoding, no_progress):
        for line, text in enumerate(data.decode().removesuffix("\n").split("\n"), first):
            names = _names(text)
            for form in forms:
                if form.fits(names) or (form.line is not None and form.line.match(text)):
                    if form.instead:
                        raise InputError(f"{path}: row {line}: {form.title} {form.instead}")
                    header = tuple(names) if form.fits(names) else ()
                    if twice := [n for n, count in Counter(header).items() if n and count > 1]:
                        raise InputError(
                            f"{path}: row {line}: column '{twice[0]}' is there twice; keep one"
                        )
                    return Sheet(
                        path, form, header, line, complaint,
                        text.startswith('"'), encoding, progress,
                    )  # fmt: skip
            if not complaint and _COMPLAINT.match(text):
                complaint = text.strip()[:300]
    if complaint:
        raise InputError(f"{path}: has no kernels; the profiler says: {complaint}")
    return None


def nearest_form(path: Path, forms: Sequence[Form]) -> str:
    """Of a text of no form: which one it is but for a column or two, in words; '' for none."""
    nearest: dict[str, int] = {}
    with path.open("rb") as binary:
        head = binary.read(_NEAR).decode(errors="replace")
    for line, text in enumerate(head.splitlines(), 1):
        present = set(_names(text))
        for form in forms:
            lacks = [one for one in form.columns if not present & set(one.split("|"))]
            is_other = form.read is None or present & set(form.lacks)
            if not is_other and len(lacks) <= 2 <= len(form.columns) - len(lacks):
                columns = ", ".join(one.replace("|", " or ") for one in lacks)
                said = f"row {line} is a header of {form.title}, but lacks {columns}"
                nearest.setdefault(said, len(lacks))
    return min(nearest, key=nearest.__getitem__, default="")


def _names(line: str) -> list[str]:
    if len(line) > _LONGEST_HEADER:
        return []
    try:
        [names] = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        return []
    return [name.strip() for name in names]


def _of_json(path: Path, forms: Sequence[Form], progress: ByteProgress) -> Sheet | None:
    import gzip
    import zlib

    with path.open("rb") as binary:
        is_packed = binary.read(2) == b"\x1f\x8b"
        binary.seek(0)
        try:
            head = (gzip.GzipFile(fileobj=binary) if is_packed else binary).read(_HEAD)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be unpacked: {error}; is it cut off?") from None
    fitting = (form for form in forms if form.json and f'"{form.json}"'.encode() in head)
    form = next(fitting, None)
    if is_packed and (head.lstrip()[:1] != b"{" or (form is not None and not form.gzip)):
        raise InputError(f"{path}: is compressed; unpack it first: gunzip {path.name}")
    return None if form is None else Sheet(path, form, progress=progress)


def _of_database(path: Path, forms: Sequence[Form]) -> Sheet | None:
    with opened_database(path) as database:
        names = tables_of(database)
    fitting = (f for f in forms if f.tables and any(n.startswith(f.tables) for n in names))
    form = next(fitting, None)
    return None if form is None else Sheet(path, form)


@contextmanager
def opened_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A SQLite file to read from, which is not written, and of which no code runs. InputError."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", errors="replace")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        why = without_controls(str(error))[:200] if isinstance(error, sqlite3.Error) else "schema"
        raise InputError(f"{path}: cannot be read as SQLite ({why}); export it again") from None


def tables_of(database: sqlite3.Connection) -> dict[str, set[str]]:
    """By name the columns of all tables that hold rows of their own; views and others are not."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    query = "SELECT name FROM pragma_table_info(?)"
    return {
        str(name): {str(column) for (column,) in database.execute(query, (name,))}
        for (name,) in sorted(names)
    }


def _chunks(path: Path, encoding: str, progress: ByteProgress) -> Iterator[tuple[bytes, int]]:
    """Whole lines in UTF-8, each ended by one newline, and the number of the first. InputError."""
    line, position = 1, 0
    with path.open("rb") as binary:
        text = io.TextIOWrapper(binary, encoding=encoding, errors="replace", newline="")
        while True:
            try:
                if encoding == "utf-16":
                    data = (text.read(BLOCK) + text.readline(BLOCK)).encode()
                else:
                    data = binary.read(BLOCK) + binary.readline(BLOCK + 1)
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
            progress(binary.tell() - position)
            position = binary.tell()
            if not data:
                return
            data = data.removeprefix(b"\xef\xbb\xbf") if line == 1 else data
            data = data if data.endswith(b"\n") else data + b"\n"
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if (at := data.find(b"\0")) >= 0:
                row = line + data.count(b"\n", 0, at)
                raise InputError(
                    f"{path}: row {row}: is not text; export the profiler's report as CSV"
                )
            if len(data) - data.rfind(b"\n", 0, -1) > BLOCK:
                row = line + data.count(b"\n") - 1
                raise InputError(f"{path}: row {row}: is longer than {BLOCK >> 20} MiB")
            if not data.isascii():
                data = data.decode(errors="replace").encode()
            yield data, line
            line += data.count(b"\n")


def _end_of_line(data: bytes, count: int) -> int:
    """Where the `count`th line of a text ends; 0 for none."""
    end = 0
    for _ in range(count):
        if (next_end := data.find(b"\n", end) + 1) == 0:
            return len(data)
        end = next_end
    return end


@cache
def _arrow_csv() -> Any:
    """pyarrow.csv where it is installed, else None."""
    try:
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    return arrow_csv


def _by_arrow(
    data: bytes, header: tuple[str, ...], wanted: list[str], least: int
) -> dict[str, Any] | None:
    """The columns of lines, each of which is a row; None where one is not, or without Arrow."""
    if not wanted or (arrow_csv := _arrow_csv()) is None:
        return None
    import pyarrow as pa

    try:
        [first] = csv.reader([data.partition(b"\n")[0].decode()])
        if not least <= len(first) <= len(header):
            return None
        header = header[: len(first)]
        if not set(wanted) <= set(header):
            return None
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=len(data),
                column_names=[str(i) for i in range(len(header))],
            ),
            arrow_csv.ParseOptions(),
            arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types={str(header.index(name)): pa.string() for name in wanted},
                include_columns=[str(header.index(name)) for name in wanted],
            ),
        )
    except (pa.ArrowInvalid, csv.Error):
        return None
    if table.num_rows != data.count(b"\n"):  # a field goes on in a further line, or a line is blank
        return None
    return {
        name: pa.concat_arrays(table[str(header.index(name))].chunks)  # of one block's bytes
        for name in wanted
    }
