"""mlscale devices: list and show the device table."""

import argparse
import json
from typing import Any

from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.text import columns, csv_text, json_text, or_dash
from mlscale.data.devices import Device, device_keys, device_sources, load_device
from mlscale.text import number

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
        "show": "show every fact of a GPU, with its source",
    }
    commands = parser.add_commands("action", summaries)
    commands["list"].description = (
        "List the GPUs of the device table. Clocks, bandwidth and rates are the data sheet's; the "
        "last column counts the numbers of an entry that are from memory."
    )
    outputs.add_format(commands["list"], ("table", "csv", "json"))
    commands["show"].description = (
        "Show every fact of a GPU with its unit and its source, or 'unverified' where it is from "
        "memory. JSON is the form of a device file: edit what is printed of a GPU like yours."
    )
    what = "a name of the GPU, or a device file"
    commands["show"].add("device", type=options.device_key, metavar="DEVICE", help=what)
    outputs.add_format(commands["show"], ("table", "json"))


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says. Raises InputError."""
    if arguments.action == "list":
        print(_list(arguments.format), end="")
    else:
        device = load_device(arguments.device)
        print(_as_json(device) if arguments.format == "json" else _facts(device), end="")


def _list(form: str) -> str:
    rows = [_row(load_device(key)) for key in device_keys()]
    if form == "json":
        return json_text(rows)
    if form == "csv":
        return csv_text(rows)
    headings = {
        "key": "key", "name": "name", "cu_count": "CUs", "engine_mhz": "engine MHz",
        "clocks": "clocks", "memory_mhz": "memory MHz", "bandwidth_gb_per_s": "GB/s",
        "fp32_tflops": "FP32 TFLOPS", "tdp_w": "limit W", "unverified": "unverified",
    }  # fmt: skip
    lines = []
    for row in rows:
        low, high, gflops = row["engine_mhz_low"], row["engine_mhz_high"], row["fp32_gflops"]
        row["clocks"] = None if low is None else f"{low:g} to {high:g}"
        row["fp32_tflops"] = None if gflops is None else number(gflops / 1e3, 3)
        cells = [row[name] for name in headings]
        lines.append([cell if isinstance(cell, str) else or_dash(cell) for cell in cells])
    return columns(list(headings.values()), lines) + "\n"


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
