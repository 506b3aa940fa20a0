"""Groups of launches, summed while the file streams by, and when the launches ran."""

import math
import re
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.exchanges import is_exchange
from mlscale.errors import InputError, warn
from mlscale.profilers.exports.cells import Wholes
from mlscale.profilers.launch_batch import LaunchBatch, LaunchRecord, batches
from mlscale.text import counted, shortened, without_controls

_DAMAGED = re.compile(r"[\ufffd\ud800-\udfff]")  # what stood for no character when it was decoded


class NumberSet:
    """A set of whole numbers, kept as ranges: those of a run mostly follow each other."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> bool:
        """Keep a number; False if it is in the set already."""
        at = bisect_right(self._starts, number)
        if at and number < self._ends[at - 1]:
            return False
        if at and number == self._ends[at - 1]:
            self._ends[at - 1] += 1
            if at < len(self._starts) and self._starts[at] == number + 1:
                self._ends[at - 1] = self._ends.pop(at)
                del self._starts[at]
        elif at < len(self._starts) and self._starts[at] == number + 1:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)
        return True

    def add_all(self, numbers: Wholes) -> int | None:
        """Keep numbers; where in them the first stands that is in the set already."""
        follow = len(numbers) > 0 and bool((np.diff(numbers) == 1).all())
        if follow and (not self._ends or numbers[0] >= self._ends[-1]):
            self.add(int(numbers[0]))
            self._ends[-1] = int(numbers[-1]) + 1
            return None
        is_new = (self.add(number) for number in numbers.tolist())
        return next((row for row, new in enumerate(is_new) if not new), None)


class GroupKey(NamedTuple):
    """What tells groups of launches apart; launch is None where the launches are averaged."""

    kernel: str
    workgroups: float | None
    workgroup_size: float | None
    launch: str | None = None

    @property
    def lacks_geometry(self) -> bool:
        """Whether the number or the size of the workgroups is not known."""
        return self.workgroups is None or self.workgroup_size is None

    @property
    def is_of_the_runtime(self) -> bool:
        """Whether it is a kernel by which ROCm's runtime copies and fills memory."""
        return self.kernel.startswith("__amd_rocclr_")

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
        return text if self.launch is None else f"{text}, launch {self.launch}"


def some_of(kernels: Sequence[GroupKey]) -> str:
    """Kernels in a message: the only one, or how many there are and the first."""
    first = str(kernels[0])
    return first if len(kernels) == 1 else f"{len(kernels)} kernels, such as {first}"


@dataclass(slots=True)
class LaunchGroup:
    """Launches of one kernel with one geometry: their number, and sums for their means."""

    launches: int = 0
    time_total_s: float = 0.0
    time_count: int = 0
    totals: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: LaunchBatch, rows: Indices, codes: Indices) -> "list[LaunchGroup]":
        """The groups of those launches of a batch; codes: which group each is of."""
        count = int(codes.max()) + 1
        weights = np.ones(len(rows)) if batch.weights is None else batch.weights[rows]
        is_new = np.ones(len(rows)) if batch.is_new is None else batch.is_new[rows]
        launches = np.bincount(codes, weights * is_new, count)
        times = _sums(codes, weights, batch.time_s[rows], count)
        groups = [
            cls(int(launches[i]), total, number)
            for i, (total, number) in enumerate(zip(*times, strict=True))
        ]
        for name, values in batch.counters.items():
            totals = zip(*_sums(codes, weights, values[rows], count), strict=True)
            for group, (total, number) in zip(groups, totals, strict=True):
                if number:
                    group.totals[name], group.counts[name] = total, number
        return groups

    def merge(self, other: "LaunchGroup") -> None:
        """Count all launches of another group in."""
        self.launches += other.launches
        self.time_total_s += other.time_total_s
        self.time_count += other.time_count
        for name, total in other.totals.items():
            self.totals[name] = self.totals.get(name, 0.0) + total
            self.counts[name] = self.counts.get(name, 0) + other.counts[name]

    @property
    def time_s(self) -> float | None:
        """Mean time of a launch [s]."""
        return self.time_total_s / self.time_count if self.time_count else None

    def means(self) -> dict[str, float]:
        """Mean of every counter over the launches that have it."""
        return {name: total / self.counts[name] for name, total in self.totals.items()}


