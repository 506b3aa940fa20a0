"""Errors of Wang and Chu's model on a table of measurements, as in section V of their paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

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
from mlscale.papers.max_overlap import compute_bound, max_overlap_factor
from mlscale.papers.wang_chu import kernel_round, predict_time_factor, predict_time_ms
from mlscale.papers.wang_chu_gpus import GpuParameters, load_gpu, require_cu_count
from mlscale.papers.wang_chu_inputs import derive_inputs, warn_of_flags
from mlscale.studies.statistics import ErrorSummary, summarise

if TYPE_CHECKING:
    import pandas as pd

MODELS = {
    "wang-chu": "time relative to the base, by the model (wang-chu)",
    "absolute": "time from counters alone",
    "max-overlap": "time relative to the base, by this project's rule (max-overlap)",
}

# Table VI of the paper, as the authors' files name its 11 kernels.
TABLE_6 = (
    *("BlackScholes", "conjugateGradient", "fastWalshTransform", "matrixMul(Global)", "matrixMul"),
    *("scan", "sortingNetworks", "scalarProd", "transpose", "vectorAdd", "convolutionSeparable"),
)


@dataclass(frozen=True, eq=False)
class WangChuErrors:
    """Measured and predicted times of a table.

    Attributes:
        data: the measurements.
        base: the configuration of the counters.
        predicted_ms: predicted times (K, C, E, M) [ms].
        case: the equation that holds, 9, 11, 13 or 15, (K, C, E, M); of max-overlap, 9 where the
            CU is the busier one and 11 where memory is.
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

    @property
    def largest(self) -> tuple[float, str, HardwareConfig]:
        """Return the largest absolute error [%], its kernel and its configuration."""
        errors = np.abs(self.signed_errors)
        k, *at = np.unravel_index(int(errors.argmax()), errors.shape)
        c, e, m = map(int, at)
        return float(errors.max()), self.data.kernels[int(k)], self.data.grid.config((c, e, m))

    @property
    def within_10(self) -> float:
        """Return the share of targets whose error is below 10 % [%]."""
        return float(100 * (self.errors < 10).mean())

    def instructions(self, gpu: GpuParameters) -> dict[str, Floats]:
        """Return the warp instructions of each kernel at the base by kind, (K,) each: Fig. 12.

        Shared memory is counted in transactions, which conflicts make more than instructions.
        """
        inputs = derive_inputs(self.data.profiles(self.base), gpu)
        return {
            "compute": inputs.compute_instructions - inputs.fp64_instructions,
            "FP64": inputs.fp64_instructions,
            "global memory": inputs.memory_instructions,
            "shared memory, by transaction": inputs.shared_transactions,
        }

    def document(self) -> dict[str, Any]:
        """Return the errors as JSON values."""
        largest, kernel, config = self.largest
        return {
            "kernels": self.by_kernel().to_dict("records"),
            "n_configurations": self.errors.shape[1],
            **asdict(self.summary),
            "largest": {"percent": largest, "kernel": kernel, **asdict(config)},
            "within_10_percent": self.within_10,
        }

    def by_configuration(self) -> pd.DataFrame:
        """Return a row for each kernel and configuration: times [ms], signed error [%], case."""
        import pandas as pd

        data, size = self.data, self.data.grid.size
        return pd.DataFrame(
            {
                "device": data.device,
                "application": np.repeat(data.applications, size),
                "kernel": np.repeat(data.kernels, size),
                **{a: np.tile(s, len(data.kernels)) for a, s in data.grid.settings().items()},
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
    model: str = "wang-chu",
    gpu: GpuParameters | None = None,
) -> WangChuErrors:
    """Predict the whole grid of a table from the counters at one configuration.

    model: one of MODELS. gpu: its parameters; None takes those of the table's device. Warns
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
    case = kernel_round(inputs, gpu, engine, memory).case
    if model == "absolute":
        predicted = predict_time_ms(inputs, gpu, engine, memory)
        errors = absolute_percentage_error(predicted, data.time_ms).reshape(len(data.kernels), -1)
        return WangChuErrors(data, base, predicted, case, errors)
    clocks, times = (base.engine_mhz, base.memory_mhz), profiles.time_ms
    if model == "max-overlap":
        factors = max_overlap_factor(inputs, gpu, clocks, times, engine, memory)
        case = np.where(compute_bound(inputs, gpu, engine, memory), 9, 11)
    else:
        factors = predict_time_factor(inputs, gpu, clocks, engine, memory)
    predicted = absolute_values(factors, times)
    errors = without_base(absolute_percentage_error(predicted, data.time_ms), grid.index(base))
    if not errors.size:
        raise InputError(
            f"the table holds the base {base} only: nothing to predict from it but that time "
            "itself, from the counters alone (--absolute)"
        )
    return WangChuErrors(data, base, predicted, case, errors)
