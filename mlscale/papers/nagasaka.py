"""Nagasaka et al. 2010: board power as a linear function of counters per second.

Source: Nagasaka, Maruyama, Nukada, Endo and Matsuoka, "Statistical power modeling of GPU kernels
using performance counters", 2010 International Green Computing Conference, pages 115 to 122.
Section, equation and figure numbers are those of the paper; docs/equations.md has the symbols.

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
from mlscale.papers.arguments import above_0, finite, from_0, result

# A column whose spread is below this share of its size is constant.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class LinearPowerModel:
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
    data; numbers or arrays that broadcast together. Raises InputError on a negative count.

    By hand: 1 + 2 + 4.

    >>> print(global_transactions(1, 1, 1))
    7.0
    """
    small, middle, large = from_0(
        transactions_32b=transactions_32b,
        transactions_64b=transactions_64b,
        transactions_128b=transactions_128b,
    )
    return result(small + 2 * middle + 4 * large)


def memory_accesses(
    global_loads: ArrayLike,
    global_stores: ArrayLike,
    local_loads: ArrayLike = 0.0,
    local_stores: ArrayLike = 0.0,
) -> Floats:
    """Return the virtual counter mem = gld + gst + local_load + local_store, section IV-B.

    Raises InputError on a negative count.

    >>> print(memory_accesses(7, 3))
    10.0
    """
    counts = from_0(
        global_loads=global_loads,
        global_stores=global_stores,
        local_loads=local_loads,
        local_stores=local_stores,
    )
    return result(counts[0] + counts[1] + counts[2] + counts[3])


def per_second(counts: ArrayLike, time_ms: ArrayLike) -> Floats:
    """Counters (K, F) of kernels that took time_ms (K,) [ms], per second (K, F) [1/s]; III-C.1.

    Of one kernel the counters are (F,) and the time is a number; of one counter both are numbers,
    or both (K,). Raises InputError on a negative count, and a time that is not positive and finite.

    By hand: 500 events in a quarter of a second.

    >>> print(per_second(500, 250))
    2000.0
    """
    (number,) = from_0(counts=counts)
    (time,) = above_0(time_ms=time_ms)
    if number.shape == time.shape:
        return result(number / (time / 1e3))
    if number.shape[:-1] != time.shape:
        raise InputError(f"counts of the shape {number.shape} have no times of {time.shape}")
    return np.asarray(number / (time[..., None] / 1e3))


def fit_ridge(
    columns: ArrayLike, values: ArrayLike, penalties: Sequence[float]
) -> tuple[Floats, Floats]:
    """Ridge regression on standardised columns, for several penalties; section III-C.3, its [10].

    Minimises sum (values - beta - columns alpha)^2 + lambda sum (spread alpha)^2. The spread, the
    standard deviation of a column, frees the penalty from the units of the columns. beta is not
    penalised.

    Args:
        columns: (K, F), any unit; F may be 0.
        values: (K,), any unit.
        penalties: lambda (L,), each at least 0. At 0 where columns depend on each other: the
            solution of least weight, the limit of small lambda.

    Returns:
        alpha (L, F) and beta (L,), both in the units of the columns as they were given. A constant
        column has alpha 0.

    Raises InputError on what is not finite, on shapes that do not fit, and on a negative penalty.

    By hand: y = 2 x + 1; with the penalty K = 2, half of the slope, and the mean stays.

    >>> alpha, beta = fit_ridge([[0.0], [2.0]], [1.0, 5.0], [0, 2])
    >>> print(alpha.ravel().round(6), beta.round(6))
    [2. 1.] [1. 2.]
    """
    x, y = _training(columns, values)
    strength = np.asarray(penalties, dtype=np.float64)
    if strength.ndim != 1 or not ((strength >= 0) & np.isfinite(strength)).all():
        raise InputError("every penalty must be a finite number of at least 0")
    spread = x.std(axis=0)
    varies = spread > _CONSTANT * np.abs(x).max(axis=0)
    scale = np.where(varies, spread, np.inf)
    standard, centred = (x - x.mean(axis=0)) / scale, y - y.mean()
    weights = np.zeros((len(strength), x.shape[1]))
    if varies.any():
        left, sizes, right = np.linalg.svd(standard, full_matrices=False)
        # Without what depends on other columns, cut where numpy.linalg.lstsq cuts.
        own = sizes > np.finfo(np.float64).eps * max(x.shape) * sizes[0]
        shrunk = sizes[own] / (sizes[own] ** 2 + strength[:, None])
        weights = shrunk * (centred @ left[:, own]) @ right[own]
    alpha = weights / scale
    return alpha, y.mean() - alpha @ x.mean(axis=0)


