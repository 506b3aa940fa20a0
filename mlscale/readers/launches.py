"""Launches as readers give them, and a file's launches summed up while it streams by."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.checks import check
from mlscale.errors import InputError, warn
from mlscale.readers.columns import Labels, labels
from mlscale.readers.registry import Kind
from mlscale.text import counted, shortened, without_controls

_AT_ONCE = 10_000


@dataclass(slots=True)
class Launches:
    """Launches that were read together; each array is (n,), NaN if the file does not have it.

    lines: where each is in the file; kernels: their names; time_s: 0 if the tool has the time of
    others but not of this one (the launch is dropped); workgroups, workgroup_size:
    of the grid and threads of one; counters: by the tool's own names; weights: how many launches
    each stands for; gpus: the number of its GPU in the file, '' where it is not said; ids: a
    launch's number in the run, for which `each` keeps it apart; is_new: False for a further row of
    a launch that came before.
    """

    lines: Indices
    kernels: Labels
    time_s: Floats
    workgroups: Floats
    workgroup_size: Floats
    counters: dict[str, Floats] = field(default_factory=dict)
    weights: Floats | None = None
    gpus: Labels | None = None
    ids: Sequence[Any] | None = None
    is_new: Floats | None = None


class Launch(NamedTuple):
    """One launch, see `Launches`; None if the file does not have it."""

    line: int
    kernel: str
    time_s: float | None
    workgroups: float | None
    workgroup_size: float | None
    gpu: str = ""
    counters: Mapping[str, float] = MappingProxyType({})
    id: str | None = None
    is_new: bool = True


def in_parts(launches: Iterable[Launch]) -> Iterator[Launches]:
    """Single launches combined into blocks of many."""
    rest = iter(launches)
    while part := list(islice(rest, _AT_ONCE)):
        lines, kernels, time_s, workgroups, workgroup_size, gpus, counters, ids, is_new = zip(
            *part, strict=True
        )
        names = dict.fromkeys(name for one in counters for name in one)
        yield Launches(
            np.array(lines, np.intp),
            labels(kernels),
            np.array(time_s, np.float64),
            np.array(workgroups, np.float64),
            np.array(workgroup_size, np.float64),
            {name: np.array([one.get(name) for one in counters], np.float64) for name in names},
            gpus=labels(gpus),
            ids=None if None in ids else ids,
            is_new=np.array(is_new, np.float64),
        )


@dataclass
class Facts:
    """What a file contains besides its launches.

    Attributes:
        seen: how often each value of a fact was seen: 'device_name', 'chip', 'cu_count',
            'engine_mhz', 'memory_mhz', 'engine_limit_mhz', 'memory_limit_mhz', 'xcd_count'.
        by_gpu: by the number of a GPU in the file, facts of it.
        application: the program that ran.
        complaint: an error line of the tool itself.
        is_machine: whether the file describes a machine's GPUs, and no launch.
    """

    seen: dict[str, Counter[str | float]] = field(default_factory=lambda: defaultdict(Counter))
    by_gpu: dict[str, dict[str, str | float]] = field(default_factory=dict)
    application: str = ""
    complaint: str = ""
    is_machine: bool = False

    def note(self, fact: str, values: Any) -> None:
        """Count the values of a fact: texts, or an array of numbers; NaN and 0 are ignored."""
        if isinstance(values, np.ndarray):
            values = values[values > 0].tolist()
        if values := [value for value in values if value]:
            self.seen[fact].update(values)


class Key(NamedTuple):
    """What distinguishes groups of launches; launch is '' if the launches are averaged."""

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launch: str = ""

    @property
    def geometry(self) -> str:
        """Its grid and block in words, such as 'grid 8, block 64'; '' if unknown."""
        if not (self.workgroups and self.workgroup_size):
            return ""
        return f"grid {self.workgroups:.0f}, block {self.workgroup_size:.0f}"

    def __str__(self) -> str:
        """The group in a message, such as 'f(int)' (grid 8, block 64), launch 3."""
        text = f"'{shortened(self.kernel, 80)}'"
        text += f" ({self.geometry})" if self.geometry else ""
        return f"{text}, launch {self.launch}" if self.launch else text


@dataclass(slots=True)
class LaunchSums:
    """Launches of one kernel with one geometry: how many, and sums for their means."""

    launches: float = 0.0
    time_total_s: float = 0.0
    time_count: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)

    def add(self, other: "LaunchSums") -> None:
        """Add all launches of another group."""
        self.launches += other.launches
        self.time_total_s += other.time_total_s
        self.time_count += other.time_count
        for name, total in other.totals.items():
            self.totals[name] = self.totals.get(name, 0.0) + total
            self.counts[name] = self.counts.get(name, 0.0) + other.counts[name]

    @property
    def time_s(self) -> float | None:
        """Mean time of a launch [s]."""
        return self.time_total_s / self.time_count if self.time_count else None

    def means(self) -> dict[str, float]:
        """Mean of every counter over the launches that have it."""
        return {name: total / self.counts[name] for name, total in self.totals.items()}


@dataclass(frozen=True)
class SummedFile:
    """One file's launches of one GPU, summed up by kernel and geometry.

    Attributes:
        source: its path.
        kind: what it is.
        groups: the launches; none of a file that tells of a machine alone.
        facts: what it says besides.
        gpus: the numbers of all GPUs on which it has launches; gpu: of the one that was taken.
        untimed: kernels of launches without a positive time, which were dropped; dropped: how many.
    """

    source: str
    kind: Kind
    groups: dict[Key, LaunchSums]
    facts: Facts
    gpus: tuple[str, ...] = ()
    gpu: str = ""
    untimed: frozenset[str] = frozenset()
    dropped: int = 0

    @property
    def has_counters(self) -> bool:
        """Whether it has counters of any kernel; a trace has none."""
        return any(sums.totals for sums in self.groups.values())


def summed(
    launches: Iterable[Launches], source: str, kind: Kind, facts: Facts,
    each: bool = False, gpu: str | None = None,
) -> SummedFile:  # fmt: skip
    """All launches of a file summed up, a group for each launch with `each`.

    gpu: whose launches to use if the file has those of several. Raises InputError without any, and
    if the GPU is not named or has none.
    """
    by_gpu: dict[str, dict[Key, LaunchSums]] = {}
    untimed: set[str] = set()
    dropped = 0
    for part in launches:
        names = _kernel_names(source, part)
        has_no_time = part.time_s <= 0
        dropped += int(has_no_time.sum())
        untimed.update(names[code] for code in set(part.kernels.codes[has_no_time].tolist()))
        for number, key, sums in _groups(part, names, np.flatnonzero(~has_no_time), each):
            groups = by_gpu.setdefault(number, {})
            if key in groups:
                groups[key].add(sums)
            else:
                groups[key] = sums
    if facts.is_machine:
        return SummedFile(source, kind, {}, facts)
    check("kernels", source, by_gpu, dropped, facts.complaint)
    number = _chosen_gpu(source, by_gpu, gpu)
    for fact, value in facts.by_gpu.get(number, {}).items():
        facts.seen[fact][value] += 1
    gpus = tuple(sorted(filter(None, by_gpu)))
    return SummedFile(
        source, kind, by_gpu[number], facts, gpus, number, frozenset(untimed), dropped
    )


def _kernel_names(source: str, part: Launches) -> dict[int, str]:
    """The kernels of a part by their code. Raises InputError where one has no name."""
    names = {}
    for code in sorted({*part.kernels.codes.tolist()}):
        names[code] = without_controls(part.kernels.texts[code])
        if not names[code].strip():
            line = part.lines[np.argmax(part.kernels.codes == code)]
            raise InputError(f"{source}: row {line}: the kernel's name is empty")
    return names


def _groups(
    part: Launches, names: Mapping[int, str], rows: Indices, each: bool
) -> Iterator[tuple[str, Key, LaunchSums]]:
    """The GPU, key and sums of each group of those launches, in the order in which they come."""
    gpus = part.gpus or Labels(np.zeros(len(part.lines), np.intp), [""])
    if each:
        first, codes = rows, np.arange(len(rows))
    else:
        codes = part.kernels.codes[rows]
        for column in (gpus.codes, part.workgroups, part.workgroup_size):
            distinct, others = np.unique(column[rows], return_inverse=True)
            codes = codes * len(distinct) + others
        _, at, codes = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(at)
        first, codes = rows[at[order]], np.argsort(order)[codes]
    for row, sums in zip(first.tolist(), _sums(part, rows, codes, len(first)), strict=True):
        sizes = (float(part.workgroups[row]), float(part.workgroup_size[row]))
        workgroups, size = (None if math.isnan(value) else value for value in sizes)
        launch = "" if not each else str(part.ids[row]) if part.ids else str(part.lines[row])
        name = names[part.kernels.codes[row]]
        yield gpus.texts[gpus.codes[row]], Key(name, workgroups, size, launch), sums


def _sums(part: Launches, rows: Indices, codes: Indices, count: int) -> list[LaunchSums]:
    """The sums of each of `count` groups; codes: the group of each row."""
    ones = np.ones(len(rows))
    weights = ones if part.weights is None else part.weights[rows]
    is_new = ones if part.is_new is None else part.is_new[rows]

    def totals_and_counts(values: Floats) -> tuple[Floats, Floats]:
        has = ~np.isnan(values)
        totals = np.bincount(codes[has], (weights * values)[has], count)
        counts = np.bincount(codes[has], weights[has], count)
        return totals.astype(np.float64), counts.astype(np.float64)

    launches = np.bincount(codes, weights * is_new, count)
    times, timed = totals_and_counts(part.time_s[rows])
    values = zip(launches.tolist(), times.tolist(), timed.tolist(), strict=True)
    groups = [LaunchSums(*three) for three in values]
    for name, column in part.counters.items():
        totals, counts = totals_and_counts(column[rows])
        for at in np.flatnonzero(counts).tolist():
            groups[at].totals[name], groups[at].counts[name] = float(totals[at]), float(counts[at])
    return groups


def _chosen_gpu(source: str, by_gpu: Mapping[str, dict[Key, LaunchSums]], gpu: str | None) -> str:
    """The GPU whose launches count: the only one, or the one that was chosen. InputError."""
    if len(by_gpu) == 1:
        [number] = by_gpu
        if gpu is not None and number not in ("", gpu):
            warn("M01", f"{source}: has only GPU {number}, which is used as GPU {gpu}")
        return number
    launches = {
        number: counted(round(sum(one.launches for one in groups.values())), "launch")
        for number, groups in sorted(by_gpu.items())
    }
    check("gpus", source, launches, gpu)
    return next(number for number in by_gpu if number == gpu)
