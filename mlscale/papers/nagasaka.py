"""Nagasaka et al. 2010: board power as a linear function of counters per second.

Source: Nagasaka, Maruyama, Nukada, Endo and Matsuoka, "Statistical power modeling of GPU kernels
using performance counters", 2010 International Green Computing Conference, pages 115 to 122.
Section, equation and figure numbers are those of the paper; docs/papers/equations.md has the
symbols.

The model, Eq. (1): p = sum_i alpha_i c_i + beta, with p the average power of a kernel [W], c_i its
counters per second [1/s], alpha_i the energy of one event [J] and beta the constant intercept [W].
It estimates the power of a kernel at the configuration it was trained at: the intercept holds the
idle power there, clocks and voltage included, and is not transferable to another.

Two things the paper does not say are settled here: columns are standardised before the penalty is
applied, and the intercept is not penalised.

His counters are those of a GTX 285 without caches. Each variable takes the nearest thing that
nvprof counts on Maxwell and later. tlb_miss has no replacement: `tlb_miss*` is the number of DRAM
transactions, a stand-in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats, Mask
from mlscale.data.profiles import Profiles
from mlscale.data.table import missing_column
from mlscale.errors import InputError, warn
from mlscale.papers.arguments import above_0, finite, from_0, result
from mlscale.papers.wang_chu_inputs import NvprofCounters, nvprof_counters, uses_texture_path

# The GTX 285 has 30 CUs and the paper leaves out kernels of fewer than 120 blocks.
BLOCKS_PER_CU = 4

BASELINE = "intercept only"
FULL = "Full"

_L2 = ("l2_read_transactions", "l2_write_transactions")
_DRAM = ("dram_read_transactions", "dram_write_transactions")
_SHARED = ("shared_load_transactions", "shared_store_transactions")
_LOCAL = {"local_load": "local_load_transactions", "local_store": "local_store_transactions"}


@dataclass(frozen=True)
class Variable:
    """One independent variable: the nvprof counters it needs and its formula on them, (K,)."""

    needs: tuple[str, ...]
    formula: Callable[[NvprofCounters], Floats]


def _counter(name: str) -> Variable:
    return Variable((name,), lambda counters: counters.count(name))


def _branch_divergence(counters: NvprofCounters) -> Floats:
    efficiency = counters.count("branch_efficiency")
    why = "is above 1; give the share of branches that do not diverge, not nvprof's percentage"
    counters.refuse(efficiency > 1, "branch_efficiency", why)
    return counters.count("cf_executed") * (1 - efficiency)


def _bank_conflicts(counters: NvprofCounters) -> Floats:
    requests = counters.requests(_SHARED)
    return np.maximum(0.0, counters.total(*_SHARED) - (0.0 if requests is None else requests))


VARIABLES: Mapping[str, Variable] = MappingProxyType(
    {
        "gld": _counter(_L2[0]),
        "gst": _counter(_L2[1]),
        # L2 transactions hold what local memory sends past the first cache: not added again.
        "mem": Variable(_L2, lambda counters: memory_accesses(*map(counters.count, _L2))),
        "instructions": _counter("inst_executed"),
        "branch": _counter("cf_executed"),
        "divergent_branch": Variable(("cf_executed", "branch_efficiency"), _branch_divergence),
        "warp_serialize": Variable(
            (*_SHARED, *(f"{name}_per_request" for name in _SHARED)), _bank_conflicts
        ),
        "tlb_miss*": Variable(_DRAM, lambda counters: counters.total(*_DRAM)),
        "local_load": _counter(_LOCAL["local_load"]),
        "local_store": _counter(_LOCAL["local_store"]),
    }
)

# Section IV-B, his seven sets in his order; Full also has local_load and local_store where the
# table counts them, and lacks tlb_miss, for which there is no counter.
SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Mem": ("mem",),
        "Inst": ("instructions",),
        "Mem/Inst": ("mem", "instructions"),
        "Mem/Inst/Branch": ("mem", "instructions", "branch"),
        "Mem/Inst/WS": ("mem", "instructions", "warp_serialize"),
        "Mem/Inst/TLB*": ("mem", "instructions", "tlb_miss*"),
        FULL: ("gld", "gst", "instructions", "branch", "divergent_branch", "warp_serialize"),
        BASELINE: (),
    }
)


@dataclass(frozen=True, eq=False)
class PowerInputs:
    """What the model knows of K kernels.

    Attributes:
        kernels, applications: their names.
        power_w: measured power (K,) [W].
        rates: each variable per second (K,) [1/s], by name.
        sets: the variables of each set of counters that the table gives.
        texture: 1 where a kernel reads through the texture cache more than its global loads, else
            0, NaN where it is not counted, (K,).
        few_blocks: where a kernel has fewer than 4 blocks for each CU, (K,).
    """

    kernels: tuple[str, ...]
    applications: tuple[str, ...]
    power_w: Floats
    rates: Mapping[str, Floats]
    sets: Mapping[str, tuple[str, ...]]
    texture: Floats
    few_blocks: Mask

    def matrix(self, name: str) -> Floats:
        """Return the variables of a set of counters, (K, F) [1/s]."""
        columns = [self.rates[variable] for variable in self.sets[name]]
        return np.column_stack([np.empty((len(self.kernels), 0)), *columns])

    def as_in_paper(self) -> "PowerInputs":
        """Return the kernels that the paper would keep: enough blocks and no texture reads."""
        keep = np.flatnonzero(~((self.texture == 1) | self.few_blocks))
        return replace(
            self,
            kernels=tuple(self.kernels[k] for k in keep),
            applications=tuple(self.applications[k] for k in keep),
            power_w=self.power_w[keep],
            rates={name: rate[keep] for name, rate in self.rates.items()},
            texture=self.texture[keep],
            few_blocks=self.few_blocks[keep],
        )


def derive_inputs(profiles: Profiles) -> PowerInputs:
    """The variables of every kernel of the profiles, and the sets of counters they give.

    Warns (DataWarning) of sets that are left out because there is no counter, and of kernels that
    would pass unseen for the same reason. Raises InputError where the power of a kernel is missing,
    where a counter is missing for some kernels or bad, and where not even one set is there.

    By hand: a read, a write and an instruction in 2 ms.

    >>> from mlscale.data.grid import HardwareConfig
    >>> names = {name for variable in VARIABLES.values() for name in variable.needs}
    >>> names = *names, "tex_cache_transactions", "gld_transactions", "workgroups"
    >>> profiles = Profiles(
    ...     device="gtx980", base=HardwareConfig(16, 700, 700), kernels=("copy",),
    ...     applications=("copy",), time_ms=np.array([2.0]), power_w=np.array([60.0]),
    ...     counter_names=names, counters=np.ones((1, len(names))))
    >>> print(derive_inputs(profiles).matrix("Mem/Inst"))
    [[1000.  500.]]
    """
    power = profiles.base_power_w
    sets = _available_sets(profiles.counter_names)
    wanted = tuple(dict.fromkeys(name for variables in sets.values() for name in variables))
    counters = nvprof_counters(profiles)
    inputs = PowerInputs(
        kernels=profiles.kernels,
        applications=profiles.applications,
        power_w=power,
        rates=variable_rates(profiles, wanted),
        sets=sets,
        texture=uses_texture_path(counters),
        few_blocks=has_few_blocks(profiles),
    )
    _warn_of_unseen_events(inputs, counters)
    return inputs


def variable_rates(profiles: Profiles, variables: Sequence[str]) -> dict[str, Floats]:
    """Return variables of every kernel per second, (K,) each [1/s], by name.

    Raises InputError, naming them, where counters are not there, and on a count that is bad.

    By hand: 3000 reads and 1000 writes in 2 ms.

    >>> from mlscale.data.grid import HardwareConfig
    >>> profiles = Profiles(
    ...     device="gtx980", base=HardwareConfig(16, 700, 700), kernels=("copy",),
    ...     applications=("copy",), time_ms=np.array([2.0]), power_w=np.array([60.0]),
    ...     counter_names=("l2_read_transactions", "l2_write_transactions"),
    ...     counters=np.array([[3000, 1000]]))
    >>> print(variable_rates(profiles, ["mem"])["mem"])
    [2000000.]
    """
    needed = dict.fromkeys(c for name in variables for c in VARIABLES[name].needs)
    if missing := [name for name in needed if not profiles.has_counter(name)]:
        raise InputError(
            "Nagasaka's model needs counters as nvprof names them: "
            + "; ".join(missing_column(name, profiles.counter_names) for name in missing)
        )
    counters = nvprof_counters(profiles)
    return {
        name: per_second(VARIABLES[name].formula(counters), profiles.time_ms) for name in variables
    }


def has_few_blocks(profiles: Profiles) -> Mask:
    """Return where a kernel has fewer blocks than the paper asks for, (K,).

    16 CUs ask for 64.

    >>> from mlscale.data.grid import HardwareConfig
    >>> profiles = Profiles(
    ...     device="gtx980", base=HardwareConfig(16, 700, 700), kernels=("copy",),
    ...     applications=("copy",), time_ms=np.array([2.0]), power_w=np.array([60.0]),
    ...     counter_names=("workgroups",), counters=np.array([[63]]))
    >>> print(has_few_blocks(profiles))
    [ True]
    """
    blocks = nvprof_counters(profiles).optional("workgroups")
    return np.asarray(blocks < BLOCKS_PER_CU * profiles.base.cu_count)


def _available_sets(counter_names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sets whose counters are all there. Raises and warns as derive_inputs does."""
    lacking = {
        name: [c for v in variables for c in VARIABLES[v].needs if c not in counter_names]
        for name, variables in SETS.items()
    }
    absent = dict.fromkeys(counter for counters in lacking.values() for counter in counters)
    what = "; ".join(missing_column(counter, counter_names) for counter in absent)
    available = {name: variables for name, variables in SETS.items() if not lacking[name]}
    if available.keys() == {BASELINE}:
        raise InputError(f"Nagasaka's model needs counters as nvprof names them: {what}")
    if absent:
        left_out = ", ".join(name for name in SETS if name not in available)
        warn("T09", f"left out are the sets {left_out}: {what}")
    if FULL in available:
        local = tuple(name for name, counter in _LOCAL.items() if counter in counter_names)
        available[FULL] = (*available[FULL], *local)
    return available


