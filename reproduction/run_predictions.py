"""Predictions of whole runs on GPUs that no predictor learnt from, beside simple rules.

K runs of a table, E engine clocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from run_tables import WITHOUT_TIMES, tables

from mlscale import ConfigGrid, Measurements
from mlscale.arrays import Floats, Mask
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.board import Board

COVERAGE = 0.9
QUANTITIES = ("time", "power", "energy")
Prediction = dict[str, Floats]  # low end, value and high end over the highest clock's (3, K, E)
Rule = Callable[[Measurements, Sequence[int]], Prediction]  # from a table and the readings' places


@cache
def learnt_without(device: str | None) -> tuple[Board, Board]:
    """Predictors of time and power from the runs of all GPUs but one."""
    others = [table for name, found in tables().items() if name != device for table in found]
    timed = [table for table in others if table.device != WITHOUT_TIMES]
    time, power = (
        Board(quantity=quantity).fit(rows, [table.grid.highest for table in rows])
        for quantity, rows in (("time", timed), ("power", others))
    )
    return time, power


def board_for(device: str) -> tuple[Board, Board]:
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


def by_board(
    table: Measurements, read: Sequence[int], grid: ConfigGrid | None = None
) -> Prediction:
    """What `board` predicts that did not learn from the table's GPU, see `by_predictors`."""
    return by_predictors(*board_for(table.device), table, read, grid)


def by_predictors(
    time: Board,
    power: Board,
    table: Measurements,
    read: Sequence[int],
    grid: ConfigGrid | None = None,
) -> Prediction:
    """What predictors of time and power say, and what was read; by default on the table's grid.

    From one reading time is bounded, so that time and energy are NaN.
    """
    profiles, grid = profiles_with(table, read), grid or table.grid
    times = time.predict_interval(profiles, COVERAGE, grid)
    if table.device == WITHOUT_TIMES:
        times = Surfaces(grid, profiles.base, table.relative("time", profiles.base))  # as measured
    with_times = power.with_times(times)
    predicted = {"power": ends(with_times.predict_interval(profiles, COVERAGE, grid))}
    if len(read) == 1:
        return predicted | dict.fromkeys(("time", "energy"), np.nan * predicted["power"])
    predicted["time"] = ends(times)
    predicted["energy"] = ends(with_times.predict_energy(profiles, COVERAGE, grid))
    at = [grid.engine_mhz.index(table.grid.engine_mhz[place]) for place in read]
    for quantity, truth in true_ratios(table).items():
        predicted[quantity][:, :, at] = truth[:, read]
    return predicted


def by_board_without_times(table: Measurements, read: Sequence[int]) -> Prediction:
    """Power alone, with the times of training runs on average."""
    _, power = board_for(table.device)
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
    """A GPU's predictions at the N run-clocks that were not read.

    over_lowest, over_highest (N,): the clock over the lowest reading's, and over the highest.
    errors, half_widths [%] and held (100 or 0) (N,), by quantity. regret [%]: the energy that runs
    take more at the clock of least predicted energy than at the best, in the mean;
    highest_regret [%]: what they take more at the highest clock.
    """

    over_lowest: Floats
    over_highest: Floats
    errors: dict[str, Floats]
    half_widths: dict[str, Floats]
    held: dict[str, Floats]
    regret: float
    highest_regret: float

    def mean(self, values: dict[str, Floats], quantity: str, where: Mask) -> float:
        """The mean of a quantity's values where they are known; NaN where there are none."""
        chosen = values[quantity][where]
        return float(chosen.mean()) if chosen.size else np.nan


def outcome(found: Sequence[Measurements], rule: Rule, shares: Sequence[float]) -> Outcome:
    """How a rule does on a GPU's tables, from readings at shares of the highest clock."""
    cells: list[list[Floats]] = []
    regrets: list[float] = []
    at_highest: list[float] = []
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
            off.append(100 * np.abs(value / actual - 1)[:, new].ravel())
            widths.append((50 * (high - low) / value)[:, new].ravel())
            within.append(100.0 * ((low <= actual) & (actual <= high))[:, new].ravel())
        cells.append([over[0], over[-1], *off, *widths, *within])
        energy, least = truth["energy"], predicted["energy"][1].argmin(axis=1)
        at_least = energy[np.arange(len(energy)), least] + 0 * predicted["energy"][1, :, -1]
        regrets += list(100 * (at_least / energy.min(axis=1) - 1))
        at_highest += list(100 * (energy[:, -1] / energy.min(axis=1) - 1))
    columns = [np.concatenate(parts) for parts in zip(*cells, strict=True)]
    errors, half_widths, held = (
        dict(zip(QUANTITIES, columns[first : first + 3], strict=True)) for first in (2, 5, 8)
    )
    regret, highest = float(np.mean(regrets)), float(np.mean(at_highest))
    return Outcome(columns[0], columns[1], errors, half_widths, held, regret, highest)
