"""Nagasaka et al. 2010: board power as a linear function of counters per second.

Source: Nagasaka, Maruyama, Nukada, Endo and Matsuoka, "Statistical power modeling of GPU kernels
using performance counters", 2010 International Green Computing Conference, pages 115 to 122.
Section, equation and figure numbers are those of the paper.

The model, Eq. (1): p = sum_i alpha_i c_i + beta, with p the average power of a kernel [W], c_i its
counters per second [1/s], alpha_i the energy of one event [J] and beta the constant intercept [W].
It estimates the power of a kernel at the configuration it was trained at: the intercept holds the
idle power there, clocks and voltage included, and is not transferable to another.

Two things the paper does not say are settled here: columns are standardised before the penalty is
applied, and the intercept is not penalised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.errors import InputError

# A column whose spread is below this share of its size is constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class PowerModel:
    """A fitted model, Eq. (1).

    Attributes:
        energy_j: alpha (F,), the energy of one event of each counter [J].
        intercept_w: beta [W].
    """

    energy_j: Floats
    intercept_w: float


def global_transactions(
    transactions_32b: ArrayLike, transactions_64b: ArrayLike, transactions_128b: ArrayLike
) -> Floats:
    """The virtual counter gld (of loads) or gst (of stores), section III-C.2.

    Transactions of 32, 64 and 128 bytes as the number of 32-byte transactions that move the same
    data; numbers or arrays that broadcast together.
    """
    small, middle, large = (
        np.asarray(count, dtype=np.float64)
        for count in (transactions_32b, transactions_64b, transactions_128b)
    )
    return np.asarray(small + 2 * middle + 4 * large)


def memory_accesses(
    global_loads: ArrayLike,
    global_stores: ArrayLike,
    local_loads: ArrayLike = 0.0,
    local_stores: ArrayLike = 0.0,
) -> Floats:
    """The virtual counter mem = gld + gst + local_load + local_store, section IV-B."""
    given = (global_loads, global_stores, local_loads, local_stores)
    return np.asarray(sum(np.asarray(count, dtype=np.float64) for count in given))


def per_second(counts: ArrayLike, time_ms: ArrayLike) -> Floats:
    """Counters (K, F) of kernels that took time_ms (K,) [ms], per second (K, F) [1/s]; III-C.1.

    Raises InputError on a time that is not positive and finite.
    """
    time = np.asarray(time_ms, dtype=np.float64)
    if not ((time > 0) & np.isfinite(time)).all():
        raise InputError("the time of a kernel must be positive and finite, in ms")
    return np.asarray(np.asarray(counts, dtype=np.float64) / (time[:, None] / 1e3))


def fit_ridge(
    columns: ArrayLike, values: ArrayLike, penalties: Sequence[float], standardise: bool = True
) -> tuple[Floats, Floats]:
    """Ridge regression, closed form, for several penalties; section III-C.3 and its [10].

    Minimises sum (values - beta - columns alpha)^2 + lambda |alpha|^2; beta is not penalised.

    Args:
        columns: (K, F), any unit.
        values: (K,), any unit.
        penalties: lambda (L,), each at least 0. At 0 where columns depend on each other: the
            solution of least |alpha|, the limit of small lambda.
        standardise: the penalty is on alpha times the standard deviation of its column, so that
            it has the unit of the values and does not depend on the columns' units.

    Returns:
        alpha (L, F) and beta (L,), both in the units of the columns as they were given. A constant
        column has alpha 0.

    Raises InputError on what is not finite, on shapes that do not fit, and on a negative penalty.
    """
    x, y = _training(columns, values)
    strength = np.asarray(penalties, dtype=np.float64)
    if strength.ndim != 1 or not ((strength >= 0) & np.isfinite(strength)).all():
        raise InputError("every penalty must be a finite number of at least 0")
    mean_x, mean_y = x.mean(axis=0), y.mean()
    spread = x.std(axis=0)
    varies = spread > _CONSTANT * np.abs(x).max(axis=0)
    scale = np.where(varies, spread if standardise else 1.0, np.inf)
    u, d, vt = np.linalg.svd((x - mean_x) / scale, full_matrices=False)
    # alpha = V diag(d / (d^2 + lambda)) U^T y, without the directions that are 0 to rounding.
    kept = d > np.finfo(np.float64).eps * max(x.shape) * d.max(initial=0.0)
    denominator = np.where(kept, d**2 + strength[:, None], np.inf)
    alpha = ((d / denominator) * (u.T @ (y - mean_y))) @ vt / scale
    return alpha, mean_y - alpha @ mean_x


def fit_power_model(rates: ArrayLike, power_w: ArrayLike, penalty: float) -> PowerModel:
    """The model of Eq. (1) by ridge regression on standardised counters.

    Args:
        rates: counters per second (K, F) [1/s] of the training kernels; F may be 0.
        power_w: their power (K,) [W].
        penalty: lambda [no unit: a share of the K squared deviations of a standardised column].

    Raises InputError as fit_ridge does.
    """
    alpha, beta = fit_ridge(rates, power_w, [penalty])
    return PowerModel(energy_j=alpha[0], intercept_w=float(beta[0]))


def contributions_w(model: PowerModel, rates: ArrayLike) -> Floats:
    """The terms of Eq. (1): (K, F + 1) [W], a column for each counter and then the intercept.

    rates: counters per second (K, F) [1/s]. The terms of a kernel add up to its estimated power.
    """
    x = np.asarray(rates, dtype=np.float64)
    return np.column_stack([x * model.energy_j, np.full(len(x), model.intercept_w)])


def estimate_power_w(model: PowerModel, rates: ArrayLike) -> Floats:
    """Power (K,) [W] of kernels by Eq. (1); rates: counters per second (K, F) [1/s]."""
    return np.asarray(contributions_w(model, rates).sum(axis=1))


def contribution_ratios(model: PowerModel, rates: ArrayLike) -> Floats:
    """Fig. 4: the mean over kernels of contribution / estimated power, (F + 1,), intercept last.

    The ratios add up to 1. Raises InputError where an estimated power is not above 0.
    """
    terms = contributions_w(model, rates)
    estimated = terms.sum(axis=1, keepdims=True)
    if (estimated <= 0).any():
        raise InputError("a kernel's estimated power is not above 0: it has no contribution ratios")
    return np.asarray((terms / estimated).mean(axis=0))


def mean_squared_error_w2(estimated_w: ArrayLike, actual_w: ArrayLike) -> float:
    """Average squared error, section IV: mean (estimated - actual)^2 [W^2]; arrays of one shape."""
    difference = np.asarray(estimated_w, dtype=np.float64) - np.asarray(actual_w, dtype=np.float64)
    return float(np.mean(difference**2))


def average_error_ratio(estimated_w: ArrayLike, actual_w: ArrayLike) -> float:
    """Average error ratio, section IV-B: mean |estimated - actual| / actual.

    Without unit: 0.047 is 4.7 %. actual_w must not be 0.
    """
    actual = np.asarray(actual_w, dtype=np.float64)
    return float(np.mean(np.abs(np.asarray(estimated_w, dtype=np.float64) - actual) / actual))


def _training(columns: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """The columns (K, F) and values (K,), checked."""
    x = np.asarray(columns, dtype=np.float64)
    y = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y):
        raise InputError(
            f"ridge regression needs columns (K, F) and values (K,), not {x.shape} and {y.shape}"
        )
    if not len(y):
        raise InputError("ridge regression needs one kernel at least")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("ridge regression needs finite numbers: leave out what is missing")
    return x, y
