"""The interface of all predictors, and what some of them can do besides.

Every predictor is a `Predictor`. What only some can do is a protocol each: a predictor has it by
having its methods, and `isinstance(predictor, GivesIntervals)` tells.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    Protocol,
    Self,
    cast,
    get_args,
    get_type_hints,
    runtime_checkable,
)

import numpy as np

from mlscale.data.grid import Base, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, by_power_laws, without_base
from mlscale.errors import InputError
from mlscale.predictors.intervals import (
    exact_at_base,
    require_coverage,
    widened_within_reach,
    within_reach,
)

NO_INTERVALS = "no intervals of {}: too few applications or GPUs to hold out in training"

State = dict[str, Any]
Training = Measurements | Sequence[Measurements]
Bases = Base | Sequence[Base]
TrainingSet = tuple[Measurements, HardwareConfig]


class TrainedGpu(NamedTuple):
    """Of a training table the device, its grid and its base."""

    device: str
    grid: ConfigGrid
    base: HardwareConfig


_KINDS: dict[Any, tuple[Any, str]] = {  # by declared type what may stand for it, and in words
    str: ((str, PathLike, list, np.ndarray), "text"),  # a list of one name, as out of a data frame
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: ((bool, np.bool_), "True or False"),
    NoneType: (NoneType, "None"),
    Sequence[str]: ((Sequence, np.ndarray), "a list of names"),
}


class NotFittedError(InputError, AttributeError):
    """A predictor was asked for what only fitting gives it."""


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

    if not TYPE_CHECKING:  # mypy would take it for a promise that every attribute exists

        def __getattr__(self, name: str) -> Any:
            """Raise NotFittedError on an attribute that fitting gives, before it has."""
            if name.endswith("_") and not name.startswith("_"):
                raise NotFittedError(f"the predictor '{self.name}' is not fitted: it has no {name}")
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the hyper-parameters by name, as scikit-learn's `clone` asks for them."""
        named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        parameters = signature(type(self)).parameters.values()
        return {p.name: getattr(self, p.name) for p in parameters if p.kind in named}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters. InputError on one that does not exist or is of another type."""
        names = self.get_params().keys()
        if unknown := ", ".join(f"'{name}'" for name in params if name not in names):
            raise InputError(
                f"the predictor '{self.name}' has no hyper-parameter {unknown}; it has "
                f"{', '.join(names) or 'none'}"
            )
        for name, value in params.items():
            require_declared_type(type(self), name, value)
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
        """Learn from the measurements of one GPU or several, each profiled at its base.

        A base is a configuration of the grid or its index (c, e, m). Raises InputError where
        the measurements do not suffice.
        """

    @abstractmethod
    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Predict the surfaces of new kernels on the training grid, or on `grid` if it can.

        Raises InputError where the profiles lack what the predictor needs.
        """

    def score(self, measurements: Measurements, base: Base) -> float:
        """Return minus the mean absolute percentage error, so that more is better.

        The mean goes over the kernels and over every configuration but the base.
        """
        config = measurements.grid.config(base)
        surfaces = self.predict(measurements.profiles(config))
        actual = measurements.relative(self.quantity, config)
        errors = absolute_percentage_error(surfaces.values, actual)
        return -float(without_base(errors, measurements.grid.index(config)).mean())


def require_declared_type(owner: type, name: str, value: object) -> None:
    """Raise InputError on a value of another type than the class declares under that name.

    A predictor of one's own may declare nothing, or any other type: then every value passes.
    """
    hints: dict[str, Any] = {}
    with suppress(Exception):  # whatever its annotations are
        hints = get_type_hints(owner)
    declared = hints.get(name)
    members = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    kinds = [_KINDS[member] for member in members if member in _KINDS]
    if len(kinds) < len(members):
        return
    if isinstance(value, bool):
        is_declared = bool in members
    else:
        is_declared = any(isinstance(value, kind) for kind, _ in kinds)
    if not is_declared:
        words = " or ".join(word for _, word in kinds)
        raise InputError(f"{name} must be {words}, not {type(value).__name__}")


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

    def needs(self) -> tuple[str, ...]:
        """Return the features that a profile must have."""

    def feature_names(self) -> tuple[str, ...]:
        """Return all features that it looks at, needed or not."""


@runtime_checkable
class ComparesSources(Protocol):
    """Knows from what the numbers were computed that it was trained with."""

    def other_sources(self, profiles: Profiles) -> Mapping[str, tuple[str, ...]]:
        """Return by number from what a profile has it, where that differs from the training."""


