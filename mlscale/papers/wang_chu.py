"""Execution time of a GPU kernel under core and memory frequency scaling.

Source: Q. Wang and X. Chu, "GPGPU Performance Estimation with Core and Memory Frequency
Scaling", IEEE ICPADS 2018, pp. 417-424, arXiv:1701.05308; equation numbers are the paper's.
docs/papers/equations.md has the symbols, and the reason wherever the print is not followed.

A warp repeats one period: compute, then one memory instruction. All cycles are cycles of the
engine (core) clock. Arguments may be numbers or arrays that broadcast against each other; numbers
give a number. Every function raises InputError on an argument that cannot be.

`max_overlap_factor` is this project's rule, made of parts of their model: how long a round of warps
keeps the CU busy, and how long memory. Q, the longer of the two, scales as their model says; what a
measured time has beyond it is exposed time X, the same number of engine cycles at every clock.
docs/papers/equations.md, section 1.6, has what it errs beside their model, and how it was chosen.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.papers.arguments import above_0, finite, from_0, from_1, result, shares
from mlscale.papers.wang_chu_inputs import GpuParameters, WarpInputs


@dataclass(frozen=True, eq=False)
class RoundTime:
    """Time of one round of resident warps: cycles, and the case by its equation (9, 11, 13, 15)."""

    cycles: Floats
    case: NDArray[np.int_]


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

    By hand, (3) with 64 warps of 8 transactions: 500 + 10 x 8 x 64.

    >>> print(memory_queue_cycles(4, 10, 500, 8, 64))
    5620.0
    """
    interval, del_, lat, trans, warps = from_0(
        arrival_interval=arrival_interval,
        service=service,
        latency=latency,
        transactions_per_warp=transactions_per_warp,
        warps=warps,
    )
    idle = np.maximum(interval, del_) * warps + lat * trans  # (2)
    queued = lat + del_ * trans * warps  # (3)
    return result(np.where((interval < del_) & (del_ * warps >= lat), queued, idle))


def dram_latency_cycles(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, slope: float, offset: float
) -> Floats:
    """Latency of a DRAM transaction without contention [cycles], Eq. (4).

    slope: cycles that follow the memory clock; offset: cycles that follow the engine.

    The last row of the paper's Table II, whose engine ran at 400 MHz:

    >>> print(f"{dram_latency_cycles(400, 1000, slope=222.78, offset=277.32):.1f}")
    366.4
    """
    engine, memory = above_0(engine_mhz=engine_mhz, memory_mhz=memory_mhz)
    slope_, offset_ = finite(slope=slope, offset=offset)
    return result(slope_ * engine / memory + offset_)  # (4)


def dram_delay_cycles(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, slope: float, offset: float
) -> Floats:
    """Time between two 32-byte DRAM transactions of a CU [cycles]: Table III with Eq. (5b).

    slope [cycles MHz] / memory_mhz + offset [cycles] is the delay at equal clocks, as Table III
    lists it; the ratio of the clocks is the factor that (5b) prints.

    Table III has 9.0 cycles at 1000 MHz; the authors' line through the table gives

    >>> print(f"{dram_delay_cycles(1000, 1000, slope=805.03, offset=8.1762):.1f}")
    9.0
    """
    engine, memory = above_0(engine_mhz=engine_mhz, memory_mhz=memory_mhz)
    slope_, offset_ = finite(slope=slope, offset=offset)
    return result((slope_ / memory + offset_) * engine / memory)


def average_access_cycles(l2: ArrayLike, dram: ArrayLike, l2_hit_rate: ArrayLike) -> Floats:
    """Average latency, Eq. (5a), or delay, Eq. (5b), of a global transaction [cycles].

    l2, dram: latency or delay of a hit and of a miss [cycles]; l2_hit_rate 0 to 1. The ratio of
    the clocks, which (5a) and (5b) print as a factor, is part of `dram` here.

    By hand: half of 222 and half of 500.1.

    >>> print(average_access_cycles(222, 500.1, 0.5))
    361.05
    """
    hit, miss = from_0(l2=l2, dram=dram)
    (rate,) = shares(l2_hit_rate=l2_hit_rate)
    return result(hit * rate + miss * (1 - rate))  # (5a), (5b)


