"""Several files of one run joined: passes of counters, and traces for times and launches."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
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
    if not counting and not timing:
        raise InputError(
            f"{runs[0].source}: describes a machine, not kernels; give it beside the file of the "
            "counters or the trace"
        )
    if counting and timing and any(key.launch for key in counting[0].groups):
        raise InputError(
            f"{timing[0].source}: its launches cannot be matched with those of {counting[0].source}; "
            "leave out --each, or this file"
        )
    files, geometries = _without_unknown_geometries(_under_common_names(counting, timing))
    counts = _counts_of_same_launches(counting, files[: len(counting)])
    traces = files[len(counting) :]
    for run, groups in zip(timing, traces, strict=True):
        if counts and not counts[0].keys() & groups.keys():
            raise InputError(
                f"{run.source}: has no kernel of {counting[0].source}, which has "
                f"{next(iter(counts[0]))} where this has {next(iter(groups))}; trace a run of the "
                "same inputs, and let both tools write names in full"
            )
    return _kernels([*counting, *timing][0].source, counts, traces, geometries, skip_untimed)


def _under_common_names(
    counting: Sequence[SummedFile], timing: Sequence[SummedFile]
) -> list[Groups]:
    """The groups of all files, those of traces under the names that the first file has."""
    files = [run.groups for run in counting]
    known = {key.kernel for groups in files for key in groups}
    for run in timing:
        names = common_names(known, {key.kernel for key in run.groups})
        files.append(
            _merged(
                (key._replace(kernel=names.get(key.kernel, key.kernel)), sums)
                for key, sums in run.groups.items()
            )
        )
        known |= {key.kernel for key in files[-1]}
    return files


def _merged(groups: Iterable[tuple[Key, LaunchSums]]) -> Groups:
    merged: Groups = {}
    for key, sums in groups:
        merged.setdefault(key, LaunchSums()).add(sums)
    return merged


def _without_unknown_geometries(files: Sequence[Groups]) -> tuple[list[Groups], dict[str, Key]]:
    """The files, with kernels of which one file does not say the geometry without any in all.

    And by such a kernel a key with the only geometry that the first file that says it has.
    """
    bare = {key.kernel for groups in files for key in groups if not key.geometry}
    geometries: dict[str, Key] = {}
    for groups in files:
        said: dict[str, set[Key]] = {}
        for key in groups:
            if key.kernel in bare:
                said.setdefault(key.kernel, set()).add(key._replace(launch=""))
        for kernel, (key, *others) in said.items():
            if key.geometry and not others:
                geometries.setdefault(kernel, key)
    merged = [
        _merged(
            (key._replace(workgroups=None, workgroup_size=None), sums)
            if key.kernel in bare
            else (key, sums)
            for key, sums in groups.items()
        )
        for groups in files
    ]
    return merged, geometries


def _counts_of_same_launches(passes: Sequence[SummedFile], files: Sequence[Groups]) -> list[Groups]:
    """The passes' groups, without counters of kernels that some have more or less often.

    Libraries that tune themselves launch others in a first run. Raises InputError where no kernel
    is left, and where long kernels take so unlike times that the passes did not do the same.
    """
    for run, groups in zip(passes[1:], files[1:], strict=True):
        _refuse_unlike_times(passes[0].source, files[0], run.source, groups)
    launches = {
        key: [groups[key].launches if key in groups else 0.0 for groups in files]
        for key in dict.fromkeys(key for groups in files for key in groups)
    }
    unlike = [key for key, n in launches.items() if max(n) - min(n) > _UNLIKE * max(n)]
    programs = [key for key in unlike if not key.kernel.startswith(_OF_THE_RUNTIME)]
    if not programs:
        return list(files)
    off = [
        sum(abs(launches[key][n] - launches[key][0]) for key in programs) for n in range(len(files))
    ]
    source = passes[off.index(max(off))].source
    told = f"{source}: other launches than in the other passes: {listed([*map(str, programs)])}"
    if set(files[0]) <= set(unlike):
        raise InputError(f"{told}; the passes must be of the same launches")
    warn("T06", f"{told}, as where a library tunes itself in a first run: without counters here")
    return [
        {
            key: replace(sums, totals={}, counts={}) if key in programs else sums
            for key, sums in groups.items()
        }
        for groups in files
    ]


def _refuse_unlike_times(source: str, groups: Groups, other: str, others: Groups) -> None:
    """Raise InputError where the long kernels of two passes take so unlike times."""
    pairs_s = [
        (sums.time_s or 0.0, others[key].time_s or 0.0)
        for key, sums in groups.items()
        if key in others and not key.kernel.startswith(_OF_THE_RUNTIME)
    ]
    long_s = [pair for pair in pairs_s if min(pair) > 0 and max(pair) > LONG_S]
    first_s, other_s = (math.fsum(pair[i] for pair in long_s) for i in (0, 1))
    if max(first_s, other_s) > _SAME_WORK * min(first_s, other_s):
        raise InputError(
            f"{other}: its kernels take {other_s / first_s:.2g} times as long as in {source}; the "
            "passes must be of the same launches at the same clocks; of two runs ask about each "
            "alone"
        )


def _kernels(
    source: str, counts: Sequence[Groups], traces: Sequence[Groups],
    geometries: Mapping[str, Key], skip_untimed: bool,
) -> list[Kernel]:  # fmt: skip
    """A value for each kernel of the run. Raises InputError where one has no time."""
    keys = dict.fromkeys(key for groups in (*counts[:1], *traces) for key in groups)
    if traces:
        traced = {key for groups in traces for key in groups}
        if untraced := [str(key) for key in keys if key not in traced]:
            warn(
                "T09",
                f"{source}: not in the trace with that grid and block, so not of its run and left "
                f"out: {listed(untraced)}",
            )
        keys = {key: None for key in keys if key in traced}
    kernels = {key: _kernel(key, geometries.get(key.kernel, key), counts, traces) for key in keys}
    untimed = [str(key) for key, kernel in kernels.items() if kernel is None]
    timed = [kernel for kernel in kernels.values() if kernel is not None]
    if untimed and not (timed and skip_untimed):
        skip = "; or leave such kernels out with --skip-untimed" if timed else ""
        raise InputError(
            f"{source}: has no times for {listed(untimed)}; give the trace of the same program "
            f"too, or profile with ncu --section SpeedOfLight{skip}"
        )
    if untimed:
        warn("T09", f"{source}: has no times for {listed(untimed)}; left out")
    return timed


def _kernel(
    key: Key, geometry: Key, counts: Sequence[Groups], traces: Sequence[Groups]
) -> Kernel | None:
    """A kernel over all files; None where no file says its time."""
    in_counts = [groups[key] for groups in counts if key in groups]
    in_traces = [groups[key] for groups in traces if key in groups and groups[key].time_s]
    times_s = [sums.time_s for sums in in_counts if sums.time_s]
    counted_time_s = statistics.median(times_s) if times_s else None
    if in_traces:
        all_launches = math.fsum(sums.launches for sums in in_traces)
        total_s = math.fsum(sums.launches * (sums.time_s or 0.0) for sums in in_traces)
        launches, time_s = all_launches / len(traces), total_s / all_launches
    elif counted_time_s:
        launches, time_s = in_counts[0].launches, counted_time_s
    else:
        return None
    values: dict[str, list[float]] = {}
    cycles: dict[str, float] = {}
    for sums in in_counts:
        means = sums.means()
        for name, mean in means.items():
            values.setdefault(name, []).append(mean)
            if CYCLES in means:
                cycles[name] = means[CYCLES]
    counters = {name: math.fsum(means) / len(means) for name, means in values.items()}
    return Kernel(
        key.kernel, geometry.workgroups, geometry.workgroup_size, launches, time_s,
        bool(in_traces), counted_time_s, counters, cycles,
    )  # fmt: skip
