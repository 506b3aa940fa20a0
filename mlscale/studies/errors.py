"""Cross-validated errors of predictors, beside the baselines: `study errors`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import WITH_POWER, kinds_for
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, require_quantity
from mlscale.data.surfaces import mean_of_kernels, without_base
from mlscale.errors import InputError
from mlscale.model.predictions import COVERAGE
from mlscale.parameters import parameter
from mlscale.predictors import DEFAULT, applying, default_predictor
from mlscale.predictors.base import PoolsGpus, PredictsFromTimes, PredictsOtherGpus
from mlscale.predictors.baselines import Untrained
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.runs import Runs
from mlscale.studies.base import Part, Row, Rows, Study, Tables, flat
from mlscale.studies.candidates import (
    AnyPredictor,
    Candidate,
    asked_for,
    with_baselines,
    with_features,
)
from mlscale.studies.crossval import (
    LEAVE_ONE_OUT,
    RANDOM_KERNELS,
    TRAININGS,
    Fold,
    FoldPrediction,
    Learnt,
    ProfiledTable,
    Training,
    cross_validate,
    is_elsewhere,
    pooled,
    same_table,
    warn_of_tested_kernels,
)
from mlscale.studies.statistics import behind_best, error_over, paired_by, split_error, summarise

if TYPE_CHECKING:
    import pandas as pd

OWN_TABLE = "own-table"
TRAIN_ON = "train-on"  # the name of the protocol that learns from other tables


@dataclass(frozen=True)
class TestedTable:
    """A table under test with its base, and what predictors of it may learn from.

    learnt: before folds leave more out. sources: the names of these tables.
    """

    name: str
    data: Measurements
    base: HardwareConfig
    learnt: Learnt
    sources: tuple[str, ...]

    @property
    def is_elsewhere(self) -> bool:
        """Whether nothing is learnt on its GPU and grid, from its base."""
        return is_elsewhere((self.data, self.base), self.learnt)

    def can_learn(self, candidate: Candidate, quantity: str) -> bool:
        """Whether a quantity can be learnt: power of an unseen GPU only from its times, or not."""
        is_learnt_there = quantity == "power" and self.is_elsewhere
        return not is_learnt_there or isinstance(candidate.predictor, PredictsFromTimes | Untrained)

    def refusal(self, candidate: Candidate, is_asked: bool) -> str | None:
        """Return why a candidate cannot learn from these tables, None where it can.

        is_asked: whether it was named; then it may know other grids of the same base.
        """
        predictor, names = candidate.predictor, ", ".join(f"'{name}'" for name in self.sources)
        trained, trained_base = self.learnt[0][0]
        if self.is_elsewhere and not isinstance(predictor, PredictsOtherGpus):
            if trained.device != self.data.device:
                return (
                    f"'{candidate.name}' cannot predict a GPU that it was not trained on: "
                    f"'{self.name}' is a table of '{self.data.device}', {names} one of "
                    f"'{trained.device}'"
                )
            if not is_asked or self.base != trained_base:
                return (
                    f"'{candidate.name}' predicts on the grid and from the base of its training: "
                    f"{names} is at {trained_base}, '{self.name}' at {self.base}"
                )
        if len(self.learnt) > 1 and not isinstance(predictor, PoolsGpus | Untrained):
            return (
                f"'{candidate.name}' learns from one table at a time, not from "
                f"{len(self.learnt)}: {names}"
            )
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorStudy(Study):
    """Each part is one predictor with one kind of features, one quantity, table and seed.

    predictors: without any, `wu` and what suits a table best; the baselines stand beside. When
    trained on several tables: `bottleneck`, and no baselines. What suits another of the tables, but
    not this one, a predictor or a kind of features, is left out here. quantity: both, where
    measured, unless any is named. training: what is learnt from, one of TRAININGS. train_on: tables
    to train on instead, by name, each at the base as its own grid has it; then there are no folds,
    and what the options leave open is what suits the first of them. Their kernels of
    applications under test are left out.
    """

    name: ClassVar[str] = "errors"

    quantity: Sequence[str] = ()
    training: str = OWN_TABLE
    train_on: Tables = field(default_factory=dict)

    @property
    def settings(self) -> Row:
        """Return protocol and number of clusters, and what was trained on if not a table itself."""
        settings = super().settings
        if self.training != OWN_TABLE:
            settings["training"] = self.training
        if self.train_on:
            settings |= {"protocol": TRAIN_ON, "train_on": list(self.train_on)}
        return settings

    @property
    def sources(self) -> Tables:
        """Return the tables, and those to train on."""
        return {**self.tables, **{f"{TRAIN_ON} {n}": data for n, data in self.train_on.items()}}

    @property
    def rule(self) -> Training:
        """Return what says which kernels are learnt from."""
        return pooled if self.train_on else TRAININGS[self.training]

    @cached_property
    def pool(self) -> dict[str, ProfiledTable]:
        """Return the tables that training may be on, with their bases. Raises InputError."""
        tables = self.train_on or self.tables
        pairs = {name: (data, self.base_on(name, data)) for name, data in tables.items()}
        return {name: (data.with_base(base), base) for name, (data, base) in pairs.items()}

    @cached_property
    def targets(self) -> list[TestedTable]:
        """Return what is tested and learnt from. Raises InputError where options do not suit."""
        if self.train_on and (self.training, self.protocol) != (OWN_TABLE, LEAVE_ONE_OUT):
            other = self.training if self.protocol == LEAVE_ONE_OUT else self.protocol
            raise InputError(
                "a study that trains on other tables has a protocol of its own: leave out "
                f"'{other}'"
            )
        if self.rule is not same_table and self.protocol == RANDOM_KERNELS:
            raise InputError(f"'{RANDOM_KERNELS}' is for predictors that learn from one table")
        if self.training == "pooled" and len(self.tables) < 2:
            raise InputError("training on several GPUs at once needs two tables at least")
        return [self._target(name, data) for name, data in self.tables.items()]

    def _target(self, name: str, data: Measurements) -> TestedTable:
        base = self.base_on(name, data)
        nothing, everything = np.arange(0), np.arange(len(data.kernels))
        fold: Fold = (nothing, everything) if self.train_on else (everything, nothing)
        learnt = self.rule((data, base), fold, list(self.pool.values()))
        if not learnt and self.train_on:
            raise InputError(
                f"no kernel is left to train on: '{name}' tests every application of "
                f"{', '.join(self.pool)}; {parameter('unseen_gpu')} and {parameter('pooled')} hold "
                "one out at a time"
            )
        if not learnt:
            raise InputError(f"no table is of another GPU than '{data.device}' to train on")
        warn_of_tested_kernels(name, data, learnt)
        used = {id(table) for (table, _), _ in learnt}
        sources = (source for source, (table, _) in self.pool.items() if id(table) in used)
        return TestedTable(name, data, base, learnt, tuple(sources))

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError."""
        return [part for target in self.targets for part in self._parts_of(target)]

    def _parts_of(self, target: TestedTable) -> list[Part]:
        protocol = None if self.train_on else self.protocol
        everyone = self._candidates(target)
        return [
            piece
            for quantity in self._quantities(target, everyone)
            for one in everyone
            if one.predicts(quantity) and target.can_learn(one, quantity)
            for seed in self.seeds_of(one)
            for piece in Part(
                *(target.name, one, protocol, seed, target.base, quantity),
                *(self.clusters_of(one), self.folds),
            ).pieces(target.data)
        ]

    def _quantities(self, target: TestedTable, everyone: Sequence[Candidate]) -> list[str]:
        """Those that are asked for, or all, if they were measured and can be learnt."""
        asked = [self.quantity] if isinstance(self.quantity, str) else list(self.quantity)
        for quantity in asked or target.data.quantities:
            require_quantity(quantity)
            if quantity == "time" or quantity in target.data.quantities:
                target.data.quantity(quantity)
        measured = [q for q in dict.fromkeys(asked or QUANTITIES) if q in target.data.quantities]
        if any(isinstance(one.predictor, PredictsFromTimes) for one in everyone):
            return measured
        if target.is_elsewhere and "power" in asked:
            raise InputError(
                "on unseen GPUs only time is learnt; power needs tables of the GPU itself, or the "
                f"predictor '{Runs.name}'"
            )
        (trained, _), _ = target.learnt[0]
        has_power = trained.power_samples is not None and not target.is_elsewhere
        return [quantity for quantity in measured if quantity == "time" or has_power]

    def _candidates(self, target: TestedTable) -> list[Candidate]:
        """Return those that can learn from what is trained on, and predict the table.

        Raises InputError where one that was asked for cannot.
        """
        data, base = target.learnt[0][0] if self.train_on else (target.data, target.base)
        is_one_table = self.training == OWN_TABLE
        chosen: Iterable[AnyPredictor] = [Bottleneck.name]
        if self.predictors:
            chosen = [one for one in self.predictors if self._suits(one, data)]
        elif is_one_table:
            chosen = dict.fromkeys((*applying(("wu",), data), default_predictor(data, base)))
        found = asked_for([*chosen], data, base)
        asked = {one.name for one in found} if self.predictors else ()
        if is_one_table:
            found = with_baselines(found, data)
        kinds = [kind for kind in self.features if self._gives(kind, data)] or self.features
        able = []
        for candidate in with_features(found, kinds, data):
            refusal = target.refusal(candidate, candidate.name in asked)
            if refusal is None:
                able.append(candidate)
            elif candidate.name in asked:
                raise InputError(refusal)
        return able

    def _suits(self, predictor: AnyPredictor, data: Measurements) -> bool:
        """Whether a predictor is for a table: one for another of the tables alone is not."""
        if predictor == DEFAULT:
            return True
        known = Candidate.from_predictor(predictor).predictor
        return known is None or self._here_or_nowhere(known.applies_to, data)

    def _gives(self, kind: str, data: Measurements) -> bool:
        """Whether a table gives a kind of features: one of another of the tables it may not."""
        plain = kind.removesuffix(WITH_POWER)
        return self._here_or_nowhere(lambda d: plain in kinds_for(d.counter_names, d.device), data)

    def _here_or_nowhere(self, holds: Callable[[Measurements], bool], data: Measurements) -> bool:
        return holds(data) or not any(map(holds, self.tables.values()))

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what measures the errors of a part, and each part's arguments."""
        pool = [] if self.rule is same_table else list(self.pool.values())
        return part_errors, [
            (part, self.tables[part.table], self.rule, pool) for part in self.parts
        ]

    def rows(self, results: Sequence[Any]) -> Rows:
        """Return one row of figures for each table, quantity and candidate."""
        blocks: dict[tuple[str, Any], dict[Candidate, list[tuple[Part, Any]]]] = {}
        for part, result in zip(self.parts, results, strict=True):
            block = blocks.setdefault((part.table, part.quantity), {})
            block.setdefault(part.candidate, []).append((part, result))
        rows = []
        for block in blocks.values():
            errors = {
                candidate: errors_by(paired_by(self.protocol), [result for _, result in group])
                for candidate, group in block.items()
            }
            behind = behind_best(errors)
            rows += [self._row(group) | behind[one] for one, group in block.items()]
        return rows

    def _row(self, group: Sequence[tuple[Part, Any]]) -> Row:
        part, results = group[0][0], [result for _, result in group]
        errors = np.concatenate([result["errors"] for result in results])
        kernels = [kernel for result in results for kernel in result["kernels"]]
        applications = [name for result in results for name in result["applications"]]
        seeds = [part.seed for part, result in group for _ in result["kernels"]]
        means = np.nanmean(errors, axis=1).tolist()
        faults = self.tables[part.table].metadata.get("faults", {})
        drawn = np.array(seeds)
        by_seed = [mean_of_kernels(errors[drawn == seed]) for seed in dict.fromkeys(seeds)]
        return {
            "table": part.table,
            "base": part.base.as_document(),
            "predictor": part.candidate.name,
            "features": part.candidate.features,
            "quantity": part.quantity,
            "n_kernels": len(set(kernels)),
            "n_seeds": self.seed_count,
            **vars(summarise(errors, kernels)),
            "standard_error": split_error(means, applications, seeds, self.protocol),
            "standard_error_over": error_over(self.protocol),
            "mape_by_seed": by_seed if len(by_seed) > 1 else by_seed * self.seed_count,
            "coverage": _coverage(results),
            "train_seconds": float(np.mean([r["train_seconds"] for r in results])),
            "predict_microseconds": float(1e6 * np.mean([r["predict_seconds"] for r in results])),
            "faulty_kernels": [name for name in dict.fromkeys(kernels) if name in faults],
            "without_faulty": _without(faults, errors, kernels),
            **(self._training_columns(part.table) if self.train_on else {}),
        }

    def _training_columns(self, table: str) -> Row:
        """Return what a row says of the other tables that were trained on."""
        [target] = [target for target in self.targets if target.name == table]
        known = {name for data in self.train_on.values() for name in data.applications}
        return {
            "protocol": TRAIN_ON,
            "train_on": list(self.train_on),
            "n_training_kernels": sum(len(kernels) for _, kernels in target.learnt),
            "left_out_of_training": sorted(known.intersection(target.data.applications)),
        }

    def files(self, results: Sequence[Any]) -> dict[str, Any]:
        """errors: the rows; kernels: the mean error of each kernel and seed; predictions."""
        import pandas as pd

        rows = [flat(row) for row in self.rows(results)]
        for row in rows:
            row["mape_by_seed"] = " ".join(f"{mape:.6g}" for mape in row["mape_by_seed"])
            for names in ("faulty_kernels", "train_on", "left_out_of_training"):
                if names in row:
                    row[names] = "; ".join(row[names])
            row["mape_without_faulty"] = (row.pop("without_faulty") or {}).get("mape")
        kernels = [
            {
                "table": part.table,
                "quantity": part.quantity,
                "predictor": part.candidate.name,
                "features": part.candidate.features,
                "seed": part.seed,
                "application": application,
                "kernel": kernel,
                "mape": float(np.nanmean(errors)),
            }
            for part, result in zip(self.parts, results, strict=True)
            for application, kernel, errors in zip(
                result["applications"], result["kernels"], result["errors"], strict=True
            )
        ]
        tables = [self.tables[part.table] for part in self.parts]
        frames = map(predictions_frame, self.parts, tables, results)
        return {"errors": rows, "kernels": kernels, "predictions": pd.concat(frames)}