def _sums(
    codes: Indices, weights: Floats, values: Floats, count: int
) -> tuple[list[float], list[int]]:
    """By group the weighted sum of the values that are there, and how many launches have one."""
    has = ~np.isnan(values)
    if not has.all():
        codes, weights, values = codes[has], weights[has], values[has]
    totals = np.bincount(codes, weights * values, count)
    return totals.tolist(), np.bincount(codes, weights, count).astype(np.int64).tolist()


class Timeline:
    """The intervals in which the kernels of a trace run on one GPU, in whatever order they come.

    Only kernels count. Copies and fills between them are no kernel's time, and so are idle.
    """

    def __init__(self) -> None:
        self._origin_ns: int | Fraction = 0
        self._begins_ns = array("d")  # since the origin: as floats, absolute times are not exact
        self._ends_ns = array("d")
        self._exchanges = array("q")  # positions of the kernels that exchange data between GPUs

    def add(self, begins_ns: NDArray[Any], times_s: Floats, exchanges: Indices) -> None:
        """Count kernels in: when each began, and for how long it ran, (n,) each.

        exchanges: which of them exchange data between GPUs.
        """
        if not self._begins_ns:
            self._origin_ns = begins_ns[0]
        self._exchanges.extend((exchanges + len(self._begins_ns)).tolist())
        since_ns = (begins_ns - self._origin_ns).astype(np.float64)
        self._begins_ns.frombytes(since_ns.tobytes())
        self._ends_ns.frombytes((since_ns + times_s * 1e9).tobytes())

    @property
    def span_s(self) -> float | None:
        """From the first kernel's begin to the last one's end [s]; None without a kernel."""
        if not self._begins_ns:
            return None
        return float(np.max(self._ends_ns) - np.min(self._begins_ns)) / 1e9

    @property
    def busy_s(self) -> float | None:
        """The time in which at least one kernel runs [s]; None without a kernel."""
        if not self._begins_ns:
            return None
        return _busy_ns(np.frombuffer(self._begins_ns), np.frombuffer(self._ends_ns)) / 1e9

    @property
    def hidden_exchange_s(self) -> float:
        """For how long kernels that exchange data between GPUs run beside others [s]."""
        if not self._exchanges:
            return 0.0
        begins_ns, ends_ns = np.frombuffer(self._begins_ns), np.frombuffer(self._ends_ns)
        own = np.frombuffer(self._exchanges, np.int64)
        others_ns = _busy_ns(np.delete(begins_ns, own), np.delete(ends_ns, own))
        alone_ns = _busy_ns(begins_ns, ends_ns) - others_ns
        return max(0.0, float((ends_ns[own] - begins_ns[own]).sum()) - alone_ns) / 1e9


def _busy_ns(begins_ns: Floats, ends_ns: Floats) -> float:
    """The time in which at least one of these kernels runs [ns]."""
    if not len(begins_ns):
        return 0.0
    if (begins_ns[1:] < begins_ns[:-1]).any():
        order = np.argsort(begins_ns)
        begins_ns, ends_ns = begins_ns[order], ends_ns[order]
    span_ns = float(np.max(ends_ns) - np.min(begins_ns))
    busy_until_ns = np.maximum.accumulate(ends_ns)[:-1]
    gaps_ns = np.subtract(begins_ns[1:], busy_until_ns, out=busy_until_ns)
    return span_ns - float(gaps_ns[gaps_ns > 0].sum())


