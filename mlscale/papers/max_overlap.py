"""The rule max-overlap: time under other clocks from a measured time and two utilisations.

It is this project's own, made of parts of Wang and Chu's model (mlscale/papers/wang_chu.py): how
long a round of warps keeps the CU busy, and how long memory. Q, the longer of the two, scales as
their model says; what a measured time has beyond it is exposed time X, the same number of engine
cycles at every clock. docs/equations.md, section 1.6, has what it errs beside their model, and how
it was chosen.
"""

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats, Mask
from mlscale.errors import InputError
from mlscale.papers.arguments import above_0, result
from mlscale.papers.wang_chu import over_clocks, period_cycles
from mlscale.papers.wang_chu_gpus import GpuParameters
from mlscale.papers.wang_chu_inputs import WarpInputs


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

    >>> from mlscale.papers.wang_chu_gpus import load_gpu
    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE
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

    >>> from mlscale.papers.wang_chu_gpus import load_gpu
    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE
    >>> print(busiest_cycles(EXAMPLE, load_gpu("gtx980"), 1000, 1000))
    3200.0
    """
    one = period_cycles(inputs, gpu, engine_mhz, memory_mhz)
    return np.asarray(one.resident_warps * one.count * np.maximum(one.compute, one.service))


def compute_bound(
    inputs: WarpInputs, gpu: GpuParameters, engine_mhz: ArrayLike, memory_mhz: ArrayLike
) -> Mask:
    """Return where the CU is the busier one, not memory, (K, *clocks).

    By hand: in a period 50 instructions take 12.5 cycles, 4 transactions 4.

    >>> from mlscale.papers.wang_chu_gpus import load_gpu
    >>> from mlscale.papers.wang_chu_inputs import EXAMPLE
    >>> print(compute_bound(EXAMPLE, load_gpu("gtx980"), 1000, 1000))
    True
    """
    period = period_cycles(inputs, gpu, engine_mhz, memory_mhz)
    return np.asarray(period.compute >= period.service)
