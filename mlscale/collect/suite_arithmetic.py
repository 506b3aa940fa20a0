"""Kernels that arithmetic, latency or occupancy bounds."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.collect.entries import Case, Entry, bits, uniform

_M = 2**20
_HASH = (np.uint32(1664525), np.uint32(1013904223))


def entries(small: bool) -> Iterator[Entry]:  # noqa: C901, it is a list
    """The kernels at their sizes; small: sizes for a processor."""
    for side in (128,) if small else (256, 1024):
        yield Entry("matmul_naive", str(side), side**2, partial(_matmul, side))
    for side in (128,) if small else (256, 1024, 2048):
        yield Entry("matmul_tiled", str(side), side**2, partial(_matmul, side))
    for side in (64,) if small else (512, 2048):
        yield Entry(
            "tensor", str(side), side**2 // 8, partial(_tensor, side), 128, backends=("cuda", "hip")
        )
    for n in (2048,) if small else (4096, 16384, 32768):
        yield Entry("nbody", n, n, partial(_nbody, n))
    for n in (_M // 256,) if small else (_M // 16, _M):
        draws = 512 if small else 2048
        yield Entry("monte_carlo", n, n, partial(_monte_carlo, n, draws))
    exact = (("SINE", "SIN"), ("EXPONENTIAL", "EXP"), ("LOGARITHM", "LOG"))
    fast = tuple((macro, f"FAST_{function}") for macro, function in exact)
    for name, macros, tolerance in (("special", exact, 1e-5), ("special_fast", fast, 1e-3)):
        for n in (_M // 64,) if small else (_M // 4, 4 * _M):
            case = partial(_special, n, 16 if small else 64, tolerance)
            yield Entry(name, n, n, case, source="special", macros=macros)
    if small:
        yield _fma("fma", "1chain", 64, 256, 512)
        yield _fma("fma", "4chains", 64, 256, 256, chains=4)
        yield _fma("fma_fp64", "1chain", 64, 256, 256, double=True)
        yield _fma("few_threads", "1", 1, 32, 8192)
    else:
        yield _fma("fma", "1chain", 4096, 256, 4096)
        yield _fma("fma", "4chains", 4096, 256, 2048, chains=4)
        yield _fma("fma", "16warps", 512, 512, 4096, chains=2)
        yield _fma("fma_fp64", "1chain", 2048, 256, 512, double=True)
        yield _fma("fma_fp64", "4chains", 2048, 256, 256, chains=4, double=True)
        yield _fma("few_threads", "1", 1, 32, 8192)
        yield _fma("few_threads", "8", 8, 64, 8192)
        yield _fma("few_threads", "32", 32, 64, 8192, chains=2)
        yield _fma("few_threads", "128", 128, 32, 8192)
    for n in (_M // 64,) if small else (_M // 4, 4 * _M):
        yield Entry("integer", n, n, partial(_integer, n, 512, 1))
    for ways in (4,) if small else (1, 4, 32):
        n = _M // 16 if small else _M
        macros = (("WAYS", str(ways)),)
        yield Entry("divergence", str(ways), n, partial(_integer, n, 128, ways), macros=macros)
    for n in (_M // 16,) if small else (_M // 4, 4 * _M):
        yield Entry("collatz", n, n, partial(_collatz, n))


def _fma(
    application: str, size: str, blocks: int, block: int, rounds: int, chains: int = 1,
    double: bool = False,
) -> Entry:  # fmt: skip
    threads = blocks * block
    case = partial(_chains, threads, rounds, chains, np.float64 if double else np.float32)
    macros = (("REAL", "double" if double else "float"), ("CHAINS", str(chains)))
    return Entry(application, size, threads, case, block, "fma", macros)


def _matmul(side: int) -> Case:
    a, b = uniform(side**2).reshape(side, side), uniform(side**2, 1).reshape(side, side)
    return Case((a, b, np.zeros_like(a), np.int32(side)), {2: partial(_product, a, b)}, 1e-4)


def _tensor(side: int) -> Case:
    a, b = (uniform(side**2, s).astype(np.float16).reshape(side, side) for s in (0, 1))
    words = (a.view(np.uint16), np.ascontiguousarray(b.T).view(np.uint16))
    arguments = (*words, np.zeros((side, side), np.float32), np.int32(side))
    return Case(arguments, {2: partial(_product, a, b)}, 1e-3)


def _product(a: NDArray[Any], b: NDArray[Any], at: Indices) -> Floats:
    rows, columns = np.divmod(at, len(a))
    left, right = a[rows].astype(np.float64), b.T[columns].astype(np.float64)
    return np.asarray((left * right).sum(axis=1))


def _nbody(n: int) -> Case:
    bodies = uniform(4 * n).reshape(n, 4)
    bodies[:, 3] = 0.5 + np.abs(bodies[:, 3])
    place, mass = bodies[:, :3].astype(np.float64), bodies[:, 3]

    def pull(at: Indices) -> Floats:
        total = []
        for body, axis in zip(*np.divmod(at, 3), strict=True):
            away = place - place[body]
            total.append(np.sum(mass * away[:, axis] / (np.sum(away**2, axis=1) + 0.01) ** 1.5))
        return np.array(total)

    return Case((bodies, np.zeros((n, 3), np.float32), np.int32(n)), {1: pull}, 1e-3)


def _monte_carlo(n: int, draws: int) -> Case:
    def inside(at: Indices) -> NDArray[np.int32]:
        state = at.astype(np.uint32) * np.uint32(2654435761) + np.uint32(12345)
        count = np.zeros(len(at), np.int32)
        for _ in range(draws):
            state ^= state << np.uint32(13)
            state ^= state >> np.uint32(17)
            state ^= state << np.uint32(5)
            x, y = state >> np.uint32(17), state & np.uint32(0x7FFF)
            count += x * x + y * y < 0x40000000
        return count

    return Case((np.zeros(n, np.int32), np.int32(draws)), {0: inside})


def _special(n: int, rounds: int, tolerance: float) -> Case:
    data = uniform(n, low=0.0)

    def values(at: Indices) -> Floats:
        x = data[at].astype(np.float64)
        for _ in range(rounds):
            x = 0.5 * np.sin(x) + 0.25 * np.exp(-x) + 0.1 * np.log1p(x)
        return x

    return Case((data, np.zeros_like(data), np.int32(rounds)), {1: values}, tolerance)


def _chains(n: int, rounds: int, chains: int, real: Any) -> Case:
    data = uniform(n).astype(real)

    def values(at: Indices) -> Floats:
        x = data[at, None].astype(np.float64) + np.arange(chains)
        for _ in range(rounds):
            x = x * 0.75 + 0.125
        return np.asarray(x.sum(axis=1))

    arguments = (data, np.zeros_like(data), real(0.75), real(0.125), np.int32(rounds))
    return Case(arguments, {1: values}, 1e-10 if real is np.float64 else 1e-4)


def _integer(n: int, rounds: int, ways: int) -> Case:
    data = bits(n)

    def values(at: Indices) -> NDArray[np.uint32]:
        x, factor = data[at], (_HASH[0] + 2 * (at % ways)).astype(np.uint32)
        for _ in range(rounds):
            x = x * factor + _HASH[1]
            x ^= x >> np.uint32(13)
        return x

    return Case((data, np.zeros_like(data), np.int32(rounds)), {1: values})


def _collatz(n: int) -> Case:
    def steps(number: int) -> int:
        count = 0
        while number != 1:
            number = 3 * number + 1 if number % 2 else number // 2
            count += 1
        return count

    arguments = (np.zeros(n, np.int32), np.int32(n))
    return Case(arguments, {0: lambda at: np.array([steps(int(i) + 1) for i in at])})
