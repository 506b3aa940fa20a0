"""A device file from what the GPU's tools print, and from a device of the table that is like it.

The tools are nvidia-smi -q -x, rocminfo, and ncu by the device attributes on its raw page.
"""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from mlscale.data.device import Device, multiples_mhz
from mlscale.data.device_table import (
    FILE_DEFAULTS,
    FILE_REQUIRED,
    find_device,
    load_device,
    shipped_keys,
)
from mlscale.errors import InputError
from mlscale.files import read_bytes

Facts = dict[str, Any]  # fields of a device by name

# What CUs of one compute capability, or of one gfx name, have in common.
_OF_A_CU = (
    "lanes_per_cu", "fp64_lanes_per_cu", "special_function_lanes_per_cu", "schedulers_per_cu",
    "wave_size", "max_waves_per_cu", "max_shared_bytes_per_cu", "registers_per_cu",
)  # fmt: skip
# What two boards of one name differ in, or what only a reader of the table needs.
_NOT_TAKEN = ("key", "name", "aliases", "unverified", "note", "datasheet")
# In which NVIDIA's GPUs offer their engine clocks, by generation [MHz].
_STEPS_MHZ = (15.0, 7.5, 405 / 32)
_ATTRIBUTE = "device__attribute_"
_CAPABILITY = "CC"  # the column of every launch on ncu's pages
# By field: the attribute of CUDA that ncu's raw page carries, and its unit in the field's.
_ATTRIBUTES: dict[str, tuple[str, float]] = {
    "cu_count": ("multiprocessor_count", 1),
    "schedulers_per_cu": ("num_schedulers_per_multiprocessor", 1),
    "wave_size": ("warp_size", 1),
    "max_waves_per_cu": ("max_warps_per_multiprocessor", 1),
    "max_shared_bytes_per_cu": ("max_shared_memory_per_multiprocessor", 1),
    "registers_per_cu": ("max_registers_per_multiprocessor", 1),
    "l2_bytes": ("l2_cache_size", 1),
    "memory_bus_bits": ("global_memory_bus_width", 1),
    "max_clock_mhz": ("max_gpu_frequency_khz", 1e-3),
}


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
    is_whole = same is not None and facts.get("cu_count", same.cu_count) == same.cu_count
    alike = same or _alike(facts)
    if alike and facts.get("vendor") == "AMD":
        facts["architecture"] = alike.architecture  # rocminfo has the name of the chip alone
    assumed = _assumed(facts, alike, whole=is_whole)
    if ratio and "lanes_per_cu" in assumed:
        assumed["fp64_lanes_per_cu"] = max(1, int(assumed["lanes_per_cu"] / ratio))
    known = facts | assumed
    lacking = tuple(field for field in FILE_REQUIRED if field != "key" and field not in known)
    name = str(facts["name"])
    values = {
        "key": key or _key(name),
        "name": name,
        **FILE_DEFAULTS,
        **dict.fromkeys(FILE_REQUIRED[1:]),
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
    """What the facts lack and a device of the table has; of an unlike board, or a part, its CUs."""
    if alike is None:
        return {}
    return {
        field: value
        for field, value in alike.as_dict().items()
        if field not in facts and (field not in _NOT_TAKEN if whole else field in _OF_A_CU)
    }


def device_facts(path: Path) -> tuple[str, Facts]:
    """The tool, and what its output says of the GPU, as fields of a device.

    fp64_ratio, of ncu alone, is FP32 lanes over FP64 lanes. Raises InputError on a file of
    another kind, and on one of several unlike GPUs.
    """
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    readers: dict[str, tuple[str, Callable[[str, Path], Facts]]] = {
        "nvidia-smi -q -x": ("<nvidia_smi_log", _of_nvidia_smi),
        "rocminfo": ("Marketing Name:", _of_rocminfo),
        "ncu": (_ATTRIBUTE, _of_ncu),
    }
    for tool, (mark, read) in readers.items():
        if mark in text:
            return tool, read(text, path)
    raise InputError(
        f"{path}: is neither XML of 'nvidia-smi -q -x', nor what rocminfo prints, nor a CSV of "
        f"'ncu --page raw --csv' with columns {_ATTRIBUTE}*"
    )


def _of_nvidia_smi(text: str, path: Path) -> Facts:
    if "<!ENTITY" in text:
        raise InputError(f"{path}: defines XML entities, which nvidia-smi does not; refused")
    try:
        gpus = ET.fromstring(text.strip()).findall("gpu")  # noqa: S314, entities are refused
    except ET.ParseError as error:
        raise InputError(f"{path}: is not whole XML: {error}") from None
    return _of_one([_of_nvidia_gpu(gpu) for gpu in gpus], path)


def _of_nvidia_gpu(gpu: ET.Element) -> Facts:
    def value(place: str) -> float | None:
        return _number(gpu.findtext(place))

    facts: Facts = {
        "name": _words(gpu.findtext("product_name")),
        "vendor": "NVIDIA",
        "architecture": _words(gpu.findtext("product_architecture")),
        "memory_transfers_per_cycle": 2,
        "max_clock_mhz": value("max_clocks/graphics_clock"),
    }
    pci = gpu.findtext("pci/pci_device_id") or ""
    if match := re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})10DE", pci.strip()):
        facts["pci_ids"] = [f"10de:{match[1].lower()}"]
    for field, limit in (("tdp_w", "default"), ("min_power_limit_w", "min"),
                         ("max_power_limit_w", "max")):  # fmt: skip
        places = (
            f"{part}/{limit}_power_limit" for part in ("gpu_power_readings", "power_readings")
        )
        facts[field] = next((v for v in map(value, places) if v is not None), None)
    clocks = {
        _number(memory.findtext("value")): [
            _number(clock.text) for clock in memory.findall("supported_graphics_clock")
        ]
        for memory in gpu.findall("supported_clocks/supported_mem_clock")
    }
    memory_mhz = sorted((clock for clock in clocks if clock), reverse=True)
    if memory_mhz:
        facts["supported_memory_mhz"] = memory_mhz
        facts |= _steps(sorted({clock for clock in clocks[memory_mhz[0]] if clock}))
    return facts


