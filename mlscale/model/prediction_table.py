"""The table of mlscale predict as CSV or Parquet: predicted, encoded and written part by part.

Few rows are written with the standard library alone, so that a one-shot prediction starts fast.
Many are encoded by Arrow, on all cores, to the same text.
"""

import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.supply import drawn_w
from mlscale.data.table_files import arrow_numbers, arrow_strings, has_arrow, write_tables
from mlscale.files import whole_file
from mlscale.model.model import Model
from mlscale.model.predictions import COLUMNS, COVERAGE, Predictions
from mlscale.text import spreadsheet_cell

if TYPE_CHECKING:
    import pyarrow as pa


PART = 250_000  # kernels x configurations that are predicted and encoded at a time
FEW_ROWS = 5000  # are written before Arrow is imported
SPECIAL = re.compile('[",\r\n]')  # a cell of CSV with one of these needs quotes

Targets = list[HardwareConfig] | None
Encoded = TypeVar("Encoded")


def csv_parts(model: Model, profiles: Profiles, targets: Targets) -> Iterator["bytes | pa.Buffer"]:
    """Predict, and yield the table as CSV in UTF-8, part by part. Raises InputError."""
    rows = len(profiles.kernels) * (len(targets) if targets else model.grid.size)
    is_quick = rows > FEW_ROWS and has_arrow()
    encode = csv_by_arrow if is_quick else csv_by_standard_library
    header = (",".join(COLUMNS) + "\n").encode()
    return chain([header], _parts(model, profiles, targets, encode))


def write_csv(model: Model, profiles: Profiles, targets: Targets, output: Path) -> None:
    """Predict and write CSV. Raises InputError."""
    with whole_file(output) as temporary, temporary.open("wb") as file:
        file.writelines(csv_parts(model, profiles, targets))


def write_parquet(model: Model, profiles: Profiles, targets: Targets, output: Path) -> None:
    """Predict and write Parquet, null where CSV is empty. Raises InputError."""
    write_tables(output, _parts(model, profiles, targets, arrow_table))


def _parts(
    model: Model,
    profiles: Profiles,
    targets: Targets,
    encode: Callable[[Predictions, Targets], Encoded],
) -> Iterator[Encoded]:
    """Yield the predictions, some kernels after others, each part encoded. Raises InputError.

    Several parts are worked at on all cores, with a progress bar on a terminal.
    """
    count, step = len(profiles.kernels), max(1, PART // model.grid.size)
    if profiles.profiled is not profiles:
        step = count  # the others rest on all profiled kernels

    run_drawn_w = drawn_w(profiles)

    def part(start: int) -> Encoded:
        kernels = range(start, min(start + step, count))
        predictions = model.predict(profiles.select(kernels), COVERAGE)
        return encode(replace(predictions, run_drawn_w=run_drawn_w), targets)

    if count <= step:
        yield part(0)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    from tqdm import tqdm

    cores = os.cpu_count() or 1
    futures: deque[Future[Encoded]] = deque()
    bar = tqdm(total=count, unit="kernel", disable=None, leave=False)
    with bar, _one_thread_of_blas(), ThreadPoolExecutor(cores) as pool:
        for start in range(0, count, step):
            futures.append(pool.submit(part, start))
            if len(futures) > 2 * cores:  # so that no more parts than these are in memory
                yield futures.popleft().result()
                bar.update(step)
        for future in futures:
            yield future.result()
            bar.update(step)


def _one_thread_of_blas() -> AbstractContextManager[object]:
    """Keep BLAS, where that can be asked of it, from threads beside those that fill all cores."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits


def csv_by_standard_library(predictions: Predictions, targets: Targets) -> bytes:
    """Return the rows as CSV without a header; a number as Python's repr, nothing for NaN."""
    text = io.StringIO()
    cells = [
        ["" if value != value else spreadsheet_cell(value) for value in column.tolist()]  # noqa: PLR0124
        for column in predictions.columns(targets).values()
    ]
    csv.writer(text, lineterminator="\n").writerows(zip(*cells, strict=True))
    return text.getvalue().encode()


def csv_by_arrow(predictions: Predictions, targets: Targets) -> "pa.Buffer":
    """Return the same text as `csv_by_standard_library`, faster for many rows."""
    import pyarrow.compute as pc

    columns = predictions.columns(targets)
    kernels = len(predictions.profiles.kernels)
    configs = len(columns["kernel"]) // kernels
    words = map(_csv_cell, columns["kernel"][::configs].tolist())
    cells = [_taken(words, np.repeat(np.arange(kernels), configs))]
    settings = zip(*(columns[axis][:configs].tolist() for axis in AXES), strict=True)
    axes = (",".join(map(str, setting)) for setting in settings)
    cells.append(_taken(axes, np.tile(np.arange(configs), kernels)))
    numbers = [columns[name] for name in COLUMNS if name not in ("kernel", *AXES, "flags")]
    for is_empty, run in groupby(numbers, lambda column: bool(np.isnan(column).all())):
        if is_empty:
            cells.append(arrow_strings(["," * (len(list(run)) - 1)])[0])
        else:
            cells += map(_number_cells, run)
    cells.append(_repeated(columns["flags"], lambda word: _csv_cell(word) + "\n"))
    comma = arrow_strings([","])[0]
    lines = pc.binary_join_element_wise(*cells, comma, null_handling="replace", null_replacement="")
    return lines.buffers()[2]


def arrow_table(predictions: Predictions, targets: Targets) -> "pa.Table":
    """Return the rows as an Arrow table, null for NaN."""
    return as_arrow(predictions.columns(targets))


def as_arrow(columns: Mapping[str, NDArray[Any]]) -> "pa.Table":
    """Return columns of numbers, null for NaN, and of words (dtype object), as an Arrow table."""
    import pyarrow as pa

    arrays = [
        _repeated(column) if column.dtype == object else arrow_numbers(column)
        for column in columns.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _csv_cell(word: str) -> str:
    """Return a word as a cell of CSV, in quotes only if it needs them."""
    word = spreadsheet_cell(word)
    return '"' + word.replace('"', '""') + '"' if SPECIAL.search(word) else word


def _number_cells(column: NDArray[Any]) -> "pa.Array":
    """Return Arrow's shortest digits; Python's repr where they spell a number differently."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.cast(arrow_numbers(column), pa.string())
    differs = (column == np.floor(column)) | (column < 1e-4) | (column >= 1e9)
    if not differs.any():
        return cells
    words = map(repr, column[differs].tolist())
    return pc.replace_with_mask(cells, arrow_numbers(differs), arrow_strings(words))


def _repeated(column: NDArray[Any], write: Callable[[str], str] = str) -> "pa.Array":
    """Return an array of a few words many times over; each different word is written once."""
    words = column.tolist()
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    of_row = np.fromiter(map(places.__getitem__, words), np.int32, len(words))
    return _taken(map(write, places), of_row)


def _taken(words: Iterable[str], places: NDArray[Any]) -> "pa.Array":
    return arrow_strings(words).take(arrow_numbers(places))
