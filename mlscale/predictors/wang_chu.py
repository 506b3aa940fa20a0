"""The analytical model of Wang and Chu, scaled to one measured run, and the rule max-overlap."""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.papers.gpu_file import read_gpu_parameters
from mlscale.papers.wang_chu import max_overlap_factor, predict_time_factor
from mlscale.papers.wang_chu_inputs import (
    GpuParameters,
    WarpInputs,
    derive_inputs,
    load_gpu,
    require_counters,
    require_cu_count,
)
from mlscale.predictors.base import Bases, State, Training, training_sets
from mlscale.predictors.baselines import Untrained

Clocks = tuple[ArrayLike, ArrayLike]  # engine and memory [MHz]


@dataclass
class WarpPredictor(Untrained):
    """Time from nvprof counters and the base time; needs no training, and predicts any clocks.

    gpu: a file of the GPU's parameters, gpu.json of 'mlscale collect'; without one, the
    GPU is looked up by its device. The number of CUs stays that of the GPU. What lies outside the
    model's scope, FP64 or texture use, is flagged.
    """

    quantities: ClassVar[tuple[str, ...]] = ("time",)
    gpu: str = ""

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether the counters and the GPU are those of the model."""
        try:
            _require(measurements, load_gpu(measurements.device))
        except InputError:
            return False
        return True

    def fit(self, training: Training, base: Bases) -> Self:
        """Read the GPU's parameters and take over the first table's grid, if there is a table.

        Raises InputError on a quantity other than time, an unknown device, missing counters or
        other CU counts than the device's own.
        """
        self.measured_ = read_gpu_parameters(Path(self.gpu)) if self.gpu else None
        for measurements, _ in training_sets(self, training, base):
            _require(measurements, self._gpu_of(measurements.device))
        return super().fit(training, base)

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return factors on the grid given, else on the training grid. Raises InputError."""
        grid = self.grid_or_trained(grid)
        gpu = self._gpu_of(profiles.device)
        require_cu_count(gpu, (profiles.base.cu_count, *grid.cu_count))
        inputs = derive_inputs(profiles, gpu)
        _, *clocks = np.ix_(grid.cu_count, grid.engine_mhz, grid.memory_mhz)
        factors = self.factors(profiles, inputs, gpu, (clocks[0], clocks[1]))
        return Surfaces(grid, profiles.base, factors, inputs.flags)

    @abstractmethod
    def factors(
        self, profiles: Profiles, inputs: WarpInputs, gpu: GpuParameters, clocks: Clocks
    ) -> Floats:
        """Return time / base time of each kernel at each pair of clocks, (K, *clocks)."""

    def state(self) -> State:
        """Return grid and base, if there were any, and the GPU's parameters, if a file gave them.

        A file of parameters is not needed again.
        """
        measured = {} if self.measured_ is None else {"measured": asdict(self.measured_)}
        return {**super().state(), **measured}

    def restore(self, state: State) -> Self:
        """Take over grid, base and measured parameters; the file is not read again."""
        grid = {name: value for name, value in state.items() if name != "measured"}
        self.measured_ = GpuParameters(**state["measured"]) if "measured" in state else None
        return super().restore(grid)

    def _gpu_of(self, device: str) -> GpuParameters:
        """Return the GPU's parameters. Raises InputError where the file's GPU is another."""
        if self.measured_ is None:
            return load_gpu(device)
        if self.measured_.key != device:
            raise InputError(f"{self.gpu}: describes '{self.measured_.key}', not '{device}'")
        return self.measured_


@dataclass
class WangChu(WarpPredictor):
    """The model of the paper: the measured base time times the ratio of two of its times."""

    name = "wang-chu"

    def factors(
        self, profiles: Profiles, inputs: WarpInputs, gpu: GpuParameters, clocks: Clocks
    ) -> Floats:
        """Return the ratio of the model's times."""
        base = profiles.base.engine_mhz, profiles.base.memory_mhz
        return predict_time_factor(inputs, gpu, base, *clocks)


@dataclass
class MaxOverlap(WarpPredictor):
    """This project's rule: what CU or memory are busy for scales, and the rest is engine cycles."""

    name = "max-overlap"

    def factors(
        self, profiles: Profiles, inputs: WarpInputs, gpu: GpuParameters, clocks: Clocks
    ) -> Floats:
        """Return the rule's factors."""
        base = profiles.base.engine_mhz, profiles.base.memory_mhz
        return max_overlap_factor(inputs, gpu, base, profiles.time_ms, *clocks)


def _require(measurements: Measurements, gpu: GpuParameters) -> None:
    """Raise InputError on missing counters or other CU counts than the GPU's own."""
    require_counters(measurements.counter_names)
    require_cu_count(gpu, measurements.grid.cu_count)
