"""Whether passes of counters, each a run of its own, are of the same launches."""

import math
from collections.abc import Sequence
from dataclasses import replace

from mlscale.errors import InputError, warn
from mlscale.profilers.launches import FileContent, GroupKey, some_of
from mlscale.text import counted

_UNLIKE = 0.1  # of launches that a kernel has more or fewer; and of a pass's time, of such kernels
_SAME_WORK = 1.5  # between the times of two passes of the same launches
LONG_S = 5e-5  # what a launch takes at least where flushed caches and the like hardly matter


def of_the_same_launches(passes: Sequence[FileContent]) -> list[FileContent]:
    """The passes, without counters of kernels that some lack or have more or less often.

    Libraries that tune themselves launch others in a first run, and what the runtime copies and
    fills differs from run to run. A counter is a mean over its launches, so some more or fewer do
    not matter. Raises InputError where such kernels take more than a tenth of a pass's time, or
    long kernels unlike times, since then the passes did not do the same.
    """
    keys = dict.fromkeys(key for file in passes for key in file.groups)
    unlike = [key for key in keys if not key.is_of_the_runtime and _is_unlike(key, passes)]
    if unlike and (any(key.launch for key in unlike) or not _take_little(unlike, passes)):
        _refuse(max(unlike, key=lambda key: _most_s(key, passes)), passes)
    for other in passes[1:]:
        _check_same_times(passes[0], other)
    if not unlike:
        return list(passes)
    warn(
        f"{passes[-1].source}: the passes have other launches of {some_of(unlike)}, as where a "
        "library tunes itself in a first run: without counters here"
    )
    return [_without_counters(file, set(unlike)) for file in passes]


def _is_unlike(key: GroupKey, passes: Sequence[FileContent]) -> bool:
    launches = [file.groups[key].launches if key in file.groups else 0 for file in passes]
    return max(launches) - min(launches) > _UNLIKE * max(launches)


def _take_little(keys: Sequence[GroupKey], passes: Sequence[FileContent]) -> bool:
    """Whether kernels take at most a tenth of the time of each pass; not where it says no time."""
    for file in passes:
        own_s = math.fsum(file.groups[key].time_total_s for key in keys if key in file.groups)
        all_s = math.fsum(group.time_total_s for group in file.groups.values())
        if not all_s or own_s > _UNLIKE * all_s:
            return False
    return True


def _most_s(key: GroupKey, passes: Sequence[FileContent]) -> float:
    return max(file.groups[key].time_total_s for file in passes if key in file.groups)


def _refuse(key: GroupKey, passes: Sequence[FileContent]) -> None:
    """Raise InputError by a kernel of which the passes have unlike launches."""
    by_launches = sorted(
        passes, key=lambda file: file.groups[key].launches if key in file.groups else 0
    )
    least, most = by_launches[0], by_launches[-1]
    count = most.groups[key].launches
    if key in least.groups:
        text = (
            f"{least.source}: has {counted(least.groups[key].launches, 'launch')} of {key}, "
            f"{most.source} has {count}; the passes must be of the same launches"
        )
    else:
        text = (
            f"{least.source}: has no {key}, which {most.source} has; the passes must be of the "
            "same launches"
        )
    raise InputError(
        f"{text}: where a library tunes itself in a first run, run the program once before; of two "
        "runs ask about each alone"
    )


def _without_counters(file: FileContent, keys: set[GroupKey]) -> FileContent:
    groups = {
        key: replace(group, totals={}, counts={}) if key in keys else group
        for key, group in file.groups.items()
    }
    return replace(file, groups=groups)


def _check_same_times(first: FileContent, other: FileContent) -> None:
    """Raise InputError where long kernels took so unlike times that they did not do the same."""
    pairs_s = [
        (group.time_s, other.groups[key].time_s or 0.0)
        for key, group in first.groups.items()
        if group.time_s and key in other.groups and not key.is_of_the_runtime
    ]
    long_s = [pair for pair in pairs_s if min(pair) > 0 and max(pair) > LONG_S]
    if not long_s:
        return
    first_s, other_s = (math.fsum(times_s) for times_s in zip(*long_s, strict=True))
    if max(first_s, other_s) > _SAME_WORK * min(first_s, other_s):
        raise InputError(
            f"{other.source}: its kernels take {other_s / first_s:.2g} times as long as in "
            f"{first.source}; the passes must be of the same launches at the same clocks; of two "
            "runs, such as prefill and decode, ask about each alone"
        )
