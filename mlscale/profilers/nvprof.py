"""nvprof: metrics (summed over all launches by nvprof itself), traces and summaries."""

import math
import re
from collections.abc import Collection, Iterator

from mlscale.errors import InputError
from mlscale.profilers.lines import Export
from mlscale.profilers.samples import Run, Sample
from mlscale.profilers.values import TIME_UNITS, is_whole, parse_number, parse_nvprof

_CORRELATION = re.compile(r"\s\[\d+\]$")
_DEVICE_NUMBER = re.compile(r"\s\(\d+\)$")
_GIB = 2.0**30


def _device(text: str) -> str:
    return _DEVICE_NUMBER.sub("", text.strip())


def read_metrics(export: Export, run: Run, _needed: Collection[str]) -> Iterator[Sample]:
    """A sample for each kernel and metric: the mean over its launches (column Avg).

    Percentages stay percent, throughputs become B/s. Raises InputError.
    """
    device, kernel, invocations, metric, value = export.columns(
        "Device", "Kernel", "Invocations", "Metric Name", "Avg"
    )
    counts: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    run.application = export.command
    for line, row in export.rows():
        where = export.where(line, "Avg")
        if not is_whole(row[invocations]) or int(row[invocations]) < 1:
            raise InputError(
                f"{export.where(line, 'Invocations')}: '{row[invocations][:40]}' is not a number "
                "of launches"
            )
        count = int(row[invocations])
        name = row[kernel]
        run.note("device_name", _device(row[device]))
        first = name not in counts
        if counts.setdefault(name, count) != count:
            raise InputError(
                f"{export.where(line, 'Invocations')}: {count} launches of '{name[:60]}', "
                f"{counts[name]} above"
            )
        if (name, row[metric]) in seen:
            raise InputError(f"{export.where(line)}: metric '{row[metric]}' is there twice")
        seen.add((name, row[metric]))
        number, unit = parse_nvprof(row[value], where)
        run.asked.add(row[metric])
        counters = {row[metric]: number}
        if unit:
            run.note(f"unit of {row[metric]}", unit)
        yield Sample(line, name, "", None, None, None, counters, count, first)


def _time_unit(export: Export, line: int, row: list[str], column: int) -> float:
    unit = row[column].strip()
    if unit not in TIME_UNITS:
        raise InputError(
            f"{export.where(line, export.header[column])}: the row of units is missing below the "
            "header; use the file as nvprof --csv writes it"
        )
    return TIME_UNITS[unit]


def read_trace(export: Export, run: Run, _needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each row with a grid; copies and page faults are passed over."""
    duration, name = export.columns("Duration", "Name")
    grid = export.columns("Grid X", "Grid Y", "Grid Z")
    block = export.columns("Block X", "Block Y", "Block Z")
    device = export.find("Device")
    run.application = export.command
    rows = export.rows()
    line, units = next(rows, (export.header_line, [""] * len(export.header)))
    scale = _time_unit(export, line, units, duration)
    launch = 0
    for line, row in rows:
        if row[duration].strip() in TIME_UNITS:
            raise InputError(f"{export.where(line)}: a second row of units inside the table")
        if not row[grid[0]].strip():
            continue
        where = export.where(line, "Duration")
        time_s = scale * parse_number(row[duration], where)
        if math.isnan(time_s) or time_s <= 0:
            run.dropped += 1
            continue
        if device is not None:
            run.note("device_name", _device(row[device]))
        launch += 1
        sizes = [[_size(export, line, row, i) for i in axes] for axes in (grid, block)]
        yield Sample(
            line, _CORRELATION.sub("", row[name]), str(launch),
            math.prod(sizes[0]), math.prod(sizes[1]), time_s, {},
        )  # fmt: skip


def _size(export: Export, line: int, row: list[str], column: int) -> float:
    if not is_whole(row[column]) or int(row[column]) < 1:
        raise InputError(
            f"{export.where(line, export.header[column])}: '{row[column][:40]}' is not a size"
        )
    return float(row[column])


def read_summary(export: Export, run: Run, _needed: Collection[str]) -> Iterator[Sample]:
    """The mean time of each kernel; copies and API calls are passed over."""
    name, calls, average = export.columns("Name", "Calls", "Avg")
    kind = export.find("Type")
    run.application = export.command
    rows = export.rows()
    line, units = next(rows, (export.header_line, [""] * len(export.header)))
    scale = _time_unit(export, line, units, average)
    for line, row in rows:
        if row[average].strip() in TIME_UNITS:
            raise InputError(f"{export.where(line)}: a second row of units inside the table")
        if row[name].startswith("[CUDA ") or (kind is not None and row[kind] == "API calls"):
            continue
        if not is_whole(row[calls]) or int(row[calls]) < 1:
            raise InputError(
                f"{export.where(line, 'Calls')}: '{row[calls][:40]}' is not a number of launches"
            )
        time_s = scale * parse_number(row[average], export.where(line, "Avg"))
        if math.isnan(time_s) or time_s <= 0:
            run.dropped += 1
            continue
        kernel = _CORRELATION.sub("", row[name])
        yield Sample(line, kernel, "", None, None, time_s, {}, int(row[calls]))


def in_file_units(value: float, unit: str) -> float:
    """A metric as NV-DVFS-Benchmark's files, and so models trained on them, have it.

    Percentages are fractions there, throughputs nvprof's GB/s of 2^30 bytes.
    """
    if unit == "%":
        return value / 100
    return value / _GIB if unit == "B/s" else value
