"""Nsight Systems: what `nsys stats` prints of kernels as CSV, and the SQLite export."""

import math
import re
import sqlite3
from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from mlscale.errors import InputError, warn
from mlscale.profilers.exports.blocks import Block, Timestamps, blocks
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.sqlite import columns, opened
from mlscale.profilers.exports.values import TIME_UNITS_NS, parse_product
from mlscale.profilers.launch_batch import LaunchBatch, LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.names import is_cut_off, warn_of_cut_off

_DEVICE = re.compile(r"(?P<name>.*\S)\s+\((?P<number>\d{1,9})\)")
_UNIT = re.compile(r".* \((\w+)\)")
_TIME = re.compile(r"([0-9]{1,30}|[0-9]{1,3}(,[0-9]{3}){1,9})(\.[0-9]{0,20})?")
_EXACT_NS = 2.0**53  # below it a float holds every nanosecond
_KERNELS, _GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPUS, _DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_COLUMNS = (
    *("start", "end", "deviceId", "demangledName"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
)
_SELECT_KERNELS = """
    SELECT name.value, start, end, deviceId, gridX, gridY, gridZ, blockX, blockY, blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds AS name ON name.id = demangledName
    ORDER BY start
"""
# CUDA_VISIBLE_DEVICES numbers the GPUs of each process anew; the process stands above bit 24.
_SELECT_KERNELS_OF_PROCESSES = """
    SELECT name.value, start, end, coalesce((
            SELECT gpuId FROM TARGET_INFO_CUDA_DEVICE
            WHERE cudaId = deviceId AND pid = (globalPid >> 24) & 0xFFFFFF
        ), deviceId),
        gridX, gridY, gridZ, blockX, blockY, blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds AS name ON name.id = demangledName
    ORDER BY start
"""


def _time_column(export: Export, name: str) -> tuple[int, int]:
    """Where a column of times stands, and the nanoseconds of its unit.

    Versions up to 2020 say the unit, which is ns, above the table.
    """
    column = next(i for i, text in enumerate(export.header) if text.partition(" (")[0] == name)
    unit = _UNIT.fullmatch(export.header[column])
    return column, TIME_UNITS_NS[unit[1] if unit else "ns"]


def _nanoseconds(text: str, where: str, unit_ns: int) -> Fraction:
    """A time in a unit, exactly. Raises InputError."""
    cell = text.strip()
    if not _TIME.fullmatch(cell):
        mend = ", or has a decimal comma; use the file as nsys wrote it" if "," in cell else ""
        raise InputError(f"{where}: '{cell[:40]}' is not a time{mend}")
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
        cut_off += is_cut_off(row[name])
        yield LaunchRecord(
            line=line,
            kernel=row[name],
            workgroups=_product(export, line, row, grid),
            workgroup_size=_product(export, line, row, block),
            time_s=float(total_ns) / 1e9 / count,
            weight=count,
        )
    export.refuse_further_tables()
    warn_of_cut_off(export.path, cut_off, "nsys stats --format csv writes them whole")


def _product(export: Export, line: int, row: list[str], column: int | None) -> float | None:
    """Grid or block, as '64 1 1'; None where there is no such column. Raises InputError."""
    where = export.where(line, column)
    return None if column is None else parse_product(f"({row[column].strip()})", where)


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each row with a grid; copies and fills are passed over. Raises InputError."""
    start, duration = _time_column(export, "Start"), _time_column(export, "Duration")
    [name] = export.columns("Name")
    grid = export.columns("GrdX", "GrdY", "GrdZ")
    size = export.columns("BlkX", "BlkY", "BlkZ")
    device = export.find("Device")
    for block in blocks(export, [start[0], duration[0], name, *grid, *size, device]):
        launches = block.where_label(grid[0], lambda text: bool(text.strip()))
        yield LaunchBatch(
            launches.lines,
            launches.labels(name),
            launches.sizes(*grid),
            launches.sizes(*size),
            _times_ns(launches, duration).astype(np.float64) / 1e9,
            gpus=launches.renamed(device, lambda text: _gpu_number(text, content)),
            begin_ns=_times_ns(launches, start),
        )


def _gpu_number(text: str, content: FileContent) -> str:
    """The number of 'Tesla P100 (0)', whose name is put on the facts of that GPU; '' without."""
    match = _DEVICE.fullmatch(text.strip())
    name, number = (match["name"], match["number"]) if match else (text.strip(), "")
    if name:
        content.gpu_facts[number] = {"device_name": name}
    return number


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


def read_sqlite(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each kernel that was traced by itself. Raises InputError without any."""
    with opened(export.path, "export it again with nsys export --type sqlite") as database:
        yield from _kernels(database, export.path, content)


def _kernels(
    database: sqlite3.Connection, path: Path, content: FileContent
) -> Iterator[LaunchRecord]:
    graphs = _count(database, _GRAPHS)
    of_graphs = f"{graphs} launches of CUDA graphs were traced whole, and their kernels are not in"
    mend = "profile with nsys profile --cuda-graph-trace=node"
    if not _count(database, _KERNELS):
        why = f"; {of_graphs} it: {mend}" if graphs else ""
        raise InputError(f"{path}: no kernels were traced{why}")
    if graphs:
        graphs_s, kernels_s = (_seconds(database, table) for table in (_GRAPHS, _KERNELS))
        if graphs_s > kernels_s:
            raise InputError(
                f"{path}: {graphs} launches of CUDA graphs were traced whole, {graphs_s:.3g} s in "
                f"all, beside {kernels_s:.3g} s of kernels, which are too few to tell of the run; "
                f"{mend}"
            )
        warn(f"{path}: {of_graphs} the times; {mend}")
    lacks = [name for name in _COLUMNS if name not in columns(database, _KERNELS)]
    if lacks:
        raise InputError(f"{path}: its table {_KERNELS} has no column {', '.join(lacks)}")
    if not {"id", "value"} <= columns(database, "StringIds"):
        raise InputError(f"{path}: has no table StringIds, which names the kernels")
    content.gpu_facts.update(_gpus(database))
    tells_processes = {"gpuId", "cudaId", "pid"} <= columns(database, _DEVICES)
    is_of_processes = tells_processes and "globalPid" in columns(database, _KERNELS)
    rows = database.execute(_SELECT_KERNELS_OF_PROCESSES if is_of_processes else _SELECT_KERNELS)
    for number, (name, begin, end, gpu, *sizes) in enumerate(rows, 1):
        if not isinstance(name, str) or not all(
            isinstance(value, int) for value in (begin, end, gpu, *sizes)
        ):
            raise InputError(f"{path}: kernel {number} lacks its name, its times or its size")
        if min(sizes) < 1:
            raise InputError(f"{path}: kernel {number}, '{name[:60]}', has a size of 0")
        yield LaunchRecord(
            line=number,
            kernel=name,
            workgroups=float(math.prod(sizes[:3])),
            workgroup_size=float(math.prod(sizes[3:])),
            time_s=(end - begin) / 1e9,
            gpu=str(gpu),
            begin_ns=begin,
        )


def _count(database: sqlite3.Connection, table: str) -> int:
    if not columns(database, table):
        return 0
    [count] = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608, our names
    return int(count)


def _seconds(database: sqlite3.Connection, table: str) -> float:
    """How long what a table lists took in all [s]; 0 where it does not say."""
    if not {"start", "end"} <= columns(database, table):
        return 0.0
    [total_ns] = database.execute(f"SELECT total(end - start) FROM {table}").fetchone()  # noqa: S608
    return float(total_ns) / 1e9


def _gpus(database: sqlite3.Connection) -> dict[str, dict[str, str | float]]:
    """By number what the file says of each GPU; nothing where it has no table of them."""
    if not {"id", "name", "smCount"} <= columns(database, _GPUS):
        return {}
    rows = database.execute("SELECT id, name, smCount FROM TARGET_INFO_GPU")
    return {
        str(number): {"device_name": name, "cu_count": float(count)}
        for number, name, count in rows
        if isinstance(name, str) and name and isinstance(count, int) and count > 0
    }
