"""The device table: the GPUs that mlscale knows, by key and by the names that tools print.

devices.json holds physical parameters only; every peak is derived (mlscale/data/device.py) and
tested against the vendor's data sheet. devices_sources.json says where each number is from.
"""

import difflib
import functools
import json
import re
from pathlib import Path
from typing import Any

from mlscale.data.device import Datasheet, Device
from mlscale.errors import InputError

__all__ = [
    "SECTOR_BYTES",
    "Datasheet",
    "Device",
    "device_keys",
    "devices_named",
    "find_device",
    "load_device",
]

SECTOR_BYTES = 32  # of one DRAM or L2 transaction, as NVIDIA's profilers count them

# Words that tools print or leave out as they like.
_BRANDS = {"nvidia", "geforce", "tesla", "quadro", "amd", "radeon", "instinct", "tm"}
_MIG = re.compile(r"\s+MIG\s.*", re.IGNORECASE)
_PCI_OF_NVML = re.compile(r"0x([0-9a-f]{4})(10de)", re.IGNORECASE)
_CLOCK_TOLERANCE = 0.01


def device_keys() -> tuple[str, ...]:
    """The keys of all devices of the table."""
    return tuple(_table())


@functools.cache
def load_device(key: str) -> Device:
    """The device of that key. Raises InputError with the known keys if there is none."""
    table = _table()
    if key not in table:
        close = devices_named(key) or difflib.get_close_matches(key.lower(), table, n=1)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InputError(f"there is no device {key!r}; known are {', '.join(table)}{hint}")
    return Device.from_dict({"key": key, **table[key]})


def find_device(
    name: str,
    cu_count: float | None = None,
    engine_mhz: float | None = None,
    memory_mhz: float | None = None,
) -> Device | None:
    """The device of a key or of a name as a tool prints it; None if that is none, or several.

    name: in any case, with or without 'NVIDIA': what nvidia-smi, CUDA, DCGM and the profilers
    print, AMD's marketing name, or PCI ids ('10de:2330', NVML's '0x233010DE'). A name that
    several GPUs bear (gfx90a, A100) needs what devices_named takes to decide.

    Example:
        find_device("NVIDIA H100 80GB HBM3"), find_device("gfx942", cu_count=228)
    """
    own, _ = _bearers(name)
    keys = devices_named(name, cu_count, engine_mhz, memory_mhz)
    if len(keys) != 1 or (not own and cu_count is None):
        return None
    return load_device(keys[0])


def devices_named(
    name: str,
    cu_count: float | None = None,
    engine_mhz: float | None = None,
    memory_mhz: float | None = None,
) -> tuple[str, ...]:
    """The keys of the devices that a name may stand for.

    cu_count: of the whole device, by which AMD's gfx names and families are told apart.
    engine_mhz, memory_mhz: the highest clocks that the tool shows, where that leaves several.
    """
    own, shared = _bearers(name)
    keys = own or shared
    if cu_count is not None and (shared or len(keys) > 1):
        keys = tuple(key for key in keys if _table()[key]["cu_count"] == cu_count)
    for fields, clock_mhz in (
        (("engine_mhz", "max_clock_mhz"), engine_mhz),
        (("memory_mhz", "supported_memory_mhz"), memory_mhz),
    ):
        if clock_mhz is not None and len(keys) > 1:
            keys = tuple(key for key in keys if _has_clock(key, fields, clock_mhz)) or keys
    return keys


def _has_clock(key: str, fields: tuple[str, str], clock_mhz: float) -> bool:
    """Whether the data sheet's clock, or one of another field, is that one."""
    entry = _table()[key]
    of_sheet, of_entry = (entry["datasheet"] or {}).get(fields[0]), entry.get(fields[1])
    clocks = [of_sheet, *(of_entry if isinstance(of_entry, list) else [of_entry])]
    return any(clock and abs(clock_mhz / clock - 1) < _CLOCK_TOLERANCE for clock in clocks)


def _bearers(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The devices whose own name it is, or else those that share it with others."""
    if name in _table():
        return (name,), ()
    by_alias, by_shared_name = _names()
    plain = _plain(_PCI_OF_NVML.sub(r"\2:\1", _MIG.sub("", name)))
    own = by_alias.get(plain, ())
    return own, () if own else by_shared_name.get(plain, ())


def _plain(name: str) -> str:
    """A name without case, punctuation and brands."""
    words = re.findall("[a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in _BRANDS)


@functools.cache
def _names() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """By plain name: the devices whose own name it is, and those that share it."""
    own: dict[str, tuple[str, ...]] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for key, entry in _table().items():
        aliases = [key, entry["name"], *entry.get("aliases", ()), *entry.get("pci_ids", ())]
        for names, texts in ((own, aliases), (shared, entry.get("shared_names", ()))):
            for plain in dict.fromkeys(map(_plain, texts)):
                names[plain] = (*names.get(plain, ()), key)
    return own, shared


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("devices.json").read_text(encoding="utf-8")
    devices: dict[str, dict[str, Any]] = json.loads(text)["devices"]
    return devices
