"""Nsight Systems: kernels as CSV of `nsys stats`, and its SQLite export.

Written by `nsys stats --report cuda_gpu_trace --format csv REPORT` (a row for each launch or copy),
by `--report cuda_gpu_kern_sum` (a row for each kernel), and by `nsys export --type sqlite REPORT`.

To watch for: without a unit in its name, up to 2020, a column of times is of nanoseconds; a blank
line ends a report, and others may follow; CUDA_VISIBLE_DEVICES numbers the GPUs of each process
anew; kernels inside CUDA graphs are there with --cuda-graph-trace=node alone.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError, warn
from mlscale.readers.columns import Block, product
from mlscale.readers.files import Sheet, opened_database, tables_of
from mlscale.readers.launches import Facts, Launch, Launches, in_parts

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u03bcs": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0}
_GRID, _BLOCK = (tuple(f"{what}{axis}" for axis in "XYZ") for what in ("Grd", "Blk"))
_DEVICE = re.compile(r"(?P<name>.*\S)\s+\((?P<number>\d{1,9})\)")
_KERNELS, _GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPUS, _DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_SELECT = """
    SELECT name.value, (end - start) / 1e9, DEVICE, gridX * gridY * gridZ, blockX * blockY * blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds AS name ON name.id = demangledName
    ORDER BY start
"""
_SELECT_GPUS = "SELECT id, name, smCount FROM TARGET_INFO_GPU WHERE name <> '' AND smCount > 0"
# The process stands above bit 24.
_DEVICE_OF_PROCESS = """
    coalesce((
        SELECT gpuId FROM TARGET_INFO_CUDA_DEVICE
        WHERE cudaId = deviceId AND pid = (globalPid >> 24) & 0xFFFFFF
    ), deviceId)
"""


def read(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each kernel, or all of a kernel at once in a summary. Raises InputError."""
    if sheet.kind.tables:
        return _read_database(sheet, facts)
    return _read_summary(sheet) if "Instances" in sheet.header else _read_trace(sheet, facts)


def _read_trace(sheet: Sheet, facts: Facts) -> Iterator[Launches]:
    """A launch for each row with a grid; copies and fills are skipped."""
    duration, unit_s = _time_column(sheet, "Duration")
    sheet.require(*_GRID, *_BLOCK)
    kinds = {duration: float, **dict.fromkeys(["Name", "Device", *_GRID, *_BLOCK], str)}
    for block in sheet.blocks(kinds, ends_at_blank=True):
        grids = block.text("GrdX")
        has_grid = np.array([bool(text) for text in grids.texts], np.bool_)
        launches = block.take(np.flatnonzero(has_grid[grids.codes]))
        gpus = None
        if "Device" in launches:
            gpus = launches.text("Device").renamed(lambda text: _gpu(text, facts))
        yield Launches(
            launches.lines,
            launches.text("Name"),
            launches.numbers(duration) * unit_s,
            np.prod([launches.parsed(name, product) for name in _GRID], axis=0),
            np.prod([launches.parsed(name, product) for name in _BLOCK], axis=0),
            gpus=gpus,
        )


def _read_summary(sheet: Sheet) -> Iterator[Launches]:
    """All launches of a kernel as one row, by their mean time."""
    total, unit_s = _time_column(sheet, "Total Time")
    kinds = dict.fromkeys([total, "Instances", "Name", "GridXYZ", "BlockXYZ"], str)
    for block in sheet.blocks(kinds, ends_at_blank=True):
        launches = block.numbers("Instances")
        with np.errstate(over="ignore"):  # no time, then
            time_s = block.numbers(total) * unit_s / np.where(launches > 0, launches, np.nan)
        yield Launches(
            block.lines,
            block.text("Name"),
            time_s,
            _sizes(block, "GridXYZ"),
            _sizes(block, "BlockXYZ"),
            weights=launches,
        )


def _time_column(sheet: Sheet, name: str) -> tuple[str, float]:
    """A column of times, and the seconds of its unit."""
    units_s = {name: 1e-9} | {f"{name} ({unit})": scale for unit, scale in _UNITS_S.items()}
    column = sheet.find(*units_s)
    if column is None:
        raise InputError(f"{sheet.path}: row {sheet.header_line}: has no column '{name} (ns)'")
    return column, units_s[column]


def _sizes(block: Block, name: str) -> Floats:
    return block.parsed(name, product) if name in block else np.full(len(block), np.nan)


def _gpu(text: str, facts: Facts) -> str:
    """The number of 'Tesla P100 (0)', whose name is put on the facts of that GPU; '' without."""
    match = _DEVICE.fullmatch(text)
    name, number = (match["name"], match["number"]) if match else (text, "")
    if name:
        facts.by_gpu[number] = {"device_name": name}
    return number


def _read_database(sheet: Sheet, facts: Facts) -> Iterator[Launches]:
    """A launch for each kernel that was traced by itself."""
    with opened_database(sheet.path) as database:
        columns = tables_of(database)
        _check_graphs(database, sheet, columns)
        if {"id", "name", "smCount"} <= columns.get(_GPUS, set()):
            for number, name, count in database.execute(_SELECT_GPUS):
                facts.by_gpu[str(number)] = {"device_name": str(name), "cu_count": float(count)}
        tells_process = {"gpuId", "cudaId", "pid"} <= columns.get(_DEVICES, set())
        tells_process &= "globalPid" in columns.get(_KERNELS, set())
        device = _DEVICE_OF_PROCESS if tells_process else "deviceId"
        rows = database.execute(_SELECT.replace("DEVICE", device))
        yield from in_parts(
            Launch(line, str(name or ""), time_s, workgroups, workgroup_size, str(gpu))
            for line, (name, time_s, gpu, workgroups, workgroup_size) in enumerate(rows, 1)
        )


def _check_graphs(database: sqlite3.Connection, sheet: Sheet, columns: dict[str, set[str]]) -> None:
    """Warn of time in CUDA graphs, whose kernels are missing; InputError where it is the most."""

    def seconds(table: str) -> float:
        query = f"SELECT total(end - start) / 1e9 FROM {table}"  # noqa: S608, our names
        return float(database.execute(query).fetchone()[0]) if table in columns else 0.0

    kernels_s, graphs_s = seconds(_KERNELS), seconds(_GRAPHS)
    whole = (
        f"{sheet.path}: {graphs_s:.3g} s are in CUDA graphs that were traced whole, "
        f"{kernels_s:.3g} s in single kernels; profile with nsys profile --cuda-graph-trace=node"
    )
    if graphs_s > kernels_s:
        raise InputError(whole)
    if graphs_s:
        warn("T09", whole)
