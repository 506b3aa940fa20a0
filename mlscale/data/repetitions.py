"""Several rows of one kernel at one configuration made one: repetitions, and parts of a run.

Rows of about the same launches are repetitions of one another. Rows of unlike launches are parts
of one run: their launches, times and energies add up.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mlscale.arrays import Floats, Mask

Aggregate = Literal["median", "mean", "min"]
ALIKE = 1.1  # launches within a tenth of each other are of repetitions of one run


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as samples (R, ...), each cell a kernel at a configuration, NaN where it has fewer.

    time_samples [ms]; launch_samples: None where no row says any; how: what becomes of
    repetitions. With 'min' time and power are those of the quickest row.
    """

    time_samples: Floats
    launch_samples: Floats | None = None
    how: Aggregate = "median"

    @cached_property
    def time_ms(self) -> Floats:
        """Mean time of a launch (...) [ms]."""
        return _mean(self._times, self._launches)

    @cached_property
    def launches(self) -> Floats | None:
        """Launches (...), None where no row says any."""
        return None if self.launch_samples is None else _sum(self._launches)

    def power_w(self, samples: Floats) -> Floats:
        """Mean power (...) of samples (R, ...) [W], such that energies add up."""
        return _mean([self._one(samples, part) for part in self._parts], self._busy_ms)

    def counters(self, samples: Floats) -> Floats:
        """Counters of a launch (..., F) of samples (R, ..., F): means over the parts' launches."""
        how: Aggregate = "mean" if self.how == "mean" else "median"
        each = [over_repetitions(_only(samples, part[..., None]), how) for part in self._parts]
        return _mean(each, [launches[..., None] for launches in self._launches])

    def total(self, samples: Floats) -> Floats:
        """The sum (...) over parts of a sample (R, ...) of each."""
        return _sum([over_repetitions(_only(samples, part), "median") for part in self._parts])

    @cached_property
    def has_parts(self) -> Mask:
        """Which cells are of parts of a run (...)."""
        several = np.sum([part.any(axis=0) for part in self._parts], axis=0) > 1
        return np.asarray(several)

    @cached_property
    def _parts(self) -> list[Mask]:
        """The rows (R, ...) of each part; a cell of repetitions alone has the first only."""
        known = ~np.isnan(self.time_samples)
        if self.launch_samples is None or len(known) == 1:
            return [known]
        order = np.argsort(self.launch_samples, axis=0, kind="stable")
        rising = np.take_along_axis(self.launch_samples, order, axis=0)
        number = np.zeros(known.shape, dtype=np.intp)
        begins = rising[1:] > ALIKE * rising[:-1]
        np.put_along_axis(number, order[1:], np.cumsum(begins, axis=0), axis=0)
        return [known & (number == part) for part in range(int(number.max()) + 1)]

    @cached_property
    def _times(self) -> list[Floats]:
        return [self._one(self.time_samples, part) for part in self._parts]

    @cached_property
    def _launches(self) -> list[Floats]:
        """How often each part runs (...), NaN in cells that lack it."""
        if self.launch_samples is None:
            return [np.ones(self.time_samples.shape[1:])]
        return [
            over_repetitions(_only(self.launch_samples, part), "median") for part in self._parts
        ]

    @cached_property
    def _busy_ms(self) -> list[Floats]:
        return [count * time for count, time in zip(self._launches, self._times, strict=True)]

    def _one(self, samples: Floats, part: Mask) -> Floats:
        """One number of the repetitions of a part (...)."""
        if self.how != "min" or len(samples) == 1:
            return over_repetitions(_only(samples, part), self.how)
        times = np.where(part, self.time_samples, np.inf)
        quickest = np.take_along_axis(samples, times.argmin(axis=0)[None], axis=0)[0]
        return np.asarray(np.where(part.any(axis=0), quickest, np.nan))


def over_repetitions(samples: Floats, how: Aggregate) -> Floats:
    """Make one number of the repetitions (R, …) of each cell; NaN where all are missing."""
    if len(samples) == 1:
        return np.asarray(samples[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(All-NaN|Mean of empty)", RuntimeWarning)
        if how != "mean":
            return np.asarray(np.nanmedian(samples, axis=0))
        # Sorted, as a sum's last digits depend on the order of what is added.
        return np.asarray(np.nanmean(np.sort(samples, axis=0), axis=0))


def _only(samples: Floats, part: Mask) -> Floats:
    return samples if part.all() else np.where(part, samples, np.nan)


def _sum(parts: list[Floats]) -> Floats:
    """The sum over the parts that a cell has, NaN where it has none."""
    if len(parts) == 1:
        return parts[0]
    return np.asarray(np.where(np.isnan(parts).all(axis=0), np.nan, np.nansum(parts, axis=0)))


def _mean(parts: list[Floats], weights: list[Floats]) -> Floats:
    """The weighted mean over the parts whose value is known, NaN where none is."""
    if len(parts) == 1:
        return parts[0]
    pairs = list(zip(parts, weights, strict=True))
    known = [np.where(np.isnan(values), np.nan, weight) for values, weight in pairs]
    return _sum([values * weight for values, weight in pairs]) / _sum(known)
