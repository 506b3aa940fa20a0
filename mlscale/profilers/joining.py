"""Several files of one run joined: passes of counters, and a trace for the time."""

import math
import re
import statistics
import warnings
from dataclasses import dataclass, replace

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.launches import FileContent, GroupKey, LaunchGroup

_AGREEMENT = 0.01
_SAME_IN_EVERY_PASS = ("SQ_WAVES", "Wavefronts")
# Known of a launch without counting, or by the clock: they stand even where counting failed.
_NOT_COUNTED = re.compile(
    r"(launch|device)__|(sm|dram)__cycles_elapsed|sm__maximum_warps|KernelOccupancy$|Wavefronts$"
)


@dataclass(frozen=True)
class KernelRecord:
    """One kernel with one geometry (or one launch of it), over all files.

    launches: how many it stands for, by the trace where there is one, since counter passes see
    only some; time_s: their mean; is_traced: whether a trace says both; cycles: GRBM_GUI_ACTIVE by
    the counter of its pass.
    """

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launches: int
    time_s: float
    is_traced: bool
    counters: dict[str, float]
    cycles: dict[str, float]


def join(files: list[FileContent]) -> list[KernelRecord]:
    """Join the files by kernel and geometry, or by launch. Raises InputError on a mismatch."""
    machines = [file for file in files if not file.groups]
    files = [file for file in files if file.groups]
    if not files:
        raise InputError(
            f"{machines[0].source}: tells of a machine, not of kernels; give it beside "
            "the file of the counters (pmc_perf.csv)"
        )
    counting = [file for file in files if any(g.totals for g in file.groups.values())]
    timing = [file for file in files if not any(g.totals for g in file.groups.values())]
    if any(key.lacks_geometry for file in files for key in file.groups):
        counting = [_by_kernel(file) for file in counting]
        for file in timing:
            if any(key.launch is not None for key in file.groups):
                raise InputError(
                    f"{file.source}: cannot be joined launch by launch; leave out --each"
                )
        timing = [_by_kernel(file) for file in timing]
    first = (counting or timing)[0]
    for other in counting[1:]:
        _check_same_launches(first, other)
    if counting and all(key.launch is not None for key in first.groups):
        timing = [_renumbered(file, first) for file in timing]
    return [_record(key, counting, timing) for key in first.groups]


def _by_kernel(file: FileContent) -> FileContent:
    """The groups of each kernel as one, for files that do not say the geometry.

    A kernel launched with one geometry keeps it.
    """
    keys: dict[str, set[GroupKey]] = {}
    pooled: dict[str, LaunchGroup] = {}
    for key, group in file.groups.items():
        keys.setdefault(key.kernel, set()).add(key._replace(launch=None))
        pooled.setdefault(key.kernel, LaunchGroup()).merge(group)
    groups = {
        keys[kernel].pop() if len(keys[kernel]) == 1 else GroupKey(kernel, None, None): group
        for kernel, group in pooled.items()
    }
    return replace(file, groups=groups)


def _check_same_launches(first: FileContent, other: FileContent) -> None:
    for one, two in ((first, other), (other, first)):
        for key in one.groups:
            if key not in two.groups:
                raise InputError(
                    f"{two.source}: has no {key}, which {one.source} has; the passes must "
                    "be of the same launches"
                )
    for key, group in first.groups.items():
        if group.launches != other.groups[key].launches:
            raise InputError(
                f"{other.source}: has {other.groups[key].launches} launches of {key}, "
                f"{first.source} has {group.launches}; the passes must be of the same launches"
            )


def _renumbered(trace: FileContent, counted: FileContent) -> FileContent:
    """A trace with its launches under the counters' numbers, paired in their order.

    A tool may count from 0 in one file and from 1 in the other.
    """
    groups: dict[GroupKey, LaunchGroup] = {}
    counted_launches = _by_geometry(counted)
    for geometry, launches in _by_geometry(trace).items():
        numbered = counted_launches.get(geometry, launches)
        if len(numbered) != len(launches):
            raise InputError(
                f"{trace.source}: has {len(launches)} launches of {geometry}, "
                f"{counted.source} has {len(numbered)}; which is which cannot be told; leave out "
                "--each"
            )
        groups |= {key: trace.groups[own] for key, own in zip(numbered, launches, strict=True)}
    return replace(trace, groups=groups)


