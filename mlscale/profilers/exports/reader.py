"""An export as a table: which tool wrote it, and its rows, decoded, bounded and streamed.

A table is known by the names in its header, never by the file's name. A row is one line, and the
file is never held as a whole.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from mlscale.errors import InputError
from mlscale.files import ByteProgress, no_progress
from mlscale.profilers.exports.json_chunks import is_json_trace, text_chunks
from mlscale.profilers.exports.layouts import (
    NCU_TEXT,
    TORCH_TRACE,
    ExportLayout,
    layout_of,
)
from mlscale.profilers.exports.sqlite import layout_of_database
from mlscale.profilers.exports.text_lines import TextLines
from mlscale.profilers.exports.unread import ROCPROFV3_MEND, TITLE_LINES, mend_of, refusal_of
from mlscale.profilers.exports.values import parse_counter, parse_whole

_LONGEST_HEADER = 1 << 20
_DASHES = re.compile(r" *-+( +-+)+ *")
_OTHER_REPORT = re.compile(r"[\s\"]*Time ?\(%\)\W+Total Time")  # of nsys
_SQLITE = b"SQLite format 3\0"
_ROCPROFV3_JSON = b'"rocprofiler-sdk-tool"'
_MARK_BYTES = 64
_ZIP = b"PK\x03\x04"
_COMPRESSED = {  # by the bytes with which its files begin, what unpacks them
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\xfd7zXZ": "xz -d",
    b"BZh": "bzip2 -d",
}
_TOOL_ERROR = re.compile(
    r"^SKIPPED: .* does not contain CUDA (kernel|trace) data|"
    r"==ERROR==|^Error: "
)
NCU_SECTION = re.compile(r" {4,}Section: \S")
# Who pastes a text may lose the blanks before its first line, or gain some before each.
NCU_LAUNCH = re.compile(r"  \S|\s*\S.* \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), (Context|Device) \d")
NCU_PROGRAM = re.compile(r"\s*\[(?P<process>\d+)\] (?P<program>.+)@\S+\s*$")
_TOOL_ERROR_IN = 1000  # characters of a line in which a complaint begins


class NoTableError(InputError):
    """A file in which no reader knows a table."""


@dataclass
class Export:
    """An open export whose table begins at the next line.

    header: the names, stripped; lines: with their numbers, or of JSON pieces of any length;
    complaint: the tool's own error line above the table; skipped: how many lines inside the table
    were the program's or the tool's own output; is_ended: whether a blank line has ended the table.
    """

    path: Path
    layout: ExportLayout
    lines: Iterator[tuple[int, str]] = field(default_factory=lambda: iter(()))
    header: tuple[str, ...] = ()
    header_line: int = 0
    quoted: bool = False
    complaint: str | None = None
    skipped: int = field(default=0, init=False)
    is_ended: bool = field(default=False, init=False)
    _passed: int = field(default=0, init=False)  # up to this line skipped ones are counted
    _aside: int = field(default=0, init=False)  # skipped ones below which no row came yet

    def where(self, line: int, column: int | None = None) -> str:
        """The beginning of a message: the file, the row, and the column at that position."""
        place = f"{self.path}: row {line}"
        return place if column is None else f"{place}, column '{self.header[column]}'"

    def columns(self, *names: str) -> list[int]:
        """Where the named columns stand, of 'A|B' the first. Raises InputError without one."""
        positions = []
        for name in names:
            either = name.split("|")
            if (position := self.find(*either)) is None:
                lacks = " or ".join(f"'{one}'" for one in either)
                raise InputError(f"{self.where(self.header_line)}: there is no column {lacks}")
            positions.append(position)
        return positions

    def find(self, *names: str) -> int | None:
        """Where the first of these columns stands that is there; None without any."""
        return next((self.header.index(name) for name in names if name in self.header), None)

    def counter(self, line: int, row: list[str], column: int) -> float:
        """A counter, NaN where it is missing. Raises InputError."""
        return parse_counter(row[column], self.where(line, column))

    def whole(self, line: int, row: list[str], column: int, what: str, least: int = 0) -> int:
        """A whole number, `what` it is in the message otherwise. Raises InputError."""
        return parse_whole(row[column], self.where(line, column), what, least)

    def rows(
        self, shortest: int | None = None, lines: Iterator[tuple[int, str]] | None = None
    ) -> Iterator[tuple[int, list[str]]]:
        """Every row with its line, as long as the header; shorter ones (`shortest` fields) padded.

        lines: of the table, in place of all that follow. Raises InputError on a ragged row and on
        a field that does not end in its line.
        """
        numbers: list[int] = []
        reader = csv.reader(
            self._table(self.lines if lines is None else lines, numbers),
            strict=True,
            skipinitialspace=True,
        )
        width = len(self.header)
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                raise InputError(
                    f"{self.where(numbers[-1])}: is not valid CSV: {error}; is the file cut off?"
                ) from None
            if fields is None:
                return
            line = numbers[0]
            if len(numbers) > 1:
                raise InputError(f"{self.where(line)}: a quoted field does not end in its line")
            numbers.clear()
            if len(fields) != width:
                if not (shortest is not None and shortest <= len(fields) < width):
                    raise InputError(
                        f"{self.where(line)}: has {len(fields)} fields, the header has {width}; "
                        "is the file cut off?"
                    )
                fields += [""] * (width - len(fields))
            yield line, fields

    def refuse_further_tables(self) -> None:
        """Raise InputError where tables of the same kind stand below what was read."""
        tables = [self, *iter(lambda: _next_table(self.path, self.lines), None)]
        rows = [str(table.header_line) for table in tables if table.layout == self.layout]
        if len(rows) > 1:
            raise InputError(
                f"{self.path}: has tables of kernels in rows {', '.join(rows)}; each is of a run "
                "of its own: keep one in the file"
            )

    def _table(self, lines: Iterator[tuple[int, str]], numbers: list[int]) -> Iterator[str]:
        """Lines of the table alone; each line's number is put on `numbers` as it is read."""
        for number, line in lines:
            if not line.strip():
                if self.layout.ends_at_blank:
                    self.is_ended = True
                    return
                continue
            if self.quoted and self.layout.every_row_quoted and not line.startswith('"'):
                self._aside += number > self._passed
                self._passed = max(self._passed, number)
                continue
            self.skipped, self._aside = self.skipped + self._aside, 0
            numbers.append(number)
            yield line


