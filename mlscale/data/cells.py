"""Cells of a table: a kernel at a configuration, of which several rows, one or none tell.

Rows of about the same launches are repetitions of one another. Rows of unlike launches are parts
of one run: their launches, times and energies add up.

A cell that nobody measured is filled in such that the logarithm of time or power over the
logarithms of the settings has the least mixed differences of two axes and, of surfaces alike in
that, the least changes of slope along each. So what is a power law along every axis is met exactly,
and a grid measured along its edges alone is filled by the product of what its axes do (Wu's walk).
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid
from mlscale.errors import InputError
from mlscale.parameters import parameter

Aggregate = Literal["median", "mean", "min"]
ALIKE = 1.1  # launches within a tenth of each other are of repetitions of one run


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as samples (R, ...), each cell a kernel at a configuration, NaN if it has fewer.

    time_samples [ms]; launch_samples: None if no row has any; how: repetitions are combined.
    With 'min' time and power are those of the fastest row.
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
        """Launches (...), None if no row has any."""
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
    """Combine the repetitions (R, …) of each cell into one number; NaN if all are missing."""
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


# Weights of squared differences beside 1 of mixed ones; the slopes' makes the solution unique.
CHANGE_OF_SLOPE, SLOPE = 0.01, 1e-6
MOST_FILLED = 5_000  # configurations of a grid; the work grows as their cube


def filled(values: Floats, grid: ConfigGrid) -> Floats:
    """Positive values (K, C, E, M), NaN where a kernel was not measured, with all cells filled.

    Each kernel is filled only from its own measured cells. Raises InputError on a grid of more than
    MOST_FILLED configurations.
    """
    if grid.size > MOST_FILLED:
        is_covered = not np.isnan(values).all(axis=0).any()  # what all lack is never dropped
        dropped = parameter("incomplete", "drop-settings")
        mend = f", or at those that a kernel lacks: {dropped}" if is_covered else ""
        raise InputError(
            f"the grid has {grid.text}, but rows for only part of it: missing cells are filled in "
            f"on at most {MOST_FILLED} configurations; leave out the rows at some settings{mend}"
        )
    roughness = _roughness(grid)
    logs = np.log(values).reshape(len(values), -1)
    patterns, pattern_of = np.unique(~np.isnan(logs), axis=0, return_inverse=True)
    for number, known in enumerate(patterns):
        kernels = np.flatnonzero(pattern_of.ravel() == number)
        among, from_known = roughness[np.ix_(~known, ~known)], roughness[np.ix_(~known, known)]
        weights = -np.linalg.solve(among, from_known)
        logs[np.ix_(kernels, ~known)] = logs[np.ix_(kernels, known)] @ weights.T
    return np.where(np.isnan(values), np.exp(logs).reshape(values.shape), values)


def _roughness(grid: ConfigGrid) -> Floats:
    """The quadratic form (N, N) of the weighted squared differences of a surface."""
    values = [np.eye(length) for length in grid.shape]
    slopes, changes = [], []
    for steps in grid.steps.values():
        slope = np.diff(np.eye(len(steps)), axis=0) / np.diff(np.log(steps))[:, None]
        change = np.diff(slope, axis=0)
        slopes.append(slope.T @ slope)
        changes.append(change.T @ change)
    total = np.zeros((grid.size, grid.size))
    for axis in range(3):
        along = CHANGE_OF_SLOPE * changes[axis] + SLOPE * slopes[axis]
        for forms, form in ((values, along), (slopes, values[axis])):
            cu, engine, memory = (form if a == axis else forms[a] for a in range(3))
            total += np.kron(np.kron(cu, engine), memory)
    return total


def complete_part(measured: Mask) -> list[Indices]:
    """The kernels, and the steps of each axis, that are left of cells (K, C, E, M).

    The kernel or step that lacks the largest share of its cells is removed, until none does.
    Configurations at which no kernel was measured do not count.
    """
    kept = [np.arange(length) for length in measured.shape]
    wanted = np.broadcast_to(measured.any(axis=0), measured.shape)
    while (lacking := (wanted & ~measured)[np.ix_(*kept)]).any():
        shares = []
        for axis in range(4):
            others = tuple({0, 1, 2, 3} - {axis})
            asked = wanted[np.ix_(*kept)].sum(axis=others)
            shares.append(lacking.sum(axis=others) / np.maximum(asked, 1))
        worst = int(np.argmax([each.max() for each in shares]))
        kept[worst] = np.delete(kept[worst], shares[worst].argmax())
    return kept
