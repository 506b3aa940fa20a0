"""Cross-validated errors of predictors, beside the baselines: `study errors`.

Every study by its name, and a study as a function that gives a frame of figures.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import WITH_POWER, kinds_for
from mlscale.data.grid import BASE_NAMES
from mlscale.data.measurements import Measurements, read
from mlscale.errors import InputError, extra_named, require_type
from mlscale.model.predictions import COVERAGE
from mlscale.predictors import applying, default_predictor
from mlscale.predictors.base import PoolsGpus, PredictsFromTimes, PredictsOtherGpus
from mlscale.predictors.baselines import Untrained
from mlscale.predictors.board_power import BoardPower
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.candidates import AnyPredictor, Candidate, candidates
from mlscale.studies.crossval import (
    RANDOM_KERNELS,
    Learnt,
    Part,
    ProfiledTable,
    Row,
    Rows,
    Study,
    Tables,
    TrainingRule,
    cross_validate,
    flat,
    is_elsewhere,
    measured_quantities,
    own,
    pooled,
    unseen,
    warn_of_tested_kernels,
)
from mlscale.studies.regret import RegretStudy
from mlscale.studies.statistics import behind_best, error_over, split_error, summarise

if TYPE_CHECKING:
    import pandas as pd


TrainingOn = Literal["own-table", "pooled", "unseen-gpu"]

TRAININGS: dict[str, TrainingRule] = {"own-table": own, "pooled": pooled, "unseen-gpu": unseen}
OWN_TABLE: TrainingOn = "own-table"
TRAIN_ON = "train-on"  # the name of the protocol that learns from other tables


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

    quantity: str | Sequence[str] = ()
    training: TrainingOn = OWN_TABLE
    train_on: Tables = field(default_factory=dict)

    @property
    def settings(self) -> Row:
        """Return the number of clusters, and what was trained on if not a table itself."""
        training: Row = {} if self.training == OWN_TABLE else {"training": self.training}
        if self.train_on:
            training["train_on"] = list(self.train_on)
        return {**super().settings, **training}

    @property
    def protocol(self) -> str:
        """Return who is held out: nobody of the tables to train on, if there are any."""
        return TRAIN_ON if self.train_on else self.split

    @property
    def sources(self) -> Tables:
        """Return the tables, and those to train on."""
        return {**self.tables, **{f"{TRAIN_ON} {n}": data for n, data in self.train_on.items()}}

    @property
    def rule(self) -> TrainingRule:
        """Return what says which kernels are learnt from. Raises InputError on another word."""
        if self.training not in TRAININGS:
            raise InputError(
                f"there is no training '{self.training}'; one of {', '.join(TRAININGS)}"
            )
        return pooled if self.train_on else TRAININGS[self.training]

    @cached_property
    def targets(self) -> dict[str, ProfiledTable]:
        """Return each table with its base. Raises InputError."""
        return {name: (data, self.base_of(name)) for name, data in self.tables.items()}

    @cached_property
    def pool(self) -> dict[str, ProfiledTable]:
        """Return the tables that training may be on, with their bases. Raises InputError."""
        if not self.train_on:
            return self.targets
        pool: dict[str, ProfiledTable] = {}
        for name, data in self.train_on.items():
            try:
                pool[name] = (data, data.grid.config(self.base))
            except InputError as error:
                named = " and ".join(f"'{text}'" for text in BASE_NAMES)
                raise InputError(f"'{name}': {error}; {named} are on every grid") from None
        return pool

    @cached_property
    def learnt(self) -> dict[str, Learnt]:
        """Return what all predictors of each table may learn from; folds leave more out.

        Raises InputError where it is too little.
        """
        self._check_training()
        learnt = {}
        for name, target in self.targets.items():
            tested = np.arange(len(target[0].kernels) if self.train_on else 0)
            of_table = self.rule(target, (tested[:0], tested), list(self.pool.values()))
            if not of_table and self.train_on:
                raise InputError(
                    f"no kernel is left to train on: '{name}' tests every application of "
                    f"{_quoted(self.pool)}; --unseen-gpu and --pooled hold one out at a time"
                )
            if not of_table:
                raise InputError(
                    f"no table is of another GPU than '{target[0].device}' to train on"
                )
            warn_of_tested_kernels(name, target[0], of_table)
            learnt[name] = of_table
        return learnt

    def _check_training(self) -> None:
        """Raise InputError where options of the training do not suit each other or the tables."""
        is_usual = self.training == OWN_TABLE
        if self.train_on and not (is_usual and self.split == Study.split):
            other = self.training if self.split == Study.split else self.split
            raise InputError(
                "a study that trains on other tables has a protocol of its own: leave out "
                f"'{other}'"
            )
        if self.rule is not own and self.split == RANDOM_KERNELS:
            raise InputError(f"'{RANDOM_KERNELS}' is for predictors that learn from one table")
        if self.training == "pooled" and len(self.tables) < 2:
            raise InputError("training on several GPUs at once needs two tables at least")

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError."""
        split = None if self.train_on else self.split
        parts = []
        for table in self.learnt:
            everyone = self._candidates(table)
            parts += [
                Part(table, candidate, split, seed, self.base_of(table), quantity, count)
                for quantity in self._quantities(table, everyone)
                for candidate in everyone
                if candidate.predicts(quantity) and self._learns(candidate, table, quantity)
                for count in [self.clusters_of(candidate)]
                for seed in self.seeds_of(candidate)
            ]
        return parts

    def _quantities(self, table: str, everyone: Sequence[Candidate]) -> list[str]:
        measured = measured_quantities(self.tables[table], self.quantity)
        if any(isinstance(one.predictor, PredictsFromTimes) for one in everyone):
            return measured
        if not self._is_elsewhere(table):
            (first, _), _ = self.learnt[table][0]
            has_power = first.power_samples is not None
            return [quantity for quantity in measured if quantity == "time" or has_power]
        if "power" in self.quantity:
            raise InputError(
                "power is learnt on the GPU itself; only time is for unseen GPUs, or power by "
                f"'{BoardPower.name}'"
            )
        return ["time"]

    def _learns(self, candidate: Candidate, table: str, quantity: str) -> bool:
        """Whether a candidate can learn a quantity for a table: power of an unseen GPU or not."""
        if quantity == "time" or not self._is_elsewhere(table):
            return True
        return isinstance(candidate.predictor, PredictsFromTimes | Untrained)

    def _is_elsewhere(self, table: str) -> bool:
        return is_elsewhere(self.targets[table], self.learnt[table])

    def _candidates(self, table: str) -> list[Candidate]:
        """Return those that can learn from what is trained on, and predict the table.

        Raises InputError where one that was asked for cannot.
        """
        on_several = self.training != OWN_TABLE
        data, base = self.learnt[table][0][0] if self.train_on else self.targets[table]
        asked = [one for one in self.predictors if self._suits(one, data)]
        usual: list[AnyPredictor] = []
        if not self.predictors:
            suiting = dict.fromkeys((*applying(("wu",), data), default_predictor(data, base)))
            usual = [Bottleneck.name] if on_several else [*suiting]
        kinds = [kind for kind in self.features if self._gives(kind, data)] or self.features
        named = {one.name for one in candidates(asked, kinds, data, base, alone=True)}
        able = []
        for candidate in candidates(asked or usual, kinds, data, base, alone=on_several):
            refusal = self._refusal(candidate, table, is_asked=candidate.name in named)
            if refusal is None:
                able.append(candidate)
            elif candidate.name in named:
                raise InputError(refusal)
        return able

    def _suits(self, predictor: AnyPredictor, data: Measurements) -> bool:
        """Whether a predictor is for a table: one for another of the tables alone is not."""
        known = Candidate.of(predictor).predictor if predictor != "default" else None
        return (
            known is None
            or known.applies_to(data)
            or not any(known.applies_to(other) for other in self.tables.values())
        )

    def _gives(self, kind: str, data: Measurements) -> bool:
        """Whether a table gives a kind of features: one of another of the tables it may not."""
        plain = kind.removesuffix(WITH_POWER)
        given = [kinds_for(one.counter_names, one.device) for one in (data, *self.tables.values())]
        return plain in given[0] or not any(plain in of_table for of_table in given)

    def _refusal(self, candidate: Candidate, table: str, is_asked: bool) -> str | None:
        """Return why a candidate cannot learn from what is trained on, None where it can."""
        predictor, learnt, target = candidate.predictor, self.learnt[table], self.targets[table]
        tables = [one for one, _ in learnt]
        names = [name for name, one in self.pool.items() if any(one is two for two in tables)]
        if self._is_elsewhere(table) and not isinstance(predictor, PredictsOtherGpus):
            (data, base), (trained, trained_base) = target, tables[0]
            if trained.device != data.device:
                return (
                    f"'{candidate.name}' cannot predict a GPU that it was not trained on: "
                    f"'{table}' is of '{data.device}', {_quoted(names)} of '{trained.device}'"
                )
            if not is_asked or base != trained_base:
                return (
                    f"'{candidate.name}' predicts on the grid and from the base of its training: "
                    f"{_quoted(names)} is at {trained_base}, '{table}' at {base}"
                )
        if len(tables) > 1 and not isinstance(predictor, PoolsGpus | Untrained):
            return (
                f"'{candidate.name}' learns from one table at a time, not from {len(tables)}: "
                f"{_quoted(names)}"
            )
        return None

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what measures the errors of a part, and each part's arguments."""
        pool = [] if self.rule is own else list(self.pool.values())
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
                candidate: application_errors([result for _, result in group])
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
        means = errors.mean(axis=1).tolist()
        faults = self.tables[part.table].metadata.get("faults", {})
        by_seed = [float(np.mean(result["errors"])) for result in results]
        return {
            "table": part.table,
            "base": part.base.as_dict(),
            "predictor": part.candidate.name,
            "features": part.candidate.features,
            "quantity": part.quantity,
            "n_kernels": len(set(kernels)),
            "n_seeds": self.seed_count,
            **vars(summarise(errors, kernels)),
            "standard_error": split_error(means, applications, seeds, self.split),
            "standard_error_over": error_over(self.split),
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
        tested = set(self.tables[table].applications)
        known = {name for data in self.train_on.values() for name in data.applications}
        return {
            "protocol": TRAIN_ON,
            "train_on": list(self.train_on),
            "n_training_kernels": sum(len(kernels) for _, kernels in self.learnt[table]),
            "left_out_of_training": sorted(tested & known),
        }

    def files(self, results: Sequence[Any]) -> dict[str, Rows]:
        """errors: the rows; kernels: the mean error of each kernel and seed."""
        rows = []
        for row in map(flat, self.rows(results)):
            row["mape_by_seed"] = " ".join(f"{mape:.6g}" for mape in row["mape_by_seed"])
            for names in ("faulty_kernels", "train_on", "left_out_of_training"):
                if names in row:
                    row[names] = "; ".join(row[names])
            row["mape_without_faulty"] = (row.pop("without_faulty") or {}).get("mape")
            rows.append(row)
        kernels = [
            {
                "table": part.table,
                "quantity": part.quantity,
                "predictor": part.candidate.name,
                "features": part.candidate.features,
                "seed": part.seed,
                "application": application,
                "kernel": kernel,
                "mape": float(np.mean(errors)),
            }
            for part, result in zip(self.parts, results, strict=True)
            for application, kernel, errors in zip(
                result["applications"], result["kernels"], result["errors"], strict=True
            )
        ]
        return {"errors": rows, "kernels": kernels}


def part_errors(
    part: Part,
    data: Measurements,
    training: TrainingRule = own,
    tables: Sequence[ProfiledTable] = (),
) -> dict[str, Any]:
    """Errors [%] of each held-out kernel at every configuration but the base. Raises InputError.

    training: what is learnt from, of these tables. `covered` is the share [%] of kernel x target in
    the 90 % intervals, None without intervals; `train_seconds` are of one fold, `predict_seconds`
    of one kernel.
    """
    folds, make = part.folds(data), part.predictors
    predictions = list(cross_validate(data, [part.base], folds, make, training, tables, COVERAGE))
    held_out = [k for _, test in folds for k in test]
    covered = [prediction.covered for prediction in predictions]
    inside = [shares for shares in covered if shares is not None]
    return {
        "kernels": [data.kernels[k] for k in held_out],
        "applications": [data.applications[k] for k in held_out],
        "errors": np.concatenate([prediction.errors for prediction in predictions]).tolist(),
        "covered": float(np.concatenate(inside).mean()) if len(inside) == len(covered) else None,
        "train_seconds": float(np.mean([p.train_seconds for p in predictions])),
        "predict_seconds": sum(p.predict_seconds for p in predictions) / len(held_out),
    }


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


def application_errors(results: Sequence[Any]) -> dict[str, list[float]]:
    """Return the mean error [%] over targets of each application's kernels, with each seed."""
    errors: dict[str, list[float]] = {}
    for result in results:
        for application, of_kernel in zip(result["applications"], result["errors"], strict=True):
            errors.setdefault(application, []).append(float(np.mean(of_kernel)))
    return errors


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


AnyTable = Measurements | str | Path
AnyTables = AnyTable | Sequence[AnyTable] | Mapping[str, Measurements]

STUDIES: dict[str, type[Study]] = {study.name: study for study in (ErrorStudy, RegretStudy)}

COUNTS = {"seeds": 1, "clusters": 1, "runs": 0}  # the least of each


@extra_named("a study", "study")
def study(
    name: str,
    tables: AnyTables,
    predictors: AnyPredictor | Sequence[AnyPredictor] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> "pd.DataFrame":
    """Measure errors by cross-validation; a row of figures for each case, errors in percent.

    name: 'errors', or 'advice' for its regret. tables: measurements or their files; several in a
    list, or in a dict by name. predictors: names ('nearest', 'package.module:Class'), classes or
    objects, whose own hyper-parameters are kept. jobs: processes; as many as there are cores.

    options: of both studies base='mid', features=['raw'], clusters=8,
    split='leave-one-application-out' and seeds, how many; and those of the class in STUDIES, such
    as of 'errors' quantity='time' and train_on=['micro.parquet'], tables to train on instead. None
    leaves the default.
    The columns are those of docs/file-formats.md. Raises InputError.

    Example:
        rows = mlscale.study("errors", "table.parquet", ["nearest", "wu"], quantity="time")
    """
    import pandas as pd

    require_type("name", name, str, "text")
    require_type("jobs", jobs, Integral | None, "a whole number")
    planned = plan(name, tables_by_name(tables), predictors=predictors, **options)
    results = planned.results(min(jobs or os.cpu_count() or 1, len(planned.parts)))
    return pd.DataFrame([flat(row) for row in planned.rows(results)])


def plan(name: str, tables: Tables, **options: Any) -> Study:
    """The study of that name; an option that is None is left to its default.

    Raises InputError on a name or an option that does not exist, and where nothing can be studied.
    """
    if name not in STUDIES:
        raise InputError(f"there is no study '{name}'; one of {', '.join(STUDIES)}")
    given = {option: value for option, value in options.items() if value is not None}
    known = settings_of(name)
    if unknown := [option for option in given if option not in known]:
        raise InputError(
            f"the study '{name}' has no option '{unknown[0]}'; it has {', '.join(known)}"
        )
    for option in ("predictors", "features", "objectives"):
        if isinstance(given.get(option), np.ndarray):
            given[option] = given[option].tolist()
        if option in given and not isinstance(given[option], list | tuple):
            given[option] = [given[option]]
    if "train_on" in given:
        given["train_on"] = tables_by_name(given["train_on"])
    _check_counts(given)
    if not tables:
        raise InputError("a study needs a table")
    planned = STUDIES[name](tables=tables, **given)
    if not planned.parts:
        raise InputError("no table has a column 'power_w'")
    return planned


def _check_counts(given: Mapping[str, Any]) -> None:
    for option, least in COUNTS.items():
        count = given.get(option, least)
        is_word = option == "clusters" and isinstance(count, str)  # 'auto', or refused by `wu`
        if not (is_word or (isinstance(count, Integral) and int(count) >= least)):
            raise InputError(f"{option} is a whole number of at least {least}, not {count!r}")


def settings_of(name: str) -> list[str]:
    """Return what a study can be planned with."""
    return [field.name for field in fields(STUDIES[name]) if field.name != "tables"]


def tables_by_name(tables: AnyTables) -> Tables:
    """Return tables by name: the file's without suffix, or the device. Raises InputError."""
    if isinstance(tables, Mapping):
        for given in tables.values():
            _check_table(given, Measurements)
        return dict(tables)
    named: Tables = {}
    several: Iterable[Any] = [tables]
    if isinstance(tables, Iterable) and not isinstance(tables, str):
        several = several if hasattr(tables, "columns") else tables  # a DataFrame is one table
    for table in several:
        _check_table(table, AnyTable)
        if isinstance(table, Measurements):
            name, data = table.device, table
        else:
            name, data = Path(table).stem, read(table)
        if name in named:
            raise InputError(f"two tables are named '{name}'; give a dict of tables by name")
        named[name] = data
    return named


def _check_table(table: Any, kinds: Any) -> None:
    if not isinstance(table, kinds):
        files = "" if kinds is Measurements else " or a file's path"
        raise InputError(
            f"a table is Measurements{files}, not {type(table).__name__}; "
            "of a DataFrame make them with Measurements.from_frame"
        )
