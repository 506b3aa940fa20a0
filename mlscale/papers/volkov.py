"""The models of Volkov's survey, each reduced to his microbenchmark, one pure function each.

Source: Volkov, "Poster: A microbenchmark to study GPU performance models", PPoPP 2018,
doi:10.1145/3178487.3178536. The poster does not number its equations; [1] to [9] are its
references. The kernel: every warp repeats one memory instruction and `intensity` arithmetic
instructions, each dependent on the one before; `warps` of them share a CU (NVIDIA's SM).

Every model is called as model(warps, intensity, cu):

- warps: resident warps of the CU (occupancy), at least 1; whole or, as an average, not.
- intensity: arithmetic instructions per memory instruction, above 0.
- cu: the latencies and peak rates of the CU.

warps and intensity are numbers or arrays that broadcast together; the throughput that comes back
has their common shape, is a number for numbers, and counts arithmetic and memory warp-instructions
per cycle and CU (IPC).
InputError on warps below 1, an intensity of 0 or less, or what is not finite.

In the formulas, as on the poster: n warps, alpha the intensity, A and L the latencies of arithmetic
and memory [cycles], I, T and B the peak rates of issue, arithmetic and memory [warp-instructions
per cycle], t = 1/T and b = 1/B. docs/papers/equations.md has all of them, and the reason wherever
the print is not followed.

`simulate` is an event-driven simulation of an idealised CU, against which the models stand. It is
not hardware and not a prediction. It verifies the algebra: that the bounds are bounds, and which
models leave them. What it idealises: instructions issue in whole cycles, first come first
served, without pipelines, caches or dual issue; memory is one server with a fixed latency.
"""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats, Indices
from mlscale.errors import InputError
from mlscale.papers.arguments import above_0, from_0, from_1, result


@dataclass(frozen=True)
class ComputeUnit:
    """Latencies and peak rates of one CU, as the poster's models take them.

    Attributes:
        arithmetic_latency_cycles: A [cycles], at least 1.
        memory_latency_cycles: L [cycles], at least 1, without queueing.
        issue_per_cycle: I [warp-instructions/cycle], of both kinds together.
        arithmetic_per_cycle: T [warp-instructions/cycle].
        memory_per_cycle: B [warp-instructions/cycle], the CU's share of the memory bandwidth.
    """

    arithmetic_latency_cycles: float
    memory_latency_cycles: float
    issue_per_cycle: float
    arithmetic_per_cycle: float
    memory_per_cycle: float

    def __post_init__(self) -> None:
        from_1(
            arithmetic_latency_cycles=self.arithmetic_latency_cycles,
            memory_latency_cycles=self.memory_latency_cycles,
        )
        above_0(
            issue_per_cycle=self.issue_per_cycle,
            arithmetic_per_cycle=self.arithmetic_per_cycle,
            memory_per_cycle=self.memory_per_cycle,
        )


# A and L: those of Maxwell (docs/papers/equations.md). I and T: 4 schedulers, 128 lanes.
# B: 224 GB/s, 82 % of it reached, over 16 CUs, 128 bytes a warp and 1.126 GHz.
GTX_980 = ComputeUnit(
    arithmetic_latency_cycles=6,
    memory_latency_cycles=368,
    issue_per_cycle=4,
    arithmetic_per_cycle=4,
    memory_per_cycle=0.08,
)


def latency_bound(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] if warps never wait for one another; section 2, after [1] Denning & Buzen.

    n (alpha + 1) / (alpha A + L). Grows with n without end.

    By hand: 16 x 33 / (32 x 6 + 368).

    >>> print(f"{latency_bound(16, 32):.6f}")
    0.942857
    """
    n, alpha = _checked(warps, intensity)
    return result(n * _single_warp(alpha, cu))


def throughput_bound(intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] that the busiest unit allows at any occupancy; section 2, after [1].

    min(I, T (1 + 1/alpha), B (1 + alpha)); the print has lost the first comma.

    By hand, where memory limits: 0.08 x 33.

    >>> print(f"{throughput_bound(32):.2f}")
    2.64
    """
    _, alpha = _checked(1, intensity)
    arithmetic = cu.arithmetic_per_cycle * (1 + 1 / alpha)
    memory = cu.memory_per_cycle * (1 + alpha)
    return result(np.minimum(cu.issue_per_cycle, np.minimum(arithmetic, memory)))


