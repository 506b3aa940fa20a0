"""Several files of one run joined: passes of counters, and a trace for the time."""

import math
import re
import statistics
import warnings
from dataclasses import dataclass

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.samples import Group, Key, Run

_AGREEMENT = 0.01
_SAME_IN_EVERY_PASS = ("SQ_WAVES", "Wavefronts")
# Known of a launch without counting, or by the clock: they stand even where counting failed.
_NOT_COUNTED = re.compile(
    r"(launch|device)__|(sm|dram)__cycles_elapsed|sm__maximum_warps|KernelOccupancy$|Wavefronts$"
)


@dataclass(frozen=True)
class Joined:
    """One kernel with one geometry (or one launch of it), over all files.

    time_s: mean over launches; cycles: GRBM_GUI_ACTIVE by the counter of its pass.
    """

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launches: int
    time_s: float
    counters: dict[str, float]
    cycles: dict[str, float]


def join(runs: list[Run]) -> list[Joined]:
    """Join the files by kernel and geometry, or by launch. Raises InputError on a mismatch."""
    counting = [run for run in runs if any(g.totals for g in run.groups.values())]
    timing = [run for run in runs if run not in counting]
    if any(None in key[1:3] for run in runs for key in run.groups):
        counting = [_by_kernel(run, counting) for run in counting]
        timing = [_by_kernel(run, counting) for run in timing]
    first = (counting or timing)[0]
    for other in counting[1:]:
        _check_same_launches(first, other)
    if counting and all(key[3] is not None for key in first.groups):
        timing = [_in_order(run, first) for run in timing]
    return [_joined(key, counting, timing) for key in first.groups]


def _check_not_zero(source: str, name: str, counters: dict[str, float]) -> None:
    """A known failure of profilers (design page, 1.6), not data."""
    for waves in _SAME_IN_EVERY_PASS:
        if counters.get(waves) == 0:
            raise InputError(f"{source}: {name}: {waves} is 0, which is a failure of the profiler")
    counted = [value for name, value in counters.items() if not _NOT_COUNTED.match(name)]
    if counted and not any(counted):
        raise InputError(
            f"{source}: {name}: every counter is 0, which is a failure of the profiler; profile "
            "it again"
        )


def _by_kernel(run: Run, counting: list[Run]) -> Run:
    """The groups of each kernel as one, for files that do not say the geometry.

    A kernel launched with one geometry keeps it.
    """
    pooled: dict[str, tuple[set[tuple[float | None, float | None]], Group]] = {}
    for key, group in run.groups.items():
        if key[3] is not None and run not in counting:
            raise InputError(f"{run.source}: cannot be joined launch by launch; leave out --each")
        geometries, whole = pooled.setdefault(key[0], (set(), Group(group.line)))
        geometries.add((key[1], key[2]))
        whole.launches += group.launches
        whole.time_total += group.time_total
        whole.time_count += group.time_count
        for name, total in group.totals.items():
            whole.totals[name] = whole.totals.get(name, 0.0) + total
            whole.counts[name] = whole.counts.get(name, 0) + group.counts[name]
    groups: dict[Key, Group] = {}
    for kernel, (geometries, whole) in pooled.items():
        workgroups, size = next(iter(geometries)) if len(geometries) == 1 else (None, None)
        groups[kernel, workgroups, size, None] = whole
    return Run(run.source, run.gives, groups, run.facts)


def _named(key: Key) -> str:
    shape = f" (grid {key[1]:g}, block {key[2]:g})" if key[1] and key[2] else ""
    launch = f", launch {key[3]}" if key[3] is not None else ""
    return f"'{key[0][:80]}'{shape}{launch}"


def _check_same_launches(first: Run, other: Run) -> None:
    for one, two in ((first, other), (other, first)):
        for key in one.groups:
            if key not in two.groups:
                raise InputError(
                    f"{two.source}: has no {_named(key)}, which {one.source} has; the passes must "
                    "be of the same launches"
                )
    for key, group in first.groups.items():
        if group.launches != other.groups[key].launches:
            raise InputError(
                f"{other.source}: has {other.groups[key].launches} launches of {_named(key)}, "
                f"{first.source} has {group.launches}; the passes must be of the same launches"
            )


