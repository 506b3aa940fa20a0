"""Nsight Systems: what `nsys stats` writes of kernels as CSV, and its SQLite export."""

import re
import sqlite3
from collections.abc import Collection, Iterator

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError, warn
from mlscale.readers.files import Block, Form, Sheet, opened_database, product, tables_of, whole
from mlscale.readers.launches import Facts, Launch, Launches, in_parts

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u03bcs": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES = tuple(f"{what}{axis}" for what in ("Grd", "Blk") for axis in "XYZ")
_DEVICE = re.compile(r"(?P<name>.*\S)\s+\((?P<number>\d{1,9})\)")
_KERNELS, _GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPUS, _DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_COLUMNS = {
    *("start", "end", "deviceId", "demangledName"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
}
_SELECT = """
    SELECT name.value, (end - start) / 1e9, DEVICE, gridX * gridY * gridZ, blockX * blockY * blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds AS name ON name.id = demangledName
    ORDER BY start
"""
_SELECT_GPUS = "SELECT id, name, smCount FROM TARGET_INFO_GPU WHERE name <> '' AND smCount > 0"
# CUDA_VISIBLE_DEVICES numbers the GPUs of each process anew; the process stands above bit 24.
_DEVICE_OF_PROCESS = """
    coalesce((
        SELECT gpuId FROM TARGET_INFO_CUDA_DEVICE
        WHERE cudaId = deviceId AND pid = (globalPid >> 24) & 0xFFFFFF
    ), deviceId)
"""


def read_trace(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each row with a grid; copies and fills are passed over. Raises InputError."""
    duration, unit_s = _time_column(sheet, "Duration")
    for block in sheet.blocks([duration, "Name", "Device", *_SIZES]):
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
            np.prod([launches.numbers(name, product) for name in _SIZES[:3]], axis=0),
            np.prod([launches.numbers(name, product) for name in _SIZES[3:]], axis=0),
            gpus=gpus,
        )


def read_sum(sheet: Sheet, _facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """All launches of a kernel as one row, by their mean time. Raises InputError."""
    total, unit_s = _time_column(sheet, "Total Time")
    for block in sheet.blocks([total, "Instances", "Name", "GridXYZ", "BlockXYZ"]):
        launches = block.numbers("Instances", whole)
        yield Launches(
            block.lines,
            block.text("Name"),
            block.numbers(total) * unit_s / launches,
            _sizes_of(block, "GridXYZ"),
            _sizes_of(block, "BlockXYZ"),
            weights=launches,
        )


def _time_column(sheet: Sheet, name: str) -> tuple[str, float]:
    """A column of times and the seconds of its unit; without one, up to 2020, it is ns."""
    units_s = {name: 1e-9} | {f"{name} ({unit})": scale for unit, scale in _UNITS_S.items()}
    return next((column, units_s[column]) for column in sheet.header if column in units_s)


def _sizes_of(block: Block, name: str) -> Floats:
    return block.numbers(name, product) if name in block else np.full(len(block), np.nan)


def _gpu(text: str, facts: Facts) -> str:
    """The number of 'Tesla P100 (0)', whose name is put on the facts of that GPU; '' without."""
    match = _DEVICE.fullmatch(text)
    name, number = (match["name"], match["number"]) if match else (text, "")
    if name:
        facts.of_gpu[number] = {"device_name": name}
    return number


def read_database(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each kernel that was traced by itself. Raises InputError without any."""
    with opened_database(sheet.path) as database:
        columns = tables_of(database)
        _check_graphs(database, sheet, columns)
        if lacks := _COLUMNS - columns[_KERNELS]:
            names = ", ".join(sorted(lacks))
            raise InputError(f"{sheet.path}: its table {_KERNELS} has no column {names}")
        if {"id", "name", "smCount"} <= columns.get(_GPUS, set()):
            for number, name, count in database.execute(_SELECT_GPUS):
                facts.of_gpu[str(number)] = {"device_name": str(name), "cu_count": float(count)}
        tells_process = {"gpuId", "cudaId", "pid"} <= columns.get(_DEVICES, set())
        tells_process &= "globalPid" in columns[_KERNELS]
        device = _DEVICE_OF_PROCESS if tells_process else "deviceId"
        rows = database.execute(_SELECT.replace("DEVICE", device))
        yield from in_parts(_launch(sheet, line, *row) for line, row in enumerate(rows, 1))


def _launch(
    sheet: Sheet, line: int, name: str | None, time_s: float | None, gpu: int | None,
    workgroups: int | None, workgroup_size: int | None,
) -> Launch:  # fmt: skip
    if None in (name, time_s, gpu) or not (workgroups and workgroup_size):
        raise InputError(f"{sheet.path}: kernel {line} lacks its name, its times or its size")
    return Launch(line, str(name), time_s, workgroups, workgroup_size, str(gpu))


def _check_graphs(database: sqlite3.Connection, sheet: Sheet, columns: dict[str, set[str]]) -> None:
    """Raise InputError where more time is in CUDA graphs, traced whole, than in kernels."""

    def count_and_seconds(table: str) -> tuple[int, float]:
        query = f"SELECT count(*), total(end - start) / 1e9 FROM {table}"  # noqa: S608, our names
        return database.execute(query).fetchone() if table in columns else (0, 0.0)

    (kernels, kernels_s), (graphs, graphs_s) = map(count_and_seconds, (_KERNELS, _GRAPHS))
    mend = "profile with nsys profile --cuda-graph-trace=node"
    of_graphs = f"{graphs} launches of CUDA graphs were traced whole, {graphs_s:.3g} s in all"
    if graphs_s > kernels_s:
        raise InputError(
            f"{sheet.path}: {of_graphs}, beside {kernels_s:.3g} s of single kernels; {mend}"
        )
    if not kernels:
        raise InputError(f"{sheet.path}: no kernels were traced")
    if graphs:
        warn(f"{sheet.path}: {of_graphs}, and their kernels are not in the times; {mend}")


def _in_any_unit(name: str) -> str:
    return "|".join([name, *(f"{name} ({unit})" for unit in _UNITS_S)])


FORMS = (
    Form(
        "nsys", "Nsight Systems, cuda_gpu_trace", read_trace,
        (_in_any_unit("Start"), _in_any_unit("Duration"), "Name", *_SIZES),
        ends_at_blank=True,
    ),
    Form(
        "nsys", "Nsight Systems, cuda_gpu_kern_sum", read_sum,
        (_in_any_unit("Total Time"), "Instances", "Name"),
        lacks=("Category", "Style", "Source", "PID"), ends_at_blank=True,
    ),
    Form("nsys", "Nsight Systems, SQLite", read_database, tables="CUPTI_ACTIVITY_KIND_"),
    Form(
        "nsys", "this report of Nsight Systems", line=re.compile(r"\W*Time ?\(%\)\W+Total Time"),
        instead="is not one of kernels, or no CSV; give nsys stats --report cuda_gpu_trace "
        "--format csv",
    ),
)  # fmt: skip
