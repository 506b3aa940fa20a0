"""How wide intervals must be, by scores of kernels held out, and how wide they can be: NumPy.

Intervals are calibrated over whole grids, whose steps are coarse; a GPU without training data is
predicted at each of its own clocks, the nearest of them a percent from the base. What is measured
there differs from the base by little more than a law at its extreme gives: time at most in
proportion to a clock, power to the cube of the engine clock (activity x V^2 f, the voltage V at
most in proportion to f). So no interval is wider than that. CU counts have no such law: workgroups
are dealt to CUs as wholes, so that one CU more can halve the time.

Where the engine clock alone changes, the sides are known too: at a lower one time does not fall and
power does not rise. Nor does time fall at lower clocks of memory and engine, or rise by more than
the slower of them. At other changes of the memory clock measured kernels keep to neither side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, widened_beyond
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.predictors.conditioning import RATIO_NOISE

LEVELS = np.linspace(0, 1, 1001)  # coverages that scores are kept for
SPREAD_PER_LOG = 0.04  # what an exponent is off that nothing else tells
MOST_GROUPS = 100  # that are left out in turn; more are joined, since one of many says little
NOISE = 0.02  # in the log of a ratio of two measurements: two standard deviations
# How far log time lies beyond the law of a lower memory clock, down and up: an RTX 3080 Ti at a
# tenth of it.
BEYOND_MEMORY = 0.05, 0.1
# 1.1: times of some GPUs rise a little more than in proportion to the clock.
LARGEST_EXPONENTS: dict[str, dict[str, float]] = {
    "time": {"engine_mhz": 1.1, "memory_mhz": 1},
    "power": {"engine_mhz": 3, "memory_mhz": 1},
}


def calibrated_scores(
    scores: Sequence[Floats], groups: Sequence[str], alike: bool = False
) -> Floats:
    """Return for each of LEVELS the score that such a share of a new group's values is within.

    scores: of each kernel (targets,), |log error| by models that never saw it, over what the
    intervals' half-widths are proportional to. groups (K,): what kernels have in common that a
    new kernel will not share with any of them: an application, or a GPU. alike: whether each
    group weighs the same, rather than each kernel.

    The plain quantile is too small for a new group, as the values of a group go together and
    groups are few. So every group is measured by the quantiles of the others, and for each
    coverage the level is taken at which these hold it on average: the conformal quantile of
    grouped data (Dunn, Wasserman and Ramdas, JASA 118, 2023) with its level measured, not bounded.
    Empty with fewer than two groups.
    """
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    if len(numbers) < 2 or not all(kernel.size for kernel in scores):
        return np.empty(0)
    sizes = [kernel.size for kernel in scores]
    values = np.concatenate([kernel.ravel() for kernel in scores])
    weights = equal_weights(groups) if alike else np.ones(len(groups))
    shares = np.repeat(np.divide(weights, sizes), sizes)
    group = np.repeat([numbers[name] % MOST_GROUPS for name in groups], sizes)
    order = np.argsort(values, kind="stable")
    values, shares, group = values[order], shares[order], group[order]
    covered = np.zeros(LEVELS.size)
    for number in range(group.max() + 1):
        inside = group == number
        limits = _quantiles(values[~inside], shares[~inside], LEVELS)
        within = np.searchsorted(values[inside], limits, side="right")
        covered += np.concatenate([[0.0], np.cumsum(shares[inside])])[within]
    return _quantiles(values, shares, np.interp(LEVELS, covered / shares.sum(), LEVELS))


def equal_weights(groups: Sequence[str]) -> Floats:
    """Return a weight for each member, (n,), by the name of its group; they sum to 1.

    Every group weighs the same, however many members it has.
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / sizes[group] / len(sizes))


def distance_from_base(grid: ConfigGrid, base: HardwareConfig) -> Floats:
    """Return the logarithms between each configuration and the base, summed over axes, (N,)."""
    settings = grid.settings()
    logs = [np.log(settings[axis] / getattr(base, axis)) for axis in AXES]
    return np.asarray(np.abs(logs).sum(axis=0))