@contextmanager
def open_export(path: Path, progress: ByteProgress = no_progress) -> Iterator[Export]:
    """Find the table in a file, which is open as long as the block runs.

    progress is called with the number of bytes read since the last call. Raises InputError on
    a file that is not text and on one without a table, quoting the tool's own error line.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file")
        with path.open("rb") as binary:
            mark = binary.read(_MARK_BYTES)
        if unpacker := next((_COMPRESSED[b] for b in _COMPRESSED if mark.startswith(b)), None):
            raise InputError(f"{path}: is compressed; unpack it first: {unpacker} {path.name}")
        if mark.startswith(_ZIP):
            raise InputError(
                f"{path}: is a ZIP archive, as mlscale's models are, and no profiler's export; "
                "name a model with --model, and unpack anything else"
            )
        if _ROCPROFV3_JSON in mark:
            raise InputError(f"{path}: is rocprofv3's JSON, which is not read; {ROCPROFV3_MEND}")
        if mark.startswith(_SQLITE):
            yield Export(path, layout_of_database(path))
            return
        if is_json_trace(path):
            with text_chunks(path, progress) as chunks:
                yield Export(path, TORCH_TRACE, chunks)
            return
        encoding = "utf-16" if mark[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        file = path.open(encoding=encoding, errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    with file:
        yield _find_table(path, TextLines(path, file, progress))


@dataclass
class _Above:
    """What stands above a table: the first line, and what the tool says."""

    first: str = ""
    complaint: str | None = None
    other_report: int | None = None  # the row of a table of nsys that is not of kernels
    mend: str | None = None  # of a file that no reader knows

    def note(self, number: int, line: str) -> None:
        """Keep what the line says, if none above it said so."""
        self.first = self.first or line.strip()
        self.complaint = self.complaint or _complaint(line)
        if number <= TITLE_LINES:
            self.mend = self.mend or mend_of(line)
        if self.other_report is None and _OTHER_REPORT.match(line):
            self.other_report = number


def _find_table(path: Path, lines: Iterator[tuple[int, str]]) -> Export:
    above = _Above()
    export = _next_table(path, lines, above)
    if export is not None:
        return export
    if not above.first:
        raise InputError(f"{path}: is empty")
    if above.complaint:
        what = "traced" if above.complaint.startswith("SKIPPED") else "profiled"
        raise InputError(
            f"{path}: no kernels were {what}; the profiler says: {above.complaint[:300]}"
        )
    if above.other_report is not None:
        raise InputError(
            f"{path}: row {above.other_report}: this report of Nsight Systems is not one of "
            "kernels, or no CSV; give nsys stats --report cuda_gpu_trace --format csv"
        )
    mend = above.mend or (
        "docs/profiling.md has the commands that write one, docs/sampled-logs.md those of monitors"
    )
    raise NoTableError(
        f"{path}: holds no table that mlscale knows; it begins with '{above.first[:60]}'; {mend}"
    )


def _next_table(
    path: Path, lines: Iterator[tuple[int, str]], above: _Above | None = None
) -> Export | None:
    """The next table that a reader knows; None without. What stands above it goes to `above`."""
    above = above or _Above()
    program: list[tuple[int, str]] = []  # the last lines that may begin ncu's text
    launch: list[tuple[int, str]] = []
    for number, line in lines:
        above.note(number, line)
        if NCU_PROGRAM.match(line):
            program = [(number, line)]
        elif NCU_LAUNCH.match(line):
            launch = [(number, line)]
        elif launch and NCU_SECTION.match(line):
            begin = [*sorted(program + launch), (number, line)]
            return Export(path, NCU_TEXT, chain(begin, lines), complaint=above.complaint)
        names = _fields(line)
        layout = layout_of(names)
        if layout is not None:
            _check_header(path, number, names)
            return Export(
                path,
                layout,
                lines,
                tuple(names),
                number,
                quoted=line.startswith('"'),
                complaint=above.complaint,
            )
        if refusal := refusal_of(names):
            raise InputError(f"{path}: row {number}: {refusal}")
    return None


def borders_of(line: str) -> tuple[slice, ...]:
    """Where the columns of a table in text stand, by a row of dashes; none of any other line."""
    if len(line) > _LONGEST_HEADER or not _DASHES.fullmatch(line):
        return ()
    return tuple(slice(*match.span()) for match in re.finditer("-+", line))


def _complaint(line: str) -> str | None:
    """The line, where the tool itself says in it what went wrong."""
    return line.strip() if _TOOL_ERROR.search(line, 0, _TOOL_ERROR_IN) else None


def _fields(line: str) -> list[str]:
    if "," not in line or len(line) > _LONGEST_HEADER:
        return []
    try:
        [names] = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        return []
    return [name.strip() for name in names]


def _check_header(path: Path, number: int, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(
                f"{path}: row {number}: column '{name}' is there twice; which one is meant?"
            )
