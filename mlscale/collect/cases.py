"""Cases of the suite's kernels: made arguments, and what a launch must leave, by NumPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices

_PLACES = 512
_HASH = (np.uint32(1664525), np.uint32(1013904223))


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of one launch, and what it must leave in some of them.

    arguments: in the kernel's order; an array is a buffer with its first content, a NumPy scalar
    is passed by value. expected: by argument, what stands at flat positions of it after one launch.
    tolerance: largest error accepted, relative to the largest expected magnitude; 0 is exact.
    """

    arguments: tuple[Any, ...]
    expected: Mapping[int, Callable[[Indices], Any]]
    tolerance: float = 0.0

    @cached_property
    def answers(self) -> dict[int, tuple[Indices, NDArray[Any]]]:
        """By argument the positions that are checked, and their values."""
        places = {number: _sampled(self.arguments[number].size) for number in self.expected}
        return {n: (at, np.asarray(self.expected[n](at), np.float64)) for n, at in places.items()}

    def error(self, outputs: Sequence[NDArray[Any] | None]) -> float:
        """The worst error of the outputs, by argument: relative, infinite for what is no number."""
        worst = 0.0
        for number, (at, values) in self.answers.items():
            left = np.ravel(outputs[number])[at].astype(np.float64)  # type: ignore[arg-type]
            scale = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
            error = float(np.abs(left - values).max() / scale)
            worst = max(worst, error if np.isfinite(error) else float("inf"))
        return worst


def uniform(n: int, seed: int = 0, low: float = -1.0) -> NDArray[np.float32]:
    """Made numbers of single precision from low to 1; always the same."""
    numbers = np.random.default_rng(seed).random(n, dtype=np.float32)
    return np.asarray(low + (1 - low) * numbers, dtype=np.float32)


def whole(n: int, below: int, seed: int = 0) -> NDArray[np.int32]:
    """Made whole numbers from 0; always the same."""
    return np.random.default_rng(seed).integers(0, below, n, dtype=np.int32)


def bits(n: int) -> NDArray[np.uint32]:
    """Made words of 32 bits; always the same."""
    return np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint32)


def _sampled(n: int) -> Indices:
    """Positions to check, the first and the last of n among them; always the same."""
    if n <= _PLACES:
        return np.arange(n)
    inner = np.random.default_rng(n).integers(0, n, _PLACES - 2)
    return np.concatenate([[0], inner, [n - 1]]).astype(np.intp)


def _copy(n: int) -> Case:
    data = uniform(n)
    return Case((data, np.zeros_like(data), np.int32(n)), {1: data.take})


def _triad(n: int, real: str) -> Case:
    a, b, half = uniform(n).astype(real), uniform(n, 1).astype(real), np.dtype(real).type(0.5)
    arguments = (a, b, np.zeros_like(a), half, np.int32(n))
    return Case(arguments, {2: lambda at: a[at] + half * b[at]}, 1e-6)


