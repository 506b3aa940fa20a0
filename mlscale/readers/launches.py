"""Launches as readers give them, and a file's launches summed up while it streams by."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.errors import InputError, warn
from mlscale.readers.files import Labels
from mlscale.text import counted, shortened, without_controls

_AT_ONCE = 10_000
_DAMAGED = re.compile(r"[\ufffd\ud800-\udfff]")  # what stood for no character when it was decoded


@dataclass(slots=True)
class Launches:
    """Launches that were read together; each array is (n,), NaN where the file does not say it.

    lines: where each stands in the file; kernels: their names; time_s: 0 where the tool says of
    others but not of this one how long it ran (the launch is dropped); workgroups, workgroup_size:
    of the grid and threads of one; counters: by the tool's own names; weights: how many launches
    each stands for; gpus: the number of its GPU in the file, '' where it is not said; ids: a
    launch's number in the run, for which --each keeps it apart; is_new: False for a further row of
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
    ids: Callable[[], list[str]] | None = None
    is_new: Floats | None = None


class Launch(NamedTuple):
    """One launch, see `Launches`; None where the file does not say it."""

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
    """Launches that come one by one, many at once."""
    rest = iter(launches)
    while part := list(islice(rest, _AT_ONCE)):
        lines, kernels, time_s, workgroups, workgroup_size, gpus, counters, ids, is_new = zip(
            *part, strict=True
        )
        names = dict.fromkeys(name for one in counters for name in one)
        yield Launches(
            np.array(lines, np.intp),
            Labels.of(kernels),
            np.array(time_s, np.float64),
            np.array(workgroups, np.float64),
            np.array(workgroup_size, np.float64),
            {name: np.array([one.get(name) for one in counters], np.float64) for name in names},
            gpus=Labels.of(gpus),
            ids=None if None in ids else partial(list[str], ids),
            is_new=np.array(is_new, np.float64),
        )


@dataclass
class Facts:
    """What a file says besides its launches.

    Attributes:
        seen: how often each value of a fact was seen: 'device_name', 'chip', 'cu_count',
            'engine_mhz', 'memory_mhz', 'engine_limit_mhz', 'memory_limit_mhz', 'xcd_count', ….
        of_gpu: by the number of a GPU in the file, facts of it.
        application: the program that ran.
        complaint: an error line of the tool itself.
        is_of_machine: whether the file tells of a machine's GPUs, and of no launch.
    """

    seen: dict[str, Counter[str | float]] = field(default_factory=lambda: defaultdict(Counter))
    of_gpu: dict[str, dict[str, str | float]] = field(default_factory=dict)
    application: str = ""
    complaint: str = ""
    is_of_machine: bool = False

    def note_clock(self, fact: str, mhz: float) -> None:
        """Count a clock [MHz] in; one that is missing or 0 says nothing."""
        if mhz > 0:
            self.seen[fact][mhz] += 1


