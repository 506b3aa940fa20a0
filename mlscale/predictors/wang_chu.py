"""The analytical model of Wang and Chu, relative to one measured run (the rule max+X)."""

from typing import ClassVar, Self

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.papers.wang_chu import predict_time_factor
from mlscale.papers.wang_chu_gpus import load_gpu, require_cu_count
from mlscale.papers.wang_chu_inputs import derive_inputs, require_counters
from mlscale.predictors.base import Bases, Training, training_sets
from mlscale.predictors.baselines import Untrained


class WangChu(Untrained):
    """Time from nvprof counters and the base time; needs no training, and predicts any clocks.

    The number of CUs stays that of the GPU. What lies outside the model's scope, FP64 or texture
    use, is flagged.
    """

    name = "wang-chu"
    quantities: ClassVar[tuple[str, ...]] = ("time",)

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether the counters and the GPU are those of the model."""
        try:
            _require(measurements)
        except InputError:
            return False
        return True

    def fit(self, training: Training, base: Bases) -> Self:
        """Take over the first table's grid; an empty sequence is enough.

        Raises InputError on a quantity other than time, an unknown device, missing counters or
        other CU counts than the device's own.
        """
        for measurements, _ in training_sets(self, training, base):
            _require(measurements)
        return super().fit(training, base)

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return factors on the grid given, else on the training grid. Raises InputError."""
        grid = self.grid_or_trained(grid)
        gpu = load_gpu(profiles.device)
        require_cu_count(gpu, (profiles.base.cu_count, *grid.cu_count))
        inputs = derive_inputs(profiles, gpu)
        _, engine, memory = np.ix_(grid.cu_count, grid.engine_mhz, grid.memory_mhz)
        base_clocks = (profiles.base.engine_mhz, profiles.base.memory_mhz)
        factors = predict_time_factor(inputs, gpu, base_clocks, profiles.time_ms, engine, memory)
        return Surfaces(grid, profiles.base, factors, inputs.flags)


def _require(measurements: Measurements) -> None:
    """Raise InputError on an unknown device, missing counters or other CU counts than its own."""
    gpu = load_gpu(measurements.device)
    require_counters(measurements.counter_names)
    require_cu_count(gpu, measurements.grid.cu_count)