def least_scale(distance: Floats) -> Floats:
    """Return what intervals' half-widths are in proportion to at least, in log ratio.

    distance: from the base, in logarithms. What a kernel's scaling is off by is an exponent, so
    the error grows with the distance; the rest is noise.
    """
    return RATIO_NOISE + SPREAD_PER_LOG * distance


def _quantiles(values: Floats, shares: Floats, levels: Floats) -> Floats:
    """Return quantiles of sorted values with weights; with equal ones NumPy's."""
    below = np.cumsum(shares) - shares
    return np.interp(levels, below / (below[-1] or 1.0), values)


def score_at(scores: Floats, coverage: float) -> float:
    """Return the score for one coverage; scores (1001,): see `calibrated_scores`.

    1 without scores: what is proportional to it then is in units of the score. Raises InputError
    unless the coverage is between 0 and 1.
    """
    require_coverage(coverage)
    return float(np.interp(coverage, LEVELS, scores)) if scores.size else 1.0


def require_coverage(coverage: float) -> None:
    """Raise InputError unless a coverage is between 0 and 1."""
    if not 0 < coverage < 1:
        raise InputError(f"a coverage is between 0 and 1, not {coverage}")


def require_scores(scores: Floats, what: str) -> None:
    """Raise ValueError on scores of a model file that are neither empty nor at LEVELS, rising."""
    if scores.shape == (0,):
        return
    if scores.shape != LEVELS.shape or scores[0] < 0 or (np.diff(scores) < 0).any():
        raise ValueError(f"the {what} of the intervals do not rise from 0")


def reaching(surfaces: Surfaces, rows: Mask, bounds: tuple[Floats, Floats], flag: Note) -> Surfaces:
    """Return surfaces whose intervals of some kernels (K,) reach bounds, (C, E, M) each, flagged.

    Without intervals the surfaces stay as they are.
    """
    if surfaces.low is None or surfaces.high is None or not rows.any():
        return surfaces
    low, high = surfaces.low.copy(), surfaces.high.copy()
    low[rows], high[rows] = np.minimum(low[rows], bounds[0]), np.maximum(high[rows], bounds[1])
    pairs = zip(surfaces.flags, rows.tolist(), strict=True)
    flags = tuple((*kernel, flag) if is_told else kernel for kernel, is_told in pairs)
    return replace(surfaces, low=low, high=high, flags=flags)


def largest_change(quantity: str, log_clocks: Mapping[str, Floats]) -> Floats:
    """How far the log of a quantity moves at most with these log ratios of clocks, by axis."""
    exponents = LARGEST_EXPONENTS[quantity]
    return np.asarray(sum(exponents[axis] * np.abs(logs) for axis, logs in log_clocks.items()))


def reach(quantity: str, grid: ConfigGrid, base: HardwareConfig) -> Floats:
    """How far the log of a factor can be from 0, (C, E, M): 0 at the base, inf at other CUs."""
    settings, at_base = grid.settings(), base.as_dict()
    logs = {axis: np.log(settings[axis] / at_base[axis]) for axis in LARGEST_EXPONENTS[quantity]}
    distance = largest_change(quantity, logs)
    distance = np.where(settings["cu_count"] == base.cu_count, distance, np.inf)
    return np.asarray(np.where(distance > 0, distance + NOISE, 0.0)).reshape(grid.shape)


def one_sided_reach(quantity: str, grid: ConfigGrid, base: HardwareConfig) -> tuple[Floats, Floats]:
    """The least and the most log of a factor where the engine clock alone changes, (C, E, M) each.

    From 0, or the law at its extreme, each NOISE further out. Of time also at lower memory clocks,
    BEYOND_MEMORY the law of the slower clock; -inf and inf at other configurations.
    """
    settings = grid.settings()
    ratio = np.log(settings["engine_mhz"] / base.engine_mhz)
    extreme = ratio * (-1 if quantity == "time" else 1) * LARGEST_EXPONENTS[quantity]["engine_mhz"]
    is_alone = (settings["cu_count"] == base.cu_count) & (settings["memory_mhz"] == base.memory_mhz)
    least = np.where(is_alone, np.minimum(extreme, 0) - NOISE, -np.inf)
    most = np.where(is_alone, np.maximum(extreme, 0) + NOISE, np.inf)
    if quantity == "time":
        slower = np.log(base.memory_mhz / settings["memory_mhz"])
        is_lower = (settings["cu_count"] == base.cu_count) & (slower > 0) & (ratio <= 0)
        below, above = BEYOND_MEMORY
        least = np.where(is_lower, -below, least)
        most = np.where(is_lower, np.maximum(slower, -ratio) + above, most)
    return least.reshape(grid.shape), most.reshape(grid.shape)


