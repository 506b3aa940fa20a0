"""What to measure next: the configuration that would narrow the intervals of time most."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.device_table import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError, require_type
from mlscale.model import A_MODEL, PROFILES, Model
from mlscale.predictions import COVERAGE
from mlscale.predictors.base import UsesMeasuredPoints, predict_surfaces


@dataclass(frozen=True)
class NextPoint:
    """Where to measure one kernel next, or all kernels (kernel None).

    now_percent, after_percent: half the 90 % interval of time [%], its mean over the grid, before
    and as expected after it; None where the model was trained without intervals.
    narrower_percent: how much narrower the intervals would be.
    """

    kernel: str | None
    config: HardwareConfig
    now_percent: float | None
    after_percent: float | None
    narrower_percent: float

    def row(self) -> dict[str, Any]:
        """The fields but the kernel, those of the configuration in front."""
        row = asdict(self)
        del row["kernel"]
        return {**row.pop("config"), **row}


def next_points(model: Model, profiles: Profiles) -> tuple[list[NextPoint], NextPoint | None]:
    """The next configuration for each profiled kernel, and for several the best one for all.

    For all it is the one of the least mean width, weighted by the kernels' time in the run. Kernels
    without counters are left out. Not proposed is a configuration that is measured already, or of a
    memory clock that the GPU takes only when its driver is loaded anew. Raises InputError where the
    model's predictor makes nothing of further points, and where no configuration is left.
    """
    require_type("model", model, Model, A_MODEL)
    require_type("profiles", profiles, Profiles, PROFILES)
    model.require_measured_points()
    profiles = profiles.profiled
    predictor = model.predictors["time"]
    grid = model.grid if model.untrained else None
    of_grid = () if grid is None else (grid,)
    now, ahead = cast("UsesMeasuredPoints", predictor).widths_ahead(profiles, COVERAGE, *of_grid)
    first = profiles.select([0])  # one kernel tells whether intervals were calibrated
    calibrated = predict_surfaces(predictor, first, grid, COVERAGE).low is not None
    configs = list(model.grid)
    left_out = _is_measured(profiles, configs) | _is_deferred(model, profiles, configs)
    ahead = np.where(left_out, np.inf, ahead)
    none_left = np.isinf(ahead).all(axis=1)
    if none_left.any():
        kernel = profiles.kernels[int(np.flatnonzero(none_left)[0])]
        raise InputError(f"kernel '{kernel}': every configuration of the grid is measured")

    def best_point(kernel: str | None, width: float, widths_ahead: Floats) -> NextPoint:
        best = int(np.argmin(widths_ahead))
        before, after = (
            100 * float(np.expm1(w)) if calibrated else None for w in (width, widths_ahead[best])
        )
        narrower = float(100 * (1 - widths_ahead[best] / width))
        return NextPoint(kernel, configs[best], before, after, narrower)

    each = [best_point(*of_kernel) for of_kernel in zip(profiles.kernels, now, ahead, strict=True)]
    if len(each) < 2:
        return each, None
    weights = profiles.run_times_ms
    after = np.average(np.where(np.isinf(ahead), now[:, None], ahead), axis=0, weights=weights)
    after[np.isinf(ahead).all(axis=0)] = np.inf
    return each, best_point(None, float(np.average(now, weights=weights)), after)


def _is_measured(profiles: Profiles, configs: Sequence[HardwareConfig]) -> Mask:
    """Which kernels are measured at which configurations, the base included, (K, N)."""
    measured = np.zeros((len(profiles.kernels), len(configs)), dtype=bool)
    measured[:, configs.index(profiles.base)] = True
    for point in profiles.points:
        if point.config in configs:
            measured[:, configs.index(point.config)] |= ~np.isnan(point.time_ms)
    return measured


def _is_deferred(model: Model, profiles: Profiles, configs: Sequence[HardwareConfig]) -> Mask:
    """Which configurations have a memory clock that only a new load of the driver sets, (N,)."""
    device = known_device(model.device)
    if device is None or not (device.defers_memory_clock and model.untrained):
        return np.zeros(len(configs), dtype=bool)
    reached = {profiles.base.memory_mhz, *(point.config.memory_mhz for point in profiles.points)}
    return np.array([config.memory_mhz not in reached for config in configs])
