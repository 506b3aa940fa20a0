"""An event-driven simulation of an idealised CU, against which the models of Volkov's survey stand.

It is not hardware and not a prediction. It verifies the algebra: that the bounds are bounds, and
which models leave them. What it idealises: instructions issue in whole cycles, first come first
served, without pipelines, caches or dual issue; memory is one server with a fixed latency.
"""

import heapq
import math
from functools import cache

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.papers.volkov import GTX_980, ComputeUnit, bounds_warps, throughput_bound

# The grid on which docs/models.md compares the models with the simulation.
GRID_INTENSITIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
GRID_WARPS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64)

# A longer loop needs a longer window: beyond this, a table of points takes minutes.
MOST_INTENSITY = 1024
# Counted: this many cycles, or this many loops of a warp if that is longer; after a warm-up of
# two thirds of that.
COUNTED_CYCLES, COUNTED_LOOPS = 24_000, 12


@cache
def simulate(warps: int, intensity: int, cu: ComputeUnit = GTX_980) -> float:
    """Throughput [IPC] of `warps` warps that each repeat `intensity` arithmetic and one memory.

    Each instruction of a warp needs the result of the one before. A warp that is ready asks for
    an issue slot, I of them a cycle, at most T for arithmetic; the longest-waiting warp goes
    first. Arithmetic takes A cycles. Memory starts a request every 1/B cycles at most, in order
    of issue, and takes L cycles from that start. At cycle 0 the warps stand evenly spread over
    the loop.

    The window ends in the middle of a loop: up to 1 % of the throughput of few warps. At the
    knee of alpha = 128 and 256 (32 warps) another order of issue, other first positions or a
    longer window move the value by up to 6 %.

    Raises InputError unless warps and intensity are whole numbers of at least 1, intensity at
    most MOST_INTENSITY, and I and T whole.

    By hand: one warp issues 2 instructions in 6 + 368 cycles.

    >>> print(f"{simulate(1, 1):.3f} {2 / 374:.3f}")
    0.005 0.005
    """
    _check(warps, intensity, cu)
    loop_cycles = intensity * cu.arithmetic_latency_cycles + cu.memory_latency_cycles
    counted_cycles = max(COUNTED_CYCLES, math.ceil(COUNTED_LOOPS * loop_cycles))
    start = 2 * counted_cycles // 3
    end = start + counted_cycles
    left = [intensity - i * (intensity + 1) // warps for i in range(warps)]
    queue = [(0.0, i) for i in range(warps)]
    cycle = issued = arithmetic_issued = counted = 0
    memory_free = 0.0
    while True:
        ready, warp = queue[0]
        if ready > cycle:
            cycle, issued, arithmetic_issued = math.ceil(ready), 0, 0
        elif issued == cu.issue_per_cycle:
            cycle, issued, arithmetic_issued = cycle + 1, 0, 0
        if cycle >= end:
            return counted / counted_cycles
        if left[warp] and arithmetic_issued == cu.arithmetic_per_cycle:
            heapq.heapreplace(queue, (cycle + 1.0, warp))
            continue
        issued += 1
        counted += cycle >= start
        if left[warp]:
            arithmetic_issued += 1
            left[warp] -= 1
            done = cycle + cu.arithmetic_latency_cycles
        else:
            left[warp] = intensity
            begun = max(cycle, memory_free)
            memory_free = begun + 1 / cu.memory_per_cycle
            done = begun + cu.memory_latency_cycles
        heapq.heapreplace(queue, (done, warp))


def simulate_grid() -> Floats:
    """Return the throughput [IPC] of the GTX 980 at GRID_INTENSITIES x GRID_WARPS: (9, 14)."""
    return np.array([[simulate(n, alpha) for n in GRID_WARPS] for alpha in GRID_INTENSITIES])


def simulated_warps_needed(intensity: int, most: int, share: float = 0.99) -> int | None:
    """The fewest warps, up to `most`, that give that share of the throughput bound; else None.

    On the GTX 980. The search starts at 90 % of what the latency bound asks for, which no
    schedule can beat; the rest allows for the window. Near the knee the simulated throughput does
    not always grow with the warps, so the next higher numbers may fall short again.

    By hand: the bounds meet at 0.08 x 374 = 29.92 warps.

    >>> simulated_warps_needed(1, 64)
    30
    """
    enough = share * float(throughput_bound(intensity))
    first = max(1, math.floor(0.9 * share * float(bounds_warps(intensity))))
    return next((n for n in range(first, most + 1) if simulate(n, intensity) >= enough), None)


def _check(warps: int, intensity: int, cu: ComputeUnit) -> None:
    for name, value in (("warps", warps), ("intensity", intensity)):
        if not value >= 1 or value % 1:
            raise InputError(f"{name} must be a whole number of at least 1 to simulate: {value:g}")
    if intensity > MOST_INTENSITY:
        raise InputError(
            f"{intensity} arithmetic instructions per memory instruction are too many to "
            f"simulate; give at most {MOST_INTENSITY}"
        )
    for rate in (cu.issue_per_cycle, cu.arithmetic_per_cycle):
        if rate != int(rate):
            raise InputError(
                f"the simulated CU issues whole instructions in a cycle, not {rate:g}; "
                "give whole rates of issue and arithmetic"
            )