def classical_bounds(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Return the asymptotic bounds as an estimate [IPC], the survey's best model; section 3.

    By hand: 64 warps reach the four instructions that can be issued in a cycle.

    >>> print(classical_bounds(64, 128))
    4.0
    """
    return result(np.minimum(latency_bound(warps, intensity, cu), throughput_bound(intensity, cu)))


def hong_kim_case(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Indices:
    """Which case of Hong & Kim holds, 1 to 3; section 2, after [2], without its "Case 5".

    1: latency-bound, CWP = MWP = n; tested first. 2: memory-bound, CWP > MWP. 3: arithmetic-bound,
    CWP < MWP. A tie below n, which the poster leaves open, goes to the slower of cases 2 and 3.

    By hand: 16 warps hide neither latency; 1 + 368 x 4 / 129 = 12.4 and 29.4 are below 64.

    >>> print(hong_kim_case(16, 32), hong_kim_case(64, 128))
    1 3
    """
    n, alpha = np.broadcast_arrays(*_checked(warps, intensity))
    cwp = np.minimum(n, 1 + cu.memory_latency_cycles * cu.arithmetic_per_cycle / (alpha + 1))
    mwp = np.minimum(n, cu.memory_latency_cycles * cu.memory_per_cycle)
    memory_is_slower = cu.memory_per_cycle * (alpha + 1) <= cu.arithmetic_per_cycle
    memory_bound = (cwp > mwp) | ((cwp == mwp) & memory_is_slower)
    return np.where((cwp == n) & (mwp == n), 1, np.where(memory_bound, 2, 3))[()]


def hong_kim(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by Hong & Kim (ISCA 2009); section 2, after [2].

    n (alpha + 1) / ((alpha + 1) t + L), B (alpha + 1) or T in cases 1, 2 and 3. The latency of
    arithmetic is nowhere in it, hence its overestimates; it jumps up from case 1 to case 2. It
    knows no issue limit: on the GTX 980, alpha from 49 to 50.8 gives up to 4.14 IPC.

    By hand, case 1: 16 x 33 / (33 / 4 + 368).

    >>> print(f"{hong_kim(16, 32):.6f}")
    1.403322
    """
    case = hong_kim_case(warps, intensity, cu)
    n, alpha = _checked(warps, intensity)
    compute_cycles = (alpha + 1) / cu.arithmetic_per_cycle
    unhindered = n * (alpha + 1) / (compute_cycles + cu.memory_latency_cycles)
    memory_bound = cu.memory_per_cycle * (alpha + 1)
    saturated = np.where(case == 2, memory_bound, cu.arithmetic_per_cycle)
    return result(np.where(case == 1, unhindered, saturated))


def chen_aamodt_1(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by the first model of Chen & Aamodt (HPCA 2009); section 2, after [3].

    lambda, the throughput of one warp alone, at every occupancy.

    By hand: 33 / (32 x 6 + 368).

    >>> print(f"{chen_aamodt_1(16, 32):.6f}")
    0.058929
    """
    n, alpha = _checked(warps, intensity)
    return result(np.ones_like(n) * _single_warp(alpha, cu))


def chen_aamodt_2(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by the second model of Chen & Aamodt; section 2, after [3].

    n lambda: here exactly the latency bound.

    By hand: 16 x 33 / 560.

    >>> print(f"{chen_aamodt_2(16, 32):.6f}")
    0.942857
    """
    return latency_bound(warps, intensity, cu)


def chen_aamodt_3(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by the third model of Chen & Aamodt; section 2, after [3].

    1 - (1 - lambda)^n: near-linear at first, 1 IPC in the end whatever the CU can do. lambda, a
    probability here, is at most 1 because both latencies are at least 1 cycle.

    By hand: 1 - (1 - 33 / 560)^16.

    >>> print(f"{chen_aamodt_3(16, 32):.6f}")
    0.621591
    """
    n, alpha = _checked(warps, intensity)
    return result(1 - (1 - _single_warp(alpha, cu)) ** n)


def huang(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by Huang et al. (MICRO 2014), round-robin scheduling; section 2, after [4].

    n (alpha + 1) / (alpha A + L): the latency bound, above every hardware limit for large n. Of
    greedy-then-oldest scheduling the poster gives a curve, but no equation.

    By hand, above the 4 that can be issued: 64 x 129 / (128 x 6 + 368).

    >>> print(f"{huang(64, 128):.6f}")
    7.267606
    """
    return latency_bound(warps, intensity, cu)


def zhang_owens(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by Zhang & Owens (HPCA 2011) and Sim et al. (PPoPP 2012); section 2.

    n (alpha + 1) / max(n alpha tau, n mu), after [5], [6]. tau, the time of an arithmetic
    instruction, is max(A/n, t), where the poster prints min. mu, the time of a memory instruction,
    is read as measured at the same occupancy: max(L/n, 1/B).

    By hand: 33 / max(32 x 6 / 16, 368 / 16).

    >>> print(f"{zhang_owens(16, 32):.6f}")
    1.434783
    """
    n, alpha = _checked(warps, intensity)
    memory_cycles = np.maximum(cu.memory_latency_cycles / n, 1 / cu.memory_per_cycle)
    return result((alpha + 1) / np.maximum(_arithmetic_cycles(n, alpha, cu), memory_cycles))


def zhang_owens_peak(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] as zhang_owens, but mu = 1/B, measured once at full occupancy.

    Memory latency then has no place in the model, and few warps look as good as many.

    By hand: 33 / max(32 x 6 / 16, 1 / 0.08).

    >>> print(f"{zhang_owens_peak(16, 32):.2f}")
    2.64
    """
    n, alpha = _checked(warps, intensity)
    arithmetic_cycles = _arithmetic_cycles(n, alpha, cu)
    return result((alpha + 1) / np.maximum(arithmetic_cycles, 1 / cu.memory_per_cycle))


def baghsorkhi(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by Baghsorkhi et al. (PPoPP 2010); section 2, after [7]. RECONSTRUCTED.

    (alpha + 1) / (alu + max(0, L - (n - 1) alu)), alu = alpha tau as in zhang_owens. The poster
    gives the model as a graph that its text does not hold. The reading: a warp pays for its own
    arithmetic and for what the others' arithmetic leaves uncovered of its memory latency.

    By hand: 33 / (12 + 368 - 15 x 12).

    >>> print(f"{baghsorkhi(16, 32):.3f}")
    0.165
    """
    n, alpha = _checked(warps, intensity)
    alu = _arithmetic_cycles(n, alpha, cu)
    uncovered = np.maximum(0, cu.memory_latency_cycles - (n - 1) * alu)
    return result((alpha + 1) / (alu + uncovered))


def baghsorkhi_shared(warps: ArrayLike, intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Throughput [IPC] by Baghsorkhi et al. in the rejected reading. RECONSTRUCTED.

    n (alpha + 1) / (alu + max(L, (n - 1) alu)): the n warps share the path. Never below
    `baghsorkhi`, so it cannot underestimate as the poster says.

    By hand: 16 x 33 / (12 + 368).

    >>> print(f"{baghsorkhi_shared(16, 32):.6f}")
    1.389474
    """
    n, alpha = _checked(warps, intensity)
    alu = _arithmetic_cycles(n, alpha, cu)
    length = alu + np.maximum(cu.memory_latency_cycles, (n - 1) * alu)
    return result(n * (alpha + 1) / length)


def vendor_warps(intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Warps for full throughput by NVIDIA's programming guide; section 2, after [8]: L T / alpha.

    Knows no arithmetic latency and no memory bandwidth.

    By hand: 368 x 4 / 8.

    >>> print(vendor_warps(8))
    184.0
    """
    _, alpha = _checked(1, intensity)
    return result(cu.memory_latency_cycles * cu.arithmetic_per_cycle / alpha)


def saavedra_barrera_warps(
    intensity: ArrayLike, cu: ComputeUnit = GTX_980, switch_cycles: ArrayLike = 0.0
) -> Floats:
    """Threads for full throughput by Saavedra-Barrera et al. (SPAA 1990); section 2, after [9].

    1 + L / (R + C) for coarse-grained multithreading: R = alpha t cycles of work, C switch_cycles
    to switch. The poster sets C to 0.

    By hand: 1 + 368 / (8 / 4), and 1 + 368 / (8 / 4 + 2).

    >>> print(saavedra_barrera_warps(8), saavedra_barrera_warps(8, switch_cycles=2))
    185.0 93.0
    """
    _, alpha = _checked(1, intensity)
    (switch,) = from_0(switch_cycles=switch_cycles)
    work = alpha / cu.arithmetic_per_cycle
    return result(1 + cu.memory_latency_cycles / (work + switch))


def bounds_warps(intensity: ArrayLike, cu: ComputeUnit = GTX_980) -> Floats:
    """Return the warps at which both bounds meet: the knee of classical_bounds.

    By hand: 0.08 x 9 / (9 / (8 x 6 + 368)).

    >>> print(f"{bounds_warps(8):.2f}")
    33.28
    """
    return result(throughput_bound(intensity, cu) / latency_bound(1, intensity, cu))


ThroughputModel = Callable[[ArrayLike, ArrayLike, ComputeUnit], Floats]

MODELS: Mapping[str, ThroughputModel] = MappingProxyType(
    {
        "classical bounds": classical_bounds,
        "Hong & Kim": hong_kim,
        "Chen & Aamodt 1": chen_aamodt_1,
        "Chen & Aamodt 2": chen_aamodt_2,
        "Chen & Aamodt 3": chen_aamodt_3,
        "Huang": huang,
        "Zhang & Owens, Sim": zhang_owens,
        "same, mu = 1/B": zhang_owens_peak,
        "Baghsorkhi*": baghsorkhi,
        "Baghsorkhi*, shared": baghsorkhi_shared,
    }
)


def warps_needed(
    model: ThroughputModel,
    intensity: float,
    most: int,
    share: float = 0.99,
    cu: ComputeUnit = GTX_980,
) -> int | None:
    """The fewest whole warps, up to `most`, that give that share of the throughput bound.

    None where none do. Raises InputError on no warps at all, and a share not above 0.

    By hand: the bounds meet at 33.28 warps, of which 99 % are 32.9.

    >>> print(warps_needed(classical_bounds, 8, most=64))
    33
    """
    from_1(most=most)
    above_0(share=share)
    warps = np.arange(1, most + 1)
    enough = model(warps, intensity, cu) >= share * throughput_bound(intensity, cu)
    return int(warps[enough.argmax()]) if enough.any() else None


def _single_warp(alpha: Floats, cu: ComputeUnit) -> Floats:
    """Lambda: (alpha + 1) / (alpha A + L), the throughput [IPC] of one warp alone."""
    chain = alpha * cu.arithmetic_latency_cycles + cu.memory_latency_cycles
    return result((alpha + 1) / chain)


def _arithmetic_cycles(n: Floats, alpha: Floats, cu: ComputeUnit) -> Floats:
    """Alpha tau: cycles of a loop's arithmetic when n warps take turns, alpha max(A/n, t)."""
    return alpha * np.maximum(cu.arithmetic_latency_cycles / n, 1 / cu.arithmetic_per_cycle)


def _checked(warps: ArrayLike, intensity: ArrayLike) -> tuple[Floats, Floats]:
    """Return both as arrays of floats. Raises InputError, naming the first value that cannot be."""
    (n,) = from_1(warps=warps)
    (alpha,) = above_0(intensity=intensity)
    return n, alpha


# The grid on which docs/papers/models.md compares the models with the simulation.
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
