"""What a clock can change at most: no interval is wider than that.

Intervals are calibrated over whole grids, whose steps are coarse; a GPU without training data is
predicted at each of its own clocks, the nearest of them a percent from the base. What is measured
there differs from the base by little more than a law at its extreme gives: time at most in
proportion to a clock, power to the cube of the engine clock (activity x V^2 f, the voltage V at
most in proportion to f). CU counts have no such law: workgroups are dealt to CUs as wholes, so that
one CU more can halve the time.

Where the engine clock alone changes, the sides are known too: at a lower one time does not fall and
power does not rise. Where the memory clock changes as well, measured kernels keep to neither side.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.extrapolation import widened_beyond
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.surfaces import Surfaces

ROUNDING = 1e-9  # of a factor
NOISE = 0.02  # of the log of a ratio of two measurements: two standard deviations
LARGEST_EXPONENTS = {
    "time": {"engine_mhz": 1, "memory_mhz": 1},
    "power": {"engine_mhz": 3, "memory_mhz": 1},
}


def largest_change(quantity: str, log_clocks: Mapping[str, Floats]) -> Floats:
    """How far the log of a quantity moves at most with these log ratios of clocks, by axis."""
    exponents = LARGEST_EXPONENTS[quantity]
    return np.asarray(sum(exponents[axis] * np.abs(logs) for axis, logs in log_clocks.items()))


def reach(quantity: str, grid: ConfigGrid, base: HardwareConfig) -> Floats:
    """How far the log of a factor can be from 0, (C, E, M): 0 at the base, inf at other CUs."""
    settings, at_base = grid.settings(), base.as_dict()
    logs = {axis: np.log(settings[axis] / at_base[axis]) for axis in LARGEST_EXPONENTS[quantity]}
    distance = largest_change(quantity, logs)
    distance = np.where(settings["cu_count"] == base.cu_count, distance, np.inf)
    return np.asarray(np.where(distance > 0, distance + NOISE, 0.0)).reshape(grid.shape)


def one_sided_reach(quantity: str, grid: ConfigGrid, base: HardwareConfig) -> tuple[Floats, Floats]:
    """The least and the most log of a factor where the engine clock alone changes, (C, E, M) each.

    From 0, or the law at its extreme, each NOISE further out; -inf and inf at other configurations.
    """
    settings = grid.settings()
    ratio = np.log(settings["engine_mhz"] / base.engine_mhz)
    extreme = ratio * (-1 if quantity == "time" else 1) * LARGEST_EXPONENTS[quantity]["engine_mhz"]
    is_alone = (settings["cu_count"] == base.cu_count) & (settings["memory_mhz"] == base.memory_mhz)
    least = np.where(is_alone, np.minimum(extreme, 0) - NOISE, -np.inf)
    most = np.where(is_alone, np.maximum(extreme, 0) + NOISE, np.inf)
    return least.reshape(grid.shape), most.reshape(grid.shape)


def exact_at_base(surfaces: Surfaces) -> Surfaces:
    """Return factors of exactly 1 at the base where rounding left other last digits."""
    if surfaces.base not in surfaces.grid:
        return surfaces
    at_base = (slice(None), *surfaces.grid.index(surfaces.base))
    exact = {}
    for name in ("values", "low", "high"):
        factors = getattr(surfaces, name)
        if factors is None or (factors[at_base] == 1).all():
            continue
        exact[name] = factors.copy()
        rounded = np.abs(factors[at_base] - 1) < ROUNDING
        exact[name][at_base] = np.where(rounded, 1.0, factors[at_base])
    return replace(surfaces, **exact)


def within_reach(surfaces: Surfaces, quantity: str) -> Surfaces:
    """The surfaces, no end of an interval further out than the truth can be.

    Value and truth lie on the same side of the base, so they differ by at most the reach. A value
    beyond its one-sided reach is of a GPU that was measured to break the law, as where the clock
    that was set is not the one that ran: there that bound does not hold.
    """
    if surfaces.low is None or surfaces.high is None:
        return surfaces
    values, grid, base = surfaces.values, surfaces.grid, surfaces.base
    factor = np.exp(reach(quantity, grid, base))
    least, most = (np.exp(log) for log in one_sided_reach(quantity, grid, base))
    is_lawful = (least <= values) & (values <= most)
    return replace(
        surfaces,
        low=np.maximum(surfaces.low, np.maximum(values / factor, np.where(is_lawful, least, 0))),
        high=np.minimum(
            surfaces.high, np.minimum(values * factor, np.where(is_lawful, most, np.inf))
        ),
    )


def widened_within_reach(surfaces: Surfaces, trained: ConfigGrid, quantity: str) -> Surfaces:
    """The surfaces, their intervals as wide as `widened_beyond` makes them, yet within reach."""
    return within_reach(widened_beyond(surfaces, trained, quantity), quantity)
