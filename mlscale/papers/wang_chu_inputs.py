"""What Wang and Chu's model is given: the parameters of a GPU, and of each kernel its counts.

A GPU is micro-benchmarked (wang_chu_gpus.json) or taken from its specification; the units of both
come from the device table. The DRAM parameters of another GPU are fitted to a latency benchmark
(Table II, Eq. (4)) and a bandwidth benchmark (Table III), section IV-A; a fit goes into
`GpuParameters` by `dataclasses.replace`. All cycles are engine cycles.

A kernel's counts are per warp, from the nvprof counters of one run.

Source: Wang and Chu 2018, Table IV; the counters are those of the authors' later files.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import compress
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats, Mask
from mlscale.data.devices import SECTOR_BYTES, Device, load_device
from mlscale.data.profiles import Profiles
from mlscale.data.table import missing_column
from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.notes import Note
from mlscale.papers.arguments import above_0, finite, from_0, from_1, shares
from mlscale.readers.mapping import lacking_for_nvprof

# Bandwidth that a saturated memory reaches: Table III has 0.76 to 0.85 of the peak, its fit
# against ideal_dram_delay 0.79 to 0.89.
DRAM_EFFICIENCY = 0.85

_REFERENCE = "gtx980"
_LATENCIES = ("dram_latency_slope", "dram_latency_offset", "l2_latency", "shared_latency")


@dataclass(frozen=True)
class GpuParameters:
    """The parameters of one GPU (paper, Table IV); cycles of the engine clock.

    Attributes:
        key: the name in the device table.
        cu_count: CUs of the device (#SM); the delays hold for all of them together.
        max_resident_warps: warps that a CU can hold.
        dram_latency_slope: DRAM latency per engine_mhz / memory_mhz, Eq. (4) [cycles].
        dram_latency_offset: the part of the DRAM latency that follows the engine [cycles].
        dram_delay_slope: fall of the DRAM delay with the memory clock [cycles MHz].
        dram_delay_offset: DRAM delay at equal clocks, both very high [cycles].
        l2_latency: latency of a transaction that hits the L2 cache [cycles].
        l2_delay: time between two such transactions of a CU [cycles].
        shared_latency: latency of a shared-memory transaction [cycles].
        shared_delay: time between two such transactions of a CU [cycles].
        instruction_delay: time between two warp instructions of a CU [cycles].
        fp64_delay: what an FP64 warp instruction adds [cycles].
        source: where the parameters are from.
        note: what else a reader must know.
    """

    key: str
    cu_count: int
    max_resident_warps: int
    dram_latency_slope: float
    dram_latency_offset: float
    dram_delay_slope: float
    dram_delay_offset: float
    l2_latency: float
    l2_delay: float
    shared_latency: float
    shared_delay: float
    instruction_delay: float
    fp64_delay: float
    source: str
    note: str

    def __post_init__(self) -> None:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.type in (int, float)}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} of a GPU must be a number, not {value!r}")
        may_fall = [name for name in numbers if name.endswith(("_slope", "_offset"))]
        finite(**{name: numbers.pop(name) for name in may_fall})
        from_0(fp64_delay=numbers.pop("fp64_delay"))
        above_0(**numbers)


def load_gpu(key: str) -> GpuParameters:
    """The GPU of that name: its row of the table, else what its specification gives.

    Raises InputError where the device table has no such device.

    Section IV-B has 222 cycles for the GTX 980's L2 cache.

    >>> load_gpu("gtx980").l2_latency
    222
    """
    device = load_device(key)
    row = _rows().get(key)
    return specification_gpu(device) if row is None else gpu_of_row(device, row)


def ideal_dram_delay(device: Device) -> float:
    """Engine cycles of a CU between two 32-byte DRAM transactions, both clocks equal.

    All CUs share the full bandwidth of the data sheet.

    By hand: 16 CUs of a GTX 980, 32 bytes each, over 256 / 8 bytes twice a cycle.

    >>> print(ideal_dram_delay(load_device("gtx980")))
    8.0
    """
    bytes_per_memory_cycle = device.memory_bus_bits / 8 * device.memory_transfers_per_cycle
    return device.cu_count * SECTOR_BYTES / bytes_per_memory_cycle


def specification_gpu(device: Device) -> GpuParameters:
    """A GPU without micro-benchmarks: throughputs from its units, latencies of the GTX 980.

    The DRAM delay is the ideal one at 85 % efficiency, at every clock. max-overlap uses
    throughputs only, so the borrowed latencies do not matter to it.

    By hand: the ideal 8 cycles of a GTX 980 / 0.85.

    >>> print(f"{specification_gpu(load_device('gtx980')).dram_delay_offset:.3f}")
    9.412
    """
    reference = _rows()[_REFERENCE]
    row = {name: reference[name] for name in _LATENCIES} | {
        "dram_delay_slope": 0.0,
        "dram_delay_offset": ideal_dram_delay(device) / DRAM_EFFICIENCY,
        "l2_delay": 1.0,
        "shared_delay": 1.0,
        "instruction_factor": 1.0,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": f"specification only; latencies of {_REFERENCE}",
        "note": "Never micro-benchmarked.",
    }
    return gpu_of_row(device, row)


def require_cu_count(gpu: GpuParameters, cu_counts: Iterable[int]) -> None:
    """Raise InputError on a number of CUs other than the GPU's own.

    (6) would scale with the CUs, but the DRAM delay was measured with all of them at work, and no
    data with these counters vary their number.
    """
    for cu_count in cu_counts:
        if cu_count != gpu.cu_count:
            raise InputError(
                f"Wang and Chu's model of '{gpu.key}' holds for its {gpu.cu_count} CUs, not for "
                f"{cu_count}: its memory delays are those of all of them at work"
            )


def gpu_of_row(device: Device, row: dict[str, Any]) -> GpuParameters:
    """The GPU of a row as wang_chu_gpus.json has it. Raises TypeError where a field is missing.

    By hand: a warp of 32 threads takes 32 / 128 cycles of a CU of the GTX 980.

    >>> latencies = {"dram_latency_slope": 222.78, "dram_latency_offset": 277.32, "l2_latency": 222,
    ...     "shared_latency": 28}
    >>> delays = {"dram_delay_slope": 805.03, "dram_delay_offset": 8.1762, "l2_delay": 1,
    ...     "shared_delay": 1, "fp64_delay": 8, "instruction_factor": 1}
    >>> row = latencies | delays | {"source": "the paper", "note": ""}
    >>> print(gpu_of_row(load_device("gtx980"), row).instruction_delay)
    0.25
    """
    measured = {name: value for name, value in row.items() if name != "instruction_factor"}
    return GpuParameters(
        key=device.key,
        cu_count=device.cu_count,
        max_resident_warps=device.max_waves_per_cu,
        instruction_delay=row["instruction_factor"] * device.wave_size / device.lanes_per_cu,
        **measured,
    )


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = shipped_json(__file__, "wang_chu_gpus.json")["gpus"]
    return rows


@dataclass(frozen=True)
class LineFit:
    """A fitted line: slope x + offset, and the share of the variance that it explains."""

    slope: float
    offset: float
    r_squared: float


def fit_dram_latency(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, latency_cycles: ArrayLike
) -> LineFit:
    """dram_latency_slope [cycles] and dram_latency_offset [cycles] of Eq. (4), least squares.

    latency_cycles: of one DRAM transaction without contention, in engine cycles, one for each
    pair of clocks [MHz]. Raises InputError unless the pairs have two ratios of clocks at least.

    By hand, through the first and last row of Table II, whose engine ran at 400 MHz:
    (500 - 366.4) / (1 - 0.4), and the rest of 500. The paper fits 222.78 and 277.32 to all rows.

    >>> line = fit_dram_latency([400, 400], [400, 1000], [500, 366.4])
    >>> print(f"{line.slope:.2f} {line.offset:.2f}")
    222.67 277.33
    """
    engine, memory, latency = _samples(engine_mhz, memory_mhz, latency_cycles)
    return _line(engine / memory, latency, "ratios of engine to memory clock")


def fit_dram_delay(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, delay_cycles: ArrayLike
) -> LineFit:
    """dram_delay_slope [cycles MHz] and dram_delay_offset [cycles], least squares.

    delay_cycles: time between two 32-byte transactions of a CU with the memory saturated, in
    engine cycles, one for each pair of clocks [MHz]. It is scaled to equal clocks first, where
    Table III has its values. For that table the authors use 805.03 and 8.1762 (R2 0.980); least
    squares gives 726.127 and 8.28061. Raises InputError unless there are two memory clocks.

    By hand, at equal clocks: 1.5 / (1 / 400 - 1 / 1000), and 9 less a thousandth of that.

    >>> line = fit_dram_delay([400, 1000], [400, 1000], [10.5, 9])
    >>> print(f"{line.slope:.1f} {line.offset:.1f}")
    1000.0 8.0
    """
    engine, memory, delay = _samples(engine_mhz, memory_mhz, delay_cycles)
    return _line(1 / memory, delay * memory / engine, "memory clocks")


def _samples(engine_mhz: ArrayLike, memory_mhz: ArrayLike, cycles: ArrayLike) -> tuple[Floats, ...]:
    columns = above_0(engine_mhz=engine_mhz, memory_mhz=memory_mhz, cycles=cycles)
    shapes = {column.shape for column in columns}
    if len(shapes) > 1 or columns[0].ndim != 1:
        raise InputError(
            "a fit needs as many engine clocks as memory clocks and cycles, not "
            + ", ".join(str(column.size) for column in columns)
        )
    return columns


def _line(x: Floats, y: Floats, what: str) -> LineFit:
    from sklearn.linear_model import LinearRegression

    if np.unique(x).size < 2:
        raise InputError(f"a fit needs samples at two or more {what}, not {np.unique(x).size}")
    line = LinearRegression().fit(x[:, None], y)
    return LineFit(float(line.coef_[0]), float(line.intercept_), line.score(x[:, None], y))


_TEXTURE_MARGIN = 1.05


class NvprofCounters:
    """The counters of K kernels; every method raises InputError naming kernel and counter."""

    def __init__(self, counters: Mapping[str, Floats], kernels: Sequence[str]) -> None:
        self._counters = counters  # (K,) each
        self._kernels = kernels

    def has(self, name: str) -> bool:
        """Whether there is a counter of that name."""
        return name in self._counters

    def count(self, name: str) -> Floats:
        """Return a counter that every kernel must have, finite and not negative, (K,)."""
        values = self._counters[name]
        self.refuse(np.isnan(values), name, "is missing; measure it, or leave the kernel out")
        self.refuse((values < 0) | np.isinf(values), name, "is not a count")
        return values

    def optional(self, name: str) -> Floats:
        """Return a counter that may be absent: NaN where it is missing, (K,)."""
        if not self.has(name):
            return np.full(len(self._kernels), np.nan)
        values = self._counters[name]
        self.refuse((values < 0) | np.isinf(values), name, "is not a count")
        return values

    def total(self, *names: str) -> Floats:
        """Return the sum of counters that every kernel must have, (K,)."""
        return np.asarray(np.sum([self.count(name) for name in names], axis=0))

    def lacking_for_requests(self, names: Sequence[str]) -> list[str]:
        """Return the columns that `requests` needs and that are not there."""
        needed = [column for name in names for column in (name, f"{name}_per_request")]
        return [column for column in needed if not self.has(column)]

    def requests(self, names: Sequence[str]) -> Floats | None:
        """Instructions that made the transactions of those names, (K,); None where not counted.

        nvprof gives 0 transactions per request where there were none.
        """
        if self.lacking_for_requests(names):
            return None
        total = np.zeros(len(self._kernels))
        for name in names:
            transactions = self.count(name)
            per_request = self._counters[f"{name}_per_request"]
            used = transactions > 0
            self.refuse(
                used & ~(per_request > 0),
                f"{name}_per_request",
                f"gives no requests for the transactions in '{name}'",
            )
            total += np.divide(transactions, per_request, out=np.zeros_like(total), where=used)
        return total

    def refuse(self, bad: Mask, name: str, why: str) -> None:
        """Raise InputError, naming the first, where a counter of a kernel is bad, (K,)."""
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            more = f" (and {bad.sum() - 1} more kernels)" if bad.sum() > 1 else ""
            value = self._counters[name][k]
            shown = "" if np.isnan(value) else f" {value:g}"
            raise InputError(f"kernel '{self._kernels[k]}', counter '{name}':{shown} {why}{more}")


def nvprof_counters(profiles: Profiles) -> NvprofCounters:
    """The counters of every kernel of the profiles."""
    by_name = dict(zip(profiles.counter_names, profiles.counters.T, strict=True))
    return NvprofCounters(by_name, profiles.kernels)


def uses_texture_path(counters: NvprofCounters) -> Floats:
    """1 where a kernel has more texture-cache transactions than global loads, else 0, (K,).

    It then reads textures, or spilled registers where these take the same path. NaN where one
    of the two is not counted.
    """
    texture = counters.optional("tex_cache_transactions")
    loads = counters.optional("gld_transactions")
    unknown = np.isnan(texture) | (np.isnan(loads) & (texture > 0))
    return np.where(unknown, np.nan, texture > _TEXTURE_MARGIN * loads)


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

_MISS_RATE = Note(
    "G01", "more DRAM than L2 transactions, an L2 miss rate above 1: clipped to 1", "warning"
)
_FP64 = Note(
    "P02", "uses FP64, outside the model's scope: charged as additional issue time", "warning"
)
_TEXTURE = Note(
    "P02",
    "reads textures or spilled registers (more texture-cache transactions than global loads), "
    "outside the model's scope: charged as global memory",
    "warning",
)
_NO_FP64 = Note(
    "T10", "no inst_fp_64: FP64 use, outside the model's scope, is neither seen nor charged"
)
_NO_TEXTURE = Note(
    "T10",
    "no tex_cache_transactions, or no gld_transactions to compare with: texture use, outside the "
    "model's scope, is not seen",
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
    flags: tuple[tuple[Note, ...], ...]

    @classmethod
    def from_numbers(  # noqa: PLR0913 - what a warp does has so many numbers
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
    def from_row(cls, row: Mapping[str, float], gpu: GpuParameters) -> Self:
        """Make it of the counters of one run, by nvprof's names, as a row of a table has them.

        Raises InputError as `derive_inputs` does.

        By hand: 1600 transactions of 100 warps, of which DRAM sees 800; 4 to an instruction.

        >>> row = {
        ...     "warps": 100, "achieved_occupancy": 0.5, "inst_per_warp": 50,
        ...     "dram_read_transactions": 600, "dram_write_transactions": 200,
        ...     "l2_read_transactions": 1200, "l2_write_transactions": 400,
        ...     "shared_load_transactions": 0, "shared_store_transactions": 0}
        >>> kernel = WarpInputs.from_row(row, load_gpu("gtx980"))
        >>> print(kernel.global_transactions, kernel.l2_hit_rate, kernel.compute_instructions)
        16.0 0.5 46.0
        """
        counters = {n: np.array([float(v)]) for n, v in row.items() if isinstance(v, Real)}
        inputs = warp_inputs(counters, gpu, [str(row.get("kernel", "the kernel"))])
        arrays = {f.name: getattr(inputs, f.name)[0] for f in fields(cls) if f.name != "flags"}
        return cls(**arrays, flags=inputs.flags)


# A kernel of easy numbers, of the functions' examples: all hits; four periods of 50 instructions
# and four transactions each; 32 rounds of 64 warps on the 16 CUs of a GTX 980.
EXAMPLE = WarpInputs.from_numbers(
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
            + _lacking_of_ncu(counter_names)
        )


def _lacking_of_ncu(counter_names: Sequence[str]) -> str:
    """What to ask ncu for, where the counters are its metrics; its import names the others."""
    if not any("__" in name for name in counter_names):
        return ""
    lacking = lacking_for_nvprof("ncu", counter_names)
    metrics = ", ".join(dict.fromkeys(metric for metric in lacking.values() if metric))
    return (
        f"; 'mlscale import' makes them of ncu's metrics, of which this table lacks {metrics}: "
        "profile with them too"
    )


def derive_inputs(profiles: Profiles, gpu: GpuParameters) -> WarpInputs:
    """The inputs of every kernel of the profiles, as `warp_inputs` says.

    `WarpInputs.from_row` has an example by hand; here 4 CUs of 128 CUDA cores hold a quarter of
    their 64 warps each.

    >>> from mlscale.data.grid import HardwareConfig
    >>> profiles = Profiles(
    ...     device="gtx980", base=HardwareConfig(16, 700, 700), kernels=("copy",),
    ...     applications=("copy",), time_ms=np.ones(1), power_w=None, counter_names=COUNTERS,
    ...     counters=np.array([[100, 0.25, 50, 600, 200, 1200, 400, 0, 0]]))
    >>> print(derive_inputs(profiles, load_gpu("gtx980")).resident_warps)
    [16.]
    """
    by_name = dict(zip(profiles.counter_names, profiles.counters.T, strict=True))
    return warp_inputs(by_name, gpu, profiles.kernels)


def warp_inputs(
    by_name: Mapping[str, Floats], gpu: GpuParameters, kernels: Sequence[str]
) -> WarpInputs:
    """The inputs of K kernels, from their counters (K,) by the names of nvprof.

    Memory instructions are transactions / transactions per request. Two fallbacks: without the
    requests of global memory, 4 transactions make an instruction; without those of shared
    memory, every transaction is an instruction. Without inst_fp_64 no FP64 is charged.
    A warp has one period at least, also where only some warps touch memory.

    Raises InputError where a counter is missing, negative or contradicts another, and where the
    occupancy is not above 0 and at most 1.

    By hand: 100 warps of 50 instructions, all of which hit the L2 cache.

    >>> counts = dict(zip(COUNTERS, [100, 0.25, 50, 0, 0, 1200, 400, 0, 0]))
    >>> arrays = {name: np.array([count]) for name, count in counts.items()}
    >>> print(warp_inputs(arrays, load_gpu("gtx980"), ["copy"]).l2_hit_rate)
    [1.]
    """
    require_counters([*by_name])
    counters = NvprofCounters(by_name, kernels)
    warps = _warps(counters)
    occupancy = _occupancy(counters)
    transactions = counters.total("l2_read_transactions", "l2_write_transactions") / warps
    dram = counters.total("dram_read_transactions", "dram_write_transactions") / warps
    shared = counters.total(*_SHARED) / warps
    counters.refuse(
        (transactions == 0) & (dram > 0),
        "l2_read_transactions",
        "and no L2 writes, but DRAM transactions, which pass through the L2; measure them again",
    )
    miss_rate = np.divide(dram, transactions, out=np.zeros_like(dram), where=transactions > 0)

    requests = counters.requests(_GLOBAL)
    memory_instructions = (
        transactions / TRANSACTIONS_PER_INSTRUCTION if requests is None else requests / warps
    )
    shared_requests = counters.requests(_SHARED)
    shared_instructions = shared if shared_requests is None else shared_requests / warps
    instructions = counters.count("inst_per_warp")
    fp64 = counters.optional("inst_fp_64") / (THREADS_PER_WARP * warps)
    texture = uses_texture_path(counters)

    conditions = {
        _MISS_RATE: miss_rate > 1,
        _FP64: fp64 > _FP64_SHARE * instructions,
        _TEXTURE: texture == 1,
        _NO_FP64: np.isnan(fp64),
        _NO_TEXTURE: np.isnan(texture),
        _assumed(counters.lacking_for_requests(_GLOBAL), TRANSACTIONS_PER_INSTRUCTION, "memory"): (
            np.full(warps.shape, requests is None)
        ),
        _assumed(counters.lacking_for_requests(_SHARED), 1, "shared-memory"): (
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
        flags=_flags(conditions),
    )


def _flags(conditions: Mapping[Note, Mask]) -> tuple[tuple[Note, ...], ...]:
    """For each kernel the flags whose condition (K,) holds of it."""
    by_kernel = zip(*conditions.values(), strict=True)
    return tuple(tuple(compress(conditions, holds)) for holds in by_kernel)


def _warps(counters: NvprofCounters) -> Floats:
    if counters.has("warps"):
        warps = counters.count("warps")
        counters.refuse(warps == 0, "warps", "is 0; a kernel has at least one warp")
        return warps
    workgroups, size = (counters.count(name) for name in _LAUNCH)
    counters.refuse(workgroups * size == 0, _LAUNCH[0], "times workgroup_size is 0")
    return np.asarray(workgroups * np.ceil(size / THREADS_PER_WARP))


def _occupancy(counters: NvprofCounters) -> Floats:
    occupancy = counters.count("achieved_occupancy")
    counters.refuse(
        ~((occupancy > 0) & (occupancy <= 1)),
        "achieved_occupancy",
        "is not above 0 and at most 1; it is the share of the warps that a CU can hold",
    )
    return occupancy


def _assumed(lacking: list[str], transactions: int, kind: str) -> Note:
    one = f"{transactions} transaction{'s' if transactions > 1 else ''}"
    verb = "are" if transactions > 1 else "is"
    told = f"no {', '.join(lacking)}: {one} per {kind} instruction {verb} assumed"
    return Note("T10", told)
