"""mlscale devices: list and show the device table."""

import argparse
import json
from typing import Any

from mlscale.cli import options, outputs
from mlscale.cli.text import columns, csv_text, or_dash
from mlscale.data.devices import Device, device_keys, device_sources, load_device
from mlscale.text import number

_UNITS = {
    "_mhz": "MHz", "_w": "W", "_bytes": "bytes", "_bits": "bits", "_gflops": "GFLOPS",
    "_gb_per_s": "GB/s", "bytes_per_cu": "bytes",
}  # fmt: skip
# Facts that are words: lines below the table of numbers, and what they are called there.
_WORDS = {
    "aliases": "also called",
    "shared_names": "shares the names",
    "clock_control": "clocks are set by",
    "note": "note",
}
_NO_FACTS = ("key", "name", "datasheet", "unverified", *_WORDS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lists = actions.add_parser(
        "list",
        help="list the GPUs that mlscale knows",
        description="List the GPUs of the device table. Clocks, bandwidth and rates are the data "
        "sheet's; the last column counts the numbers of an entry that are from memory.",
    )
    outputs.add_format(lists, ("table", "csv", "json"))
    show = actions.add_parser(
        "show",
        help="show every fact of a GPU, with its source",
        description="Show every fact of a GPU with its unit and its source; what is from memory, "
        "not from a source, is marked as unverified. JSON is the form of a device file: edit what "
        "is printed of a GPU that is like yours.",
    )
    show.add_argument(
        "device",
        type=options.known_device_key,
        metavar="DEVICE",
        help="a name of the GPU, or a device file",
    )
    outputs.add_format(show, ("table", "json"))


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says. Raises InputError."""
    match arguments.action:
        case "list":
            print(_list(arguments.format), end="")
        case "show":
            device = load_device(arguments.device)
            print(_as_json(device) if arguments.format == "json" else _facts(device), end="")


def _list(form: str) -> str:
    rows = [_row(load_device(key)) for key in device_keys()]
    if form == "json":
        return json.dumps(rows, indent=1) + "\n"
    if form == "csv":
        return csv_text(rows)
    headers = [
        "key", "name", "CUs", "engine MHz", "clocks", "memory MHz", "GB/s", "FP32 TFLOPS",
        "limit W", "unverified",
    ]  # fmt: skip
    cells = [
        [
            row["key"],
            row["name"],
            str(row["cu_count"]),
            or_dash(row["engine_mhz"]),
            "-"
            if row["engine_mhz_low"] is None
            else f"{row['engine_mhz_low']:g} to {row['engine_mhz_high']:g}",
            or_dash(row["memory_mhz"]),
            or_dash(row["bandwidth_gb_per_s"]),
            "-" if row["fp32_gflops"] is None else number(row["fp32_gflops"] / 1e3, 3),
            or_dash(row["tdp_w"]),
            str(row["unverified"]),
        ]
        for row in rows
    ]
    return columns(headers, cells) + "\n"


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
    values = device.as_dict()
    if device.datasheet is not None:
        sheet = vars(device.datasheet)
        values |= {f"datasheet.{name}": v for name, v in sheet.items() if name != "source"}
    sources = device_sources(device.key)
    rows = []
    for name, value in values.items():
        if name in _NO_FACTS:
            continue
        source = "unverified" if name in device.unverified else "; ".join(sources.get(name, ()))
        rows.append([name, _value(value), _unit(name), source])
    lines = [f"{device.key}: {device.name}", columns(["fact", "value", "unit", "source"], rows)]
    if clocks := device.engine_clocks_mhz():
        lines.append(f"\noffers {len(clocks)} engine clocks, {clocks[0]:g} to {clocks[-1]:g} MHz")
    if device.datasheet is not None:
        lines.append(f"data sheet: {device.datasheet.source}")
    lines += [
        f"{title}: {_value(values[name])}" for name, title in _WORDS.items() if values.get(name)
    ]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


def _unit(name: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")


def _as_json(device: Device) -> str:
    sources = {name: "; ".join(texts) for name, texts in device_sources(device.key).items()}
    values = device.as_dict() | ({"sources": sources} if sources else {})
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
