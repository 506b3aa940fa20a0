"""Some kernels that stand for all of a large training set: its inducing points.

With all K kernels, time grows as K^3 and memory as K^2; with n that stand for them, as K n^2 and
K n. Decision 0017 says what that costs in accuracy.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from mlscale.arrays import Floats, Indices

MOST_POINTS = 400  # where there are fewer kernels, each stands for itself
CANDIDATES = 2000  # kernels, drawn from all, that the points are taken from
LEAST_VARIANCE = 1e-6  # that the other points leave of one that tells something new

Array = TypeVar("Array", Floats, Indices)


def inducing_rows(covariance: Callable[[Indices], Floats], count: int) -> Indices:
    """Return the rows, in order, of the kernels that stand for all: MOST_POINTS at most.

    covariance: from C rows to the covariance (C, C) of these kernels. count: of all kernels. Each
    next point is that which those before leave least certain: Cholesky's decomposition with
    pivots (Fine and Scheinberg, JMLR 2, 2001). The same kernels give the same points.
    """
    if count <= MOST_POINTS:
        return np.arange(count)
    from scipy.linalg.lapack import dpstrf

    candidates = np.random.default_rng(0).permutation(count)[:CANDIDATES]
    _, pivots, rank, _ = dpstrf(covariance(candidates), tol=LEAST_VARIANCE)
    return np.sort(candidates[pivots[: min(rank, MOST_POINTS)] - 1])


def at_rows(values: Array, rows: Indices) -> Array:
    """Return the values (n, ...) in those rows of (K, ...): the array itself where they are all.

    NumPy multiplies an array by itself transposed otherwise than by a copy, which shows in the
    last digits.
    """
    return values if len(rows) == len(values) else values[rows]