@dataclass
class FileContent:
    """Everything that one file says.

    Attributes:
        source: its path.
        groups: its launches.
        facts: what it says of the GPU ('device_name', 'cu_count', 'engine_mhz', …): how often
            each value was seen.
        application: the program that was profiled.
        complaint: an error line of the tool itself.
        dropped: how many rows had no positive time; untimed: the kernels of these.
        skipped: how many lines inside the table were no rows of it.
        span_s: from the first kernel's begin to the last one's end; None where the file does not
            say when kernels ran.
        busy_s: the part of span_s in which at least one kernel ran; copies and fills are none.
        hidden_exchange_s: for how long kernels exchanged data between GPUs beside other kernels.
        gpu_facts: by GPU, further facts of it; those of the GPU that is read become facts, of a
            machine's file those of the GPU that the others read (facts_of).
        gpu: the number of the one that is read, where it says it.
    """

    source: str
    groups: dict[GroupKey, LaunchGroup] = field(default_factory=dict)
    facts: dict[str, Counter[str | float]] = field(default_factory=lambda: defaultdict(Counter))
    application: str | None = None
    complaint: str | None = None
    dropped: int = 0
    untimed: set[str] = field(default_factory=set)
    skipped: int = 0
    span_s: float | None = None
    busy_s: float | None = None
    hidden_exchange_s: float = 0.0
    gpu_facts: dict[str, dict[str, str | float]] = field(default_factory=dict)
    gpu: str = ""

    @property
    def has_counters(self) -> bool:
        """Whether it has counters of any kernel; a trace and a summary of times have none."""
        return any(group.totals for group in self.groups.values())

    def note_clock(self, fact: str, mhz: float) -> None:
        """Count a clock [MHz] in; one that is missing or 0 says nothing."""
        if mhz > 0:
            self.facts[fact][mhz] += 1

    def collect(
        self, launches: Iterable[LaunchRecord | LaunchBatch], each: bool, gpu: str | None = None
    ) -> None:
        """Sum the launches up, one group a launch with `each`.

        gpu: which GPU's launches to take, where the file has those of several. Raises InputError
        on none, and where the GPU is not said or not there.
        """
        groups_of: dict[str, dict[GroupKey, LaunchGroup]] = {}
        timelines: dict[str, Timeline] = defaultdict(Timeline)
        for batch in batches(launches):
            rows = batch.timed()
            self._note_untimed(batch, rows)
            if not len(rows):
                continue
            codes, first = batch.groups(rows, each)
            for row, group in zip(first, LaunchGroup.of(batch, rows, codes), strict=True):
                groups = groups_of.setdefault(batch.gpu(row), {})
                key = self._key(batch, row, each)
                if key in groups:
                    groups[key].merge(group)
                else:
                    groups[key] = group
            _note_times(timelines, batch, rows)
        if not groups_of:
            lost = f" with a positive time ({self.dropped} without)" if self.dropped else ""
            says = f"; the profiler says: {self.complaint[:300]}" if self.complaint else ""
            raise InputError(f"{self.source}: has a header but no kernel launch{lost}{says}")
        number = self._gpu(groups_of, gpu)
        self.groups = groups_of[number]
        self.gpu = number
        timeline = timelines[number]
        self.span_s, self.busy_s = timeline.span_s, timeline.busy_s
        self.hidden_exchange_s = timeline.hidden_exchange_s
        for fact, value in self.gpu_facts.get(number, {}).items():
            self.facts[fact][value] += 1

    def _note_untimed(self, batch: LaunchBatch, timed: Indices) -> None:
        """Count the launches that are dropped, and remember their kernels."""
        untimed = np.delete(batch.kernels.codes, timed)
        self.dropped += len(untimed)
        self.untimed |= {without_controls(batch.kernels.texts[k]) for k in np.unique(untimed)}

    def _key(self, batch: LaunchBatch, row: int, each: bool) -> GroupKey:
        """The group of a launch. Raises InputError where its kernel has no name."""
        kernel = without_controls(batch.kernels.texts[batch.kernels.codes[row]])
        if _DAMAGED.search(kernel) or not kernel.strip():
            raise InputError(
                f"{self.source}: row {batch.lines[row]}: the kernel's name is "
                + ("damaged text" if kernel.strip() else "empty")
            )
        sizes = (float(batch.workgroups[row]), float(batch.workgroup_size[row]))
        workgroups, workgroup_size = (None if math.isnan(size) else size for size in sizes)
        return GroupKey(kernel, workgroups, workgroup_size, batch.number(row) if each else None)

    def _gpu(self, groups_of: dict[str, dict[GroupKey, LaunchGroup]], gpu: str | None) -> str:
        """The GPU whose launches count: the only one, or the one that was chosen."""
        if len(groups_of) == 1:
            [number] = groups_of
            if gpu is not None and number not in ("", gpu):
                warn(f"{self.source}: is of GPU {number} alone, which was taken for GPU {gpu}")
            return number
        if gpu in groups_of:
            return gpu
        launches = ", ".join(
            f"{number or 'one that it does not name'}"
            f" ({counted(sum(one.launches for one in groups_of[number].values()), 'launch')})"
            for number in sorted(groups_of)
        )
        lacks = "" if gpu is None else f"has no launches on GPU {gpu}; "
        raise InputError(f"{self.source}: {lacks}is of GPUs {launches}; choose one with --gpu")


