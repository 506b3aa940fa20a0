"""An export's table in blocks of rows, column by column.

A large block that is plain CSV is parsed by Arrow. Any other one, and one that Arrow refuses, is
parsed row by row: only that says in which row an error is. Of tables with a row for each counter of
a launch, `runs_of` and the functions below it tell which rows are of one, and their counters.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.arrow import has_arrow
from mlscale.errors import InputError
from mlscale.profilers.exports.cells import ArrowCells, Cells, Labels, ListedCells, Wholes
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.text_lines import TextLines
from mlscale.profilers.exports.values import (
    parse_counter,
    parse_size,
    parse_timestamp,
    parse_whole,
)

LEAST_FOR_ARROW = 1 << 18  # bytes; for fewer its import takes longer than it saves
_Words = NDArray[np.uint64]
Timestamps = NDArray[Any]  # of int64, float64, or of fractions, integers and None
_LARGEST_LAUNCH = 64 << 20  # bytes of the rows of one launch
_ROWS = 10_000
_AT_ONCE = 1 << 17  # bytes
_QUOTE, _COMMA, _NEWLINE = ord('"'), ord(","), ord("\n")
_ODD_BEGINS = b"\n \t"  # of a line: it may be blank


@dataclass
class Block:
    """Rows that stand together in a file: their lines (n,), and their cells by column.

    is_last: whether no rows follow; held: from which row on they shall come again, at the beginning
    of the next block. Every method raises InputError with row and column.
    """

    export: Export
    lines: Indices
    cells: dict[int, Cells]
    is_last: bool = True
    held: int | None = field(default=None, init=False)
    _labels: dict[int, Labels] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int, column: int | None = None) -> str:
        """The beginning of a message about a row of the block."""
        return self.export.where(int(self.lines[row]), column)

    def take(self, rows: Indices) -> "Block":
        """Those rows."""
        cells: dict[int, Cells] = {c: cells.take(rows) for c, cells in self.cells.items()}
        return Block(self.export, self.lines[rows], cells)

    def head(self, count: int) -> "Block":
        """The first rows."""
        cells: dict[int, Cells] = {c: cells.head(count) for c, cells in self.cells.items()}
        return Block(self.export, self.lines[:count], cells)

    def where_label(self, column: int, holds: Callable[[str], bool]) -> "Block":
        """The rows whose text in a column is such."""
        codes, texts = self.labels(column)
        is_such = np.array([holds(text) for text in texts], np.bool_)[codes]
        return self if is_such.all() else self.take(np.flatnonzero(is_such))

    def labels(self, column: int) -> Labels:
        """The distinct texts of a column."""
        if column not in self._labels:
            self._labels[column] = self.cells[column].labels()
        return self._labels[column]

    def renamed(self, column: int | None, rename: Callable[[str], str]) -> Labels | None:
        """The distinct texts of a column under other names; None without the column."""
        return None if column is None else self.labels(column).renamed(rename)

    def numbers(self, column: int, parse: Callable[[str, str], float]) -> Floats:
        """A column's numbers; `parse` reads from text and place what is no plain number."""
        return self.filled(column, self.cells[column].numbers(), parse)

    def filled(self, column: int, values: Floats, parse: Callable[[str, str], float]) -> Floats:
        """The values, and where they are NaN what `parse` reads in the column."""
        odd = np.flatnonzero(np.isnan(values))
        if len(odd):
            values = values.copy()
            values[odd] = self._parsed(column, self.cells[column].take(odd).texts, odd, parse)
        return values

    def counters(self, column: int) -> Floats:
        """A column of counters, NaN where one is missing."""
        return self.numbers(column, parse_counter)

    def by_label(self, column: int, parse: Callable[[str, str], float]) -> Floats:
        """A column of few distinct texts as numbers."""
        labels = self.labels(column)
        first = np.empty(len(labels.texts), np.intp)
        first[labels.codes[::-1]] = np.arange(len(self))[::-1]  # the last of several stays
        return labels.spread(self._parsed(column, labels.texts, first, parse))

    def sizes(self, *columns: int) -> Floats:
        """The product of columns of numbers of work-items or workgroups."""
        return np.asarray(np.prod([self._sizes(column) for column in columns], axis=0))

    def _sizes(self, column: int) -> Floats:
        values = self.cells[column].wholes()
        if values is not None and (values >= 1).all():
            return values.astype(np.float64)
        return self.by_label(column, parse_size)

    def wholes(self, column: int, what: str, least: int = 0) -> Wholes:
        """A column of whole numbers, `what` they are in the message otherwise."""
        values = self.cells[column].wholes()
        if values is None or (values < least).any():
            texts = self.cells[column].texts
            parsed = [
                parse_whole(text, self.where(row, column), what, least)
                for row, text in enumerate(texts)
            ]
            values = np.array(parsed, np.int64)
        return values

    def timestamps(self, column: int) -> Timestamps:
        """A column of nanoseconds, exactly: where they are no int64, fractions and None."""
        values = self.cells[column].wholes()
        if values is not None:
            return values
        stamps = np.empty(len(self), np.object_)
        for row, text in enumerate(self.cells[column].texts):
            stamps[row] = parse_timestamp(text, self.where(row, column))
        return stamps

    def _parsed(
        self, column: int, texts: list[str], rows: Indices, parse: Callable[[str, str], float]
    ) -> list[float]:
        """The texts of those rows as numbers, each distinct one parsed once."""
        known: dict[str, float] = {}
        for text, row in zip(texts, rows.tolist(), strict=True):
            if text not in known:
                known[text] = parse(text, self.where(row, column))
        return [known[text] for text in texts]


