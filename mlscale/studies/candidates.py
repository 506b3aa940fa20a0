"""Who stands in a study: predictors with kinds of features, the baselines, and the oracle."""

import inspect
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mlscale.counters.features import WITH_POWER, default_kind
from mlscale.data.grid import Base, ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, absolute_percentage_error
from mlscale.errors import InputError
from mlscale.predictors import applying, create, find_predictor, or_default
from mlscale.predictors.base import Bases, Predictor, Training, single_gpu
from mlscale.predictors.wu import AUTO, DEFAULT_CLUSTERS
from mlscale.predictors.wu_clusters import (
    CU_AXIS,
    centroid_factors,
    cluster,
    region_values,
    scaling_values,
)

AnyPredictor = str | type[Predictor] | Predictor

BASELINES = ("no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest")


@dataclass
class Oracle(Predictor):
    """The best of the clusters of `wu` by error: no choice of clusters errs less, as it sees all.

    It bounds what a classifier could reach with these clusters. The oracle of Wu et al., HPCA 2015,
    section V-B2, takes the nearest centroid in each cluster set instead, which is no such bound:
    steps that are each near may multiply to a surface that is far.

    clusters: as many as there are training kernels at most; None and 'auto' take the number that
    `wu` has by default.
    """

    name = "wu-oracle"
    quantity: str = "time"
    clusters: int | str | None = None
    seed: int = 0

    def fit(self, training: Training, base: Bases) -> Self:
        """Cluster the training kernels."""
        data, self.base_ = single_gpu(self, training, base)
        self.grid_ = data.grid
        asked = DEFAULT_CLUSTERS if self.clusters in (None, AUTO) else int(self.clusters or 0)
        count, at = min(asked, len(data.kernels)), self.grid_.index(self.base_)
        scaling = scaling_values(data.quantity(self.quantity), at)
        factors = {
            region: centroid_factors(
                region, cluster(values, count, self.seed)[1], data.grid.shape, at
            )
            for region, values in region_values(scaling).items()
        }
        cu_counts, *clocks = data.grid.shape
        along_cus = factors.get(CU_AXIS, np.ones((1, cu_counts)))
        self.walks_ = [
            along_cus[:, c, None, None, None] * factors.get(c, np.ones((1, *clocks)))
            for c in range(cu_counts)
        ]
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:  # noqa: ARG002
        """Raise InputError: the oracle predicts from measured surfaces alone."""
        raise InputError(f"'{self.name}' predicts measured kernels only; use predict_measured")

    def predict_measured(self, kernels: Measurements) -> Surfaces:
        """Of all surfaces that the clusters span, each kernel's with the least mean error [%].

        With a cluster of the CU axis given, the CU counts do not depend on each other: so each
        takes its best, and the cluster of the least sum is the best of all. Configurations that
        were not measured do not count.
        """
        measured = kernels.measured_relative(self.quantity, self.base_)
        values = np.empty_like(measured)
        for k, truth in enumerate(measured):
            errors = [
                np.nansum(absolute_percentage_error(walk, truth[c]), axis=(2, 3))
                for c, walk in enumerate(self.walks_)
            ]  # for each CU count: (clusters of the CU axis, its clusters)
            axis = int(np.argmin(sum(each.min(axis=1) for each in errors)))
            for c, walk in enumerate(self.walks_):
                values[k, c] = walk[axis, errors[c][axis].argmin()]
        return Surfaces(self.grid_, self.base_, values)


ORACLE = Oracle.name


@dataclass(frozen=True)
class Candidate:
    """A predictor under study with one kind of features, or a strategy, which has no predictor.

    name, features: what rows show; features is None where the predictor has no such parameter.
    predictor: not fitted; it carries the hyper-parameters that the study does not set.
    """

    name: str
    features: str | None = None
    predictor: Predictor | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_predictor(cls, predictor: AnyPredictor, features: str | None = None) -> Self:
        """The candidate of a name, a class, or an object, whose own features it keeps.

        Raises InputError on a name that no predictor has.
        """
        kind: Any = predictor
        if isinstance(predictor, str):
            kind = Oracle if predictor == ORACLE else find_predictor(predictor)
        prototype = create(kind)
        name = (predictor if isinstance(predictor, Predictor) else prototype).name
        return cls(name, prototype.get_params().get("features") or features, prototype)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the hyper-parameters that the predictor was given; none for a strategy."""
        return self.predictor.get_params() if self.predictor else {}

    @property
    def description(self) -> list[str]:
        """All that its predictions depend on besides the data, with the source of its module.

        So that a study is not resumed with a predictor that has changed.
        """
        kind = type(self.predictor)
        described = [self.name, str(self.features), repr(sorted(self.parameters.items()))]
        described.append(f"{kind.__module__}:{kind.__qualname__}")
        with suppress(OSError, TypeError):  # a module that was not read from a file
            described.append(inspect.getsource(sys.modules[kind.__module__]))
        return described

    def with_kinds(self, kinds: Sequence[str]) -> list["Candidate"]:
        """Return the candidate with each kind of features, if it takes any and none was chosen."""
        if "features" not in self.parameters or self.features:
            return [self]
        return [replace(self, features=kind) for kind in kinds]

    def predicts(self, quantity: str) -> bool:
        """Whether it stands in a study of that quantity: features with power for power alone."""
        if self.predictor is None:
            return True
        if quantity == "time" and (self.features or "").endswith(WITH_POWER):
            return False
        known = quantity == self.predictor.quantity or "quantity" in self.parameters
        return known and quantity in self.predictor.quantities

    def create(self, **parameters: Any) -> Predictor:
        """A new predictor with its features; parameters that it does not have are left out.

        Parameters that are None stay as the predictor has them.
        """
        if self.predictor is None:
            raise InputError(f"'{self.name}' is no predictor")
        known = self.parameters.keys()
        changed = {k: value for k, value in parameters.items() if value is not None and k in known}
        if self.features is not None:
            changed["features"] = self.features
        return create(self.predictor, **changed)


def asked_for(
    predictors: Sequence[AnyPredictor], measurements: Measurements, base: Base
) -> list[Candidate]:
    """A candidate of each; 'default' stands for what `train` takes on the table at the base."""
    return [Candidate.from_predictor(or_default(p, measurements, base)) for p in predictors]


def with_baselines(candidates: Sequence[Candidate], measurements: Measurements) -> list[Candidate]:
    """The baselines that apply and, behind them, the candidates; the oracle stands beside wu."""
    baselines = map(Candidate.from_predictor, applying(BASELINES, measurements))
    everyone = [*baselines, *candidates]
    if any(candidate.name == "wu" for candidate in everyone):
        everyone.append(Candidate.from_predictor(ORACLE))
    return everyone


def with_features(
    candidates: Sequence[Candidate], kinds: Sequence[str], measurements: Measurements
) -> list[Candidate]:
    """Each candidate once, with every kind of features, by default what suits the counters.

    Raises InputError where two different predictors have one name.
    """
    kinds = kinds or [default_kind(measurements.counter_names, measurements.device)]
    distinct: dict[str, Candidate] = {}
    for candidate in candidates:
        if distinct.setdefault(candidate.name, candidate).description != candidate.description:
            raise InputError(
                f"two predictors are called '{candidate.name}'; give yours another `name`"
            )
    return [with_kind for one in distinct.values() for with_kind in one.with_kinds(kinds)]