def part_errors(
    part: Part,
    data: Measurements,
    training: Training = same_table,
    tables: Sequence[ProfiledTable] = (),
) -> dict[str, Any]:
    """Errors [%] of each held-out kernel at every configuration but the base. Raises InputError.

    They are NaN where a kernel was not measured. training: what is learnt from, of these tables.
    `predicted`, `low` and `high` are in ms or W. `covered` is the share [%] of kernel x target in
    the 90 % intervals, these are None without intervals; `train_seconds` are of one fold,
    `predict_seconds` of one kernel.
    """
    folds = part.folds(data)
    predictions = list(
        cross_validate(
            *(data, [part.base], folds, lambda: part.predictors([part.quantity])),
            *(training, tables, COVERAGE),
        )
    )
    held_out = [k for _, test in folds for k in test]
    covered = [prediction.covered for prediction in predictions]
    inside = [shares for shares in covered if shares is not None]
    has_intervals = len(inside) == len(covered)
    return {
        "kernels": [data.kernels[k] for k in held_out],
        "applications": [data.applications[k] for k in held_out],
        "errors": np.concatenate([prediction.errors for prediction in predictions]).tolist(),
        "predicted": _but_the_base(predictions, "values"),
        "low": _but_the_base(predictions, "low"),
        "high": _but_the_base(predictions, "high"),
        "covered": mean_of_kernels(np.concatenate(inside)) if has_intervals else None,
        "train_seconds": float(np.mean([p.train_seconds for p in predictions])),
        "predict_seconds": sum(p.predict_seconds for p in predictions) / len(held_out),
    }


