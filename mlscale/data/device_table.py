"""The device table: the GPUs that mlscale knows, by key and by the names that tools print.

devices.json holds physical parameters only; every peak is derived (mlscale/data/device.py) and
tested against the vendor's data sheet. devices_sources.json says where each number is from. A
device of one's own, a JSON file with the fields of a device, is in the table of this process once
it is registered; tables and models made with it carry its facts and register it where they are
read.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlscale.data.device import Device
from mlscale.errors import InputError, warn
from mlscale.files import parse_json_object, read_bytes, shipped_json

# Words that tools print or leave out as they like.
_BRANDS = {"nvidia", "geforce", "tesla", "quadro", "amd", "radeon", "instinct", "tm"}
_MIG = re.compile(r"\s+MIG\s.*", re.IGNORECASE)
_PCI_OF_NVML = re.compile(r"0x([0-9a-f]{4})(10de)", re.IGNORECASE)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*")  # of a device file
_SHEET_TOLERANCE = 0.05  # of a peak; the table's sheets round by up to 2.5 %
_DERIVED_FROM = {
    "bandwidth_gb_per_s": "memory_bus_bits / 8 x memory_transfers_per_cycle x memory_mhz / 1000",
    "fp32_gflops": "cu_count x lanes_per_cu x fp32_issue_factor x 2 x engine_mhz / 1000",
    "fp64_gflops": "cu_count x fp64_lanes_per_cu x 2 x engine_mhz / 1000",
}

# What a device file may leave out although every device has it.
FILE_DEFAULTS: dict[str, Any] = {
    "vendor": "unknown",
    "architecture": "unknown",
    "datasheet": None,
    "note": "",
}


def device_keys() -> tuple[str, ...]:
    """The keys of all devices of the table, and of those of one's own."""
    return tuple(_table())


def shipped_keys() -> tuple[str, ...]:
    """The keys of the devices that mlscale brings along."""
    return tuple(_shipped())


@functools.cache
def load_device(key: str) -> Device:
    """The device of that key. Raises InputError if there is none."""
    table = _table()
    if key not in table:
        from difflib import get_close_matches

        close = devices_named(key) or get_close_matches(key.lower(), table, n=1)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(
            f"there is no device {key!r}; {hint}'mlscale devices list' names those of the table, "
            "and a device file describes another (docs/devices.md)"
        )
    return Device.from_dict({"key": key, **table[key]})


def known_device(key: str) -> Device | None:
    """The device of that key; None where the table has none."""
    return load_device(key) if key in device_keys() else None


def find_device(name: str, cu_count: float | None = None) -> Device | None:
    """The device of a key or of a name as a tool prints it; None if that is none, or several.

    name: in any case, with or without 'NVIDIA': what nvidia-smi, CUDA, DCGM and the profilers
    print, AMD's marketing name, or PCI ids ('10de:2330', NVML's '0x233010DE'). A name that
    several GPUs bear (gfx90a, A100) needs the number of compute units to decide.

    Example:
        find_device("NVIDIA H100 80GB HBM3"), find_device("gfx942", cu_count=228)
    """
    own, _ = _bearers(name)
    keys = devices_named(name, cu_count)
    if len(keys) != 1 or (not own and cu_count is None):
        return None
    return load_device(keys[0])


def devices_named(name: str, cu_count: float | None = None) -> tuple[str, ...]:
    """The keys of the devices that a name may stand for.

    cu_count: of the whole device, by which AMD's gfx names and families are told apart.
    """
    own, shared = _bearers(name)
    keys = own or shared
    if cu_count is not None and (shared or len(keys) > 1):
        keys = tuple(key for key in keys if _table()[key]["cu_count"] == cu_count)
    return keys


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
    """By plain name: the devices whose own name it is, and those that share it.

    A device of one's own takes its names away from the table's.
    """
    own: dict[str, tuple[str, ...]] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for key, entry in _table().items():
        aliases = [key, entry["name"], *entry.get("aliases", ()), *entry.get("pci_ids", ())]
        for names, texts in ((own, aliases), (shared, entry.get("shared_names", ()))):
            for plain in dict.fromkeys(map(_plain, texts)):
                others = () if key in _registered and names is own else names.get(plain, ())
                names[plain] = (*others, key)
    return own, shared


