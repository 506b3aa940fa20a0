"""Arrow and NumPy: arrays of shared memory, and large CSV files.

Arrow's own conversions import pandas, which takes longer than most of the work here.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats
from mlscale.files import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDS_CARE = (b'"', b"\r", b"\0")  # a CSV file with one of these is not read by Arrow


def has_arrow() -> bool:
    """Whether Arrow is installed, which is quick on large files of text; all else works without."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return False
    return pa is not None


def arrow_numbers(values: NDArray[Any]) -> "pa.Array":
    """Return numbers or truth values as an Arrow array, null for NaN."""
    import pyarrow as pa

    given = pa.py_buffer(np.packbits(values == values, bitorder="little"))  # noqa: PLR0124
    content = np.packbits(values, bitorder="little") if values.dtype == bool else values
    buffers = [given, pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def arrow_strings(words: Iterable[str]) -> "pa.Array":
    """Return words as an Arrow array."""
    import pyarrow as pa

    encoded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numpy_values(array: "pa.Array") -> NDArray[Any]:
    """Return an Arrow array of numbers without nulls, which shares its memory."""
    kind, (_, content) = np.dtype(array.type.to_pandas_dtype()), array.buffers()
    return np.frombuffer(content, kind, len(array), kind.itemsize * array.offset)


def numpy_floats(column: "pa.ChunkedArray") -> Floats:
    """Return a column of numbers as floats, NaN for null."""
    import pyarrow as pa

    array = column.cast(pa.float64(), safe=False).combine_chunks()
    given, values = array.buffers()[0], numpy_values(array)
    if given is None:
        return values
    bits = np.frombuffer(given, np.uint8)
    is_given = np.unpackbits(bits, bitorder="little", count=array.offset + len(array))
    return np.where(is_given[array.offset :], values, np.nan)


def read_plain_csv(path: Path, text: Collection[str]) -> dict[str, list[str] | Floats] | None:
    """Read the columns of a CSV file, ten times as fast as the standard library.

    text: the columns that hold words; all others hold numbers, NaN where a cell is empty. The
    answer is None for a file with anything beyond that, such as quotes, blank lines, or an error.
    """
    import pyarrow as pa
    from pyarrow import csv

    content = read_bytes(path)
    if any(mark in content for mark in _NEEDS_CARE):
        return None
    try:
        first = content.partition(b"\n")[0].decode("utf-8-sig")
        names = [name.strip() for name in first.split(",")]
        if "" in names or len(set(names)) < len(names):
            return None
        types = {name: pa.string() if name in text else pa.float64() for name in names}
        arrow = csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(column_names=names, skip_rows=1),
            csv.ParseOptions(quote_char=False),
            csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    if arrow.num_rows != lines - 1:
        return None
    return {
        name: arrow[name].to_pylist() if name in text else numpy_floats(arrow[name])
        for name in names
    }
