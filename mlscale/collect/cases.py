"""Cases of the suite's kernels: made arguments, and what a launch must leave, by NumPy.

suite.json names the functions, without their underscore. A new kernel needs

- a file in `kernels/` with one `ENTRY KERNEL(…)` in the words of `languages.h`; `KERNEL` becomes
  the name in the table,
- a function here that returns its `Case`,
- a line of suite.json for each size, and a tiny size in tests/collect/test_suite.py.

One launch is one row. Inputs and outputs are separate buffers, so that every launch does the same.
Choose sizes that take 20 us to some 10 ms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices

_PLACES = 512
Sample = tuple[Indices, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of one launch, and what it must leave in some of them.

    arguments: in the kernel's order; an array is a buffer with its first content, a NumPy scalar
    is passed by value. expected: by argument, flat positions and what stands there after a launch.
    tolerance: largest error accepted, relative to the largest expected magnitude; 0 is exact.
    """

    arguments: tuple[Any, ...]
    expected: Mapping[int, Sample]
    tolerance: float = 0.0

    def error(self, outputs: Sequence[Any]) -> float:
        """The largest error of the outputs, by argument: relative, infinite if not a number."""
        errors = []
        for number, (at, values) in self.expected.items():
            left = np.ravel(outputs[number])[at].astype(np.float64)
            scale = max(np.abs(values).max(), np.finfo(np.float64).tiny)
            errors.append(np.nan_to_num(np.abs(left - values).max() / scale, nan=np.inf))
        return float(max(errors))


def uniform(n: int, seed: int = 0, low: float = -1.0) -> NDArray[np.float32]:
    """Generated single-precision numbers from low to 1; always the same."""
    numbers = np.random.default_rng(seed).random(n, dtype=np.float32)
    return np.asarray(low + (1 - low) * numbers, dtype=np.float32)


def whole(n: int, below: int, seed: int = 0) -> NDArray[np.int32]:
    """Generated whole numbers from 0; always the same."""
    return np.random.default_rng(seed).integers(0, below, n, dtype=np.int32)


def bits(n: int) -> NDArray[np.uint32]:
    """Generated 32-bit words; always the same."""
    return np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint32)


def places(n: int) -> Indices:
    """Positions to check, the first and the last of n among them; always the same."""
    if n <= _PLACES:
        return np.arange(n)
    inner = np.random.default_rng(n).integers(0, n, _PLACES - 2)
    return np.concatenate([[0], inner, [n - 1]]).astype(np.intp)


def sample(values: NDArray[Any]) -> Sample:
    """What is checked of a whole output."""
    at = places(values.size)
    return at, values.flat[at]


def _moved(n: int, width: int = 1, size: int = 0) -> Case:
    """The columns of a matrix so wide become rows. size: as the kernel is told, n unless given."""
    data = uniform(n)
    columns = data.reshape(-1, width).T
    return Case((data, np.zeros_like(data), np.int32(size or n)), {1: sample(columns)})


def _triad(n: int, real: str) -> Case:
    a, b, half = uniform(n).astype(real), uniform(n, 1).astype(real), np.dtype(real).type(0.5)
    arguments = (a, b, np.zeros_like(a), half, np.int32(n))
    return Case(arguments, {2: sample(a + half * b)}, 1e-6)


def _gather(n: int, table: int) -> Case:
    data, index = uniform(table), whole(n, table)
    arguments = (data, index, np.zeros(n, np.float32), np.int32(n))
    return Case(arguments, {2: sample(data[index])})


def _stencil(side: int, dimensions: int, centre: float, neighbour: float) -> Case:
    """A weighted sum of each inner point and its neighbours along the axes."""
    grid = uniform(side**dimensions).reshape((side,) * dimensions)
    mixed, inner = np.zeros_like(grid), (slice(1, -1),) * dimensions
    mixed[inner] = centre * grid[inner]
    for axis in range(dimensions):
        for step in (-1, 1):
            mixed[inner] += neighbour * np.roll(grid, step, axis)[inner]
    return Case((grid, np.zeros_like(grid), np.int32(side)), {1: sample(mixed)}, 1e-5)


