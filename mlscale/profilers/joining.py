"""Several files of one run joined: passes of counters, and a trace for the time."""

import math
import re
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mlscale.errors import InputError, warn
from mlscale.profilers.launches import FileContent, GroupKey, LaunchGroup, some_of
from mlscale.profilers.mapping import CYCLES, Share, TableFeature
from mlscale.profilers.names import hint_of_mangled, is_mangled, same_kernels
from mlscale.profilers.passes import of_the_same_launches
from mlscale.text import counted, listed

_AGREEMENT = 0.01
_SAME_INPUTS = "profile the launches that the trace has, by a run of the same inputs"
_SAME_IN_EVERY_PASS = ("SQ_WAVES", "Wavefronts")
# Known of a launch without counting, or by the clock: they stand even where counting failed.
_NOT_COUNTED = re.compile(
    r"(launch|device)__|(sm|dram)__cycles_elapsed|sm__maximum_warps|KernelOccupancy$|Wavefronts$"
)


@dataclass(frozen=True)
class KernelRecord:
    """One kernel with one geometry (or one launch of it), over all files.

    launches: how many it stands for, by the trace where there is one, since counter passes see
    only some; time_s: their mean; is_traced: whether a trace says both; counted_time_s: a launch's
    time in the counters' own passes, None where they do not say it; cycles: GRBM_GUI_ACTIVE by the
    counter of its pass; features and shares: what the tool's mapping makes of the counters, none
    before the run's configuration is known.
    """

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launches: float
    time_s: float
    is_traced: bool
    counted_time_s: float | None
    counters: dict[str, float]
    cycles: dict[str, float]
    features: dict[str, TableFeature] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)


def join(files: list[FileContent], skip_untimed: bool = False) -> list[KernelRecord]:
    """Join the files by kernel and geometry, or by launch.

    Names are matched over tools (names.same_kernels). Kernels that only a trace has are records
    without counters; those that a trace has not are no part of its run, and are left out with a
    warning. skip_untimed: kernels without any time are left out. Raises InputError on a mismatch.
    """
    machines = [file for file in files if not file.groups]
    files = [file for file in files if file.groups]
    if not files:
        raise InputError(
            f"{machines[0].source}: tells of a machine, not of kernels; give it beside the file of "
            "the counters or the trace (pmc_perf.csv, …_counter_collection.csv, …_kernel_trace.csv)"
        )
    counting = [file for file in files if file.has_counters]
    timing = [file for file in files if not file.has_counters]
    for alike in (counting, timing):
        if len(gpus := sorted({file.gpu for file in alike if file.gpu})) > 1:
            own = ", ".join(gpus)
            warn(f"{alike[0].source}: its files are of GPUs {own}, and are taken for one")
    counting, timing = _under_common_names(counting, timing)
    files = [*counting, *timing]
    bare = {key.kernel for file in files for key in file.groups if key.lacks_geometry}
    geometries = _geometries(files, bare)
    counting = [_without_geometry(file, bare) for file in counting]
    timing = [_without_geometry(file, bare) for file in timing]
    counting = of_the_same_launches(counting)
    is_each = counting and all(key.launch is not None for key in counting[0].groups)
    if is_each:
        timing = [_renumbered(file, counting[0]) for file in timing]
    _check_that_some_join(counting, timing)
    return _records(counting, timing, geometries, skip_untimed)


def _under_common_names(
    counting: list[FileContent], timing: list[FileContent]
) -> tuple[list[FileContent], list[FileContent]]:
    """The files with one name for each kernel, that of the file with counters if it tells more."""
    timing = list(timing)
    pooled: list[GroupKey] = []
    demangled: list[GroupKey] = []
    for position, file in enumerate(timing):
        before = [*counting, *timing[:position]]
        names, common = {key.kernel: None for other in before for key in other.groups}, {}
        theirs = {key.kernel: None for key in file.groups}
        for same in same_kernels(names, theirs):
            name, other = same.counted[0], same.traced[0]
            if len(same.counted) > 1 or (is_mangled(name) and not is_mangled(other)):
                name, other = other, name
            if is_mangled(other) and not is_mangled(name):
                demangled.append(GroupKey(name, None, None))
            common.update(dict.fromkeys((*same.counted, *same.traced), name))
            if len(same.counted) + len(same.traced) > 2:
                pooled.append(GroupKey(name, None, None))
        counting = [_renamed(other, common) for other in counting]
        timing[: position + 1] = [_renamed(other, common) for other in timing[: position + 1]]
    if demangled:
        warn(
            f"{timing[0].source}: names are mangled in one file: {some_of(demangled)} joined by "
            "the name of the function alone"
        )
    if pooled:
        warn(
            f"{timing[0].source}: variants of {some_of(pooled)} are one kernel here, the mean over "
            "their launches, since a file names them alike"
        )
    return counting, timing


