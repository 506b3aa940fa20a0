"""What is written: the tidy table, and a record of what it was measured on and how."""

import json
import math
import statistics
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.collect.counters import Counters
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.collect.running import cache_file
from mlscale.data.devices import facts_to_carry
from mlscale.data.grid import AXES
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.table import Table
from mlscale.data.tables import write_table
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes, write_text
from mlscale.profilers.kernel_tuner import read_document, readings
from mlscale.profilers.mapping import device_key

RECORD = "collect.json"
_CLOCK_TOLERANCE = 0.02
_CLOCKS = AXES[1:]
Row = dict[str, Any]


def device_name(info: DeviceInfo) -> str:
    """The key of the device table, or for another device its name in one word."""
    return device_key(info.name, info.cu_count) or "-".join(info.name.lower().split())


def begin(folder: Path, info: DeviceInfo, plan: Plan, resume: bool) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same plan taken up again.

    Raises InputError where the folder holds something else.
    """
    path = folder / RECORD
    asked = {"version": __version__, "plan": plan.record(), "device": asdict(info)}
    if not path.is_file():
        record = {"started": _now(), "finished": None, "failed": {}, **asked}
        write_text(path, json.dumps(record, indent=1) + "\n")
        return record
    there = parse_json_object(read_bytes(path), str(path))
    if any(there.get(name) != value for name, value in asked.items()):
        raise InputError(
            f"{folder}: was collected on another device, with other settings or by another "
            "version; ask for the same again, or name another folder"
        )
    if not resume:
        what = "a finished" if there["finished"] else "an unfinished"
        raise InputError(
            f"{folder}: holds {what} collection; go on with --resume, or name another folder"
        )
    return there


def finish(folder: Path, record: dict[str, Any], failed: dict[str, str]) -> None:
    """Write down the end, and which kernels failed."""
    content = {**record, "finished": _now(), "failed": failed}
    write_text(folder / RECORD, json.dumps(content, indent=1) + "\n")


def rows_of(folder: Path, plan: Plan, info: DeviceInfo) -> list[Row]:
    """Every sample in the folder's caches, kernel by kernel, with the names of the table."""
    rows = []
    for entry in plan.entries:
        for cu_count in plan.cu_counts:
            path = cache_file(folder, entry.name, cu_count)
            samples = read_document(path)["cache"].values() if path.exists() else ()
            of_kernel = {"application": entry.application, "kernel": entry.name}
            rows += [{**of_kernel, **_row(sample)} for sample in samples if "times" in sample]
    for axis in _CLOCKS:  # a clock that was left alone is no axis, but one number
        observed = [row[f"{axis}_observed"] for row in rows]
        seen = [clock for clock in observed if not math.isnan(clock)]
        nominal = float(round(statistics.median(seen))) if seen else getattr(info, axis) or 1.0
        for row in rows:
            row.setdefault(axis, nominal)
            off = abs(row[f"{axis}_observed"] / row[axis] - 1)
            row["throttled"] |= bool(plan.settings[axis]) and off > _CLOCK_TOLERANCE
    return rows


def _row(sample: dict[str, Any]) -> Row:
    low, median, high = np.percentile(sample["times"], [25, 50, 75])
    return {
        "cap_w": 0.0,
        **{name: float(sample[name]) for name in (*_CLOCKS, "cap_w") if name in sample},
        **readings(sample),
        "cu_count": float(sample.get("cu_count_granted", sample["cu_count"])),
        "time_ms": float(f"{median:.7g}"),
        "time_spread_percent": round(float(100 * (high - low) / median), 4),
        "throttled": False,
    }


def add_counters(rows: list[Row], counters: Counters) -> None:
    """Put the counters where all CUs ran at the highest clocks."""
    base = [max(row[axis] for row in rows) for axis in AXES]
    for row in rows:
        if [row[axis] for axis in AXES] == base:
            row.update(counters.get(row["kernel"], {}))


def write_tables(folder: Path, rows: list[Row], plan: Plan, info: DeviceInfo) -> list[Path]:
    """Write measurements.csv, or one table for each power limit. Raises InputError."""
    paths = []
    for cap_w in sorted({row["cap_w"] for row in rows}):
        table = to_table([row for row in rows if row["cap_w"] == cap_w], plan, info)
        if cap_w:
            table.metadata["cap_w"] = cap_w
        paths.append(folder / (f"measurements-{cap_w:g}w.csv" if cap_w else "measurements.csv"))
        write_table(table, paths[-1])
    return paths


def to_table(rows: list[Row], plan: Plan, info: DeviceInfo) -> Table:
    """The tidy table of the rows; columns that are empty are left out."""
    key = device_name(info)
    text = {"device": [key] * len(rows)}
    text |= {name: [row[name] for row in rows] for name in ("application", "kernel")}
    names = dict.fromkeys((*AXES, "time_ms", "power_w", *(name for row in rows for name in row)))
    columns = {
        name: [row.get(name, math.nan) for row in rows]
        for name in names
        if name not in (*text, "cap_w")
    }
    numbers = {name: np.array(column, dtype=float) for name, column in columns.items()}
    empty = {name for name, column in numbers.items() if np.isnan(column).all()}
    metadata = {
        "origin": "measured",
        "source": f"mlscale collect on {info.name}, {info.backend}",
        "unknown_clocks": [
            axis for axis in _CLOCKS if f"{axis}_observed" in empty and not plan.settings[axis]
        ],
        **facts_to_carry(key),
    }
    if "power_w" not in empty:
        metadata |= {
            "power_kind": "board",
            "power_sensor": info.sensors,
            "power_window_s": plan.power_s,
        }
    if {*numbers} - {*NOT_COUNTERS}:
        metadata["counter_tool"] = "ncu" if info.backend == "cuda" else "rocprofv3"
    return Table("collect", text, {n: c for n, c in numbers.items() if n not in empty}, metadata)


def notes(rows: list[Row], plan: Plan, info: DeviceInfo, failed: dict[str, str]) -> list[str]:
    """What a reader of the table should know, a line each."""
    lines = [f"{name} is left out: {why}" for name, why in failed.items()]
    throttled = [row["kernel"] for row in rows if row["throttled"]]
    if throttled:
        lines.append(
            f"{len(throttled)} of {len(rows)} samples ran more than {_CLOCK_TOLERANCE:.0%} off the "
            f"clocks that were set (column 'throttled'): {', '.join(dict.fromkeys(throttled))}"
        )
    if info.backend != "opencl" and not info.sensors:
        package = "nvidia-ml-py" if info.backend == "cuda" else "amdsmi"
        lines.append(f"neither power nor clocks were observed: {package} is not installed")
    if plan.power_s and any(math.isnan(row["power_w"]) for row in rows):
        lines.append(f"some samples have no power: the sensor ({info.sensors}) gave none")
    return lines


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
