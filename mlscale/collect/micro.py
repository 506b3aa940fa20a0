"""The micro-benchmarks: latencies and throughputs of memory, Volkov's kernel, and what they say.

Sets follow the L2 cache: half of it stays in it, eight times it does not. A chase walks the lines
of one 2 MiB page after another, so that one load in 16 384 waits for a TLB. Every quantity is a
difference of two lengths, from which the launch itself falls out; they are far apart, so that 1 %
of noise in a time is less than 1.5 % in the difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mlscale.arrays import Indices
from mlscale.collect.cases import Case, bits, chase, places, sample
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Entry
from mlscale.data.devices import SECTOR_BYTES, Device, known_device
from mlscale.errors import InputError
from mlscale.papers.volkov import ComputeUnit
from mlscale.papers.wang_chu_gpus import LineFit, fit_dram_delay, fit_dram_latency

_LINE_WORDS, _PAGE_WORDS = 32, 2**19
_ROW_WORDS = 32  # of a thread: eight vectors of four words
_WORD_BYTES = 4
_NEAR_THE_TOP = 0.9
_CLOCKS = ["engine_mhz", "memory_mhz"]


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
    """All of them, for a device: a short and a long one of each quantity, then Volkov's kernels."""
    near = max(info.l2_bytes // 8 // _LINE_WORDS, 8) * _LINE_WORDS  # words, half of the cache
    far, wide, full = 16 * near, 2048 * info.cu_count, 1024 * info.cu_count
    many, few = (max(words // (_ROW_WORDS * wide), 1) for words in (far, near))
    # Transactions of a CU: in a row of each thread's words, in a round of shared memory.
    row, reads = 2048 * _ROW_WORDS * _WORD_BYTES / SECTOR_BYTES, 1024 * 16 / info.wave_size
    pairs = []
    for quantity, source, (threads, block), case, work, lengths in (
        ("dram_latency", "chase", (1, 1), partial(_walk, far), 1, (far // 64 + 1, far // 16 + 1)),
        ("l2_latency", "chase", (1, 1), partial(_walk, near), 1, (near // 16 + 1, near // 2 + 1)),
        ("shared_latency", "chase_shared", (1, 1), partial(_walk, 4096), 1, (2_000, 20_000)),
        ("dram_delay", "read", (wide, 256), partial(_read, wide, many), row * many, (1, 5)),
        ("l2_delay", "read", (wide, 256), partial(_read, wide, few), row * few, (8, 64)),
        ("shared_delay", "shared", (full, 1024), partial(_read_shared, full), reads, (500, 4_000)),
    ):
        for length in lengths:
            name, of_length = f"{quantity}_{length}", partial(case, length)
            entry = Entry(name, quantity, f"micro_{source}", {}, threads, block, of_length)
            pairs.append(Probe(quantity, work * length, entry))
    return (*pairs, *_volkovs(info, far))


def _walk(words: int, steps: int) -> Case:
    return chase(page_walk(words), words, steps)


def page_walk(words: int) -> Indices:
    """The first words of all lines of a set: page by page, at random within each."""
    lines = np.arange(0, words, _LINE_WORDS)
    chance = np.random.default_rng(0).random(lines.size)
    return lines[np.lexsort((chance, lines // _PAGE_WORDS))]


def _read(threads: int, rows: int, sweeps: int) -> Case:
    data = bits(_ROW_WORDS * rows * threads)
    sums = data.reshape(-1, threads, 4).sum((0, 2), np.uint32) * np.uint32(sweeps)
    arguments = (data, np.zeros(threads, np.uint32), np.uint32(data.size // 4), np.int32(sweeps))
    return Case(arguments, {1: sample(sums)})


def _read_shared(threads: int, rounds: int) -> Case:
    data, at = bits(1024), places(threads)
    sums = data[(at + 32 * np.arange(16)[:, None]) % 1024].sum(0, np.uint32) * np.uint32(rounds)
    return Case((data, np.zeros(threads, np.uint32), np.int32(rounds)), {1: (at, sums)})


def _volkovs(info: DeviceInfo, words: int) -> Iterator[Probe]:
    """So many warps on each CU, which together read the whole set once, a row after another."""
    for intensity, warps in product((1, 4, 16, 64, 256), (1, 2, 4, 8, 16, 32, 64)):
        threads = info.wave_size * warps * info.cu_count
        rounds = max(words // threads, 1)
        name, case = f"volkov_{warps}_{intensity}", partial(_volkov, threads, rounds)
        block, macros = min(info.wave_size * warps, 1024), {"INTENSITY": intensity}
        entry = Entry(name, "volkov", "micro_volkov", macros, threads, block, case)
        yield Probe("volkov", warps * rounds * (intensity + 1), entry, warps, intensity)


def _volkov(threads: int, rounds: int) -> Case:
    words = rounds * threads
    following = (np.arange(words, dtype=np.uint32) + np.uint32(threads)) % np.uint32(words)
    numbers = (np.float32(1), np.float32(0), np.int32(rounds))
    arguments = (following + np.uint32(0x3F800000), np.zeros(threads, np.uint32), *numbers)
    return Case(arguments, {1: sample(np.arange(threads))})


def gpu_document(samples: pd.DataFrame, info: DeviceInfo) -> dict[str, Any]:
    """What gpu.json says, from the samples.

    Where the device table lacks the device, there is no entry for wang-chu, and four schedulers a
    CU are assumed. Raises InputError where a benchmark failed.
    """
    cycles, ipc = measured_cycles(samples, probes(info))
    known = known_device(info.key)
    issue_per_cycle = known.schedulers_per_cu if known else 4
    return {
        "format_version": 1,
        "device": info.key,
        "name": info.name,
        "wang_chu": wang_chu_entry(cycles, known) if known else None,
        "compute_unit": asdict(compute_unit(cycles, ipc, info, issue_per_cycle)),
        "volkov": [
            {"warps": warps, "intensity": intensity, "ipc": rate}
            for (warps, intensity), rate in ipc.items()
        ],
        "settings": cycles.reset_index().to_dict("records"),
    }


def measured_cycles(
    samples: pd.DataFrame, probes: Sequence[Probe]
) -> tuple[pd.DataFrame, dict[tuple[int, int], float]]:
    """Cycles of the engine by quantity, and the rate of Volkov's kernel by warps and intensity.

    Cycles are of one load (latency), or between two transactions of a CU with all CUs at work
    (delay); a row for each setting of the clocks [MHz]. The rate is in warp-instructions per cycle
    and CU, at the highest clocks. Raises InputError where a kernel has no time, or a longer one
    took no longer.
    """
    times = samples.pivot_table("time_ms", _CLOCKS, "kernel", aggfunc="median")
    times = times.reindex(columns=[probe.entry.name for probe in probes])
    if missing := [str(name) for name in times.columns[times.isna().any()]]:
        raise InputError(f"micro-benchmarks failed: {', '.join(missing[:3])}")
    all_cycles = times.mul(1e3 * times.index.get_level_values("engine_mhz"), axis=0)
    pairs = [probe for probe in probes if probe.quantity != "volkov"]
    cycles = pd.DataFrame(index=all_cycles.index)
    for short, long in zip(pairs[::2], pairs[1::2], strict=True):
        longer = all_cycles[long.entry.name] - all_cycles[short.entry.name]
        if (longer <= 0).any():
            raise InputError(
                f"micro-benchmark {long.quantity}: the longer of two launches was not the slower; "
                "is something else running on the device?"
            )
        cycles[long.quantity] = longer / (long.work - short.work)
    fastest = all_cycles.iloc[-1]
    volkov = [probe for probe in probes if probe.quantity == "volkov"]
    return cycles, {(p.warps, p.intensity): p.work / float(fastest[p.entry.name]) for p in volkov}


def wang_chu_entry(cycles: pd.DataFrame, device: Device) -> dict[str, Any]:
    """A row of wang_chu_gpus.json: latencies and delays as Wang and Chu 2018, section IV-A.

    DRAM parameters are lines through the settings of the clocks, Eq. (4) and Table III; with one
    setting the latency is taken to follow the engine alone and the delay the memory alone, which
    the note says. The issue and FP64 delays follow from the device's lanes.
    """
    engine, memory = (cycles.index.get_level_values(clock).to_numpy() for clock in _CLOCKS)
    latency, delay = cycles["dram_latency"].to_numpy(), cycles["dram_delay"].to_numpy()
    note = f"Measured at {len(cycles)} settings of the clocks."
    if np.unique(engine / memory).size > 1:
        latency_line = fit_dram_latency(engine, memory, latency)
        note += f" DRAM latency: R2 {latency_line.r_squared:.3f}."
    else:
        latency_line = LineFit(0.0, float(latency.mean()), 0.0)
        note += " One ratio of clocks: the DRAM latency is a constant of engine cycles."
    if np.unique(memory).size > 1:
        delay_line = fit_dram_delay(engine, memory, delay)
        note += f" DRAM delay: R2 {delay_line.r_squared:.3f}."
    else:
        delay_line = LineFit(0.0, float(np.mean(delay * memory / engine)), 0.0)
        note += " One memory clock: the DRAM delay is a constant of memory cycles."
    return {
        "dram_latency_slope": latency_line.slope,
        "dram_latency_offset": latency_line.offset,
        "dram_delay_slope": delay_line.slope,
        "dram_delay_offset": delay_line.offset,
        **cycles.drop(columns=["dram_latency", "dram_delay"]).median(),
        "instruction_factor": 1,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": "mlscale collect --micro",
        "note": note,
    }


def compute_unit(
    cycles: pd.DataFrame,
    ipc: Mapping[tuple[int, int], float],
    info: DeviceInfo,
    issue_per_cycle: float,
) -> ComputeUnit:
    """The latencies and rates of a CU from Volkov's kernel and the read of DRAM.

    A and L: the line intensity A + L through the cycles of a loop of one warp alone. T: the median
    of the rates of arithmetic near the highest one. B: one warp's load, in the transactions that
    the DRAM gives a CU.
    """
    loops = {a: (a + 1) / rate for (warps, a), rate in ipc.items() if warps == 1}
    arithmetic, memory = np.polyfit(np.array([*loops]), np.array([*loops.values()]), 1)
    rates = np.array([rate * a / (a + 1) for (_, a), rate in ipc.items()])
    transactions = info.wave_size * _WORD_BYTES / SECTOR_BYTES
    return ComputeUnit(
        arithmetic_latency_cycles=max(float(arithmetic), 1.0),
        memory_latency_cycles=max(float(memory), 1.0),
        issue_per_cycle=issue_per_cycle,
        arithmetic_per_cycle=float(np.median(rates[rates >= _NEAR_THE_TOP * rates.max()])),
        memory_per_cycle=1 / (transactions * cycles["dram_delay"].iloc[-1]),
    )
