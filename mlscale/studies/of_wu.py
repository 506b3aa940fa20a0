"""What the studies of `wu` alone share: a part is `wu` on one table, with one quantity and seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors.wu.estimator import Wu
from mlscale.studies.base import Part, PredictorStudy, Rows, grouped, measured_quantities
from mlscale.studies.candidates import Candidate, candidates


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
            for candidate in self._candidates(data)
            for quantity in measured_quantities(data, self.quantity)
            if candidate.predicts(quantity)
            for count in [self.clusters_of(candidate)]
            for seed in self.seeds_of(candidate)
        ]

    def _candidates(self, data: Measurements) -> list[Candidate]:
        asked = self.predictors or ("wu",)
        everyone = candidates(asked, self.features, data, alone=True)
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
