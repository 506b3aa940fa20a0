"""A file as it is read: its kind by its content, its table in blocks of rows, its tables in SQLite.

`open_file` finds the kind in the registry and gives a `Sheet`, whose `blocks` are columns under the
names of the header, wherever they stand. Blocks are bounded: the file is never held as a whole. A
table of samples whose titles are words begins at the `Header` that `find_header` finds;
`why_no_log` says why a file is none. SQLite is read as data, and no code of it is run.
"""

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlscale.data.checks import check
from mlscale.data.column_names import Title, is_unit, read_title, source_meant, unread
from mlscale.errors import InputError
from mlscale.files import PIECE, ByteProgress, HeldFile, hold, no_progress
from mlscale.parameters import command, parameter
from mlscale.readers import registry
from mlscale.readers.columns import Block, Labels, columns_by_arrow, labels, line_count
from mlscale.readers.registry import Kind
from mlscale.text import delimiter_of, shortened, with_point, without_controls

if TYPE_CHECKING:
    import sqlite3

_LINES = 20  # in which a header is looked for
_SHOWN = 8  # titles
_ABOVE = re.compile(r"\s*(sep=|=|0[01],)|[^,;\t]*$")  # what stands above a header
_VALUE = re.compile(r"[\d.,:/TZ+\-\s]*\d[\d.,:/TZ+\-\s]*(\s?(W|%|MHz|MiB))?|N/A|\[.*\]|")
_HELP = f"'{command('import', 'help')}' lists commands that write a profile or a monitor's log"


@dataclass(frozen=True)
class Header:
    """The titles of a table's columns, as written and with units from elsewhere.

    line: its number; mark: the first cell of each row, where the tool marks its lines.
    """

    line: int
    cells: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str
    mark: str = ""

    @property
    def has_names(self) -> bool:
        """Whether it consists of titles, not values."""
        return 2 * sum(not _VALUE.fullmatch(cell) for cell in self.cells) > len(self.cells)

    @property
    def has_moments(self) -> bool:
        """Whether one is certain to be a time stamp."""
        return any(title.what == "moment" for title in self.meant)

    @property
    def is_tidy(self) -> bool:
        """Whether they are ours, those of a table of runs."""
        return len({"kernel", "engine_mhz", "time_ms"} & {*self.names}) > 1

    @property
    def meant(self) -> list[Title]:
        """The meaning of the titles that are understood."""
        return [title for name in self.names if (title := read_title(name))]

    @property
    def is_log(self) -> bool:
        """Whether they are a log's: of power, or of a clock and use, and of something beside."""
        told = {title.what for title in self.meant}
        is_sum = bool(told & {"time_ms", "rate"}) and not told & {"moment", "time"}
        is_sum &= "time_ms" in told or "gpu_utilisation" not in told
        is_sum |= self.is_tidy
        is_told = told & {"power_w", "watts"} or {"engine_mhz", "gpu_utilisation"} <= told
        return bool(self.has_names and is_told and len(self.meant) > 1 and not is_sum)

    def row(self, text: str) -> list[str] | None:
        """The cells of a line, with decimal points; None of one that is no row."""
        cells = split(text, self.delimiter)
        if self.delimiter in ";\t":
            cells = [with_point(cell) for cell in cells]
        return cells if not self.mark or cells[:1] in ([self.mark], [self.cells[0]]) else None


def split(text: str, delimiter: str = ",", is_strict: bool = False) -> list[str]:
    """The cells of a line of CSV, stripped; none if it is not CSV."""
    try:
        [cells] = csv.reader([text], skipinitialspace=True, delimiter=delimiter, strict=is_strict)
    except (csv.Error, ValueError):
        return []
    return [cell.strip() for cell in cells]


def find_header(lines: Iterable[tuple[int, str]]) -> Header | None:
    """The first line of several cells near the beginning; Afterburner marks its as 02.

    Its lines 03 have the units of columns, by their number from the third on. Of another log that
    has them in the line below the titles this one is the header's.
    """
    rows = iter(lines)
    begins = ((n, row) for n, row in islice(rows, _LINES) if not _ABOVE.match(row))
    number, text = next(begins, (0, ""))
    if not number:
        return None
    delimiter = delimiter_of(text)
    cells = split(text, delimiter)
    names, mark = [*cells], "80" if cells[0] == "02" else ""
    for _, row in takewhile(lambda at: at[1].startswith("03"), rows) if mark else ():
        _, _, place, unit, *_ = [*split(row), "", "", "", ""]
        if place.isdigit() and int(place) + 2 < len(names):
            names[int(place) + 2] += f" [{unit}]"
    header = Header(number, tuple(cells), tuple(names), delimiter, mark)
    units = [unit.strip("[]()") for unit in split(next(rows, (0, ""))[1], delimiter)]
    is_row = mark or len(units) != len(cells) or re.search(r"\d", "".join(units))
    if is_row or not any(map(is_unit, units)):
        return header
    names = [f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True)]
    below = replace(header, line=number + 1, names=tuple(names))
    return below if below.is_log else header


