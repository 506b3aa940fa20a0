"""The plan: which kernels at which CU counts, clocks and power caps, and how long it takes."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.collect.device import DeviceInfo
from mlscale.collect.suite import Entry
from mlscale.errors import InputError

_AUTO_COUNTS = 8
# Compiling, checking and timing a kernel: an estimate, from the small suite on a processor.
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class Plan:
    """What to measure: every kernel of a suite at every combination.

    cu_counts: as they are asked for, rising; what is granted, the table says. settings: values to
    set on the board, by 'engine_mhz', 'memory_mhz' and 'cap_w'; what is empty is left alone.
    repeat: samples of each kernel and configuration. power_s: seconds over which power is
    averaged; 0 measures none.
    """

    suite: str
    entries: tuple[Entry, ...]
    cu_counts: tuple[int, ...]
    settings: dict[str, tuple[int, ...]]
    repeat: int = 1
    power_s: float = 0.0

    @property
    def sets_board(self) -> bool:
        """Whether a clock or the power limit is set."""
        return any(self.settings.values())

    @property
    def configurations(self) -> int:
        """How many there are of each kernel."""
        return len(self.cu_counts) * int(np.prod([len(v) or 1 for v in self.settings.values()]))

    @property
    def samples(self) -> int:
        """How many are taken."""
        return len(self.entries) * self.configurations * self.repeat

    @property
    def seconds(self) -> float:
        """An estimate of the duration [s]."""
        return self.samples * (_SAMPLE_S + self.power_s)

    def record(self) -> dict[str, Any]:
        """The plan as JSON values; the kernels by name."""
        text = json.dumps(vars(self), default=lambda entry: entry.name)
        return dict(json.loads(text))


def cu_counts(asked: Iterable[float] | None, info: DeviceInfo) -> tuple[int, ...]:
    """The CU counts to measure, rising. Raises InputError on what the device does not have.

    asked None takes up to eight, evenly spaced, all CUs among them. Those of a GPU that grants
    groups of CUs are rounded up to whole ones.
    """
    if not info.cu_axis:
        if asked and {*asked} != {info.cu_count}:
            raise InputError(
                f"{info.name} by {info.backend} cannot run on fewer than all {info.cu_count} CUs "
                "(CUDA 12.4, HIP or PoCL can); leave out --cu-counts"
            )
        return (info.cu_count,)
    if asked is None:
        asked = np.linspace(0, info.cu_count, min(_AUTO_COUNTS, info.cu_count) + 1)[1:].round()
    elif max(asked) > info.cu_count:
        raise InputError(f"--cu-counts {max(asked)}: {info.name} has {info.cu_count} CUs")
    whole = (math.ceil(count / info.cu_step) * info.cu_step for count in asked)
    return tuple(sorted({min(count, info.cu_count) for count in whole}))