def _in_order(timed: Run, counted: Run) -> Run:
    """A trace with its launches under the counters' numbers, paired in their order.

    A tool may count from 0 in one file and from 1 in the other (design page, 1.5).
    """
    groups = dict[Key, Group]()
    numbers = _by_geometry(counted)
    for geometry, keys in _by_geometry(timed).items():
        own = numbers.get(geometry, keys)
        if len(own) != len(keys):
            raise InputError(
                f"{timed.source}: has {len(keys)} launches of {_named((*geometry, None))}, "
                f"{counted.source} has {len(own)}; which is which cannot be told; leave out --each"
            )
        groups |= {key: timed.groups[found] for key, found in zip(own, keys, strict=True)}
    return Run(timed.source, timed.gives, groups, timed.facts)


def _by_geometry(run: Run) -> dict[tuple[str, float | None, float | None], list[Key]]:
    """The launches of each kernel and geometry, in order."""
    found: dict[tuple[str, float | None, float | None], list[Key]] = {}
    for key in sorted(run.groups, key=lambda key: [n.zfill(18) for n in str(key[3]).split(":")]):
        found.setdefault(key[:3], []).append(key)
    return found


def _match(run: Run, key: Key) -> tuple[Key, Group] | None:
    """The group of a key; where either side lacks the geometry, of its kernel."""
    if key in run.groups:
        return key, run.groups[key]
    if None in key[1:3] or all(None in other[1:3] for other in run.groups):
        return next(((k, g) for k, g in run.groups.items() if k[0] == key[0]), None)
    same_kernel = [(k, g) for k, g in run.groups.items() if k[0] == key[0] and None in k[1:3]]
    return same_kernel[0] if same_kernel else None


def _joined(key: Key, counting: list[Run], timing: list[Run]) -> Joined:
    kernel, workgroups, size, _ = key
    source = (counting or timing)[0].source
    values: dict[str, list[float]] = {}
    cycles: dict[str, float] = {}
    for run in counting:
        means = run.groups[key].means()
        for name, mean in means.items():
            values.setdefault(name, []).append(mean)
            if "GRBM_GUI_ACTIVE" in means:
                cycles[name] = means["GRBM_GUI_ACTIVE"]
    for name in _SAME_IN_EVERY_PASS:
        given = values.get(name, [0.0])
        if max(given) > (1 + _AGREEMENT) * min(given):
            raise InputError(
                f"{source}: {_named(key)}: {name} is {min(given):g} in one pass and "
                f"{max(given):g} in another; the passes must be of the same launches"
            )
    launches = counting[0].groups[key].launches if counting else 0
    matches = [_timed(run, key) for run in timing]
    groups = [group for _, group in matches] or [run.groups[key] for run in counting]
    times = [group.time_s for group in groups if group.time_s is not None]
    if not times:
        raise InputError(
            f"{source}: says no time of {_named(key)}; give the trace of the same program as a "
            "further file (docs/profiling.md)"
        )
    if matches and workgroups is None:
        workgroups, size = matches[0][0][1:3]
    if matches and launches and any(group.launches != launches for group in groups):
        warnings.warn(
            f"{timing[0].source}: {groups[0].launches} launches of {_named(key)} were timed, "
            f"{launches} counted; each is averaged over its own",
            DataWarning,
            stacklevel=2,
        )
    counters = {name: math.fsum(given) / len(given) for name, given in values.items()}
    _check_not_zero(source, _named(key), counters)
    return Joined(
        kernel=kernel,
        workgroups=workgroups,
        workgroup_size=size,
        launches=launches or groups[0].launches,
        time_s=statistics.median(times),
        counters=counters,
        cycles=cycles,
    )


def _timed(run: Run, key: Key) -> tuple[Key, Group]:
    """What a trace says of a kernel. Raises InputError where it says nothing."""
    match = _match(run, key)
    if match is None or match[1].time_s is None:
        raise InputError(
            f"{run.source}: has no time of {_named(key)}; is it of another run, or were names "
            "truncated?"
        )
    return match