_registered: dict[str, dict[str, Any]] = {}  # the devices of one's own, in this process


def register_device(device: Device) -> None:
    """Make a device known by its key in this process; one of the shipped table stays as it is.

    Raises InputError where the key was registered with other facts.
    """
    entry = device.as_dict()
    key = device.key
    del entry["key"]
    if key in _shipped():
        return
    before = _registered.get(key, entry)
    if before != entry:
        differing = [f for f in before.keys() | entry if before.get(f) != entry.get(f)]
        raise InputError(
            f"device '{key}' is described in two ways, which differ in "
            f"{', '.join(sorted(differing))}; use one device file for all tables and models"
        )
    _registered[key] = entry
    for lookup in (_table, _names, load_device):
        lookup.cache_clear()


def load_device_file(path: Path | str) -> Device:
    """Read a device file and make its device known by its key in this process.

    The file is a JSON object with the fields of Device. Those that peaks need are required;
    `name` is the key, where it is left out. `sources`, from field to text, is for readers. Raises
    InputError, one line with all that is missing or wrong; warns where its data sheet has other
    peaks than follow from its fields.

    Example:
        device = load_device_file("my-gpu.json")
        imported = mlscale.import_profile("export.csv", device=device.key)
    """
    path = Path(path)
    values = parse_json_object(read_bytes(path), str(path))
    key = values.get("key")
    if key in shipped_keys():
        raise InputError(f"{path}: key '{key}' is in the device table; give yours another key")
    try:
        device = _described(values)
    except InputError as error:
        raise InputError(
            f"{path}: {error}; docs/devices.md says what each field is, 'mlscale devices show KEY "
            "--format json' prints an entry to start from"
        ) from None
    if not _KEY.fullmatch(device.key):
        raise InputError(
            f"{path}: key '{device.key}' must be small letters, digits, '.', '-' and '_'"
        )
    register_device(device)
    for name, (derived, printed) in device.derived_and_printed().items():
        if abs(derived / printed - 1) > _SHEET_TOLERANCE:
            warn(
                f"{path}: {name} of the data sheet is {printed:g}, but {_DERIVED_FROM[name]} give "
                f"{derived:.6g}, which predictions use: one of these numbers is wrong"
            )
    return device


def own_devices() -> tuple[Device, ...]:
    """The devices that were registered in this process."""
    return tuple(map(load_device, _registered))


def _described(values: Any) -> Device:
    """The device that a device file, or the metadata of a table, describes. Raises InputError."""
    if isinstance(values, Mapping):
        values = {"name": values.get("key"), **FILE_DEFAULTS, **values}
        values.pop("sources", None)
    return Device.from_dict(values)


def register_facts(metadata: Mapping[str, Any], source: str) -> None:
    """Register the device of one's own whose facts a table or a model carries, if it has any.

    Raises InputError, naming the source, on damaged facts.
    """
    if "device_facts" in metadata:
        try:
            register_device(_described(metadata["device_facts"]))
        except InputError as error:
            raise InputError(f"{source}: device_facts: {error}") from None


def facts_to_carry(key: str) -> dict[str, Any]:
    """What the metadata of a table of that device must hold: the facts of one's own device."""
    return {"device_facts": load_device(key).as_dict()} if key in _registered else {}


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    return {**_shipped(), **_registered}


@functools.cache
def _shipped() -> dict[str, dict[str, Any]]:
    devices: dict[str, dict[str, Any]] = shipped_json(__file__, "devices.json")["devices"]
    return devices


@functools.cache
def device_sources(key: str) -> dict[str, tuple[str, ...]]:
    """By field of a device of the shipped table: what its number was taken from, spelt out."""
    document = shipped_json(__file__, "devices_sources.json")
    return {
        name: tuple(document["sources"][source] for source in sources)
        for name, sources in document["devices"].get(key, {}).items()
    }
