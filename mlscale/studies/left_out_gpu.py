"""Runs of a GPU predicted from two readings, by what the tables of other GPUs taught.

As somebody does who has two logs of a run and a model of other GPUs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.data.points import SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint
from mlscale.model.model import train
from mlscale.model.predictions import COVERAGE
from mlscale.predictors.base import Predictor, TrainingSet

Side = tuple[Floats, Floats | None]  # time [ms] and power [W], (K, C, E, M)


def from_two_readings(
    predictor: Predictor | None,
    data: Measurements,
    base: HardwareConfig,
    static_power_w: float,
    others: Sequence[TrainingSet],
) -> tuple[list[Side], Floats | None]:
    """Predicted time and power, also at the low and the high ends, and the high ends of time alone.

    The readings of each kernel are at the base and at `second_reading`. Power's ends are such that
    times those of time they are the ends of energy. Raises InputError.
    """
    (first, at), *more = others
    model = train(first, at, predictor, others=more).for_gpu(data.device, data.grid, base)
    second = second_reading(data, base)
    read = (slice(None), *second)
    watts = None if data.power_w is None else data.power_w[read]
    point = MeasuredPoint(data.grid.config(second), data.time_ms[read], watts)
    profiles = replace(data.profiles(base), points=(point,))
    predictions = model.predict(profiles, COVERAGE)
    time = predictions["time"].absolute(profiles.time_ms)
    if "power" not in predictions.surfaces:
        return [(time.values, None)], time.high
    power = predictions["power"].absolute(profiles.quantity("power"), static_power_w)
    sides: list[Side] = [(time.values, power.values)]
    if predictions.energy is not None:
        energy = predictions.energy.absolute(profiles.time_ms * profiles.quantity("power"))
        sides += [
            (ms, mj / ms + static_power_w)
            for ms, mj in ((time.low, energy.low), (time.high, energy.high))
            if ms is not None and mj is not None
        ]
    return sides, time.high


def second_reading(data: Measurements, base: HardwareConfig) -> Index:
    """Where the second reading is: at the next clock below SECOND_CLOCK of the base, or lowest."""
    c, _, m = data.grid.index(base)
    below = np.array(data.grid.engine_mhz) <= SECOND_CLOCK * base.engine_mhz
    return c, max(int(below.sum()) - 1, 0), m
