"""The interface of all predictors, and what some of them can do besides.

A predictor is a `Predictor`: `fit` and `predict` are all that one must write. What only some can do
is a protocol each: a predictor has it by having its methods, and `isinstance(predictor,
GivesIntervals)` tells.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast, runtime_checkable

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import Base, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.surfaces import (
    Surfaces,
    absolute_percentage_error,
    by_power_laws,
    mean_of_kernels,
    without_base,
)
from mlscale.errors import InputError
from mlscale.guesses import instead
from mlscale.notes import Note
from mlscale.parameters import command
from mlscale.predictors.features import FeatureScaling
from mlscale.predictors.intervals import require_coverage, widened_within_reach, within_reach

NO_INTERVALS = "no intervals for {}: too few applications or GPUs to hold out in training"

State = dict[str, Any]
Training = Measurements | Sequence[Measurements]
Bases = Base | Sequence[Base]  # for one table, or for each of several
TrainingSet = tuple[Measurements, HardwareConfig]


class TrainedGpu(NamedTuple):
    """Of a training table the device, its grid and its base."""

    device: str
    grid: ConfigGrid
    base: HardwareConfig


class Predictor(ABC):
    """From profiles to surfaces of one quantity: hyper-parameters, `fit` and `predict`.

    The hyper-parameters are what `__init__` takes, most simply the fields of a dataclass; each
    is kept under its own name and never changed by fitting. `quantity`, 'time' or 'power', is
    one of them; a predictor without it is of time. What fitting learns is kept in attributes
    that end in an underscore.
    """

    name: ClassVar[str]
    quantities: ClassVar[tuple[str, ...]] = tuple(QUANTITIES)
    quantity: str = "time"

    def __init_subclass__(cls, **options: Any) -> None:
        """Name a predictor after its class unless the class itself, not its parent, has a name."""
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __new__(cls, *_: Any, **params: Any) -> Self:
        """Raise InputError on a hyper-parameter that does not exist."""
        cls._require(params)
        return super().__new__(cls)

    @classmethod
    def _require(cls, params: Mapping[str, Any]) -> list[str]:
        """The hyper-parameters. Raises InputError where these are none of them."""
        named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        takes = signature(cls).parameters.values()
        names = [one.name for one in takes if one.kind in named]
        for name in params:
            if name not in names:
                what = instead("predictor", name, names, f"; it has {', '.join(names) or 'none'}")
                told = f"the predictor '{cls.name}' has no hyper-parameter '{name}'"
                raise InputError(f"{told}{what}")
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the hyper-parameters by name, as scikit-learn's `clone` asks for them."""
        return {name: getattr(self, name) for name in self._require({})}

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn needs in place of this. Raises InputError."""
        raise _for_sklearn(self)

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters. Raises InputError on one that does not exist."""
        self._require(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether the predictor can be tried on these measurements at all.

        One that has features needs counters.
        """
        return bool(measurements.counter_names) or "features" not in signature(cls).parameters

    @abstractmethod
    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the measurements of one GPU, or of several, each profiled at its base.

        A base is a configuration of the grid or its index (c, e, m). Raises InputError where
        the measurements do not suffice.
        """

    @abstractmethod
    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Predict the surfaces of new kernels on the training grid, or on `grid` if it can.

        Raises InputError where the profiles lack what the predictor needs.
        """

    @classmethod
    def fit_together(cls, jobs: Sequence[tuple[Any, Training, Bases]]) -> None:
        """Fit many predictors of this class, each as by `fit`; a class may let them share work."""
        for predictor, training, base in jobs:
            predictor.fit(training, base)

    def other_sources(self, profiles: Profiles) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return by number from what a profile has it, where that differs from the training."""
        return {}

    def score(self, measurements: Measurements, base: Base) -> float:
        """Return minus the mean absolute percentage error, so that more is better.

        The mean is of the kernels' means over what was measured of each, but the base.
        """
        config = measurements.grid.config(base)
        surfaces = self.predict(measurements.profiles(config))
        actual = measurements.measured_relative(self.quantity, config)
        errors = absolute_percentage_error(surfaces.values, actual)
        return -mean_of_kernels(without_base(errors, measurements.grid.index(config)))


@runtime_checkable
class GivesIntervals(Protocol):
    """Predicts intervals beside the surfaces."""

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Predict surfaces with `low` and `high`, which hold that share of the truth.

        Both are None where intervals were not calibrated. Raises InputError.
        """


@runtime_checkable
class Savable(Protocol):
    """Can be written to a model file."""

    def state(self) -> State:
        """Return what fitting learnt: nested dicts and lists of arrays and JSON values."""

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; a damaged state raises KeyError, TypeError, ValueError."""


@runtime_checkable
class HasFeatures(Protocol):
    """Looks at counters, or at features made of them."""

    def feature_names(self) -> tuple[str, ...]:
        """Return all features that it looks at."""


@runtime_checkable
class NeedsFeatures(Protocol):
    """Predicts no kernel that lacks some counter or feature."""

    def needs(self) -> tuple[str, ...]:
        """Return the features that a profile must have."""


@runtime_checkable
class ScalesFeatures(Protocol):
    """Sees features by way of a `FeatureScaling`, which replaces those that a kernel lacks."""

    scaling_: FeatureScaling


@runtime_checkable
class PoolsGpus(Protocol):
    """Learns from the tables of several GPUs at once."""

    def trained_devices(self) -> tuple[str, ...]:
        """Return the devices that it has learnt from."""


@runtime_checkable
class PredictsOtherGpus(Protocol):
    """Predicts GPUs that it has no training data of."""

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:
        """Get ready for a GPU, from profiles of any of its kernels; no surfaces are needed.

        grid: the one that will be predicted. Raises InputError.
        """

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """Return the grid of each training table."""


@runtime_checkable
class PredictsFromTimes(Protocol):
    """Predicts power of any GPU from the times that a predictor of time gives for it.

    Energy too, with intervals of its own, narrower than those of time x power.
    """

    def with_times(self, times: Surfaces, are_of_law: bool = False) -> Self:
        """Return the predictor for kernels with these times, on their grid.

        are_of_law: whether a predictor of the same kind gave them, from readings at two clocks.
        """

    def refusal(self, profiles: Profiles, grid: ConfigGrid) -> str | None:
        """Return why power on the profiles' GPU cannot be predicted there, None where it can."""

    def assumption(self, profiles: Profiles) -> Note | None:
        """Return what a reader should know of how power of a GPU is predicted."""

    def predict_energy(
        self, profiles: Profiles, coverage: float, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Predict surfaces of energy over the base's, with `low` and `high`. Raises InputError."""

    def energy_draws(self, profiles: Profiles, grid: ConfigGrid, draws: int) -> Floats:
        """Draw what energy over the base's may be, (draws, K, N). Raises InputError."""


@runtime_checkable
class UsesMeasuredPoints(Protocol):
    """Makes use of further measured points of the profiled kernels."""

    def conditioned(self, profiles: Profiles, grid: ConfigGrid) -> tuple[Any, Any]:
        """Return the surfaces given those points, and what intervals are made of.

        grid: what is predicted.
        """


def predict_surfaces(
    predictor: Predictor,
    profiles: Profiles,
    grid: ConfigGrid | None = None,
    coverage: float | None = None,
) -> Surfaces:
    """Predict once: with intervals where a coverage is given and the predictor has them.

    They are no wider than time and power can change, see `reach`; a flag says where training was
    too little for them. Raises InputError on a coverage that is not between 0 and 1, and on
    factors that are not finite and positive, one for each kernel and configuration.
    """
    if coverage is not None:
        require_coverage(coverage)
    if coverage is not None and isinstance(predictor, GivesIntervals):
        surfaces = predictor.predict_interval(profiles, coverage, grid)
        if surfaces.low is None and predictor.get_params().get("intervals", True):
            note = Note("P05", NO_INTERVALS.format(predictor.quantity), "warning")
            flags = surfaces.flags
            surfaces = replace(surfaces, flags=tuple((note, *kernel) for kernel in flags))
    else:
        surfaces = predictor.predict(profiles, grid)
    _check_factors(predictor.name, surfaces.values, profiles, grid or surfaces.grid)
    return within_reach(surfaces, predictor.quantity)


def predict_beyond(
    predictor: Predictor,
    profiles: Profiles,
    trained: ConfigGrid,
    grid: ConfigGrid,
    coverage: float | None = None,
) -> Surfaces:
    """Predict on a grid that goes beyond the trained one, with wider intervals but no wider bounds.

    By the predictor's own law where it predicts other grids, else as `by_power_laws` goes on.
    Raises InputError as `predict_surfaces` does.
    """
    if isinstance(predictor, PredictsOtherGpus):
        surfaces = predict_surfaces(predictor, profiles, grid, coverage)
    else:
        surfaces = by_power_laws(predict_surfaces(predictor, profiles, None, coverage), grid)
    if surfaces.is_bounded:
        return surfaces
    return widened_within_reach(surfaces, trained, predictor.quantity)


def _check_factors(name: str, values: Any, profiles: Profiles, grid: ConfigGrid) -> None:
    """Raise InputError unless there is a finite, positive factor of each kernel everywhere."""
    expected = (len(profiles.kernels), *grid.shape)
    if np.shape(values) != expected:
        raise InputError(
            f"the predictor '{name}' gave factors of shape {np.shape(values)}, not {expected}"
        )
    # Both are NaN where any factor is.
    if values.min(initial=1) > 0 and values.max(initial=1) < np.inf:
        return
    raise InputError(f"the predictor '{name}' gave a factor that is not finite and positive")


def for_other_gpus(predictor: Predictor) -> PredictsOtherGpus:
    """Return the predictor if it predicts GPUs without training data; else raise InputError."""
    if not isinstance(predictor, PredictsOtherGpus):
        raise InputError(f"'{predictor.name}' cannot predict a GPU that it was not trained on")
    return predictor


def _for_sklearn(predictor: Predictor) -> InputError:
    """What to write where scikit-learn, or somebody with flat rows, is given the predictor."""
    return InputError(
        f"'{predictor.name}' learns from Measurements; for scikit-learn and flat rows X, y write "
        f"mlscale.sklearn.ScalingRegressor('{predictor.name}'), on mlscale.sklearn.to_xy(table)"
    )


def training_sets(predictor: Predictor, training: Training, base: Bases) -> list[TrainingSet]:
    """Pair each GPU's measurements, `in_order`, with its base as a configuration of their grid.

    Raises InputError when the predictor does not know its quantity, or a base is not on its grid.
    """
    if predictor.quantity not in predictor.quantities:
        raise InputError(
            f"'{predictor.name}' predicts {' or '.join(predictor.quantities)}, "
            f"not '{predictor.quantity}'"
        )
    if isinstance(training, Measurements):
        return [(training.in_order, training.grid.config(cast("Base", base)))]
    bases = cast("Sequence[Base]", base)
    if not all(isinstance(table, Measurements) for table in training):
        raise _for_sklearn(predictor)
    pairs = zip(training, bases, strict=True)
    return [(table.in_order, table.grid.config(at)) for table, at in pairs]


def single_gpu(predictor: Predictor, training: Training, base: Bases) -> TrainingSet:
    """Return the one training set of a predictor that learns from one GPU at a time.

    Raises InputError on none or several, and on a table without kernels or of one configuration.
    """
    sets = training_sets(predictor, training, base)
    if len(sets) != 1:
        raise InputError(
            f"'{predictor.name}' learns from one GPU at a time, not from {len(sets)} tables"
        )
    table, _ = sets[0]
    if not table.kernels or table.grid.size == 1:
        advice = f"for an answer from one run: {command('advise FILE')}"
        raise InputError(f"'{predictor.name}' needs kernels at two settings or more; {advice}")
    return sets[0]


def training_grid(trained: Sequence[TrainedGpu], profiles: Profiles) -> ConfigGrid:
    """Return the grid of the training table of the profiles' GPU and base. Raises InputError."""
    for device, grid, base in trained:
        if (device, base) == (profiles.device, profiles.base):
            return grid
    raise InputError(
        f"no training table is of '{profiles.device}' at {profiles.base}; "
        "predict it as another GPU, with its grid"
    )


def on_training_grid(
    name: str, trained: tuple[ConfigGrid, HardwareConfig], profiles: Profiles, grid: object
) -> None:
    """Raise InputError unless the profiles are at the trained base and the grid the trained one."""
    trained_grid, base = trained
    if profiles.base != base:
        raise InputError(f"the model's base is {base}, the profile was taken at {profiles.base}")
    if grid is not None and grid != trained_grid:
        raise InputError(f"'{name}' predicts on its training grid only; interpolate its surfaces")