def facts_of(contents: Sequence[FileContent]) -> dict[str, Counter[str | float]]:
    """What all files together say of the GPU.

    Of a file that lists the GPUs of a machine counts the one on which the launches of the others
    ran. Raises InputError where these do not say which, and its GPUs are unlike.
    """
    facts: dict[str, Counter[str | float]] = defaultdict(Counter)
    ran = {content.gpu for content in contents if content.gpu}
    for content in contents:
        for fact, values in content.facts.items():
            facts[fact].update(values)
        if not content.groups:
            for fact, value in _of_those_that_ran(content, ran).items():
                facts[fact][value] += 1
    return facts


def _of_those_that_ran(machine: FileContent, ran: set[str]) -> dict[str, str | float]:
    """What a machine's file says of its GPU, or of all that ran; nothing where it lists none."""
    listed = [machine.gpu_facts[gpu] for gpu in sorted(ran & machine.gpu_facts.keys())]
    first, *others = listed or list(machine.gpu_facts.values()) or [{}]
    if any(other != first for other in others):
        names = ", ".join(dict.fromkeys(str(facts["chip"]) for facts in (first, *others)))
        raise InputError(
            f"{machine.source}: lists unlike GPUs ({names}); keep the row of the one that ran, or "
            "leave this file out and give --device"
        )
    return first


def _note_times(timelines: dict[str, Timeline], batch: LaunchBatch, rows: Indices) -> None:
    """Put launches on the timelines of their GPUs, where the file says when they ran."""
    if batch.begin_ns is None:
        return
    is_known = ~np.isnan(batch.time_s)
    if batch.begin_ns.dtype == np.object_:
        is_known &= [begin is not None for begin in batch.begin_ns]
    elif batch.begin_ns.dtype == np.float64:
        is_known &= ~np.isnan(batch.begin_ns)
    rows = rows[is_known[rows]]
    exchanges = np.array([is_exchange(name) for name in batch.kernels.texts], np.bool_)
    gpus = np.zeros(len(rows), np.intp) if batch.gpus is None else batch.gpus.codes[rows]
    for gpu in np.unique(gpus):
        of_gpu = rows[gpus == gpu]
        own = np.flatnonzero(exchanges[batch.kernels.codes[of_gpu]])
        timelines[batch.gpu(of_gpu[0])].add(batch.begin_ns[of_gpu], batch.time_s[of_gpu], own)
