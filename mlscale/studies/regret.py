"""Regret: what following advice costs, as measured, above the true optimum.

The advice for a kernel comes from predictors that were trained without it, or from a strategy
without a predictor.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors import PREDICTORS
from mlscale.predictors.baselines import RateBound
from mlscale.studies.base import Part, Row, Rows, Study, flat, grouped
from mlscale.studies.candidates import AnyPredictor, Candidate, candidates
from mlscale.studies.crossval import cross_validate
from mlscale.studies.errors import CLUSTERS, clusters_of
from mlscale.studies.metrics import kernel_means

HIGHEST, BASE, FIXED = "highest-clocks", "stay-at-base", "best-fixed"
STRATEGIES = (HIGHEST, BASE, FIXED)
NO_LIMITS = Limits()
ENERGY_OBJECTIVES = ("energy", "edp", "ed2p")


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

    def best(self, objective: str, time_ms: Floats, power_w: Floats | None, base: Index) -> Index:
        """The best configuration of a kernel; where none keeps the limits, the least breach.

        time_ms [ms] and power_w [W] are (C, E, M).
        """
        base_time_ms = float(time_ms[base])
        if advice.feasible(self.limits, time_ms, power_w, base_time_ms).any():
            return advice.best_index(objective, time_ms, power_w, base_time_ms, self.limits)
        return _least(advice.limit_ratio(self.limits, time_ms, power_w, base_time_ms))

    def best_fixed(
        self, objective: str, data: Measurements, training: Sequence[int] | Indices
    ) -> Index:
        """The one configuration that serves the training kernels best.

        The one at which the fewest of them break a limit, of these the one of the least mean
        ratio of the objective to what `best` would reach from the measured surfaces.
        """
        base = data.grid.index(self.base)
        broken = np.zeros(data.grid.shape)
        ratios = np.zeros(data.grid.shape)
        for time, power in _by_kernel(data.time_ms, self.power_w(data), training):
            values = advice.objective_values(objective, time, power)
            ratios += values / values[self.best(objective, time, power, base)]
            broken += ~advice.feasible(self.limits, time, power, float(time[base]))
        return _least(np.where(broken == broken.min(), ratios, np.inf))


@dataclass(frozen=True, eq=False, kw_only=True)
class RegretStudy(Study):
    """Each part is one advisor, a predictor or one of STRATEGIES, with one seed on one table.

    predictors: without any, all that apply to a table and learn. features: without any, the kind
    that suits a table best. objectives: without any, those of energy, or time without power. A
    predictor that knows no power is left out of what needs power. static_power_w: to add to dynamic
    power, or power of unknown kind.
    """

    predictors: Sequence[AnyPredictor] = ()
    features: Sequence[str] = ()
    objectives: Sequence[str] = ()
    limits: Limits = NO_LIMITS
    static_power_w: float | None = None
    clusters: int | None = None

    @property
    def settings(self) -> Row:
        """The number of clusters, and the limits."""
        return {"clusters": self.clusters or CLUSTERS, "limits": vars(self.limits)}

    @cached_property
    def goals(self) -> dict[str, Goal]:
        """The goal of each table. Raises InputError."""
        return {table: self._goal(table, data) for table, data in self.tables.items()}

    def _goal(self, table: str, data: Measurements) -> Goal:
        """Raise InputError where objectives or limits need power that is not there or not whole."""
        has_power = data.power_samples is not None
        usual = ENERGY_OBJECTIVES if has_power else ("time",)
        goal = Goal(
            self.base_of(table), tuple(dict.fromkeys(self.objectives)) or usual, self.limits
        )
        for objective in goal.objectives:
            if objective not in advice.COSTS:
                known = ", ".join(advice.COSTS)
                raise InputError(f"there is no objective '{objective}'; one of {known}")
        needing = [f"the objective '{o}'" for o in goal.objectives if o != "time"]
        needing += ["a limit of power"] if self.limits.max_power_w is not None else []
        if needing and not has_power:
            raise InputError(f"{needing[0]} needs power; '{table}' has no column 'power_w'")
        if not has_power:
            return goal
        try:
            kind = data.metadata.get("power_kind")
            static_power_w = advice.static_power(kind, self.static_power_w)
        except InputError as error:
            raise InputError(f"'{table}': {error}") from None
        if static_power_w is None and set(needing) - {"the objective 'power'"}:
            raise InputError(
                f"'{table}': power_w is dynamic power; give the rest as --static-power W"
            )
        return replace(goal, static_power_w=static_power_w or 0.0)

    @cached_property
    def parts(self) -> list[Part]:
        """All parts. Raises InputError."""
        return [
            Part(table, candidate, self.split, seed, None, count, (goal.base,))
            for table, goal in self.goals.items()
            for candidate in self._advisors(self.tables[table])
            if known_objectives(candidate, goal)
            for count in [clusters_of(candidate, self.clusters)]
            for seed in self.seeds_of(candidate)
        ]

    def _advisors(self, data: Measurements) -> list[Candidate]:
        """The strategies and, behind them, the predictors."""
        learning = [
            name
            for name, predictor in PREDICTORS.items()
            if predictor.applies_to(data) and not issubclass(predictor, RateBound)
        ]
        predictors = candidates(self.predictors or learning, self.features, data, alone=True)
        return [*map(Candidate, STRATEGIES), *predictors]

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """What each part chooses."""
        return part_choices, [
            (part, self.tables[part.table], self.goals[part.table]) for part in self.parts
        ]

    def choices(self, results: Sequence[Any]) -> Rows:
        """A row for each choice: what was chosen, and what it costs as measured.

        regret_percent: 100 (objective there / objective at the best configuration that keeps the
        limits - 1); None where the choice breaks a limit, so that the two cannot be compared.
        best_saving_percent: what the true optimum saves against the base. A kernel of which no
        configuration keeps the limits is left out.
        """
        rows = (
            self._choice(part, objective, k, (c, e, m))
            for part, result in zip(self.parts, results, strict=True)
            for objective, indices in result["indices"].items()
            for k, (c, e, m) in zip(result["kernels"], indices, strict=True)
        )
        return [row for row in rows if row is not None]

    def _choice(self, part: Part, objective: str, k: int, chosen: Index) -> Row | None:
        data, goal = self.tables[part.table], self.goals[part.table]
        [(time_ms, power_w)] = _by_kernel(data.time_ms, goal.power_w(data), [k])
        base = data.grid.index(goal.base)
        values = advice.objective_values(objective, time_ms, power_w)
        feasible = advice.feasible(goal.limits, time_ms, power_w, float(time_ms[base]))
        if not feasible.any():
            return None
        least = float(values[feasible].min())
        regret = float(100 * (values[chosen] / least - 1)) if feasible[chosen] else None
        return {
            "table": part.table,
            "objective": objective,
            "advisor": part.candidate.name,
            "features": part.candidate.features,
            "seed": part.seed,
            "application": data.applications[k],
            "kernel": data.kernels[k],
            **data.grid.config(chosen).as_dict(),
            "breaks_limits": not feasible[chosen],
            "regret_percent": regret,
            "saving_percent": float(advice.saving_percent(values[chosen], values[base])),
            "best_saving_percent": float(advice.saving_percent(least, values[base])),
            "slowdown_percent": float(advice.slowdown_percent(time_ms[chosen], time_ms[base])),
        }

    def rows(self, results: Sequence[Any]) -> Rows:
        """One row of figures for each table, objective and advisor.

        Regrets are summed up over kernels, the mean over seeds of each; None where no choice kept
        the limits. Raises InputError where no configuration of any kernel keeps them.
        """
        groups = grouped(self.choices(results), "table", "objective", "advisor", "features")
        if not groups:
            raise InputError("no configuration of any kernel keeps the limits")
        return [self._row(group) for group in groups.values()]

    def _row(self, group: Rows) -> Row:
        first = group[0]
        compared = [row for row in group if not row["breaks_limits"]]
        regrets = kernel_means(
            np.array([[row["regret_percent"]] for row in compared]), [r["kernel"] for r in compared]
        )
        each = list(regrets.values())
        worst = max(regrets, key=lambda kernel: regrets[kernel]) if regrets else None
        judged = {row["kernel"] for row in group}
        return {
            **{name: first[name] for name in ("table", "objective", "advisor", "features")},
            "base": self.goals[first["table"]].base.as_dict(),
            "n_kernels": len(judged),
            "n_beyond_limits": len(self.tables[first["table"]].kernels) - len(judged),
            "n_seeds": self.seeds,
            "breaks_limits_percent": 100 * (1 - len(compared) / len(group)),
            "regret_mean": float(np.mean(each)) if each else None,
            "regret_median": float(np.median(each)) if each else None,
            "regret_p90": float(np.percentile(each, 90)) if each else None,
            "worst_kernel": worst,
            "worst_regret": None if worst is None else regrets[worst],
            **{
                f"{name}_mean": float(np.mean([row[f"{name}_percent"] for row in group]))
                for name in ("saving", "best_saving", "slowdown")
            },
        }

    def files(self, results: Sequence[Any]) -> dict[str, Rows]:
        """advice: the rows; choices: what was chosen for each kernel and seed."""
        return {"advice": [flat(row) for row in self.rows(results)],
                "choices": self.choices(results)}  # fmt: skip


def known_objectives(candidate: Candidate, goal: Goal) -> tuple[str, ...]:
    """The objectives that an advisor can choose by: without power, those that need none."""
    if candidate.predicts("power"):
        return goal.objectives
    return tuple(o for o in goal.objectives if o == "time" and not goal.limits.max_power_w)


def part_choices(part: Part, data: Measurements, goal: Goal) -> dict[str, Any]:
    """Choose for every held-out kernel from what was learnt without it. Raises InputError.

    Gives the kernels, by position in the table, and by objective the index chosen for each.
    """
    folds = part.folds(data)
    held_out = [int(k) for _, test in folds for k in test]
    objectives = known_objectives(part.candidate, goal)
    base = data.grid.index(goal.base)
    indices: dict[str, list[Index]]
    if part.candidate.name == HIGHEST:
        indices = {o: [data.grid.index("highest")] * len(held_out) for o in objectives}
    elif part.candidate.name == BASE:
        indices = {o: [base] * len(held_out) for o in objectives}
    elif part.candidate.name == FIXED:
        indices = {}
        for o in objectives:
            fixed = [(goal.best_fixed(o, data, train), len(test)) for train, test in folds]
            indices[o] = [best for best, count in fixed for _ in range(count)]
    else:
        predicted = list(_by_kernel(*_predictions(part, data, goal)))
        indices = {
            o: [goal.best(o, time_ms, power_w, base) for time_ms, power_w in predicted]
            for o in objectives
        }
    return {"kernels": held_out, "indices": indices}


def _predictions(part: Part, data: Measurements, goal: Goal) -> tuple[Floats, Floats | None]:
    """Time [ms] and power [W] of the held-out kernels, (K, C, E, M), in the order of the folds."""
    has_power = data.power_samples is not None and part.candidate.predicts("power")
    quantities = ("time", "power") if has_power else ("time",)
    make = partial(part.predictors, quantities, intervals=False)
    costs: dict[str, list[Floats]] = {quantity: [] for quantity in quantities}
    for fold in cross_validate(data, part.bases, part.folds(data), make):
        costs[fold.predictor.quantity].append(fold.predicted)
    time_ms = np.concatenate(costs["time"])
    power_w = np.concatenate(costs["power"]) + goal.static_power_w if has_power else None
    return time_ms, power_w


def _by_kernel(
    time_ms: Floats, power_w: Floats | None, kernels: Sequence[int] | Indices | None = None
) -> Iterator[tuple[Floats, Floats | None]]:
    """Time and power (C, E, M) of each kernel, all unless some are named by position."""
    for k in range(len(time_ms)) if kernels is None else kernels:
        yield time_ms[k], None if power_w is None else power_w[k]


def _least(values: Floats) -> Index:
    """Where the least value stands."""
    c, e, m = np.unravel_index(int(np.nanargmin(values)), values.shape)
    return int(c), int(e), int(m)