def _sweep(words: int, sweeps: int, threads: int) -> Case:
    """words: as many for each thread."""
    data, at = bits(words), places(threads)
    i = at + np.arange(0, words, threads)[:, None]
    sums = sum(data[(i + s * 7919 * 32) % words].sum(0, np.uint32) for s in range(sweeps))
    arguments = (data, np.zeros(threads, np.uint32), np.uint32(words), np.int32(sweeps))
    return Case(arguments, {1: (at, np.asarray(sums))})


def _chase(nodes: int, steps: int, threads: int) -> Case:
    order = np.random.default_rng(0).permutation(nodes) * 32
    return chase(order, nodes * 32, steps, threads)


def chase(order: Indices, words: int, steps: int, threads: int = 1) -> Case:
    """Threads that follow a cycle through some of the words, from places of their own."""
    following = np.zeros(words, np.uint32)
    following[order] = np.roll(order, -1)
    place = np.arange(threads) * 7919 % len(order)
    out = np.zeros(threads, np.uint32)
    arguments = (following, order[place].astype(np.uint32), out, np.int32(steps))
    return Case(arguments, {2: sample(order[(place + steps) % len(order)])})


def _matmul(side: int) -> Case:
    a, b = (uniform(side**2, seed).reshape(side, side) for seed in (0, 1))
    return Case((a, b, np.zeros_like(a), np.int32(side)), {2: _product(a, b)}, 1e-4)


def _tensor(side: int) -> Case:
    a, b = (uniform(side**2, s).astype(np.float16).reshape(side, side) for s in (0, 1))
    words = (a.view(np.uint16), np.ascontiguousarray(b.T).view(np.uint16))
    arguments = (*words, np.zeros((side, side), np.float32), np.int32(side))
    return Case(arguments, {2: _product(a, b)}, 1e-3)


def _product(a: NDArray[Any], b: NDArray[Any]) -> Sample:
    at = places(a.size)
    rows, columns = np.divmod(at, len(a))
    return at, (a[rows].astype(np.float64) * b.T[columns]).sum(axis=1)


def _nbody(n: int) -> Case:
    bodies = uniform(4 * n).reshape(n, 4)
    bodies[:, 3] = 0.5 + np.abs(bodies[:, 3])
    place, mass, at = bodies[:, :3].astype(np.float64), bodies[:, 3], places(3 * n)
    pulls = []
    for body, axis in zip(*np.divmod(at, 3), strict=True):
        away = place - place[body]
        pulls.append(np.sum(mass * away[:, axis] / (np.sum(away**2, axis=1) + 0.01) ** 1.5))
    arguments = (bodies, np.zeros((n, 3), np.float32), np.int32(n))
    return Case(arguments, {1: (at, np.array(pulls))}, 1e-3)


def _monte_carlo(n: int, draws: int) -> Case:
    at = places(n)
    inside = np.zeros_like(at)
    state = at.astype(np.uint32) * np.uint32(2654435761) + np.uint32(12345)
    for _ in range(draws):
        state ^= state << np.uint32(13)
        state ^= state >> np.uint32(17)
        state ^= state << np.uint32(5)
        x, y = state >> np.uint32(17), state & np.uint32(0x7FFF)
        inside += x * x + y * y < 0x40000000
    return Case((np.zeros(n, np.int32), np.int32(draws)), {0: (at, inside)})


def _special(n: int, rounds: int, tolerance: float) -> Case:
    data, at = uniform(n, low=0.0), places(n)
    x = data[at].astype(np.float64)
    for _ in range(rounds):
        x = 0.5 * np.sin(x) + 0.25 * np.exp(-x) + 0.1 * np.log1p(x)
    return Case((data, np.zeros_like(data), np.int32(rounds)), {1: (at, x)}, tolerance)


def _chains(n: int, rounds: int, chains: int, real: str) -> Case:
    data, number, at = uniform(n).astype(real), np.dtype(real).type, places(n)
    x = data[at, None].astype(np.float64) + np.arange(chains)
    for _ in range(rounds):
        x = x * 0.75 + 0.125
    arguments = (data, np.zeros_like(data), number(0.75), number(0.125), np.int32(rounds))
    return Case(arguments, {1: (at, x.sum(axis=1))}, 1e-10 if real == "float64" else 1e-4)


def _hashes(n: int, rounds: int, ways: int) -> Case:
    data, at = bits(n), places(n)
    x, factor = data[at], (1664525 + 2 * (at % ways)).astype(np.uint32)
    for _ in range(rounds):
        x = x * factor + np.uint32(1013904223)
        x ^= x >> np.uint32(13)
    return Case((data, np.zeros_like(data), np.int32(rounds)), {1: (at, x)})


