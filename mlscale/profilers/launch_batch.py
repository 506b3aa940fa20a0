"""Launches as the readers give them: one at a time, or as columns of many."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices, Mask, floats_of
from mlscale.profilers.exports.cells import Labels, ListedCells, Wholes

_AT_ONCE = 10_000


@dataclass(slots=True)
class LaunchRecord:
    """One launch, or what one row says of it.

    launch: its number in the run, if the file numbers launches; workgroups and workgroup_size
    [threads] None where the file does not say; time_s None where it says none, and 0 where it says
    that of others: a launch is dropped where it is not positive; weight: launches it stands for;
    gpu: its number among the GPUs of the file, '' where the file does not say; begin_ns: when it
    began, on the file's own clock; is_new: False for a further row of a launch already counted.
    """

    line: int
    kernel: str
    launch: str | None = None
    workgroups: float | None = None
    workgroup_size: float | None = None
    time_s: float | None = None
    counters: dict[str, float] = field(default_factory=dict)
    weight: int = 1
    is_new: bool = True
    gpu: str = ""
    begin_ns: int | Fraction | None = None


@dataclass(slots=True)
class LaunchBatch:
    """Launches that were read together, each array (n,); see LaunchRecord.

    numbers: the launches', in the run or in their process. NaN of workgroups, workgroup_size,
    time_s and counters says that the file does not say it, None of an optional one that it says
    it of none; the launches' lines are their numbers then.
    """

    lines: Indices
    kernels: Labels
    workgroups: Floats
    workgroup_size: Floats
    time_s: Floats
    counters: dict[str, Floats] = field(default_factory=dict)
    numbers: Sequence[object] | Wholes | None = None
    processes: Labels | None = None
    weights: Floats | None = None
    is_new: Mask | None = None
    gpus: Labels | None = None
    begin_ns: NDArray[Any] | None = None

    @classmethod
    def of(cls, records: Sequence[LaunchRecord]) -> "LaunchBatch":
        """Records as a batch."""
        names = dict.fromkeys(name for record in records for name in record.counters)
        begins = np.empty(len(records), np.object_)
        begins[:] = [record.begin_ns for record in records]
        numbers = [record.launch for record in records]
        return cls(
            lines=np.array([record.line for record in records]),
            kernels=ListedCells([record.kernel for record in records]).labels(),
            workgroups=floats_of(record.workgroups for record in records),
            workgroup_size=floats_of(record.workgroup_size for record in records),
            time_s=floats_of(record.time_s for record in records),
            counters={n: floats_of(record.counters.get(n) for record in records) for n in names},
            numbers=None if None in numbers else numbers,
            weights=floats_of(record.weight for record in records),
            is_new=np.array([record.is_new for record in records]),
            gpus=ListedCells([record.gpu for record in records]).labels(),
            begin_ns=begins,
        )

    def timed(self) -> Indices:
        """The launches whose time is positive, or not said."""
        return np.flatnonzero(~(self.time_s <= 0))

    def gpu(self, row: int) -> str:
        """The number of a launch's GPU."""
        return "" if self.gpus is None else self.gpus.of(row)

    def number(self, row: int) -> str:
        """A launch's number in the run, with its process."""
        process = "" if self.processes is None else f"{self.processes.of(row)}:"
        numbers = self.lines if self.numbers is None else self.numbers
        return f"{process}{numbers[row]}"

    def groups(self, rows: Indices, each: bool) -> tuple[Indices, list[int]]:
        """Which group each of those launches is of, and the first launch of each group.

        A group is of one kernel, geometry and GPU; with `each` it is one launch.
        """
        if each:
            return np.arange(len(rows)), rows.tolist()
        codes = self.kernels.codes[rows]
        others = [] if self.gpus is None else [self.gpus.codes]
        for column in (self.workgroups, self.workgroup_size, *others):
            distinct = np.unique(column[rows])
            codes = codes * len(distinct) + np.searchsorted(distinct, column[rows])
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return np.argsort(order)[codes], rows[first[order]].tolist()


def batches(launches: Iterable[LaunchRecord | LaunchBatch]) -> Iterator[LaunchBatch]:
    """All launches in batches."""
    records: list[LaunchRecord] = []
    for launch in launches:
        if isinstance(launch, LaunchBatch):
            yield launch
            continue
        records.append(launch)
        if len(records) == _AT_ONCE:
            yield LaunchBatch.of(records)
            records = []
    if records:
        yield LaunchBatch.of(records)
