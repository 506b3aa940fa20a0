"""Whether kernels ran at one clock while they were counted and in the trace beside it."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from mlscale.data.device_table import find_device
from mlscale.errors import InputError, warn
from mlscale.profilers.configuration import RunConfiguration, held_below_mhz
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.mapping import CYCLES
from mlscale.profilers.passes import LONG_S

_SAME_CLOCK = 1.2  # between a kernel's times, counted and traced, at one clock


def check_counted_clock(
    contents: Sequence[FileContent], records: Sequence[KernelRecord], run: RunConfiguration
) -> None:
    """Warn where kernels took other times while they were counted than in the trace.

    Raises InputError where ncu's own clock explains it, or that of a performance level of AMD's, or
    a lower one of the traced run, and the user has not said that both were at one.
    """
    slower = _slower_counted(records)
    if 1 / _SAME_CLOCK <= slower <= _SAME_CLOCK:
        return
    traces = (content for content in contents if content.groups and not content.has_counters)
    trace = next(traces).source
    told = f"{trace}: kernels took {slower:.2g} times as long while they were counted"
    counted_mhz = run.observed.get("engine_mhz")
    is_said = counted_mhz is None or "engine_mhz" in run.requested
    if slower < 1 and not is_said:
        raise InputError(
            f"{told}, at {counted_mhz:.0f} MHz: a power limit or heat may have held the clock of "
            "the traced run below it, and its times are then of a clock that no file says. Lock "
            "both runs at a clock that the board holds; or, if that is not so, say --base "
            f"engine={counted_mhz:.0f}"
        )
    if slower > 1 and held_below_mhz(run.device, run.requested, run.observed):
        raise InputError(
            f"{told}, at {counted_mhz:.0f} MHz: ncu sets its own clock unless --clock-control none "
            "is given. Profile them again with it; or, if the trace is of that clock too, say "
            f"--base engine={counted_mhz:.0f}"
        )
    if not is_said and any(CYCLES in record.counters for record in records):
        raise InputError(
            f"{told}, at {counted_mhz:.0f} MHz by their cycles: the trace is of a higher clock, as "
            "of a GPU without the performance level at which it was counted. Trace it at that "
            f"level too; or leave the trace out here, and give it with its clock: --also "
            f"{trace}@engine=…; or, if the trace is of that clock, say --base "
            f"engine={counted_mhz:.0f}"
        )
    device = find_device(run.device)
    of_amd = device is not None and device.vendor == "AMD"
    hint = "" if of_amd else " (ncu sets its own unless --clock-control none is given)"
    warn(
        f"{told}: were the clocks others than here{hint}? What counters tell is then of other "
        "clocks than the times"
    )


def _slower_counted(records: Iterable[KernelRecord]) -> float:
    """How many times as long the kernels took while they were counted as in the trace.

    The median over the run's time, as kernels that memory bounds hardly follow the clock; of
    launches so long that flushed caches and the like hardly matter, 1 where there are none.
    """
    ratios = sorted(
        (record.counted_time_s / record.time_s, record.launches * record.time_s)
        for record in records
        if record.is_traced and record.counted_time_s
        if min(record.counted_time_s, record.time_s) > LONG_S
    )
    half_s = sum(time_s for _, time_s in ratios) / 2
    passed_s = accumulate(time_s for _, time_s in ratios)
    pairs = zip(ratios, passed_s, strict=True)
    return next((ratio for (ratio, _), passed in pairs if passed >= half_s), 1.0)
