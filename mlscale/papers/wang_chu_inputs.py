"""What the model of Wang and Chu needs of a kernel, per warp, from the nvprof counters of one run.

Source: Wang and Chu 2018, Table IV; the counters are those of the authors' later files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.table import missing_column
from mlscale.errors import InputError
from mlscale.papers.arguments import above_0, from_0, from_1, shares
from mlscale.papers.nvprof_run import NvprofRun, flags_of, uses_texture_path
from mlscale.papers.wang_chu_gpus import GpuParameters
from mlscale.readers.mapping import lacking_for_nvprof

COUNTERS = (
    *("warps", "achieved_occupancy", "inst_per_warp"),
    *("dram_read_transactions", "dram_write_transactions"),
    *("l2_read_transactions", "l2_write_transactions"),
    *("shared_load_transactions", "shared_store_transactions"),
)
# What stands for `warps` where the launch is known instead.
_LAUNCH = ("workgroups", "workgroup_size")
_GLOBAL = ("gld_transactions", "gst_transactions")
_SHARED = ("shared_load_transactions", "shared_store_transactions")

# Where the profile cannot tell: a coalesced 4-byte access of a warp is 128 bytes.
TRANSACTIONS_PER_INSTRUCTION = 4
THREADS_PER_WARP = 32
_FP64_SHARE = 0.01

_MISS_RATE = "more DRAM than L2 transactions, an L2 miss rate above 1: clipped to 1"
_FP64 = "uses FP64, outside the model's scope: charged as additional issue time"
_TEXTURE = (
    "reads textures or spilled registers (more texture-cache transactions than global loads), "
    "outside the model's scope: charged as global memory"
)
_NO_FP64 = "no inst_fp_64: FP64 use, outside the model's scope, is neither seen nor charged"
_NO_TEXTURE = (
    "no tex_cache_transactions, or no gld_transactions to compare with: texture use, outside the "
    "model's scope, is not seen"
)


@dataclass(frozen=True, eq=False)
class WarpInputs:
    """What the model knows of K kernels; each array (K,), or a number for one kernel.

    Counts are per warp.

    Attributes:
        warps: warps of the launch (#W).
        resident_warps: warps resident on a CU on average (#Aw), fractional.
        global_transactions: 32-byte transactions between CU and L2 cache (gld_trans).
        l2_hit_rate: share of them that DRAM does not see, 0 to 1 (l2_hr).
        memory_instructions: global loads and stores (o_itrs), at least 1: the periods of a warp.
        shared_transactions: shared-memory transactions.
        compute_instructions: all other instructions (comp_inst).
        fp64_instructions: FP64 instructions, which are compute instructions too.
        flags: for each kernel, what its prediction rests on that the reader should know.
    """

    warps: Floats
    resident_warps: Floats
    global_transactions: Floats
    l2_hit_rate: Floats
    memory_instructions: Floats
    shared_transactions: Floats
    compute_instructions: Floats
    fp64_instructions: Floats
    flags: tuple[tuple[str, ...], ...]

    @classmethod
    def of(  # noqa: PLR0913 - what a warp does has so many numbers
        cls,
        *,
        warps: ArrayLike,
        resident_warps: ArrayLike,
        global_transactions: ArrayLike,
        l2_hit_rate: ArrayLike,
        memory_instructions: ArrayLike,
        compute_instructions: ArrayLike,
        shared_transactions: ArrayLike = 0.0,
        fp64_instructions: ArrayLike = 0.0,
    ) -> Self:
        """Make it of numbers, for one kernel, or of arrays (K,). Raises InputError."""
        warps, resident = above_0(warps=warps, resident_warps=resident_warps)
        transactions, shared, compute, fp64 = from_0(
            global_transactions=global_transactions,
            shared_transactions=shared_transactions,
            compute_instructions=compute_instructions,
            fp64_instructions=fp64_instructions,
        )
        (rate,) = shares(l2_hit_rate=l2_hit_rate)
        (periods,) = from_1(memory_instructions=memory_instructions)
        try:
            count = np.broadcast(
                warps, resident, transactions, rate, periods, shared, compute, fp64
            )
        except ValueError as error:
            raise InputError(f"the inputs are of different numbers of kernels: {error}") from None
        return cls(
            warps=warps,
            resident_warps=resident,
            global_transactions=transactions,
            l2_hit_rate=rate,
            memory_instructions=periods,
            shared_transactions=shared,
            compute_instructions=compute,
            fp64_instructions=fp64,
            flags=((),) * count.size,
        )

    @classmethod
    def of_row(cls, row: Mapping[str, float], gpu: GpuParameters) -> Self:
        """Make it of the counters of one run, by nvprof's names, as a row of a table has them.

        Raises InputError as `derive_inputs` does.

        By hand: 1600 transactions of 100 warps, of which DRAM sees 800; 4 to an instruction.

        >>> from mlscale.papers.wang_chu_gpus import load_gpu
        >>> row = {
        ...     "warps": 100, "achieved_occupancy": 0.5, "inst_per_warp": 50,
        ...     "dram_read_transactions": 600, "dram_write_transactions": 200,
        ...     "l2_read_transactions": 1200, "l2_write_transactions": 400,
        ...     "shared_load_transactions": 0, "shared_store_transactions": 0}
        >>> kernel = WarpInputs.of_row(row, load_gpu("gtx980"))
        >>> print(kernel.global_transactions, kernel.l2_hit_rate, kernel.compute_instructions)
        16.0 0.5 46.0
        """
        counters = {name: value for name, value in row.items() if isinstance(value, Real)}
        profiles = Profiles(
            device=gpu.key,
            base=HardwareConfig(gpu.cu_count, 1.0, 1.0),  # of which the counters know nothing
            kernels=(str(row.get("kernel", "the kernel")),),
            applications=("",),
            time_ms=np.ones(1),
            power_w=None,
            counter_names=tuple(counters),
            counters=np.array([[*counters.values()]], dtype=np.float64),
        )
        inputs = derive_inputs(profiles, gpu)
        arrays = {f.name: getattr(inputs, f.name)[0] for f in fields(cls) if f.name != "flags"}
        return cls(**arrays, flags=inputs.flags)


# A kernel of easy numbers, of the functions' examples: all hits; four periods of 50 instructions
# and four transactions each; 32 rounds of 64 warps on the 16 CUs of a GTX 980.
EXAMPLE = WarpInputs.of(
    warps=32_768,
    resident_warps=64,
    global_transactions=16,
    l2_hit_rate=1,
    memory_instructions=4,
    compute_instructions=200,
)


def missing_counters(counter_names: Sequence[str]) -> list[str]:
    """Return the counters that the model cannot do without and that are not there.

    >>> missing_counters(COUNTERS[1:])
    ['warps']
    >>> missing_counters([*COUNTERS[1:], "workgroups", "workgroup_size"])
    []
    """
    launch_known = all(name in counter_names for name in _LAUNCH)
    missing = [name for name in COUNTERS if name not in counter_names]
    return [name for name in missing if name != "warps" or not launch_known]


def require_counters(counter_names: Sequence[str]) -> None:
    """Raise InputError, naming them, where counters that the model needs are not there."""
    if missing := missing_counters(counter_names):
        what = missing_column(missing[0], counter_names)
        others = f"; nor {', '.join(missing[1:])}" if len(missing) > 1 else ""
        raise InputError(
            f"Wang and Chu's model needs counters as nvprof names them: {what}{others}"
            + _of_ncu(counter_names)
        )


def _of_ncu(counter_names: Sequence[str]) -> str:
    """What to ask ncu for, where the counters are its metrics; its import names the others."""
    if not any("__" in name for name in counter_names):
        return ""
    lacking = lacking_for_nvprof("ncu", counter_names)
    metrics = ", ".join(dict.fromkeys(metric for metric in lacking.values() if metric))
    return (
        f"; 'mlscale import' makes them of ncu's metrics, of which this table lacks {metrics}: "
        "profile with them too (docs/profiling.md)"
    )


def derive_inputs(profiles: Profiles, gpu: GpuParameters) -> WarpInputs:
    """The inputs of every kernel of the profiles.

    Memory instructions are transactions / transactions per request. Two fallbacks: without the
    requests of global memory, 4 transactions make an instruction; without those of shared
    memory, every transaction is an instruction. Without inst_fp_64 no FP64 is charged.
    A warp has one period at least, also where only some warps touch memory.

    Raises InputError where a counter is missing, negative or contradicts another, and where the
    occupancy is not above 0 and at most 1. `WarpInputs.of_row` has an example by hand; here 4 CUs
    of 128 CUDA cores hold a quarter of their 64 warps each.

    >>> from mlscale.papers.wang_chu_gpus import load_gpu
    >>> profiles = Profiles(
    ...     device="gtx980", base=HardwareConfig(16, 700, 700), kernels=("copy",),
    ...     applications=("copy",), time_ms=np.ones(1), power_w=None, counter_names=COUNTERS,
    ...     counters=np.array([[100, 0.25, 50, 600, 200, 1200, 400, 0, 0]]))
    >>> print(derive_inputs(profiles, load_gpu("gtx980")).resident_warps)
    [16.]
    """
    require_counters(profiles.counter_names)
    run = NvprofRun(profiles)
    warps = _warps(run)
    occupancy = _occupancy(run)
    transactions = run.total("l2_read_transactions", "l2_write_transactions") / warps
    dram = run.total("dram_read_transactions", "dram_write_transactions") / warps
    shared = run.total(*_SHARED) / warps
    run.refuse(
        (transactions == 0) & (dram > 0),
        "l2_read_transactions",
        "and no L2 writes, but DRAM transactions, which pass through the L2; measure them again",
    )
    miss_rate = np.divide(dram, transactions, out=np.zeros_like(dram), where=transactions > 0)

    requests = run.requests(_GLOBAL)
    memory_instructions = (
        transactions / TRANSACTIONS_PER_INSTRUCTION if requests is None else requests / warps
    )
    shared_requests = run.requests(_SHARED)
    shared_instructions = shared if shared_requests is None else shared_requests / warps
    instructions = run.count("inst_per_warp")
    fp64 = run.optional("inst_fp_64") / (THREADS_PER_WARP * warps)
    texture = uses_texture_path(run)

    conditions = {
        _MISS_RATE: miss_rate > 1,
        _FP64: fp64 > _FP64_SHARE * instructions,
        _TEXTURE: texture == 1,
        _NO_FP64: np.isnan(fp64),
        _NO_TEXTURE: np.isnan(texture),
        _assumed(run.lacking_for_requests(_GLOBAL), TRANSACTIONS_PER_INSTRUCTION, "memory"): (
            np.full(warps.shape, requests is None)
        ),
        _assumed(run.lacking_for_requests(_SHARED), 1, "shared-memory"): (
            (shared > 0) & (shared_requests is None)
        ),
    }
    return WarpInputs(
        warps=warps,
        resident_warps=gpu.max_resident_warps * occupancy,
        global_transactions=transactions,
        l2_hit_rate=1 - np.minimum(1, miss_rate),
        memory_instructions=np.maximum(1, memory_instructions),
        shared_transactions=shared,
        compute_instructions=np.maximum(
            0, instructions - memory_instructions - shared_instructions
        ),
        fp64_instructions=np.nan_to_num(fp64),
        flags=flags_of(conditions),
    )


def _warps(run: NvprofRun) -> Floats:
    if run.has("warps"):
        warps = run.count("warps")
        run.refuse(warps == 0, "warps", "is 0; a kernel has one warp at least")
        return warps
    workgroups, size = (run.count(name) for name in _LAUNCH)
    run.refuse(workgroups * size == 0, _LAUNCH[0], "times workgroup_size is 0")
    return np.asarray(workgroups * np.ceil(size / THREADS_PER_WARP))


def _occupancy(run: NvprofRun) -> Floats:
    occupancy = run.count("achieved_occupancy")
    run.refuse(
        ~((occupancy > 0) & (occupancy <= 1)),
        "achieved_occupancy",
        "is not above 0 and at most 1; it is the share of the warps that a CU can hold",
    )
    return occupancy


def _assumed(lacking: list[str], transactions: int, kind: str) -> str:
    one = f"{transactions} transaction{'s' if transactions > 1 else ''}"
    verb = "are" if transactions > 1 else "is"
    return f"no {', '.join(lacking)}: {one} per {kind} instruction {verb} assumed"
