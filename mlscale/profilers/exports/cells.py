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
from mlscale.profilers.exports.values import QUICK_NUMBER, is_whole, quick_number

if TYPE_CHECKING:
    import pyarrow as pa

Wholes = NDArray[np.int64]


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

        given = self.array
        if pc.any(pc.match_substring_regex(given, "[^0-9.]|^$")).as_py():
            fits = pc.match_substring_regex(given, f"^({QUICK_NUMBER.pattern})$")
            given = pc.if_else(fits, given, pa.nulls(1, pa.string())[0])
            given = pc.replace_substring(given, ",", "")
        try:
            values = numpy_floats(pa.chunked_array([given]))
        except pa.ArrowInvalid:  # such as two points
            return ListedCells(self.texts).numbers()
        return np.where(values < LARGEST_COUNTER, values, np.nan)

    def wholes(self) -> Wholes | None:
        """Whole numbers that are not negative; None where a cell is none."""
        import pyarrow as pa

        try:
            values = numpy_values(self.array.cast(pa.int64()))
        except pa.ArrowInvalid:
            return None
        return values if (values >= 0).all() else None

    def are_plain(self) -> bool:
        """Whether no cell begins with a blank or holds a quote, which csv may read otherwise."""
        import pyarrow.compute as pc

        odd = pc.or_(pc.starts_with(self.array, " "), pc.match_substring(self.array, '"'))
        return not pc.any(odd).as_py()


Cells = ListedCells | ArrowCells
