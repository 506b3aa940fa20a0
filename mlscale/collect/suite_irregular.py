"""Kernels that exchange, sort, count and look up: barriers, atomics, shared memory."""

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
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


def reduction(n: int) -> Entry:
    """Sums by block."""

    def case() -> Case:
        data, blocks = uniform(n), n // 4096
        at = sampled(blocks)
        expected = data.reshape(blocks, 4096)[at].sum(axis=1, dtype=np.float64)
        arguments = (data, np.zeros(blocks, np.float32))
        return Case(arguments, {1: (at, expected)}, 1e-4)

    return Entry(f"reduction_{size_name(n)}", "reduction", "reduction", n // 4096, 256, case)


def scan(n: int) -> Entry:
    """Prefix sums by block."""

    def case() -> Case:
        data, at = whole(n, 1000), sampled(n)
        sums = data.reshape(-1, 512).cumsum(axis=1).ravel()
        return Case((data, np.zeros_like(data)), {1: (at, sums[at])})

    return Entry(f"scan_{size_name(n)}", "scan", "scan", n // 512, 512, case)


def histogram_shared(n: int, skewed: bool) -> Entry:
    """Bins in shared memory, hit evenly or nearly all one bin."""
    name = "histogram_shared_skewed" if skewed else "histogram_shared"

    def case() -> Case:
        data = (whole(n, 256) // (85 if skewed else 1)).astype(np.uint8)
        arguments = (data, np.zeros(256, np.int32))
        return Case(arguments, {1: (np.arange(256), np.bincount(data, minlength=256))})

    return Entry(f"{name}_{size_name(n)}", name, "histogram_shared", n // 4096, 256, case)


def histogram_global(n: int, bins: int) -> Entry:
    """Atomic additions in global memory."""

    def case() -> Case:
        data = whole(n, bins)
        counts = np.bincount(data, minlength=bins)
        at = sampled(bins)
        return Case((data, np.zeros(bins, np.int32), np.int32(n)), {1: (at, counts[at])})

    name, source = f"histogram_global_{size_name(bins)}", "histogram_global"
    return Entry(name, source, source, blocks_for(n), 256, case)


def bitonic_block(n: int) -> Entry:
    """Sorting by block in shared memory; every second block falls."""

    def case() -> Case:
        data, at = whole(n, 2**31 - 1), sampled(n)
        keys = np.sort(data.reshape(-1, 1024), axis=1)
        return Case((data, np.zeros_like(data)), {1: (at, keys.ravel()[at])})

    return Entry(f"bitonic_block_{size_name(n)}", "bitonic_block", "bitonic_block",
                 n // 1024, 512, case)  # fmt: skip


def bitonic_step(n: int, run: int, distance: int) -> Entry:
    """One step of a sorting network over global memory."""

    def case() -> Case:
        data, at = whole(n, 2**31 - 1), sampled(n)
        partner = data[at ^ distance]
        low = (at & distance) == 0
        rising = (at & run) == 0
        expected = np.where(low == rising, np.minimum(data[at], partner),
                            np.maximum(data[at], partner))  # fmt: skip
        numbers = (np.int32(n // 2), np.int32(run), np.int32(distance))
        return Case((data, np.zeros_like(data), *numbers), {1: (at, expected)})

    name = f"bitonic_step_{size_name(distance)}"
    return Entry(name, "bitonic_step", "bitonic_step", blocks_for(n // 2), 256, case)


def fft_stage(n: int, half: int) -> Entry:
    """One stage of butterflies over global memory."""

    def case() -> Case:
        re, im, at = uniform(n), uniform(n, 1), sampled(n)
        signal = re.astype(np.complex128) + 1j * im
        low = at & ~half
        twiddle = np.exp(-1j * np.pi * (at % half) / half)
        sign = np.where(at & half, -1, 1)
        expected = signal[low] + sign * twiddle * signal[low + half]
        out = np.zeros_like(re)
        arguments = (re, im, out, out.copy(), np.int32(n // 2), np.int32(half))
        return Case(arguments, {2: (at, expected.real), 3: (at, expected.imag)}, 1e-5)

    return Entry(f"fft_stage_{size_name(half)}", "fft_stage", "fft_stage",
                 blocks_for(n // 2), 256, case)  # fmt: skip


def fft_block(n: int) -> Entry:
    """Transforms of 1024 numbers by block, in shared memory."""

    def case() -> Case:
        re, im = uniform(n), uniform(n, 1)
        checked = sampled(n // 1024)[:32]
        blocks = (re + 1j * im).reshape(-1, 1024)[checked]
        spectrum = np.fft.fft(blocks, axis=1).ravel()
        at = (checked[:, None] * 1024 + np.arange(1024)).ravel()
        out = np.zeros_like(re)
        expected = {2: (at, spectrum.real), 3: (at, spectrum.imag)}
        return Case((re, im, out, out.copy()), expected, 1e-5)

    return Entry(f"fft_block_{size_name(n)}", "fft_block", "fft_block", n // 1024, 512, case)


def spmv(rows: int, by_warp: bool) -> Entry:
    """Sparse matrix times vector, rows of 1 to 63 entries."""
    name = "spmv_warp" if by_warp else "spmv_scalar"

    def case() -> Case:
        begin = np.concatenate([[0], np.cumsum(1 + whole(rows, 63))]).astype(np.int32)
        column, value = whole(int(begin[-1]), rows, 1), uniform(int(begin[-1]), 2)
        x, at = uniform(rows, 3), sampled(rows)
        expected = _rows_times(begin, column, value, x, at)
        arguments = (begin, column, value, x, np.zeros(rows, np.float32), np.int32(rows))
        return Case(arguments, {4: (at, expected)}, 1e-4)

    blocks = blocks_for(rows * (32 if by_warp else 1))
    return Entry(f"{name}_{size_name(rows)}", name, name, blocks, 256, case)


def shared_conflict(stride: int, blocks: int = 2048, rounds: int = 512) -> Entry:
    """Reads of shared memory with bank conflicts."""

    def case() -> Case:
        words, n = whole(2048, 2**31 - 1).astype(np.uint32), blocks * 256
        at = sampled(n)
        total, thread = at.astype(np.uint32), at % 256
        for k in range(rounds):
            total = total + words[(thread * stride + k + (total & 32)) & 2047]
        return Case((words, np.zeros(n, np.uint32), np.int32(rounds)), {1: (at, total)})

    return Entry(f"shared_conflict_{stride}", "shared_conflict", "shared_conflict", blocks, 256,
                 case, (("STRIDE", str(stride)),))  # fmt: skip


def shared_heavy(blocks: int, rounds: int = 4096) -> Entry:
    """Dependent reads of shared memory at low occupancy."""

    def case() -> Case:
        words, n = whole(11264, 2**31 - 1).astype(np.uint32), blocks * 128
        at = sampled(n)
        place = at % 128
        for _ in range(rounds):
            place = (words[place] % 11264).astype(np.intp)
        return Case((words, np.zeros(n, np.uint32), np.int32(rounds)), {1: (at, place)})

    name = f"shared_heavy_{blocks}"
    return Entry(name, "shared_heavy", "shared_heavy", blocks, 128, case)


def _rows_times(
    begin: NDArray[np.int32],
    column: NDArray[np.int32],
    value: NDArray[np.float32],
    x: NDArray[np.float32],
    rows: Indices,
) -> Floats:
    spans = [slice(begin[row], begin[row + 1]) for row in rows]
    return np.array([value[s].astype(np.float64) @ x[column[s]] for s in spans])


ENTRIES = (
    *(reduction(n) for n in (4 * _M, 16 * _M, 64 * _M)),
    *(scan(n) for n in (4 * _M, 32 * _M)),
    *(histogram_shared(n, skewed=False) for n in (8 * _M, 64 * _M)),
    histogram_shared(16 * _M, skewed=True),
    *(histogram_global(8 * _M, bins) for bins in (16, 4096, _M)),
    *(bitonic_block(n) for n in (2 * _M, 16 * _M)),
    *(bitonic_step(16 * _M, 2 * distance, distance) for distance in (16, 4 * _M)),
    *(fft_stage(8 * _M, half) for half in (64, 2 * _M)),
    *(fft_block(n) for n in (2 * _M, 16 * _M)),
    *(spmv(rows, by_warp) for by_warp in (False, True) for rows in (_M // 8, _M)),
    *(shared_conflict(stride) for stride in (1, 2, 32)),
    *(shared_heavy(blocks) for blocks in (64, 1024)),
)