@runtime_checkable
class FitsTogether(Protocol):
    """Shares work between predictors that are fitted at the same time."""

    @classmethod
    def fit_together(cls, jobs: Sequence[tuple[Any, Training, Bases]]) -> None:
        """Fit every predictor of the jobs, each as by `fit`."""


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
    """Predicts power of any GPU from the times that a predictor of time gives for it."""

    def with_times(self, times: Surfaces) -> Predictor:
        """Return the predictor for kernels with these times, on their grid."""

    def refusal(self, profiles: Profiles) -> str | None:
        """Return why power on the profiles' GPU cannot be predicted, None where it can."""

    def assumption(self, profiles: Profiles) -> str | None:
        """Return what a reader should know of how power of a GPU is predicted."""


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
    too little for them. Raises InputError on a coverage that is not between 0
    and 1, and where the predictor gives anything but surfaces of finite, positive factors for these
    kernels.
    """
    if coverage is not None:
        require_coverage(coverage)
    if coverage is not None and isinstance(predictor, GivesIntervals):
        surfaces = predictor.predict_interval(profiles, coverage, grid)
    else:
        surfaces = predictor.predict(profiles, grid)
    _check_surfaces(predictor.name, surfaces, profiles, grid)
    is_asked = coverage is not None and predictor.get_params().get("intervals", True)
    if is_asked and isinstance(predictor, GivesIntervals) and surfaces.low is None:
        note = NO_INTERVALS.format(predictor.quantity)
        surfaces = replace(surfaces, flags=tuple((note, *own) for own in surfaces.flags))
    return within_reach(exact_at_base(surfaces), predictor.quantity)


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


def _check_surfaces(name: str, surfaces: Any, profiles: Profiles, grid: ConfigGrid | None) -> None:
    """Raise InputError unless they are surfaces of the profiles that can be worked with."""
    if not isinstance(surfaces, Surfaces):
        raise InputError(f"the predictor '{name}' gave {type(surfaces).__name__}, not Surfaces")
    values: Any = surfaces.values
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        raise InputError(f"the predictor '{name}' gave factors that are no array of numbers")
    expected = (len(profiles.kernels), *(grid or surfaces.grid).shape)
    if values.shape != expected:
        raise InputError(
            f"the predictor '{name}' gave factors of shape {values.shape}, not {expected}"
        )
    # Both are NaN where any factor is.
    if values.min(initial=1) > 0 and values.max(initial=1) < np.inf:
        return
    sound = (np.isfinite(values) & (values > 0)).reshape(len(values), -1).all(axis=1)
    kernel = profiles.kernels[int(np.argmin(sound))]
    raise InputError(
        f"the predictor '{name}' gave a factor for '{kernel}' that is not finite and positive"
    )


def fit_all(jobs: Sequence[tuple[Predictor, Training, Bases]]) -> None:
    """Fit predictors of one class, together where the class can share work. Raises InputError."""
    if jobs and isinstance(jobs[0][0], FitsTogether):
        type(jobs[0][0]).fit_together(jobs)
        return
    for predictor, training, base in jobs:
        predictor.fit(training, base)


def for_other_gpus(predictor: Predictor) -> PredictsOtherGpus:
    """Return the predictor if it predicts GPUs without training data; else raise InputError."""
    if not isinstance(predictor, PredictsOtherGpus):
        raise InputError(f"'{predictor.name}' cannot predict a GPU that it was not trained on")
    return predictor


def training_sets(predictor: Predictor, training: Training, base: Bases) -> list[TrainingSet]:
    """Pair each GPU's measurements, `in_order`, with its base as a configuration of their grid.

    Raises InputError when the predictor does not know its quantity, the numbers of tables and
    bases differ, or a base is not on its grid.
    """
    if predictor.quantity not in predictor.quantities:
        raise InputError(
            f"'{predictor.name}' predicts {' or '.join(predictor.quantities)}, "
            f"not '{predictor.quantity}'"
        )
    tables = [training] if isinstance(training, Measurements) else list(training)
    bases = _as_list(base)
    if len(tables) != len(bases):
        raise InputError(f"{len(tables)} tables need as many bases, not {len(bases)}")
    return [
        (table.in_order, table.grid.config(one)) for table, one in zip(tables, bases, strict=True)
    ]


def _as_list(base: Bases) -> list[Base]:
    """Return one base, as ConfigGrid.config takes it, or several, as a list."""
    if isinstance(base, HardwareConfig | str):
        return [base]
    items = tuple(base)
    try:
        c, e, m = (operator.index(cast("int", step)) for step in items)
    except (TypeError, ValueError):
        return [cast("Base", item) for item in items]
    return [(c, e, m)]


def single_gpu(predictor: Predictor, training: Training, base: Bases) -> TrainingSet:
    """Return the one training set of a predictor that learns from one GPU at a time.

    Raises InputError on none or several, and on a table without kernels or of one configuration.
    """
    sets = training_sets(predictor, training, base)
    if len(sets) != 1:
        raise InputError(
            f"'{predictor.name}' learns from one GPU at a time, not from {len(sets)} tables"
        )
    if not sets[0][0].kernels:
        raise InputError(f"'{predictor.name}' needs at least one training kernel")
    if sets[0][0].grid.size == 1:
        raise InputError(f"'{predictor.name}' needs two configurations at least")
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