def _steps(clocks: list[float]) -> Facts:
    """Range and step of the engine clocks that are offered."""
    if not clocks:
        return {}
    steps = (
        step for step in _STEPS_MHZ if multiples_mhz(clocks[0], clocks[-1], step) == tuple(clocks)
    )
    even = {b - a for a, b in pairwise(clocks)}
    step = next(steps, even.pop() if len(even) == 1 and not clocks[0] % min(even) else None)
    return {"engine_clock_range_mhz": [clocks[0], clocks[-1]], "engine_clock_step_mhz": step}


def _of_rocminfo(text: str, path: Path) -> Facts:
    agents = re.split(r"^\s*Agent \d+\s*$", text, flags=re.MULTILINE)[1:]
    gpus = [agent for agent in agents if re.search(r"Device Type:\s*GPU", agent)]
    return _of_one([_of_rocm_agent(agent) for agent in gpus], path)


def _of_rocm_agent(agent: str) -> Facts:
    def text(label: str) -> str | None:
        match = re.search(rf"^\s*{re.escape(label)}:\s*(\S.*?)\s*$", agent, re.MULTILINE)
        return match[1] if match else None

    facts: Facts = {
        "name": text("Marketing Name"),
        "vendor": "AMD",
        "architecture": text("Name"),
        "shared_names": [text("Name")],
        "cu_count": _number(text("Compute Unit")),
        "wave_size": _number(text("Wavefront Size")),
        "max_waves_per_cu": _number(text("Max Waves Per CU")),
        "se_count": _number(text("Shader Engines")),
        "max_clock_mhz": _number(text("Max Clock Freq. (MHz)")),
    }
    if match := re.search(r"Chip ID:\s*\d+\(0x([0-9a-f]+)\)", agent):
        facts["pci_ids"] = [f"1002:{match[1]:0>4}"]
    if match := re.search(r"Segment:\s*GROUP\s+Size:\s*(\d+)", agent):
        facts["max_shared_bytes_per_cu"] = int(match[1]) * 1024
    return facts


def _of_ncu(text: str, path: Path) -> Facts:
    start = text.rfind("\n", 0, text.index(_ATTRIBUTE)) + 1  # of the line of the columns' names
    try:
        rows = list(csv.reader(text[start:].splitlines()))
    except csv.Error as error:
        raise InputError(f"{path}: is not valid CSV: {error}") from None
    header = rows[0]
    gpus = []
    for row in rows[1:]:
        attributes = {
            name.removeprefix(_ATTRIBUTE): cell
            for name, cell in zip(header, row, strict=False)
            if name.startswith(_ATTRIBUTE) or name == _CAPABILITY
        }
        if attributes.get("display_name"):
            gpus.append(_of_attributes(attributes))
    return _of_one(gpus, path)


def _of_attributes(attributes: dict[str, str]) -> Facts:
    facts: Facts = {
        "name": attributes["display_name"],
        "vendor": "NVIDIA",
        "memory_transfers_per_cycle": 2,
        "fp64_ratio": _number(attributes.get("single_to_double_precision_perf_ratio")),
    }
    for field, (attribute, unit) in _ATTRIBUTES.items():
        value = _number(attributes.get(attribute))
        facts[field] = None if value is None else _whole(value * unit)
    if memory_khz := _number(attributes.get("max_mem_frequency_khz")):
        facts["supported_memory_mhz"] = [_whole(memory_khz / 1e3)]
    major, minor = (attributes.get(f"compute_capability_{part}") for part in ("major", "minor"))
    if capability := f"{major}.{minor}" if major and minor else attributes.get(_CAPABILITY):
        facts["compute_capability"] = capability
    if pci := _number(attributes.get("gpu_pci_device_id")):
        facts["pci_ids"] = [f"10de:{int(pci) >> 16:04x}"]
    return facts


def _of_one(gpus: list[Facts], path: Path) -> Facts:
    """What is known of the GPU that all are. Raises InputError where they are none or unlike."""
    if not gpus or not all(gpu["name"] for gpu in gpus):
        raise InputError(f"{path}: names no GPU")
    names = sorted({str(gpu["name"]) for gpu in gpus})
    if len(names) > 1:
        raise InputError(f"{path}: is of several GPUs: {', '.join(names)}; keep one of them")
    return {field: value for field, value in gpus[0].items() if value is not None}


def _number(text: str | None) -> float | None:
    """The number that a text begins with, '700.00 W' or '64(0x40)'; None for 'N/A'.

    One of more than 18 digits is damaged, and none.
    """
    match = re.match(r"\s*(\d[\d,]{0,17}(?![\d,])(?:\.\d+)?)", text or "")
    return _whole(float(match[1].replace(",", ""))) if match else None


def _whole(value: float) -> float:
    """An int where the number is whole, as JSON prints it."""
    return int(value) if value == int(value) else value


def _words(text: str | None) -> str | None:
    words = (text or "").strip()
    return None if words in ("", "N/A") else words
