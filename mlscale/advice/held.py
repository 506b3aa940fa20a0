"""Intervals of a run on a board that lowers its clock where it would have to supply too much."""

from dataclasses import replace

import numpy as np

from mlscale.advice.caps import cap_curve
from mlscale.arrays import Floats
from mlscale.data.supply import Supply
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
    lowered_ms, clocks = np.zeros_like(time.high), time.grid.engine_mhz
    for c, e, m in np.argwhere(is_held.any(axis=0)).tolist():
        k = is_held[:, c, e, m]
        time_ms, power_w = (of[k, c, : e + 1, m] for of in (time.high, power.high))
        lowered_ms[k, c, e, m] = _lowered(supply.most_w, clocks[: e + 1], time_ms, power_w)
    high_ms = np.where(is_held, np.maximum(time.high, lowered_ms), time.high)
    most_w = np.maximum(supply.most_w, power.values)
    return surfaces | {
        "time": replace(time, high=high_ms),
        "power": replace(power, high=np.where(is_held, most_w, power.high)),
    }


def _lowered(most_w: float, clocks: tuple[float, ...], time_ms: Floats, power_w: Floats) -> Floats:
    """Times of kernels held to that power, or at the lowest clock where it needs more, (K,)."""
    held = cap_curve([most_w], clocks, time_ms, power_w).time_ms[:, 0]
    return np.where(np.isnan(held), time_ms[:, 0], held)
