"""The cells of one column of a block of rows: as Arrow's strings, or as Python's.

Both answer alike. Arrow's are quick, and are made where a block is large and plain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices, floats_of
from mlscale.data.arrow import arrow_numbers, numpy_floats, numpy_values
from mlscale.data.table import LARGEST_COUNTER
from mlscale.profilers.exports.values import MOST_DIGITS, QUICK_NUMBER, is_whole, quick_number

if TYPE_CHECKING:
    import pyarrow as pa

Wholes = NDArray[np.int64]
_EXACT = 1 << 53  # whole numbers below are floats without rounding


class Labels(NamedTuple):
    """The distinct texts of n cells, in the order in which they come, and which each cell has."""

    codes: Indices
    texts: list[str]

    def spread(self, values: list[float]) -> Floats:
        """For each cell the value of its text."""
        return np.array(values, np.float64)[self.codes]

    def of(self, cell: int) -> str:
        """The text of one cell."""
        return self.texts[int(self.codes[cell])]

    def renamed(self, rename: Callable[[str], str]) -> "Labels":
        """The same cells with other texts, some of which may be alike now."""
        index: dict[str, int] = {}
        codes = [index.setdefault(rename(text), len(index)) for text in self.texts]
        return Labels(np.array(codes, np.intp)[self.codes], list(index))


@dataclass(frozen=True)
class ListedCells:
    """Cells as Python's strings."""

    texts: list[str]

    def take(self, rows: Indices) -> "ListedCells":
        """The cells of those rows."""
        return ListedCells([self.texts[row] for row in rows.tolist()])

    def head(self, count: int) -> "ListedCells":
        """The first cells."""
        return ListedCells(self.texts[:count])

    def text(self, row: int) -> str:
        """One cell."""
        return self.texts[row]

    def labels(self) -> Labels:
        """The distinct texts."""
        index: dict[str, int] = {}
        codes = [index.setdefault(text, len(index)) for text in self.texts]
        return Labels(np.array(codes, np.intp), list(index))

    def numbers(self) -> Floats:
        """Numbers as values.quick_number reads them; NaN where the cell is none of those."""
        return floats_of(quick_number(text) for text in self.texts)

    def wholes(self) -> Wholes | None:
        """Whole numbers as values.is_whole knows them; None where a cell is none."""
        if not all(map(is_whole, self.texts)):
            return None
        return np.array([int(text) for text in self.texts], np.int64)


@dataclass(frozen=True)
class ArrowCells:
    """Cells as strings of Arrow, without nulls."""

    array: "pa.StringArray"

    @property
    def texts(self) -> list[str]:
        """Python's strings."""
        return list(self.array.to_pylist())

    def take(self, rows: Indices) -> "ArrowCells":
        """The cells of those rows."""
        return ArrowCells(self.array.take(arrow_numbers(rows)))

    def head(self, count: int) -> "ArrowCells":
        """The first cells."""
        return ArrowCells(self.array.slice(0, count))

    def text(self, row: int) -> str:
        """One cell."""
        return str(self.array[row].as_py())

    def labels(self) -> Labels:
        """The distinct texts."""
        encoded = self.array.dictionary_encode()
        codes = numpy_values(encoded.indices).astype(np.intp)
        return Labels(codes, encoded.dictionary.to_pylist())

    def numbers(self) -> Floats:
        """Numbers as values.quick_number reads them; NaN where the cell is none of those."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, content = self._bytes()
        is_short = _filled(ends) and (np.diff(ends) <= 2 * MOST_DIGITS).all()
        values = _grouped_numbers(ends, content) if is_short else None
        if values is None:
            given = self.array
            if not is_short or not _only_digits_and_points(content):
                fits = pc.match_substring_regex(self.array, f"^({QUICK_NUMBER.pattern})$")
                given = pc.if_else(fits, self.array, pa.scalar(None, pa.string()))
                given = pc.replace_substring(given, ",", "")
            try:
                values = numpy_floats(pa.chunked_array([given]))
            except pa.ArrowInvalid:  # such as two points
                return ListedCells(self.texts).numbers()
        return np.where(values < LARGEST_COUNTER, values, np.nan)

    def wholes(self) -> Wholes | None:
        """Whole numbers as values.is_whole knows them; None where a cell is none."""
        import pyarrow as pa

        ends, content = self._bytes()
        is_whole = _only_digits(content) and _filled(ends)
        if not is_whole or (np.diff(ends) > MOST_DIGITS).any():
            return None
        return numpy_values(self.array.cast(pa.int64()))

    def begins_with_blank(self) -> bool:
        """Whether a cell begins with a blank."""
        import pyarrow.compute as pc

        return bool(pc.any(pc.starts_with(self.array, " ")).as_py())

    def _bytes(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Where the cells begin and end, and all their bytes."""
        count, first = len(self.array), self.array.offset
        _, ends, content = self.array.buffers()
        ends = np.frombuffer(ends, np.int32, first + count + 1)[first:]
        data = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]]
        return ends - ends[0], data


Cells = ListedCells | ArrowCells


def _grouped_numbers(ends: NDArray[np.int32], content: NDArray[np.uint8]) -> Floats | None:
    """Numbers with a comma before each three digits of their whole parts, and as many decimals.

    None unless there are commas, and all cells are such. A byte's place from the end of its cell
    tells what it must be there, and what a digit is worth.
    """
    if not (content == ord(",")).any():
        return None
    decimals = len(content[: ends[1]].tobytes().partition(b".")[2])
    fraction = b"0" * decimals + b"." * (decimals > 0)
    whole = b"000," * ((MOST_DIGITS - decimals) // 3)
    form, lengths = np.frombuffer(fraction + whole, np.uint8), np.diff(ends)
    if lengths.min() <= len(fraction) or lengths.max() > len(form):
        return None
    form, places = form[: lengths.max(), None], np.arange(lengths.max())[:, None]
    is_digit = form == ord("0")
    digits = content.take(ends[1:] - 1 - places, mode="clip") - form  # below 0 it wraps round
    digits *= places < lengths
    leading, is_grouped = content[ends[:-1]], lengths > len(fraction) + 3
    if (
        (digits > np.uint8(9) * is_digit).any()
        or (leading == ord(",")).any()
        or (leading[is_grouped] == ord("0")).any()
    ):
        return None
    values = (10 ** (np.cumsum(is_digit)[:, None] - 1) * digits).sum(axis=0)
    return values / 10**decimals if values.max() < _EXACT else None


def _only_digits(content: NDArray[np.uint8]) -> bool:
    """Whether all bytes are digits."""
    return bool((content - np.uint8(ord("0")) <= 9).all())  # what is below wraps round


def _only_digits_and_points(content: NDArray[np.uint8]) -> bool:
    """Whether all bytes are such: those from '.' to '9' but '/'."""
    is_between = content - np.uint8(ord(".")) <= ord("9") - ord(".")
    return bool((is_between & (content != ord("/"))).all())


def _filled(ends: NDArray[np.int32]) -> bool:
    """Whether no cell is empty."""
    return bool((np.diff(ends) > 0).all())