@dataclass(frozen=True, eq=False)
class ReadingBounds:
    """What the readings allow log ratios (K, N) to be, see `one_sided_reach` and `reach`.

    floor and ceiling: at a clock lower than a reading's, time does not fall and power not rise.
    least and most: in ends, where the law at its extreme counts too. farthest: from the truth.
    """

    floor: Floats
    ceiling: Floats
    least: Floats
    most: Floats
    farthest: Floats

    @classmethod
    def by(cls, profiles: Profiles, grid: ConfigGrid, quantity: str) -> Self:
        """Those of the base and every further point; where repeated runs spread, further out."""
        at_base = np.ones(len(profiles.kernels))
        factors = [(profiles.base, at_base), *profiles.measured_factors(quantity)]
        further = [at_base * 0] * len(factors)
        if quantity == "time":
            further[1:] = np.fmax(2 * profiles.factor_sd - NOISE, 0)
        sides: list[list[Floats]] = []
        for (config, factor), more in zip(factors, further, strict=True):
            reading = np.log(factor)[:, None]
            low, high = (end.ravel() for end in one_sided_reach(quantity, grid, config))
            floor, ceiling = np.where(low < -NOISE, -np.inf, 0), np.where(high > NOISE, np.inf, 0)
            if quantity == "power":  # no end of it crosses a reading
                low, high = low + NOISE, high - NOISE
            low, high = low - more[:, None], high + more[:, None]
            farthest = reach(quantity, grid, config).ravel() + 0 * reading + more[:, None]
            sides.append([*(reading + side for side in (floor, ceiling, low, high)), farthest])
        floors, ceilings, lows, highs, distances = zip(*sides, strict=True)
        largest, smallest = np.fmax.reduce, np.fmin.reduce
        inner = largest(floors), smallest(ceilings)
        return cls(*inner, largest(lows), smallest(highs), smallest(distances))

    def within(self, logs: Floats) -> Floats:
        """The log ratios, between floor and ceiling."""
        return np.minimum(np.maximum(logs, self.floor), self.ceiling)

    def ends(self, logs: Floats, down: Floats, up: Floats) -> list[Floats]:
        """Low and high log ratios, by half-widths."""
        low = np.maximum(logs - np.minimum(down, self.farthest), self.least)
        high = np.minimum(logs + np.minimum(up, self.farthest), self.most)
        return [np.minimum(low, logs), np.maximum(high, logs)]


def within_reach(surfaces: Surfaces, quantity: str) -> Surfaces:
    """The surfaces, no end of an interval further out than the truth can be.

    Value and truth lie on the same side of the base, so they differ by at most the reach. A value
    beyond its one-sided reach is of a GPU that was measured to break the law, as where the clock
    that was set is not the one that ran: there that bound does not hold.
    """
    if surfaces.low is None or surfaces.high is None:
        return surfaces
    values, grid, base = surfaces.values, surfaces.grid, surfaces.base
    factor = np.exp(reach(quantity, grid, base))
    least, most = (np.exp(log) for log in one_sided_reach(quantity, grid, base))
    is_lawful = (least <= values) & (values <= most)
    return replace(
        surfaces,
        low=np.maximum(surfaces.low, np.maximum(values / factor, np.where(is_lawful, least, 0))),
        high=np.minimum(
            surfaces.high, np.minimum(values * factor, np.where(is_lawful, most, np.inf))
        ),
    )


def widened_within_reach(surfaces: Surfaces, trained: ConfigGrid, quantity: str) -> Surfaces:
    """The surfaces, their intervals as wide as `widened_beyond` makes them, yet within reach."""
    return within_reach(widened_beyond(surfaces, trained, quantity), quantity)