def fit_power_model(rates: ArrayLike, power_w: ArrayLike, penalty: float) -> LinearPowerModel:
    """The model of Eq. (1) by ridge regression on standardised counters.

    Args:
        rates: counters per second (K, F) [1/s] of the training kernels; F may be 0.
        power_w: their power (K,) [W].
        penalty: lambda [no unit: a share of the K squared deviations of a standardised column].

    Raises InputError as fit_ridge does.

    By hand: the line through 1, 3, 5 and 7 W.

    >>> model = fit_power_model([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0], penalty=0)
    >>> print(f"{model.energy_j[0]:.6f} {model.intercept_w:.6f}")
    2.000000 1.000000
    """
    alpha, beta = fit_ridge(rates, power_w, [penalty])
    return LinearPowerModel(energy_j=alpha[0], intercept_w=float(beta[0]))


def contributions_w(model: LinearPowerModel, rates: ArrayLike) -> Floats:
    """The terms of Eq. (1): (K, F + 1) [W], a column for each counter and then the intercept.

    rates: counters per second (K, F) [1/s], or (F,) of one kernel, which gives (F + 1,). The terms
    of a kernel add up to its estimated power. Raises InputError on another number of counters.

    By hand: 2 J an event, 3 events a second, 1 W of intercept.

    >>> model = LinearPowerModel(energy_j=np.array([2.0]), intercept_w=1.0)
    >>> print(contributions_w(model, [3.0]))
    [6. 1.]
    """
    (x,) = finite(rates=rates)
    if x.ndim not in (1, 2) or x.shape[-1] != len(model.energy_j):
        raise InputError(f"the model is of {len(model.energy_j)} counters, not of {x.shape} rates")
    intercept = np.full((*x.shape[:-1], 1), model.intercept_w)
    return np.concatenate([x * model.energy_j, intercept], axis=-1)


def estimate_power_w(model: LinearPowerModel, rates: ArrayLike) -> Floats:
    """Return the power (K,) [W] of kernels by Eq. (1); rates: counters per second (K, F) [1/s].

    Of one kernel the rates are (F,) and the power is a number.

    >>> print(estimate_power_w(LinearPowerModel(np.array([2.0]), intercept_w=1.0), [3.0]))
    7.0
    """
    return result(contributions_w(model, rates).sum(axis=-1))


def contribution_ratios(model: LinearPowerModel, rates: ArrayLike) -> Floats:
    """Fig. 4: the mean over kernels of contribution / estimated power, (F + 1,), intercept last.

    rates: (K, F) [1/s]. The ratios add up to 1. Raises InputError where an estimated power is not
    above 0.

    By hand: 6 W of 7 W, and 1 W.

    >>> model = LinearPowerModel(energy_j=np.array([2.0]), intercept_w=1.0)
    >>> print(contribution_ratios(model, [[3.0]]).round(4))
    [0.8571 0.1429]
    """
    terms = np.atleast_2d(contributions_w(model, rates))
    estimated = terms.sum(axis=1, keepdims=True)
    if (estimated <= 0).any():
        raise InputError("a kernel's estimated power is not above 0: it has no contribution ratios")
    return np.asarray((terms / estimated).mean(axis=0))


def _training(columns: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """Return the columns (K, F) and values (K,), checked."""
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
