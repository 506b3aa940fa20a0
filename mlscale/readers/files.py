"""A file as it is read: its kind by its content, its table in blocks of rows, its tables in SQLite.

`open_file` finds the kind in the registry and gives a `Sheet`, whose `blocks` are columns under the
names of the header, wherever they stand. Blocks are bounded: the file is never held as a whole.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from mlscale.data.checks import check
from mlscale.errors import InputError
from mlscale.files import PIECE, ByteProgress, no_progress, unpacked
from mlscale.readers import registry
from mlscale.readers.columns import Block, Labels, columns_by_arrow, labels
from mlscale.readers.headers import Header, find_header, split
from mlscale.readers.registry import Kind

BLOCK = 4 << 20  # bytes that are read at once, and no line is longer
LEAST_FOR_ARROW = 1 << 18  # bytes: for fewer the import of Arrow takes longer than it saves
_LONGEST_RUN = 64 << 20  # bytes of rows that must stay together
_HEAD = 16 << 20  # bytes in which a JSON file says what it is
_JSON = re.compile(rb"\x1f\x8b|(\xef\xbb\xbf)?\s*(\{|\[\s*[{\[\"])")
_COMPLAINT = re.compile(r"==ERROR==|SKIPPED: .* does not contain|Error: ")
_PACKED = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass
class Sheet:
    """An open file whose kind is known.

    Attributes:
        path: the file.
        kind: what it is.
        header: the names of its columns, stripped; of another text the cells of its first line.
        header_line: the row of the header, or of the line at which it begins.
        complaint: what the tool itself says above it that went wrong.
        is_quoted: whether the header stands in quotes.
        table: its header, of a log whose titles are words.
    """

    path: Path
    kind: Kind
    header: tuple[str, ...] = ()
    header_line: int = 1
    complaint: str = ""
    is_quoted: bool = False
    encoding: str = "utf-8-sig"
    progress: ByteProgress = no_progress
    table: Header | None = None
    _is_ended: bool = field(default=False, init=False)

    def cells(self, text: str) -> list[str] | None:
        """The cells of a line of its table; None of one that is no row."""
        return self.table.row(text) if self.table else split(text)

    def find(self, *names: str) -> str | None:
        """The first of these columns that the header has; None without any."""
        return next((name for name in names if name in self.header), None)

    def require(self, *names: str) -> None:
        """Raise InputError where the header lacks one of these columns."""
        if lacks := [name for name in names if name not in self.header]:
            raise InputError(
                f"{self.path}: row {self.header_line} is a header of {self.kind.title}, but lacks "
                f"{', '.join(lacks)}; export it with them"
            )

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line from the header, or the line at which it begins, on, with its number."""
        for data, line in _chunks(self.path, self.encoding, self.progress):
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
        for data, line in _chunks(self.path, self.encoding, self.progress):
            above = self.header_line + skipped + 1 - line  # lines of this chunk that are no rows
            cut = _end_of_line(data, above)
            rows, first_line = held + data[cut:], held_line if held else line + max(0, above)
            block = self._block(rows, first_line, kinds, least, ends_at_blank)
            held = b""
            if together and len(block) and not self._is_ended:
                begin = int(block.first_of_runs(*together)[0][-1])
                held_line = int(block.lines[begin])
                lines = rows.count(b"\n") - (held_line - first_line)
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
            count = data.count(b"\n")
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


def open_file(path: Path, progress: ByteProgress = no_progress) -> Sheet | None:
    """What a file is, by its content; None where the registry has nothing like it.

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
    if path.suffix == ".mlscale":
        raise InputError(f"{path}: is a model; name it before the files, or with --model")
    if mark.startswith(_PACKED):
        raise InputError(f"{path}: is compressed; unpack it first")
    if mark.startswith(b"SQLite format 3\0"):
        from mlscale.readers.database import opened_database, tables_of

        with opened_database(path) as database:
            tables = tables_of(database)
        kind = next((k for k in registry.READERS if k.tables and _any(tables, k.tables)), None)
        return Sheet(path, kind) if kind else None
    if _JSON.match(mark):
        kind = _kind_of_json(path, mark[0] == 0x1F)
        return Sheet(path, kind, progress=progress) if kind else None
    encoding = "utf-16" if mark[:2] in _UTF_16 else "utf-8-sig"
    return _open_text(path, encoding, progress)


def is_benchmark(path: Path) -> bool:
    """Whether a file is a result of a benchmark of a server, which is JSON; not what is no file."""
    with suppress(InputError, OSError):
        with path.open("rb") as binary:
            mark = binary.read(64)
        kind = _kind_of_json(path, mark[0] == 0x1F) if _JSON.match(mark) else None
        return kind is not None and kind.is_benchmark
    return False


def _any(names: Mapping[str, object], begin: str) -> bool:
    return any(name.startswith(begin) for name in names)


def _open_text(path: Path, encoding: str, progress: ByteProgress) -> Sheet | None:
    complaint = ""
    for data, first in _chunks(path, encoding, no_progress):
        for line, text in _numbered(data, first):
            names = _names(text)
            kind = next((one for one in registry.READERS if one.begins_at(text, names)), None)
            if kind is None:
                if not complaint and _COMPLAINT.match(text):
                    complaint = text.strip()[:300]
                continue
            if kind.instead:
                raise InputError(f"{path}: row {line}: {kind.title} {kind.instead}")
            if kind.columns and (
                twice := [name for name in names if names.count(name) > 1 and name]
            ):
                raise InputError(
                    f"{path}: row {line}: column '{twice[0]}' is there twice; keep one"
                )
            is_quoted = text.startswith('"') and kind.tool == "ncu"  # others quote as they like
            return Sheet(path, kind, tuple(names), line, complaint, is_quoted, encoding, progress)
    if complaint:
        check("kernels", str(path), (), 0, complaint)
    for data, first in _chunks(path, encoding, no_progress):
        header = find_header(_numbered(data, first))
        if header is None or not header.is_log:
            return None
        kind, line = registry.KIND_OF_TABLES, header.line
        return Sheet(path, kind, header.names, line, "", False, encoding, progress, header)
    return None


def _names(line: str) -> list[str]:
    try:
        [names] = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        return []
    return [name.strip() for name in names]


def _kind_of_json(path: Path, is_packed: bool) -> Kind | None:
    with path.open("rb") as binary:
        head = b"".join(islice(unpacked(path, binary), _HEAD // PIECE))
    fitting = (k for k in registry.READERS if k.json and f'"{k.json}"'.encode() in head)
    kind = next(fitting, None)
    if is_packed and (kind is None or kind.is_log):
        raise InputError(f"{path}: is compressed; unpack it first")
    return kind


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
            if b"\0" in data:
                raise InputError(
                    f"{path}: is not text; export the profiler's report as CSV, of Nsight Compute "
                    "by: ncu --import REPORT --page raw --csv"
                )
            if len(data) - data.rfind(b"\n", 0, -1) > BLOCK:
                row = line + data.count(b"\n") - 1
                raise InputError(f"{path}: row {row}: is longer than {BLOCK >> 20} MiB")
            if not data.isascii():
                data = data.decode(errors="replace").encode()
            yield data, line
            line += data.count(b"\n")


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
