"""Cross-validated errors of predictors, beside the baselines: `study errors`, `study compare`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictions import COVERAGE
from mlscale.predictors import applying, default_predictor
from mlscale.predictors.base import (
    PoolsGpus,
    PredictsFromTimes,
    PredictsOtherBases,
    for_other_gpus,
)
from mlscale.predictors.baselines import Untrained
from mlscale.predictors.board_power.estimator import BoardPower
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.base import (
    Part,
    PredictorStudy,
    Row,
    Rows,
    Tables,
    flat,
    measured_quantities,
)
from mlscale.studies.candidates import Candidate, all_candidates, candidates
from mlscale.studies.crossval import (
    ProfiledTable,
    TrainingOn,
    cross_validate,
    training_tables,
    warn_of_tested_kernels,
)
from mlscale.studies.splits import RANDOM_KERNELS
from mlscale.studies.statistics import behind_best, error_over, p_values, split_error, summarise
from mlscale.studies.train_on import TRAIN_ON, OtherTables

COMPARE = "compare"


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorStudy(PredictorStudy):
    """Each part is one predictor with one kind of features, one quantity, table and seed.

    predictors: without any, `wu` and what suits a table best, or for 'compare' all that apply; the
    baselines stand beside. When trained on several tables: `bottleneck`, and no baselines.
    features: without any, the kind that suits a table best, or for 'compare' all that it gives.
    quantity: both, where measured, unless any is named. train_on: tables to train on instead, by
    name, each at the base as its own grid has it; then there are no folds, and what the options
    leave open is what suits the first of them. Their kernels of applications under test are left
    out. train_base: where the kernels that are trained on are profiled, if not at the base; only
    predictors that predict from other bases, and what learns nothing, stand then.
    """

    quantity: str | Sequence[str] = ()
    training: TrainingOn = "own-table"
    train_on: Tables = field(default_factory=dict)
    train_base: Any = None

    @property
    def settings(self) -> Row:
        """Return the number of clusters, and what was trained on if not a table itself."""
        training: Row = {} if self.training == "own-table" else {"training": self.training}
        if self.train_on:
            training["train_on"] = list(self.train_on)
        if self.train_base is not None:
            training["train_base"] = {
                name: data.grid.config(self.train_base).as_dict()
                for name, data in self.tables.items()
            }
        return {**super().settings, **training}

    @property
    def protocol(self) -> str:
        """Return who is held out: nobody of the tables to train on, if there are any."""
        return TRAIN_ON if self.train_on else self.split

    @property
    def sources(self) -> Tables:
        """Return the tables, and those to train on."""
        return {**self.tables, **{f"{TRAIN_ON} {n}": data for n, data in self.train_on.items()}}

    @cached_property
    def others(self) -> dict[str, OtherTables]:
        """For each table the other tables to train on; empty without. Raises InputError."""
        if not self.train_on:
            return {}
        if self.split != ErrorStudy.split or self.training != ErrorStudy.training:
            raise InputError(
                "a study that trains on other tables has a protocol of its own: leave out "
                f"'{self.split if self.split != ErrorStudy.split else self.training}'"
            )
        return {
            name: OtherTables.of(name, (data, self.base_of(name)), self.train_on, self.base)
            for name, data in self.tables.items()
        }

    @cached_property
    def pools(self) -> dict[str, Sequence[ProfiledTable]]:
        """Return what the predictors of each table train on. Raises InputError on too little."""
        pools = self._pools()
        for name, pool in pools.items():
            warn_of_tested_kernels(name, self.tables[name], pool)
        return pools

    def _pools(self) -> dict[str, Sequence[ProfiledTable]]:
        if self.train_base is not None and (self.train_on or self.training != "own-table"):
            raise InputError("a train_base is for predictors that learn from the table itself")
        elsewhere = self.train_base is not None or self.training != "own-table"
        if self.split == RANDOM_KERNELS and elsewhere:
            raise InputError(
                f"'{RANDOM_KERNELS}' is for predictors that learn from the table at its base"
            )
        if self.train_on:
            return {name: others.pool for name, others in self.others.items()}
        if self.train_base is not None:
            return {
                name: [(data, data.grid.config(self.train_base))]
                for name, data in self.tables.items()
            }
        tables = {name: (data, self.base_of(name)) for name, data in self.tables.items()}
        return {
            name: training_tables(self.training, table, list(tables.values()))
            for name, table in tables.items()
        }

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError."""
        return [
            Part(table, candidate, split, seed, quantity, count, (self.base_of(table),))
            for split in [None if self.train_on else self.split]
            for table in self.pools
            for quantity in self._quantities(table)
            for candidate in self._candidates(table)
            if candidate.predicts(quantity) and self._learns(candidate, table, quantity)
            for count in [self.clusters_of(candidate)]
            for seed in self.seeds_of(candidate)
        ]

    def _quantities(self, table: str) -> list[str]:
        measured = measured_quantities(self.tables[table], self.quantity)
        everyone = self._candidates(table)
        if any(isinstance(one.predictor, PredictsFromTimes) for one in everyone):
            return measured
        if not self._is_unseen(table):
            learnt = self.others[table].quantities if self.train_on else measured
            return [quantity for quantity in measured if quantity in learnt]
        if "power" in self.quantity:
            raise InputError(
                "power is learnt on the GPU itself; only time is for unseen GPUs, or power by "
                f"'{BoardPower.name}'"
            )
        return ["time"]

    def _learns(self, candidate: Candidate, table: str, quantity: str) -> bool:
        """Whether a candidate can learn a quantity for a table: power of an unseen GPU or not."""
        if quantity == "time" or not self._is_unseen(table):
            return True
        return isinstance(candidate.predictor, PredictsFromTimes | Untrained)

    def _is_unseen(self, table: str) -> bool:
        """Whether no table that is trained on is of this one's GPU and grid."""
        return self.others[table].elsewhere if self.train_on else self.training == "unseen-gpu"

    def _candidates(self, table: str) -> list[Candidate]:
        own = (self.tables[table], self.train_base or self.base_of(table))
        data, base = self.others[table].pool[0] if self.train_on else own
        if self.training != "own-table":
            asked = self.predictors or (Bottleneck.name,)
            able = candidates(asked, self.features, data, base, alone=True)
            for candidate in able:
                self._check_training(candidate)
            return able
        if self.name == COMPARE and not self.predictors:
            everyone = all_candidates(self.features, data)
        else:
            usual = dict.fromkeys((*applying(("wu",), data), default_predictor(data, base)))
            everyone = candidates(self.predictors or [*usual], self.features, data, base)
        if self.train_base is not None:
            return self._predicting_other_bases(everyone)
        if not self.train_on:
            return everyone
        named = candidates(self.predictors, self.features, data, base, alone=True)
        return self.others[table].able(everyone, [candidate.name for candidate in named])

    def _predicting_other_bases(self, everyone: Sequence[Candidate]) -> list[Candidate]:
        """Those that predict from other bases than that of their training.

        Raises InputError where a predictor that was asked for is none of them.
        """
        able = [
            one for one in everyone if isinstance(one.predictor, PredictsOtherBases | Untrained)
        ]
        asked = [Candidate.of(one).name for one in self.predictors if one != "default"]
        for name in {*asked}.difference(one.name for one in able):
            raise InputError(
                f"'{name}' predicts from the base of its training alone; leave out the train base"
            )
        return able

    def _check_training(self, candidate: Candidate) -> None:
        """Raise InputError where a predictor cannot learn from other tables than its own."""
        if self.training == "unseen-gpu" and candidate.predictor:
            for_other_gpus(candidate.predictor)
        elif not isinstance(candidate.predictor, PoolsGpus | Untrained):
            raise InputError(
                f"'{candidate.name}' learns from one GPU at a time, not from "
                f"{len(self.tables)} tables"
            )

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what measures the errors of a part, and each part's arguments."""
        return part_errors, [
            (
                part,
                self.tables[part.table],
                self.pools[part.table],
                self._is_unseen(part.table),
            )
            for part in self.parts
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
            tests, behind = p_values(errors), behind_best(errors)
            rows += [self._row(group) | behind[one] | tests[one] for one, group in block.items()]
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
            "base": part.bases[0].as_dict(),
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
            **(self.others[part.table].columns if self.train_on else {}),
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
    part: Part, data: Measurements, pool: Sequence[ProfiledTable] = (), unseen: bool = False
) -> dict[str, Any]:
    """Errors [%] of each held-out kernel at every configuration but the base. Raises InputError.

    pool: the tables to train on; empty for the measurements themselves. `covered` is the share [%]
    of kernel x target in the 90 % intervals, None without intervals; `train_seconds` are of one
    fold, `predict_seconds` of one kernel.
    """
    folds, make = part.folds(data), part.predictors
    predictions = list(cross_validate(data, part.bases, folds, make, pool, unseen, COVERAGE))
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
