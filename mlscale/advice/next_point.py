"""What to measure next: the configuration that would narrow the intervals of time most."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.model import Model, require_measured_points
from mlscale.predictors.bottleneck.estimator import Bottleneck

COVERAGE = 0.9


@dataclass(frozen=True)
class NextProfile:
    """Where to measure one kernel next, or all together (kernel None).

    now_percent, after_percent: half the 90 % interval of time [%], its mean over the grid, before
    and as expected after it; None where the model was trained without intervals.
    narrower_percent: how much narrower the intervals would be.
    """

    kernel: str | None
    config: HardwareConfig
    now_percent: float | None
    after_percent: float | None
    narrower_percent: float


def next_profile(model: Model, profiles: Profiles) -> tuple[list[NextProfile], NextProfile | None]:
    """The next configuration for each kernel, and for several the one best for all together.

    A configuration that is measured already is not proposed. Raises InputError where the model's
    predictor makes nothing of further points, and where all configurations are measured.
    """
    require_measured_points(model)
    predictor = cast("Bottleneck", model.predictors["time"])
    now, ahead = predictor.widths_ahead(profiles, COVERAGE)
    configs = list(model.grid)
    done = {profiles.base: np.ones(len(now), dtype=bool)}
    for point in profiles.also:
        measured = ~np.isnan(point.time_ms)
        done[point.config] = done.get(point.config, np.zeros_like(measured)) | measured
    for number, config in enumerate(configs):
        ahead[done.get(config, np.zeros(len(now), dtype=bool)), number] = np.inf
    if np.isinf(ahead).all(axis=1).any():
        kernel = profiles.kernels[int(np.flatnonzero(np.isinf(ahead).all(axis=1))[0])]
        raise InputError(f"kernel '{kernel}': every configuration of the grid is measured")
    calibrated = bool(predictor.scores_.size)

    def found(kernel: str | None, number: int, before: float, after: float) -> NextProfile:
        shown = [100 * float(np.expm1(w)) if calibrated else None for w in (before, after)]
        narrower = 100 * (1 - after / before)
        return NextProfile(kernel, configs[number], shown[0], shown[1], narrower)

    each = [
        found(kernel, int(np.argmin(ahead[k])), float(now[k]), float(ahead[k].min()))
        for k, kernel in enumerate(profiles.kernels)
    ]
    if len(each) < 2:
        return each, None
    after = np.where(np.isinf(ahead), now[:, None], ahead).mean(axis=0)
    after[np.isinf(ahead).all(axis=0)] = np.inf
    return each, found(None, int(np.argmin(after)), float(now.mean()), float(after.min()))
