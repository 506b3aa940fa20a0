"""The plan: which kernels of the suite, at which CU counts, clocks and power caps.

suite.json has a line for each kernel at a size: suite "full" has sizes for a GPU, "small" one size
of each that a processor runs in some milliseconds.
"""

import fnmatch
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.collect import cases
from mlscale.collect.device import BACKENDS, DeviceInfo
from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.text import near_names

KERNELS = Path(__file__).parent / "kernels"
_AUTO_COUNTS = 8


@dataclass(frozen=True)
class Entry:
    """One kernel at one size: a row of the table.

    name: in the table, and of its function on the GPU, so that a profiler names it too.
    application: what it is a size of. source: the file in kernels/, without .cu, with its macros.
    threads: of the one-dimensional launch, rounded up to whole blocks. case: makes the arguments
    and what is expected, always the same. backends: that have what it needs.
    """

    name: str
    application: str
    source: str
    macros: dict[str, Any]
    threads: int
    block: int
    case: Callable[[], cases.Case]
    backends: Sequence[str] = BACKENDS

    @property
    def text(self) -> str:
        """The source, with what makes it CUDA, HIP or OpenCL C before it."""
        files = (KERNELS / "languages.h", KERNELS / f"{self.source}.cu")
        return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def entries(suite: str) -> tuple[Entry, ...]:
    """The kernels of a suite, 'full' or 'small'."""
    rows = []
    for row in shipped_json(__file__, "suite.json")[suite]:
        name, arguments = row.pop("case")
        rows.append(Entry(**row, case=partial(getattr(cases, f"_{name}"), **arguments)))
    return tuple(rows)


def select(suite: str, patterns: Sequence[str], backend: str) -> tuple[Entry, ...]:
    """The kernels of a suite that are asked for and that the backend can run; all without patterns.

    patterns: names of kernels or of applications, * for any characters. Raises InputError.
    """
    names = [name for entry in entries(suite) for name in (entry.name, entry.application)]
    wanted: set[str] = set()
    for pattern in patterns or "*":
        matching = fnmatch.filter(names, pattern)
        if not matching:
            near = "".join(f"; is '{name}' meant?" for name in near_names(pattern, names, most=1))
            raise InputError(
                f"there is no kernel or application '{pattern}' in the suite '{suite}'{near}"
            )
        wanted.update(matching)
    can_run = [entry for entry in entries(suite) if backend in entry.backends]
    return tuple(entry for entry in can_run if wanted & {entry.name, entry.application})


@dataclass(frozen=True)
class Plan:
    """What to measure on a device: every kernel at every combination.

    cu_counts: as they are asked for, rising; what is granted, the table says. settings: values to
    set on the board, by 'engine_mhz', 'memory_mhz' and 'cap_w'; what is empty is left alone.
    repeat: samples of each kernel and configuration. power_s: seconds over which power is
    averaged; 0 measures none.
    """

    suite: str
    device: DeviceInfo
    entries: tuple[Entry, ...]
    cu_counts: tuple[int, ...]
    settings: dict[str, tuple[int, ...]]
    repeat: int = 1
    power_s: float = 0.0

    @property
    def configurations(self) -> int:
        """How many there are of each kernel."""
        return len(self.cu_counts) * math.prod(len(v) or 1 for v in self.settings.values())

    def record(self) -> dict[str, Any]:
        """The plan as JSON values; the kernels by name."""
        values = {**vars(self), "device": vars(self.device)}
        values["kernels"] = [entry.name for entry in values.pop("entries")]
        return dict(json.loads(json.dumps(values)))


def cu_counts(asked: Sequence[int] | None, device: DeviceInfo) -> tuple[int, ...]:
    """The CU counts to measure, rising. Raises InputError on what the device does not have.

    asked None takes up to eight, evenly spaced, all CUs among them. Those of a GPU that grants
    groups of CUs are rounded up to whole ones.
    """
    most = device.cu_count
    if asked and not device.cu_axis and {*asked} != {most}:
        raise InputError(
            f"{device.name} by {device.backend} cannot run on fewer than all {most} CUs (CUDA "
            "12.4, HIP or PoCL can); leave out --cu-counts"
        )
    if asked and max(asked) > most:
        raise InputError(f"--cu-counts {max(asked)}: {device.name} has {most} CUs")
    steps = min(_AUTO_COUNTS, most) if device.cu_axis else 1
    counts = asked or np.linspace(0, most, steps + 1)[1:].round()
    group = 1 if device.cu_axis != "green contexts" else 8 if device.capability >= 90 else 2
    whole = (math.ceil(count / group) * group for count in counts)
    return tuple(sorted({min(count, most) for count in whole}))
