"""What collecting needs of a GPU, and how it fails; cuda_device.py is the real one.

Tests put a replay of recordings in its place.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlscale.collect.entries import Case, Entry
from mlscale.errors import InputError

# NVML's clocks-event reasons: those that lower the clock, and how messages call them.
THROTTLING = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
}


class GpuError(InputError):
    """The GPU or its driver is not there, or was lost: nothing more can be measured."""


class EntryError(InputError):
    """One kernel cannot run on this GPU; the others can."""


class ClockError(InputError):
    """A clock cannot be set: no right to, not offered, or refused."""


@dataclass(frozen=True)
class DeviceInfo:
    """What is measured on.

    Attributes:
        name: as the driver calls it.
        uuid: of this one board.
        cu_count: all its multiprocessors.
        capability: compute capability, times ten.
        engine_mhz: highest engine clock [MHz].
        memory_mhz: highest memory clock [MHz].
        memory_bus_bits: width of the memory bus.
        max_waves_per_cu: warps resident on a multiprocessor at most.
        l2_bytes: size of the L2 cache.
        versions: of driver, CUDA and bindings.
    """

    name: str
    uuid: str
    cu_count: int
    capability: int
    engine_mhz: float
    memory_mhz: float
    memory_bus_bits: int
    max_waves_per_cu: int
    l2_bytes: int
    versions: dict[str, str]


@dataclass(frozen=True)
class Reading:
    """The sensors at one moment; None where the board has no such sensor.

    time_s: of a steady clock [s]; engine_mhz, memory_mhz [MHz]; reasons: NVML's clocks-event bits;
    power_w [W]; energy_j: since the driver was loaded [J]; temperature_c [degrees Celsius].
    """

    time_s: float
    engine_mhz: float | None
    memory_mhz: float | None
    reasons: int
    power_w: float | None
    energy_j: float | None
    temperature_c: float | None


class Sensors(Protocol):
    """The board's sensors and clocks."""

    @property
    def mode(self) -> str:
        """How power is sensed, a key of measuring.MODES."""
        ...

    def read(self) -> Reading:
        """The sensors now. Raises GpuError when the board is lost."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait."""
        ...

    def supported_clocks(self) -> dict[int, tuple[int, ...]]:
        """Engine clocks by memory clock [MHz]; empty where the board does not list them."""
        ...

    def lock_clocks(self, engine_mhz: int | None, memory_mhz: int | None) -> None:
        """Hold clocks [MHz]; None leaves one alone. Raises ClockError."""
        ...

    def reset_clocks(self) -> None:
        """Give both clocks back to the driver. Raises ClockError."""
        ...


class Batch(Protocol):
    """Launches that were put on the GPU's queue together."""

    def done(self) -> bool:
        """Whether the GPU is through with them. Raises GpuError where they failed."""
        ...

    def elapsed_ms(self) -> float:
        """Wait for them; the time between the events around them [ms]. Raises GpuError."""
        ...


class Launch(Protocol):
    """A kernel with its buffers on the GPU."""

    def submit(self, count: int) -> Batch:
        """Queue that many launches between two events. Raises GpuError or EntryError."""
        ...

    def outputs(self, arguments: tuple[int, ...]) -> dict[int, NDArray[Any]]:
        """The content of those buffers."""
        ...

    def close(self) -> None:
        """Free the buffers."""
        ...


class Partition(Protocol):
    """Some of the GPU's multiprocessors, or all."""

    @property
    def cu_count(self) -> int:
        """How many were granted."""
        ...

    def used_cu_count(self) -> int:
        """How many different ones a probe kernel ran on."""
        ...

    def prepare(self, entry: Entry, case: Case) -> Launch:
        """Compile the kernel and fill its buffers. Raises EntryError."""
        ...

    def close(self) -> None:
        """Give the multiprocessors back."""
        ...


class MeasuredGpu(Protocol):
    """A GPU to measure on."""

    @property
    def info(self) -> DeviceInfo:
        """What it is."""
        ...

    @property
    def sensors(self) -> Sensors:
        """Its sensors and clocks."""
        ...

    def cu_counts(self) -> tuple[int, ...]:
        """The CU counts that it can grant, rising; the last is all."""
        ...

    def partition(self, cu_count: int) -> Partition:
        """That many multiprocessors, one of cu_counts(). Raises GpuError."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


def scalar_or_buffer(argument: NDArray[Any] | np.generic) -> tuple[NDArray[Any], bool]:
    """An argument as an array of its own, and whether it is a buffer (else passed by value)."""
    return np.array(argument, order="C"), isinstance(argument, np.ndarray)
