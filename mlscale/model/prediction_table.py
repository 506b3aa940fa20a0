"""The table of mlscale predict as CSV or Parquet: predicted, encoded and written part by part."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlscale.data.grid import AXES
from mlscale.data.profiles import Profiles
from mlscale.data.supply import drawn_w
from mlscale.data.table_files import arrow_numbers, arrow_strings, write_tables
from mlscale.files import whole_file
from mlscale.model.model import Model
from mlscale.model.predictions import COLUMNS, COVERAGE, Targets
from mlscale.text import spreadsheet_cell

if TYPE_CHECKING:
    import pyarrow as pa


PART = 250_000  # kernels x configurations that are predicted and encoded at a time

Encoded = TypeVar("Encoded")


def csv_parts(model: Model, profiles: Profiles, targets: Targets | None) -> Iterator[bytes]:
    """Predict, and yield the table as CSV in UTF-8, part by part. Raises InputError."""
    header = (",".join(COLUMNS) + "\n").encode()
    return chain([header], _parts(model, profiles, targets, as_csv))


def write_csv(model: Model, profiles: Profiles, targets: Targets | None, output: Path) -> None:
    """Predict and write CSV. Raises InputError."""
    with whole_file(output) as temporary, temporary.open("wb") as file:
        file.writelines(csv_parts(model, profiles, targets))


def write_parquet(model: Model, profiles: Profiles, targets: Targets | None, output: Path) -> None:
    """Predict and write Parquet, null where CSV is empty. Raises InputError."""
    write_tables(output, _parts(model, profiles, targets, as_arrow))


def _parts(
    model: Model,
    profiles: Profiles,
    targets: Targets | None,
    encode: Callable[[Mapping[str, NDArray[Any]]], Encoded],
) -> Iterator[Encoded]:
    """Yield the columns of predictions, some kernels after others, encoded. Raises InputError.

    With a progress bar on a terminal where there are several parts.
    """
    count, step = len(profiles.kernels), max(1, PART // model.grid.size)
    if not profiles.has_counters.all():
        step = count  # the others rest on all profiled kernels
    starts: Iterable[int] = range(0, count, step)
    if count > step:
        from tqdm import tqdm

        starts = tqdm(starts, unit="part", disable=None, leave=False)
    run_drawn_w = drawn_w(profiles)
    for start in starts:
        kernels = range(start, min(start + step, count))
        predictions = model.predict(profiles.select(kernels), COVERAGE)
        yield encode(replace(predictions, run_drawn_w=run_drawn_w).columns(targets))


def as_csv(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the rows as CSV without a header; nothing for NaN."""
    words = {"kernel", *AXES, "flags"}
    cells: list[Iterable[str]] = []
    for name, column in columns.items():
        if name in words:
            cells.append(_csv_words(column.tolist()))
        elif (is_unknown := np.isnan(column)).all():
            cells.append(repeat("", len(column)))
        elif is_unknown.any():
            cells.append(["" if math.isnan(number) else repr(number) for number in column.tolist()])
        else:
            cells.append(map(repr, column.tolist()))
    return "\n".join([*map(",".join, zip(*cells, strict=True)), ""]).encode()


def _csv_words(words: Sequence[Any]) -> Iterator[str]:
    """Return cells of a few words or settings many times over; each different one is made once."""
    cells = {}
    for word in set(words):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([spreadsheet_cell(word), ""])
        cells[word] = text.getvalue().removesuffix(",\n")
    return map(cells.__getitem__, words)


def as_arrow(columns: Mapping[str, NDArray[Any]]) -> "pa.Table":
    """Return columns of numbers, null for NaN, and of words (dtype object), as an Arrow table."""
    import pyarrow as pa

    arrays = [
        _words(column) if column.dtype == object else arrow_numbers(column)
        for column in columns.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _words(column: NDArray[Any]) -> "pa.Array":
    """Return an array of a few words many times over; each different word is written once."""
    words = column.tolist()
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    rows = np.fromiter(map(places.__getitem__, words), np.int32, len(words))
    return arrow_strings(places).take(arrow_numbers(rows))
