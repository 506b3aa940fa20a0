"""The predictor of Wu et al., HPCA 2015.

`estimator` is the predictor; `scaling` has the scaling values and the walk, `clusters` the cluster
sets with their networks, `training` K-means and the networks' training in torch.

Wu et al., HPCA 2015: clusters of scaling values, chosen by small networks from counters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Self

import numpy as np

from mlscale.arrays import Floats, Indices, shaped
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, extra_named
from mlscale.predictors.base import Bases, Predictor, Training, on_training_grid, single_gpu
from mlscale.predictors.features import FeatureScaling
from mlscale.predictors.state import Learner, learnt
from mlscale.predictors.wu_clusters import (
    LOSSES,
    ClusterSet,
    WalkTables,
    region_sizes,
    region_values,
    scaling_values,
)

DEFAULT_CLUSTERS = 8  # from there on the errors are flat within their standard error
AUTO, AUTO_COUNTS, AUTO_FOLDS = "auto", (2, 4, 6, 8, 12, 16, 20), 3


@dataclass
class Wu(Learner, Predictor):
    """The predictor of Wu et al., HPCA 2015, for time or for power.

    features: the kind, None for what suits the counters. clusters: K of every cluster set;
    None takes 8 or as many as there are training kernels, 'auto' chooses by cross-validation of
    the training kernels, whole applications at a time. A set whose kernels are not all distinct
    has no more clusters than distinct kernels. seed: of K-means and of the networks' first
    weights; the same seed gives the same model. loss: 'cross-entropy', or 'squared', the literal
    one of sigmoid outputs (Fig. 9). log_ratios: whether K-means sees the logarithms of the scaling
    values; a centroid is then their geometric mean. counters: the features to use, by name;
    empty for all of the kind.
    """

    name = "wu"
    quantity: str = "time"
    features: str | None = None
    clusters: int | str | None = None
    seed: int = 0
    loss: str = "cross-entropy"
    log_ratios: bool = False
    counters: str | Sequence[str] = ()
    grid_: ConfigGrid = learnt()
    base_: HardwareConfig = learnt()
    scaling_: FeatureScaling = learnt()
    cluster_sets_: tuple[ClusterSet, ...] = learnt()

    def fit(self, training: Training, base: Bases) -> Self:
        """Cluster the training kernels and train the networks.

        Raises InputError on fewer than two kernels, on more clusters than kernels, and where
        no feature tells the kernels apart.
        """
        self.fit_together([(self, training, base)])
        return self

    @classmethod
    @extra_named("training 'wu'", "train")
    def fit_together(cls, jobs: Sequence[tuple[Self, Training, Bases]]) -> None:
        """Fit many models; the networks of all of them train as one batch."""
        from mlscale.predictors.wu_training import ClassifierTask, cluster, train_networks

        tasks: list[ClassifierTask] = []
        clustered: list[dict[int, Floats]] = []
        for model, training, base in jobs:
            points, regions = model._prepare(training, base)  # noqa: SLF001
            count = model._count(training, base)  # noqa: SLF001
            centroids = {}
            for region, values in regions.items():
                seen = np.log(values) if model.log_ratios else values
                labels, means = cluster(seen, count, model.seed)
                centroids[region] = np.exp(means) if model.log_ratios else means
                seed = (model.seed, region + 1)
                tasks.append(ClassifierTask(points, labels, seed, model.loss))
            clustered.append(centroids)
        networks = iter(train_networks(tasks))
        for (model, _, _), centroids in zip(jobs, clustered, strict=True):
            model._take(  # noqa: SLF001
                ClusterSet(region, means, next(networks)) for region, means in centroids.items()
            )

    def _count(self, training: Training, base: Bases) -> int:
        """Return K, chosen by cross-validation of the training kernels alone if it is 'auto'."""
        data, at = single_gpu(self, training, base)
        if isinstance(self.clusters, Integral):
            return int(self.clusters)
        if self.clusters is None or len(set(data.applications)) < AUTO_FOLDS:
            return min(DEFAULT_CLUSTERS, len(data.kernels))
        folds = self._folds(data.applications)
        most = min(len(train) for train, _ in folds)
        counts = [count for count in AUTO_COUNTS if count <= most] or [most]
        models = [replace(self, clusters=count) for count in counts for _ in folds]
        trainings = [data.select(train) for _ in counts for train, _ in folds]
        self.fit_together([(m, part, at) for m, part in zip(models, trainings, strict=True)])
        tests = [data.select(test) for _ in counts for _, test in folds]
        scores = [m.score(test, at) for m, test in zip(models, tests, strict=True)]
        means = np.reshape(scores, (len(counts), AUTO_FOLDS)).mean(axis=1)
        return counts[int(means.argmax())]

    def _folds(self, of_kernels: Sequence[str]) -> list[tuple[Indices, Indices]]:
        """Return which kernels to train on and to test, whole applications at a time, by the seed.

        of_kernels: the application of each.
        """
        applications = sorted(set(of_kernels))
        order = np.random.default_rng(self.seed).permutation(len(applications))
        fold_of = {applications[a]: n % AUTO_FOLDS for n, a in enumerate(order.tolist())}
        of = np.array([fold_of[application] for application in of_kernels])
        return [(np.flatnonzero(of != f), np.flatnonzero(of == f)) for f in range(AUTO_FOLDS)]

    def _take(self, cluster_sets: Iterable[ClusterSet]) -> None:
        self.cluster_sets_ = tuple(cluster_sets)
        self._tables = WalkTables.of(
            self.cluster_sets_, len(self.scaling_.names), self.grid_, self.base_
        )

    def _prepare(self, training: Training, base: Bases) -> tuple[Floats, dict[int, Floats]]:
        """Return normalised features (n, F) and, by region, the values to cluster (n, V)."""
        measurements, self.base_ = single_gpu(self, training, base)
        self.grid_ = measurements.grid
        kernels = len(measurements.kernels)
        if kernels < 2:
            raise InputError("'wu' needs two training kernels at least, to tell them apart")
        if self.loss not in LOSSES:
            raise InputError(f"there is no loss '{self.loss}'; one of {', '.join(LOSSES)}")
        self._check_clusters()
        if isinstance(self.clusters, Integral) and not 1 <= self.clusters <= kernels:
            raise InputError(
                f"{self.clusters} clusters cannot be made of {kernels} training kernels; "
                f"give 1 to {kernels} with --clusters"
            )
        if not 0 <= self.seed < 2**32:
            raise InputError(f"the seed {self.seed} is not from 0 to {2**32 - 1}")
        quantity = measurements.quantity(self.quantity)
        profiles = measurements.profiles(self.base_)
        self.scaling_ = FeatureScaling.fit(self.features, profiles, self.counters)
        points, _ = self.scaling_.transform(profiles)
        if (points == points[0]).all():
            raise InputError(
                f"every '{self.scaling_.kind}' feature is the same for all training kernels; "
                "nothing tells them apart"
            )
        if (np.isnan(profiles.counters) | (profiles.counters == profiles.counters[0])).all():
            raise InputError(
                "every counter is the same for all training kernels; nothing tells them apart"
            )
        return points, region_values(scaling_values(quantity, self.grid_.index(self.base_)))

    def _check_clusters(self) -> None:
        if isinstance(self.clusters, str):
            if self.clusters != AUTO:
                raise InputError(f"clusters is a whole number or '{AUTO}', not '{self.clusters}'")
        elif self.clusters is not None and not isinstance(self.clusters, Integral):
            raise InputError(f"clusters is a whole number or '{AUTO}', not {self.clusters}")

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Walk along the centroids that the networks choose, on the training grid."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        return Surfaces(self.grid_, self.base_, self.factors(points), flags)

    def factors(self, points: Floats) -> Floats:
        """Return the surfaces (n, C, E, M) of normalised features (n, F)."""
        return self._tables.surfaces(points)

    def needs(self) -> tuple[str, ...]:
        """Return the features that every training kernel had."""
        return self.scaling_.needs

    def feature_names(self) -> tuple[str, ...]:
        """Return the features that some training kernel had."""
        return self.scaling_.names

    def check_restored(self) -> None:
        """Raise ValueError where grid, features and clusters do not fit; make the tables."""
        self._check_clusters()
        features = len(self.scaling_.names)
        sizes = region_sizes(self.grid_.shape)
        for one in self.cluster_sets_:
            shaped(one.centroids, None, sizes.pop(one.region))
            shaped(one.network.hidden_weights, features, None)
        if sizes:
            raise ValueError(f"no cluster set for the regions {sorted(sizes)}")
        self._take(self.cluster_sets_)
