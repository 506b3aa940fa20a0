"""The studies of Wu et al., HPCA 2015, section V, on any table of measurements.

A part is one candidate with one number of clusters, one seed, and some bases. It gives tidy rows.
The networks of all its bases train as one batch, and K-means is done once for what several bases
share; see varied_bases.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors.wu.estimator import DEFAULT_CLUSTERS
from mlscale.studies.base import Part, PredictorStudy, Row, Rows, measured_quantities
from mlscale.studies.candidates import (
    ORACLE,
    Candidate,
    candidates,
    single_candidate,
)
from mlscale.studies.crossval import cross_validate
from mlscale.studies.splits import folds
from mlscale.studies.statistics import summarise

BASE_CONFIGURATION, ORACLE_STUDY = "base-configuration", "oracle"
STUDIES = (BASE_CONFIGURATION, "cluster-count", "error-distribution", ORACLE_STUDY)
CLUSTER_COUNTS = tuple(range(2, 21, 2))  # Fig. 13, 15, 16
DISTRIBUTION_COUNTS = (2, 6, 12)  # Fig. 14, 17
BIN_WIDTH, BINS = 10.0, 11  # Fig. 14, 17; the last bin is >= 100 %
BASES_IN_PART = 32


@dataclass(frozen=True, eq=False, kw_only=True)
class WuStudy(PredictorStudy):
    """One of STUDIES; its rows are those of its parts, one after the other.

    base: for 'base-configuration' where the axes stay that are not named in `vary`; for the others
    one or a list, instead of `five_bases`. predictors: one; the baselines stand beside. clusters:
    of 'base-configuration', as the others vary it; None takes the paper's 12 or, where a fold
    trains on fewer kernels, as many as there are.
    """

    base: Any = None
    split: str = "holdout"
    quantity: str | Sequence[str] = ()
    vary: Sequence[str] = ()

    @cached_property
    def predictor(self) -> Candidate:
        """Return the one that is studied. Raises InputError where it or its options do not fit."""
        if len(self.predictors) > 1 or len(self.features) > 1:
            raise InputError(f"the study '{self.name}' takes one predictor, one kind of features")
        tables = {name: (data, self._bases(name, data)[0]) for name, data in self.tables.items()}
        predictor = single_candidate((*self.predictors, "wu")[0], tables)
        if self.name == BASE_CONFIGURATION:
            return predictor
        if self.name == ORACLE_STUDY and predictor.name != "wu":
            raise InputError(f"the study 'oracle' is of 'wu', not of '{predictor.name}'")
        if "clusters" not in predictor.parameters:
            raise InputError(
                f"the study '{self.name}' varies the number of clusters, and '{predictor.name}' "
                "has none; take 'wu'"
            )
        if self.clusters or self.vary:
            raise InputError("only the study 'base-configuration' takes clusters or varies axes")
        return predictor

    @property
    def settings(self) -> Row:
        """Return the predictor."""
        return {"predictor": self.predictor.name}

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError."""
        parts = []
        for table, data in self.tables.items():
            bases = self._bases(table, data)
            width = len(data.grid.cu_count) * max(1, BASES_IN_PART // len(data.grid.cu_count))
            splits = [folds(self.split, data.applications, seed) for seed in range(self.seed_count)]
            most = min(len(train) for split in splits for train, _ in split)
            everyone = self._candidates(data)
            parts += [
                Part(table, candidate, self.split, seed, quantity, count, bases[i : i + width])
                for quantity in self._quantities(data, everyone[0])
                for seed in range(self.seed_count)
                for candidate in everyone
                if candidate.predicts(quantity) and seed in self.seeds_of(candidate)
                for count in self._cluster_counts(candidate, most)
                for i in range(0, len(bases), width)
            ]
        return parts

    def _bases(self, table: str, data: Measurements) -> tuple[HardwareConfig, ...]:
        """Return the bases that a table is studied at. Raises InputError."""
        several = isinstance(self.base, list) and not all(
            isinstance(i, Integral) for i in self.base
        )
        asked = self.base if several else [self.base]
        given = [data.grid.config(one) for one in asked if one is not None]
        if self.name != BASE_CONFIGURATION:
            return tuple(dict.fromkeys(given)) or five_bases(data.grid)
        if len(given) > 1 or (given and not self.vary):
            raise InputError(
                "the study 'base-configuration' takes one --base, and that with --vary: it is "
                "where the other axes stay"
            )
        try:
            return varied_bases(data.grid, given[0] if given else data.grid.mid, self.vary)
        except InputError as error:
            raise InputError(f"'{table}': {error}") from None

    def _quantities(self, data: Measurements, studied: Candidate) -> list[str]:
        """Return the measured quantities that the predictor predicts. InputError without any."""
        measured = measured_quantities(data, self.quantity)
        predicted = [quantity for quantity in measured if studied.predicts(quantity)]
        if measured and not predicted:
            features = f" with features '{studied.features}'" if studied.features else ""
            raise InputError(f"'{studied.name}'{features} does not predict {' or '.join(measured)}")
        return predicted

    def _candidates(self, data: Measurements) -> list[Candidate]:
        """Return the predictor with its features, then the baselines."""
        everyone = candidates([self.predictor], self.features, data, "mid")
        everyone.sort(key=lambda candidate: candidate.name != self.predictor.name)
        return [candidate for candidate in everyone if candidate.name != ORACLE]

    def _cluster_counts(self, candidate: Candidate, most: int) -> Sequence[int | str | None]:
        """Return the numbers of clusters to try: never more than a fold trains on kernels.

        'auto', which is chosen inside each fold, stays as it is.
        """
        if "clusters" not in candidate.parameters:
            return (None,)
        match self.name:
            case "base-configuration":
                own = candidate.parameters["clusters"] or min(DEFAULT_CLUSTERS, most)
                count = self.clusters or own
                if isinstance(count, int) and count > most:
                    raise InputError(
                        f"{count} clusters, but a fold trains on {most} kernels; give "
                        f"--clusters {most} or less"
                    )
                return (count,)
            case "oracle":  # beyond the paper's counts, to where every kernel has its own cluster
                beyond = np.geomspace(CLUSTER_COUNTS[-1], max(most, CLUSTER_COUNTS[-1]), 5)
                counts = [*CLUSTER_COUNTS, *beyond.round().astype(int).tolist()]
            case "cluster-count":
                counts = list(CLUSTER_COUNTS)
            case _:
                counts = list(DISTRIBUTION_COUNTS)
        return sorted({min(count, most) for count in counts})

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what gives the rows of a part, and the arguments of each."""
        return part_rows, [(part, self.tables[part.table], self.name) for part in self.parts]

    def rows(self, results: Sequence[Rows]) -> Rows:
        """One row for each table, quantity, candidate, number of clusters, seed, base, and bin."""
        return [row for rows in results for row in rows]


def five_bases(grid: ConfigGrid) -> tuple[HardwareConfig, ...]:
    """The bases of all studies but base-configuration; the paper names the first only (Fig. 13).

    Most CUs and engine clock with least memory clock; mid-grid; everything highest; fewest CUs
    and engine clock with the highest memory clock; everything lowest. Fewer on a grid where
    these coincide.
    """
    low, high = (0, 0, 0), tuple(length - 1 for length in grid.shape)
    indices = [
        (high[0], high[1], low[2]),
        grid.index(grid.mid),
        (high[0], high[1], high[2]),
        (low[0], low[1], high[2]),
        low,
    ]
    return tuple(grid.config(index) for index in dict.fromkeys(indices))


def varied_bases(
    grid: ConfigGrid, around: HardwareConfig, axes: Sequence[str]
) -> tuple[HardwareConfig, ...]:
    """Every base along these axes, the others as in `around`; all axes when none is named.

    In the order of engine clock, memory clock, CU count: bases that share their clocks share
    the clusters of the CU axis. Raises InputError on an axis with one step only, and on no axis.
    """
    for axis in axes:
        if axis not in AXES:
            raise InputError(f"there is no axis '{axis}'; one of {', '.join(AXES)}")
        if len(getattr(grid, axis)) < 2:
            raise InputError(
                f"a study over {axis} needs several; the table has one, {getattr(grid, axis)[0]:g}"
            )
    fixed = [axis for axis in AXES if axes and axis not in axes]
    bases = [b for b in grid if all(getattr(b, axis) == getattr(around, axis) for axis in fixed)]
    return tuple(sorted(bases, key=lambda b: (b.engine_mhz, b.memory_mhz, b.cu_count)))


def part_rows(part: Part, data: Measurements, study: str) -> Rows:
    """The rows of one part: docs/file-formats.md. Raises InputError.

    In the oracle study the oracle stands in the part of its network: they share the clusters.
    """
    rows = _rows(part, data, study)
    if study == ORACLE_STUDY and part.candidate.name == "wu":
        rows += _rows(replace(part, candidate=Candidate.of(ORACLE)), data, study)
    return rows


def _rows(part: Part, data: Measurements, study: str) -> Rows:
    rows: Rows = []
    errors, kernels = _errors_by_base(part, data, study == ORACLE_STUDY)
    for base, of_base in errors.items():
        row = {
            "table": part.table,
            "quantity": part.quantity,
            "predictor": part.candidate.name,
            "features": part.candidate.features,
            "clusters": part.clusters,
            "seed": part.seed,
            **base.as_dict(),
            "n_kernels": len(set(kernels)),
        }
        if study == "error-distribution":
            counts = histogram(of_base)
            lows = BIN_WIDTH * np.arange(BINS)
            rows += [
                {**row, "bin_low": low, "count": count}
                for low, count in zip(lows.tolist(), counts.tolist(), strict=True)
            ]
        else:
            rows.append({**row, **vars(summarise(of_base, kernels))})
    return rows


def histogram(errors: Floats) -> Indices:
    """Return how many errors fall in each bin: 0 to < 10 %, …, 90 to < 100 %, >= 100 %."""
    bins = np.minimum(errors.ravel() // BIN_WIDTH, BINS - 1).astype(np.intp)
    return np.bincount(bins, minlength=BINS)


def _errors_by_base(
    part: Part, data: Measurements, of_training: bool
) -> tuple[dict[HardwareConfig, Floats], list[str]]:
    """Errors [%] (n, targets) by base, and the kernel of each row.

    Of the kernels held out, or of those trained on, as in the oracle study (section V-B2, Fig. 15).
    """
    errors: dict[HardwareConfig, list[Floats]] = {base: [] for base in part.bases}
    kernels: list[str] = []
    for train, test in part.folds(data):  # a fold at a time, as one has many bases to predict from
        scored = train if of_training else test
        kernels += [data.kernels[k] for k in scored]
        for prediction in cross_validate(data, part.bases, [(train, scored)], part.predictors):
            errors[prediction.surfaces.base].append(prediction.errors)
    return {base: np.concatenate(of_base) for base, of_base in errors.items()}, kernels
