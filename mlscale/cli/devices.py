"""mlscale devices: list and show the device table."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import (
    Line,
    columns,
    columns_wide,
    csv_text,
    facts,
    json_text,
    or_dash,
    sentences,
    shown,
    table,
)
from mlscale.data.devices import Device, device_keys, device_sources, devices_matching, load_device
from mlscale.text import shortened

TO_TURING = ("Maxwell", "Pascal", "Volta", "Turing")
FAMILIES = ("Blackwell", "Hopper", "Ada", "Ampere", "older", "AMD")  # newest first
SHORTEST_NAME = 8
_OTHER_COLUMNS = 45  # columns wide, beside those of key and name
MOST_ROWS = 20
_UNITS = {
    "_mhz": "MHz", "_w": "W", "_bytes": "bytes", "_bits": "bits", "_gflops": "GFLOPS",
    "_gb_per_s": "GB/s", "bytes_per_cu": "bytes",
}  # fmt: skip
_IN_WORDS = {  # facts that stand below the table of numbers, and what they are called there
    "aliases": "also called",
    "shared_names": "shares the names",
    "clock_control": "clocks are set by",
    "note": "note",
}
_NOT_IN_TABLE = ("key", "name", "datasheet", "unverified", *_IN_WORDS)


def add_arguments(parser: Parser) -> None:
    """Options of the command."""
    summaries = {
        "list": "list the GPUs that mlscale knows",
        "show": "show every fact about a GPU, with its source",
    }
    commands = parser.add_commands("action", summaries)
    commands["list"].description = (
        "List the GPUs of the device table: keys by family, or with PATTERN the facts of "
        "those that match. Clocks and bandwidth are from data sheets."
    )
    what = "part of a key, a name or an alias; case, spaces and dashes are ignored"
    commands["list"].add("pattern", nargs="?", metavar="PATTERN", help=what)
    outputs.add_format(commands["list"], ("table", "csv", "json"))
    commands["show"].description = (
        "Show every fact about a GPU with its unit and its source, or 'unverified' if it is "
        "from memory. The JSON is a device file: to describe your GPU, edit that of a similar one."
    )
    what = "a name of the GPU, or a device file"
    commands["show"].add("device", type=options.device_key, metavar="DEVICE", help=what)
    outputs.add_format(commands["show"], ("table", "json"))


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says. Raises InputError."""
    if arguments.action == "list":
        print(_list(arguments.format, arguments.pattern), end="")
    else:
        device = load_device(arguments.device)
        print(_as_json(device) if arguments.format == "json" else _facts(device), end="")


def _list(form: str, pattern: str | None) -> str:
    devices = devices_matching(pattern)
    rows = [_row(device) for device in devices]
    if form == "json":
        return json_text(rows)
    if form == "csv":
        return csv_text(rows)
    if pattern is None:
        lines = _families(devices)
        more = "Facts of some: mlscale devices list h100. Of one: mlscale devices show KEY."
    else:
        lines = _matches(rows)
        more = f"{len(device_keys())} GPUs in all. One: mlscale devices show {devices[0].key}."
    return shown([*lines, *sentences(more)])


def _families(devices: Sequence[Device]) -> list[Line]:
    families: dict[str, list[str]] = {}
    for device in sorted(devices, key=lambda device: (device.vendor, device.key)):
        generation = device.architecture.split()[0]
        family = "older" if generation in TO_TURING else generation
        families.setdefault(family if device.vendor == "NVIDIA" else "AMD", []).append(device.key)
    ranked = sorted(families.items(), key=lambda pair: FAMILIES.index(pair[0]))
    return facts((family, ", ".join(keys)) for family, keys in ranked)


def _matches(rows: Sequence[dict[str, Any]]) -> list[Line]:
    """The most asked facts of each GPU, in as many lines as an answer has."""
    headings = ["key", "name", "CUs", "engine MHz", "mem. MHz", "GB/s", "limit"]
    room = columns_wide() - _OTHER_COLUMNS - max(len(row["key"]) for row in rows[:MOST_ROWS])
    cells = []
    for row in rows:
        low, high, limit = row["engine_mhz_low"], row["engine_mhz_high"], row["tdp_w"]
        clocks = or_dash(row["engine_mhz"]) if low is None else f"{low:g}-{high:g}"
        memory, bandwidth = or_dash(row["memory_mhz"]), or_dash(row["bandwidth_gb_per_s"])
        name = row["name"].removeprefix("NVIDIA ").removeprefix("AMD ").removeprefix("GeForce ")
        name = shortened(name, max(room, SHORTEST_NAME))
        watts = "-" if limit is None else f"{limit:g} W"
        cells.append([row["key"], name, str(row["cu_count"]), clocks, memory, bandwidth, watts])
    lines = table(headings, cells[:MOST_ROWS])
    more = len(rows) - MOST_ROWS
    return [*lines, Line(f"and {more} more: --format csv")] if more > 0 else lines


def _row(device: Device) -> dict[str, Any]:
    sheet = device.datasheet
    low, high = device.engine_clock_range_mhz or (None, None)
    return {
        "key": device.key,
        "name": device.name,
        "cu_count": device.cu_count,
        "engine_mhz": sheet and sheet.engine_mhz,
        "engine_mhz_low": low,
        "engine_mhz_high": high,
        "memory_mhz": sheet and sheet.memory_mhz,
        "bandwidth_gb_per_s": sheet and sheet.bandwidth_gb_per_s,
        "fp32_gflops": sheet and sheet.fp32_gflops,
        "tdp_w": device.tdp_w,
        "unverified": len(device.unverified),
    }


def _facts(device: Device) -> str:
    """Every fact with its unit and source, then those in words."""
    facts, sources = device.as_dict(), device_sources(device.key)
    sheet = device.datasheet
    if sheet is not None:
        facts |= {f"datasheet.{name}": v for name, v in vars(sheet).items() if name != "source"}
    rows = []
    for name, value in facts.items():
        if name not in _NOT_IN_TABLE:
            unit = next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
            is_sourced = name not in device.unverified
            source = "; ".join(sources.get(name, ())) if is_sourced else "unverified"
            rows.append([name, _in_words(value), unit, source])
    lines = [f"{device.key}: {device.name}", columns(["fact", "value", "unit", "source"], rows)]
    if clocks := device.engine_clocks_mhz():
        lines.append(f"\noffers {len(clocks)} engine clocks, {clocks[0]:g} to {clocks[-1]:g} MHz")
    if sheet is not None:
        lines.append(f"data sheet: {sheet.source}")
    lines += [
        f"{called}: {_in_words(facts[name])}"
        for name, called in _IN_WORDS.items()
        if facts.get(name)
    ]
    return "\n".join(lines) + "\n"


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


def _as_json(device: Device) -> str:
    """The form of a device file, with the sources."""
    sources = {name: "; ".join(texts) for name, texts in device_sources(device.key).items()}
    facts = device.as_dict() | ({"sources": sources} if sources else {})
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
