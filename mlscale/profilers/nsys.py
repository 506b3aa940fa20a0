"""Nsight Systems: what `nsys stats` prints of kernels, as CSV and as tables in text."""

import math
import re
import warnings
from collections.abc import Collection, Iterator
from fractions import Fraction

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.launches import FileContent, LaunchRecord
from mlscale.profilers.layouts import NSYS_UNITS_NS
from mlscale.profilers.nvprof import numbered_gpu
from mlscale.profilers.reader import Export

_UNIT = re.compile(r".* \((\w+)\)")
_TIME = re.compile(r"[0-9][0-9,]{0,30}(\.[0-9]{0,20})?")
_CUT_OFF = "\u2026"


def _time_column(export: Export, name: str) -> tuple[int, int]:
    """Where a column of times stands, and the nanoseconds of its unit.

    Versions up to 2020 say the unit, which is ns, above the table.
    """
    column = next(i for i, text in enumerate(export.header) if text.partition(" (")[0] == name)
    unit = _UNIT.fullmatch(export.header[column])
    return column, NSYS_UNITS_NS[unit[1] if unit else "ns"]


def _nanoseconds(export: Export, line: int, row: list[str], column: tuple[int, int]) -> Fraction:
    """A time of a column and its unit, exactly. Raises InputError."""
    position, unit_ns = column
    text = row[position].strip()
    if not _TIME.fullmatch(text):
        raise InputError(f"{export.where(line, position)}: '{text[:40]}' is not a time")
    return Fraction(text.replace(",", "")) * unit_ns


def read_sum(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """All launches of a kernel as one, by their total time; grid and block where they are there.

    Raises InputError where the file has several such tables, which are of different runs.
    """
    total = _time_column(export, "Total Time")
    instances, name = export.columns("Instances", "Name")
    grid, block = export.find("GridXYZ"), export.find("BlockXYZ")
    cut_off = 0
    for line, row in export.rows():
        row[instances] = row[instances].replace(",", "")
        count = export.whole(line, row, instances, "a number of launches", least=1)
        cut_off += row[name].endswith(_CUT_OFF)
        yield LaunchRecord(
            line=line,
            kernel=row[name],
            launch=str(line),
            workgroups=None if grid is None else _product(export, line, row, grid),
            workgroup_size=None if block is None else _product(export, line, row, block),
            time_s=float(_nanoseconds(export, line, row, total)) / 1e9 / count,
            counters={},
            weight=count,
        )
    if further := export.further_tables():
        raise InputError(
            f"{export.path}: has tables of kernels in rows {export.header_line}, "
            f"{', '.join(map(str, further))}; each is of a run of its own: keep one in the file"
        )
    if cut_off:
        warnings.warn(
            f"{export.path}: {cut_off} names of kernels are cut off, so that several may count as "
            "one; nsys stats --format csv writes them whole",
            DataWarning,
            stacklevel=2,
        )


def _product(export: Export, line: int, row: list[str], column: int) -> float:
    """Grid or block, as '64 1 1'. Raises InputError."""
    sizes = [int(size) for size in re.findall(r"\d{1,10}", row[column])]
    if len(sizes) != 3 or min(sizes) < 1:
        raise InputError(f"{export.where(line, column)}: '{row[column][:40]}' are not three sizes")
    return float(math.prod(sizes))


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row with a grid; copies and fills are passed over. Raises InputError."""
    start, duration = _time_column(export, "Start"), _time_column(export, "Duration")
    [name] = export.columns("Name")
    grid = export.columns("GrdX", "GrdY", "GrdZ")
    block = export.columns("BlkX", "BlkY", "BlkZ")
    device = export.find("Device")
    launch = 0
    for line, row in export.rows():
        if not row[grid[0]].strip():
            continue
        launch += 1
        yield LaunchRecord(
            line=line,
            kernel=row[name],
            launch=str(launch),
            workgroups=math.prod(export.size(line, row, axis) for axis in grid),
            workgroup_size=math.prod(export.size(line, row, axis) for axis in block),
            time_s=float(_nanoseconds(export, line, row, duration)) / 1e9,
            counters={},
            gpu="" if device is None else numbered_gpu(row[device], content),
            begin_ns=_nanoseconds(export, line, row, start),
        )
