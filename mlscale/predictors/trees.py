"""ExtraTrees on the log surface: a strong general regressor, for studies only."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.base import (
    Bases,
    Predictor,
    Training,
    on_training_grid,
    single_gpu,
)
from mlscale.predictors.features import FeatureScaling


@dataclass
class ExtraTrees(Predictor):
    """Extremely randomised trees from features to the whole log surface at once."""

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
        logs = np.log(measurements.relative(self.quantity, self.base_))
        self.forest_ = ExtraTreesRegressor(self.trees, random_state=self.seed, max_features=0.5)
        self.forest_.fit(points, logs.reshape(len(logs), -1))
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean over the trees of the log surfaces."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        logs = self.forest_.predict(points).reshape(len(points), *self.grid_.shape)
        return Surfaces(self.grid_, self.base_, np.exp(logs), flags)
