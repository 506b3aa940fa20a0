"""Surfaces beyond the grid that they were measured on: how they are carried there, and how far."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import AXES, ENDS, ConfigGrid, step_weights
from mlscale.data.surfaces import Surfaces

WIDENING = 2.0  # of an interval's half-width, per unit of the logarithm beyond the trained range
KNEE = 2.0  # how much faster power may rise with a clock from where its voltage begins to rise


def carried(
    values: Floats, grid: ConfigGrid, to: ConfigGrid, going_on: Sequence[str] = ()
) -> Floats:
    """Return values (..., N) on one grid as (..., N') on another, linear in the axes' logarithms.

    Beyond the first and the last step of an axis they stay as they are there, but at the ends in
    `going_on` (of ENDS), where they go on as between the two outermost steps: so logs of a power
    law are met exactly.
    """
    outer = values.shape[:-1]
    weights = [step_weights(getattr(grid, axis), getattr(to, axis), going_on) for axis in AXES]
    stacked = values.reshape(-1, *grid.shape)
    moved = np.einsum("kcem,xc,ye,zm->kxyz", stacked, *weights, optimize=True)
    return np.asarray(moved.reshape(*outer, to.size))


def positions(grid: ConfigGrid, within: ConfigGrid) -> Indices | None:
    """Return where a grid's configurations stand in a raveled other one; None where some do not."""
    if any(not set(getattr(grid, axis)) <= set(getattr(within, axis)) for axis in AXES):
        return None
    indices = [[getattr(within, a).index(step) for step in getattr(grid, a)] for a in AXES]
    return np.ravel_multi_index(np.ix_(*indices), within.shape).ravel()


def distance_beyond(trained: ConfigGrid, grid: ConfigGrid) -> Floats:
    """Return how far each configuration of a grid is outside the trained range, (C, E, M).

    The logarithms beyond the nearest trained step, summed over the axes; 0 inside.
    """
    distances = []
    for axis in AXES:
        known, own = (np.log(np.array(getattr(one, axis), float)) for one in (trained, grid))
        distances.append(np.maximum(known[0] - own, 0) + np.maximum(own - known[-1], 0))
    cu, engine, memory = np.ix_(*distances)
    return np.asarray(cu + engine + memory)


def widened_beyond(surfaces: Surfaces, trained: ConfigGrid, quantity: str) -> Surfaces:
    """Return surfaces whose intervals are wider beyond the trained range, in log ratios.

    By 1 + WIDENING times the distance beyond it: by 1.4 where a clock is 0.8 of the lowest trained.
    The upper end of power is higher still above the highest trained engine clock, by the power
    KNEE of the ratio of the clocks: what follows V^2 f may have been at the lowest voltage till
    there, and rise with the clock's third power from there on; no power below tells it.
    """
    values, low, high = surfaces.values, surfaces.low, surfaces.high
    if low is None or high is None:
        return surfaces
    times = 1 + WIDENING * distance_beyond(trained, surfaces.grid)
    low, high = (np.asarray(values * (end / values) ** times) for end in (low, high))
    if quantity == "power":
        above = np.array(surfaces.grid.engine_mhz) / trained.engine_mhz[-1]
        high = high * np.maximum(above, 1.0)[:, None] ** KNEE
    return replace(surfaces, low=low, high=high)


def by_power_laws(surfaces: Surfaces, grid: ConfigGrid) -> Surfaces:
    """Return surfaces on a wider grid: along each axis as between the two outermost steps.

    For predictors that know no law of their own. Intervals are as wide as at the nearest step.
    """
    count = len(surfaces.values)
    logs = np.log(surfaces.values).reshape(count, -1)
    wider = carried(logs, surfaces.grid, grid, ENDS)
    ends = [
        wider + carried(np.log(end).reshape(count, -1) - logs, surfaces.grid, grid)
        for end in (surfaces.low, surfaces.high)
        if end is not None
    ]
    return Surfaces.of_logs(grid, surfaces.base, wider, surfaces.flags, ends)