class Key(NamedTuple):
    """What tells groups of launches apart; launch is '' where the launches are averaged."""

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launch: str = ""

    @property
    def geometry(self) -> str:
        """Its grid and block in words, such as 'grid 8, block 64'; '' where they are not known."""
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
        """Count all launches of another group in."""
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
        tool: what wrote it.
        title: its form in words.
        groups: the launches; none of a file that tells of a machine alone.
        facts: what it says besides.
        gpus: the numbers of all GPUs on which it has launches; gpu: of the one that was taken.
        untimed: kernels of launches without a positive time, which were dropped; dropped: how many.
        skipped: how many lines among its rows were none.
    """

    source: str
    tool: str
    title: str
    groups: dict[Key, LaunchSums]
    facts: Facts
    gpus: tuple[str, ...] = ()
    gpu: str = ""
    untimed: frozenset[str] = frozenset()
    dropped: int = 0
    skipped: int = 0

    @property
    def has_counters(self) -> bool:
        """Whether it has counters of any kernel; a trace has none."""
        return any(sums.totals for sums in self.groups.values())


def summed(
    launches: Iterable[Launches], source: str, tool: str, title: str, facts: Facts,
    each: bool = False, gpu: str | None = None,
) -> SummedFile:  # fmt: skip
    """All launches of a file summed up, a group for each launch with `each`.

    gpu: whose launches to take where the file has those of several. Raises InputError on none, and
    where the GPU is not said or not there.
    """
    of_gpu: dict[str, dict[Key, LaunchSums]] = {}
    untimed: set[str] = set()
    dropped = 0
    for part in launches:
        for kernel, number, key, sums in _groups(part, source, each):
            if sums is None:
                untimed.add(kernel)
                dropped += 1
            elif key in (groups := of_gpu.setdefault(number, {})):
                groups[key].add(sums)
            else:
                groups[key] = sums
    if facts.is_of_machine:
        return SummedFile(source, tool, title, {}, facts)
    if not of_gpu:
        lost = f" with a positive time ({dropped} without)" if dropped else ""
        says = f"; the profiler says: {facts.complaint[:300]}" if facts.complaint else ""
        raise InputError(f"{source}: has no kernel launch{lost}{says}")
    number = _chosen(source, of_gpu, gpu)
    for fact, value in facts.of_gpu.get(number, {}).items():
        facts.seen[fact][value] += 1
    return SummedFile(
        source, tool, title, of_gpu[number], facts,
        tuple(sorted(filter(None, of_gpu))), number, frozenset(untimed), dropped,
    )  # fmt: skip


def _groups(
    part: Launches, source: str, each: bool
) -> Iterable[tuple[str, str, Key, LaunchSums | None]]:
    """Groups of launches: kernel, GPU, key, sums; None for sums of one launch that is dropped."""
    names = {
        code: _checked(part.kernels.texts[code], source, part, code)
        for code in np.unique(part.kernels.codes).tolist()
    }
    gpus = part.gpus or Labels(np.zeros(len(part.lines), np.intp), [""])
    is_timed = ~(part.time_s <= 0)
    for row in np.flatnonzero(~is_timed).tolist():
        name = names[part.kernels.codes[row]]
        yield name, "", Key(name, None, None), None
    rows = np.flatnonzero(is_timed)
    ids = part.ids() if each and part.ids else None
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
        launch = "" if not each else ids[row] if ids else str(part.lines[row])
        name = names[part.kernels.codes[row]]
        yield name, gpus.texts[gpus.codes[row]], Key(name, workgroups, size, launch), sums


def _sums(part: Launches, rows: Indices, codes: Indices, count: int) -> list[LaunchSums]:
    ones = np.ones(len(rows))
    weights = ones if part.weights is None else part.weights[rows]
    is_new = ones if part.is_new is None else part.is_new[rows]

    def of(values: Floats) -> tuple[Floats, Floats]:
        has = ~np.isnan(values)
        totals = np.bincount(codes[has], (weights * values)[has], count)
        counts = np.bincount(codes[has], weights[has], count)
        return totals.astype(np.float64), counts.astype(np.float64)

    launches = np.bincount(codes, weights * is_new, count)
    times, timed = of(part.time_s[rows])
    of_groups = zip(launches.tolist(), times.tolist(), timed.tolist(), strict=True)
    groups = [LaunchSums(*values) for values in of_groups]
    for name, values in part.counters.items():
        totals, counts = of(values[rows])
        for at in np.flatnonzero(counts).tolist():
            groups[at].totals[name], groups[at].counts[name] = float(totals[at]), float(counts[at])
    return groups


def _checked(name: str, source: str, part: Launches, code: int) -> str:
    """A kernel's name. Raises InputError where it is empty or damaged."""
    kernel = without_controls(name)
    if _DAMAGED.search(kernel) or not kernel.strip():
        line = int(part.lines[np.flatnonzero(part.kernels.codes == code)[0]])
        what = "damaged text" if kernel.strip() else "empty"
        raise InputError(f"{source}: row {line}: the kernel's name is {what}")
    return kernel


def _chosen(source: str, of_gpu: dict[str, dict[Key, LaunchSums]], gpu: str | None) -> str:
    """The GPU whose launches count: the only one, or the one that was chosen. InputError."""
    if len(of_gpu) == 1:
        [number] = of_gpu
        if gpu is not None and number not in ("", gpu):
            warn(f"{source}: is of GPU {number} alone, which was taken for GPU {gpu}")
        return number
    if gpu in of_gpu:
        return gpu
    launches = ", ".join(
        f"{number or 'one that it does not name'} "
        f"({counted(round(sum(one.launches for one in groups.values())), 'launch')})"
        for number, groups in sorted(of_gpu.items())
    )
    lacks = "" if gpu is None else f"has no launches on GPU {gpu}; "
    raise InputError(f"{source}: {lacks}is of GPUs {launches}; choose one with --gpu")
