"""Errors of Wang and Chu's model on a table of measurements, as in section V of their paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import (
    absolute_percentage_error,
    absolute_values,
    percentage_error,
    without_base,
)
from mlscale.errors import InputError
from mlscale.papers.wang_chu import kernel_round, predict_time_factor, predict_time_ms
from mlscale.papers.wang_chu_gpus import GpuParameters, load_gpu, require_cu_count
from mlscale.papers.wang_chu_inputs import derive_inputs, warn_of_flags
from mlscale.studies.metrics import ErrorSummary, summarise

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class WangChuErrors:
    """Measured and predicted times of a table.

    Attributes:
        data: the measurements.
        base: the configuration of the counters.
        predicted_ms: predicted times (K, C, E, M) [ms].
        case: the equation that holds, 9, 11, 13 or 15, (K, C, E, M).
        errors: absolute errors (K, targets) [%]; the base is a target of absolute predictions only.
    """

    data: Measurements
    base: HardwareConfig
    predicted_ms: Floats
    case: Indices
    errors: Floats

    @property
    def signed_errors(self) -> Floats:
        """(predicted - measured) / measured, (K, C, E, M) [%]."""
        return percentage_error(self.predicted_ms, self.data.time_ms)

    @property
    def base_case(self) -> Indices:
        """Return the case of each kernel at the base, (K,)."""
        return self.case[(slice(None), *self.data.grid.index(self.base))]

    @property
    def summary(self) -> ErrorSummary:
        """Return the errors of all kernels in five figures."""
        return summarise(self.errors, self.data.kernels)

    def by_configuration(self) -> pd.DataFrame:
        """Return a row for each kernel and configuration: times [ms], signed error [%], case."""
        import pandas as pd

        data, configs = self.data, list(self.data.grid)
        axes = {
            axis: np.tile([getattr(config, axis) for config in configs], len(data.kernels))
            for axis in ("cu_count", "engine_mhz", "memory_mhz")
        }
        return pd.DataFrame(
            {
                "device": data.device,
                "application": np.repeat(data.applications, len(configs)),
                "kernel": np.repeat(data.kernels, len(configs)),
                **axes,
                "time_ms": data.time_ms.ravel(),
                "predicted_ms": self.predicted_ms.ravel(),
                "error_percent": self.signed_errors.ravel(),
                "case": self.case.ravel(),
            }
        )

    def by_kernel(self) -> pd.DataFrame:
        """Return a row for each kernel: its cases, mean absolute, signed and worst error [%]."""
        import pandas as pd

        signed = self.signed_errors.reshape(len(self.errors), -1)
        cases = [set(case.ravel().tolist()) for case in self.case]
        return pd.DataFrame(
            {
                "device": self.data.device,
                "application": self.data.applications,
                "kernel": self.data.kernels,
                "case_at_base": self.base_case,
                "other_cases": [
                    sorted(of_kernel - {at_base})
                    for of_kernel, at_base in zip(cases, self.base_case.tolist(), strict=True)
                ],
                "mape": self.errors.mean(axis=1),
                "bias_percent": signed.mean(axis=1),
                "worst_percent": signed[np.arange(len(signed)), np.abs(signed).argmax(axis=1)],
            }
        )


def table_errors(
    data: Measurements,
    base: HardwareConfig,
    absolute: bool = False,
    gpu: GpuParameters | None = None,
) -> WangChuErrors:
    """Predict the whole grid of a table from the counters at one configuration.

    gpu: its parameters; None takes those of the table's device. absolute: times from the counters
    alone,
    Eq. (6); otherwise relative to the time measured at the base, by the rule max+X. Warns
    (DataWarning) of kernels outside the model's scope. Raises InputError on an unknown device,
    missing counters, another number of CUs, and where the base is all that there is to predict.
    """
    grid = data.grid
    gpu = gpu or load_gpu(data.device)
    profiles = data.profiles(base)
    inputs = derive_inputs(profiles, gpu)
    require_cu_count(gpu, grid.cu_count)
    warn_of_flags(inputs, profiles)
    _, engine, memory = np.ix_(grid.cu_count, grid.engine_mhz, grid.memory_mhz)
    if absolute:
        predicted = predict_time_ms(inputs, gpu, engine, memory)
        errors = absolute_percentage_error(predicted, data.time_ms).reshape(len(data.kernels), -1)
    else:
        clocks = (base.engine_mhz, base.memory_mhz)
        factors = predict_time_factor(inputs, gpu, clocks, profiles.time_ms, engine, memory)
        predicted = absolute_values(factors, profiles.time_ms)
        errors = without_base(absolute_percentage_error(predicted, data.time_ms), grid.index(base))
        if not errors.size:
            raise InputError(f"the table holds the base {base} only: nothing to predict from it")
    case = kernel_round(inputs, gpu, engine, memory).case
    return WangChuErrors(data, base, predicted, case, errors)
