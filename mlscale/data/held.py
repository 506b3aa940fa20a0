"""Intervals of a run on a board that lowers its clock where it would have to supply too much."""

from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.supply import ROUNDING, Supply
from mlscale.data.surfaces import Surfaces


def with_held_ends(surfaces: dict[str, Surfaces], supply: Supply) -> dict[str, Surfaces]:
    """Absolute surfaces whose high ends are of what a board does that supplies no more.

    Where a kernel may draw more than that, though it is not predicted to, its power ends there (at
    what is predicted, where that is just above), and its time is that of the lower clock to which
    the GPU goes, both at their high ends.
    """
    time, power = surfaces["time"], surfaces.get("power")
    if power is None or power.high is None or time.high is None:
        return surfaces
    is_held = supply.suffices(power.values) & ~supply.suffices(power.high)
    if not is_held.any():
        return surfaces
    k = is_held.any(axis=(1, 2, 3))
    lowered_ms = time.high.copy()
    lowered_ms[k] = _lowered(supply.most_w, time.high[k], power.high[k])
    most_w = np.maximum(supply.most_w, power.values)
    return surfaces | {
        "time": replace(time, high=np.where(is_held, np.maximum(time.high, lowered_ms), time.high)),
        "power": replace(power, high=np.where(is_held, most_w, power.high)),
    }


def _lowered(most_w: float, time_ms: Floats, power_w: Floats) -> Floats:
    """Times (K, C, E, M) of kernels that need more than that power and are held to it.

    Between the highest lower clock that keeps it and the next the GPU dithers, so that the mean
    power is the most; rates of work are linear in the share of the time. Where no lower clock
    keeps it, the time is that of the lowest.
    """
    steps = np.arange(time_ms.shape[2])[:, None]
    keeps = power_w <= most_w * (1 + ROUNDING)
    lower = np.maximum.accumulate(np.where(keeps, steps, -1), axis=2)
    upper = np.minimum(lower + 1, steps)
    below = np.maximum(lower, 0)
    low_w, high_w = (np.take_along_axis(power_w, at, axis=2) for at in (below, upper))
    low, high = (1 / np.take_along_axis(time_ms, at, axis=2) for at in (below, upper))
    share = np.zeros(time_ms.shape)
    np.divide(most_w - low_w, high_w - low_w, out=share, where=upper > below)
    held_ms = 1 / (low + np.clip(share, 0.0, 1.0) * (high - low))
    return np.where((lower < 0) | np.isnan(held_ms), time_ms[:, :, :1], held_ms)
