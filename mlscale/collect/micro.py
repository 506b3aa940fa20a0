"""The micro-benchmarks run on a GPU: samples at each setting of the clocks, all CUs at work."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlscale.collect import micro_kernels as kernels
from mlscale.collect.clocks import ClockKeeper, Clocks
from mlscale.collect.device import EntryError, GpuError, Launch, MeasuredGpu, Partition
from mlscale.collect.entries import Entry
from mlscale.collect.measuring import measure

_TIMES = 5


@dataclass(frozen=True)
class MemorySample:
    """Memory at one setting of the clocks; cycles are engine cycles.

    Attributes:
        engine_mhz: observed [MHz].
        memory_mhz: observed [MHz].
        dram_latency: of a load that misses the caches [cycles].
        l2_latency: of a load that hits the L2 cache [cycles].
        shared_latency: of a load from shared memory [cycles].
        dram_delay: between two 32-byte DRAM transactions of a CU, memory saturated [cycles].
        l2_delay: between two 32-byte L2 transactions of a CU [cycles].
        shared_delay: between two warp reads of shared memory of a CU [cycles].
    """

    engine_mhz: float
    memory_mhz: float
    dram_latency: float
    l2_latency: float
    shared_latency: float
    dram_delay: float
    l2_delay: float
    shared_delay: float

    def as_dict(self) -> dict[str, float]:
        """As a JSON value."""
        return asdict(self)


def measure_memory(
    gpu: MeasuredGpu,
    keeper: ClockKeeper,
    settings: Sequence[Clocks],
    progress: Callable[[int], object],
) -> list[MemorySample]:
    """A sample at each setting. Raises GpuError, also where a kernel's result is wrong."""
    samples = []
    for clocks in settings:
        keeper.set(clocks)
        partition = gpu.partition(gpu.info.cu_count)
        try:
            samples.append(_memory_sample(gpu, partition, clocks))
        finally:
            partition.close()
        progress(1)
    return samples


def _memory_sample(gpu: MeasuredGpu, partition: Partition, clocks: Clocks) -> MemorySample:
    engine: list[float] = []
    memory: list[float] = []

    def delay(reads: kernels.Read, launch: Launch) -> float:
        """Engine cycles of a CU between transactions: time x clock x CUs / transactions."""
        sample = measure(launch, gpu.sensors, 0.0, clocks.locked)
        engine.append(sample.engine_mhz or gpu.info.engine_mhz)
        memory.append(sample.memory_mhz or gpu.info.memory_mhz)
        cycles = sample.time_ms * engine[-1] * 1e3
        return cycles * partition.cu_count / reads.transactions

    with _checked(partition, kernels.L2_READ.entry) as reader:
        l2_delay = delay(kernels.L2_READ, reader)
    with _checked(partition, kernels.DRAM_READ.entry) as reader:
        dram_delay = delay(kernels.DRAM_READ, reader)
        dram_latency = _counted(partition, kernels.DRAM_CHASE, reader) / kernels.CHASE_STEPS
    shared_transactions = 32 * 16 * kernels.SHARED_ROUNDS
    return MemorySample(
        engine_mhz=float(np.median(engine)),
        memory_mhz=float(np.median(memory)),
        dram_latency=dram_latency,
        l2_latency=_counted(partition, kernels.L2_CHASE) / kernels.CHASE_STEPS,
        shared_latency=_counted(partition, kernels.SHARED_CHASE) / kernels.CHASE_STEPS,
        dram_delay=dram_delay,
        l2_delay=l2_delay,
        shared_delay=_counted(partition, kernels.SHARED_READS) / shared_transactions,
    )


def _counted(partition: Partition, entry: Entry, flush: Launch | None = None) -> float:
    """Cycles that the kernel's own clock counted: the median over a few launches.

    flush: launched before each, so that the L2 cache holds nothing of this kernel's data.
    """
    with _checked(partition, entry) as launch:
        counted = []
        for _ in range(_TIMES):
            if flush is not None:
                flush.submit(1).elapsed_ms()
            launch.submit(1).elapsed_ms()
            counted.append(float(launch.outputs((2,))[2][0]))
    return float(np.median(counted))


def measure_volkov(gpu: MeasuredGpu, progress: Callable[[int], object]) -> list[dict[str, Any]]:
    """Throughput of Volkov's kernel by warps and intensity: rows with `ipc`. Raises GpuError.

    Warp-instructions per cycle of the first CU, whose warps share a clock: the loads and
    multiply-adds, not the address and loop instructions beside them. The loads miss the L2 cache.
    """
    rows = []
    partition = gpu.partition(gpu.info.cu_count)
    try:
        with _checked(partition, kernels.DRAM_READ.entry) as flush:
            for intensity in kernels.INTENSITIES:
                for warps in kernels.WARPS:
                    entry = kernels.volkov(warps, intensity, partition.cu_count)
                    cycles = _volkov_cycles(partition, entry, warps, flush)
                    instructions = warps * kernels.VOLKOV_ROUNDS * (intensity + 1)
                    ipc = instructions / cycles
                    rows.append({"warps": warps, "intensity": intensity, "ipc": ipc})
                    progress(1)
    finally:
        partition.close()
    return rows


def _volkov_cycles(partition: Partition, entry: Entry, warps: int, flush: Launch) -> float:
    """From the first start to the last end of a warp of the first block, the median of a few."""
    with _checked(partition, entry) as launch:
        counted = []
        for _ in range(3):
            flush.submit(1).elapsed_ms()
            launch.submit(1).elapsed_ms()
            out = launch.outputs((2, 3))
            counted.append(float(out[3][:warps].max() - out[2][:warps].min()))
    return float(np.median(counted))


@contextmanager
def _checked(partition: Partition, entry: Entry) -> Iterator[Launch]:
    """The kernel, once its result was found right. Raises GpuError where it is not."""
    case = entry.case()
    try:
        launch = partition.prepare(entry, case)
    except EntryError as failure:
        raise GpuError(f"a micro-benchmark cannot run: {failure}") from None
    try:
        launch.submit(1).elapsed_ms()
        off = case.error(launch.outputs(tuple(case.expected)))
        if off > case.tolerance:
            raise GpuError(f"micro-benchmark '{entry.name}' gives a wrong result: off by {off:.1e}")
        yield launch
    finally:
        launch.close()
