"""PyTorch's profiler: its Chrome trace, and the table that key_averages().table() prints.

The trace has an event for each kernel. The table's rows are operators, and where it was not cut
short also the kernels. A kernel takes no time on the CPU. An operator's own time on the GPU is that
of its kernels, so either counts alone.
"""

import math
import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

from mlscale.errors import InputError, warn
from mlscale.profilers.exports.json_chunks import JsonValues
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.values import TIME_UNITS_NS
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.names import is_cut_off, warn_of_cut_off

_LARGEST_SIZE = 2**31  # of a grid along one side, by CUDA and HIP
_MICROSECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?")
_KERNEL = ("kernel", "Kernel")  # its category
_CUPTI = "registers per thread"  # only NVIDIA's traces have it
_TIME = re.compile(r"(?P<number>[0-9]{1,18}\.[0-9]{1,9})(?P<unit>us|ms|s)")
_TOTAL = re.compile(r"Self (CUDA|XPU) time total: (?P<time>\S+)\s*")
_NO_KERNEL = re.compile(r"Mem(cpy|set) |Copy(Host|Device)To(Host|Device)|FillBuffer|ProfilerStep")
_TOLERANCE = 0.01
_FOOTER_LINES = 100
_MEND = 'export the Chrome trace: prof.export_chrome_trace("trace.json")'


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each event of a kernel; operators and copies are passed over.

    AMD's traces count the grid in workgroups for some kernels and in work-items for others, so it
    is not taken from them. Raises InputError without kernels, and on what is no such trace.
    """
    source = str(export.path)
    gpus: dict[str, dict[str, str | float]] = {}
    used: set[str] = set()
    number, has_events = 0, False
    for member, value in JsonValues(source, export.lines):
        if member == "deviceProperties":
            gpus = _gpus(value)
        if member != "traceEvents":
            continue
        has_events = True
        if isinstance(value, dict) and value.get("ph") == "X" and value.get("cat") in _KERNEL:
            number += 1
            launch = _launch(source, number, value)
            used.add(launch.gpu)
            yield launch
    if not has_events:
        raise InputError(
            f"{source}: is no trace of PyTorch's profiler with kernels: its traceEvents are "
            "missing or empty"
        )
    if not number:
        raise InputError(
            f"{source}: no kernels were traced; profile with ProfilerActivity.CUDA among the "
            "activities"
        )
    # AMD's numbers of a kernel's GPU count other devices too: the trace lists not all of them.
    listed = list(gpus.values())
    are_alike = bool(listed) and all(facts == listed[0] for facts in listed)
    content.gpu_facts.update({n: gpus.get(n, listed[0] if are_alike else {}) for n in used})


def _launch(source: str, number: int, event: dict[str, Any]) -> LaunchRecord:
    """The launch of a kernel's event, the `number`th of the trace. Raises InputError."""
    name, arguments = event.get("name"), event.get("args")
    if not isinstance(name, str):
        raise InputError(f"{source}: kernel {number} of the trace has no name")
    arguments = arguments if isinstance(arguments, dict) else {}
    time_ns = _nanoseconds(event.get("dur"))
    is_cupti = _CUPTI in arguments
    return LaunchRecord(
        line=number,
        kernel=name,
        workgroups=_product(arguments.get("grid")) if is_cupti else None,
        workgroup_size=_product(arguments.get("block")) if is_cupti else None,
        time_s=0.0 if time_ns is None else float(time_ns / 1000) / 1e6,
        gpu=str(arguments.get("device", "")),
        begin_ns=_nanoseconds(event.get("ts")),
    )


def _gpus(value: Any) -> dict[str, dict[str, str | float]]:
    """By number what deviceProperties say of each GPU."""
    gpus: dict[str, dict[str, str | float]] = {}
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            gpus[str(entry.get("id"))] = {"device_name": entry["name"]}
            if isinstance(sms := entry.get("numSms"), int) and 0 < sms < _LARGEST_SIZE:
                gpus[str(entry.get("id"))]["cu_count"] = float(sms)
    return gpus


def _nanoseconds(value: Any) -> int | Fraction | None:
    """A time in microseconds, a whole number or a text with decimals; None if it is none."""
    text = str(value)
    if not _MICROSECONDS.fullmatch(text):
        return None
    whole, _, decimals = text.partition(".")
    is_whole = len(decimals) <= 3  # then whole numbers are exact, and much quicker than fractions
    return int(whole + decimals.ljust(3, "0")) if is_whole else Fraction(text) * 1000


def _product(value: Any) -> float | None:
    """The product of three sizes; None where the trace has none that a launch could have."""
    is_size = isinstance(value, list) and all(
        isinstance(size, int) and 0 < size < _LARGEST_SIZE for size in value
    )
    return float(math.prod(value)) if is_size and len(value) == 3 else None


def read_averages(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """All launches of each kernel as one. Raises InputError on a table without kernels.

    Also where what the rows add up to is more than the total below the table, since then some are
    no kernels, and where there are several tables.
    """
    path = export.path
    gpu_time = export.find("Self CUDA", "Self XPU")
    if gpu_time is None:
        raise InputError(
            f"{export.where(export.header_line)}: has no time of the GPU (column 'Self CUDA'); "
            "profile with ProfilerActivity.CUDA among the activities"
        )
    name, cpu_time, calls = export.columns("Name", "Self CPU", "# of Calls")
    sum_s, kernels, cut_off = 0.0, 0, 0
    for line, row in export.rows():
        time_s = _seconds(export, line, row, gpu_time)
        if _seconds(export, line, row, cpu_time) > 0 or not time_s > 0:
            continue
        sum_s += time_s
        if _NO_KERNEL.match(row[name]):
            continue
        kernels += 1
        cut_off += is_cut_off(row[name])
        count = export.whole(line, row, calls, "a number of calls", least=1)
        yield LaunchRecord(line, row[name], time_s=time_s / count, weight=count)
    if not kernels:
        raise InputError(f"{path}: has operators and no kernels among its rows; {_MEND}")
    _check_total(export, sum_s)
    export.refuse_further_tables()
    warn_of_cut_off(path, cut_off, "print the table with max_name_column_width=None")


def _seconds(export: Export, line: int, row: list[str], column: int) -> float:
    """A time with its unit, as 12.979us. Raises InputError."""
    match = _TIME.fullmatch(row[column])
    if match is None:
        raise InputError(f"{export.where(line, column)}: '{row[column][:40]}' is not a time")
    return float(match["number"]) * (TIME_UNITS_NS[match["unit"]] / 1e9)


def _check_total(export: Export, sum_s: float) -> None:
    """Compare with the total below the table: more are no kernels alone, less are not all."""
    for line, text in islice(export.lines, _FOOTER_LINES):
        match = _TOTAL.fullmatch(text)
        if match is None:
            continue
        total_s = _seconds(export, line, [match["time"]], 0)
        if sum_s > (1 + _TOLERANCE) * total_s:
            raise InputError(
                f"{export.path}: row {line}: its kernels take {sum_s / total_s:.2f} times "
                f"the total below the table, so that some of them are annotations; {_MEND}"
            )
        if sum_s < (1 - _TOLERANCE) * total_s:
            warn(
                f"{export.path}: the table was cut short: its kernels and copies are "
                f"{100 * sum_s / total_s:.0f} % of the GPU's time; print it with row_limit=-1"
            )
        return
