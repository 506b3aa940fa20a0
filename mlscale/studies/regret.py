"""Regret: what following advice costs, as measured, above the true optimum.

The advice for a kernel, or for a run of several, comes from predictors that were trained without
its applications, or from a strategy without a predictor. Runs are random mixes of a table's
applications, each kernel launched as often as chance says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import run_in_sequence
from mlscale.errors import InputError
from mlscale.model.predictions import COVERAGE, coverage_of_each
from mlscale.parameters import parameter
from mlscale.predictors import PREDICTORS, applying
from mlscale.predictors.base import TrainingSet, predict_surfaces
from mlscale.predictors.baselines import RateBound
from mlscale.predictors.runs import Runs
from mlscale.studies.base import Part, Row, Rows, Study, flat, grouped
from mlscale.studies.candidates import Candidate, asked_for, with_features
from mlscale.studies.crossval import LEAVE_ONE_OUT, Side, cross_validate, from_two_readings
from mlscale.studies.statistics import split_error, standard_error

HIGHEST, BASE, FIXED = "highest-clocks", "stay-at-base", "best-fixed"
STRATEGIES = (HIGHEST, BASE, FIXED)
CAUTIOUS, EXPECTED = "cautious", "expected"  # what keeps a limit of time: the high end, the value
A_POINT = 1.0  # percent of the time at the base; a limit passed by less counts as kept
ENERGY_OBJECTIVES = ("energy", "edp", "ed2p")
MOST_APPLICATIONS = 8
LAUNCH_SIGMA = 2.0  # in the logarithm: nine launch counts in ten lie within a factor 27 of 1
_SEED = 20_260_213  # keeps the runs apart from the seeds of splits and predictors


@dataclass(frozen=True)
class LaunchMix:
    """Kernels that run one after the other, by position in the table, and how often each does.

    number: from 1. launches: positive, not always whole; only their ratios matter to a regret.
    """

    number: int
    kernels: tuple[int, ...]
    launches: tuple[float, ...]


class Pick(NamedTuple):
    """The configuration chosen, and the interval of what it is predicted to save [%].

    expected: what is chosen by expected times, where it was by the high ends of their intervals.
    """

    config: Index
    saving_range: tuple[float, float] | None = None
    expected: "Pick | None" = None


class MixCosts(NamedTuple):
    """What a mix of kernels costs: time [ms] and power [W], (C, E, M); None without power.

    peak_w: power of the most demanding kernel.
    """

    time_ms: Floats
    power_w: Floats | None
    peak_w: Floats | None


def mix_costs(time_ms: Floats, power_w: Floats | None, mix: LaunchMix) -> MixCosts:
    """What a mix costs. time_ms, power_w: of all kernels of its table, (K, C, E, M)."""
    kernels, launches = list(mix.kernels), np.array(mix.launches)
    watts = None if power_w is None else power_w[kernels]
    peak_w = None if watts is None else watts.max(axis=0)
    return MixCosts(*run_in_sequence(time_ms[kernels], watts, launches), peak_w)


def single_kernel(k: int) -> LaunchMix:
    """The kernel at a position, launched once."""
    return LaunchMix(k + 1, (k,), (1.0,))


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


def mixes_to_advise(part: Part, data: Measurements, runs: int) -> list[LaunchMix]:
    """The random runs to advise, or without any each held-out kernel by itself."""
    if runs:
        return random_runs(data.applications, runs)
    return [single_kernel(int(k)) for _, test in part.folds(data) for k in test]


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

    def known_to(self, candidate: Candidate) -> tuple[str, ...]:
        """The objectives that an advisor can choose by: without power, those that need none."""
        if candidate.predicts("power"):
            return self.objectives
        return tuple(o for o in self.objectives if o == "time" and not self.limits.max_power_w)

    def keeps(self, costs: MixCosts, base: Index) -> Mask:
        """Where a mix keeps the limits, (C, E, M).

        As in `advise`, limits of time are the run's, and one of power is every kernel's.
        """
        return advice.feasible(self.limits, costs.time_ms, costs.peak_w, float(costs.time_ms[base]))

    def best(
        self, objective: str, costs: MixCosts, base: Index, longest_ms: Floats | None = None
    ) -> Index:
        """The best configuration of a mix; where none keeps the limits, the least breach.

        longest_ms: the times that limits of time hold for, unless nothing keeps them so; by
        default those of the mix.
        """
        time_ms, power_w, peak_w = costs
        base_ms = float(time_ms[base])
        if longest_ms is not None:
            is_sure = advice.feasible(self.limits, longest_ms, peak_w, base_ms)
            time_ms = np.where(is_sure, time_ms, np.nan) if is_sure.any() else time_ms
        if not advice.feasible(self.limits, time_ms, peak_w, base_ms).any():
            return _least(advice.limit_ratio(self.limits, time_ms, peak_w, base_ms))
        return advice.best_index(
            objective, time_ms, power_w, base_ms, self.limits, peak_power_w=peak_w
        )

    def passes(self, time_ms: float, base_ms: float) -> bool | None:
        """Whether a limit of time is passed by over A_POINT; None without such a limit."""
        if not self.limits.has_time:
            return None
        return 100 * (time_ms - self.limits.longest_ms(base_ms)) / base_ms > A_POINT

    def saving_range(
        self, objective: str, sides: Sequence[MixCosts], at: Index, base: Index
    ) -> tuple[float, float] | None:
        """The interval of a mix's saving at a configuration [%]; None where there is none.

        At the base there is none: nothing is saved there for certain. sides: the mix as
        predicted, at the low ends of its intervals, and at the high ends.
        """
        if at == base:
            return None
        values = [advice.objective_values(objective, side.time_ms, side.power_w) for side in sides]
        at_base = values[0][base]
        savings = [float(advice.saving_percent(value[at], at_base)) for value in values]
        return advice.interval_ends(savings) if np.isfinite(savings).all() else None

    def best_fixed(
        self, objective: str, data: Measurements, trainings: Sequence[Sequence[int]]
    ) -> list[Index]:
        """For each set of training kernels the one configuration that serves them best.

        The one at which the fewest of them break a limit, of these the one of the least mean
        ratio of the objective to what `best` would reach from the measured surfaces.
        """
        base, power_w = data.grid.index(self.base), self.power_w(data)
        values = advice.objective_values(objective, data.time_ms, power_w)
        ratios, broken = np.empty(values.shape), np.empty(values.shape)
        for k in range(len(values)):
            costs = mix_costs(data.time_ms, power_w, single_kernel(k))
            ratios[k] = values[k] / values[k][self.best(objective, costs, base)]
            broken[k] = ~self.keeps(costs, base)
        fixed = []
        for training in trainings:
            breaches = broken[list(training)].sum(axis=0)
            mean = ratios[list(training)].mean(axis=0)
            is_known = (breaches == breaches.min()) & data.measured.any(axis=0)
            fixed.append(_least(np.where(is_known, mean, np.inf)))
        return fixed


@dataclass(frozen=True, eq=False, kw_only=True)
class RegretStudy(Study):
    """Each part is one advisor, a predictor or one of STRATEGIES, with one seed on one table.

    predictors: without any, all that apply to a table and learn. features: without any, the kind
    that suits a table best. objectives: without any, those of energy, or time without power. A
    predictor that knows no power is left out of what needs power. static_power_w: to add to dynamic
    power, or power of unknown kind. runs: how many random runs of the held-out kernels to advise
    one configuration each; 0 to advise each kernel by itself.
    """

    name: ClassVar[str] = "advice"

    objectives: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    static_power_w: float | None = None
    runs: int = 0

    @property
    def settings(self) -> Row:
        """Return the protocol, the number of clusters, the limits, and the number of runs."""
        return {**super().settings, "limits": vars(self.limits), "runs": self.runs}

    @cached_property
    def goals(self) -> dict[str, Goal]:
        """The goal of each table. Raises InputError where power is not there or not whole."""
        return {table: self._goal(table, data) for table, data in self.tables.items()}

    def _goal(self, table: str, data: Measurements) -> Goal:
        data.quantity("time")
        has_power, base = data.power_w is not None, self.base_on(table, data)
        usual = ENERGY_OBJECTIVES if has_power else ("time",)
        objectives = tuple(dict.fromkeys(self.objectives)) or usual
        for objective in objectives:
            advice.require_objective(objective, advice.COSTS)
        needing = [f"the objective '{o}'" for o in objectives if o != "time"]
        needing += ["a limit of power"] if self.limits.max_power_w is not None else []
        if needing and not has_power:
            raise InputError(f"{needing[0]} needs power; '{table}' has no column 'power_w'")
        if not has_power:
            return Goal(base, objectives, self.limits)
        try:
            static_w = advice.static_power(data.metadata.get("power_kind"), self.static_power_w)
        except InputError as error:
            raise InputError(f"'{table}': {error}") from None
        if static_w is None and set(needing) - {"the objective 'power'"}:
            raise InputError(
                f"'{table}': power_w is dynamic power; give the rest as "
                f"{parameter('static_power', 'W')}"
            )
        return Goal(base, objectives, self.limits, static_w or 0.0)

    @cached_property
    def parts(self) -> list[Part]:
        """All parts. Raises InputError."""
        if self.runs and self.protocol != LEAVE_ONE_OUT:
            raise InputError(f"runs need the protocol '{LEAVE_ONE_OUT}'")
        return [
            Part(
                table, one, self.protocol, seed, goal.base, None, self.clusters_of(one), self.folds
            )
            for table, goal in self.goals.items()
            for one in self._advisors(self.tables[table], goal.base)
            if goal.known_to(one)
            for seed in self.seeds_of(one)
        ]

    def _advisors(self, data: Measurements, base: HardwareConfig) -> list[Candidate]:
        asked = self.predictors or [
            name
            for name in applying(PREDICTORS, data)
            if not issubclass(PREDICTORS[name], RateBound)
        ]
        predictors = with_features(asked_for(asked, data, base), self.features, data)
        return [*map(Candidate, STRATEGIES), *predictors]

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """What each part chooses."""
        return part_choices, [
            (part, self.tables[part.table], self.goals[part.table], self.runs, self._others(part))
            for part in self.parts
        ]

    def document(self, results: Sequence[Any]) -> Row:
        """Return everything as JSON values, and where `runs` learnt from other GPUs' tables."""
        learnt = {part.table: None for part in self.parts if self._others(part)}
        told = {"runs_from_other_gpus": [*learnt]} if learnt else {}
        return {**super().document(results), **told}

    def _others(self, part: Part) -> list[TrainingSet]:
        """The tables of other GPUs with their bases, for `runs`; none for other advisors."""
        if part.candidate.name != Runs.name:
            return []
        device = self.tables[part.table].device
        return [
            (data, self.goals[table].base)
            for table, data in self.tables.items()
            if data.device != device
        ]

    def choices(self, results: Sequence[Any]) -> Rows:
        """A row for each choice: what was chosen, by which rule, and what it costs as measured.

        passes_limit: whether it takes longer than a limit of time by over A_POINT; None without.

        regret_percent: 100 (objective there / objective at the best configuration that keeps the
        limits - 1); None where the choice breaks a limit, so that the two cannot be compared.
        best_saving_percent: what the true optimum saves against the base. A kernel or run of which
        no configuration keeps the limits is left out of all, and one of which any choice was not
        measured.
        """
        rows: list[tuple[tuple[str, str, int], Row | None]] = []
        for part, result in zip(self.parts, results, strict=True):
            for objective, choices in result.items():
                for mix, choice in zip(self._mixes(part), choices, strict=True):
                    key = (part.table, objective, mix.number)
                    rows += [
                        (key, self._choice(part, objective, mix, one)) for one in _by_rule(choice)
                    ]
        left_out = {key for key, row in rows if row is None}
        return [row for key, row in rows if row is not None and key not in left_out]

    def _mixes(self, part: Part) -> list[LaunchMix]:
        return mixes_to_advise(part, self.tables[part.table], self.runs)

    def _choice(
        self,
        part: Part,
        objective: str,
        mix: LaunchMix,
        choice: tuple[str | None, Index, tuple[float, float] | None],
    ) -> Row | None:
        rule, chosen, saving_range = choice
        data, goal = self.tables[part.table], self.goals[part.table]
        base = data.grid.index(goal.base)
        measured_ms = np.where(data.measured, data.time_ms, np.nan)
        costs = mix_costs(measured_ms, goal.power_w(data), mix)
        feasible = goal.keeps(costs, base)
        if not feasible.any() or np.isnan(costs.time_ms[chosen]):
            return None
        time_ms = costs.time_ms
        values = advice.objective_values(objective, time_ms, costs.power_w)
        least = float(values[feasible].min())
        regret = float(100 * (values[chosen] / least - 1)) if feasible[chosen] else None
        low, high = saving_range or (None, None)
        return {
            "table": part.table,
            "objective": objective,
            "advisor": part.candidate.name,
            "features": part.candidate.features,
            "rule": rule,
            "seed": part.seed,
            **self._names(data, mix),
            **data.grid.config(chosen).as_dict(),
            "breaks_limits": not feasible[chosen],
            "passes_limit": goal.passes(float(time_ms[chosen]), float(time_ms[base])),
            "regret_percent": regret,
            "saving_percent": float(advice.saving_percent(values[chosen], values[base])),
            "saving_low_percent": low,
            "saving_high_percent": high,
            "best_saving_percent": float(advice.saving_percent(least, values[base])),
            "slowdown_percent": float(advice.slowdown_percent(time_ms[chosen], time_ms[base])),
        }

    def _names(self, data: Measurements, mix: LaunchMix) -> Row:
        """What a row calls a mix: a run's number and applications, or the kernel that it is."""
        if not self.runs:
            [k] = mix.kernels
            return {"application": data.applications[k], "kernel": data.kernels[k]}
        applications = dict.fromkeys(data.applications[k] for k in mix.kernels)
        return {"run": mix.number, "applications": ", ".join(applications)}

    def rows(self, results: Sequence[Any]) -> Rows:
        """One row of figures for each table, objective, advisor and rule.

        Regrets are summed up over kernels or runs, the mean over seeds of each; None where no
        choice kept the limits. Raises InputError where no configuration of any kernel keeps them.
        """
        keys = ("table", "objective", "advisor", "features", "rule")
        groups = grouped(self.choices(results), *keys)
        if not groups:
            raise InputError("no configuration of any kernel keeps the limits")
        return [self._row(group) for group in groups.values()]

    def _row(self, group: Rows) -> Row:
        first = group[0]
        what = "run" if self.runs else "kernel"
        compared = [row for row in group if not row["breaks_limits"]]
        regrets = {
            name: float(np.mean([row["regret_percent"] for row in rows]))
            for (name,), rows in grouped(compared, what).items()
        }
        each = list(regrets.values())
        worst = max(regrets, key=lambda name: regrets[name]) if regrets else None
        applications = {row[what]: row.get("applications") for row in group}
        asked = (part for part in self.parts if part.table == first["table"])
        n_all = len({mix.number for part in asked for mix in self._mixes(part)})
        return {
            **{name: first[name] for name in ("table", "objective", "advisor", "features", "rule")},
            "base": self.goals[first["table"]].base.as_document(),
            f"n_{what}s": len(applications),
            "n_beyond_limits": n_all - len(applications),
            "n_seeds": self.seed_count,
            "breaks_limits_percent": 100 * (1 - len(compared) / len(group)),
            "passes_limit_percent": _passes_percent(group),
            "regret_mean": float(np.mean(each)) if each else None,
            "regret_standard_error": self._standard_error(compared),
            "regret_median": float(np.median(each)) if each else None,
            "regret_p90": float(np.percentile(each, 90)) if each else None,
            f"worst_{what}": worst,
            **({"worst_run_applications": applications.get(worst)} if self.runs else {}),
            "worst_regret": None if worst is None else regrets[worst],
            **{
                f"{name}_mean": float(np.mean([row[f"{name}_percent"] for row in group]))
                for name in ("saving", "best_saving", "slowdown")
            },
            "interval_holds_percent": _interval_holds_percent(group),
        }

    def _standard_error(self, compared: Rows) -> float | None:
        """Of the mean regret: over runs, or over applications or splits as the protocol has it."""
        regrets = [row["regret_percent"] for row in compared]
        if self.runs:
            return standard_error(regrets, [row["run"] for row in compared])
        applications = [row["application"] for row in compared]
        return split_error(regrets, applications, [row["seed"] for row in compared], self.protocol)

    def files(self, results: Sequence[Any]) -> dict[str, Any]:
        """advice: the rows; choices: what was chosen for each kernel or run, and seed; runs."""
        tables = {self.name: [*map(flat, self.rows(results))], "choices": self.choices(results)}
        if self.runs:
            tables["runs"] = [
                {
                    "table": table,
                    "run": run.number,
                    "application": data.applications[k],
                    "kernel": data.kernels[k],
                    "launches": launches,
                }
                for table, data in self.tables.items()
                for run in random_runs(data.applications, self.runs)
                for k, launches in zip(run.kernels, run.launches, strict=True)
            ]
        return tables