def _strided(n: int, stride: int) -> Case:
    data, rows = uniform(n), n // stride
    arguments = (data, np.zeros_like(data), np.uint32(n))
    return Case(arguments, {1: lambda at: data[at % rows * stride + at // rows]})


def _gather(n: int, table: int) -> Case:
    data, index = uniform(table), whole(n, table)
    arguments = (data, index, np.zeros(n, np.float32), np.int32(n))
    return Case(arguments, {2: lambda at: data[index[at]]})


def _stencil(side: int, dimensions: int, own: float, neighbour: float) -> Case:
    """A weighted sum of each inner point and its neighbours along the axes."""
    grid = uniform(side**dimensions).reshape((side,) * dimensions)
    inner = (slice(1, -1),) * dimensions
    total = np.zeros_like(grid[inner])
    for axis in range(dimensions):
        for step in (slice(None, -2), slice(2, None)):
            total += grid[(*inner[:axis], step, *inner[axis + 1 :])]
    mixed = np.zeros_like(grid)
    mixed[inner] = own * grid[inner] + neighbour * total
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


def _chains(n: int, rounds: int, chains: int, real: str) -> Case:
    data, number = uniform(n).astype(real), np.dtype(real).type

    def values(at: Indices) -> Floats:
        x = data[at, None].astype(np.float64) + np.arange(chains)
        for _ in range(rounds):
            x = x * 0.75 + 0.125
        return np.asarray(x.sum(axis=1))

    arguments = (data, np.zeros_like(data), number(0.75), number(0.125), np.int32(rounds))
    return Case(arguments, {1: values}, 1e-10 if real == "float64" else 1e-4)


def _hashes(n: int, rounds: int, ways: int) -> Case:
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


def _reduction(n: int) -> Case:
    data = uniform(n)
    sums = data.reshape(-1, 4096).sum(axis=1, dtype=np.float64)
    return Case((data, np.zeros(n // 4096, np.float32)), {1: sums.take}, 1e-4)


def _scan(n: int) -> Case:
    data = whole(n, 1000)
    sums = data.reshape(-1, 512).cumsum(axis=1)
    return Case((data, np.zeros_like(data)), {1: sums.take})


def _histogram(n: int, bins: int, kind: str, together: int = 1) -> Case:
    """together: so many neighbouring bins are one, so that few are hit."""
    data: NDArray[Any] = (whole(n, bins) // together).astype(kind)
    counts = np.bincount(data, minlength=bins)
    length = () if kind == "uint8" else (np.int32(n),)
    return Case((data, np.zeros(bins, np.int32), *length), {1: counts.take})


def _sorted_blocks(n: int) -> Case:
    data = whole(n, 2**31 - 1)
    keys = np.sort(data.reshape(-1, 1024), axis=1)
    return Case((data, np.zeros_like(data)), {1: keys.take})


def _exchanged(n: int, distance: int) -> Case:
    data = whole(n, 2**31 - 1)

    def values(at: Indices) -> Any:
        own, partner = data[at], data[at ^ distance]
        is_low, rising = (at & distance) == 0, (at & (2 * distance)) == 0
        return np.where(is_low == rising, np.minimum(own, partner), np.maximum(own, partner))

    numbers = (np.int32(n // 2), np.int32(2 * distance), np.int32(distance))
    return Case((data, np.zeros_like(data), *numbers), {1: values})


def _butterflies(n: int, width: int) -> Case:
    re, im = uniform(n), uniform(n, 1)
    signal = re.astype(np.complex128) + 1j * im

    def values(at: Indices) -> Any:
        low, sign = at & ~width, np.where(at & width, -1, 1)
        return signal[low] + sign * np.exp(-1j * np.pi * (at % width) / width) * signal[low + width]

    arguments = (re, im, np.zeros_like(re), np.zeros_like(re), np.int32(n // 2), np.int32(width))
    return Case(arguments, {2: lambda at: values(at).real, 3: lambda at: values(at).imag}, 1e-5)


def _transformed(n: int) -> Case:
    re, im = uniform(n), uniform(n, 1)
    spectrum = np.fft.fft((re + 1j * im).reshape(-1, 1024), axis=1)
    expected = {2: spectrum.real.take, 3: spectrum.imag.take}
    return Case((re, im, np.zeros_like(re), np.zeros_like(re)), expected, 1e-5)


def _spmv(rows: int) -> Case:
    """A sparse matrix with rows of 1 to 63 entries."""
    begin = np.concatenate([[0], np.cumsum(1 + whole(rows, 63))]).astype(np.int32)
    column, value = whole(int(begin[-1]), rows, 1), uniform(int(begin[-1]), 2)
    x = uniform(rows, 3)

    def products(at: Indices) -> Floats:
        spans = [slice(begin[row], begin[row + 1]) for row in at]
        return np.array([value[s].astype(np.float64) @ x[column[s]] for s in spans])

    arguments = (begin, column, value, x, np.zeros(rows, np.float32), np.int32(rows))
    return Case(arguments, {4: products}, 1e-4)


def _conflicts(threads: int, stride: int, rounds: int) -> Case:
    words = whole(2048, 2**31 - 1).astype(np.uint32)

    def sums(at: Indices) -> NDArray[np.uint32]:
        total = at.astype(np.uint32)
        for k in range(rounds):
            total = total + words[(at % 256 * stride + k + (total & 32)) & 2047]
        return total

    return Case((words, np.zeros(threads, np.uint32), np.int32(rounds)), {1: sums})


def _looked_up(threads: int, rounds: int) -> Case:
    words = whole(11264, 2**31 - 1).astype(np.uint32)

    def places(at: Indices) -> Indices:
        place = at % 128
        for _ in range(rounds):
            place = (words[place] % 11264).astype(np.intp)
        return place

    return Case((words, np.zeros(threads, np.uint32), np.int32(rounds)), {1: places})


# By their names in suite.csv.
CASES: dict[str, Callable[..., Case]] = {
    function.__name__.removeprefix("_"): function
    for function in (
        *(_copy, _triad, _strided, _gather, _stencil, _transpose, _sweep, _chase),
        *(_matmul, _tensor, _nbody, _monte_carlo, _special, _chains, _hashes, _collatz),
        *(_reduction, _scan, _histogram, _sorted_blocks, _exchanged, _butterflies, _transformed),
        *(_spmv, _conflicts, _looked_up),
    )
}
