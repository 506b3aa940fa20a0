"""How much of a run its counters cover, and which kernels are in one file alone."""

import math
import warnings
from collections.abc import Sequence

from mlscale.errors import DataWarning
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.launches import FileContent
from mlscale.text import shortened

_NAMED = 3


def run_time_s(records: Sequence[KernelRecord]) -> float:
    """The time of all launches of all kernels [s]."""
    return math.fsum(record.launches * record.time_s for record in records)


def covered_share(records: Sequence[KernelRecord]) -> float:
    """The share of the run's time that kernels with counters take."""
    return run_time_s([record for record in records if record.counters]) / run_time_s(records)


def warn_of_unjoined(contents: Sequence[FileContent], records: Sequence[KernelRecord]) -> None:
    """Warn of the kernels that only the counters or only the trace have; none without both."""
    counted = [record for record in records if record.counters]
    traced = [record for record in records if record.is_traced]
    if not (counted and traced):
        return
    trace = next(file for file in contents if file.groups and not file.has_counters)
    of_counters = next(file for file in contents if file.has_counters)
    sides = (
        (f"{trace.source}: without counters", [r for r in records if not r.counters]),
        (
            f"{of_counters.source}: not in the trace, so with their own times and launches",
            [r for r in records if not r.is_traced],
        ),
    )
    for text, alone in sides:
        if alone:
            share = 100 * run_time_s(alone) / run_time_s(records)
            message = f"{text}: {_listed(alone)}, {share:.2g} % of the run's time"
            warnings.warn(message, DataWarning, stacklevel=4)


def _listed(records: Sequence[KernelRecord]) -> str:
    """Their number, the names that take longest, and how many others there are."""
    time_s: dict[str, float] = {}
    for record in records:
        time_s[record.kernel] = time_s.get(record.kernel, 0.0) + run_time_s([record])
    longest = sorted(time_s, key=lambda kernel: -time_s[kernel])
    names = [f"'{shortened(kernel)}'" for kernel in longest[:_NAMED]]
    if others := len(longest) - len(names):
        names.append(f"{others} other{'s' * (others > 1)}")
    return f"{len(longest)} kernel{'s' * (len(longest) > 1)} ({', '.join(names)})"
