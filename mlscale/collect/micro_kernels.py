"""The micro-benchmarks: latencies and throughputs of memory, and Volkov's kernel.

Sets follow the L2 cache: half of it stays in it, eight times it does not. A chase walks the lines
of one 2 MiB page after another, so that one load in 16 384 waits for a TLB, and the others hit it;
the throughputs are of all CUs at once. Time is kernel_tuner's, so every quantity is a difference
of two lengths, from which the launch itself falls out; they are far apart, so that 1 % of noise in
a time is less than 1.5 % in the difference.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.collect.cases import Case, bits
from mlscale.collect.device import DeviceInfo
from mlscale.collect.suite import Entry
from mlscale.data.devices import SECTOR_BYTES

INTENSITIES = (1, 4, 16, 64, 256)
WARPS = (1, 2, 4, 8, 16, 32, 64)
_LINE_WORDS, _PAGE_WORDS = 32, 2**19
_SHARED_WORDS = 4096
_MOST_BLOCK = 1024


@dataclass(frozen=True)
class Probe:
    """One launch that measures: time = work x a quantity + the launch.

    quantity: 'dram_latency' and so on, or 'volkov'; work: loads one after another, or transactions
    of a CU, or of Volkov's kernel instructions of a CU.
    """

    quantity: str
    work: float
    entry: Entry
    warps: int = 0
    intensity: int = 0


def probes(info: DeviceInfo) -> tuple[Probe, ...]:
    """All of them, for a device."""
    cached = max(info.l2_bytes // 8 // _LINE_WORDS, 8) * _LINE_WORDS  # words, half of the cache
    far = 16 * cached
    return (
        *(_chase("dram_latency", far, steps) for steps in (far // 64 + 1, far // 16 + 1)),
        *(_chase("l2_latency", cached, steps) for steps in (cached // 16 + 1, cached // 2 + 1)),
        *(_chase("shared_latency", _SHARED_WORDS, steps) for steps in (2_000, 20_000)),
        *(_read(info, "dram_delay", far, sweeps) for sweeps in (1, 5)),
        *(_read(info, "l2_delay", cached, sweeps) for sweeps in (8, 64)),
        *(_shared(info, rounds) for rounds in (500, 4_000)),
        *(_volkov(info, warps, alpha, far) for alpha in INTENSITIES for warps in WARPS),
    )


def _entry(
    source: str, name: str, case: partial[Case], threads: int, block: int, **macros: int
) -> Entry:
    return Entry(name, source, source, macros, threads, block, case)


def _chase(quantity: str, words: int, steps: int) -> Probe:
    shared = quantity == "shared_latency"
    case = partial(_chase_case, words, steps, shared)
    entry = _entry("micro_chase", f"{quantity}_{steps}", case, 1, 1, IN_SHARED=int(shared))
    return Probe(quantity, steps, entry)


def _chase_case(words: int, steps: int, shared: bool) -> Case:
    order = np.random.default_rng(0).permutation(words) if shared else page_walk(words)
    following = np.zeros(words, np.uint32)
    following[order] = np.roll(order, -1)
    at = (int(np.flatnonzero(order == 0)[0]) + steps) % len(order)
    arguments = (following, np.zeros(1, np.uint32), np.int32(steps))
    return Case(arguments, {1: lambda _: order[[at]]})


def page_walk(words: int) -> Indices:
    """The first words of all lines of a set: page by page, at random within each."""
    random = np.random.default_rng(0)
    pages = [
        np.arange(first, min(first + _PAGE_WORDS, words), _LINE_WORDS)
        for first in range(0, words, _PAGE_WORDS)
    ]
    return np.concatenate([random.permutation(page) for page in pages])


def _read(info: DeviceInfo, quantity: str, words: int, sweeps: int) -> Probe:
    threads = 256 * 8 * info.cu_count
    per_thread = 8 * max(words // (32 * threads), 1)  # vectors of four words, eight at once
    words = 4 * per_thread * threads
    case = partial(_read_case, words, threads, sweeps)
    entry = _entry("micro_read", f"{quantity}_{sweeps}", case, threads, 256)
    return Probe(quantity, sweeps * words * 4 / SECTOR_BYTES / info.cu_count, entry)


def _read_case(words: int, threads: int, sweeps: int) -> Case:
    data = bits(words)

    def sums(at: Indices) -> Floats:
        mine = data.reshape(-1, threads, 4)[:, at]
        return np.asarray(mine.sum(axis=(0, 2), dtype=np.uint32) * np.uint32(sweeps))

    arguments = (data, np.zeros(threads, np.uint32), np.uint32(words // 4), np.int32(sweeps))
    return Case(arguments, {1: sums})


def _shared(info: DeviceInfo, rounds: int) -> Probe:
    threads = 1024 * info.cu_count
    case = partial(_shared_case, threads, rounds)
    entry = _entry("micro_shared", f"shared_delay_{rounds}", case, threads, 1024)
    return Probe("shared_delay", 16 * rounds * 1024 / info.wave_size, entry)


def _shared_case(threads: int, rounds: int) -> Case:
    data = bits(1024)

    def sums(at: Indices) -> Floats:
        total = sum(data[(at + 32 * j) % 1024] for j in range(16))
        return np.asarray(total * np.uint32(rounds), np.uint32)

    return Case((data, np.zeros(threads, np.uint32), np.int32(rounds)), {1: sums})


def _volkov(info: DeviceInfo, warps: int, intensity: int, words: int) -> Probe:
    """So many warps on each CU, which together read the whole set once, a row after another."""
    threads = info.wave_size * warps * info.cu_count
    rounds = max(words // threads, 1)
    case = partial(_volkov_case, threads, rounds)
    block = min(info.wave_size * warps, _MOST_BLOCK)
    name = f"volkov_{warps}_{intensity}"
    entry = _entry("micro_volkov", name, case, threads, block, INTENSITY=intensity)
    return Probe("volkov", warps * rounds * (intensity + 1), entry, warps, intensity)


def _volkov_case(threads: int, rounds: int) -> Case:
    words = rounds * threads
    following = (np.arange(words, dtype=np.uint32) + np.uint32(threads)) % np.uint32(words)
    arguments = (
        following + np.uint32(0x3F800000),
        np.zeros(threads, np.uint32),
        *(np.float32(1), np.float32(0), np.int32(rounds)),
    )
    return Case(arguments, {1: lambda at: at})