def part_choices(
    part: Part, data: Measurements, goal: Goal, runs: int = 0, others: Sequence[TrainingSet] = ()
) -> dict[str, list[Pick]]:
    """Choose for every held-out kernel, or run of them, from what was learnt without it.

    Gives by objective what is chosen for each of `mixes_to_advise`; for runs, with the interval of
    its saving where the predictors give intervals. Where there is a limit of time, the high ends
    of the times keep it, and what the expected times choose stands beside. A kernel is predicted
    from its fold, and the fixed configuration is learnt from what no fold of the run's kernels
    holds out. others: tables of other GPUs, where these are learnt from in place of the table's own
    kernels, and each kernel is read at a second clock. Raises InputError.
    """
    objectives = goal.known_to(part.candidate)
    base = data.grid.index(goal.base)
    mixes = mixes_to_advise(part, data, runs)
    if part.candidate.name in (HIGHEST, BASE):
        always = base if part.candidate.name == BASE else data.grid.index("highest")
        return {objective: [Pick(always)] * len(mixes) for objective in objectives}
    if part.candidate.name == FIXED:
        trained_on = {int(k): set(train.tolist()) for train, test in part.folds(data) for k in test}
        trainings = [
            sorted(set.intersection(*(trained_on[k] for k in mix.kernels))) for mix in mixes
        ]
        return {o: [*map(Pick, goal.best_fixed(o, data, trainings))] for o in objectives}
    if others:
        law = part.candidate.predictor
        sides, longest_ms = from_two_readings(law, data, goal.base, goal.static_power_w, others)
    else:
        sides, longest_ms = _predictions(part, data, goal, with_intervals=runs > 0)
    choices: dict[str, list[Pick]] = {objective: [] for objective in objectives}
    for mix in mixes:
        costs = [mix_costs(time_ms, power_w, mix) for time_ms, power_w in sides]
        longest = None if longest_ms is None else mix_costs(longest_ms, None, mix).time_ms
        for objective, chosen in choices.items():
            chosen.append(_chosen(objective, goal, costs, base, longest))
    return choices


