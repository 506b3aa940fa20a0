"""Kernels that arithmetic, latency or occupancy bounds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.collect.entries import Case, Entry, blocks_for, sampled, size_name, uniform

_M = 2**20
_HASH = (np.uint32(1664525), np.uint32(1013904223))


def matmul(n: int, tiled: bool) -> Entry:
    """Matrix product in single precision."""
    name = "matmul_tiled" if tiled else "matmul_naive"

    def case() -> Case:
        a, b = uniform(n * n).reshape(n, n), uniform(n * n, 1).reshape(n, n)
        at = sampled(n * n)
        arguments = (a, b, np.zeros_like(a), np.int32(n))
        return Case(arguments, {2: (at, _product(a, b, at))}, 1e-4)

    return Entry(f"{name}_{n}", name, name, n * n // 256, 256, case)


def tensor(n: int) -> Entry:
    """Matrix product of half precision on tensor cores."""

    def case() -> Case:
        a, b = (uniform(n * n, seed).astype(np.float16).reshape(n, n) for seed in (0, 1))
        at = sampled(n * n)
        expected = _product(a.astype(np.float32), b.astype(np.float32), at)
        bits = (a.view(np.uint16), np.ascontiguousarray(b.T).view(np.uint16))
        arguments = (*bits, np.zeros((n, n), np.float32), np.int32(n))
        return Case(arguments, {2: (at, expected)}, 1e-3)

    return Entry(f"tensor_{n}", "tensor", "tensor", n * n // 1024, 128, case, capability=70)


def nbody(n: int) -> Entry:
    """All pairs of bodies."""

    def case() -> Case:
        bodies = uniform(4 * n).reshape(n, 4)
        bodies[:, 3] = 0.5 + np.abs(bodies[:, 3])
        checked = sampled(n)[:64]
        away = bodies[None, :, :3].astype(np.float64) - bodies[checked, None, :3]
        pull = bodies[:, 3] / (np.sum(away**2, axis=2) + 0.01) ** 1.5
        expected = np.sum(pull[:, :, None] * away, axis=1)
        at = (3 * checked[:, None] + np.arange(3)).ravel()
        arguments = (bodies, np.zeros((n, 3), np.float32), np.int32(n))
        return Case(arguments, {1: (at, expected.ravel())}, 1e-3)

    return Entry(f"nbody_{size_name(n)}", "nbody", "nbody", n // 256, 256, case)


def monte_carlo(threads: int, draws: int) -> Entry:
    """Random numbers and a comparison, without memory."""

    def case() -> Case:
        at = sampled(threads)
        state = at.astype(np.uint32) * np.uint32(2654435761) + np.uint32(12345)
        inside = np.zeros(len(at), np.int32)
        for _ in range(draws):
            state ^= state << np.uint32(13)
            state ^= state >> np.uint32(17)
            state ^= state << np.uint32(5)
            x, y = state >> np.uint32(17), state & np.uint32(0x7FFF)
            inside += x * x + y * y < 0x40000000
        return Case((np.zeros(threads, np.int32), np.int32(draws)), {0: (at, inside)})

    name = f"monte_carlo_{size_name(threads)}"
    return Entry(name, "monte_carlo", "monte_carlo", threads // 256, 256, case)


def special(n: int, rounds: int, fast: bool) -> Entry:
    """Sine, exponential and logarithm."""
    name = "special_fast" if fast else "special"

    def case() -> Case:
        data, at = uniform(n, low=0.0), sampled(n)
        x = data[at].astype(np.float64)
        for _ in range(rounds):
            x = 0.5 * np.sin(x) + 0.25 * np.exp(-x) + 0.1 * np.log1p(x)
        arguments = (data, np.zeros_like(data), np.int32(rounds))
        return Case(arguments, {1: (at, x)}, 1e-3 if fast else 1e-5)

    defines = (("FAST", str(int(fast))),)
    return Entry(f"{name}_{size_name(n)}", name, "special", n // 256, 256, case, defines)


def fma(
    name: str, blocks: int, threads: int, rounds: int, chains: int = 1, double: bool = False
) -> Entry:
    """Chains of dependent multiply-adds."""
    real: Any = np.float64 if double else np.float32
    factor, summand = real(0.75), real(0.125)

    def case() -> Case:
        n = blocks * threads
        data, at = uniform(n).astype(real), sampled(n)
        x = data[at, None].astype(np.float64) + np.arange(chains)
        for _ in range(rounds):
            x = x * 0.75 + 0.125
        arguments = (data, np.zeros_like(data), factor, summand, np.int32(rounds))
        return Case(arguments, {1: (at, x.sum(axis=1))}, 1e-10 if double else 1e-4)

    defines = (("REAL", "double" if double else "float"), ("CHAINS", str(chains)))
    application = name.rpartition("_")[0]
    return Entry(name, application, "fma", blocks, threads, case, defines)


def integer(n: int, rounds: int) -> Entry:
    """Integer multiply-adds and shifts."""

    def case() -> Case:
        data, at = _bits(n), sampled(n)
        arguments = (data, np.zeros_like(data), np.int32(rounds))
        return Case(arguments, {1: (at, _hashed(data[at], _HASH[0], rounds))})

    name = f"integer_{size_name(n)}"
    return Entry(name, "integer", "integer", blocks_for(n), 256, case)


def divergence(n: int, ways: int, rounds: int) -> Entry:
    """Lanes of a warp on different branches."""

    def case() -> Case:
        data, at = _bits(n), sampled(n)
        factors = (_HASH[0] + 2 * (at % ways)).astype(np.uint32)
        arguments = (data, np.zeros_like(data), np.int32(rounds))
        return Case(arguments, {1: (at, _hashed(data[at], factors, rounds))})

    return Entry(
        f"divergence_{ways}", "divergence", "divergence", n // 256, 256, case,
        (("WAYS", str(ways)),),
    )  # fmt: skip


def collatz(n: int) -> Entry:
    """Loops of unequal length."""

    def case() -> Case:
        at = sampled(n)
        steps = [_collatz_steps(int(i) + 1) for i in at]
        arguments = (np.zeros(n, np.int32), np.int32(n))
        return Case(arguments, {0: (at, np.array(steps))})

    return Entry(f"collatz_{size_name(n)}", "collatz", "collatz", blocks_for(n), 256, case)


def _product(a: NDArray[Any], b: NDArray[Any], at: Indices) -> Floats:
    rows, columns = np.divmod(at, len(a))
    left, right = a[rows].astype(np.float64), b.T[columns].astype(np.float64)
    return np.asarray((left * right).sum(axis=1))


def _bits(n: int) -> NDArray[np.uint32]:
    return np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint32)


def _hashed(x: NDArray[np.uint32], factor: Any, rounds: int) -> NDArray[np.uint32]:
    for _ in range(rounds):
        x = x * factor + _HASH[1]
        x ^= x >> np.uint32(13)
    return x


def _collatz_steps(x: int) -> int:
    steps = 0
    while x != 1:
        x = 3 * x + 1 if x % 2 else x // 2
        steps += 1
    return steps


ENTRIES = (
    *(matmul(n, tiled=False) for n in (256, 1024)),
    *(matmul(n, tiled=True) for n in (256, 1024, 2048)),
    *(tensor(n) for n in (512, 2048)),
    *(nbody(n) for n in (4096, 16384, 32768)),
    *(monte_carlo(threads, 2048) for threads in (_M // 16, _M)),
    *(special(n, 64, fast) for fast in (False, True) for n in (_M // 4, 4 * _M)),
    fma("fma_1chain", 4096, 256, 4096),
    fma("fma_4chains", 4096, 256, 2048, chains=4),
    fma("fma_16warps", 512, 512, 4096, chains=2),
    fma("fma_fp64_1chain", 2048, 256, 512, double=True),
    fma("fma_fp64_4chains", 2048, 256, 256, chains=4, double=True),
    fma("few_threads_1", 1, 32, 8192),
    fma("few_threads_8", 8, 64, 8192),
    fma("few_threads_32", 32, 64, 8192, chains=2),
    fma("few_threads_128", 128, 32, 8192),
    *(integer(n, 512) for n in (_M // 4, 4 * _M)),
    *(divergence(_M, ways, 128) for ways in (1, 4, 32)),
    *(collatz(n) for n in (_M // 4, 4 * _M)),
)
