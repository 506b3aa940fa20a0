"""What the studies of `wu` alone share: a part is `wu` on one table, with one quantity and seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.predictors.wu.estimator import Wu
from mlscale.studies.base import Part, PredictorStudy, Row, Rows, grouped, measured_quantities
from mlscale.studies.candidates import Candidate, candidates
from mlscale.studies.statistics import error_over, split_error


@dataclass(frozen=True, eq=False, kw_only=True)
class WuAloneStudy(PredictorStudy):
    """A study of `wu`.

    predictors: `wu` itself, by default, or one with other hyper-parameters. quantity: both, where
    measured.
    """

    quantity: str | Sequence[str] = ()

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError on another predictor than `wu`."""
        return [
            Part(table, candidate, self.split, seed, quantity, count, (self.base_of(table),))
            for table, data in self.tables.items()
            for candidate in self._candidates(table)
            for quantity in measured_quantities(data, self.quantity)
            if candidate.predicts(quantity)
            for count in [self.clusters_of(candidate)]
            for seed in self.seeds_of(candidate)
        ]

    def _candidates(self, table: str) -> list[Candidate]:
        asked = self.predictors or ("wu",)
        data, base = self.tables[table], self.base_of(table)
        everyone = candidates(asked, self.features, data, base, alone=True)
        if other := [one.name for one in everyone if one.name != Wu.name]:
            raise InputError(f"the study '{self.name}' is of 'wu', not of '{other[0]}'")
        return everyone

    def cases(self, results: Sequence[Any]) -> dict[tuple[Any, ...], Rows]:
        """Return the parts' results by table, quantity and kind of features: one for each seed."""
        rows = [
            {
                "table": part.table,
                "quantity": part.quantity,
                "features": part.candidate.features,
                "part": part,
                **result,
            }
            for part, result in zip(self.parts, results, strict=True)
        ]
        return grouped(rows, "table", "quantity", "features")

    def head(self, results: Rows) -> Row:
        """Return what the rows of a case begin with; results: its own, one for each seed."""
        return {
            **{key: results[0][key] for key in ("table", "quantity", "features")},
            "base": results[0]["part"].bases[0].as_dict(),
            "n_kernels": len({name for result in results for name in result["kernels"]}),
            "n_seeds": len({result["part"].seed for result in results}),
            "standard_error_over": error_over(self.split),
        }

    def standard_error(self, results: Rows, values: Floats) -> float | None:
        """Return that of the mean of values (n,), one for each kernel of the results."""
        applications = [name for result in results for name in result["applications"]]
        seeds = [result["part"].seed for result in results for _ in result["applications"]]
        return split_error(values.tolist(), applications, seeds, self.split)
