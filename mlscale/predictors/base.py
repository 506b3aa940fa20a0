"""The one interface of all predictors: from profiles to surfaces."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, cast

from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors.explanation import Explanation

State = dict[str, Any]
Training = Measurements | Sequence[Measurements]
Base = HardwareConfig | Index
Bases = Base | Sequence[Base]
TrainingSet = tuple[Measurements, HardwareConfig]


class Predictor(ABC):
    """What every predictor is: hyper-parameters, `fit`, `predict`, and a state to save.

    Subclasses are dataclasses; their fields are the hyper-parameters and are never changed by
    fitting. `quantity`, 'time' or 'power', is one of them. What fitting learns is kept in
    attributes that end in an underscore.
    """

    name: ClassVar[str]
    quantities: ClassVar[tuple[str, ...]] = tuple(QUANTITIES)
    savable: ClassVar[bool] = True
    uses_also: ClassVar[bool] = False  # makes use of Profiles.also
    pools: ClassVar[bool] = False  # learns time from several GPUs at once
    other_gpus: ClassVar[bool] = False  # predicts GPUs that it was not trained on
    quantity: str

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The hyper-parameters by name, as scikit-learn's `clone` asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters. Raises InputError on one that does not exist."""
        for name, value in params.items():
            if name not in self.get_params():
                raise InputError(f"the predictor '{self.name}' has no parameter '{name}'")
            setattr(self, name, value)
        return self

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:  # noqa: ARG003
        """Whether the predictor can be tried on these measurements at all."""
        return True

    @abstractmethod
    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the measurements of one GPU or several, each profiled at its base.

        Raises InputError where the measurements do not suffice.
        """

    @classmethod
    def fit_together(cls, jobs: Sequence[tuple[Self, Training, Bases]]) -> None:
        """Fit many predictors, each as by `fit`; a predictor may share work between them."""
        for predictor, training, base in jobs:
            predictor.fit(training, base)

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Get ready for a GPU without training data, from profiles of it that have no surfaces.

        Raises InputError where a predictor knows the GPUs that it was trained on only.
        """
        if not self.other_gpus:
            raise InputError(f"'{self.name}' cannot predict a GPU that it was not trained on")
        return self

    @abstractmethod
    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces of new kernels, on the training grid or, where it can be, on another.

        Raises InputError where the profiles lack what the predictor needs.
        """

    def needs(self) -> tuple[str, ...]:
        """The features that a profile must have; empty for a predictor without features."""
        return ()

    def feature_names(self) -> tuple[str, ...]:
        """All features that it looks at, needed or not."""
        return ()

    def predict_interval(
        self,
        profiles: Profiles,  # noqa: ARG002
        coverage: float = 0.9,  # noqa: ARG002
        grid: ConfigGrid | None = None,  # noqa: ARG002
    ) -> Surfaces | None:
        """Surfaces with low and high that hold that share of the truth; None without intervals."""
        return None

    def explain(self, profiles: Profiles) -> Explanation | None:  # noqa: ARG002
        """What the predictions of these kernels rest on; None for a predictor without features.

        Raises InputError where the profiles lack what the predictor needs.
        """
        return None

    @abstractmethod
    def state(self) -> State:
        """What fitting learnt: nested dicts of arrays and JSON values, for the model file."""

    @abstractmethod
    def restore(self, state: State) -> Self:
        """Take over what `state` gave; a damaged state raises KeyError, TypeError or ValueError."""


def training_sets(predictor: Predictor, training: Training, base: Bases) -> list[TrainingSet]:
    """Each GPU's measurements with its base as a configuration of their grid.

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
    sets = []
    for table, at in zip(tables, bases, strict=True):
        config = at if isinstance(at, HardwareConfig) else table.grid.config(at)
        table.grid.index(config)
        sets.append((table, config))
    return sets


def _as_list(base: Bases) -> list[Base]:
    """One base, a configuration or an index of three whole numbers, or several, as a list."""
    if isinstance(base, HardwareConfig):
        return [base]
    given = tuple(base)
    if len(given) == 3 and all(isinstance(step, int) for step in given):
        return [cast("Index", given)]
    return [cast("Base", one) for one in given]


def single_gpu(predictor: Predictor, training: Training, base: Bases) -> TrainingSet:
    """The one training set of a predictor that learns from one GPU at a time.

    Raises InputError on none or several, and on a table without kernels.
    """
    sets = training_sets(predictor, training, base)
    if len(sets) != 1:
        raise InputError(
            f"'{predictor.name}' learns from one GPU at a time, not from {len(sets)} tables"
        )
    if not sets[0][0].kernels:
        raise InputError(f"'{predictor.name}' needs at least one training kernel")
    return sets[0]


def on_training_grid(
    name: str, trained: tuple[ConfigGrid, HardwareConfig], profiles: Profiles, grid: object
) -> None:
    """Raise InputError unless the profiles are at the trained base and the grid the trained one."""
    trained_grid, base = trained
    if profiles.base != base:
        raise InputError(f"the model's base is {base}, the profile was taken at {profiles.base}")
    if grid is not None and grid != trained_grid:
        raise InputError(f"'{name}' predicts on its training grid only; interpolate its surfaces")
