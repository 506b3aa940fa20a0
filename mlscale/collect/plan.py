"""The plan: which kernels at which CU counts, clocks and power caps."""

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


@dataclass(frozen=True)
class Plan:
    """What to measure on a device: every kernel of a suite at every combination.

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


def cu_counts(asked: Iterable[float] | None, device: DeviceInfo) -> tuple[int, ...]:
    """The CU counts to measure, rising. Raises InputError on what the device does not have.

    asked None takes up to eight, evenly spaced, all CUs among them. Those of a GPU that grants
    groups of CUs are rounded up to whole ones.
    """
    if not device.cu_axis:
        if asked and {*asked} != {device.cu_count}:
            raise InputError(
                f"{device.name} by {device.backend} cannot run on fewer than all {device.cu_count} "
                "CUs (CUDA 12.4, HIP or PoCL can); leave out --cu-counts"
            )
        return (device.cu_count,)
    if asked is None:
        asked = np.linspace(0, device.cu_count, min(_AUTO_COUNTS, device.cu_count) + 1)[1:].round()
    elif max(asked) > device.cu_count:
        raise InputError(f"--cu-counts {max(asked)}: {device.name} has {device.cu_count} CUs")
    whole = (math.ceil(count / device.cu_step) * device.cu_step for count in asked)
    return tuple(sorted({min(count, device.cu_count) for count in whole}))