def durations_s(begins: Timestamps, ends: Timestamps) -> Floats:
    """From begin to end [s]; NaN where one of them is missing."""
    if begins.dtype == ends.dtype == np.int64:
        return np.asarray((ends - begins) / 1e9, np.float64)
    pairs = zip(begins.tolist(), ends.tolist(), strict=True)
    return np.array(
        [np.nan if None in pair else float(Fraction(pair[1] - pair[0])) / 1e9 for pair in pairs],
        np.float64,
    )


def blocks(
    export: Export, used: Iterable[int | None], shortest: int | None = None
) -> Iterator[Block]:
    """The table's rows in blocks, with the columns that are used, None of which is none.

    Raises InputError as Export.rows does.
    """
    columns = [column for column in used if column is not None]
    if not isinstance(export.lines, TextLines):
        rows = export.rows(shortest)
        while len(part := block_of(export, columns, islice(rows, _ROWS))):
            yield part
        return
    held, number, is_last = b"", 0, False
    while not is_last:
        number = number if held else export.lines.number + 1
        further = export.lines.block()
        data = held + further
        if not data:
            return
        lines = np.arange(number, export.lines.number + 1)
        block = _by_arrow(export, columns, shortest, data, lines)
        if block is None:
            numbered = enumerate(data.decode().removesuffix("\n").split("\n"), number)
            block = block_of(export, columns, export.rows(shortest, numbered))
        is_last = block.is_last = export.is_ended or not further
        if len(block):
            yield block
        held = b""
        if block.held is not None and not is_last:
            number = int(block.lines[block.held])
            held = _last_lines(data, export.lines.number - number + 1)
        if len(held) > _LARGEST_LAUNCH:
            raise InputError(
                f"{block.where(0)}: this launch has more than {_LARGEST_LAUNCH >> 20} MiB of rows"
            )


def _last_lines(data: bytes, count: int) -> bytes:
    """That many lines from the end of a text."""
    begin = len(data)
    for _ in range(count):
        begin = data.rfind(b"\n", 0, begin - 1) + 1
    return data[begin:]


def block_of(
    export: Export, columns: Iterable[int], rows: Iterable[tuple[int, list[str]]]
) -> Block:
    """Rows with their lines as a block with those columns."""
    lines: list[int] = []
    cells: dict[int, list[str]] = {column: [] for column in columns}
    for line, row in rows:
        lines.append(line)
        for column, texts in cells.items():
            texts.append(row[column])
    return Block(
        export, np.array(lines, np.intp), {column: ListedCells(t) for column, t in cells.items()}
    )


