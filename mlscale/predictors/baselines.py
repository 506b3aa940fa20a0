"""What any learnt predictor must beat: rules, the mean surface, the nearest kernels, trees."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors.base import (
    Bases,
    Predictor,
    Training,
    on_training_grid,
    single_gpu,
    training_sets,
)
from mlscale.predictors.features import FeatureScaling, LearnsFeatures, training_profiles
from mlscale.predictors.state import Learner, State, learnt


@dataclass
class Untrained(Predictor):
    """A predictor that learns nothing from a table but the grid to predict on by default."""

    quantity: str = "time"

    def fit(self, training: Training, base: Bases) -> Self:
        """Take over the first table's grid; an empty sequence is enough. Raises InputError."""
        sets = training_sets(self, training, base)
        self.trained_ = (sets[0][0].grid, sets[0][1]) if sets else None
        return self

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Return the predictor as it is: it needs no peaks."""
        return self

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """Return the first table's grid, if there was a table."""
        return () if self.trained_ is None else (self.trained_[0],)

    def grid_or_trained(self, grid: ConfigGrid | None) -> ConfigGrid:
        """Return the grid, or the trained one for None. Raises InputError without either."""
        if grid is not None:
            return grid
        if self.trained_ is None:
            raise InputError(f"'{self.name}' learnt no grid, so predict must be given one")
        return self.trained_[0]

    def state(self) -> State:
        """Return grid and base, if there were any."""
        return {} if self.trained_ is None else grid_state(*self.trained_)

    def restore(self, state: State) -> Self:
        """Take over grid and base."""
        self.trained_ = restore_grid(state) if state else None
        return self


class RateBound(Untrained):
    """Time falls, and power rises, in proportion to the rate of one resource.

    A subclass says which axes make the rate, first the one that no other has as its first. With no
    training set, `predict` needs a grid.
    """

    axes: ClassVar[tuple[str, ...]]

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether its first axis has steps; else a simpler one says the same."""
        return all(len(measurements.grid.steps[axis]) > 1 for axis in cls.axes[:1])

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return factors base rate / rate for time, rate / base rate for power."""
        grid = self.grid_or_trained(grid)
        rate, settings = np.ones(grid.size), grid.settings()
        for axis in self.axes:
            rate = rate * settings[axis] / getattr(profiles.base, axis)
        factors = (rate if self.quantity == "power" else 1 / rate).reshape(grid.shape)
        return Surfaces(grid, profiles.base, np.tile(factors, (len(profiles.kernels), 1, 1, 1)))


class NoScaling(RateBound):
    """Nothing changes from configuration to configuration."""

    name = "no-scaling"
    axes = ()


class EngineBound(RateBound):
    """Time in inverse proportion to the engine clock."""

    name = "engine-bound"
    axes = ("engine_mhz",)


class CoreBound(RateBound):
    """Time in inverse proportion to CU count times engine clock."""

    name = "core-bound"
    axes = ("cu_count", "engine_mhz")


class MemoryBound(RateBound):
    """Time in inverse proportion to the memory clock."""

    name = "memory-bound"
    axes = ("memory_mhz",)


@dataclass
class MeanSurface(Learner, Predictor):
    """Every kernel scales as the training kernels do on average (geometric mean)."""

    name = "mean-surface"
    quantity: str = "time"
    grid_: ConfigGrid = learnt()
    base_: HardwareConfig = learnt()
    surface_: Annotated[Floats, "C E M"] = learnt()

    def fit(self, training: Training, base: Bases) -> Self:
        """Average the training kernels' surfaces. Raises InputError on several GPUs."""
        measurements, self.base_ = single_gpu(self, training, base)
        self.grid_ = measurements.grid
        logs = np.log(measurements.relative(self.quantity, self.base_))
        self.surface_ = np.exp(logs.mean(axis=0))
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean surface for every kernel."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        values = np.tile(self.surface_, (len(profiles.kernels), 1, 1, 1))
        return Surfaces(self.grid_, self.base_, values)


@dataclass
class Nearest(LearnsFeatures, Learner, Predictor):
    """Geometric mean of the surfaces of the nearest training kernels.

    Distance is Euclidean in min-max-normalised features; `neighbours` of them count alike.
    """

    name = "nearest"
    quantity: str = "time"
    features: str | None = None
    neighbours: int = 3
    grid_: ConfigGrid = learnt()
    base_: HardwareConfig = learnt()
    scaling_: FeatureScaling = learnt()
    points_: Annotated[Floats, "K F"] = learnt()
    log_surfaces_: Annotated[Floats, "K C E M"] = learnt()

    def fit(self, training: Training, base: Bases) -> Self:
        """Keep the training kernels' features and surfaces. Raises InputError."""
        if self.neighbours < 1:
            raise InputError(f"'nearest' needs at least 1 neighbour, not {self.neighbours}")
        measurements, self.base_ = single_gpu(self, training, base)
        self.grid_ = measurements.grid
        self.points_ = self.fit_features(training_profiles(measurements, self.base_))
        self.log_surfaces_ = np.log(measurements.relative(self.quantity, self.base_))
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean surface of each kernel's nearest training kernels."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        distances = np.linalg.norm(points[:, None, :] - self.points_, axis=2)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, : self.neighbours]
        logs = self.log_surfaces_[nearest].mean(axis=1)
        return Surfaces.from_log_ratios(self.grid_, self.base_, logs, flags)

    def feature_names(self) -> tuple[str, ...]:
        """Return the features that some training kernel had."""
        return self.scaling_.names


@dataclass
class ExtraTrees(LearnsFeatures, Predictor):
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
        points = self.fit_features(training_profiles(measurements, self.base_))
        logs = measurements.log_ratios(self.quantity, self.base_)
        self.forest_ = ExtraTreesRegressor(self.trees, random_state=self.seed, max_features=0.5)
        self.forest_.fit(points, logs)
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the mean over the trees of the log surfaces."""
        on_training_grid(self.name, (self.grid_, self.base_), profiles, grid)
        points, flags = self.scaling_.transform(profiles)
        logs = self.forest_.predict(points)
        return Surfaces.from_log_ratios(self.grid_, self.base_, logs, flags)
