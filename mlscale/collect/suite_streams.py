"""Kernels that memory bounds: streams, strides, gathers, stencils, transposition, L2, chases."""

from typing import Any

import numpy as np

from mlscale.collect.entries import (
    Case,
    Entry,
    blocks_for,
    sampled,
    size_name,
    uniform,
    whole,
)  # fmt: skip

_M = 2**20


def copy(n: int) -> Entry:
    """Streaming, one read and one write."""

    def case() -> Case:
        data, at = uniform(n), sampled(n)
        return Case((data, np.zeros_like(data), np.int32(n)), {1: (at, data[at])})

    return Entry(f"copy_{size_name(n)}", "copy", "copy", blocks_for(n), 256, case)


def triad(n: int, double: bool = False) -> Entry:
    """Streaming, two reads and one write."""
    real: Any = np.float64 if double else np.float32

    def case() -> Case:
        a, b, at = uniform(n).astype(real), uniform(n, 1).astype(real), sampled(n)
        expected = a[at] + real(0.5) * b[at]
        return Case((a, b, np.zeros_like(a), real(0.5), np.int32(n)), {2: (at, expected)}, 1e-6)

    name = "triad_fp64" if double else "triad"
    return Entry(
        f"{name}_{size_name(n)}", name, "triad", blocks_for(n), 256, case,
        (("REAL", "double" if double else "float"),),
    )  # fmt: skip


def strided(n: int, stride: int) -> Entry:
    """Reads that use one word of `stride`."""

    def case() -> Case:
        data, at = uniform(n), sampled(n)
        rows = n // stride
        expected = data[at % rows * stride + at // rows]
        return Case((data, np.zeros_like(data), np.uint32(n)), {1: (at, expected)})

    return Entry(
        f"strided_{stride}_{size_name(n)}", "strided", "strided", blocks_for(n), 256, case,
        (("STRIDE", str(stride)),),
    )  # fmt: skip


def gather(n: int, table: int) -> Entry:
    """Random reads of a table."""

    def case() -> Case:
        data, index, at = uniform(table), whole(n, table), sampled(n)
        out = np.zeros(n, np.float32)
        return Case((data, index, out, np.int32(n)), {2: (at, data[index[at]])})

    return Entry(f"gather_{size_name(table)}", "gather", "gather", blocks_for(n), 256, case)


def stencil2d(n: int) -> Entry:
    """Five points on a square."""

    def case() -> Case:
        grid = uniform(n * n).reshape(n, n)
        mean = np.zeros_like(grid)
        mean[1:-1, 1:-1] = 0.2 * (
            grid[1:-1, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]
        )
        at = sampled(n * n)
        arguments = (grid, np.zeros_like(grid), np.int32(n))
        return Case(arguments, {1: (at, mean.ravel()[at])}, 1e-5)

    return Entry(f"stencil2d_{n}", "stencil2d", "stencil2d", blocks_for(n * n), 256, case)


def stencil3d(n: int) -> Entry:
    """Seven points in a cube."""

    def case() -> Case:
        grid = uniform(n**3).reshape(n, n, n)
        inner = (slice(1, -1),) * 3
        total = np.zeros_like(grid[inner])
        for axis in range(3):
            for step in (slice(None, -2), slice(2, None)):
                total += grid[tuple(step if a == axis else slice(1, -1) for a in range(3))]
        mixed = np.zeros_like(grid)
        mixed[inner] = 0.4 * grid[inner] + 0.1 * total
        at = sampled(n**3)
        arguments = (grid, np.zeros_like(grid), np.int32(n))
        return Case(arguments, {1: (at, mixed.ravel()[at])}, 1e-5)

    return Entry(f"stencil3d_{n}", "stencil3d", "stencil3d", blocks_for(n**3), 256, case)


def transpose(n: int, tiled: bool) -> Entry:
    """Transposition, by tiles in shared memory or straight."""
    name = "transpose_tiled" if tiled else "transpose_naive"

    def case() -> Case:
        data, at = uniform(n * n), sampled(n * n)
        expected = data[at % n * n + at // n]
        return Case((data, np.zeros_like(data), np.int32(n)), {1: (at, expected)})

    blocks = (n // 32) ** 2 if tiled else blocks_for(n * n)
    return Entry(f"{name}_{n}", name, name, blocks, 256, case)


def sweep(words: int, sweeps: int, blocks: int = 1024) -> Entry:
    """Repeated reads of one set, kept by the L2 cache where it is large enough."""

    def case() -> Case:
        data = np.random.default_rng(0).integers(0, 2**32, words, dtype=np.uint32)
        threads = blocks * 256
        at = sampled(threads)
        expected = np.zeros(len(at), np.uint32)
        for s in range(sweeps):
            for first in range(0, words, threads):
                i = first + at
                inside = i < words
                place = (i + s * 7919 * 32) % words
                expected += np.where(inside, data[place], np.uint32(0))
        out = np.zeros(threads, np.uint32)
        return Case((data, out, np.uint32(words), np.int32(sweeps)), {1: (at, expected)})

    return Entry(f"l2_set_{size_name(4 * words)}", "l2_set", "sweep", blocks, 256, case)


def chase(nodes: int, steps: int, threads: int = 1, blocks: int = 1) -> Entry:
    """Dependent loads along a random cycle of nodes, 128 bytes each."""

    def case() -> Case:
        order = np.random.default_rng(0).permutation(nodes)
        following = np.zeros(nodes * 32, np.uint32)
        following[order * 32] = np.roll(order, -1)
        place = np.arange(threads * blocks) * 7919 % nodes
        out = np.zeros(threads * blocks, np.uint32)
        expected = order[(place + steps) % nodes]
        arguments = (following, order[place].astype(np.uint32), out, np.int32(steps))
        at = sampled(threads * blocks)
        return Case(arguments, {2: (at, expected[at])})

    name = "chase" if threads * blocks == 1 else "chase_many"
    return Entry(f"{name}_{size_name(128 * nodes)}", name, "chase", blocks, threads, case)


ENTRIES = (
    *(copy(n) for n in (4 * _M, 16 * _M, 64 * _M)),
    *(triad(n) for n in (4 * _M, 16 * _M, 64 * _M)),
    *(triad(n, double=True) for n in (4 * _M, 32 * _M)),
    *(strided(16 * _M, stride) for stride in (2, 8, 32)),
    *(gather(4 * _M, table) for table in (_M // 16, 2 * _M, 32 * _M)),
    *(stencil2d(n) for n in (2048, 8192)),
    *(stencil3d(n) for n in (128, 320)),
    *(transpose(n, tiled) for tiled in (False, True) for n in (2048, 8192)),
    *(sweep(words, 64 * _M // words) for words in (_M // 4, _M, 4 * _M, 16 * _M)),
    *(chase(nodes, 20_000) for nodes in (2**7, 2**13, 2**20)),
    chase(2**20, 500, 256, 512),
)