def execution_time_ms(
    round_cycles: ArrayLike,
    warps: ArrayLike,
    resident_warps: ArrayLike,
    cu_count: ArrayLike,
    engine_mhz: ArrayLike,
) -> Floats:
    """Kernel time [ms] from the cycles of one round, Eq. (6).

    warps (#B #Wpb) of the launch, resident_warps (#Aw) per CU. The number of rounds is a fraction.

    By hand: 32 768 warps are 32 rounds of 64 warps on 16 CUs; 700 000 cycles are 1 ms.

    >>> print(execution_time_ms(21_875, 32_768, 64, 16, 700))
    1.0
    """
    active, warps = from_0(round_cycles=round_cycles, warps=warps)
    resident, cus, engine = above_0(
        resident_warps=resident_warps, cu_count=cu_count, engine_mhz=engine_mhz
    )
    return result(active * (warps / (resident * cus)) / (engine * 1e3))  # (6)


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

    By hand: 160 instructions of a quarter of a cycle, before each of 5 memory instructions.

    >>> print(average_compute_cycles(0.25, 160, 5))
    8.0
    """
    compute, delay, other = from_0(
        compute_instructions=compute_instructions,
        instruction_delay=instruction_delay,
        other_cycles=other_cycles,
    )
    (periods,) = above_0(memory_instructions=memory_instructions)
    return result((delay * compute + other) / periods)  # (7a), (7b)


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

    By hand, (11): 500 + 4 + 10 x 64 x 10.

    >>> one = round_time(compute=4, service=10, latency=500, resident_warps=64, periods=10)
    >>> print(one.cycles, one.case)
    6904.0 11
    """
    comp, del_, lat = from_0(compute=compute, service=service, latency=latency)
    (warps,) = above_0(resident_warps=resident_warps)
    (o_itrs,) = from_1(periods=periods)
    t9 = comp * warps * o_itrs + lat  # (9)
    t15 = comp * (warps - 1) + (comp + lat) * o_itrs  # (15)
    t11 = lat + comp + del_ * warps * o_itrs  # (11)
    t13 = del_ * warps + (comp + lat) * o_itrs  # (13), its two (comp + lat) terms added
    compute_bound = comp >= del_  # (8a), (14a), else (10a), (12a)
    many_computing = comp * (warps - 1) >= lat  # (8b), else (14b)
    many_queueing = del_ * warps >= comp + lat  # (10b), else (12b)
    case = np.where(compute_bound, np.where(many_computing, 9, 15), np.where(many_queueing, 11, 13))
    cycles = np.where(compute_bound, np.maximum(t9, t15), np.maximum(t11, t13))
    return RoundTime(result(cycles), case[()])


@dataclass(frozen=True, eq=False)
class Period:
    """One period of a warp at some clocks, in cycles: what (8) to (15) are computed from.

    Attributes:
        compute: of the CU (avr_comp).
        delay: of memory for one transaction (agl_del).
        service: of memory for the transactions of a period.
        latency: of memory (agl_lat).
        resident_warps: of a CU (#Aw).
        count: how many periods a warp has (o_itrs).
    """

    compute: Floats
    delay: Floats
    service: Floats
    latency: Floats
    resident_warps: Floats
    count: Floats


