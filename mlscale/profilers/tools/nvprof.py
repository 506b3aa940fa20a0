"""nvprof: metrics (summed over all launches by nvprof itself), traces and summaries."""

import re
from collections.abc import Collection, Iterator

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.profilers.exports.blocks import Block, blocks
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.values import TIME_UNITS_NS, parse_counter, parse_number
from mlscale.profilers.launch_batch import LaunchBatch, LaunchRecord
from mlscale.profilers.launches import FileContent

_DEVICE = re.compile(r"(?P<name>.*\S)\s+\((?P<number>\d{1,9})\)")
_PREFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_WITH_UNIT = re.compile(r"(?P<number>[^A-Za-z%]+?)(?P<unit>[KMGT]?B/s|[KMGT]?B|%)", re.ASCII)
_LEVEL = re.compile(r"(Idle|Low|Mid|High|Max) \((?P<level>\d+)\)", re.ASCII)
_LONGEST_RUN_S = 1e9  # thirty years; nvprof counts from its own start


def parse_metric(text: str, where: str) -> tuple[float, str]:
    """Value and unit ('', '%', 'B', 'B/s', 'level') of a cell. Raises InputError.

    Prefixes are binary: 976.5625KB/s is 1e6 B/s.
    """
    cell = text.strip()
    if level := _LEVEL.fullmatch(cell):
        return float(level["level"]), "level"
    if match := _WITH_UNIT.fullmatch(cell):
        value, unit = parse_counter(match["number"], where), match["unit"]
        prefix = unit[0] if unit[0] in "KMGT" else ""
        return value * _PREFIX[prefix], unit.removeprefix(prefix)
    return parse_counter(cell, where), ""


def in_file_units(values: Floats, unit: str) -> Floats:
    """A metric's column as NV-DVFS-Benchmark's files, and so models trained on them, have it.

    Percentages are fractions there, and throughputs are nvprof's GB/s of 2^30 bytes.
    """
    if unit == "%":
        return values / 100
    return values / _PREFIX["G"] if unit == "B/s" else values


def numbered_gpu(text: str, content: FileContent) -> str:
    """The number of 'Tesla P100 (0)', whose name is put on the facts of that GPU; '' without."""
    match = _DEVICE.fullmatch(text.strip())
    name, number = (match["name"], match["number"]) if match else (text.strip(), "")
    if name:
        content.gpu_facts[number] = {"device_name": name}
    return number


def read_metrics(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A record for each kernel and metric: the mean over its launches (column Avg).

    Percentages stay percent, throughputs become B/s. Raises InputError.
    """
    device, kernel, invocations, metric, average = export.columns(
        "Device", "Kernel", "Invocations", "Metric Name", "Avg"
    )
    launches: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    content.application = export.command
    for line, row in export.rows():
        count = export.whole(line, row, invocations, "a number of launches", least=1)
        name = row[kernel]
        content.facts["device_name"][_DEVICE.sub(r"\g<name>", row[device].strip())] += 1
        is_new = name not in launches
        if launches.setdefault(name, count) != count:
            raise InputError(
                f"{export.where(line, invocations)}: {count} launches of '{name[:60]}', "
                f"{launches[name]} above"
            )
        if (name, row[metric]) in seen:
            raise InputError(f"{export.where(line)}: metric '{row[metric]}' is there twice")
        seen.add((name, row[metric]))
        value, unit = parse_metric(row[average], export.where(line, average))
        if unit:
            content.facts[f"unit of {row[metric]}"][unit] += 1
        counters = {row[metric]: value}
        yield LaunchRecord(line, name, counters=counters, weight=count, is_new=is_new)


def launched(block: Block, grid: int) -> Block:
    """The rows that have a grid; copies and page faults have none."""
    return block.where_label(grid, lambda text: bool(text.strip()))


def _below_units(
    export: Export, used: list[int | None], *columns: int
) -> Iterator[tuple[Block, tuple[float, ...]]]:
    """The rows below the row of units, and the seconds of one unit of each column of times.

    Raises InputError where the row of units is missing.
    """
    scales: tuple[float, ...] | None = None
    for block in blocks(export, used):
        rows = block
        if scales is None:
            units = [block.cells[column].text(0).strip() for column in columns]
            for column, unit in zip(columns, units, strict=True):
                if unit not in TIME_UNITS_NS:
                    raise InputError(
                        f"{block.where(0, column)}: the row of units is missing below the header; "
                        "use the file as nvprof --csv writes it"
                    )
            scales = tuple(TIME_UNITS_NS[unit] / 1e9 for unit in units)
            rows = block.take(np.arange(1, len(block)))
        yield rows, scales


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each row with a grid; copies and page faults are passed over."""
    duration, start, name = export.columns("Duration", "Start", "Name")
    grid = export.columns("Grid X", "Grid Y", "Grid Z")
    size = export.columns("Block X", "Block Y", "Block Z")
    device = export.find("Device")
    content.application = export.command
    used = [duration, start, name, *grid, *size, device]
    for block, (scale, scale_start) in _below_units(export, used, duration, start):
        launches = launched(block, grid[0])
        time_s = scale * launches.numbers(duration, parse_number)
        begin_s = scale_start * launches.numbers(start, parse_number)
        begin_s[begin_s > _LONGEST_RUN_S] = np.nan
        yield LaunchBatch(
            launches.lines,
            launches.cells[name].unnumbered(),
            launches.sizes(*grid),
            launches.sizes(*size),
            np.nan_to_num(time_s),
            gpus=launches.renamed(device, lambda text: numbered_gpu(text, content)),
            begin_ns=begin_s * 1e9,
        )


def read_summary(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """The mean time of each kernel; copies and API calls are passed over."""
    name, calls, average = export.columns("Name", "Calls", "Avg")
    kind = export.find("Type")
    content.application = export.command
    for block, (scale,) in _below_units(export, [name, calls, average, kind], average):
        rows = block.where_label(name, lambda text: not text.startswith("[CUDA "))
        if kind is not None:
            rows = rows.where_label(kind, lambda text: text != "API calls")
        time_s = scale * rows.numbers(average, parse_number)
        unknown = np.full(len(rows), np.nan)
        yield LaunchBatch(
            rows.lines,
            rows.cells[name].unnumbered(),
            unknown,
            unknown,
            np.nan_to_num(time_s),
            weights=rows.wholes(calls, "a number of launches", least=1).astype(np.float64),
        )