def why_no_log(file: HeldFile) -> str:
    """Why a file is not a log, in words that follow its name: what it has, what it lacks."""
    start = file.head[: 1 << 16]
    header = find_header(enumerate(start.decode(file.encoding, "replace").splitlines(), 1))
    if header is None or start.lstrip().startswith((b"{", b"[")):
        return f"unrecognised file; its columns have no titles; {_HELP}"
    if not header.has_names:
        return "begins with values, not with titles of columns; log with a header (no 'noheader')"
    told = {title.what: title.text for title in reversed(header.meant)}
    question = unread(header.names, told)
    if any(kind.columns and kind.begins_at("", header.names) for kind in registry.READERS):
        question = "no commas between its columns; give it as the profiler wrote it"
    if question:
        return f"unrecognised file; {question}"
    if header.is_tidy:
        return "is a table of runs, not a profile or log; use 'mlscale advise' or 'mlscale train'"
    clocks = {"engine_mhz", "engine_mhz_requested", "power_cap_w"}
    if told.keys() & {"time_ms", "rate"} and told.keys() & clocks:
        return is_table_of_runs(header.names)
    shown = ", ".join(f"'{shortened(name)}'" for name in header.names[:_SHOWN] if name)
    shown += " …" if len(header.names) > _SHOWN else ""
    tell = ", ".join(f"{what} ('{text}')" for what, text in told.items()) or "nothing about a GPU"
    lacks = f"a log needs power, or a clock with utilisation; {_HELP}"
    titles = "a script's columns can be titled timestamp, power_w, engine_mhz, gpu_util"
    return f"unrecognised file; its columns {shown} show {tell}; {lacks}; {titles}"


def is_table_of_runs(names: Collection[str]) -> str:
    """The message for a table of runs, each with its time, under other column names."""
    ours = ("engine_mhz", "memory_mhz", "power_cap_w", "time_ms", "power_w")
    told = {name: source for name in ours if (source := source_meant(name, names))}
    rates = [t.text for name in names if (t := read_title(name)) and t.what == "rate"]
    told |= {"tokens_per_s": rates[0]} if rates and "time_ms" not in told else {}
    mapped = parameter("columns", told)
    return f"is a table of runs with other column names; say which is which: {mapped}"


