"""The oracle of Wu et al., section V-B2: it knows the kernel's surface, and picks its cluster."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from mlscale.arrays import Indices
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors.base import Bases, Predictor, Training, single_gpu
from mlscale.predictors.wu.clusters import region_values, scaling_from_regions
from mlscale.predictors.wu.estimator import AUTO, DEFAULT_CLUSTERS, Wu
from mlscale.predictors.wu.scaling import scaling_values, walk


@dataclass
class Oracle(Predictor):
    """The clusters of `wu` with a classifier that never errs, because it sees the answer.

    clusters: as many as there are training kernels at most; None and 'auto' take the number that
    `wu` has by default.
    """

    name = "wu-oracle"
    quantity: str = "time"
    clusters: int | str | None = None
    seed: int = 0

    def fit(self, training: Training, base: Bases) -> Self:
        """Cluster the training kernels."""
        from mlscale.predictors.wu.training import cluster

        data, self.base_ = single_gpu(self, training, base)
        self.grid_ = data.grid
        own = DEFAULT_CLUSTERS if self.clusters in (None, AUTO) else int(self.clusters or 0)
        count = min(own, len(data.kernels))
        scaling = scaling_values(data.quantity(self.quantity), self.grid_.index(self.base_))
        self.centroids_ = {
            region: cluster(values, count, self.seed)[1]
            for region, values in region_values(scaling).items()
        }
        return self

    @classmethod
    def of(cls, predictor: Wu) -> Self:
        """Return the oracle that chooses among the clusters of a fitted `wu`."""
        oracle = cls(predictor.quantity, predictor.clusters, predictor.seed)
        oracle.grid_, oracle.base_ = predictor.grid_, predictor.base_
        oracle.centroids_ = {one.region: one.centroids for one in predictor.cluster_sets_}
        return oracle

    def nearest(self, kernels: Measurements) -> dict[int, Indices]:
        """Return by region the cluster nearest to each kernel's own scaling values, (K,)."""
        at = self.grid_.index(self.base_)
        regions = region_values(scaling_values(kernels.quantity(self.quantity), at))
        return {
            region: np.linalg.norm(values[:, None, :] - self.centroids_[region], axis=2).argmin(1)
            for region, values in regions.items()
        }

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:  # noqa: ARG002
        """Raise InputError: the oracle predicts from measured surfaces alone."""
        raise InputError(f"'{self.name}' predicts measured kernels only; use predict_measured")

    def predict_measured(self, kernels: Measurements) -> Surfaces:
        """The surfaces of kernels whose best cluster is known in every cluster set.

        Each kernel takes the centroid nearest to its own scaling values. For the training kernels
        themselves this is the paper's oracle; for others it bounds what any classifier could reach
        with these clusters.
        """
        nearest = self.nearest(kernels).items()
        values = {region: self.centroids_[region][chosen] for region, chosen in nearest}
        scaling = scaling_from_regions(values, self.grid_.shape, len(kernels.kernels))
        return Surfaces(self.grid_, self.base_, walk(scaling, self.grid_.index(self.base_)))
