"""The plan: which kernels of the suite, at which CU counts, clocks and power caps.

suite.json has a line for each kernel at a size: suite "full" has sizes for a GPU, "small" one size
of each that a processor runs in some milliseconds. Suite "micro" are the micro-benchmarks:
latencies and throughputs of memory, and Volkov's kernel.

Their sets follow the L2 cache: half of it stays in it, eight times it does not. A chase walks the
lines of one 2 MiB page after another, so that one load in 16 384 waits for a TLB. Every quantity is
a difference of two lengths, from which the launch itself falls out; they are far apart, so that 1 %
of noise in a time is less than 1.5 % in the difference.
"""

import fnmatch
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Indices
from mlscale.collect import cases
from mlscale.collect.cases import Case, bits, chase, places, sample
from mlscale.collect.device import BACKENDS, DeviceInfo
from mlscale.data.devices import SECTOR_BYTES
from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.papers.gpu_file import WORD_BYTES, Probe
from mlscale.parameters import parameter
from mlscale.text import near_names

KERNELS = Path(__file__).parent / "kernels"
_AUTO_COUNTS = 8
# Words of a cache line, of a page, and of the row that a thread reads: eight vectors of four.
_LINE_WORDS, _PAGE_WORDS, _ROW_WORDS = 32, 2**19, 32
_BLOCK = 256  # threads that read


@dataclass(frozen=True)
class Entry:
    """One kernel at one size: a row of the table.

    name: in the table, and of its function on the GPU, so that a profiler names it too.
    application: what it is a size of. source: the file in kernels/, without .cu, with its macros.
    threads: of the one-dimensional launch, rounded up to whole blocks. case: makes the arguments
    and what is expected, always the same. backends: that have what it needs.
    """

    name: str
    application: str
    source: str
    macros: dict[str, Any]
    threads: int
    block: int
    case: Callable[[], Case]
    backends: Sequence[str] = BACKENDS

    @property
    def text(self) -> str:
        """The source, with what makes it CUDA, HIP or OpenCL C before it."""
        files = (KERNELS / "languages.h", KERNELS / f"{self.source}.cu")
        return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def entries(suite: str) -> tuple[Entry, ...]:
    """The kernels of a suite, 'full' or 'small'."""
    rows = []
    for row in shipped_json(__file__, "suite.json")[suite]:
        name, arguments = row.pop("case")
        rows.append(Entry(**row, case=partial(getattr(cases, f"_{name}"), **arguments)))
    return tuple(rows)


def select(suite: str, patterns: Sequence[str], backend: str) -> tuple[Entry, ...]:
    """The kernels of a suite that are asked for and that the backend can run; all without patterns.

    patterns: names of kernels or of applications, * for any characters. Raises InputError.
    """
    names = [name for entry in entries(suite) for name in (entry.name, entry.application)]
    wanted: set[str] = set()
    for pattern in patterns or "*":
        matching = fnmatch.filter(names, pattern)
        if not matching:
            near = "".join(f"; is '{name}' meant?" for name in near_names(pattern, names, most=1))
            raise InputError(
                f"there is no kernel or application '{pattern}' in the suite '{suite}'{near}"
            )
        wanted.update(matching)
    can_run = [entry for entry in entries(suite) if backend in entry.backends]
    return tuple(entry for entry in can_run if wanted & {entry.name, entry.application})


@dataclass(frozen=True)
class Plan:
    """What to measure on a device: every kernel at every combination.

    cu_counts: as they are asked for, rising; what is granted, the table says. settings: values to
    set on the board, by 'engine_mhz', 'memory_mhz' and 'cap_w'; what is empty is left alone.
    repeat: samples of each kernel and configuration. power_s: seconds over which power is
    averaged; 0 measures none.
    """

    suite: str
    device: DeviceInfo
    entries: tuple[Entry, ...]
    cu_counts: tuple[int, ...]
    settings: dict[str, tuple[int, ...]]
    repeat: int = 1
    power_s: float = 0.0

    @property
    def configurations(self) -> int:
        """How many there are of each kernel."""
        return len(self.cu_counts) * math.prod(len(v) or 1 for v in self.settings.values())

    def record(self) -> dict[str, Any]:
        """The plan as JSON values; the kernels by name."""
        values = {**vars(self), "device": vars(self.device)}
        values["kernels"] = [entry.name for entry in values.pop("entries")]
        return dict(json.loads(json.dumps(values)))


def cu_counts(asked: Sequence[int] | None, device: DeviceInfo) -> tuple[int, ...]:
    """The CU counts to measure, rising. Raises InputError on counts the device does not have.

    asked None means up to eight, evenly spaced, all CUs among them. Those of a GPU that grants
    groups of CUs are rounded up to whole ones.
    """
    most = device.cu_count
    if asked and not device.cu_axis and {*asked} != {most}:
        raise InputError(
            f"{device.name} by {device.backend} cannot run on fewer than all {most} CUs (CUDA "
            f"12.4, HIP or PoCL can); leave out {parameter('cu_counts')}"
        )
    if asked and max(asked) > most:
        given = parameter("cu_counts", f"{max(asked)}")
        raise InputError(f"{given}: {device.name} has {most} CUs")
    steps = min(_AUTO_COUNTS, most) if device.cu_axis else 1
    counts = asked or np.linspace(0, most, steps + 1)[1:].round()
    group = 1 if device.cu_axis != "green contexts" else 8 if device.capability >= 90 else 2
    whole = (math.ceil(count / group) * group for count in counts)
    return tuple(sorted({min(count, most) for count in whole}))


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
