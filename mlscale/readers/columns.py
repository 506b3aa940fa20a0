"""Columns of a table in blocks of rows: texts, numbers and time stamps, by Arrow or the csv module.

A large block is parsed by pyarrow where that is installed. What pyarrow does not read as whole
rows, or as plain numbers, is read cell by cell, with the same outcome.
"""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.table import LARGEST_COUNTER
from mlscale.errors import InputError

if TYPE_CHECKING:
    from decimal import Decimal

_MISSING = {
    *("", "n/a", "na", "nan", "-nan", "nan(ind)", "-nan(ind)", "inf", "-inf", "infinity"),
    *("null", "none", "<overflow>", "overflow", "-"),
}
_PLAIN = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,9})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_ALL_THOUSANDS = r"^(\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?$"
_PLAIN_LINES = re.compile(r"((\d{1,300}|[1-9]\d{0,2}(,\d{3})+)(\.\d{1,300})?\n)*", re.ASCII)
_WHOLE = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)
_STAMP = re.compile(r"\d{1,19}(\.\d{0,20})?", re.ASCII)


class Labels(NamedTuple):
    """n cells as their distinct texts, in the order in which they come, and which each cell has."""

    codes: Indices
    texts: Sequence[str]

    def cells(self) -> list[str]:
        """All n texts."""
        return [self.texts[code] for code in self.codes.tolist()]

    def renamed(self, rename: Callable[[str], str]) -> "Labels":
        """The same cells with other texts, some of which may be alike then."""
        names = labels([rename(text) for text in self.texts])
        return Labels(names.codes[self.codes], names.texts)

    def __getitem__(self, rows: Any) -> Any:
        """The cells of those rows."""
        return Labels(self.codes[rows], self.texts)


def labels(cells: Sequence[str]) -> Labels:
    """Cells as labels."""
    index: dict[str, int] = {}
    codes = [index.setdefault(text, len(index)) for text in cells]
    return Labels(np.array(codes, np.intp), list(index))


def number(text: str) -> float:
    """A count or a measure; NaN if a cell says that there is none, or is not finite.

    Thousands may have commas. Raises InputError on anything else, or if no counter can have it.
    """
    cell = text.strip("' ")
    if _PLAIN.fullmatch(cell):
        value = float(cell)
    elif _THOUSANDS.fullmatch(cell):
        value = float(cell.replace(",", ""))
    elif cell.casefold() in _MISSING:
        return math.nan
    else:
        hint = "; is it a decimal comma? export with LC_ALL=C" if "," in cell else ""
        raise InputError(f"'{text[:40]}' is not a number{hint}")
    if value < 0 or LARGEST_COUNTER <= value < math.inf:
        raise InputError(f"'{text[:40]}' cannot be a counter's value")
    return value if value < math.inf else math.nan


def product(text: str) -> float:
    """The product of sizes such as '(98, 1, 1)' or '98 1 1'; NaN of none. Raises InputError."""
    if not text:
        return math.nan
    sizes = re.findall(r"[0-9]{1,10}", text)
    if not re.fullmatch(r"\(?[0-9\s,;]+\)?", text) or not 1 <= len(sizes) <= 3:
        raise InputError(f"'{text[:40]}' is not a size such as (98, 1, 1)")
    if 0 in map(int, sizes):
        raise InputError(f"'{text[:40]}' has a size of 0")
    return float(math.prod(map(int, sizes)))


@dataclass(frozen=True)
class Block:
    """Rows that stand together: their lines (n,) in the file, and the columns that were asked for.

    A column is Labels, or an array (n,) of a column of numbers that are all plain. What reads cells
    raises InputError, which names file, row and column.
    """

    path: Path
    lines: Indices
    columns: Mapping[str, Labels | NDArray[Any]]

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def where(self, row: int, name: str | None = None) -> str:
        """The beginning of a message about a row of the block."""
        place = f"{self.path}: row {self.lines[row]}"
        return place if name is None else f"{place}, column '{name}'"

    def text(self, name: str) -> Labels:
        """A column's texts; it was asked for as str."""
        column = self.columns[name]
        return column if isinstance(column, Labels) else labels(self.cells(name))

    def cells(self, name: str) -> list[str]:
        """A column's texts, one by one."""
        column = self.columns[name]
        return column.cells() if isinstance(column, Labels) else list(map(str, column.tolist()))

    def whole_numbers(self, name: str) -> list[int | str]:
        """A column's cells, of which whole numbers, as int writes them, are int."""
        column = self.columns[name]
        if not isinstance(column, Labels):
            return list(column.tolist())
        numbers = {text: int(text) for text in column.texts if _WHOLE.fullmatch(text)}
        return [numbers.get(text, text) for text in column.cells()]

    def numbers(self, name: str, clean: Callable[[str], str] = str) -> Floats:
        """A column's numbers (n,), see `number`; `clean` takes from a cell what else it says."""
        column = self.columns[name]
        if not isinstance(column, Labels):
            return column.astype(np.float64)
        used, codes = np.unique(column.codes, return_inverse=True)
        values = _plain_numbers([clean(column.texts[code]) for code in used.tolist()])
        if values is None:
            return self.parsed(name, lambda text: number(clean(text)))
        return values[codes]

    def parsed(self, name: str, parse: Callable[[str], float]) -> Floats:
        """A column's cells (n,) as `parse` reads them."""
        column = self.text(name)
        used, codes = np.unique(column.codes, return_inverse=True)
        values = np.empty(len(used))
        for at, code in enumerate(used.tolist()):
            try:
                values[at] = parse(column.texts[code])
            except InputError as error:
                row = int(np.argmax(codes == at))
                raise InputError(f"{self.where(row, name)}: {error}") from None
        return values[codes]

    def durations_s(self, begin: str, end: str) -> Floats:
        """The times [s] (n,) between two columns of nanoseconds, which no float holds exactly."""
        begins, ends = self.columns[begin], self.columns[end]
        if not isinstance(begins, Labels) and not isinstance(ends, Labels):
            return np.asarray((ends - begins) / 1e9, np.float64)
        rows = zip(self._stamps(begin), self._stamps(end), strict=True)
        return np.array([float(last - first) for first, last in rows], np.float64) / 1e9

    def _stamps(self, name: str) -> "list[Decimal]":
        from decimal import Decimal

        cells = self.cells(name)
        for row, cell in enumerate(cells):
            if not _STAMP.fullmatch(cell):
                raise InputError(
                    f"{self.where(row, name)}: '{cell[:40]}' is not a time in nanoseconds; use the "
                    "file as the profiler wrote it"
                )
        return list(map(Decimal, cells))

    def take(self, rows: Any) -> "Block":
        """Those rows."""
        columns: dict[str, Any] = {name: column[rows] for name, column in self.columns.items()}
        return Block(self.path, self.lines[rows], columns)

    def first_of_runs(self, *names: str) -> tuple[Indices, Indices]:
        """Where rows begin that differ from the one above in those columns; the run of each row."""
        differs = np.zeros(len(self), np.bool_)
        differs[:1] = True
        for name in names:
            column = self.columns[name]
            values = column.codes if isinstance(column, Labels) else column
            differs[1:] |= values[1:] != values[:-1]
        return np.flatnonzero(differs), np.cumsum(differs) - 1


