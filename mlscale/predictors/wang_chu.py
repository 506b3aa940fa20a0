"""The analytical model of Wang and Chu, relative to one measured run (the rule max+X)."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.papers.gpu_file import read_gpu_parameters
from mlscale.papers.wang_chu import predict_time_factor
from mlscale.papers.wang_chu_gpus import GpuParameters, load_gpu, require_cu_count
from mlscale.papers.wang_chu_inputs import derive_inputs, require_counters
from mlscale.predictors.base import Bases, State, Training, training_sets
from mlscale.predictors.baselines import Untrained


@dataclass
class WangChu(Untrained):
    """Time from nvprof counters and the base time; needs no training, and predicts any clocks.

    The number of CUs stays that of the GPU. What lies outside the model's scope, FP64 or texture
    use, is flagged.

    Attributes:
        gpu: path of the gpu.json that `mlscale collect --micro` wrote; where empty, the GPU's
            parameters are those of the paper or of its specification.
    """

    gpu: str = ""

    name = "wang-chu"
    quantities: ClassVar[tuple[str, ...]] = ("time",)

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether the counters and the GPU are those of the model."""
        try:
            _require(measurements, load_gpu(measurements.device))
        except InputError:
            return False
        return True

    def fit(self, training: Training, base: Bases) -> Self:
        """Take over the first table's grid; an empty sequence is enough.

        Raises InputError on a quantity other than time, an unknown device, missing counters,
        other CU counts than the device's own, or a file that is not of this GPU.
        """
        self.measured_ = read_gpu_parameters(Path(self.gpu)) if self.gpu else None
        for measurements, _ in training_sets(self, training, base):
            _require(measurements, self._parameters(measurements.device))
        return super().fit(training, base)

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return factors on the grid given, else on the training grid. Raises InputError."""
        grid = self.grid_or_trained(grid)
        gpu = self._parameters(profiles.device)
        require_cu_count(gpu, (profiles.base.cu_count, *grid.cu_count))
        inputs = derive_inputs(profiles, gpu)
        _, engine, memory = np.ix_(grid.cu_count, grid.engine_mhz, grid.memory_mhz)
        base_clocks = (profiles.base.engine_mhz, profiles.base.memory_mhz)
        factors = predict_time_factor(inputs, gpu, base_clocks, profiles.time_ms, engine, memory)
        return Surfaces(grid, profiles.base, factors, inputs.flags)

    def state(self) -> State:
        """Return grid and base, if there were any, and the measured parameters."""
        measured = {} if self.measured_ is None else {"measured": asdict(self.measured_)}
        return {**super().state(), **measured}

    def restore(self, state: State) -> Self:
        """Take over grid, base and measured parameters; the file is not read again."""
        of_grid = {name: value for name, value in state.items() if name != "measured"}
        self.measured_ = GpuParameters(**state["measured"]) if "measured" in state else None
        return super().restore(of_grid)

    def _parameters(self, device: str) -> GpuParameters:
        """The GPU's parameters. Raises InputError where they were measured on another one."""
        if self.measured_ is None:
            return load_gpu(device)
        if self.measured_.key != device:
            raise InputError(f"{self.gpu}: is of '{self.measured_.key}', not of '{device}'")
        return self.measured_


def _require(measurements: Measurements, gpu: GpuParameters) -> None:
    """Raise InputError on missing counters, or other CU counts than the GPU's own."""
    require_counters(measurements.counter_names)
    require_cu_count(gpu, measurements.grid.cu_count)
