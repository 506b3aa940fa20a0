"""Several files of one run joined: passes of counters, and traces for times and launches.

A kernel's name differs by tool: one prints `void f<(int)4>(float *)`, others `void f<4>(float*)` or
`f`. Names that a tool cut off or that are mangled are of no other tool's kernel.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mlscale.errors import InputError, warn
from mlscale.parameters import command, parameter
from mlscale.readers.launches import Key, LaunchSums, SummedFile
from mlscale.readers.mapping import CYCLES
from mlscale.text import listed

LONG_S = 5e-5  # from this time of a launch on flushed caches and the like hardly matter
_UNLIKE = 0.1  # share of a kernel's launches by which passes may differ
_SAME_WORK = 1.5  # between the times of two passes of the same launches
_OF_THE_RUNTIME = "__amd_rocclr_"  # how ROCm's copies and fills begin, which differ run by run
Groups = dict[Key, LaunchSums]


@dataclass(frozen=True)
class Kernel:
    """One kernel with one geometry (or one launch of it), over all files.

    Attributes:
        name: as in the file with its counters.
        workgroups, workgroup_size: None if no file has them.
        launches: how many there were, by the trace if there is one; the mean of several.
        time_s: their mean.
        is_traced: whether a trace has both.
        counted_time_s: a launch's time while it was counted; None if unknown.
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

    Kernels found only in a trace have no counters; those missing from a trace are from another
    run, and are left out with a warning. skip_untimed: kernels without any time are left out.
    Raises InputError on files of different runs, and on kernels without a time.
    """
    counting = [run for run in runs if run.has_counters]
    timing = [run for run in runs if run.groups and not run.has_counters]
    if not counting and not timing:
        raise InputError(
            f"{runs[0].source}: describes a machine, not kernels; give it together with the "
            "counters or the trace"
        )
    if counting and timing and any(key.launch for key in counting[0].groups):
        raise InputError(
            f"{timing[0].source}: its launches cannot be matched with those of "
            f"{counting[0].source}; omit {parameter('each')}, or this file"
        )
    files, geometries = _without_unknown_geometries(_under_common_names(counting, timing))
    counts = _counts_of_same_launches(counting, files[: len(counting)])
    traces = files[len(counting) :]
    for run, groups in zip(timing, traces, strict=True):
        if counts and not counts[0].keys() & groups.keys():
            raise InputError(
                f"{run.source}: has no kernel of {counting[0].source}, which has "
                f"{next(iter(counts[0]))} where this has {next(iter(groups))}; trace a run with "
                "the same inputs, and have both tools write full names"
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

    Files of which no two have a function in common are parts of one run. Libraries that tune
    themselves launch others in a first run. Raises InputError where no kernel is left, and where
    long kernels take so unlike times that the passes did not do the same.
    """
    functions = [name for groups in files for name in {bare(key.kernel) for key in groups}]
    if len(files) > 1 and len(set(functions)) == len(functions):
        return [{key: sums for groups in files for key, sums in groups.items()}]
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
    told = (
        f"{source}: launches differ from those of the other passes: {listed([*map(str, programs)])}"
    )
    if set(files[0]) <= set(unlike):
        append = command("import FILE", "append", output="TABLE")
        raise InputError(
            f"{told}; passes must cover the same launches; for different kernels make one table, "
            f"{append} for each"
        )
    warn("T06", f"{told}, as if a library tuned itself in its first run: without counters here")
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
            "passes must cover the same launches at the same clocks; if these are two runs, ask "
            "about each separately"
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
                f"{source}: not in the trace with that grid and block, so from another run and "
                f"left out: {listed(untraced)}",
            )
        keys = {key: None for key in keys if key in traced}
    kernels = {key: _kernel(key, geometries.get(key.kernel, key), counts, traces) for key in keys}
    untimed = [str(key) for key, kernel in kernels.items() if kernel is None]
    timed = [kernel for kernel in kernels.values() if kernel is not None]
    if untimed and not (timed and skip_untimed):
        skip = f"; or leave such kernels out with {parameter('skip_untimed')}" if timed else ""
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
    times_s, middle = sorted(times_s), len(times_s) // 2
    counted_time_s = (times_s[middle] + times_s[~middle]) / 2 if times_s else None
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


_TRAILING = re.compile(r"(?:\s\[\d+\]|\s\[clone [^\]]*\]|\s\(\.kd\)|\.kd)+$")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|^unnamed>")
_RETURNED = re.compile(r"^std::enable_if<.*?>::type |\bvoid (?=[A-Za-z_{])")
_CONST = re.compile(r"\bconst\b")  # one tool writes it before the type, another behind it
_CAST = re.compile(r"\([A-Za-z_][\w:\s]*\)(?=-?\d)")  # (int)4, (bool)1, (at::Kind)0
_SUFFIX = re.compile(r"\b(\d+)u?l{0,2}\b", re.IGNORECASE)  # 4ul
_LAMBDA = re.compile(r"\[lambda(.*?)\(instance(\d+)\)\]")
_OPEN, _CLOSE = "(<[{", ")>]}"


def plain(name: str) -> str:
    """A name without what each tool writes in its own way: return type, blanks, casts, suffixes.

    Example:
        plain("void (anonymous namespace)::f<(int)4>(int *)") == plain("<unnamed>::f<4>(int*)")
    """
    text = _ANONYMOUS.sub("{anonymous}", _TRAILING.sub("", name.strip()))
    text = _CONST.sub("", _RETURNED.sub("", text))
    text = _SUFFIX.sub(r"\1", _CAST.sub("", text.replace("->", "{to}")))
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    text = "".join(text.split()).replace("operator()", "operator{call}")
    return _LAMBDA.sub(r"{lambda\1#\2}", text)


def without_arguments(name: str) -> str:
    """A plain name up to its last list of arguments, which tools write with other types."""
    text = plain(name)
    return text[: _last_bracket(text)] if text.endswith(")") else text


def unscoped(name: str) -> str:
    """The function and its templates, without scope and arguments."""
    text, depth, begin = without_arguments(name), 0, 0
    for position, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == ":" and not depth:
            begin = position + 1
    return text[begin:]


def bare(name: str) -> str:
    """Only the function: without scope, templates and arguments."""
    text = unscoped(name)
    return text[: _last_bracket(text)] if text.endswith(">") else text


def _last_bracket(text: str) -> int | None:
    """Where the bracket opens that the last character closes; None where none does."""
    depth = 0
    for position in range(len(text) - 1, 0, -1):
        depth += (text[position] in _CLOSE) - (text[position] in _OPEN)
        if not depth:
            return position
    return None


def common_names(counted: Collection[str], traced: Collection[str]) -> dict[str, str]:
    """Names of a trace by which kernel with counters each is of; one that is of none is left out.

    The plain name counts first, then that without arguments, then what one side alone tells: the
    function with its templates, or without; each where it has one kernel on either side.
    """
    same: dict[str, str] = {}
    ours, theirs = set(counted), set(traced)
    for form in (plain, without_arguments, unscoped, bare):
        left, right = _by_form(ours, form), _by_form(theirs, form)
        for key in left.keys() & right.keys():
            (one, *others), (other, *more) = left[key], right[key]
            tells_less = key in (without_arguments(one), without_arguments(other))
            if form is plain or (tells_less and not others and not more):
                same.update(dict.fromkeys(right[key], one))
                ours -= set(left[key])
                theirs -= set(right[key])
    return same


def _by_form(names: Collection[str], form: Callable[[str], str]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for name in sorted(names):
        keys.setdefault(form(name), []).append(name)
    return keys