def _by_geometry(file: FileContent) -> dict[GroupKey, list[GroupKey]]:
    """The launches of each kernel and geometry, in the order of their numbers."""
    launches: dict[GroupKey, list[GroupKey]] = {}
    for key in sorted(
        file.groups, key=lambda key: [number.zfill(18) for number in str(key.launch).split(":")]
    ):
        launches.setdefault(key._replace(launch=None), []).append(key)
    return launches


def _record(key: GroupKey, counting: list[FileContent], timing: list[FileContent]) -> KernelRecord:
    source = (counting or timing)[0].source
    counters, cycles = _counters(source, key, counting)
    traced = [_traced(file, key) for file in timing]
    groups = [group for _, group in traced] or [file.groups[key] for file in counting]
    times_s = [group.time_s for group in groups if group.time_s is not None]
    if not times_s:
        raise InputError(
            f"{source}: says no time of {key}; give the trace of the same program as a "
            "further file, or for ncu one with --section SpeedOfLight (docs/profiling.md)"
        )
    counted = counting[0].groups[key].launches if counting else 0
    if traced and counted and any(group.launches != counted for group in groups):
        warnings.warn(
            f"{timing[0].source}: {groups[0].launches} launches of {key} were timed, "
            f"{counted} counted; each is averaged over its own",
            DataWarning,
            stacklevel=2,
        )
    _check_not_zero(source, key, counters)
    geometry = traced[0][0] if traced and key.workgroups is None else key
    return KernelRecord(
        kernel=key.kernel,
        workgroups=geometry.workgroups,
        workgroup_size=geometry.workgroup_size,
        launches=groups[0].launches,
        time_s=statistics.median(times_s),
        is_traced=bool(traced),
        counters=counters,
        cycles=cycles,
    )


def _counters(
    source: str, key: GroupKey, counting: list[FileContent]
) -> tuple[dict[str, float], dict[str, float]]:
    """The mean of each counter over the passes, and the cycles of its pass. Raises InputError."""
    values: dict[str, list[float]] = {}
    cycles: dict[str, float] = {}
    for file in counting:
        means = file.groups[key].means()
        for name, mean in means.items():
            values.setdefault(name, []).append(mean)
            if "GRBM_GUI_ACTIVE" in means:
                cycles[name] = means["GRBM_GUI_ACTIVE"]
    for name in _SAME_IN_EVERY_PASS:
        waves = values.get(name, [0.0])
        if max(waves) > (1 + _AGREEMENT) * min(waves):
            raise InputError(
                f"{source}: {key}: {name} is {min(waves):g} in one pass and {max(waves):g} in "
                "another; the passes must be of the same launches"
            )
    return {name: math.fsum(means) / len(means) for name, means in values.items()}, cycles


def _check_not_zero(source: str, key: GroupKey, counters: dict[str, float]) -> None:
    """Zeros everywhere are a known failure of profilers, and no data. Raises InputError."""
    for waves in _SAME_IN_EVERY_PASS:
        if counters.get(waves) == 0:
            raise InputError(f"{source}: {key}: {waves} is 0, which is a failure of the profiler")
    counts = [value for name, value in counters.items() if not _NOT_COUNTED.match(name)]
    if counts and not any(counts):
        raise InputError(
            f"{source}: {key}: every counter is 0, which is a failure of the profiler; profile "
            "it again"
        )


def _traced(trace: FileContent, key: GroupKey) -> tuple[GroupKey, LaunchGroup]:
    """What a trace says of a kernel, by its name alone where a geometry is not known.

    Raises InputError where the trace says nothing of it.
    """
    match = key if key in trace.groups else None
    if match is None:
        by_name = (other for other in trace.groups if other.kernel == key.kernel)
        match = next((o for o in by_name if key.lacks_geometry or o.lacks_geometry), None)
    if match is None or trace.groups[match].time_s is None:
        raise InputError(
            f"{trace.source}: has no time of {key}; is it of another run, or were names truncated?"
        )
    return match, trace.groups[match]
