"""What the predictors of whole boards share: tables of several GPUs, and any GPU predicted."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from mlscale.data.grid import ConfigGrid, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_engine_sweep
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.base import Predictor, TrainedGpu, TrainingSet, training_grid

LEAST_CLOCKS = 3  # of a training table


class BoardPredictor(Predictor):
    """A predictor that learns from tables of several GPUs, each at its bases, and predicts any."""

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles over the engine clock alone."""
        return is_engine_sweep(measurements) and len(measurements.grid.engine_mhz) >= LEAST_CLOCKS

    def _remember(self, sets: Sequence[TrainingSet]) -> None:
        """Keep of which GPUs the tables are, their grids and bases."""
        self.trained_: tuple[TrainedGpu, ...] = tuple(
            (table.device, table.grid, at) for table, at in sets
        )

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces, on the grid of the training table where none is given. Raises InputError.

        The class says which settings a grid may have.
        """
        return self._surfaces(profiles, grid or training_grid(self.trained_, profiles), None)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of runs x configurations.

        The class says of which GPUs they do. low and high are None after training on one GPU alone.
        Raises InputError.
        """
        return self._surfaces(profiles, grid or training_grid(self.trained_, profiles), coverage)

    @abstractmethod
    def _surfaces(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        """The surfaces, with intervals where a coverage is given. Raises InputError."""

    def _trained_state(self) -> list[dict[str, Any]]:
        return [
            {"device": device, **grid_state(grid, base)} for device, grid, base in self.trained_
        ]

    def _restore_trained(self, state: Sequence[dict[str, Any]]) -> None:
        """Take over what `_trained_state` gave; raises ValueError where it names no GPU."""
        self.trained_ = tuple((str(one["device"]), *restore_grid(one)) for one in state)
        if not self.trained_:
            raise ValueError("it does not say the GPUs that it learnt from")
