"""A monitor's log: what one GPU did at each sample, under mlscale's names and units."""

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.sampled import SHARES
from mlscale.data.table import MOST
from mlscale.errors import InputError, warn
from mlscale.files import parse_json
from mlscale.profilers.exports.values import parse_number

LARGEST_SHARE = 1.1  # counters of a share and of its time are not read at the same moment
FARTHEST = 1e20  # of any value, times in nanoseconds since 1970 included
_UNIT = re.compile(r"\s*(W|%|M[Hh]z)$")
_BLANK = re.compile(r"\s*")
# DCGM's numbers for blank, not found, not supported, not permitted: of 32 and 64 bits, and real.
_BLANKS = (2147483632, 9223372036854775792, 140737488355328)
_FACTORS = {"gpu_utilisation": 0.01, "memory_copy_utilisation": 0.01}  # all tools give percent

Lines = Sequence[tuple[int, str]]
Cells = list[str]
Columns = Mapping[str, str]  # our names by a tool's; of several with one meaning the best first


class Sample(NamedTuple):
    """One reading of one GPU: its index in the log, its name, its time [s], its values by name."""

    gpu: str
    name: str | None
    seconds: float | None
    values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class SampledLog:
    """All samples of one GPU in one file.

    Attributes:
        source: the file.
        title: what wrote it.
        gpu: the index of the GPU, as the log has it.
        name: of the GPU; None where the log does not say.
        seconds: (S,) when each sample was taken [s], ascending; None without time stamps.
        columns: (S,) each, NaN where missing: power_w [W], engine_mhz, memory_mhz,
            engine_mhz_requested [MHz], and shares from 0 to 1.
    """

    source: str
    title: str
    gpu: str
    name: str | None
    seconds: Floats | None
    columns: dict[str, Floats]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def has(self, column: str) -> bool:
        """Whether a column has any value."""
        return column in self.columns and not bool(np.isnan(self.columns[column]).all())

    def __str__(self) -> str:
        return f"{self.source}, GPU {self.gpu}"


def values_of(cells: Mapping[str, str], columns: Columns, where: str) -> dict[str, float]:
    """The values that mlscale knows of one row, NaN where missing.

    Raises InputError, beginning with `where`, on what is no number, or negative, on a share that is
    none, and beyond MOST.
    """
    readings: dict[str, float] = {}
    for theirs, ours in columns.items():
        if theirs not in cells:
            continue
        place = f"{where}, column '{theirs}'"
        readings[theirs] = value = number(cells[theirs], place) * _FACTORS.get(ours, 1.0)
        if value < 0 or value > (LARGEST_SHARE if ours in SHARES else MOST):
            raise InputError(
                f"{place}: '{cells[theirs].strip()}' cannot be; is the header its own?"
            )
    return by_our_names(readings, columns)


def by_our_names(readings: Mapping[str, float], columns: Columns) -> dict[str, float]:
    """Readings of one moment, of several with one meaning the first that is not missing."""
    values: dict[str, float] = {}
    for theirs, ours in columns.items():
        if theirs in readings and math.isnan(values.get(ours, math.nan)):
            values[ours] = readings[theirs]
    return values


def number(text: str, where: str) -> float:
    """A cell such as '24.53 W', '(300Mhz)' or '12'; NaN where it is blank. Raises InputError."""
    cell = text.strip()
    if cell.startswith("["):  # '[N/A]', '[Not Supported]', '[Unknown Error]'
        return math.nan
    value = parse_number(_UNIT.sub("", cell.strip("()")), where)
    if value > FARTHEST:
        raise InputError(f"{where}: '{cell}' cannot be")
    return math.nan if any(0 <= value - blank < 16 for blank in _BLANKS) else value


def rows(
    path: Path,
    lines: Lines,
    cells_of: Callable[[str], Cells | None],
    is_header: Callable[[Cells], bool],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Where each row stands, and its cells by the names of the header above, which may come again.

    cells_of: the cells of a line; None of one that is no row. A last line that is cut off is left
    out. Raises InputError on any other row that is not as long as its header.
    """
    header: Cells = []
    for line, text in lines:
        where = f"{path}: row {line}"
        try:
            cells = cells_of(text) if text.strip() else None
        except csv.Error as error:
            raise InputError(f"{where}: is not valid CSV: {error}") from None
        if cells is None:
            continue
        if is_header(cells):
            header = cells
        elif len(cells) == len(header):
            yield where, dict(zip(header, cells, strict=True))
        elif line != lines[-1][0]:
            raise InputError(
                f"{where}: has {len(cells)} fields, the header has {len(header)}; it says "
                f"'{' '.join(text.split())[:60]}': take it out if it is no sample"
            )
        else:
            warn(f"{where}: the last line is cut off and left out")


def json_documents(path: Path, lines: Lines) -> Iterator[tuple[str, Any]]:
    """Where each JSON document stands, of one or of several one after the other, and its content.

    Raises InputError.
    """
    text = "\n".join(text for _, text in lines)
    decoder, at = json.JSONDecoder(), 0
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        where = f"{path}: row {text.count(chr(10), 0, at) + lines[0][0]}"
        document, at = parse_json(text, where, partial(decoder.raw_decode, idx=at))
        yield where, document


def csv_cells(text: str) -> Cells:
    """The cells of a line of CSV, stripped."""
    return [cell.strip() for cell in next(csv.reader([text], skipinitialspace=True), [])]


def logs_of(samples: Iterable[Sample], path: Path, title: str) -> list[SampledLog]:
    """The samples of each GPU, in the order of their time. Raises InputError without any."""
    by_gpu: dict[str, list[Sample]] = {}
    for sample in samples:
        by_gpu.setdefault(sample.gpu, []).append(sample)
    if not by_gpu:
        raise InputError(
            f"{path}: has a header of {title} but no samples of a whole GPU; MIG instances are not "
            "read"
        )
    return [_log(str(path), title, gpu, of_gpu) for gpu, of_gpu in sorted(by_gpu.items(), key=_key)]


def _key(item: tuple[str, object]) -> tuple[int, str]:
    """Indices as numbers, then everything else."""
    return (int(item[0]), "") if item[0].isdecimal() else (1 << 62, item[0])


def _spread(stamps: Floats) -> Floats | None:
    """Time stamps (S,) [s]; those of several samples, as whole seconds, spread up to the next.

    None where several samples have one stamp in all, which tells nothing.
    """
    each, first, counts = np.unique(stamps, return_index=True, return_counts=True)
    if len(each) == 1:
        return stamps if len(stamps) == 1 else None
    steps = np.diff(each)
    usual = np.median(steps)
    between = np.append(np.minimum(steps, usual), usual) / counts
    order = np.arange(len(stamps)) - np.repeat(first, counts)
    return np.asarray(stamps + np.repeat(between, counts) * order)


def _log(source: str, title: str, gpu: str, samples: list[Sample]) -> SampledLog:
    stamped = [sample.seconds for sample in samples if sample.seconds is not None]
    seconds = None
    if len(stamped) == len(samples):
        samples = sorted(samples, key=lambda sample: sample.seconds or 0.0)
        seconds = _spread(np.sort(stamped))
    names = dict.fromkeys(name for sample in samples for name in sample.values)
    columns = {
        name: np.array([sample.values.get(name, math.nan) for sample in samples]) for name in names
    }
    return SampledLog(
        source=source,
        title=title,
        gpu=gpu,
        name=next((sample.name for sample in samples if sample.name), None),
        seconds=seconds,
        columns={name: values for name, values in columns.items() if not np.isnan(values).all()},
    )