def _but_the_base(predictions: Sequence[FoldPrediction], side: str) -> list[Any] | None:
    """Return 'values', 'low' or 'high' (K, targets) [ms] or [W]; None where a fold has none."""
    factors = [(one, getattr(one.surfaces, side)) for one in predictions]
    if any(values is None for _, values in factors):
        return None
    at = predictions[0].held_out.grid.index(predictions[0].surfaces.base)
    in_units = [one.in_units(values) for one, values in factors]
    return [*without_base(np.concatenate(in_units), at).tolist()]


def predictions_frame(part: Part, data: Measurements, result: Any) -> "pd.DataFrame":
    """Return a row for each kernel held out and target where it was measured: predictions.csv."""
    import pandas as pd

    quantity, at = part.quantity or "time", data.grid.index(part.base)
    folds = enumerate(part.folds(data), part.first_fold or 0)
    numbers, kernels = np.array([(number, k) for number, (_, test) in folds for k in test]).T
    values = np.where(data.measured, data.quantity(quantity), np.nan)
    measured = without_base(values[kernels], at)
    names = {"kernel": np.array(data.kernels), "application": np.array(data.applications)}
    steps = {
        axis: without_base(values.reshape(1, *data.grid.shape), at)[0]
        for axis, values in data.grid.settings().items()
    }
    ends = {name: result[name] for name in ("predicted", "low", "high")}
    frame = pd.DataFrame(
        {
            "table": part.table,
            "quantity": quantity,
            "predictor": part.candidate.name,
            "features": part.candidate.features,
            **{key: np.repeat(each[kernels], measured.shape[1]) for key, each in names.items()},
            **{axis: np.tile(each, len(kernels)) for axis, each in steps.items()},
            "measured": measured.ravel(),
            **{key: np.nan if each is None else np.ravel(each) for key, each in ends.items()},
            "fold": np.repeat(numbers, measured.shape[1]),
            "seed": part.seed,
        }
    )
    return frame[frame["measured"].notna()]


def _coverage(results: Sequence[Any]) -> float | None:
    """The share [%] of kernel x target in the intervals; None where there are none."""
    covered = [result["covered"] for result in results]
    if None in covered:
        return None
    return float(np.average(covered, weights=[len(result["kernels"]) for result in results]))


def _without(faults: Collection[str], errors: Floats, kernels: Sequence[str]) -> Row | None:
    """What sums up the errors of the kernels without a known fault; None where that is all."""
    sound = [k for k, kernel in enumerate(kernels) if kernel not in faults]
    if not sound or len(sound) == len(kernels):
        return None
    return vars(summarise(errors[sound], [kernels[k] for k in sound]))


def errors_by(unit: str, results: Sequence[Any]) -> dict[str, list[float]]:
    """Return the mean errors [%] over targets of the kernels of each unit, with each seed.

    unit: 'application', or 'kernel' for each kernel's alone.
    """
    errors: dict[str, list[float]] = {}
    for result in results:
        for name, targets in zip(result[f"{unit}s"], result["errors"], strict=True):
            errors.setdefault(name, []).append(float(np.nanmean(targets)))
    return errors
