"""Kernels that memory bounds: streams, strides, gathers, stencils, transposition, L2, chases."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices
from mlscale.collect.entries import Case, Entry, bits, uniform, whole

_M = 2**20


def entries(small: bool) -> Iterator[Entry]:  # noqa: C901, it is a list
    """The kernels at their sizes; small: sizes for a processor."""
    for n in (_M,) if small else (4 * _M, 16 * _M, 64 * _M):
        yield Entry("copy", n, n, partial(_copy, n))
    for n in (_M,) if small else (4 * _M, 16 * _M, 64 * _M):
        yield Entry("triad", n, n, partial(_triad, n, np.float32), macros=(("REAL", "float"),))
    for n in (_M,) if small else (4 * _M, 32 * _M):
        yield Entry(
            "triad_fp64", n, n, partial(_triad, n, np.float64), source="triad",
            macros=(("REAL", "double"),),
        )  # fmt: skip
    n = _M if small else 16 * _M
    for stride in (8,) if small else (2, 8, 32):
        macros = (("STRIDE", str(stride)),)
        yield Entry(
            "strided", f"{stride}_{n // _M}m", n, partial(_strided, n, stride), macros=macros
        )
    n = _M if small else 4 * _M
    for table in (2 * _M,) if small else (_M // 16, 2 * _M, 32 * _M):
        yield Entry("gather", table, n, partial(_gather, n, table))
    for side in (1024,) if small else (2048, 8192):
        yield Entry("stencil2d", str(side), side**2, partial(_stencil2d, side))
    for side in (96,) if small else (128, 320):
        yield Entry("stencil3d", str(side), side**3, partial(_stencil3d, side))
    for side in (1024,) if small else (2048, 8192):
        for way in ("naive", "tiled"):
            threads = side**2 // (1 if way == "naive" else 4)
            yield Entry(f"transpose_{way}", str(side), threads, partial(_transpose, side))
    for words in (_M // 4,) if small else (_M // 4, _M, 4 * _M, 16 * _M):
        sweeps, threads = (4 if small else 64) * _M // words, 2**18
        case = partial(_sweep, words, sweeps, threads)
        yield Entry("l2_set", 4 * words, threads, case, source="sweep")
    for nodes in (2**13,) if small else (2**7, 2**13, 2**20):
        yield Entry("chase", 128 * nodes, 1, partial(_chase, nodes, 20_000, 1), block=1)
    nodes, steps, threads = (2**13, 100, 2**12) if small else (2**20, 500, 2**17)
    case = partial(_chase, nodes, steps, threads)
    yield Entry("chase_many", 128 * nodes, threads, case, source="chase")


def _copy(n: int) -> Case:
    data = uniform(n)
    return Case((data, np.zeros_like(data), np.int32(n)), {1: data.take})


def _triad(n: int, real: Any) -> Case:
    a, b = uniform(n).astype(real), uniform(n, 1).astype(real)
    arguments = (a, b, np.zeros_like(a), real(0.5), np.int32(n))
    return Case(arguments, {2: lambda at: a[at] + real(0.5) * b[at]}, 1e-6)


def _strided(n: int, stride: int) -> Case:
    data, rows = uniform(n), n // stride
    arguments = (data, np.zeros_like(data), np.uint32(n))
    return Case(arguments, {1: lambda at: data[at % rows * stride + at // rows]})


def _gather(n: int, table: int) -> Case:
    data, index = uniform(table), whole(n, table)
    arguments = (data, index, np.zeros(n, np.float32), np.int32(n))
    return Case(arguments, {2: lambda at: data[index[at]]})


def _stencil2d(side: int) -> Case:
    grid = uniform(side**2).reshape(side, side)
    inner = grid[1:-1, 1:-1]
    mean = np.zeros_like(grid)
    mean[1:-1, 1:-1] = 0.2 * (
        inner + grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]
    )
    return Case((grid, np.zeros_like(grid), np.int32(side)), {1: mean.take}, 1e-5)


def _stencil3d(side: int) -> Case:
    grid = uniform(side**3).reshape(side, side, side)
    inner = (slice(1, -1),) * 3
    total = np.zeros_like(grid[inner])
    for axis in range(3):
        for step in (slice(None, -2), slice(2, None)):
            total += grid[tuple(step if a == axis else slice(1, -1) for a in range(3))]
    mixed = np.zeros_like(grid)
    mixed[inner] = 0.4 * grid[inner] + 0.1 * total
    return Case((grid, np.zeros_like(grid), np.int32(side)), {1: mixed.take}, 1e-5)


def _transpose(side: int) -> Case:
    data = uniform(side**2)
    arguments = (data, np.zeros_like(data), np.int32(side))
    return Case(arguments, {1: lambda at: data[at % side * side + at // side]})


def _sweep(words: int, sweeps: int, threads: int) -> Case:
    data = bits(words)

    def sums(at: Indices) -> NDArray[np.uint32]:
        total = np.zeros(len(at), np.uint32)
        for s in range(sweeps):
            for first in range(0, words, threads):
                i = first + at
                total += np.where(i < words, data[(i + s * 7919 * 32) % words], np.uint32(0))
        return total

    arguments = (data, np.zeros(threads, np.uint32), np.uint32(words), np.int32(sweeps))
    return Case(arguments, {1: sums})


def _chase(nodes: int, steps: int, threads: int) -> Case:
    order = np.random.default_rng(0).permutation(nodes)
    following = np.zeros(nodes * 32, np.uint32)
    following[order * 32] = np.roll(order, -1)
    place = np.arange(threads) * 7919 % nodes
    out = np.zeros(threads, np.uint32)
    arguments = (following, order[place].astype(np.uint32), out, np.int32(steps))
    return Case(arguments, {2: lambda at: order[(place[at] + steps) % nodes]})