def kernel_round(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> RoundTime:
    """One round of each kernel at each pair of clocks, (K, *clocks), Eq. (4) to (15).

    By hand, a period of `period_cycles`: 12.5 x 64 warps x 4 periods, and 222.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> one = kernel_round(EXAMPLE, load_gpu("gtx980"), 1000, 1000)
    >>> print(one.cycles, one.case)
    3422.0 9
    """
    one = period_cycles(inputs, gpu, engine_mhz, memory_mhz)
    return round_time(one.compute, one.service, one.latency, one.resident_warps, one.count)


def predict_time_ms(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Floats:
    """Return the time [ms] of kernels at pairs of clocks, (K, *clocks), without a measured time.

    By hand: a warp computes 200 x 0.25 = 50 cycles in all; hits take 222. (9) gives 50 x 64 + 222 =
    3422 cycles for each of 32 rounds.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> print(f"{predict_time_ms(EXAMPLE, load_gpu('gtx980'), 1000, 1000):.6f}")
    0.109504
    """
    cycles = kernel_round(inputs, gpu, engine_mhz, memory_mhz).cycles
    inputs = over_clocks(inputs, engine_mhz, memory_mhz)
    return execution_time_ms(cycles, inputs.warps, inputs.resident_warps, gpu.cu_count, engine_mhz)


def predict_time_factor(
    inputs: WarpInputs,
    gpu: GpuParameters,
    base_clocks: tuple[float, float],
    engine_mhz: ArrayLike,
    memory_mhz: ArrayLike,
) -> Floats:
    """Time / time at the base of each kernel at each pair of clocks, (K, *clocks).

    base_clocks: (engine, memory) [MHz]. It is the ratio of two times of the model, by which a
    time that was measured at the base is scaled.

    By hand: what always hits the L2 cache takes engine cycles alone, twice as long at half.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> print(predict_time_factor(EXAMPLE, load_gpu("gtx980"), (1000, 1000), 500, [400, 1000]))
    [2. 2.]
    """
    base_ms = predict_time_ms(inputs, gpu, *base_clocks)
    time_ms = predict_time_ms(inputs, gpu, engine_mhz, memory_mhz)
    axes = (1,) * np.broadcast(engine_mhz, memory_mhz).ndim
    return result(time_ms / np.reshape(base_ms, (*np.shape(base_ms), *axes)))


def period_cycles(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Period:
    """Return one period of each kernel at each pair of clocks, (K, *clocks), Eq. (4) to (7).

    By hand: 200 x 0.25 / 4 cycles of the CU; a cycle for each of 16 / 4 transactions; the L2's 222.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> one = period_cycles(EXAMPLE, load_gpu("gtx980"), 1000, 1000)
    >>> print(one.compute, one.delay, one.service, one.latency, one.resident_warps, one.count)
    12.5 1.0 4.0 222.0 64.0 4.0
    """
    inputs = over_clocks(inputs, engine_mhz, memory_mhz)
    engine, memory = above_0(engine_mhz=engine_mhz, memory_mhz=memory_mhz)
    dm_lat = dram_latency_cycles(engine, memory, gpu.dram_latency_slope, gpu.dram_latency_offset)
    dm_del = dram_delay_cycles(engine, memory, gpu.dram_delay_slope, gpu.dram_delay_offset)
    periods = inputs.memory_instructions
    other = gpu.fp64_delay * inputs.fp64_instructions
    other = other + gpu.shared_delay * inputs.shared_transactions
    agl_del = average_access_cycles(gpu.l2_delay, dm_del, inputs.l2_hit_rate)
    return Period(
        compute=average_compute_cycles(
            gpu.instruction_delay, inputs.compute_instructions, periods, other
        ),
        delay=agl_del,
        service=agl_del * inputs.global_transactions / periods,
        latency=average_access_cycles(gpu.l2_latency, dm_lat, inputs.l2_hit_rate),
        resident_warps=inputs.resident_warps,
        count=periods,
    )


def over_clocks(inputs: WarpInputs, *clocks: ArrayLike) -> WarpInputs:
    """Return the inputs with arrays (K, 1, ...), to broadcast against (K, *clocks).

    >>> kernels = WarpInputs.from_numbers(
    ...     warps=[32, 64], resident_warps=1, global_transactions=0, l2_hit_rate=1,
    ...     memory_instructions=1, compute_instructions=1)
    >>> print(over_clocks(kernels, 700, [400, 700, 1000]).warps.shape)
    (2, 1)
    """
    axes = (1,) * np.broadcast(*clocks).ndim
    arrays: dict[str, Any] = {n: np.asarray(v) for n, v in vars(inputs).items() if n != "flags"}
    return replace(inputs, **{n: a.reshape((*a.shape, *axes)) for n, a in arrays.items()})


def max_overlap_factor(
    inputs: WarpInputs,
    gpu: GpuParameters,
    base_clocks: tuple[float, float],
    base_time_ms: ArrayLike,
    engine_mhz: ArrayLike,
    memory_mhz: ArrayLike,
) -> Floats:
    """Time / base time of each kernel at each pair of clocks, (K, *clocks).

    base_clocks: (engine, memory) [MHz] at which base_time_ms (K,) was measured. Where the base is
    faster than Q, Q is scaled to meet it. Raises InputError on an argument that cannot be.

    By hand: 50 x 64 = 3200 busy cycles for each of 32 rounds are 0.1024 ms at 1000 MHz. Where
    0.2048 ms were measured, half is busy and half exposed, and both follow the engine.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> gpu = load_gpu("gtx980")
    >>> print(f"{max_overlap_factor(EXAMPLE, gpu, (1000, 1000), 0.2048, 500, 500):.6f}")
    2.000000
    """
    (base_ms,) = above_0(base_time_ms=base_time_ms)
    if base_ms.size != np.size(inputs.warps):
        raise InputError(
            f"{base_ms.size} times at the base are not of {np.size(inputs.warps)} kernels"
        )
    many = over_clocks(inputs, engine_mhz, memory_mhz)
    rounds = many.warps / (many.resident_warps * gpu.cu_count)
    # (6) of Wang and Chu, solved for the cycles of a round
    t_base = base_ms.reshape(np.shape(many.warps)) * base_clocks[0] * 1e3 / rounds
    q_base = busiest_cycles(inputs, gpu, *base_clocks).reshape(np.shape(many.warps))
    q = busiest_cycles(inputs, gpu, engine_mhz, memory_mhz)
    cycles = q * t_base / np.maximum(q_base, t_base) + np.maximum(0, t_base - q_base)
    return result(cycles / t_base * base_clocks[0] / np.asarray(engine_mhz))


def busiest_cycles(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Floats:
    """Return the cycles Q of a round in which the busier of CU and memory works, (K, *clocks).

    By hand: 200 instructions of each of 64 warps, four a cycle.

    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE, load_gpu
    >>> print(busiest_cycles(EXAMPLE, load_gpu("gtx980"), 1000, 1000))
    3200.0
    """
    one = period_cycles(inputs, gpu, engine_mhz, memory_mhz)
    return np.asarray(one.resident_warps * one.count * np.maximum(one.compute, one.service))
