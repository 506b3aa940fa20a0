"""The cells of one column of a block of rows: as Arrow's strings, or as Python's.

Both answer alike. Arrow's are quick, and are made where a block is large and plain.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices, floats_of
from mlscale.data.arrow import arrow_numbers, numpy_floats, numpy_values
from mlscale.data.table import LARGEST_COUNTER
from mlscale.profilers.values import MOST_DIGITS, QUICK_NUMBER, is_whole, quick_number

if TYPE_CHECKING:
    import pyarrow as pa

Wholes = NDArray[np.int64]
_NUMBER = re.compile(r"\s\[[0-9]+\]$")


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

    def unnumbered(self) -> Labels:
        """The distinct texts without the ' [17]' at the end, nvprof's number of a launch."""
        return ListedCells([_NUMBER.sub("", text) for text in self.texts]).labels()

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

    def unnumbered(self) -> Labels:
        """The distinct texts without the ' [17]' at the end, nvprof's number of a launch."""
        import pyarrow.compute as pc

        open_ = pc.ascii_rtrim(self.array, "]")
        begun = pc.ascii_rtrim(open_, "0123456789")
        lengths = [numpy_values(pc.binary_length(array)) for array in (self.array, open_, begun)]
        has_both = (lengths[0] == lengths[1] + 1) & (lengths[1] > lengths[2])
        if has_both.all() and pc.all(pc.ends_with(begun, " [")).as_py():
            return ArrowCells(begun).labels().renamed(lambda text: text.removesuffix(" ["))
        return ListedCells(self.texts).unnumbered()

    def numbers(self) -> Floats:
        """Numbers as values.quick_number reads them; NaN where the cell is none of those."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, content = self._bytes()
        plain = _without_thousands(ends, content)
        if plain is None:
            fits = pc.match_substring_regex(self.array, f"^({QUICK_NUMBER.pattern})$")
            given = pc.if_else(fits, self.array, pa.scalar(None, pa.string()))
            plain = pc.replace_substring(given, ",", "")
        try:
            values = numpy_floats(pa.chunked_array([plain]))
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


def _without_thousands(
    ends: NDArray[np.int32], content: NDArray[np.uint8]
) -> "pa.StringArray | None":
    """Numbers without their commas; None unless all are alike, and parted as they should be.

    Alike: no cell has a comma, or every one has one before each three digits of its whole part;
    and all have as many decimals.
    """
    import pyarrow as pa

    if len(ends) < 2 or not _filled(ends) or not _only_of_numbers(content):
        return None
    is_comma = content == ord(",")
    if is_comma.any():
        commas = _commas(ends, content, is_comma)
        if commas is None:
            return None
        ends = ends - np.concatenate(([0], np.cumsum(commas))).astype(np.int32)
        content = content[~is_comma]
    return pa.StringArray.from_buffers(
        len(ends) - 1, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(content)
    )


def _commas(
    ends: NDArray[np.int32], content: NDArray[np.uint8], is_comma: NDArray[np.bool_]
) -> NDArray[np.int32] | None:
    """How many commas each cell has; None unless they stand as they should, see above."""
    first = content[: ends[1]].tobytes()
    decimals = len(first) - first.find(b".") if b"." in first else 0  # and their point
    is_point = content == ord(".")
    points = len(ends) - 1 if decimals else 0
    whole_ends, lengths = ends[1:] - decimals, np.diff(ends) - decimals
    commas: NDArray[np.int32] = (lengths - 1) // 4
    if (
        (lengths < 1).any()
        or (lengths % 4 == 0).any()
        or commas.sum() != np.count_nonzero(is_comma)
        or points != np.count_nonzero(is_point)
        or (decimals and not is_point[whole_ends].all())
        or (content[ends[:-1][commas > 0]] == ord("0")).any()
    ):
        return None
    groups = range(1, int(commas.max()) + 1)
    stand = (is_comma[whole_ends[commas >= group] - 4 * group].all() for group in groups)
    return commas if all(stand) else None


def _only_digits(content: NDArray[np.uint8]) -> bool:
    """Whether all bytes are digits."""
    return bool((content - np.uint8(ord("0")) <= 9).all())  # what is below wraps round


def _only_of_numbers(content: NDArray[np.uint8]) -> bool:
    """Whether all bytes are digits, points and commas: those from ',' to '9' but '-' and '/'."""
    is_between = content - np.uint8(ord(",")) <= ord("9") - ord(",")
    return bool((is_between & (content != ord("-")) & (content != ord("/"))).all())


def _filled(ends: NDArray[np.int32]) -> bool:
    """Whether no cell is empty."""
    return bool((np.diff(ends) > 0).all())