def _renamed(file: FileContent, names: Mapping[str, str]) -> FileContent:
    """The file under other names."""
    return _regrouped(file, lambda key: key._replace(kernel=names.get(key.kernel, key.kernel)))


def _without_geometry(file: FileContent, kernels: Collection[str]) -> FileContent:
    """The groups of the kernels without theirs, since some file does not say it."""
    return _regrouped(
        file,
        lambda key: (
            key._replace(workgroups=None, workgroup_size=None) if key.kernel in kernels else key
        ),
    )


def _regrouped(file: FileContent, new_key: Callable[[GroupKey], GroupKey]) -> FileContent:
    """The file with its groups under other keys; what has one key then is pooled."""
    groups: dict[GroupKey, LaunchGroup] = {}
    for key, group in file.groups.items():
        groups.setdefault(new_key(key), LaunchGroup()).merge(group)
    return replace(file, groups=groups)


def _geometries(files: list[FileContent], kernels: Collection[str]) -> dict[str, GroupKey]:
    """Those of the kernels that some file says to have but one grid and block, with these."""
    geometries: dict[str, GroupKey] = {}
    for file in files:
        keys: dict[str, set[GroupKey]] = {}
        for key in file.groups:
            if key.kernel in kernels:
                keys.setdefault(key.kernel, set()).add(key._replace(launch=None))
        for kernel, (key, *further) in keys.items():
            if not further and not key.lacks_geometry:
                geometries.setdefault(kernel, key)
    return geometries


