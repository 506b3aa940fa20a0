"""What a study of advice asks for on one table: the best configuration of a kernel or a run.

Runs are random mixes of a table's applications, each kernel launched as often as chance says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.data.sequence import run_in_sequence

MOST_APPLICATIONS = 8
LAUNCH_SIGMA = 2.0  # of the logarithm: nine launch counts in ten lie within a factor 27 of 1
_SEED = 20_260_213  # keeps the runs apart from the seeds of splits and predictors

RunCosts = tuple[Floats, Floats | None, Floats]  # time [ms], power [W] (K, C, E, M), launches (K,)


@dataclass(frozen=True)
class LaunchMix:
    """Kernels that run one after the other, by position in the table, and how often each does.

    number: from 1. launches: positive, not always whole; only their ratios matter to a regret.
    """

    number: int
    kernels: tuple[int, ...]
    launches: tuple[float, ...]


class Choice(NamedTuple):
    """The configuration chosen, and the interval of what it is predicted to save [%]."""

    config: Index
    saving_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Goal:
    """What is best on one table: objectives, limits, and static power to add [W], from a base."""

    base: HardwareConfig
    objectives: tuple[str, ...]
    limits: Limits
    static_power_w: float = 0.0

    def power_w(self, data: Measurements) -> Floats | None:
        """Measured power with the static power, (K, C, E, M) [W]; None where not measured."""
        return None if data.power_w is None else data.power_w + self.static_power_w

    def best(
        self, objective: str, time_ms: Floats, power_w: Floats | None, launches: Floats, base: Index
    ) -> Index:
        """The best configuration of a run; where none keeps the limits, the least breach.

        time_ms [ms] and power_w [W] are (K, C, E, M), launches (K,). As in `advise`, limits of
        time are the run's, and one of power is every kernel's.
        """
        run_ms, run_w, peak_w = run_of(time_ms, power_w, launches)
        base_ms = float(run_ms[base])
        if not self.keeps(time_ms, power_w, launches, base).any():
            return _least(advice.limit_ratio(self.limits, run_ms, peak_w, base_ms))
        return advice.best_index(
            objective, run_ms, run_w, base_ms, self.limits, peak_power_w=peak_w
        )

    def keeps(self, time_ms: Floats, power_w: Floats | None, launches: Floats, base: Index) -> Mask:
        """Where a run of kernels (K, C, E, M) keeps the limits, (C, E, M)."""
        run_ms, _, peak_w = run_of(time_ms, power_w, launches)
        return advice.feasible(self.limits, run_ms, peak_w, float(run_ms[base]))

    def saving_range(
        self, objective: str, ends: Sequence[RunCosts], at: Index, base: Index
    ) -> tuple[float, float] | None:
        """The interval of a run's saving at a configuration [%]; None where there is none.

        At the base there is none: nothing is saved there for certain. ends: the run as
        predicted, at the low ends of its intervals, and at the high ends.
        """
        if at == base:
            return None
        costs = [run_of(*of_run)[:2] for of_run in ends]
        at_base = advice.objective_values(objective, *costs[0])[base]
        values = [advice.objective_values(objective, *cost)[at] for cost in costs]
        savings = [float(advice.saving_percent(value, at_base)) for value in values]
        return advice.interval_ends(savings) if np.isfinite(savings).all() else None

    def best_fixed(
        self, objective: str, data: Measurements, trainings: Sequence[Sequence[int]]
    ) -> list[Index]:
        """For each set of training kernels the one configuration that serves them best.

        The one at which the fewest of them break a limit, of these the one of the least mean
        ratio of the objective to what `best` would reach from the measured surfaces.
        """
        base = data.grid.index(self.base)
        values = advice.objective_values(objective, data.time_ms, self.power_w(data))
        ratios, broken = np.empty(values.shape), np.empty(values.shape)
        for k in range(len(values)):
            costs = rows_of(data.time_ms, self.power_w(data), [k])
            ratios[k] = values[k] / values[k][self.best(objective, *costs, np.ones(1), base)]
            broken[k] = ~self.keeps(*costs, np.ones(1), base)
        fixed = []
        for training in trainings:
            breaches = broken[list(training)].sum(axis=0)
            mean = ratios[list(training)].mean(axis=0)
            fixed.append(_least(np.where(breaches == breaches.min(), mean, np.inf)))
        return fixed


def random_runs(applications: Sequence[str], count: int) -> list[LaunchMix]:
    """That many runs of a table whose kernels belong to these applications (K,).

    A run has 1 to 8 distinct applications, each number as likely as any other, with all their
    kernels, and leaves one application out at least. Launches are log-normal with sigma 2. The
    same table gives the same runs, and the first of many are those of few.
    """
    random = np.random.default_rng(_SEED)
    names = sorted(set(applications))
    most = min(MOST_APPLICATIONS, len(names) - 1)
    runs = []
    for number in range(1, count + 1):
        chosen = random.choice(names, random.integers(1, most + 1), replace=False)
        kernels = np.flatnonzero(np.isin(applications, chosen)).tolist()
        launches = random.lognormal(0.0, LAUNCH_SIGMA, len(kernels)).tolist()
        runs.append(LaunchMix(number, tuple(kernels), tuple(launches)))
    return runs


def rows_of(
    time_ms: Floats, power_w: Floats | None, kernels: Sequence[int]
) -> tuple[Floats, Floats | None]:
    """Time and power of some kernels by position, (n, C, E, M)."""
    rows = list(kernels)
    return time_ms[rows], None if power_w is None else power_w[rows]


def run_of(
    time_ms: Floats, power_w: Floats | None, launches: Floats
) -> tuple[Floats, Floats | None, Floats | None]:
    """Time [ms] and power [W] of a run of kernels, and the power of its most demanding kernel."""
    peak_w = None if power_w is None else power_w.max(axis=0)
    return *run_in_sequence(time_ms, power_w, launches), peak_w


def _least(values: Floats) -> Index:
    """Where the least value stands."""
    c, e, m = np.unravel_index(int(np.nanargmin(values)), values.shape)
    return int(c), int(e), int(m)
