"""Cells that nobody measured: how they are filled in, and what to leave out instead.

A cell is a kernel at a configuration. Filled in, the logarithm of time or power over the
logarithms of the settings has the least mixed differences of two axes and, of surfaces alike in
that, the least changes of slope along each. So what is a power law along every axis is met exactly,
and a grid measured along its edges alone is filled by the product of what its axes do (Wu's walk).
"""

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid
from mlscale.errors import InputError

# Weights of squared differences beside 1 of mixed ones; the slopes' makes the solution unique.
CHANGE_OF_SLOPE, SLOPE = 0.01, 1e-6
MOST_FILLED = 5_000  # configurations of a grid; the work grows as their cube


def filled(values: Floats, grid: ConfigGrid) -> Floats:
    """Positive values (K, C, E, M), NaN where a kernel was not measured, with all cells known.

    Each kernel is filled from its measured cells alone. Raises InputError on a grid of more than
    MOST_FILLED configurations.
    """
    if grid.size > MOST_FILLED:
        is_covered = not np.isnan(values).all(axis=0).any()  # what all lack is never dropped
        mend = ", or at those that a kernel lacks: --incomplete drop-settings" if is_covered else ""
        raise InputError(
            f"the grid has {grid.text}, and rows of a part of it: missing cells are filled in on "
            f"at most {MOST_FILLED} configurations; leave out the rows at some settings{mend}"
        )
    roughness = _roughness(grid)
    logs = np.log(values).reshape(len(values), -1)
    patterns, pattern_of = np.unique(~np.isnan(logs), axis=0, return_inverse=True)
    for number, known in enumerate(patterns):
        kernels = np.flatnonzero(pattern_of.ravel() == number)
        among, from_known = roughness[np.ix_(~known, ~known)], roughness[np.ix_(~known, known)]
        weights = -np.linalg.solve(among, from_known)
        logs[np.ix_(kernels, ~known)] = logs[np.ix_(kernels, known)] @ weights.T
    return np.where(np.isnan(values), np.exp(logs).reshape(values.shape), values)


def _roughness(grid: ConfigGrid) -> Floats:
    """The quadratic form (N, N) of the weighted squared differences of a surface."""
    values = [np.eye(length) for length in grid.shape]
    slopes, changes = [], []
    for steps in grid.steps.values():
        slope = np.diff(np.eye(len(steps)), axis=0) / np.diff(np.log(steps))[:, None]
        change = np.diff(slope, axis=0)
        slopes.append(slope.T @ slope)
        changes.append(change.T @ change)
    total = np.zeros((grid.size, grid.size))
    for axis in range(3):
        along = CHANGE_OF_SLOPE * changes[axis] + SLOPE * slopes[axis]
        for forms, form in ((values, along), (slopes, values[axis])):
            cu, engine, memory = (form if a == axis else forms[a] for a in range(3))
            total += np.kron(np.kron(cu, engine), memory)
    return total


def complete_part(measured: Mask) -> list[Indices]:
    """The kernels, and the steps of each axis, that are left of cells (K, C, E, M).

    Each time goes the kernel or step that lacks the largest share of its cells, until none does.
    What no kernel was measured at is lacked by none.
    """
    kept = [np.arange(length) for length in measured.shape]
    wanted = np.broadcast_to(measured.any(axis=0), measured.shape)
    while (lacking := (wanted & ~measured)[np.ix_(*kept)]).any():
        shares = []
        for axis in range(4):
            others = tuple({0, 1, 2, 3} - {axis})
            asked = wanted[np.ix_(*kept)].sum(axis=others)
            shares.append(lacking.sum(axis=others) / np.maximum(asked, 1))
        worst = int(np.argmax([each.max() for each in shares]))
        kept[worst] = np.delete(kept[worst], shares[worst].argmax())
    return kept