def _by_arrow(
    export: Export, columns: list[int], shortest: int | None, data: bytes, lines: Indices
) -> Block | None:
    """The block of those lines; None where it is small, or not plain."""
    if len(data) < LEAST_FOR_ARROW:
        return None
    if not has_arrow() or not _is_plain(export, np.frombuffer(data, np.uint8)):
        return None
    first = data[: data.index(b"\n")].decode()
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [str(column) for column in columns]
    try:
        width = len(next(csv.reader([first])))
        if not (shortest or len(export.header)) <= width <= len(export.header):
            return None
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=list(map(str, range(width)))),
            arrow_csv.ParseOptions(),
            arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=names,
                include_missing_columns=False,
            ),
        )
    except (csv.Error, pa.ArrowInvalid, KeyError):
        return None
    cells = {column: ArrowCells(pa.concat_arrays(table[str(column)].chunks)) for column in columns}
    is_alike = table.num_rows == len(lines)  # else a field goes on in a further line
    if not is_alike or any(of_column.begins_with_blank() for of_column in cells.values()):
        return None
    return Block(export, lines, dict(cells))


def _is_plain(export: Export, view: NDArray[np.uint8]) -> bool:
    """Whether every line is a row, and quotes open and close fields in turn."""
    if view[-1] != _NEWLINE or view[0] in _ODD_BEGINS:
        return False
    all_quoted = export.layout.every_row_quoted and export.quoted
    if all_quoted and view[0] != _QUOTE:
        return False
    quotes, borders = (np.zeros(len(view) // 64 + 1, "<u8") for _ in range(2))
    for begin in range(0, len(view), _AT_ONCE):  # few enough for the processor's cache
        part, at = view[begin : begin + _AT_ONCE], begin // 8
        is_newline = part == _NEWLINE
        after = view[begin + 1 : begin + _AT_ONCE + 1]
        if all_quoted:
            is_odd = after != _QUOTE
        else:
            is_odd = np.logical_or.reduce([after == character for character in _ODD_BEGINS])
        if (is_newline[: len(after)] & is_odd).any():
            return False
        is_border = (part == _COMMA) | is_newline
        for words, which in ((quotes, part == _QUOTE), (borders, is_border)):
            packed = np.packbits(which, bitorder="little")
            words.view(np.uint8)[at : at + len(packed)] = packed
    return _are_in_turn(quotes, borders)


def _are_in_turn(quotes: _Words, borders: _Words) -> bool:
    """Whether every other quote has a border before it, and the ones between have one behind.

    A bit for each byte of the text, the lowest for the first.
    """
    one, top = np.uint64(1), np.uint64(63)
    before, behind = borders << one, borders >> one
    before[0] |= one
    before[1:] |= borders[:-1] >> top
    behind[:-1] |= borders[1:] << top
    is_open = quotes.copy()  # from a quote to the next, by the parity of those so far
    for shift in (1, 2, 4, 8, 16, 32):
        is_open ^= is_open << np.uint64(shift)
    is_odd = np.logical_xor.accumulate(is_open >> top == one)
    is_open[1:] ^= np.where(is_odd[:-1], ~np.uint64(0), np.uint64(0))
    is_in_turn = (quotes & ~(is_open & before | ~is_open & behind) == 0).all()
    return bool(is_in_turn and not is_odd[-1])


def runs_of(*columns: NDArray[Any]) -> Indices:
    """Where in columns (n,) of equal length rows begin that differ from the one above."""
    differs = np.zeros(len(columns[0]), np.bool_)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def whole_runs(block: Block, first: Indices) -> tuple[Indices, Indices]:
    """The runs that certainly end in the block: their first rows, and the run of each row.

    first: where all runs of the block begin; the block holds the last one if rows may follow.
    """
    end = len(block)
    if not block.is_last:
        end, first = int(first[-1]), first[:-1]
        block.held = end
    return first, np.repeat(np.arange(len(first)), np.diff([*first, end]))


def by_run(runs: Indices, count: int, values: Floats) -> tuple[Floats, int | None]:
    """The value of each of `count` runs (count,), NaN without any, from values (n,) of their rows.

    Also the first row that says another value than one above it of the same run; None without.
    """
    of_run = np.full(count, np.nan)
    given = np.flatnonzero(~np.isnan(values))
    of_run[runs[given[::-1]]] = values[given[::-1]]  # of several rows the first counts
    other = given[of_run[runs[given]] != values[given]]
    return of_run, int(other[0]) if len(other) else None