def _plain_numbers(texts: Sequence[str]) -> Floats | None:
    """Numbers, perhaps with commas between thousands; None where a text is not plainly one."""
    lines = "".join(f"{text}\n" for text in texts)
    if not _PLAIN_LINES.fullmatch(lines):
        return None
    values = np.array([*map(float, lines.replace(",", "").split())], np.float64)
    return values if (values < LARGEST_COUNTER).all() else None


@cache
def _arrow_csv() -> Any:
    """pyarrow.csv where it is installed, else None."""
    try:
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    return arrow_csv


def line_count(data: bytes) -> int:
    """How many lines end in a text, a tenth of the time of its own `count`."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def columns_by_arrow(
    data: bytes, header: Sequence[str], kinds: Mapping[str, type], least: int
) -> dict[str, Labels | NDArray[Any]] | None:
    """The columns of lines, each of which is a row; None where one is not, or without Arrow.

    kinds: str, float or int (of time stamps) of each column that is wanted; least: how many fields
    a row has at least.
    """
    if not kinds or (arrow_csv := _arrow_csv()) is None:
        return None
    import pyarrow as pa

    try:
        [first] = csv.reader([data[: data.find(b"\n")].decode()])
        header = header[: len(first)]
        if not least <= len(first) <= len(header) or not kinds.keys() <= set(header):
            return None
        place = {name: str(header.index(name)) for name in kinds}
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=len(data),
                column_names=[str(i) for i in range(len(header))],
            ),
            convert_options=arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(place.values(), pa.string()),
                include_columns=list(place.values()),
            ),
        )
    except (pa.ArrowInvalid, csv.Error):
        return None
    if table.num_rows != line_count(data):  # a field goes on in a further line, or a line is blank
        return None
    chunks = {name: table[column].chunks for name, column in place.items()}
    return {
        name: _converted(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), kinds[name])
        for name, parts in chunks.items()
    }


def _converted(column: Any, kind: type) -> Labels | NDArray[Any]:
    """A column of Arrow as an array; as Labels where it has texts, or a cell is no plain number."""
    import pyarrow as pa
    from pyarrow import compute

    if kind is not str:
        plain = _without_thousands(column) if kind is float else column
        if plain is None:
            are_thousands = compute.match_substring_regex(column, _ALL_THOUSANDS)
            is_plain = compute.all(are_thousands).as_py()
            plain = compute.replace_substring(column, ",", "") if is_plain else column
        try:
            values = _as_numpy(plain.cast(pa.int64() if kind is int else pa.float64()))
        except pa.ArrowInvalid:
            values = np.array([-1])
        if ((values >= 0) & (values < LARGEST_COUNTER)).all():
            return values
    encoded = column.dictionary_encode()
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    return Labels(_as_numpy(encoded.indices).astype(np.intp), texts)


def _without_thousands(column: Any) -> Any:
    """Whole numbers without the commas between their thousands; None of what is written otherwise.

    A fifth of the time of the pattern of thousands; np.compress takes a third of that of a mask.
    """
    import pyarrow as pa

    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    is_comma = text == ord(",")
    if not is_comma.any():
        return column
    widths, ends = np.diff(offsets), offsets[1:] - offsets[0]
    counts = widths >> 2
    total, most = counts.sum(), counts.max()
    are_thousands = (
        np.count_nonzero(is_comma) == total
        and np.count_nonzero(text - ord("0") > 9) == total  # wraps round: all that is no digit
        and ((widths & 3 > 0) | (widths == 0)).all()
        and (text[np.compress(counts > 0, ends - widths)] != ord("0")).all()
        and all(is_comma[np.compress(counts >= n, ends) - 4 * n].all() for n in range(1, most + 1))
    )
    if not are_thousands:
        return None
    offsets = np.append(0, ends - np.cumsum(counts)).astype(np.int32)
    content = [None, *map(pa.py_buffer, (offsets, np.compress(~is_comma, text)))]
    return pa.Array.from_buffers(pa.string(), len(column), content)


def _as_numpy(array: Any) -> NDArray[Any]:
    """An array of Arrow without gaps; its own conversion would import pandas."""
    kind = np.dtype(str(array.type).replace("double", "float64"))
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)
