"""Monitors' logs as profiles and tables: averages over whole runs, as DCGM and the like take them.

A table of them says `"profile_kind": "sampled"` in its metadata. Its counters are shares of time
or of a peak, 0 to 1; its power is that of the board.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlscale.data.measurements import Measurements
from mlscale.data.predicates import UNEXPLAINED
from mlscale.errors import InputError
from mlscale.text import counted

PROFILE_KIND = "sampled"
# DCGM's own names, and those of nvidia-smi.
SHARES = (
    *("gr_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"),
    *("fp64_active", "fp32_active", "fp16_active", "gpu_utilisation", "memory_copy_utilisation"),
)
SAME_CLOCK = 0.01  # by which the sampled clock may differ from the one that was set
POWER_ALONE = {"times_follow_clock": False}  # of a table where something else changed time too
LARGEST_FALL = 0.15  # of power, from one clock to the next higher


def is_sampled(metadata: Mapping[str, Any]) -> bool:
    """Whether a table's metadata say that its profiles are averages of whole runs."""
    return metadata.get("profile_kind") == PROFILE_KIND


def is_engine_sweep(measurements: Measurements) -> bool:
    """Whether a table is of logs at one CU count and one memory clock."""
    cus, _, memories = measurements.grid.shape
    return is_sampled(measurements.metadata) and cus == memories == 1


def tells_times(measurements: Measurements) -> bool:
    """Whether a table's times follow from the clocks that are named, see POWER_ALONE."""
    return bool(measurements.metadata.get("times_follow_clock", True))


def require_engine_sweep(name: str, table: Measurements, least: int) -> None:
    """Raise InputError where a predictor of that name cannot learn from a table.

    least: engine clocks, at one CU count and one memory clock.
    """
    cus, engines, memories = table.grid.shape
    if cus > 1 or memories > 1 or engines < least or not table.kernels:
        raise InputError(
            f"'{name}' learns from kernels at one CU count, one memory clock and {least} engine "
            f"clocks or more; the table of '{table.device}' has "
            f"{counted(len(table.kernels), 'kernel')}, {counted(cus, 'CU count')}, "
            f"{counted(engines, 'engine clock')} and {counted(memories, 'memory clock')}"
        )


def power_faults(measurements: Measurements) -> dict[str, str]:
    """What is wrong with a kernel's power, by kernel: it falls where the engine clock rises.

    Power cannot fall by more than noise when the same work runs at a higher clock, so a fall of
    more than 15 % is a fault of the measurement.
    """
    if measurements.power_w is None:
        return {}
    steps = measurements.power_w[:, :, 1:] / measurements.power_w[:, :, :-1]
    faults = {}
    for kernel, ratios in zip(measurements.kernels, steps, strict=True):
        if ratios.size and ratios.min() < 1 - LARGEST_FALL:
            at = int(np.unravel_index(ratios.argmin(), ratios.shape)[1])
            low, high = measurements.grid.engine_mhz[at : at + 2]
            faults[kernel] = (
                f"its power falls by {1 - ratios.min():.0%} from {low:g} to {high:g} MHz, "
                "a higher clock: a fault of the measurement"
            )
    return faults


def without_power_faults(table: Measurements) -> Measurements:
    """The kernels whose power does not fall at a higher clock."""
    faults = power_faults(table)
    return table.select([k for k, name in enumerate(table.kernels) if name not in faults])


def clocks_not_reached(measurements: Measurements) -> dict[float, float]:
    """Engine clocks [MHz] that were set but not kept, each with how much too long times are.

    No kernel slows down by more than the clock. Where the slowest tenth of kernels does, by more
    than 10 %, relative to any higher clock, the GPU ran at a lower clock than the one that was
    set; their 90th percentile of time x clock is the second number.
    """
    cycles = measurements.time_ms * np.array(measurements.grid.engine_mhz)[:, None]
    least = np.minimum.accumulate(cycles[:, :, ::-1], axis=2)[:, :, ::-1]
    excess = np.quantile(cycles / least, 0.9, axis=0).max(axis=(0, 2))
    clocks = zip(measurements.grid.engine_mhz, excess.tolist(), strict=True)
    return {clock: over for clock, over in clocks if over > UNEXPLAINED}
