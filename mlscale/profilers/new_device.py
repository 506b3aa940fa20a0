"""A device file from what the GPU's tools print, and from a device of the table that is like it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlscale.data.device_file import DEFAULTS, REQUIRED
from mlscale.data.devices import Device, find_device, load_device, shipped_keys
from mlscale.errors import InputError
from mlscale.profilers.device_facts import Facts, device_facts

# What CUs of one compute capability, or of one gfx name, have in common.
_OF_A_CU = (
    "lanes_per_cu", "fp64_lanes_per_cu", "special_function_lanes_per_cu", "schedulers_per_cu",
    "wave_size", "max_waves_per_cu", "max_shared_bytes_per_cu", "registers_per_cu",
)  # fmt: skip
# What two boards of one name differ in, or what only a reader of the table needs.
_NOT_TAKEN = ("key", "name", "aliases", "unverified", "note", "datasheet")


@dataclass(frozen=True)
class Description:
    """The values of a device file.

    alike: the device of the table that lent the assumed fields, '' without one; lacking: fields
    that are required and null.
    """

    values: dict[str, Any]
    alike: str
    assumed: tuple[str, ...]
    lacking: tuple[str, ...]


def describe(paths: Sequence[Path], key: str | None = None) -> Description:
    """Put together what the tools' files say of one GPU. Raises InputError.

    key: how tables shall name it; None makes one from the name.
    """
    facts: Facts = {}
    sources: dict[str, str] = {}
    for path in paths:
        tool, of_file = device_facts(path)
        if facts and of_file["name"] != facts["name"]:
            raise InputError(f"{path}: is of '{of_file['name']}', {paths[0]} of '{facts['name']}'")
        new = {field: value for field, value in of_file.items() if field not in facts}
        facts |= new
        sources |= dict.fromkeys(new, tool)
    ratio = facts.pop("fp64_ratio", None)
    same = find_device(facts["name"], facts.get("cu_count"))
    alike = same or _alike(facts)
    assumed = _assumed(facts, alike, whole=same is not None)
    if ratio and "lanes_per_cu" in assumed:
        assumed["fp64_lanes_per_cu"] = max(1, int(assumed["lanes_per_cu"] / ratio))
    known = facts | assumed
    lacking = tuple(field for field in REQUIRED if field != "key" and field not in known)
    name = str(facts["name"])
    values = {
        "key": key or _key(name),
        "name": name,
        **DEFAULTS,
        **dict.fromkeys(REQUIRED[1:]),
        **known,
        "aliases": [name],
        "unverified": sorted(assumed),
        "sources": {field: tool for field, tool in sources.items() if field in facts},
    }
    return Description(values, alike.key if alike and assumed else "", tuple(assumed), lacking)


def _key(name: str) -> str:
    words = "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    return f"{words}-own" if words in shipped_keys() else words


def _alike(facts: Facts) -> Device | None:
    """The first device of the table with the same compute capability or gfx name."""
    gfx = facts.get("shared_names", [None])[0]
    for key in shipped_keys():
        device = load_device(key)
        capability = device.compute_capability
        if capability and capability == facts.get("compute_capability"):
            return device
        if gfx in device.shared_names:
            return device
    return None


def _assumed(facts: Facts, alike: Device | None, *, whole: bool) -> dict[str, Any]:
    """What the facts lack and a device of the table has; of an unlike board its CUs alone."""
    if alike is None:
        return {}
    return {
        field: value
        for field, value in alike.as_dict().items()
        if field not in facts and (field not in _NOT_TAKEN if whole else field in _OF_A_CU)
    }