def _collatz(n: int) -> Case:
    at = places(n)
    number, steps = at + 1, np.zeros_like(at)
    while (going := number > 1).any():
        steps += going
        number = np.where(going, np.where(number % 2, 3 * number + 1, number // 2), 1)
    return Case((np.zeros(n, np.int32), np.int32(n)), {0: (at, steps)})


def _reduction(n: int) -> Case:
    data = uniform(n)
    sums = data.reshape(-1, 4096).sum(axis=1, dtype=np.float64)
    return Case((data, np.zeros(n // 4096, np.float32)), {1: sample(sums)}, 1e-4)


def _scan(n: int) -> Case:
    data = whole(n, 1000)
    return Case((data, np.zeros_like(data)), {1: sample(data.reshape(-1, 512).cumsum(axis=1))})


def _histogram(n: int, bins: int, kind: str, together: int = 1) -> Case:
    """together: so many neighbouring bins are one, so that few are hit."""
    data: NDArray[Any] = (whole(n, bins) // together).astype(kind)
    length = () if kind == "uint8" else (np.int32(n),)
    arguments = (data, np.zeros(bins, np.int32), *length)
    return Case(arguments, {1: sample(np.bincount(data, minlength=bins))})


def _sorted_blocks(n: int) -> Case:
    data = whole(n, 2**31 - 1)
    return Case((data, np.zeros_like(data)), {1: sample(np.sort(data.reshape(-1, 1024)))})


def _exchanged(n: int, distance: int) -> Case:
    """Pairs of runs: of the first the lower goes first, of the second the higher."""
    data = whole(n, 2**31 - 1)
    keys = np.sort(data.reshape(-1, 2, 2, distance), axis=2)
    keys[:, 1] = keys[:, 1, ::-1].copy()
    numbers = (np.int32(n // 2), np.int32(2 * distance), np.int32(distance))
    return Case((data, np.zeros_like(data), *numbers), {1: sample(keys)})


def _butterflies(n: int, width: int) -> Case:
    re, im = uniform(n), uniform(n, 1)
    low, high = np.moveaxis((re.astype(np.complex128) + 1j * im).reshape(-1, 2, width), 1, 0)
    turned = high * np.exp(-1j * np.pi * np.arange(width) / width)
    signal = np.stack([low + turned, low - turned], axis=1)
    arguments = (re, im, np.zeros_like(re), np.zeros_like(re), np.int32(n // 2), np.int32(width))
    return Case(arguments, {2: sample(signal.real), 3: sample(signal.imag)}, 1e-5)


def _transformed(n: int) -> Case:
    re, im = uniform(n), uniform(n, 1)
    signal = np.fft.fft((re + 1j * im).reshape(-1, 1024))
    arguments = (re, im, np.zeros_like(re), np.zeros_like(re))
    return Case(arguments, {2: sample(signal.real), 3: sample(signal.imag)}, 1e-5)


def _spmv(rows: int) -> Case:
    """A sparse matrix with rows of 1 to 63 entries."""
    begin = np.concatenate([[0], np.cumsum(1 + whole(rows, 63))]).astype(np.int32)
    column, value = whole(int(begin[-1]), rows, 1), uniform(int(begin[-1]), 2)
    x = uniform(rows, 3)
    products = np.add.reduceat(value.astype(np.float64) * x[column], begin[:-1])
    arguments = (begin, column, value, x, np.zeros(rows, np.float32), np.int32(rows))
    return Case(arguments, {4: sample(products)}, 1e-4)


def _conflicts(threads: int, stride: int, rounds: int) -> Case:
    words, at = bits(2048), places(threads)
    sums = at.astype(np.uint32)
    for k in range(rounds):
        sums += words[(at % 256 * stride + k + (sums & 32)) & 2047]
    return Case((words, np.zeros(threads, np.uint32), np.int32(rounds)), {1: (at, sums)})


def _looked_up(threads: int, rounds: int) -> Case:
    words, at = bits(11264), places(threads)
    place = at % 128
    for _ in range(rounds):
        place = (words[place] % 11264).astype(np.intp)
    return Case((words, np.zeros(threads, np.uint32), np.int32(rounds)), {1: (at, place)})
