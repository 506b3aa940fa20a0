"""Monitors' logs as profiles and tables: averages over whole runs, as DCGM and the like take them.

A table of them says `"profile_kind": "sampled"` in its metadata. Its counters are shares of time
or of a peak, 0 to 1; its power is that of the board. Where files tell only the clocks asked for,
`with_ran_clocks` says which of a run's readings ran at them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.data.predicates import LEAST_STEP, UNEXPLAINED
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.supply import is_at_limit, run_cap_w
from mlscale.data.table import Table
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.text import counted

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements

PROFILE_KIND = "sampled"
# DCGM's own names, and those of nvidia-smi.
SHARES = (
    *("gr_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"),
    *("fp64_active", "fp32_active", "fp16_active", "gpu_utilisation", "memory_copy_utilisation"),
)
SAME_CLOCK = 0.01  # by which the sampled clock may differ from the one that was set
POWER_ALONE = {"times_follow_clock": False}  # metadata: something else changed time too
LARGEST_FALL = 0.15  # share of power lost at the next higher clock


def is_sampled(metadata: Mapping[str, Any]) -> bool:
    """Whether a table's metadata say that its profiles are averages over whole runs."""
    return metadata.get("profile_kind") == PROFILE_KIND


def is_engine_sweep(measurements: "Measurements") -> bool:
    """Whether a table is of logs at one CU count and one memory clock."""
    cus, _, memories = measurements.grid.shape
    return is_sampled(measurements.metadata) and cus == memories == 1


def tells_times(measurements: "Measurements") -> bool:
    """Whether a table's times follow from the clocks that are named, see POWER_ALONE."""
    return bool(measurements.metadata.get("times_follow_clock", True))


def require_engine_sweep(name: str, table: "Measurements", least: int) -> None:
    """Raise InputError if a predictor of that name cannot be trained on a table.

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


def power_faults(measurements: "Measurements") -> dict[str, str]:
    """What is wrong with a kernel's power, by kernel: it falls as the engine clock rises.

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
                f"its power falls by {100 * (1 - ratios.min()):.0f} % from {low:g} to {high:g} "
                "MHz, a higher clock: a fault of the measurement"
            )
    return faults


def without_power_faults(table: "Measurements") -> "Measurements":
    """The kernels whose power does not fall at a higher clock."""
    faults = power_faults(table)
    return table.select([k for k, name in enumerate(table.kernels) if name not in faults])


def clocks_not_reached(measurements: "Measurements") -> dict[float, float]:
    """Engine clocks [MHz] that were set but not kept, each with the factor of excess time.

    No kernel slows down by more than the clock. Where the slowest tenth of kernels does, by more
    than 10 %, relative to any higher clock, the GPU ran at a lower clock than the one that was
    set; their 90th percentile of time x clock is the second number.
    """
    cycles = measurements.time_ms * np.array(measurements.grid.engine_mhz)[:, None]
    least = np.minimum.accumulate(cycles[:, :, ::-1], axis=2)[:, :, ::-1]
    excess = np.quantile(cycles / least, 0.9, axis=0).max(axis=(0, 2))
    clocks = zip(measurements.grid.engine_mhz, excess.tolist(), strict=True)
    return {clock: over for clock, over in clocks if over > UNEXPLAINED}


EVEN = 0.1  # an exponent of time or power over the clock: below, it does not follow the clock
FALLEN = 0.5  # share of the next lower step's exponents: less tells of a clock not kept
HELD = 2 / 3  # way in logs from the clock asked for to the least, if a limit alone tells


def shows_clock(table: Table) -> bool:
    """Whether a table of whole runs has the actual engine clocks, not only the requested ones."""
    if is_sampled(table.metadata):
        return not table.metadata.get("asked_clocks")
    nothing, names = np.array(np.nan), ("engine_mhz", "engine_mhz_observed")
    asked_mhz, ran_mhz = (table.numbers.get(name, nothing) for name in names)
    return np.allclose(asked_mhz, ran_mhz, rtol=2 * SAME_CLOCK)


def with_ran_clocks(profiles: Profiles, tables: Iterable[Table]) -> tuple[Profiles, list[Note]]:
    """A run's readings, from tables, at the actual clocks, if they show them; a note on them."""
    are_shown = {shows_clock(table) for table in tables}
    is_of_run = is_sampled(profiles.metadata) or profiles.are_times_alone
    if not (is_of_run and profiles.points and False in are_shown):
        return profiles, []
    lost, mhz = (0, 0.0) if True in are_shown else not_kept(profiles)
    told = "no file shows the actual clocks, so the requested ones are used: log them too"
    if lost:
        told += f"; judging by time and power {profiles.base.engine_mhz:g} MHz was not reached, "
        told += f"{mhz:g} is assumed: measure at a clock that the GPU keeps"
        base, points = replace(profiles.base, engine_mhz=mhz), profiles.points[lost - 1 :]
        profiles = replace(profiles, base=base, points=points, is_clock_doubted=True)
    told += " (clocks.sm of nvidia-smi; of a table the column engine_mhz_observed)"
    note = Note("L04", told, "warning" if lost else "note")
    return replace(profiles, are_clocks_asked=True), [note]


def not_kept(profiles: Profiles) -> tuple[int, float]:
    """How many of a run's highest readings did not keep their clock, and the one that ran [MHz].

    They are even with the next lower reading; or the highest gains far less over it than that over
    its next, or drew its power limit. No work slows by more than the clock falls, and its power
    falls by no more than the cube, which gives the least clock; a limit alone does not show which.
    """
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    rows = [
        (one.config.engine_mhz, one.time_ms[0], one.power_w[0])
        for one in (base, *profiles.points)
        if one.power_w is not None
    ]
    mhz, time_ms, power_w = np.reshape(rows, (-1, 3)).T
    is_whole = len(rows) > len(profiles.points) and len(profiles.kernels) == 1
    if not is_whole or (np.diff(mhz) >= 0).any():
        return 0, 0.0
    clock, time, power = np.diff(np.log([1 / mhz, time_ms, 1 / power_w]))
    slopes, are_steps = np.array([time, power]) / clock, clock >= np.log(LEAST_STEP)
    even = int(np.argmin([*(are_steps & (slopes < EVEN).all(axis=0)), False]))
    falls = len(clock) > 1 and are_steps[:2].all() and slopes[0, 1] > EVEN
    falls = falls and (slopes[:, 0] < FALLEN * slopes[:, 1]).all()
    board_w = power_w[0] * profiles.hottest_gpu_ratio / profiles.gpu_count
    shown = even + 1 if even else int(falls)
    lost = shown or int(is_at_limit(board_w, run_cap_w(profiles)))
    n = min(lost, len(clock))
    least = mhz[n] * max(time_ms[n] / time_ms[0], np.cbrt(power_w[0] / power_w[n]), 1)
    ran = mhz[0] * (min(least, mhz[even]) / mhz[0]) ** (1 if shown else HELD)
    return (lost, float(round(ran))) if ran * (1 + SAME_CLOCK) < mhz[0] else (0, 0.0)
