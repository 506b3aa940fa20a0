"""Whole surfaces from features: the mean of the nearest training kernels, and trees."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from mlscale.arrays import shaped
from mlscale.data.grid import ConfigGrid, grid_state, restore_grid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors.base import (
    Bases,
    Predictor,
    State,
    Training,
    on_training_grid,
    single_gpu,
)
from mlscale.predictors.features import Explanation, FeatureScaling, TrainingKernels


@dataclass
class Nearest(Predictor):
    """Geometric mean of the surfaces of the nearest training kernels.

    Distance is Euclidean in min-max-normalised features; `neighbours` of them count alike.
    """

    name = "nearest"
    quantity: str = "time"
    features: str | None = None
    neighbours: int = 3

    def fit(self, training: Training, base: Bases) -> Self:
        """Keep the training kernels' features and surfaces. Raises InputError."""
        if self.neighbours < 1:
            raise InputError(f"'nearest' needs 1 or more neighbours, not {self.neighbours}")
        measurements, self.base_ = single_gpu(self, training, base)
        self.grid_ = measurements.grid
        profiles = measurements.profiles(self.base_)
        self.scaling_ = FeatureScaling.fit(self.features, profiles)
        self.points_, _ = self.scaling_.transform(profiles)
        self.kernels_: tuple[str, ...] | None = profiles.kernels
        self.log_surfaces_ = np.log(measurements.relative(self.quantity, self.base_))
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean surface of each kernel's nearest training kernels."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        distances = np.linalg.norm(points[:, None, :] - self.points_, axis=2)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.neighbours]
        logs = self.log_surfaces_[nearest].mean(axis=1)
        return Surfaces.of_logs(self.grid_, self.base_, logs, flags)

    def needs(self) -> tuple[str, ...]:
        """Return the features that every training kernel had."""
        return self.scaling_.needs

    def feature_names(self) -> tuple[str, ...]:
        """Return the features that some training kernel had."""
        return self.scaling_.names

    def explain(self, profiles: Profiles) -> Explanation:
        """Return the features beside their training range and kernels. Raises InputError."""
        names = self.kernels_
        training = None if names is None else TrainingKernels(names, self.points_)
        return self.scaling_.explain(profiles, training)

    def state(self) -> State:
        """Return grid, scaling, points and log surfaces of the training kernels."""
        return {
            **grid_state(self.grid_, self.base_),
            "scaling": self.scaling_.state(),
            "points": self.points_,
            **({} if self.kernels_ is None else {"kernels": list(self.kernels_)}),
            "log_surfaces": self.log_surfaces_,
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; files of before the kernels' names were kept lack them."""
        self.grid_, self.base_ = restore_grid(state)
        self.scaling_ = FeatureScaling.restore(state["scaling"])
        names = state.get("kernels")
        self.kernels_ = None if names is None else tuple(map(str, names))
        count = None if self.kernels_ is None else len(self.kernels_)
        self.points_ = shaped(state["points"], count, len(self.scaling_.names))
        self.log_surfaces_ = shaped(state["log_surfaces"], len(self.points_), *self.grid_.shape)
        if self.neighbours < 1 or not len(self.points_):
            raise ValueError("it has no neighbours to take the mean of")
        return self


@dataclass
class ExtraTrees(Predictor):
    """Extremely randomised trees from features to the whole log surface at once.

    A strong general regressor, for studies only.
    """

    name = "extra-trees"
    quantity: str = "time"
    features: str | None = None
    trees: int = 300
    seed: int = 0

    def fit(self, training: Training, base: Bases) -> Self:
        """Grow the trees. Raises InputError."""
        from sklearn.ensemble import ExtraTreesRegressor

        measurements, self.base_ = single_gpu(self, training, base)
        self.grid_ = measurements.grid
        profiles = measurements.profiles(self.base_)
        self.scaling_ = FeatureScaling.fit(self.features, profiles)
        points, _ = self.scaling_.transform(profiles)
        logs = measurements.log_ratios(self.quantity, self.base_)
        self.forest_ = ExtraTreesRegressor(self.trees, random_state=self.seed, max_features=0.5)
        self.forest_.fit(points, logs)
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean over the trees of the log surfaces."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        logs = self.forest_.predict(points)
        return Surfaces.of_logs(self.grid_, self.base_, logs, flags)
