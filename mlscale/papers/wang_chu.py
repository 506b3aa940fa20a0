"""Execution time of a GPU kernel under core and memory frequency scaling.

Source: Q. Wang and X. Chu, "GPGPU Performance Estimation with Core and Memory Frequency
Scaling", IEEE ICPADS 2018, pp. 417-424, arXiv:1701.05308; equation numbers are the paper's.
docs/equations.md has the symbols, and the reason wherever the print is not followed.

A warp repeats one period: compute, then one memory instruction. All cycles are cycles of the
engine (core) clock. Arguments may be numbers or arrays that broadcast against each other.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlscale.arrays import Floats
from mlscale.papers.wang_chu_gpus import GpuParameters
from mlscale.papers.wang_chu_inputs import WarpInputs

# The case that holds, by the number of its equation.
CASES = {
    9: "compute-bound",
    11: "memory-bound",
    13: "few warps, memory queue",
    15: "few warps, latency",
}


@dataclass(frozen=True, eq=False)
class RoundTime:
    """Time of one round of resident warps: cycles, and the case by its equation (9, 11, 13, 15)."""

    cycles: Floats
    case: NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class SharedPhases:
    """Cycles of the three phases of intensive shared-memory use, and of the whole round."""

    first_load: Floats
    shared_access: Floats
    next_load: Floats
    cycles: Floats


def memory_queue_cycles(
    arrival_interval: ArrayLike,
    service: ArrayLike,
    latency: ArrayLike,
    transactions_per_warp: ArrayLike,
    warps: ArrayLike,
) -> Floats:
    """Cycles until a first-come-first-served memory has answered all warps, Eq. (2) and (3).

    arrival_interval (interArr), service (dm_del) and latency (dm_lat) in cycles. Requests that
    arrive no faster than they are served meet an idle memory, (2). Faster ones wait in a queue,
    (3), when it never empties: service * warps >= latency. The paper leaves fast requests of few
    warps open: (2) with interArr = dm_del meets both equations at its limits.
    """
    interval, del_, lat, trans, warps = _floats(
        arrival_interval, service, latency, transactions_per_warp, warps
    )
    idle = np.maximum(interval, del_) * warps + lat * trans  # (2)
    queued = lat + del_ * trans * warps  # (3)
    return np.where((interval < del_) & (del_ * warps >= lat), queued, idle)


def dram_latency_cycles(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, slope: float, offset: float
) -> Floats:
    """Latency of a DRAM transaction without contention [cycles], Eq. (4).

    slope: cycles that follow the memory clock; offset: cycles that follow the engine.
    """
    engine, memory = _floats(engine_mhz, memory_mhz)
    return np.asarray(slope * engine / memory + offset)  # (4)


def dram_delay_cycles(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, slope: float, offset: float
) -> Floats:
    """Time between two 32-byte DRAM transactions of a CU [cycles]: Table III with Eq. (5b).

    slope [cycles MHz] / memory_mhz + offset [cycles] is the delay at equal clocks, as Table III
    lists it; the ratio of the clocks is the factor that (5b) prints.
    """
    engine, memory = _floats(engine_mhz, memory_mhz)
    return np.asarray((slope / memory + offset) * engine / memory)


def average_access_cycles(l2: ArrayLike, dram: ArrayLike, l2_hit_rate: ArrayLike) -> Floats:
    """Average latency, Eq. (5a), or delay, Eq. (5b), of a global transaction [cycles].

    l2, dram: latency or delay of a hit and of a miss [cycles]; l2_hit_rate 0 to 1. The ratio of
    the clocks, which (5a) and (5b) print as a factor, is part of `dram` here.
    """
    hit, miss, rate = _floats(l2, dram, l2_hit_rate)
    return np.asarray(hit * rate + miss * (1 - rate))  # (5a), (5b)


def execution_time_ms(
    round_cycles: ArrayLike,
    warps: ArrayLike,
    resident_warps: ArrayLike,
    cu_count: ArrayLike,
    engine_mhz: ArrayLike,
) -> Floats:
    """Kernel time [ms] from the cycles of one round, Eq. (6).

    warps (#B #Wpb) of the launch, resident_warps (#Aw) per CU. The number of rounds is a fraction.
    """
    active, warps, resident, cus, engine = _floats(
        round_cycles, warps, resident_warps, cu_count, engine_mhz
    )
    return np.asarray(active * warps / (resident * cus) / (engine * 1e3))  # (6)


def average_compute_cycles(
    instruction_delay: float,
    compute_instructions: ArrayLike,
    memory_instructions: ArrayLike,
    other_cycles: ArrayLike = 0.0,
) -> Floats:
    """Cycles in which a CU computes before each memory instruction of a warp, Eq. (7a), (7b).

    instruction_delay (inst_cycle) is what an instruction takes of the CU: 32 / lanes, 0.25 on a
    GTX 980. The divisor is memory instructions, where the print has transactions. other_cycles:
    of shared memory and FP64 per warp, which occupy the CU too.
    """
    compute, periods, other = _floats(compute_instructions, memory_instructions, other_cycles)
    return np.asarray((instruction_delay * compute + other) / periods)  # (7a), (7b)


def round_time(
    compute: ArrayLike,
    service: ArrayLike,
    latency: ArrayLike,
    resident_warps: ArrayLike,
    periods: ArrayLike,
) -> RoundTime:
    """Time of one round of resident warps without explicit shared memory, Eq. (8) to (15).

    compute (avr_comp): CU cycles of a warp per period; service: memory cycles of a warp per
    period (agl_del times its transactions); latency (agl_lat) in cycles; resident_warps (#Aw);
    periods (o_itrs), at least 1. For those the larger of two equations is the one whose
    conditions hold, so that the result has no jump where one case passes into another. (10b) and
    (12b) are swapped in print and have #Aw - 1; (11) has #Wpb for #Aw.
    """
    comp, del_, lat, warps, o_itrs = _floats(compute, service, latency, resident_warps, periods)
    t9 = comp * warps * o_itrs + lat  # (9)
    t15 = comp * (warps - 1) + (comp + lat) * o_itrs  # (15)
    t11 = lat + comp + del_ * warps * o_itrs  # (11)
    t13 = del_ * warps + (comp + lat) * o_itrs  # (13), its two (comp + lat) terms added
    compute_bound = comp >= del_  # (8a), (14a), else (10a), (12a)
    many_computing = comp * (warps - 1) >= lat  # (8b), else (14b)
    many_queueing = del_ * warps >= comp + lat  # (10b), else (12b)
    cycles = np.where(compute_bound, np.maximum(t9, t15), np.maximum(t11, t13))
    case = np.where(compute_bound, np.where(many_computing, 9, 15), np.where(many_queueing, 11, 13))
    return RoundTime(cycles, case)


def infrequent_shared_cycles(
    *,
    compute: ArrayLike,
    delay: ArrayLike,
    latency: ArrayLike,
    shared_latency: ArrayLike,
    resident_warps: ArrayLike,
    warps_per_block: ArrayLike,
    transactions_per_warp: ArrayLike,
) -> Floats:
    """Cycles of a round with a few, hidden shared-memory accesses, Eq. (16) and (17).

    compute: without shared memory. NaN where (16a) or (16b) does not hold.
    `predict_time_ms` does not use it: it is (11) with gld_trans = o_itrs x transactions of each.
    """
    comp, del_, lat, sh_lat, warps, wpb, trans = _floats(
        compute, delay, latency, shared_latency, resident_warps, warps_per_block,
        transactions_per_warp,
    )  # fmt: skip
    holds = (comp <= del_) & (comp + sh_lat <= del_ * (warps - wpb))  # (16a), (16b)
    return np.where(holds, comp + lat + del_ * warps * trans, np.nan)  # (17)


def intensive_shared_cycles(  # noqa: PLR0913 - the equations have so many symbols
    *,
    compute: ArrayLike,
    delay: ArrayLike,
    latency: ArrayLike,
    shared_latency: ArrayLike,
    resident_warps: ArrayLike,
    warps_per_block: ArrayLike,
    transactions_per_tile: ArrayLike,
    shared_accesses_per_tile: ArrayLike,
    tiles: ArrayLike,
) -> SharedPhases:
    """Cycles of a round that works tile by tile in shared memory, Eq. (18) to (21).

    compute: cycles between two shared accesses of a warp; shared_accesses_per_tile (i_itrs);
    tiles (o_itrs, here the count of the outer loop). Computed as printed, which counts the
    first tile's load twice: at most 1 / tiles too much.
    """
    comp, del_, lat, sh_lat, warps, wpb, trans, i_itrs, o_itrs = _floats(
        compute, delay, latency, shared_latency, resident_warps, warps_per_block,
        transactions_per_tile, shared_accesses_per_tile, tiles,
    )  # fmt: skip
    phase1 = comp * 2 + del_ * trans * warps + lat + sh_lat  # (18)
    phase2 = comp * (wpb - 1) + (comp + sh_lat) * i_itrs  # (19)
    phase3 = comp * 2 + del_ * trans * wpb + lat + sh_lat  # (20)
    return SharedPhases(phase1, phase2, phase3, phase1 + (phase2 + phase3) * o_itrs)  # (21)


def kernel_round(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> RoundTime:
    """One round of each kernel at each pair of clocks, (K, *clocks), Eq. (4) to (15)."""
    inputs = _over_clocks(inputs, engine_mhz, memory_mhz)
    period = _period(inputs, gpu, engine_mhz, memory_mhz)
    return round_time(*period, inputs.resident_warps, inputs.memory_instructions)


def predict_time_ms(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Floats:
    """Return the time [ms] of kernels at pairs of clocks, (K, *clocks), without a measured time."""
    cycles = kernel_round(inputs, gpu, engine_mhz, memory_mhz).cycles
    inputs = _over_clocks(inputs, engine_mhz, memory_mhz)
    return execution_time_ms(cycles, inputs.warps, inputs.resident_warps, gpu.cu_count, engine_mhz)


def predict_time_factor(
    inputs: WarpInputs,
    gpu: GpuParameters,
    base_clocks: tuple[float, float],
    base_time_ms: ArrayLike,
    engine_mhz: ArrayLike,
    memory_mhz: ArrayLike,
) -> Floats:
    """Time / base time of each kernel at each pair of clocks, (K, *clocks): the rule max+X.

    base_clocks: (engine, memory) [MHz] at which base_time_ms (K,) was measured. Not in the
    paper. Q, the busier of CU and memory for one round, scales as the model says; what the base
    takes beyond it is exposed time X, the same number of engine cycles at every clock. Where the
    base is faster than Q, Q is scaled to meet it.
    """
    inputs = _over_clocks(inputs, engine_mhz, memory_mhz)
    base_ms = np.asarray(base_time_ms).reshape(inputs.warps.shape)
    rounds = inputs.warps / (inputs.resident_warps * gpu.cu_count)
    t_base = base_ms * base_clocks[0] * 1e3 / rounds  # (6) solved for T_active
    q_base = _busiest_cycles(inputs, gpu, *base_clocks)
    q = _busiest_cycles(inputs, gpu, engine_mhz, memory_mhz)
    cycles = q * t_base / np.maximum(q_base, t_base) + np.maximum(0, t_base - q_base)
    return np.asarray(cycles / t_base * base_clocks[0] / np.asarray(engine_mhz))


def _busiest_cycles(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Floats:
    """Return the cycles of a round in which the busier of CU and memory works: (9) or (11)."""
    comp, del_, _ = _period(inputs, gpu, engine_mhz, memory_mhz)
    return np.asarray(inputs.resident_warps * inputs.memory_instructions * np.maximum(comp, del_))


def _period(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Compute cycles, memory cycles and latency of one period; the inputs over the clocks."""
    dm_lat = dram_latency_cycles(
        engine_mhz, memory_mhz, gpu.dram_latency_slope, gpu.dram_latency_offset
    )
    dm_del = dram_delay_cycles(engine_mhz, memory_mhz, gpu.dram_delay_slope, gpu.dram_delay_offset)
    agl_lat = average_access_cycles(gpu.l2_latency, dm_lat, inputs.l2_hit_rate)
    agl_del = average_access_cycles(gpu.l2_delay, dm_del, inputs.l2_hit_rate)
    avr_comp = average_compute_cycles(
        gpu.instruction_delay,
        inputs.compute_instructions,
        inputs.memory_instructions,
        gpu.shared_delay * inputs.shared_transactions + gpu.fp64_delay * inputs.fp64_instructions,
    )
    return avr_comp, agl_del * inputs.global_transactions / inputs.memory_instructions, agl_lat


def _over_clocks(inputs: WarpInputs, *clocks: ArrayLike) -> WarpInputs:
    """Return the inputs with arrays (K, 1, ...), to broadcast against (K, *clocks)."""
    shape = (-1, *[1] * np.broadcast(*clocks).ndim)
    arrays = [field.name for field in fields(inputs) if field.name != "flags"]
    return replace(inputs, **{name: getattr(inputs, name).reshape(shape) for name in arrays})


def _floats(*values: ArrayLike) -> tuple[Floats, ...]:
    return tuple(np.asarray(value, dtype=np.float64) for value in values)
