"""What a run's sums leave out or count twice, and how it is said.

Rows without a time, kernels without counters, kernels that overlap.
"""

import math
from collections.abc import Sequence

import numpy as np

from mlscale.errors import warn
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.names import hint_of_mangled
from mlscale.text import counted, listed, share_in_percent, shortened

_OVERLAP = 0.02


def run_time_s(records: Sequence[KernelRecord]) -> float:
    """The time of all launches of all kernels [s]."""
    return math.fsum(record.launches * record.time_s for record in records)


def covered_share(records: Sequence[KernelRecord]) -> float:
    """The share of the run's time that kernels with counters take."""
    return run_time_s([record for record in records if record.counters]) / run_time_s(records)


def warn_of_left_out(contents: Sequence[FileContent], records: Sequence[KernelRecord]) -> None:
    """Warn of all that the files have and the sums lack, or have twice."""
    for content in contents:
        if content.dropped:
            warn(f"{content.source}: {_untimed(content)}")
        if content.skipped:
            warn(
                f"{content.source}: passed over: {counted(content.skipped, 'line')} inside the "
                "table, output of the program or the tool"
            )
    for content in contents:
        warn_of_overlap(content)
    warn_of_uncounted(contents, records)


def _untimed(content: FileContent) -> str:
    """How many rows without a time are left out, and of which kernels nothing is left."""
    verb = "was" if content.dropped == 1 else "were"
    text = f"{counted(content.dropped, 'row')} without a positive time {verb} left out"
    untimed = sorted(content.untimed - {key.kernel for key in content.groups})
    lost = [f"'{shortened(kernel)}'" for kernel in untimed]
    if not lost:
        return text
    return (
        f"{text}, and with {'it' if content.dropped == 1 else 'them'} all of "
        f"{listed(lost)}; where a short time is rounded "
        "to 0, export it in nanoseconds (ncu: --print-units base)"
    )


def warn_of_overlap(content: FileContent) -> None:
    """Warn where kernels run beside each other, so that their times add up to more than passed."""
    if content.busy_s is None:
        return
    summed_s = math.fsum(group.time_total_s for group in content.groups.values())
    if summed_s > (1 + _OVERLAP) * content.busy_s:
        summed, busy = (
            np.format_float_positional(seconds * 1e3, 4, fractional=False, trim="-")
            for seconds in (summed_s, content.busy_s)
        )
        warn(
            f"{content.source}: kernels run beside each other: {summed} ms of them within {busy} "
            "ms; the whole run counts them one after the other, so its time and energy are too "
            "high by as much, and in its percentages what is hidden behind others weighs in full"
        )


def warn_of_uncounted(contents: Sequence[FileContent], records: Sequence[KernelRecord]) -> None:
    """Warn of the kernels without counters, where others have some: a trace alone has them."""
    uncounted = [record for record in records if not record.counters]
    if not uncounted or len(uncounted) == len(records):
        return
    traces = [file.source for file in contents if file.groups and not file.has_counters]
    source = traces[0] if traces else contents[0].source  # of one file that has both
    time_s: dict[str, float] = {}
    for record in uncounted:
        time_s[record.kernel] = time_s.get(record.kernel, 0.0) + run_time_s([record])
    longest = [f"'{shortened(k)}'" for k in sorted(time_s, key=lambda kernel: -time_s[kernel])]
    percent = share_in_percent(run_time_s(uncounted) / run_time_s(records))
    warn(
        f"{source}: without counters: {listed(longest)}, {percent} % of the run's time"
        f"{hint_of_mangled(time_s)}"
    )
