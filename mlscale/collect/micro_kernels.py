"""The micro-benchmarks' kernels: latencies and throughputs of memory, and Volkov's kernel."""

from dataclasses import dataclass

import numpy as np

from mlscale.collect.entries import Case, Entry
from mlscale.data.devices import SECTOR_BYTES

CHASE_STEPS = 20_000
SHARED_ROUNDS = 1_000
VOLKOV_ROUNDS = 512
INTENSITIES = (1, 4, 16, 32, 64, 128, 256)
WARPS = (1, 2, 4, 8, 12, 16, 24, 32)
_NODE_WORDS = 32
_DRAM_WORDS = 128 * 2**20
_L2_WORDS = 2**18
_READ_BLOCKS = 2048


@dataclass(frozen=True)
class Read:
    """A kernel that reads a set: the entry, and how many 32-byte transactions a launch makes."""

    entry: Entry
    transactions: int


def chase(words: int, shared: bool = False) -> Entry:
    """Latency: dependent loads, 128 bytes apart in memory or at random in shared memory."""
    step = 1 if shared else _NODE_WORDS

    def case() -> Case:
        nodes = words // step
        order = np.random.default_rng(0).permutation(nodes) * step
        following = np.zeros(words, np.uint32)
        following[order] = np.roll(order, -1)
        place = int(np.flatnonzero(order == 0)[0])
        last = order[(place + 2 * CHASE_STEPS) % nodes]
        out, cycles = np.zeros(1, np.uint32), np.zeros(1, np.int64)
        expected = {1: (np.zeros(1, np.intp), np.array([last]))}
        return Case((following, out, cycles, np.int32(CHASE_STEPS)), expected)

    name = "chase_shared" if shared else f"chase_words_{words}"
    return Entry(name, "micro", "micro_chase", 1, 1, case, (("SHARED", str(int(shared))),))


def streaming_read(words: int, sweeps: int, blocks: int = _READ_BLOCKS) -> Read:
    """Throughput: all threads read a set of words several times."""

    def case() -> Case:
        data = np.random.default_rng(0).integers(0, 2**32, words, dtype=np.uint32)
        threads = blocks * 256
        first = data.reshape(-1, threads).sum(axis=0, dtype=np.uint32) * np.uint32(sweeps)
        out = np.zeros(threads, np.uint32)
        arguments = (data, out, np.uint32(words), np.int32(sweeps))
        return Case(arguments, {1: (np.arange(threads), first)})

    entry = Entry(f"read_words_{words}", "micro", "micro_read", blocks, 256, case)
    return Read(entry, sweeps * words * 4 // SECTOR_BYTES)


def shared_reads(rounds: int = SHARED_ROUNDS) -> Entry:
    """Throughput of shared memory: 32 warps of one block, 16 reads a round."""

    def case() -> Case:
        data = np.random.default_rng(0).integers(0, 2**32, 1024, dtype=np.uint32)
        threads = np.arange(1024)
        sums = sum(data[(threads + 32 * j) % 1024] for j in range(16))
        expected = {1: (threads, np.asarray(sums * np.uint32(rounds), dtype=np.uint32))}
        out, cycles = np.zeros(1024, np.uint32), np.zeros(1, np.int64)
        return Case((data, out, cycles, np.int32(rounds)), expected)

    return Entry("shared_reads", "micro", "micro_shared", 1, 1024, case)


def volkov(
    warps: int, intensity: int, cu_count: int, words: int = _DRAM_WORDS, rounds: int = VOLKOV_ROUNDS
) -> Entry:
    """Volkov's kernel: a block of `warps` warps on each CU, reading rows of the set in turn."""

    def case() -> Case:
        threads = 32 * warps * cu_count
        rows = words // threads
        following = (np.arange(words, dtype=np.uint32) + threads) % np.uint32(rows * threads)
        places = np.arange(threads)
        last = (places + rounds * threads) % (rows * threads)
        starts = np.zeros(warps * cu_count, np.int64)
        out = np.zeros(threads, np.uint32)
        numbers = (np.float32(1), np.float32(0), np.int32(rounds))
        arguments = (following.astype(np.uint32), out, starts, starts.copy(), *numbers)
        return Case(arguments, {1: (places, last)})

    name = f"volkov_{warps}_{intensity}"
    defines = (("INTENSITY", str(intensity)),)
    return Entry(name, "micro", "micro_volkov", cu_count, 32 * warps, case, defines)


DRAM_CHASE, L2_CHASE = chase(_DRAM_WORDS), chase(_L2_WORDS)
SHARED_CHASE, SHARED_READS = chase(4096, shared=True), shared_reads()
DRAM_READ, L2_READ = streaming_read(_DRAM_WORDS, 1), streaming_read(4 * 2**20 // 4, 64)
