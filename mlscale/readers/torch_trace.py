"""PyTorch's profiler: its Chrome trace, plain or packed by gzip, in which kernels are events.

Written by `profile.export_chrome_trace("run.json.gz")` of torch.profiler, with
ProfilerActivity.CUDA among the activities.

To watch for: AMD's traces count the grid in workgroups for some kernels and in work-items for
others, so it is taken from NVIDIA's alone; AMD's numbers of a kernel's GPU count other devices too.
A trace may be larger than memory, so its text is read in pieces and its events one by one.
"""

import codecs
import json
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from mlscale.errors import InputError
from mlscale.readers.files import Sheet
from mlscale.readers.launches import Facts, Launch, Launches, in_parts

_EVENTS = "traceEvents"
_KERNELS = ("kernel", "Kernel")  # the category, of newer versions and of old ones
_LONGEST_US = 1e15  # longer launches, NaN and what no float holds are no time
_LARGEST_SIZE = 2**31  # along one side of a grid, by CUDA and HIP
_LONGEST_VALUE = 64 << 20  # characters of one event, or of one value beside the events


def read(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each event of a kernel; operators and copies are skipped. InputError."""
    yield from in_parts(_kernels(sheet, facts))


def _kernels(sheet: Sheet, facts: Facts) -> Iterator[Launch]:
    gpus: dict[str, dict[str, str | float]] = {}
    used: dict[str, None] = {}
    count = 0
    pieces = codecs.iterdecode(sheet.file.pieces(sheet.progress), "utf-8-sig", "replace")
    for member, value in members(sheet.path, pieces):
        if member == "deviceProperties":
            gpus = _gpus(value)
        is_event = member == _EVENTS and isinstance(value, dict)
        if is_event and value.get("ph") == "X" and value.get("cat") in _KERNELS:
            count += 1
            launch = _launch(count, value)
            used[launch.gpu] = None
            yield launch
    if not count:
        raise InputError(
            f"{sheet.path}: no kernels were traced; profile with ProfilerActivity.CUDA among the "
            "activities"
        )
    # The trace does not list all devices that AMD's numbers count.
    listed = list(gpus.values())
    are_alike = bool(listed) and all(one == listed[0] for one in listed)
    facts.by_gpu.update({n: gpus.get(n, listed[0] if are_alike else {}) for n in used})


def _launch(line: int, event: dict[str, Any]) -> Launch:
    """The launch of a kernel's event; NVIDIA's alone tell the registers."""
    arguments, duration_us = event.get("args"), event.get("dur")
    arguments = arguments if isinstance(arguments, dict) else {}
    time_s = 0.0
    if isinstance(duration_us, int | float) and 0 < duration_us < _LONGEST_US:
        time_s = duration_us / 1e6
    is_nvidias = "registers per thread" in arguments
    return Launch(
        line,
        str(event.get("name", "")),
        time_s,
        _size(arguments.get("grid")) if is_nvidias else None,
        _size(arguments.get("block")) if is_nvidias else None,
        str(arguments.get("device", "")),
    )


def _size(value: Any) -> float | None:
    """The product of three sizes; None where the trace has none that a launch could have."""
    is_size = isinstance(value, list) and len(value) == 3
    if not is_size or not all(isinstance(n, int) and 0 < n < _LARGEST_SIZE for n in value):
        return None
    return float(math.prod(value))


def _gpus(value: Any) -> dict[str, dict[str, str | float]]:
    """By number what deviceProperties say of each GPU."""
    gpus: dict[str, dict[str, str | float]] = {}
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            gpus[str(entry.get("id"))] = gpu = {"device_name": entry["name"]}
            count = entry.get("numSms")
            if isinstance(count, int) and 0 < count < _LARGEST_SIZE:
                gpu["cu_count"] = float(count)
    return gpus


def members(path: Path, pieces: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Name and value of each member of a JSON object, and each event by itself. InputError."""
    text = _JsonText(path, pieces)
    text.take("{")
    while text.next_item("}"):
        name = text.value()
        text.take(":")
        if name == _EVENTS and text.look() == "[":
            text.take("[")
            while text.next_item("]"):
                yield _EVENTS, text.value()
        else:
            yield str(name), text.value()


class _JsonText:
    """JSON that comes in pieces, and how far it is read."""

    def __init__(self, path: Path, pieces: Iterator[str]) -> None:
        self._path, self._pieces = path, pieces
        self._decode = json.JSONDecoder(strict=False).raw_decode
        self._text, self._at = "", 0

    def look(self) -> str:
        """The next character that is no blank; '' at the end."""
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        """Pass that character. Raises InputError on another."""
        if self.look() != character:
            raise self._damage()
        self._at += 1

    def next_item(self, closing: str) -> bool:
        """Pass a comma or the closing bracket; whether an item comes."""
        if self.look() == closing:
            self._at += 1
            return False
        if self.look() == ",":
            self._at += 1
        return True

    def value(self) -> Any:
        """The next value as a whole. Raises InputError."""
        self.look()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except (ValueError, RecursionError):  # the rest of it may not be read yet
                if not self._more():
                    raise self._damage() from None
                continue
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        """Read on, as much again as is not used up; False at the end of the file."""
        rest, more = self._text[self._at :], ""
        if len(rest) > _LONGEST_VALUE:
            raise InputError(
                f"{self._path}: has a value longer than {_LONGEST_VALUE >> 20} MiB, or is not JSON"
            )
        while len(more) <= len(rest) and (piece := next(self._pieces, "")):
            more += piece
        self._text, self._at = rest + more, 0
        return bool(more)

    def _damage(self) -> InputError:
        text = " ".join(self._text[self._at : self._at + 40].split())
        place = f"at '{text}'" if text else "at its end"
        return InputError(f"{self._path}: is not valid JSON {place}; is the file cut off?")
