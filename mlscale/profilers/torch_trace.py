"""The Chrome trace of PyTorch's profiler: an event for each kernel."""

import math
import re
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import Any

from mlscale.errors import InputError
from mlscale.profilers.json_chunks import JsonValues
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.reader import Export

_LARGEST_SIZE = 2**31  # of a grid along one side, by CUDA and HIP
_MICROSECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?")
_CUPTI = "registers per thread"  # only NVIDIA's traces have it


def read_trace(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each event of a kernel; operators and copies are passed over.

    AMD's traces count the grid in workgroups for some kernels and in work-items for others, so it
    is not taken from them. Raises InputError without kernels, and on what is no such trace.
    """
    source = str(export.path)
    members = _Members()
    used: set[str] = set()
    number = 0
    for number, event in enumerate(members.kernels(JsonValues(source, export.lines)), 1):
        name, arguments = event.get("name"), event.get("args")
        if not isinstance(name, str):
            raise InputError(f"{source}: kernel {number} of the trace has no name")
        arguments = arguments if isinstance(arguments, dict) else {}
        time_ns, begin_ns = _nanoseconds(event.get("dur")), _nanoseconds(event.get("ts"))
        is_cupti = _CUPTI in arguments
        gpu = str(arguments.get("device", ""))
        used.add(gpu)
        yield LaunchRecord(
            line=number,
            kernel=name,
            launch=str(number),
            workgroups=_product(arguments.get("grid")) if is_cupti else None,
            workgroup_size=_product(arguments.get("block")) if is_cupti else None,
            time_s=math.nan if time_ns is None else float(time_ns / 1000) / 1e6,
            gpu=gpu,
            begin_ns=begin_ns,
        )
    if not members.has_events:
        raise InputError(f"{source}: is no trace of PyTorch's profiler: it has no traceEvents")
    if not number:
        raise InputError(
            f"{source}: no kernels were traced; profile with ProfilerActivity.CUDA among the "
            "activities"
        )
    content.gpu_facts.update(members.facts_of(used))


class _Members:
    """What a trace's members say beside its kernels."""

    def __init__(self) -> None:
        self.has_events = False
        self._gpus: dict[str, dict[str, str | float]] = {}

    def kernels(self, values: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        """The events of kernels."""
        for member, value in values:
            if member == "deviceProperties":
                self._gpus = _gpus(value)
            if member != "traceEvents":
                continue
            self.has_events = True
            is_complete = isinstance(value, dict) and value.get("ph") == "X"
            if is_complete and value.get("cat") in ("kernel", "Kernel"):
                yield value

    def facts_of(self, numbers: set[str]) -> dict[str, dict[str, str | float]]:
        """By number what the trace says of GPUs; of one that it does not list, if all are alike.

        AMD's numbers of a kernel's GPU count other devices too.
        """
        listed = list(self._gpus.values())
        are_alike = bool(listed) and all(facts == listed[0] for facts in listed)
        return {
            number: self._gpus.get(number, listed[0] if are_alike else {}) for number in numbers
        }


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
