"""Launches as the readers give them, and groups of launches, summed while the file streams by."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from mlscale.errors import InputError

Key = tuple[str, float | None, float | None, str | None]


@dataclass(slots=True)
class Sample:
    """One launch, or what one row says of it.

    launch: its number in the run; workgroups and workgroup_size [threads] None where the file
    does not say; time_s None where it says none; weight: launches it stands for; new_launch:
    False for a further row of a launch already counted.
    """

    line: int
    kernel: str
    launch: str
    workgroups: float | None
    workgroup_size: float | None
    time_s: float | None
    counters: dict[str, float]
    weight: int = 1
    new_launch: bool = True


class Numbers:
    """Whole numbers that came before, kept as ranges: those of a run mostly follow each other."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> bool:
        """Keep a number; False if it came before."""
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


@dataclass(slots=True)
class Group:
    """Launches of one kernel with one geometry: their number, and sums for their means."""

    line: int
    launches: int = 0
    time_total: float = 0.0
    time_count: int = 0
    totals: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """Count a launch in."""
        weight = sample.weight
        if sample.new_launch:
            self.launches += weight
        if sample.time_s is not None:
            self.time_total += weight * sample.time_s
            self.time_count += weight
        for name, value in sample.counters.items():
            if not math.isnan(value):
                self.totals[name] = self.totals.get(name, 0.0) + weight * value
                self.counts[name] = self.counts.get(name, 0) + weight

    @property
    def time_s(self) -> float | None:
        """Mean time of a launch [s]."""
        return self.time_total / self.time_count if self.time_count else None

    def means(self) -> dict[str, float]:
        """Mean of every counter over the launches that have it."""
        return {name: total / self.counts[name] for name, total in self.totals.items()}


@dataclass
class Run:
    """Everything that one file says.

    facts: what it says of the GPU ('device_name', 'cu_count', 'engine_mhz', …), each with the
    values seen. dropped: rows without a positive time, by reason.
    """

    source: str
    gives: str
    groups: dict[Key, Group] = field(default_factory=dict)
    facts: dict[str, dict[str | float, int]] = field(default_factory=dict)
    application: str | None = None
    dropped: int = 0
    skipped: int = 0
    asked: set[str] = field(default_factory=set)

    def note(self, fact: str, value: str | float) -> None:
        """Count one statement of a fact."""
        seen = self.facts.setdefault(fact, {})
        seen[value] = seen.get(value, 0) + 1

    def collect(self, samples: Iterable[Sample], each: bool) -> None:
        """Sum the samples up, one group a launch with `each`. Raises InputError on none."""
        for sample in samples:
            key = (
                sample.kernel,
                sample.workgroups,
                sample.workgroup_size,
                sample.launch if each else None,
            )
            group = self.groups.get(key)
            if group is None:
                if "\ufffd" in sample.kernel or not sample.kernel.strip():
                    raise InputError(
                        f"{self.source}: row {sample.line}: the kernel's name is "
                        + ("empty" if not sample.kernel.strip() else "damaged text")
                    )
                group = self.groups[key] = Group(sample.line)
            group.add(sample)
        if not self.groups:
            lost = f" with a positive time ({self.dropped} without)" if self.dropped else ""
            raise InputError(f"{self.source}: has a header but no kernel launch{lost}")