def _renumbered(trace: FileContent, counts: FileContent) -> FileContent:
    """A trace with its launches under the counters' numbers, paired in their order.

    A tool may count from 0 in one file and from 1 in the other.
    """
    groups: dict[GroupKey, LaunchGroup] = {}
    counted_launches = _by_geometry(counts)
    for geometry, launches in _by_geometry(trace).items():
        numbered = counted_launches.get(geometry, launches)
        if len(numbered) != len(launches):
            raise InputError(
                f"{trace.source}: has {counted(len(launches), 'launch')} of {geometry}, "
                f"{counts.source} has {len(numbered)}; which is which cannot be told; leave out "
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


def _check_that_some_join(counting: list[FileContent], timing: list[FileContent]) -> None:
    for file in timing:
        if counting and not counting[0].groups.keys() & file.groups.keys():
            if elsewhere := _at_other_geometries(counting[0].groups, file.groups):
                raise InputError(
                    f"{file.source}: has no kernel at the grid and block at which it was counted "
                    f"in {counting[0].source}: {listed(elsewhere)}; {_SAME_INPUTS}"
                )
            raise InputError(
                f"{file.source}: has no kernel of {counting[0].source}, which has "
                f"{next(iter(counting[0].groups))} where this has {next(iter(file.groups))}; is it "
                "of another run, or were names shortened?"
                f"{hint_of_mangled(key.kernel for key in (*counting[0].groups, *file.groups))}"
            )


def _at_other_geometries(counted_keys: Iterable[GroupKey], traced: Iterable[GroupKey]) -> list[str]:
    """In words the counted groups whose kernels were traced otherwise, with a grid and block."""
    in_trace: dict[str, dict[str, None]] = {}
    for key in traced:
        in_trace.setdefault(key.kernel, {})[key.geometry] = None
    texts: dict[str, None] = {}
    for key in counted_keys:
        if others := in_trace.get(key.kernel):
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            texts[f"{key._replace(launch=None)}, traced at {next(iter(others))}{more}"] = None
    return list(texts)


def _records(
    counting: list[FileContent],
    timing: list[FileContent],
    geometries: Mapping[str, GroupKey],
    skip_untimed: bool,
) -> list[KernelRecord]:
    """A record for each kernel of the run. Raises InputError where one has no time."""
    keys = dict.fromkeys(key for file in (*counting[:1], *timing) for key in file.groups)
    traced = {key for file in timing for key in file.groups}
    of_run = [key for key in keys if not timing or key in traced]
    by_key = {
        key: _record(key, geometries.get(key.kernel, key), counting, timing) for key in of_run
    }
    records = {key: record for key, record in by_key.items() if record is not None}
    untimed = [key for key in of_run if key not in records]
    if untimed:
        _refuse_or_warn_of_untimed(
            (counting or timing)[0].source, untimed, bool(records), skip_untimed
        )
    if untraced := [key for key in keys if timing and key not in traced]:
        _warn_of_untraced(counting[0], untraced, timing)
    counts = counting[0].groups if counting else {}
    if less_timed := [
        key
        for key, record in records.items()
        if record.is_traced and key in counts and record.launches < counts[key].launches
    ]:
        warn(
            f"{timing[0].source}: fewer launches were timed than counted of "
            f"{some_of(less_timed)}; is it of a shorter run? Counters and times are averaged over "
            "their own launches"
        )
    return list(records.values())


def _record(
    key: GroupKey, geometry: GroupKey, counting: list[FileContent], timing: list[FileContent]
) -> KernelRecord | None:
    """A kernel over all files; None where no file says its time. Raises InputError."""
    counts = [file.groups[key] for file in counting if key in file.groups]
    traces = [group for file in timing if (group := file.groups.get(key)) and group.time_s]
    times_s = [group.time_s for group in counts if group.time_s]
    counted_time_s = statistics.median(times_s) if times_s else None
    if traces:
        launches = statistics.fmean(group.launches for group in traces)
        time_s = _mean_time_s(traces)
    elif counted_time_s:
        launches, time_s = float(counts[0].launches), counted_time_s
    else:
        return None
    counters, cycles = _counters(counting, key) if counts else ({}, {})
    return KernelRecord(
        kernel=key.kernel,
        workgroups=geometry.workgroups,
        workgroup_size=geometry.workgroup_size,
        launches=launches,
        time_s=time_s,
        is_traced=bool(traces),
        counted_time_s=counted_time_s,
        counters=counters,
        cycles=cycles,
    )


def _warn_of_untraced(
    counts: FileContent, untraced: list[GroupKey], timing: list[FileContent]
) -> None:
    """Warn of what was counted and not traced; apart, where its kernel is traced uncounted."""
    uncounted = [key for file in timing for key in file.groups if key not in counts.groups]
    if elsewhere := _at_other_geometries(untraced, uncounted):
        warn(
            f"{counts.source}: counted at another grid or block than the traced launches, so these "
            f"counters are left out: {listed(elsewhere)}; {_SAME_INPUTS}"
        )
    names = {key.kernel for key in uncounted}
    if others := [key for key in untraced if key.kernel not in names]:
        warn(
            f"{counts.source}: not in the trace, so not of its run and left out: "
            f"{listed([*map(str, others)])}{hint_of_mangled(key.kernel for key in others)}"
        )


def _mean_time_s(traces: list[LaunchGroup]) -> float:
    """The mean over all launches of several traces [s]."""
    total_s = math.fsum(group.launches * (group.time_s or 0.0) for group in traces)
    return total_s / sum(group.launches for group in traces)


def _refuse_or_warn_of_untimed(
    source: str, untimed: list[GroupKey], are_others_timed: bool, skip_untimed: bool
) -> None:
    text = f"{source}: says no time of {some_of(untimed)}"
    if not are_others_timed or not skip_untimed:
        skip = "; or leave such kernels out with --skip-untimed" if are_others_timed else ""
        raise InputError(
            f"{text}; give the trace of the same program as a further file, or for ncu one with "
            f"--section SpeedOfLight (docs/profiling.md){skip}"
        )
    warn(f"{text}; left out")


def _counters(
    counting: list[FileContent], key: GroupKey
) -> tuple[dict[str, float], dict[str, float]]:
    """The mean of each counter over the passes, and the cycles of its pass. Raises InputError."""
    source = counting[0].source
    values: dict[str, list[float]] = {}
    cycles: dict[str, float] = {}
    for group in (file.groups[key] for file in counting if key in file.groups):
        means = group.means()
        for name, mean in means.items():
            values.setdefault(name, []).append(mean)
            if CYCLES in means:
                cycles[name] = means[CYCLES]
    for name in _SAME_IN_EVERY_PASS:
        waves = values.get(name, [0.0])
        if max(waves) > (1 + _AGREEMENT) * min(waves):
            raise InputError(
                f"{source}: {key}: {name} is {min(waves):g} in one pass and {max(waves):g} in "
                "another; the passes must be of the same launches"
            )
    counters = {name: math.fsum(means) / len(means) for name, means in values.items()}
    _check_not_zero(source, key, counters)
    return counters, cycles


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
