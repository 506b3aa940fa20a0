"""Kernels that exchange, sort, count and look up: barriers, atomics, shared memory."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.collect.entries import Case, Entry, uniform, whole

_M = 2**20


def entries(small: bool) -> Iterator[Entry]:  # noqa: C901, it is a list
    """The kernels at their sizes; small: sizes for a processor."""
    for n in (_M,) if small else (4 * _M, 16 * _M, 64 * _M):
        yield Entry("reduction", n, n // 16, partial(_reduction, n))
    for n in (_M // 4,) if small else (4 * _M, 32 * _M):
        yield Entry("scan", n, n, partial(_scan, n), 512)
    for n in (_M,) if small else (8 * _M, 64 * _M):
        yield Entry("histogram_shared", n, n // 16, partial(_histogram, n, 256, np.uint8))
    n = _M if small else 16 * _M
    case = partial(_histogram, n, 256, np.uint8, 85)
    yield Entry("histogram_shared_skewed", n, n // 16, case, source="histogram_shared")
    n = _M // 4 if small else 8 * _M
    for bins in (4096,) if small else (16, 4096, _M):
        yield Entry("histogram_global", bins, n, partial(_histogram, n, bins, np.int32))
    for n in (_M // 8,) if small else (2 * _M, 16 * _M):
        yield Entry("bitonic_block", n, n // 2, partial(_sorted, n), 512)
    n = _M if small else 16 * _M
    for distance in (16,) if small else (16, 4 * _M):
        yield Entry("bitonic_step", distance, n // 2, partial(_exchanged, n, distance))
    n = _M // 2 if small else 8 * _M
    for width in (64,) if small else (64, 2 * _M):
        yield Entry("fft_stage", width, n // 2, partial(_butterflies, n, width))
    for n in (_M // 8,) if small else (2 * _M, 16 * _M):
        yield Entry("fft_block", n, n // 2, partial(_transformed, n), 512)
    for rows in (_M // 32,) if small else (_M // 8, _M):
        yield Entry("spmv_scalar", rows, rows, partial(_spmv, rows))
        yield Entry("spmv_warp", rows, 32 * rows, partial(_spmv, rows))
    for stride in (2,) if small else (1, 2, 32):
        threads, rounds = (2**14, 128) if small else (2**19, 512)
        macros = (("STRIDE", str(stride)),)
        case = partial(_conflicts, threads, stride, rounds)
        yield Entry("shared_conflict", str(stride), threads, case, macros=macros)
    for blocks in (16,) if small else (64, 1024):
        case = partial(_looked_up, 128 * blocks, 512 if small else 4096)
        yield Entry("shared_heavy", str(blocks), 128 * blocks, case, 128)


def _reduction(n: int) -> Case:
    data = uniform(n)
    sums = data.reshape(-1, 4096).sum(axis=1, dtype=np.float64)
    return Case((data, np.zeros(n // 4096, np.float32)), {1: sums.take}, 1e-4)


def _scan(n: int) -> Case:
    data = whole(n, 1000)
    sums = data.reshape(-1, 512).cumsum(axis=1)
    return Case((data, np.zeros_like(data)), {1: sums.take})


def _histogram(n: int, bins: int, kind: type, together: int = 1) -> Case:
    """together: so many neighbouring bins are one, so that few are hit."""
    data: NDArray[Any] = (whole(n, bins) // together).astype(kind)
    counts = np.bincount(data, minlength=bins)
    number = () if kind is np.uint8 else (np.int32(n),)
    return Case((data, np.zeros(bins, np.int32), *number), {1: counts.take})


def _sorted(n: int) -> Case:
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
