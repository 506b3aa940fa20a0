"""PyTorch's profiler: its Chrome trace, which has an event for each kernel."""

import math
import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Any

from mlscale.errors import InputError
from mlscale.profilers.exports.json_chunks import JsonValues
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent

_LARGEST_SIZE = 2**31  # of a grid along one side, by CUDA and HIP
_MICROSECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?")
_KERNEL = ("kernel", "Kernel")  # its category
_CUPTI = "registers per thread"  # only NVIDIA's traces have it


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
