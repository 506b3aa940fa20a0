"""Predictions of whole runs on GPUs that no predictor learnt from, beside simple rules.

K runs of a table, E engine clocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from run_tables import LOWEST, tables, training_tables

from mlscale import ConfigGrid, Measurements
from mlscale.advice.sureness import DRAWS, regret_told
from mlscale.arrays import Floats, Mask
from mlscale.data.logs import tells_times
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.runs import Runs

COVERAGE = 0.9
STEP = 0.008  # in the log of the clock, from one that a GPU offers to the next
QUANTITIES = ("time", "power", "energy")
# Low end, value and high end over the highest clock's, (3, K, E).
Prediction = dict[str, Floats]
Rule = Callable[[Measurements, Sequence[int]], Prediction]  # from a table and the readings' places


@cache
def learnt_without(device: str | None) -> tuple[Runs, Runs]:
    """Predictors of time and power from the runs of all GPUs but one."""
    others = training_tables(device or "")
    bases = [table.grid.highest for table in others]
    time, power = (Runs(quantity=quantity).fit(others, bases) for quantity in ("time", "power"))
    return time, power


def law_for(device: str) -> tuple[Runs, Runs]:
    """Predictors of time and power that did not learn from a GPU."""
    return learnt_without(device if device in tables() else None)


def read_at(table: Measurements, shares: Sequence[float]) -> list[int]:
    """The places of the readings: nearest to shares of the highest clock, and the highest."""
    clocks = np.array(table.grid.engine_mhz)
    lower = {int(np.abs(clocks[:-1] / clocks[-1] - share).argmin()) for share in shares}
    return [*sorted(lower), len(clocks) - 1]


def profiles_with(table: Measurements, read: Sequence[int]) -> Profiles:
    """The runs at their highest clock, with the other readings as further points."""
    one = table.profiles(table.grid.highest)
    further = [table.profiles(table.grid.config((0, place, 0))) for place in read[:-1]]
    points = tuple(MeasuredPoint(at.base, at.time_ms, at.power_w) for at in further)
    return replace(one, points=points)


def ends(surfaces: Surfaces) -> Floats:
    """Low end, value and high end (3, K, E)."""
    low, high = (surfaces.values if end is None else end for end in (surfaces.low, surfaces.high))
    return np.array([low, surfaces.values, high])[:, :, 0, :, 0]


def by_law(table: Measurements, read: Sequence[int], grid: ConfigGrid | None = None) -> Prediction:
    """What `runs` predicts that did not learn from the table's GPU, see `by_predictors`."""
    return by_predictors(*law_for(table.device), table, read, grid)


def by_predictors(
    time: Runs,
    power: Runs,
    table: Measurements,
    read: Sequence[int],
    grid: ConfigGrid | None = None,
) -> Prediction:
    """What predictors of time and power say, and what was read; by default on the table's grid.

    From one reading time is bounded, so that time and energy are NaN.
    """
    profiles, grid = profiles_with(table, read), grid or table.grid
    times = time.predict_interval(profiles, COVERAGE, grid)
    if not tells_times(table):
        times = Surfaces(grid, profiles.base, table.relative("time", profiles.base))  # as measured
    with_times = power.with_times(times, are_of_law=len(read) > 1 and tells_times(table))
    predicted = {"power": ends(with_times.predict_interval(profiles, COVERAGE, grid))}
    if len(read) == 1:
        return predicted | dict.fromkeys(("time", "energy"), np.nan * predicted["power"])
    predicted["time"] = ends(times)
    predicted["energy"] = ends(with_times.predict_energy(profiles, COVERAGE, grid))
    at = [grid.engine_mhz.index(table.grid.engine_mhz[place]) for place in read]
    for quantity, truth in true_ratios(table).items():
        predicted[quantity][:, :, at] = truth[:, read]
    return predicted


def by_law_without_times(table: Measurements, read: Sequence[int]) -> Prediction:
    """Power alone, with the times of training runs on average."""
    _, power = law_for(table.device)
    profiles = profiles_with(table, read)
    points = [replace(point, time_ms=np.nan * point.time_ms) for point in profiles.points]
    profiles = replace(profiles, points=tuple(points))
    powers = ends(power.predict_interval(profiles, COVERAGE, table.grid))
    return {"power": powers} | dict.fromkeys(("time", "energy"), np.nan * powers)


def by_exponent(time: Floats, power: Floats, table: Measurements) -> Prediction:
    """Powers of the clock, by exponents (K, 1) each; without intervals."""
    clocks = np.array(table.grid.engine_mhz)
    log_clock = np.log(clocks / clocks[-1])
    logs = {"time": time * log_clock, "power": power * log_clock}
    logs["energy"] = logs["time"] + logs["power"]
    return {quantity: np.exp(np.array([values] * 3)) for quantity, values in logs.items()}


def unchanged(table: Measurements, read: Sequence[int]) -> Prediction:  # noqa: ARG001
    """Time and power as at the highest clock."""
    zeros = np.zeros((len(table.kernels), 1))
    return by_exponent(zeros, zeros, table)


def in_proportion(table: Measurements, read: Sequence[int]) -> Prediction:  # noqa: ARG001
    """Time in proportion to 1 / clock, power to the clock."""
    ones = np.ones((len(table.kernels), 1))
    return by_exponent(-ones, ones, table)