def _warn_of_unseen_events(inputs: PowerInputs, counters: NvprofCounters) -> None:
    """One DataWarning for each kind of event that the model cannot see in this table."""
    if not all(counters.has(counter) for counter in _LOCAL.values()):
        warn(
            "T10",
            f"no {' and '.join(_LOCAL.values())}: the model does not see local memory, "
            "except what reaches the L2 cache",
        )
    if np.isnan(inputs.texture).any():
        warn(
            "T10",
            "no tex_cache_transactions, or no gld_transactions to compare with: kernels that read "
            "textures cannot be identified",
        )
    uncounted = np.isnan(counters.optional("workgroups"))
    if uncounted.any():
        names = ", ".join(np.array(inputs.kernels)[uncounted])
        kernels = "" if uncounted.all() else f" for {names}"
        warn(
            "T10",
            f"no workgroups{kernels}: kernels of fewer than {BLOCKS_PER_CU} blocks per CU cannot "
            "be identified",
        )


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
        kept = sizes > np.finfo(np.float64).eps * max(x.shape) * sizes[0]
        shrunk = sizes[kept] / (sizes[kept] ** 2 + strength[:, None])
        weights = shrunk * (centred @ left[:, kept]) @ right[kept]
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
        raise InputError("ridge regression needs at least one kernel")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("ridge regression needs finite numbers: leave out what is missing")
    return x, y
