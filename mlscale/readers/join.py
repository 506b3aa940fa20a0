"""Several files of one run joined: passes of counters, and traces for times and launches."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mlscale.errors import InputError, warn
from mlscale.readers.launches import Key, LaunchSums, SummedFile
from mlscale.readers.mapping import CYCLES
from mlscale.readers.names import common_names
from mlscale.text import listed

LONG_S = 5e-5  # of a launch, from which on flushed caches and the like hardly matter
_UNLIKE = 0.1  # of launches that a kernel has more or fewer in another pass
_SAME_WORK = 1.5  # between the times of two passes of the same launches
_OF_THE_RUNTIME = "__amd_rocclr_"  # how ROCm's copies and fills begin, which differ run by run
Groups = dict[Key, LaunchSums]


@dataclass(frozen=True)
class Kernel:
    """One kernel with one geometry (or one launch of it), over all files.

    Attributes:
        name: as the file with its counters has it.
        workgroups, workgroup_size: None where no file says them.
        launches: how many it stands for, by the trace where there is one; the mean of several.
        time_s: their mean.
        is_traced: whether a trace says both.
        counted_time_s: a launch's time while it was counted; None where that is not said.
        counters: means by the tool's names.
        cycles: GRBM_GUI_ACTIVE by the counter of its pass.
    """

    name: str
    workgroups: float | None
    workgroup_size: float | None
    launches: float
    time_s: float
    is_traced: bool
    counted_time_s: float | None
    counters: dict[str, float]
    cycles: dict[str, float]

    @property
    def run_s(self) -> float:
        """The time of all its launches [s]."""
        return self.launches * self.time_s


def join(runs: Sequence[SummedFile], skip_untimed: bool = False) -> list[Kernel]:
    """Join files by kernel and geometry, or by launch.

    Kernels that only a trace has are without counters; those that a trace has not are no part of
    its run, and are left out with a warning. skip_untimed: kernels without any time are left out.
    Raises InputError on files of unlike runs, and on kernels without a time.
    """
    counting = [run for run in runs if run.has_counters]
    timing = [run for run in runs if run.groups and not run.has_counters]
    files = [*counting, *timing]
    if not files:
        raise InputError(
            f"{runs[0].source}: tells of a machine, not of kernels; give it beside the file of the "
            "counters or the trace"
        )
    counted = {key.kernel for run in counting for key in run.groups}
    if counting and timing and any(key.launch for key in counting[0].groups):
        raise InputError(
            f"{timing[0].source}: which launch here is which in {counting[0].source} cannot be "
            "told; leave out --each, or this file"
        )
    renamed, known = [run.groups for run in counting], counted
    for run in timing:
        names = common_names(known, {key.kernel for key in run.groups})
        renamed.append(_regrouped(run.groups, names))
        known = known | {key.kernel for key in renamed[-1]}
    bare = {key.kernel for groups in renamed for key in groups if not key.geometry}
    geometries = _only_geometries(renamed, bare)
    regrouped = [_regrouped(groups, {}, bare) for groups in renamed] if bare else renamed
    counts = _of_the_same_launches(counting, regrouped[: len(counting)])
    traces = regrouped[len(counting) :]
    for run, groups in zip(timing, traces, strict=True):
        if counts and not counts[0].keys() & groups.keys():
            raise InputError(
                f"{run.source}: has no kernel of {counting[0].source}, which has "
                f"{next(iter(counts[0]))} where this has {next(iter(groups))}; trace a run of the "
                "same inputs, and let both tools write names in full"
            )
    return _kernels(files, counts, traces, geometries, skip_untimed)


def _regrouped(groups: Groups, names: Mapping[str, str], bare: Collection[str] = ()) -> Groups:
    """Groups under other names, of the kernels in `bare` without geometry; alike ones are one."""
    new: Groups = {}
    for key, sums in groups.items():
        kernel = names.get(key.kernel, key.kernel)
        none = kernel in bare
        sizes = (None, None) if none else (key.workgroups, key.workgroup_size)
        new.setdefault(Key(kernel, *sizes, key.launch), LaunchSums()).add(sums)
    return new


def _only_geometries(files: Sequence[Groups], kernels: Collection[str]) -> dict[str, Key]:
    """A group of each of those kernels that some file says to have one grid and block alone."""
    geometries: dict[str, Key] = {}
    for groups in files:
        keys: dict[str, set[Key]] = {}
        for key in groups:
            if key.kernel in kernels:
                keys.setdefault(key.kernel, set()).add(key._replace(launch=""))
        only = {kernel: of.pop() for kernel, of in keys.items() if len(of) == 1}
        geometries = {kernel: key for kernel, key in only.items() if key.geometry} | geometries
    return geometries


def _of_the_same_launches(passes: Sequence[SummedFile], files: Sequence[Groups]) -> list[Groups]:
    """The passes' groups, without counters of kernels that some have more or less often.

    Libraries that tune themselves launch others in a first run. Raises InputError where no kernel
    is left, and where long kernels take so unlike times that the passes did not do the same.
    """
    for run, groups in zip(passes[1:], files[1:], strict=True):
        pairs_s = [
            (sums.time_s, groups[key].time_s or 0.0)
            for key, sums in files[0].items()
            if sums.time_s and key in groups and not key.kernel.startswith(_OF_THE_RUNTIME)
        ]
        long_s = [pair for pair in pairs_s if min(pair) > 0 and max(pair) > LONG_S]
        first_s, other_s = (math.fsum(pair[i] for pair in long_s) for i in (0, 1))
        if max(first_s, other_s) > _SAME_WORK * min(first_s, other_s):
            raise InputError(
                f"{run.source}: its kernels take {other_s / first_s:.2g} times as long as in "
                f"{passes[0].source}; the passes must be of the same launches at the same clocks; "
                "of two runs ask about each alone"
            )
    unlike: dict[Key, None] = {}
    for key in dict.fromkeys(key for groups in files for key in groups):
        launches = [_launches(groups, key) for groups in files]
        if max(launches) - min(launches) > _UNLIKE * max(launches):
            unlike[key] = None
    own = [key for key in unlike if not key.kernel.startswith(_OF_THE_RUNTIME)]
    if not own:
        return list(files)
    names = listed([*map(str, own)])
    differences = [
        sum(abs(_launches(groups, key) - _launches(files[0], key)) for key in own)
        for groups in files
    ]
    source = passes[differences.index(max(differences))].source
    told = f"{source}: other launches than in the other passes: {names}"
    if all(key in unlike for key in files[0]):
        raise InputError(f"{told}; the passes must be of the same launches")
    warn(f"{told}, as where a library tunes itself in a first run: without counters here")
    return [
        {
            key: replace(sums, totals={}, counts={}) if key in own else sums
            for key, sums in groups.items()
        }
        for groups in files
    ]


def _launches(groups: Groups, key: Key) -> float:
    return groups[key].launches if key in groups else 0.0


def _kernels(
    files: Sequence[SummedFile], counts: Sequence[Groups], traces: Sequence[Groups],
    geometries: Mapping[str, Key], skip_untimed: bool,
) -> list[Kernel]:  # fmt: skip
    """A value for each kernel of the run. Raises InputError where one has no time."""
    keys = dict.fromkeys(key for groups in (*counts[:1], *traces) for key in groups)
    traced = {key for groups in traces for key in groups}
    if untraced := [str(key) for key in keys if traces and key not in traced]:
        warn(
            f"{files[0].source}: not in the trace with that grid and block, so not of its run and "
            f"left out: {listed(untraced)}"
        )
    of_run = [key for key in keys if not traces or key in traced]
    kernels = {key: _kernel(key, geometries.get(key.kernel, key), counts, traces) for key in of_run}
    untimed = [str(key) for key, kernel in kernels.items() if kernel is None]
    timed = [kernel for kernel in kernels.values() if kernel is not None]
    if untimed and not (timed and skip_untimed):
        skip = "; or leave such kernels out with --skip-untimed" if timed else ""
        raise InputError(
            f"{files[0].source}: says no time of {listed(untimed)}; give the trace of the same "
            "program as a further file, or for ncu one with --section SpeedOfLight "
            f"(docs/profiling.md){skip}"
        )
    if untimed:
        warn(f"{files[0].source}: says no time of {listed(untimed)}; left out")
    return timed


def _kernel(
    key: Key, geometry: Key, counts: Sequence[Groups], traces: Sequence[Groups]
) -> Kernel | None:
    """A kernel over all files; None where no file says its time."""
    of_counts = [groups[key] for groups in counts if key in groups]
    of_traces = [groups[key] for groups in traces if key in groups and groups[key].time_s]
    times_s = [sums.time_s for sums in of_counts if sums.time_s]
    counted_time_s = statistics.median(times_s) if times_s else None
    if of_traces:
        all_launches = math.fsum(sums.launches for sums in of_traces)
        total_s = math.fsum(sums.launches * (sums.time_s or 0.0) for sums in of_traces)
        launches, time_s = all_launches / len(traces), total_s / all_launches
    elif counted_time_s:
        launches, time_s = of_counts[0].launches, counted_time_s
    else:
        return None
    values: dict[str, list[float]] = {}
    cycles: dict[str, float] = {}
    for sums in of_counts:
        means = sums.means()
        for name, mean in means.items():
            values.setdefault(name, []).append(mean)
            if CYCLES in means:
                cycles[name] = means[CYCLES]
    counters = {name: math.fsum(means) / len(means) for name, means in values.items()}
    return Kernel(
        key.kernel, geometry.workgroups, geometry.workgroup_size, launches, time_s,
        bool(of_traces), counted_time_s, counters, cycles,
    )  # fmt: skip
