"""Kernels that work tile by tile in shared memory, by Wang and Chu's Eq. (18) to (21).

Source: as mlscale/papers/wang_chu.py. Tiles and accesses are counted in a kernel's source (the
paper's o_itr and i_itr), so that nothing here happens by itself: who knows them asks for it. The
default charges shared memory as time of the CU instead. The equations for few, hidden accesses,
(16) and (17), are (11) with gld_trans = o_itrs x transactions of each, and not written twice.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.papers.arguments import above_0, from_0, from_1, result
from mlscale.papers.wang_chu import execution_time_ms, over_clocks, period_cycles
from mlscale.papers.wang_chu_gpus import GpuParameters
from mlscale.papers.wang_chu_inputs import WarpInputs
from mlscale.papers.wang_chu_readings import READINGS


@dataclass(frozen=True, eq=False)
class SharedPhases:
    """Cycles of the three phases of intensive shared-memory use, and of the whole round."""

    first_load: Floats
    shared_access: Floats
    next_load: Floats
    cycles: Floats


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

    By hand: 2962, 1643 and 1682 cycles, and 2962 + 32 x (1643 + 1682).

    >>> phases = intensive_shared_cycles(
    ...     compute=3, delay=5, latency=368, shared_latency=28, resident_warps=64,
    ...     warps_per_block=32, transactions_per_tile=8, shared_accesses_per_tile=50, tiles=32)
    >>> print(phases.first_load, phases.shared_access, phases.next_load, phases.cycles)
    2962.0 1643.0 1682.0 109362.0
    """
    comp, del_, lat, sh_lat, trans, i_itrs = from_0(
        compute=compute,
        delay=delay,
        latency=latency,
        shared_latency=shared_latency,
        transactions_per_tile=transactions_per_tile,
        shared_accesses_per_tile=shared_accesses_per_tile,
    )
    (warps,) = above_0(resident_warps=resident_warps)
    wpb, o_itrs = from_1(warps_per_block=warps_per_block, tiles=tiles)
    phase1 = comp * 2 + del_ * trans * warps + lat + sh_lat  # (18)
    phase2 = comp * (wpb - 1) + (comp + sh_lat) * i_itrs  # (19)
    phase3 = comp * 2 + del_ * trans * wpb + lat + sh_lat  # (20)
    cycles = phase1 + (phase2 + phase3) * o_itrs  # (21)
    return SharedPhases(*map(result, (phase1, phase2, phase3, cycles)))


@dataclass(frozen=True)
class Tiles:
    """How a kernel works in shared memory, counted in its source; numbers, or arrays (K,).

    Attributes:
        count: tiles that a block goes through (o_itr).
        shared_accesses: shared-memory accesses of a warp in a tile (i_itr).
        warps_per_block: #Wpb.
    """

    count: ArrayLike
    shared_accesses: ArrayLike
    warps_per_block: ArrayLike


def predict_tiled_time_ms(
    inputs: WarpInputs,
    gpu: GpuParameters,
    tiles: Tiles,
    engine_mhz: float,
    memory_mhz: float,
) -> Floats:
    """Time [ms] of kernels that work in tiles at one pair of clocks, (K,), Eq. (4) to (6), (21).

    A warp's instructions, those of FP64 among them, stand evenly between its accesses to shared
    memory. Raises InputError.

    By hand: a cycle of instructions between two accesses, a cycle a transaction; phases of 1276,
    1481 and 764 cycles, for each of 32 rounds.

    >>> from mlscale.papers.wang_chu_gpus import load_gpu
    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE
    >>> tiles = Tiles(count=1, shared_accesses=50, warps_per_block=32)
    >>> print(predict_tiled_time_ms(EXAMPLE, load_gpu("gtx980"), tiles, 1000, 1000))
    0.112672
    """
    counts = from_1(count=tiles.count, shared_accesses=tiles.shared_accesses)
    # The phases have shared memory of their own.
    period = period_cycles(inputs, gpu, engine_mhz, memory_mhz, READINGS["shared-free"])
    inputs = over_clocks(inputs, engine_mhz, memory_mhz)
    phases = intensive_shared_cycles(
        compute=period.compute * period.count / (counts[0] * counts[1]),
        delay=period.delay,
        latency=period.latency,
        shared_latency=gpu.shared_latency,
        resident_warps=period.resident_warps,
        warps_per_block=tiles.warps_per_block,
        transactions_per_tile=inputs.global_transactions / counts[0],
        shared_accesses_per_tile=counts[1],
        tiles=counts[0],
    )
    return execution_time_ms(
        phases.cycles, inputs.warps, inputs.resident_warps, gpu.cu_count, engine_mhz
    )