def _chosen(
    objective: str, goal: Goal, sides: Sequence[MixCosts], base: Index, longest_ms: Floats | None
) -> Pick:
    """What is chosen for a mix.

    sides: as of `Goal.saving_range`, or the mix as predicted alone. longest_ms: the high ends of
    its times, where a limit of time holds for them.
    """

    def choice(limited_ms: Floats | None, expected: Pick | None = None) -> Pick:
        best = goal.best(objective, sides[0], base, limited_ms)
        ends = goal.saving_range(objective, sides, best, base) if len(sides) > 1 else None
        return Pick(best, ends, expected)

    expected = choice(None)
    return expected if longest_ms is None else choice(longest_ms, expected)


def _by_rule(choice: Pick) -> list[tuple[str | None, Index, tuple[float, float] | None]]:
    """A choice and what stands beside it: rule, configuration, interval of the saving."""
    at, saving_range, expected = choice  # lists, where a record kept it
    if expected is None:
        return [(None, _index(at), saving_range)]
    expected_at, expected_range, _ = expected
    return [(CAUTIOUS, _index(at), saving_range), (EXPECTED, _index(expected_at), expected_range)]


def _index(at: Sequence[int]) -> Index:
    c, e, m = at
    return c, e, m


def _predictions(
    part: Part, data: Measurements, goal: Goal, with_intervals: bool
) -> tuple[list[Side], Floats | None]:
    """Predicted time [ms] and power [W], (K, C, E, M); NaN of kernels that no fold holds out.

    Time is NaN where a kernel was not measured too, so that nothing is chosen there.
    With intervals these at their low and at their high ends too, which hold at once, NaN where
    there are none. Besides the high ends of time alone, where there is a limit of time and they
    are predicted.
    """
    has_power = data.power_samples is not None and part.candidate.predicts("power")
    quantities = ("time", "power") if has_power else ("time",)
    sides = ("values", "low", "high") if with_intervals else ("values",)
    has_limit = goal.limits.has_time
    make = partial(part.predictors, quantities, intervals=with_intervals or has_limit)
    coverage = coverage_of_each(len(quantities)) if with_intervals else None
    shape = (len(sides), len(data.kernels), *data.grid.shape)
    costs = {quantity: np.full(shape, np.nan) for quantity in quantities}
    folds = part.folds(data)
    held_out = [test for _, test in folds for _ in quantities]
    longest_ms = np.full(shape[1:], np.nan)
    predictions = cross_validate(data, [part.base], folds, make, coverage=coverage)
    for test, fold in zip(held_out, predictions, strict=True):
        for place, side in enumerate(sides):
            factors = getattr(fold.surfaces, side)
            if factors is not None:
                costs[fold.predictor.quantity][place, test] = fold.in_units(factors)
        if has_limit and fold.predictor.quantity == "time":
            profiles = fold.held_out.profiles(part.base)
            high = predict_surfaces(fold.predictor, profiles, coverage=COVERAGE).high
            longest_ms[test] = np.nan if high is None else fold.in_units(high)
    longest_ms[~data.measured] = np.nan
    costs["time"][:, ~data.measured] = np.nan
    power_w = costs["power"] + goal.static_power_w if has_power else [None] * len(sides)
    has_ends = np.isfinite(longest_ms).any()
    return list(zip(costs["time"], power_w, strict=True)), longest_ms if has_ends else None


def _interval_holds_percent(group: Rows) -> float | None:
    """How often the interval of a saving holds what is measured; None where there is none."""
    held = [
        row["saving_low_percent"] <= row["saving_percent"] <= row["saving_high_percent"]
        for row in group
        if row["saving_low_percent"] is not None
    ]
    return 100 * sum(held) / len(held) if held else None


def _passes_percent(group: Rows) -> float | None:
    """How often a limit of time is passed by over A_POINT; None without one."""
    passes = [row["passes_limit"] for row in group]
    return None if None in passes else 100 * sum(passes) / len(passes)


def _least(values: Floats) -> Index:
    c, e, m = np.unravel_index(int(np.nanargmin(values)), values.shape)
    return int(c), int(e), int(m)