def straight_line(table: Measurements, read: Sequence[int]) -> Prediction:
    """A straight line through the highest and the lowest reading, on logarithmic axes."""
    clocks, truth = np.log(table.grid.engine_mhz), true_ratios(table)
    slopes = {
        quantity: np.log(truth[quantity][:, [read[0]]]) / (clocks[read[0]] - clocks[-1])
        for quantity in ("time", "power")
    }
    return by_exponent(slopes["time"], slopes["power"], table)


def true_ratios(table: Measurements) -> dict[str, Floats]:
    """Measured time, power and energy over the highest clock's, (K, E)."""
    base = table.grid.highest
    time, power = (table.relative(name, base)[:, 0, :, 0] for name in ("time", "power"))
    return {"time": time, "power": power, "energy": time * power}


@dataclass(frozen=True, eq=False)
class Outcome:
    """A GPU's predictions at the N run-clocks that were not read, and K runs.

    over_lowest, over_highest (N,): the clock over the lowest reading's, and over the highest.
    errors, half_widths [%] and held (100 or 0) (N,), by quantity; NaN where times do not tell of
    the clock. regrets (K,) [%]: the energy that a run takes more at the clock of least predicted
    energy than at the best; highest_regrets (K,) [%]: at the highest clock. clocks (K,): how many
    were measured.
    """

    over_lowest: Floats
    over_highest: Floats
    errors: dict[str, Floats]
    half_widths: dict[str, Floats]
    held: dict[str, Floats]
    regrets: Floats
    highest_regrets: Floats
    clocks: Floats

    def mean(self, values: dict[str, Floats], quantity: str, where: Mask) -> float:
        """The mean of a quantity's values where they are known; NaN where there are none."""
        chosen = values[quantity][where]
        return float(np.nanmean(chosen)) if np.isfinite(chosen).any() else np.nan


def outcome(found: Sequence[Measurements], rule: Rule, shares: Sequence[float]) -> Outcome:
    """How a rule does on a GPU's tables, from readings at shares of the highest clock."""
    cells: list[list[Floats]] = []
    runs: list[list[Floats]] = []
    for table in found:
        read = read_at(table, shares)
        truth, predicted = true_ratios(table), rule(table, read)
        clocks = np.array(table.grid.engine_mhz)
        new = ~np.isin(np.arange(len(clocks)), read)
        over = np.array([np.tile(clocks[new] / clocks[at], len(table.kernels)) for at in read])
        off, widths, within = [], [], []
        for quantity in QUANTITIES:
            low, value, high = predicted[quantity]
            actual = truth[quantity]
            is_told = 1.0 if quantity == "power" or tells_times(table) else np.nan
            off.append(is_told * 100 * np.abs(value / actual - 1)[:, new].ravel())
            widths.append(is_told * (50 * (high - low) / value)[:, new].ravel())
            is_within = (low <= actual) & (actual <= high)
            within.append(is_told * 100.0 * is_within[:, new].ravel())
        cells.append([over[0], over[-1], *off, *widths, *within])
        if tells_times(table):
            energy, count = truth["energy"], np.full(len(table.kernels), float(len(clocks)))
            least = predicted["energy"][1].argmin(axis=1)
            at_least = energy[np.arange(len(energy)), least] + 0 * predicted["energy"][1, :, -1]
            regrets = (100 * (at / energy.min(axis=1) - 1) for at in (at_least, energy[:, -1]))
            runs.append([*regrets, count])
    columns = [np.concatenate(parts) for parts in zip(*cells, strict=True)]
    errors, half_widths, held = (
        dict(zip(QUANTITIES, columns[first : first + 3], strict=True)) for first in (2, 5, 8)
    )
    of_runs = [np.concatenate(parts) for parts in zip(*runs, strict=True)] or [np.empty(0)] * 3
    return Outcome(columns[0], columns[1], errors, half_widths, held, *of_runs)


def answers(table: Measurements, shares: Sequence[float], most: float) -> Floats:
    """What answers are told to cost over the best clock [%], what they cost, and time (3, K).

    From readings at shares of the highest clock. Clocks are STEP apart, as a GPU offers them; those
    count that surely take at most so many times the highest's time, and of these the one of least
    predicted energy is advised. Between clocks that were measured the truth is on straight lines of
    logarithms. Time: the advised clock's over the highest's.
    """
    read, truth, clocks = read_at(table, shares), true_ratios(table), table.grid.engine_mhz
    lowest = max(clocks[0], min(LOWEST * clocks[-1], *(clocks[place] for place in read)))
    steps = np.exp(np.arange(np.log(lowest), np.log(clocks[-1]), STEP))
    offered = np.union1d(steps, [clocks[place] for place in read])
    time, power = law_for(table.device)
    grid, profiles = (
        replace(table.grid, engine_mhz=tuple(offered.tolist())),
        profiles_with(table, read),
    )
    times = time.predict_interval(profiles, COVERAGE, grid)
    with_times = power.with_times(times, are_of_law=True)
    draws = with_times.energy_draws(profiles, grid, DRAWS)
    surely = ends(times)[2] <= most
    energy = ends(with_times.predict_energy(profiles, COVERAGE, grid))[1]
    found = []
    for k, advised in enumerate(np.where(surely, energy, np.inf).argmin(axis=1).tolist()):
        true_time, true_energy = (
            np.exp(np.interp(np.log(offered), np.log(clocks), np.log(truth[name][k])))
            for name in ("time", "energy")
        )
        told = regret_told(draws[:, k], advised, surely[k])
        cost = true_energy[advised] / true_energy[surely[k]].min() - 1
        found.append([100 * told, 100 * cost, true_time[advised]])
    return np.array(found).T
