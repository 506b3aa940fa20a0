"""The plan: which kernels at which CU counts and clocks, in which order, and how long it takes."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlscale import __version__
from mlscale.collect.clocks import Clocks, nearest, settings
from mlscale.collect.device import DeviceInfo
from mlscale.collect.entries import Entry
from mlscale.collect.measuring import MODES

AUTO_COUNTS = 8
# Estimates, not measurements: making inputs and reference, a launch's set-up and check, the change
# of a clock, and a kernel under Nsight Compute.
_CASE_S = 1.0
_SET_UP_S = 0.5
_CLOCK_S = 0.3
_PROFILE_S = 6.0


@dataclass(frozen=True)
class PlanStep:
    """One sample to take; profile: the counters of all kernels at that configuration instead."""

    entry: Entry | None
    cu_count: int
    clocks: Clocks
    repetition: int

    @property
    def profile(self) -> bool:
        """Whether Nsight Compute is asked."""
        return self.entry is None


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        entries: the kernels.
        cu_counts: granted CU counts, each with the one asked for.
        clocks: the settings of the clocks.
        repeat: samples of each kernel and configuration, whole rounds one after another.
        window_s: seconds over which power is averaged; 0 measures no power.
        counters: whether Nsight Compute is run.
    """

    entries: tuple[Entry, ...]
    cu_counts: dict[int, int]
    clocks: tuple[Clocks, ...]
    repeat: int
    window_s: float
    counters: bool

    def steps(self) -> Iterator[PlanStep]:
        """In order: round by round, kernel by kernel through all configurations, then counters.

        A kernel's configurations are neighbours in time, so that a drift changes them alike and
        a run that is stopped has whole kernels.
        """
        for repetition in range(self.repeat):
            for entry in self.entries:
                for clocks in self.clocks:
                    for cu_count in self.cu_counts:
                        yield PlanStep(entry, cu_count, clocks, repetition)
        if self.counters:
            for clocks in self.clocks:
                for cu_count in self.cu_counts:
                    yield PlanStep(None, cu_count, clocks, 0)

    def seconds(self, mode: str) -> float:
        """An estimate of the duration [s] with a power sensor of that mode."""
        configurations = len(self.cu_counts) * len(self.clocks)
        settle = MODES[mode if self.window_s else "none"].settle_s
        sample = settle + max(self.window_s, 0.05) + _SET_UP_S
        sample += _CLOCK_S if len(self.clocks) > 1 else 0.0
        kernels = len(self.entries) * self.repeat
        profiled = len(self.entries) * configurations * _PROFILE_S if self.counters else 0.0
        return kernels * (_CASE_S + configurations * sample) + profiled

    def fingerprint(self, info: DeviceInfo) -> str:
        """A digest of the plan, the sources, the board with its driver, and the version."""
        kernels = [
            [e.name, e.application, e.blocks, e.threads, e.macros(), e.text()] for e in self.entries
        ]
        asked = [list(self.cu_counts.items()), [repr(c) for c in self.clocks], self.repeat]
        rest = [self.window_s, self.counters, info.uuid, info.versions.get("driver")]
        text = json.dumps([__version__, kernels, asked, rest], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def granted_counts(asked: Sequence[int] | None, offered: tuple[int, ...]) -> dict[int, int]:
    """The CU counts to measure, rising, each with what was asked for it: the nearest offered one.

    asked None takes up to eight of those offered, evenly spaced, all CUs among them.
    """
    if asked is None:
        places = np.linspace(0, len(offered) - 1, min(AUTO_COUNTS, len(offered)))
        return {offered[round(place)]: offered[round(place)] for place in places}
    granted: dict[int, int] = {}
    for count in asked:
        found = nearest(count, offered)
        if found not in granted or abs(found - count) < abs(found - granted[found]):
            granted[found] = count
    return dict(sorted(granted.items()))


def requested_settings(
    counts: Sequence[int] | None, engine: tuple[int, ...], memory: tuple[int, ...]
) -> tuple[dict[int, int], tuple[Clocks, ...]]:
    """CU counts and settings of the clocks where no GPU can say what it grants and offers.

    counts None stands for AUTO_COUNTS of them, numbered. engine, memory: MHz.
    """
    taken = sorted(set(counts or range(1, AUTO_COUNTS + 1)))
    clocks = settings(engine, memory, dict.fromkeys(memory or (0,), engine))
    return {count: count for count in taken}, clocks