BLOCK = 4 << 20  # bytes that are read at once, and no line is longer
LEAST_FOR_ARROW = 1 << 18  # bytes: for fewer the import of Arrow takes longer than it saves
_LONGEST_RUN = 64 << 20  # bytes of rows that must stay together
_HEAD = 16 << 20  # bytes in which a JSON file says what it is
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*[{\[\"])")
_COMPLAINT = re.compile(r"==ERROR==|SKIPPED: .* does not contain|Error: ")
_PACKED = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")


@dataclass
class Sheet:
    """An open file whose kind is known.

    Attributes:
        file: as it was opened.
        kind: what it is.
        header: the names of its columns, stripped; of another text the cells of its first line.
        header_line: the row of the header, or of the line at which it begins.
        complaint: what the tool itself says above it that went wrong.
        is_quoted: whether the header stands in quotes.
        table: its header, of a log whose titles are words.
    """

    file: HeldFile
    kind: Kind
    header: tuple[str, ...] = ()
    header_line: int = 1
    complaint: str = ""
    is_quoted: bool = False
    encoding: str = "utf-8-sig"
    progress: ByteProgress = no_progress
    table: Header | None = None
    _is_ended: bool = field(default=False, init=False)

    @property
    def path(self) -> Path:
        """Its path."""
        return self.file.path

    def cells(self, text: str) -> list[str] | None:
        """The cells of a line of its table; None if it is not a row."""
        return self.table.row(text) if self.table else split(text)

    def find(self, *names: str) -> str | None:
        """The first of these columns in the header; None without any."""
        return next((name for name in names if name in self.header), None)

    def require(self, *names: str) -> None:
        """Raise InputError if the header lacks one of these columns."""
        if lacks := [name for name in names if name not in self.header]:
            raise InputError(
                f"{self.path}: row {self.header_line} is a header of {self.kind.title}, but lacks "
                f"{', '.join(lacks)}; export it with these"
            )

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line from the header, or the line at which it begins, on, with its number."""
        for data, line in _chunks(self.file, self.encoding, self.progress):
            for number, text in _numbered(data, line):
                if number >= self.header_line:
                    yield number, text

    def blocks(
        self,
        kinds: Mapping[str, type],
        together: Sequence[str] = (),
        least: int = 0,
        skipped: int = 0,
        ends_at_blank: bool = False,
    ) -> Iterator[Block]:
        """The rows below the header, with those columns that it has.

        kinds: by column what it holds: str, float, or int of time stamps [ns] and whole numbers.
        together: rows that stand below each other with the same cells in these columns come in one
        block. least: how many fields a row has at least, if not all. skipped: how many lines below
        the header are no rows. ends_at_blank: a blank line ends the table. Raises InputError on
        another row that is not as long as the header; below a header in quotes a line without any
        is the program's own output.
        """
        kinds = {name: kind for name, kind in kinds.items() if name in self.header}
        together = [name for name in together if name in self.header]
        least = least or len(self.header)
        held, held_line = b"", 0
        self._is_ended = False
        for data, line in _chunks(self.file, self.encoding, self.progress):
            above = self.header_line + skipped + 1 - line  # lines of this chunk that are no rows
            cut = _end_of_line(data, above)
            rows, first_line = held + data[cut:], held_line if held else line + max(0, above)
            block = self._block(rows, first_line, kinds, least, ends_at_blank)
            held = b""
            if together and len(block) and not self._is_ended:
                begin = int(block.first_of_runs(*together)[0][-1])
                held_line = int(block.lines[begin])
                lines = line_count(rows) - (held_line - first_line)
                held = rows[_begin_of_last(rows, lines) :]
                if len(held) > _LONGEST_RUN:
                    raise InputError(f"{block.where(begin)}: too many rows belong together")
                block = block.take(slice(begin))
            if len(block):
                yield block
            if self._is_ended:
                return
        if held:
            yield self._block(held, held_line, kinds, least, ends_at_blank)

    def _block(
        self, data: bytes, line: int, kinds: Mapping[str, type], least: int, ends_at_blank: bool
    ) -> Block:
        is_large = len(data) >= LEAST_FOR_ARROW
        columns = columns_by_arrow(data, self.header, kinds, least) if is_large else None
        if columns is not None:
            one = next(iter(columns.values()))
            count = len(one.codes if isinstance(one, Labels) else one)
            return Block(self.path, np.arange(line, line + count), columns)
        rows = list(self._rows(data, line, least, ends_at_blank))
        place = {name: self.header.index(name) for name in kinds}
        texts: dict[str, Labels] = {
            name: labels([row[at].strip() for _, row in rows]) for name, at in place.items()
        }
        return Block(self.path, np.array([number for number, _ in rows], np.intp), texts)

    def _rows(
        self, data: bytes, line: int, least: int, ends_at_blank: bool
    ) -> Iterator[tuple[int, list[str]]]:
        """The rows of whole lines, of which the first is that number. Raises InputError."""
        width = len(self.header)
        for number, text in _numbered(data, line) if data else ():
            if not text.strip():
                if ends_at_blank:
                    self._is_ended = True
                    return
                continue
            if self.is_quoted and '"' not in text:
                continue
            try:
                [row] = csv.reader([text], strict=True, skipinitialspace=True)
            except csv.Error as error:
                raise InputError(
                    f"{self.path}: row {number}: is not valid CSV: {error}; is it cut off?"
                ) from None
            if not least <= len(row) <= width:
                raise InputError(
                    f"{self.path}: row {number}: has {len(row)} fields, the header has {width}; is "
                    "the file cut off?"
                )
            yield number, row + [""] * (width - len(row))


def open_file(file: Path | HeldFile, progress: ByteProgress = no_progress) -> Sheet | None:
    """What a file is, by its content; None if it is unrecognised.

    Raises InputError if it cannot be read, is packed, or itself reports an error.
    """
    if isinstance(file, Path) and os.path.exists(file) and not os.path.isfile(file):  # noqa: PTH110, PTH113, which raise on some names
        raise InputError(f"{file}: is not a regular file")
    held = hold(file)
    path, mark = held.path, held.head[:64]
    if not mark:
        raise InputError(f"{path}: is empty")
    if path.suffix == ".mlscale":
        named = parameter("model")
        raise InputError(f"{path}: is a model; name it before the files, or with {named}")
    is_database = mark.startswith(b"SQLite format 3\0")
    if mark.startswith(_PACKED) or (is_database and held.packer):
        raise InputError(f"{path}: is compressed; unpack it first")
    if is_database:
        with opened_database(path) as database:
            tables = tables_of(database)
        kind = next((k for k in registry.READERS if k.tables and _any(tables, k.tables)), None)
        return Sheet(held, kind) if kind else None
    if _JSON.match(mark):
        kind = _kind_of_json(held)
        return Sheet(held, kind, progress=progress) if kind else None
    return _open_text(held, held.encoding, progress)


def is_benchmark(file: Path | HeldFile) -> bool:
    """Whether a path is a file with a result of a server benchmark, which is JSON."""
    with suppress(InputError):
        held = hold(file)
        kind = _kind_of_json(held) if _JSON.match(held.head[:64]) else None
        return kind is not None and kind.is_benchmark
    return False


def _any(names: Mapping[str, object], begin: str) -> bool:
    return any(name.startswith(begin) for name in names)


def _open_text(file: HeldFile, encoding: str, progress: ByteProgress) -> Sheet | None:
    complaint, path = "", file.path
    for data, first in _chunks(file, encoding, no_progress):
        for line, text in _numbered(data, first):
            names = split(text, is_strict=True)
            kind = next((one for one in registry.READERS if one.begins_at(text, names)), None)
            if kind is None:
                if not complaint and _COMPLAINT.match(text):
                    complaint = text.strip()[:300]
                continue
            if kind.instead:
                raise InputError(f"{path}: row {line}: {kind.title} {kind.instead}")
            twice = [name for name in names if names.count(name) > 1 and name]
            if kind.columns and twice and not (kind.is_log and "gpu" in twice):  # GPUs abreast
                raise InputError(f"{path}: row {line}: column '{twice[0]}' appears twice; keep one")
            is_quoted = text.startswith('"') and kind.tool == "ncu"  # others quote as they like
            return Sheet(file, kind, tuple(names), line, complaint, is_quoted, encoding, progress)
    if complaint:
        check("kernels", str(path), (), 0, complaint)
    for data, first in _chunks(file, encoding, no_progress):
        header = find_header(_numbered(data, first))
        if header is None or not header.is_log:
            return None
        kind, line = registry.KIND_OF_TABLES, header.line
        return Sheet(file, kind, header.names, line, "", False, encoding, progress, header)
    return None


def _kind_of_json(file: HeldFile) -> Kind | None:
    head = b"".join(islice(file.pieces(), _HEAD // PIECE))
    fitting = (k for k in registry.READERS if k.json and f'"{k.json}"'.encode() in head)
    return next(fitting, None)


def _chunks(file: HeldFile, encoding: str, progress: ByteProgress) -> Iterator[tuple[bytes, int]]:
    """Whole lines in UTF-8, each ended by one newline, and the number of the first. InputError."""
    line, position, path = 1, 0, file.path
    with file.open() as binary:
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
            if b"\0" in data:
                raise InputError(
                    f"{path}: is not text; export the profiler's report as CSV, for Nsight "
                    "Compute by: ncu --import REPORT --page raw --csv"
                )
            if len(data) - data.rfind(b"\n", 0, -1) > BLOCK:
                row = line + line_count(data) - 1
                raise InputError(f"{path}: row {row}: is longer than {BLOCK >> 20} MiB")
            if not data.isascii():
                data = data.decode(errors="replace").encode()
            yield data, line
            line += line_count(data)


def _numbered(data: bytes, line: int) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, from that of the first on."""
    return enumerate(data.decode().removesuffix("\n").split("\n"), line)


def _end_of_line(data: bytes, count: int) -> int:
    """Where the `count`th line of a text ends; 0 for none."""
    end = 0
    for _ in range(count):
        if (next_end := data.find(b"\n", end) + 1) == 0:
            return len(data)
        end = next_end
    return end


def _begin_of_last(data: bytes, count: int) -> int:
    """Where the last `count` lines of a text begin, each of which ends in a newline."""
    begin = len(data)
    for _ in range(count):
        begin = data.rfind(b"\n", 0, begin - 1) + 1
    return begin


@contextmanager
def opened_database(path: Path) -> "Iterator[sqlite3.Connection]":
    """A SQLite file to read from, which is not written, and of which no code runs. InputError."""
    import sqlite3

    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", errors="replace")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        why = without_controls(str(error))[:200] if isinstance(error, sqlite3.Error) else "schema"
        raise InputError(f"{path}: cannot be read as SQLite ({why}); export it again") from None


def tables_of(database: "sqlite3.Connection") -> dict[str, set[str]]:
    """By name the columns of all tables that hold rows of their own; views and others are not."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    query = "SELECT name FROM pragma_table_info(?)"
    return {
        str(name): {str(column) for (column,) in database.execute(query, (name,))}
        for (name,) in sorted(names)
    }
