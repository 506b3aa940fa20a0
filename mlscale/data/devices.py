"""The device table: what a GPU is made of, and the peaks that follow from it.

devices.json holds physical parameters only; every peak is derived here and tested against the
vendor's data sheet. A memory clock is always the one the vendor's tool lists. A device has the
same fields in devices.json, in a model file and here.
"""

import difflib
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mlscale.errors import InputError

SECTOR_BYTES = 32  # of one DRAM or L2 transaction, as NVIDIA's profilers count them

# What a field of a type accepts, and how an error message calls that.
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    int: ((int,), "a positive whole number"),
    float: ((int, float), "a positive number"),
}


@dataclass(frozen=True)
class Datasheet:
    """What the vendor prints, and the clocks [MHz] at which it holds; to check a device by."""

    engine_mhz: float
    memory_mhz: float
    bandwidth_gb_per_s: float
    fp32_gflops: float
    fp64_gflops: float
    source: str


@dataclass(frozen=True)
class Device:
    """One GPU. A CU is NVIDIA's SM; a wave is NVIDIA's warp; lanes work once per engine cycle.

    Attributes:
        key: the name in the device table.
        name: what the vendor calls it.
        vendor: who makes it.
        architecture: generation and chip.
        cu_count: CUs of the whole device.
        lanes_per_cu: FP32 multiply-adds a CU starts per cycle.
        fp64_lanes_per_cu: FP64 multiply-adds a CU starts per cycle.
        special_function_lanes_per_cu: transcendental results of a CU per cycle.
        schedulers_per_cu: wave instructions a CU issues per cycle at most, of all kinds; on
            NVIDIA parts the schedulers, without their dual issue.
        wave_size: threads per wave.
        max_waves_per_cu: waves resident on a CU at most.
        memory_bus_bits: width of the memory bus.
        memory_transfers_per_cycle: transfers on each wire per cycle of the listed memory clock.
        datasheet: the vendor's numbers; None for a simulated device.
        note: what else a reader must know.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    cu_count: int
    lanes_per_cu: int
    fp64_lanes_per_cu: int
    special_function_lanes_per_cu: int
    schedulers_per_cu: int
    wave_size: int
    max_waves_per_cu: int
    memory_bus_bits: int
    memory_transfers_per_cycle: int
    datasheet: Datasheet | None
    note: str

    def peak_bandwidth_gb_per_s(self, memory_mhz: float) -> float:
        """Peak DRAM bandwidth [GB/s, 1e9 bytes] at a memory clock as the vendor's tool lists it."""
        return self.memory_bus_bits / 8 * self.memory_transfers_per_cycle * memory_mhz / 1e3

    def peak_fp32_gflops(self, engine_mhz: float) -> float:
        """Peak FP32 rate of all CUs [GFLOPS]; a multiply-add counts as two operations."""
        return 2 * self.cu_count * self.lanes_per_cu * engine_mhz / 1e3

    def peak_fp64_gflops(self, engine_mhz: float) -> float:
        """Peak FP64 rate of all CUs [GFLOPS]; a multiply-add counts as two operations."""
        return 2 * self.cu_count * self.fp64_lanes_per_cu * engine_mhz / 1e3

    def as_dict(self) -> dict[str, object]:
        """The device as JSON carries it, for example inside a model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: object) -> "Device":
        """The device that as_dict gave. Raises InputError on what is no such dictionary."""
        device = _checked_fields(cls, values, "device")
        if device["datasheet"] is not None:
            sheet = _checked_fields(Datasheet, device["datasheet"], "datasheet")
            device["datasheet"] = Datasheet(**sheet)
        return cls(**device)


def device_keys() -> tuple[str, ...]:
    """The names of all devices of the table."""
    return tuple(_table())


def load_device(key: str) -> Device:
    """The device of that name. Raises InputError with the known names if there is none."""
    table = _table()
    if key not in table:
        close = difflib.get_close_matches(key.lower(), table, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(f"there is no device {key!r}; known are {', '.join(table)}{hint}")
    return Device.from_dict({"key": key, **table[key]})


@functools.cache
def _table() -> dict[str, dict[str, object]]:
    text = Path(__file__).with_name("devices.json").read_text(encoding="utf-8")
    devices: dict[str, dict[str, object]] = json.loads(text)["devices"]
    return devices


def _checked_fields(cls: type, values: object, what: str) -> dict[str, Any]:
    """Exactly the fields of a dataclass, each of its type; numbers positive and finite."""
    if not isinstance(values, Mapping):
        raise InputError(f"the {what} must be a table of fields, not {type(values).__name__}")
    types = {field.name: field.type for field in fields(cls)}
    if missing := types.keys() - values:
        raise InputError(f"the {what} lacks {', '.join(sorted(missing))}")
    if unknown := values.keys() - types:
        raise InputError(f"the {what} has unknown {', '.join(sorted(map(ascii, unknown)))}")
    for name, kind in types.items():
        if kind in _KINDS and not _fits(values[name], *_KINDS[kind][0]):
            shown = ascii(values[name])[:40]
            raise InputError(f"{name} of the {what} must be {_KINDS[kind][1]}, not {shown}")
    return dict(values)


def _fits(value: object, *types: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, types):
        return False
    return not isinstance(value, int | float) or 0 < value < math.inf
