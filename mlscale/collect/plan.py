"""The plan: which kernels at which CU counts, clocks and power limits, and how long it takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlscale.collect.device import DeviceInfo
from mlscale.errors import InputError

AUTO_COUNTS = 8
ITERATIONS = 15
# Estimates, not measurements: inputs and reference of a kernel; compiling, checking and timing it.
_KERNEL_S = 1.0
_SAMPLE_S = 0.6


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        suite: 'full', 'small' or 'micro'.
        kernels: names of its entries.
        cu_counts: as they are asked for, rising; what is granted, the table says.
        engine_mhz: clocks to hold; empty leaves the clock alone. All combinations are measured.
        memory_mhz: likewise.
        power_limits_w: likewise, the board's limit.
        repeat: samples of each kernel and configuration.
        power_s: seconds over which power is averaged; 0 measures none.
    """

    suite: str
    kernels: tuple[str, ...]
    cu_counts: tuple[int, ...]
    engine_mhz: tuple[int, ...] = ()
    memory_mhz: tuple[int, ...] = ()
    power_limits_w: tuple[int, ...] = ()
    repeat: int = 1
    power_s: float = 0.0

    @property
    def sets_clocks(self) -> bool:
        """Whether anything of the board is set."""
        return bool(self.engine_mhz or self.memory_mhz or self.power_limits_w)

    @property
    def configurations(self) -> int:
        """How many there are of each kernel."""
        axes = (self.cu_counts, self.engine_mhz, self.memory_mhz, self.power_limits_w)
        return int(np.prod([len(axis) or 1 for axis in axes]))

    @property
    def samples(self) -> int:
        """How many are taken."""
        return len(self.kernels) * self.configurations * self.repeat

    @property
    def seconds(self) -> float:
        """An estimate of the duration [s]."""
        return len(self.kernels) * _KERNEL_S + self.samples * (_SAMPLE_S + self.power_s)

    def jobs(self, info: DeviceInfo) -> Iterator[dict[str, Any]]:
        """What one process each carries out, as JSON values.

        One process sees one number of CUs, but for green contexts, which one process can change.
        """
        groups: list[tuple[int, ...]] = [(count,) for count in self.cu_counts]
        if info.cu_axis == "green contexts":
            groups = [self.cu_counts]
        for counts in groups:
            yield {**asdict(self), "info": asdict(info), "cu_counts": counts}


def cu_counts(asked: Sequence[int] | None, info: DeviceInfo) -> tuple[int, ...]:
    """The CU counts to measure, rising. Raises InputError on what the device does not have.

    asked None takes up to eight, evenly spaced, all CUs among them.
    """
    if not info.cu_axis:
        if asked and tuple(asked) != (info.cu_count,):
            raise InputError(
                f"{info.name} by {info.backend} cannot run on fewer than all {info.cu_count} CUs "
                "(CUDA 12.4, HIP or PoCL can); leave out --cu-counts"
            )
        return (info.cu_count,)
    if asked is None:
        places = np.linspace(0, info.cu_count, min(AUTO_COUNTS, info.cu_count) + 1)[1:]
        return tuple(sorted({round(float(place)) for place in places}))
    if max(asked) > info.cu_count:
        raise InputError(f"--cu-counts {max(asked)}: {info.name} has {info.cu_count} CUs")
    return tuple(sorted(set(asked)))


def nearest_clocks(
    engine: Sequence[int], memory: Sequence[int], offered: Mapping[int, Sequence[int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Engine and memory clocks to hold [MHz], each the nearest one offered at every combination.

    offered: engine clocks by memory clock. Raises InputError where the board offers none.
    """
    if not offered:
        raise InputError("the board lists no clocks that could be set; leave out --set-clocks")
    memories = tuple(sorted({_nearest(clock, offered) for clock in memory}))
    common = set.intersection(*(set(offered[m]) for m in memories or (max(offered),)))
    if engine and not common:
        raise InputError(f"no engine clock is offered at all of the memory clocks {memories} MHz")
    return tuple(sorted({_nearest(clock, common) for clock in engine})), memories


def _nearest(asked: int, offered: Iterable[int]) -> int:
    return min(offered, key=lambda offer: (abs(offer - asked), offer))
