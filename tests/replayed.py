"""A GPU played back from a recording, in simulated time: no GPU, no waiting.

The recordings here are MADE (by the law below), not measured on anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlscale.collect.device import ClockError, DeviceInfo, EntryError, GpuError, Reading
from mlscale.collect.entries import Case, Entry

DEVICE = DeviceInfo(
    name="Made GPU",
    uuid="GPU-made-0001",
    cu_count=12,
    capability=90,
    engine_mhz=2000.0,
    memory_mhz=3000.0,
    memory_bus_bits=384,
    max_waves_per_cu=48,
    l2_bytes=2**20,
    versions={"driver": "1.0", "cuda": "12.8"},
)
OFFERED = (4, 8, 12)
ENGINE, MEMORY = 1600.0, 3000.0
SUPPORTED = {1500: (800, 1200), 3000: (800, 1200, 1600, 2000)}
IDLE_W = 50.0
KERNELS = ("--kernels", "few_threads,chase_16k")
NAMES = ("chase_16k", "few_threads_1", "few_threads_8", "few_threads_32", "few_threads_128")
COLLECT = ("collect", *KERNELS, "--no-counters")


def made_time_ms(kernel: str, cu_count: int, engine_mhz: float) -> float:
    """The law of the made recordings: launch, and work that CUs and engine share."""
    work = 1.0 + sum(map(ord, kernel)) % 7
    return 0.01 + 4.0 * work / cu_count * 1000.0 / engine_mhz


def made_power_w(cu_count: int, engine_mhz: float) -> float:
    """The law of the made recordings: static, and dynamic power per CU and clock."""
    return 60.0 + 5.0 * cu_count * engine_mhz / 1000.0


@dataclass
class Faults:
    """What goes wrong.

    lost_at: the sample, from 1, amid which the GPU is lost; stopped_at: likewise, with what is
    raised in place of that.
    throttle: for how many attempts each kernel finds the clocks held down, and by which bits.
    wrong, refused: kernels with a wrong result, or that do not run; no_right, refuse_clocks: of
    setting clocks. ignores_lock: the clock stays as it was.
    """

    lost_at: int | None = None
    stopped_at: tuple[int, BaseException] | None = None
    throttle: dict[str, int] = field(default_factory=dict)
    throttle_bits: int = 0x20
    wrong: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    no_right: bool = False
    refuse_clocks: bool = False
    ignores_lock: bool = False


class ReplayGpu:
    """A GPU whose kernels take the recorded times; its clock is simulated."""

    def __init__(
        self,
        faults: Faults | None = None,
        info: DeviceInfo = DEVICE,
        mode: str = "energy",
        offered: tuple[int, ...] = OFFERED,
        log: Path | None = None,
    ) -> None:
        self.info, self.faults, self.offered, self.log_path = (
            info,
            faults or Faults(),
            offered,
            log,
        )
        self.sensors = ReplaySensors(self, mode)
        self.now = self.busy_until = self.energy = 0.0
        self.power = IDLE_W
        self.engine: float = ENGINE
        self.batches = 0
        self.measured: list[tuple[str, int, float]] = []
        self.running: str | None = None
        self.open: list[str] = []
        self.submitted: list[str] = []

    def log(self, line: str) -> None:
        if self.log_path:
            with self.log_path.open("a") as file:
                file.write(line + "\n")

    def advance(self, seconds: float) -> None:
        busy = min(max(self.busy_until - self.now, 0.0), seconds)
        self.energy += self.power * busy + IDLE_W * (seconds - busy)
        self.now += seconds

    def cu_counts(self) -> tuple[int, ...]:
        return self.offered

    def partition(self, cu_count: int) -> "ReplayPartition":
        assert cu_count in self.offered
        return ReplayPartition(self, cu_count)

    def close(self) -> None:
        self.log("closed")
        assert not self.open, self.open


class ReplayPartition:
    def __init__(self, gpu: ReplayGpu, cu_count: int) -> None:
        self.gpu, self.cu_count = gpu, cu_count
        gpu.open.append(f"partition {cu_count}")

    def used_cu_count(self) -> int:
        return self.cu_count

    def prepare(self, entry: Entry, case: Case) -> "ReplayLaunch":
        if entry.name in self.gpu.faults.refused:
            raise EntryError(f"kernel '{entry.name}' needs more memory than there is")
        return ReplayLaunch(self, entry, case)

    def close(self) -> None:
        self.gpu.open.remove(f"partition {self.cu_count}")


class ReplayLaunch:
    def __init__(self, partition: ReplayPartition, entry: Entry, case: Case) -> None:
        self.gpu, self.entry, self.case = partition.gpu, entry, case
        self.cu_count, self.submitted = partition.cu_count, 0
        self.gpu.open.append(entry.name)
        self.gpu.running = entry.name
        self.gpu.measured.append((entry.name, partition.cu_count, self.gpu.engine))

    def submit(self, count: int) -> "ReplayBatch":
        gpu = self.gpu
        gpu.batches += 1
        gpu.submitted.append(self.entry.name)
        self.submitted += 1
        if self.submitted > 20:
            if gpu.faults.stopped_at and len(gpu.measured) == gpu.faults.stopped_at[0]:
                raise gpu.faults.stopped_at[1]
            if len(gpu.measured) == gpu.faults.lost_at:
                raise GpuError("the GPU was lost: GPU is lost")
        gpu.power = made_power_w(self.cu_count, gpu.engine)
        elapsed = count * made_time_ms(self.entry.name, self.cu_count, gpu.engine)
        start = max(gpu.now, gpu.busy_until)
        gpu.busy_until = start + elapsed / 1e3
        return ReplayBatch(gpu, gpu.busy_until, elapsed)

    def outputs(self, arguments: Iterable[int]) -> dict[int, np.ndarray]:
        found = {}
        for number in arguments:
            found[number] = np.array(self.case.arguments[number])
            if self.entry.name not in self.gpu.faults.wrong:
                positions, values = self.case.expected[number]
                found[number].reshape(-1)[positions] = values
        return found

    def close(self) -> None:
        self.gpu.open.remove(self.entry.name)


@dataclass
class ReplayBatch:
    gpu: ReplayGpu
    end: float
    elapsed: float

    def done(self) -> bool:
        return self.gpu.now >= self.end

    def elapsed_ms(self) -> float:
        self.gpu.advance(max(self.end - self.gpu.now, 0.0))
        return self.elapsed


class ReplaySensors:
    """Power is reported in steps of 20 ms, as counters are."""

    def __init__(self, gpu: ReplayGpu, mode: str) -> None:
        self.gpu, self.mode = gpu, mode
        self.reported = (-1.0, 0.0)
        self.locked: list[Any] = []

    def read(self) -> Reading:
        gpu = self.gpu
        gpu.advance(0.001)
        if gpu.now >= self.reported[0] + 0.02:
            self.reported = (gpu.now, gpu.energy)
        held = gpu.faults.throttle.get(gpu.running or "", 0) > 0
        return Reading(
            gpu.now,
            gpu.engine,
            MEMORY,
            gpu.faults.throttle_bits if held else 0x2,
            gpu.power if self.mode not in ("energy", "none") else None,
            self.reported[1] if self.mode == "energy" else None,
            40.0,
        )

    def pause(self, seconds: float) -> None:
        if seconds > 1 and self.gpu.running in self.gpu.faults.throttle:  # a rest between attempts
            self.gpu.faults.throttle[self.gpu.running] -= 1
        self.gpu.advance(seconds)

    def supported_clocks(self) -> dict[int, tuple[int, ...]]:
        return SUPPORTED

    def lock_clocks(self, engine_mhz: int | None, memory_mhz: int | None) -> None:
        if self.gpu.faults.no_right:
            raise ClockError("no right to set the engine clock: run as root, or leave out …")
        if self.gpu.faults.refuse_clocks:
            raise ClockError(f"the engine clock cannot be set to {engine_mhz} MHz: refused")
        self.locked.append((engine_mhz, memory_mhz))
        self.gpu.log(f"lock {engine_mhz} {memory_mhz}")
        if engine_mhz and not self.gpu.faults.ignores_lock:
            self.gpu.engine = engine_mhz

    def reset_clocks(self) -> None:
        if self.gpu.faults.no_right:
            raise ClockError("no right to set the engine clock: run as root, or leave out …")
        self.locked.append("reset")
        self.gpu.log("reset")
        self.gpu.engine = ENGINE


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Put a played-back GPU in the place of the real one, with a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def put(gpu: ReplayGpu) -> ReplayGpu:
        monkeypatch.setattr("mlscale.cli.collect.open_gpu", lambda: gpu)
        return gpu

    return put


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
