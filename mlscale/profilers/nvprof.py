"""nvprof: metrics (summed over all launches by nvprof itself), traces and summaries."""

import math
import re
from collections.abc import Collection, Iterator

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, LaunchRecord
from mlscale.profilers.reader import Export
from mlscale.profilers.values import parse_counter, parse_number

_CORRELATION = re.compile(r"\s\[\d+\]$")
_DEVICE = re.compile(r"(?P<name>.*\S)\s+\((?P<number>\d{1,9})\)")
_PREFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_WITH_UNIT = re.compile(r"(?P<number>[^A-Za-z%]+?)(?P<unit>[KMGT]?B/s|[KMGT]?B|%)", re.ASCII)
_LEVEL = re.compile(r"(Idle|Low|Mid|High|Max) \((?P<level>\d+)\)", re.ASCII)
_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


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
        yield LaunchRecord(
            line, name, "", None, None, None, {row[metric]: value}, weight=count, is_new=is_new
        )


def _rows_below_units(
    export: Export, *columns: int
) -> Iterator[tuple[int, list[str], tuple[float, ...]]]:
    """Every row below the row of units, and the seconds of one unit of each column of times.

    Raises InputError where the row of units is missing, and where it stands further below.
    """
    rows = export.rows()
    line, units = next(rows, (export.header_line, [""] * len(export.header)))
    for column in columns:
        if units[column].strip() not in _TIME_UNITS:
            raise InputError(
                f"{export.where(line, column)}: the row of units is missing below the header; "
                "use the file as nvprof --csv writes it"
            )
    scales = tuple(_TIME_UNITS[units[column].strip()] for column in columns)
    for line, row in rows:
        if row[columns[0]].strip() in _TIME_UNITS:
            raise InputError(f"{export.where(line)}: a second row of units inside the table")
        yield line, row, scales


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row with a grid; copies and page faults are passed over."""
    duration, start, name = export.columns("Duration", "Start", "Name")
    grid = export.columns("Grid X", "Grid Y", "Grid Z")
    block = export.columns("Block X", "Block Y", "Block Z")
    device = export.find("Device")
    content.application = export.command
    launch = 0
    for line, row, (scale, scale_start) in _rows_below_units(export, duration, start):
        if not row[grid[0]].strip():
            continue
        time_s = scale * parse_number(row[duration], export.where(line, duration))
        start_s = scale_start * parse_number(row[start], export.where(line, start))
        gpu = "" if device is None else numbered_gpu(row[device], content)
        launch += 1
        yield LaunchRecord(
            line=line,
            kernel=_CORRELATION.sub("", row[name]),
            launch=str(launch),
            workgroups=math.prod(export.size(line, row, axis) for axis in grid),
            workgroup_size=math.prod(export.size(line, row, axis) for axis in block),
            time_s=time_s,
            counters={},
            gpu=gpu,
            begin_ns=round(start_s * 1e9) if math.isfinite(start_s) else None,
        )


def read_summary(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """The mean time of each kernel; copies and API calls are passed over."""
    name, calls, average = export.columns("Name", "Calls", "Avg")
    kind = export.find("Type")
    content.application = export.command
    for line, row, (scale,) in _rows_below_units(export, average):
        if row[name].startswith("[CUDA ") or (kind is not None and row[kind] == "API calls"):
            continue
        count = export.whole(line, row, calls, "a number of launches", least=1)
        time_s = scale * parse_number(row[average], export.where(line, average))
        kernel = _CORRELATION.sub("", row[name])
        yield LaunchRecord(line, kernel, "", None, None, time_s, {}, weight=count)
