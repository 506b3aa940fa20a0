"""Nsight Systems: what `nsys stats` prints of kernels, as CSV and as tables in text."""

import math
import re
from collections.abc import Collection, Iterator
from fractions import Fraction

import numpy as np

from mlscale.errors import InputError, warn
from mlscale.profilers.blocks import Block, Timestamps, blocks
from mlscale.profilers.launch_batch import LaunchBatch, LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.layouts import NSYS_UNITS_NS
from mlscale.profilers.nvprof import launched, numbered_gpu
from mlscale.profilers.reader import Export

_UNIT = re.compile(r".* \((\w+)\)")
_TIME = re.compile(r"[0-9][0-9,]{0,30}(\.[0-9]{0,20})?")
_EXACT_NS = 2.0**53  # below it a float holds every nanosecond
_CUT_OFF = "\u2026"


def _time_column(export: Export, name: str) -> tuple[int, int]:
    """Where a column of times stands, and the nanoseconds of its unit.

    Versions up to 2020 say the unit, which is ns, above the table.
    """
    column = next(i for i, text in enumerate(export.header) if text.partition(" (")[0] == name)
    unit = _UNIT.fullmatch(export.header[column])
    return column, NSYS_UNITS_NS[unit[1] if unit else "ns"]


def _nanoseconds(text: str, where: str, unit_ns: int) -> Fraction:
    """A time in a unit, exactly. Raises InputError."""
    cell = text.strip()
    if not _TIME.fullmatch(cell):
        raise InputError(f"{where}: '{cell[:40]}' is not a time")
    return Fraction(cell.replace(",", "")) * unit_ns


def read_sum(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """All launches of a kernel as one, by their total time; grid and block where they are there.

    Raises InputError where the file has several such tables, which are of different runs.
    """
    total, unit_ns = _time_column(export, "Total Time")
    instances, name = export.columns("Instances", "Name")
    grid, block = export.find("GridXYZ"), export.find("BlockXYZ")
    cut_off = 0
    for line, row in export.rows():
        row[instances] = row[instances].replace(",", "")
        count = export.whole(line, row, instances, "a number of launches", least=1)
        total_ns = _nanoseconds(row[total], export.where(line, total), unit_ns)
        cut_off += row[name].endswith(_CUT_OFF)
        yield LaunchRecord(
            line=line,
            kernel=row[name],
            launch=str(line),
            workgroups=None if grid is None else _product(export, line, row, grid),
            workgroup_size=None if block is None else _product(export, line, row, block),
            time_s=float(total_ns) / 1e9 / count,
            weight=count,
        )
    if further := export.further_tables():
        raise InputError(
            f"{export.path}: has tables of kernels in rows {export.header_line}, "
            f"{', '.join(map(str, further))}; each is of a run of its own: keep one in the file"
        )
    if cut_off:
        warn(
            f"{export.path}: {cut_off} names of kernels are cut off, so that several may count as "
            "one; nsys stats --format csv writes them whole"
        )


def _product(export: Export, line: int, row: list[str], column: int) -> float:
    """Grid or block, as '64 1 1'. Raises InputError."""
    sizes = [int(size) for size in re.findall(r"\d{1,10}", row[column])]
    if len(sizes) != 3 or min(sizes) < 1:
        raise InputError(f"{export.where(line, column)}: '{row[column][:40]}' are not three sizes")
    return float(math.prod(sizes))


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each row with a grid; copies and fills are passed over. Raises InputError."""
    start, duration = _time_column(export, "Start"), _time_column(export, "Duration")
    [name] = export.columns("Name")
    grid = export.columns("GrdX", "GrdY", "GrdZ")
    size = export.columns("BlkX", "BlkY", "BlkZ")
    device = export.find("Device")
    count = 0
    used = [start[0], duration[0], name, *grid, *size, *([] if device is None else [device])]
    for block in blocks(export, used):
        launches = launched(block, grid[0])
        gpus = None if device is None else launches.labels(device)
        yield LaunchBatch(
            launches.lines,
            launches.labels(name),
            range(count + 1, count + len(launches) + 1),
            np.prod([launches.sizes(axis) for axis in grid], axis=0),
            np.prod([launches.sizes(axis) for axis in size], axis=0),
            _times_ns(launches, duration).astype(np.float64) / 1e9,
            gpus=gpus and gpus.renamed(lambda text: numbered_gpu(text, content)),
            begin_ns=_times_ns(launches, start),
        )
        count += len(launches)


def _times_ns(block: Block, column: tuple[int, int]) -> Timestamps:
    """A column of times, exactly. Raises InputError."""
    position, unit_ns = column
    values = block.cells[position].numbers() * unit_ns
    if (values < _EXACT_NS).all():
        return values
    return np.array(
        [
            _nanoseconds(text, block.where(row, position), unit_ns)
            for row, text in enumerate(block.cells[position].texts)
        ],
        np.object_,
    )
