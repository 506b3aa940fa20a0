"""The inputs of Nagasaka's power model: his variables from nvprof's counters, and his sets of them.

The paper's counters are those of a GTX 285 without caches. Each is replaced by the nearest thing
that nvprof counts on Maxwell and later. tlb_miss has no replacement: `tlb_miss*` is the number of
DRAM transactions, a stand-in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.profiles import Profiles
from mlscale.data.table import missing_column
from mlscale.errors import InputError, warn
from mlscale.papers.nagasaka import memory_accesses, per_second
from mlscale.papers.nvprof_run import NvprofRun, uses_texture_path

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
    """One independent variable: the nvprof counters it needs and its formula on a run, (K,)."""

    needs: tuple[str, ...]
    formula: Callable[[NvprofRun], Floats]


def _counter(name: str) -> Variable:
    """Return the variable that is a counter itself."""
    return Variable((name,), lambda run: run.count(name))


def _branch_divergence(run: NvprofRun) -> Floats:
    efficiency = run.count("branch_efficiency")
    why = "is above 1; give the share of branches that do not diverge, not nvprof's percentage"
    run.refuse(efficiency > 1, "branch_efficiency", why)
    return run.count("cf_executed") * (1 - efficiency)


def _bank_conflicts(run: NvprofRun) -> Floats:
    requests = run.requests(_SHARED)
    return np.maximum(0.0, run.total(*_SHARED) - (0.0 if requests is None else requests))


VARIABLES: Mapping[str, Variable] = MappingProxyType(
    {
        "gld": _counter(_L2[0]),
        "gst": _counter(_L2[1]),
        # L2 transactions hold what local memory sends past the first cache: not added again.
        "mem": Variable(_L2, lambda run: memory_accesses(*map(run.count, _L2))),
        "instructions": _counter("inst_executed"),
        "branch": _counter("cf_executed"),
        "divergent_branch": Variable(("cf_executed", "branch_efficiency"), _branch_divergence),
        "warp_serialize": Variable(
            (*_SHARED, *(f"{name}_per_request" for name in _SHARED)), _bank_conflicts
        ),
        "tlb_miss*": Variable(_DRAM, lambda run: run.total(*_DRAM)),
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

    Warns (DataWarning) of sets that are left out for want of a counter, and of kernels that would
    pass unseen for want of one. Raises InputError where the power of a kernel is missing, where a
    counter is missing for some kernels or bad, and where not even one set is there.

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
    run = NvprofRun(profiles)
    inputs = PowerInputs(
        kernels=profiles.kernels,
        applications=profiles.applications,
        power_w=power,
        rates=variable_rates(profiles, wanted),
        sets=sets,
        texture=uses_texture_path(run),
        few_blocks=has_few_blocks(profiles),
    )
    _warn_of_unseen_events(inputs, run)
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
    run = NvprofRun(profiles)
    return {name: per_second(VARIABLES[name].formula(run), profiles.time_ms) for name in variables}


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
    blocks = NvprofRun(profiles).optional("workgroups")
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
        warn(f"left out are the sets {left_out}: {what}")
    if FULL in available:
        local = tuple(name for name, counter in _LOCAL.items() if counter in counter_names)
        available[FULL] = (*available[FULL], *local)
    return available


def _warn_of_unseen_events(inputs: PowerInputs, run: NvprofRun) -> None:
    """One DataWarning for each kind of event that the model cannot see in this table."""
    if not all(run.has(counter) for counter in _LOCAL.values()):
        warn(
            f"no {' and '.join(_LOCAL.values())}: the model does not see local memory, "
            "except for what of it reaches the L2 cache"
        )
    if np.isnan(inputs.texture).any():
        warn(
            "no tex_cache_transactions, or no gld_transactions to compare with: kernels that read "
            "textures cannot be named"
        )
    uncounted = np.isnan(run.optional("workgroups"))
    if uncounted.any():
        names = ", ".join(np.array(inputs.kernels)[uncounted])
        of = "" if uncounted.all() else f" for {names}"
        warn(
            f"no workgroups{of}: kernels of fewer than {BLOCKS_PER_CU} blocks per CU cannot be "
            "named"
        )
