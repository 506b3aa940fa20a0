"""The micro-benchmarks: latencies and throughputs of memory, and Volkov's kernel.

Sets follow the L2 cache: half of it stays in it, eight times it does not. A chase walks the lines
of one 2 MiB page after another, so that one load in 16 384 waits for a TLB. Every quantity is a
difference of two lengths, from which the launch itself falls out; they are far apart, so that 1 %
of noise in a time is less than 1.5 % in the difference.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from mlscale.arrays import Indices
from mlscale.collect.cases import Case, bits, chase, places, sample
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Entry
from mlscale.data.devices import SECTOR_BYTES
from mlscale.papers.micro_benchmarks import WORD_BYTES, Probe

_LINE_WORDS, _PAGE_WORDS = 32, 2**19
_ROW_WORDS = 32  # of a thread: eight vectors of four words
_BLOCK = 256  # threads that read


def probes(info: DeviceInfo) -> Iterator[tuple[Probe, Entry]]:
    """All of them, for a device: a short and a long one of each quantity, then Volkov's kernels."""
    near = max(info.l2_bytes // 8 // _LINE_WORDS, 8) * _LINE_WORDS  # words, half of the cache
    far, full = 16 * near, 1024 * info.cu_count
    reads = 1024 * 16 / info.wave_size  # transactions of a CU in a round of shared memory
    for quantity, source, (threads, block), case, work, lengths in (
        ("dram_latency", "chase", (1, 1), partial(_walk, far), 1, (far // 64 + 1, far // 16 + 1)),
        ("l2_latency", "chase", (1, 1), partial(_walk, near), 1, (near // 16 + 1, near // 2 + 1)),
        ("shared_latency", "chase_shared", (1, 1), partial(_walk, 4096), 1, (2_000, 20_000)),
        ("dram_delay", "read", *_reading(info, far), (1, 5)),
        ("l2_delay", "read", *_reading(info, near), (8, 64)),
        ("shared_delay", "shared", (full, 1024), partial(_read_shared, full), reads, (500, 4_000)),
    ):
        for length in lengths:
            name, lengthened = f"{quantity}_{length}", partial(case, length)
            entry = Entry(name, quantity, f"micro_{source}", {}, threads, block, lengthened)
            yield Probe(name, quantity, work * length), entry
    yield from _volkovs(info, far)


def _walk(words: int, steps: int) -> Case:
    return chase(page_walk(words), words, steps)


def page_walk(words: int) -> Indices:
    """The first words of all lines of a set: page by page, at random within each."""
    lines = np.arange(0, words, _LINE_WORDS)
    chance = np.random.default_rng(0).random(lines.size)
    return lines[np.lexsort((chance, lines // _PAGE_WORDS))]


def _reading(info: DeviceInfo, words: int) -> tuple[tuple[int, int], Callable[..., Case], float]:
    """Threads and block, case, and a CU's transactions in a sweep over a set of so many words."""
    # As many threads as the CUs hold, or those that have a row in the set.
    fitting = words // _ROW_WORDS // info.cu_count // _BLOCK * _BLOCK
    threads = min(max(fitting, _BLOCK), info.threads_per_cu) * info.cu_count
    rows = max(words // (_ROW_WORDS * threads), 1)
    transactions = rows * threads * _ROW_WORDS * WORD_BYTES / SECTOR_BYTES / info.cu_count
    return (threads, _BLOCK), partial(_read, threads, rows), transactions


def _read(threads: int, rows: int, sweeps: int) -> Case:
    data = bits(_ROW_WORDS * rows * threads)
    sums = data.reshape(-1, threads, 4).sum((0, 2), np.uint32) * np.uint32(sweeps)
    arguments = (data, np.zeros(threads, np.uint32), np.uint32(data.size // 4), np.int32(sweeps))
    return Case(arguments, {1: sample(sums)})


def _read_shared(threads: int, rounds: int) -> Case:
    data, at = bits(1024), places(threads)
    sums = data[(at + 32 * np.arange(16)[:, None]) % 1024].sum(0, np.uint32) * np.uint32(rounds)
    return Case((data, np.zeros(threads, np.uint32), np.int32(rounds)), {1: (at, sums)})


def _volkovs(info: DeviceInfo, words: int) -> Iterator[tuple[Probe, Entry]]:
    """So many warps on each CU, which together read the whole set once, a row after another."""
    held = [n for n in (1, 2, 4, 8, 16, 32, 64) if n * info.wave_size <= info.threads_per_cu]
    for intensity, warps in product((1, 4, 16, 64, 256), held):
        threads = info.wave_size * warps * info.cu_count
        rounds = max(words // threads, 1)
        name, case = f"volkov_{warps}_{intensity}", partial(_volkov, threads, rounds)
        block, macros = min(info.wave_size * warps, 1024), {"INTENSITY": intensity}
        entry = Entry(name, "volkov", "micro_volkov", macros, threads, block, case)
        work = warps * rounds * (intensity + 1)
        yield Probe(name, "volkov", work, warps, intensity), entry


def _volkov(threads: int, rounds: int) -> Case:
    words = rounds * threads
    following = (np.arange(words, dtype=np.uint32) + np.uint32(threads)) % np.uint32(words)
    numbers = (np.float32(1), np.float32(0), np.int32(rounds))
    arguments = (following + np.uint32(0x3F800000), np.zeros(threads, np.uint32), *numbers)
    return Case(arguments, {1: sample(np.arange(threads))})
