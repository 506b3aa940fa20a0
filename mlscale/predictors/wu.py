"""Wu et al., HPCA 2015: clusters of scaling values, chosen by small networks from counters.

`wu_clusters` has the scaling values, the walk, and the networks with their training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.features import BASE_POWER
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, extra_named
from mlscale.parameters import parameter
from mlscale.predictors.base import Bases, Predictor, Training, on_training_grid, single_gpu
from mlscale.predictors.features import FeatureScaling, LearnsFeatures, training_profiles
from mlscale.predictors.state import Learner, learnt
from mlscale.predictors.wu_clusters import (
    LOSSES,
    ClassifierTask,
    ClusterSet,
    WalkTables,
    cluster,
    region_values,
    scaling_values,
    train_networks,
)

DEFAULT_CLUSTERS = 8  # from there on the errors are flat within their standard error
AUTO, AUTO_COUNTS, AUTO_FOLDS = "auto", (2, 4, 6, 8, 12, 16, 20), 3


@dataclass
class Wu(LearnsFeatures, Learner, Predictor):
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
        tasks: list[ClassifierTask] = []
        centroids: list[dict[int, Floats]] = []
        for model, training, base in jobs:
            if model.loss not in LOSSES:
                raise InputError(f"there is no loss '{model.loss}'; one of {', '.join(LOSSES)}")
            table, model.base_ = single_gpu(model, training, base)
            model.grid_ = table.grid
            points = model.fit_features(training_profiles(table, model.base_))
            count = model._count(table)  # noqa: SLF001
            scaling = scaling_values(table.quantity(model.quantity), table.grid.index(model.base_))
            centroids.append({})
            for region, values in region_values(scaling).items():
                seen = np.log(values) if model.log_ratios else values
                labels, means = cluster(seen, count, model.seed)
                centroids[-1][region] = np.exp(means) if model.log_ratios else means
                seed = (model.seed, region + 1)
                tasks.append(ClassifierTask(points, labels, seed, model.loss))
        networks = iter(train_networks(tasks))
        for (model, _, _), by_region in zip(jobs, centroids, strict=True):
            sets = [
                ClusterSet(region, means, next(networks)) for region, means in by_region.items()
            ]
            model._take(tuple(sets))  # noqa: SLF001

    def _take(self, cluster_sets: tuple[ClusterSet, ...]) -> None:
        """Take over what was clustered and trained, and walk along the centroids."""
        self.cluster_sets_ = cluster_sets
        features = len(self.scaling_.names)
        self._tables = WalkTables.from_sets(cluster_sets, features, self.grid_, self.base_)

    def fit_features(self, profiles: Profiles) -> Floats:
        """Learn the features' scaling; they must tell two kernels apart. Raises InputError."""
        points = super().fit_features(profiles)
        counted = profiles.counters
        if BASE_POWER in self.scaling_.names and profiles.power_w is not None:
            counted = np.column_stack([counted, profiles.power_w])
        is_same = np.isnan(counted) | (counted == counted[0])
        if len(points) < 2 or (points == points[0]).all() or is_same.all():
            raise InputError(
                f"'wu' needs at least two training kernels whose '{self.scaling_.kind}' "
                "features differ"
            )
        return points

    def _count(self, table: Measurements) -> int:
        """Return K, chosen by cross-validation of the training kernels alone if it is 'auto'."""
        kernels, applications = len(table.kernels), table.applications
        if self.clusters is None or (self.clusters == AUTO and len(set(applications)) < AUTO_FOLDS):
            return min(DEFAULT_CLUSTERS, kernels)
        if self.clusters == AUTO:
            return self._best_count(table)
        count = int(self.clusters)
        if not 1 <= count <= kernels:
            raise InputError(
                f"{count} clusters cannot be made of {kernels} training kernels; "
                f"give 1 to {kernels} with {parameter('clusters')}"
            )
        return count

    def _best_count(self, table: Measurements) -> int:
        """Return the K of AUTO_COUNTS of the least error on applications held out."""
        folds = self._folds(table.applications)
        most = min(len(train) for train, _ in folds)
        counts = [count for count in AUTO_COUNTS if count <= most] or [most]
        trials = [(replace(self, clusters=count), *fold) for count in counts for fold in folds]
        self.fit_together([(model, table.select(train), self.base_) for model, train, _ in trials])
        scores = [model.score(table.select(test), self.base_) for model, _, test in trials]
        means = np.reshape(scores, (len(counts), AUTO_FOLDS)).mean(axis=1)
        return counts[int(means.argmax())]

    def _folds(self, applications: Sequence[str]) -> list[tuple[Indices, Indices]]:
        """Return which kernels to train on and to test, whole applications at a time, by the seed.

        applications: of each kernel.
        """
        names = sorted(set(applications))
        order = np.random.default_rng(self.seed).permutation(len(names))
        fold_of = {names[a]: n % AUTO_FOLDS for n, a in enumerate(order.tolist())}
        folds = np.array([fold_of[name] for name in applications])
        return [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(AUTO_FOLDS)]

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Walk along the centroids that the networks choose, on the training grid."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        return Surfaces(self.grid_, self.base_, self.factors(points), flags)

    def factors(self, points: Floats) -> Floats:
        """Return the surfaces (n, C, E, M) of normalised features (n, F)."""
        return self._tables.surfaces(points)

    def feature_names(self) -> tuple[str, ...]:
        """Return the features that some training kernel had."""
        return self.scaling_.names

    def check_restored(self) -> None:
        """Make the tables that are not kept."""
        self._take(self.cluster_sets_)
