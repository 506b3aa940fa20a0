"""An export as lines and records: decoded, bounded, one record a line, never the whole file."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from mlscale.errors import InputError
from mlscale.profilers.layouts import Layout, layout_of, why_unread

LONGEST_LINE = 4 << 20
_PROGRESS_LINES = 10_000
_BRACES = re.compile(r"\{[^{}]*\}")
_TOOL_LINE = re.compile(r"^=(=+|\d+=+|=+\d+=+)( |$)")
_TOOL_ERROR = re.compile(
    r"==ERROR==|(?<!=)=+ Error\b|^Error: |(?<!=)=+ Warning: .*(not profiled|permission)"
)
_TOOL_ERROR_IN = 1000  # characters of a line in which a complaint begins

Row = tuple[int, list[str]]
Progress = Callable[[int], None]


def _ignore(_count: int) -> None:
    """No progress is shown."""


@dataclass
class Export:
    """An open export whose table begins at the next line.

    header: the names, stripped; command: the program that was profiled, where the file says;
    skipped: lines inside the table that were no rows of it (the program's own output).
    """

    path: Path
    layout: Layout
    header: tuple[str, ...]
    header_line: int
    delimiter: str
    quoted: bool
    command: str | None
    lines: Iterator[tuple[int, str]]
    skipped: list[int] = field(default_factory=list)

    def where(self, line: int, column: str | None = None) -> str:
        """The beginning of a message: file, row, and column."""
        place = f"{self.path}: row {line}"
        return place if column is None else f"{place}, column '{column}'"

    def columns(self, *names: str) -> list[int]:
        """Where the named columns stand. Raises InputError when one is missing."""
        for name in names:
            if name not in self.header:
                raise InputError(f"{self.where(self.header_line)}: there is no column '{name}'")
        return [self.header.index(name) for name in names]

    def find(self, *names: str) -> int | None:
        """Where the first of these columns stands that is there; None without any."""
        return next((self.header.index(name) for name in names if name in self.header), None)

    def rows(self, shortest: int | None = None) -> Iterator[Row]:
        """Every row with its line, as long as the header; shorter ones (`shortest` fields) padded.

        Raises InputError on a ragged row and on a field that does not end in its line.
        """
        numbers: list[int] = []
        reader = csv.reader(
            self._table(numbers), delimiter=self.delimiter, strict=True, skipinitialspace=True
        )
        count, width = 0, len(self.header)
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                raise InputError(
                    f"{self.where(numbers[-1])}: is not valid CSV: {error}; is the file cut off?"
                ) from None
            if fields is None:
                return
            count += 1
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

    def _table(self, numbers: list[int]) -> Iterator[str]:
        """Lines of the table alone; each line's number is put on `numbers` as it is read."""
        for number, line in self.lines:
            if not line.strip():
                if self.layout.ends_at_blank:
                    return
                continue
            if _TOOL_LINE.match(line) or (
                self.quoted and self.layout.every_row_quoted and not line.startswith('"')
            ):
                self.skipped.append(number)
                continue
            numbers.append(number)
            yield _without_commas_in_braces(line) if self.layout.braces else line


def _without_commas_in_braces(line: str) -> str:
    return _BRACES.sub(lambda match: re.sub("[,;]", " ", match[0]), line)


def open_export(path: Path, progress: Progress = _ignore) -> tuple[Export, TextIO]:
    """Find the table in a file; the caller closes what is returned beside it.

    progress is called with the number of bytes read since the last call. Raises InputError on
    a file that is not text and on one without a table, quoting the tool's own error line.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file")
        with path.open("rb") as binary:
            mark = binary.read(4)
        encoding = "utf-16" if mark[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        file = path.open(encoding=encoding, errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return _find_table(path, _numbered(path, file, progress)), file
    except BaseException:
        file.close()
        raise


def _numbered(path: Path, file: TextIO, progress: Progress) -> Iterator[tuple[int, str]]:
    """Lines without their end, from 1. Raises InputError on a line that no tool writes."""
    seen = number = 0
    try:
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"{path}: row {number}: is longer than {LONGEST_LINE >> 20} MiB; "
                    "this is no profiler's export"
                )
            if "\0" in line:
                raise InputError(
                    f"{path}: row {number}: is not text; export the profiler's report as CSV"
                )
            yield number, line.rstrip("\n")
            if number % _PROGRESS_LINES == 0:
                position = file.buffer.tell()
                progress(position - seen)
                seen = position
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeError as error:
        raise InputError(f"{path}: row {number + 1}: is damaged text: {error}") from None


def _find_table(path: Path, lines: Iterator[tuple[int, str]]) -> Export:
    separators, complaint, command, first = [",", ";"], None, None, None
    for number, line in lines:
        first = first or line.strip()
        if complaint is None and _TOOL_ERROR.search(line, 0, _TOOL_ERROR_IN):
            complaint = line.strip()
        if line.startswith("# ListSeparator="):
            separators = [line.partition("=")[2].strip()[:1] or ","]
        command = _command(line) or command
        for separator in separators:
            names = _fields(line, separator)
            layout = layout_of(names)
            if layout is not None:
                _check_header(path, number, names)
                return Export(
                    path=path,
                    layout=layout,
                    header=tuple(names),
                    header_line=number,
                    delimiter=separator,
                    quoted=line.startswith('"'),
                    command=command,
                    lines=lines,
                )
            if unread := why_unread(names):
                raise InputError(f"{path}: row {number}: cannot read {unread}")
    if first is None:
        raise InputError(f"{path}: is empty")
    if complaint:
        raise InputError(f"{path}: no kernels were profiled; the profiler says: {complaint[:300]}")
    raise InputError(
        f"{path}: holds no table that mlscale knows; it begins with '{first[:60]}'; "
        "see docs/profiling.md for the commands that write one"
    )


def _fields(line: str, separator: str) -> list[str]:
    if separator not in line or len(line) > 1 << 20:
        return []
    try:
        [names] = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        return []
    return [name.strip() for name in names]


def _command(line: str) -> str | None:
    if (match := re.match(r"^==\d+== NVPROF is profiling process \d+, command: (\S+)", line)) or (
        match := re.match(r"^# Application=(.+)$", line)
    ):
        return re.split(r"[/\\]", match[1].strip())[-1] or None
    return None


def _check_header(path: Path, number: int, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(
                f"{path}: row {number}: column '{name}' is there twice; which one is meant?"
            )


def peek(rows: Iterator[Row], count: int) -> tuple[list[Row], Iterator[Row]]:
    """The first rows, and an iterator that still has them."""
    first = list(islice(rows, count))
    return first, chain(first, rows)
