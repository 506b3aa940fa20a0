"""What is written: the tidy table, and a record of what it was measured on and how."""

import json
import math
import statistics
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.collect import caches
from mlscale.collect.counters import Counters
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.collect.running import CACHE
from mlscale.collect.sensors import SENSORS, Sensors
from mlscale.collect.suite import SUITES
from mlscale.data.devices import facts_to_carry
from mlscale.data.table import Table
from mlscale.data.tables import write_table
from mlscale.errors import InputError
from mlscale.files import parse_json_object, write_text
from mlscale.profilers.mapping import device_key

RECORD = "collect.json"
_CLOCK_TOLERANCE = 0.02
_AXES = ("engine_mhz", "memory_mhz")
_Row = dict[str, Any]


def device_name(info: DeviceInfo) -> str:
    """The key of the device table, or for another device its name in one word."""
    return device_key(info.name, info.cu_count) or "-".join(info.name.lower().split())


def begin(folder: Path, info: DeviceInfo, plan: Plan, resume: bool) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same plan taken up again.

    Raises InputError where the folder holds something else.
    """
    path = folder / RECORD
    asked = json.loads(json.dumps({"version": __version__, "plan": asdict(plan)}))
    if not path.is_file():
        record = {"finished": None, "started": _now(), **asked, "device": asdict(info)}
        write_text(path, json.dumps(record, indent=1) + "\n")
        return record
    there = parse_json_object(path.read_bytes(), str(path))
    board = there.get("device", {})
    if board.get("uuid") != info.uuid:
        raise InputError(
            f"{folder}: holds measurements of another device ({board.get('name')}, "
            f"{board.get('uuid')}), this one is {info.name}, {info.uuid}; name another folder"
        )
    if any(there.get(name) != value for name, value in asked.items()):
        raise InputError(
            f"{folder}: was collected with other settings or by another version; ask for the same "
            "again, or name another folder"
        )
    if not resume:
        what = "a finished" if there["finished"] else "an unfinished"
        then = "" if there["finished"] else "go on with --resume, or "
        raise InputError(f"{folder}: holds {what} collection; {then}name another folder")
    return there


def finish(
    folder: Path, record: dict[str, Any], failed: dict[str, str], told: list[str], whole: bool
) -> None:
    """Bring the record up to date."""
    finished = _now() if whole else None
    content = {**record, "failed": failed, "told": told, "finished": finished}
    write_text(folder / RECORD, json.dumps(content, indent=1) + "\n")


def rows_of(folder: Path, plan: Plan, info: DeviceInfo) -> list[_Row]:
    """Every sample in the folder's cache, kernel by kernel, with the names of the table."""
    sensors = SENSORS.get(info.sensors)
    rows = [
        _row(sample, kernel, plan, sensors)
        for job in plan.jobs(info)
        for kernel in plan.kernels
        for sample in caches.samples(folder / CACHE / f"{kernel}-{job['cu_counts'][-1]}.json")
        if "times" in sample
    ]
    for axis in _AXES:  # a clock that was left alone is no axis, but one number
        seen = [row[f"{axis}_observed"] for row in rows if not math.isnan(row[f"{axis}_observed"])]
        nominal = float(round(statistics.median(seen))) if seen else getattr(info, axis) or 1.0
        for row in rows:
            row[axis] = (
                nominal if math.isnan(row[f"{axis}_requested"]) else row[f"{axis}_requested"]
            )
    order = ("cap_w", "cu_count", *_AXES, "repetition")
    key: Callable[[_Row], Any] = lambda row: (  # noqa: E731
        plan.kernels.index(row["kernel"]),
        *(row[name] for name in order),
    )
    return sorted(rows, key=key)


def _row(sample: dict[str, Any], kernel: str, plan: Plan, sensors: Sensors | None) -> _Row:
    low, median, high = np.percentile(sample["times"], [25, 50, 75])
    used = float(sample.get("cu_count_observed", math.nan))
    row: _Row = {
        "kernel": kernel,
        "repetition": sample["repetition"],
        "cu_count": float(sample.get("cu_count", used)),
        "time_ms": float(f"{median:.7g}"),
        "cap_w": 0.0,
        "power_w": math.nan,
        "cu_count_observed": used,
        "engine_mhz_observed": math.nan,
        "memory_mhz_observed": math.nan,
        "temperature_c": math.nan,
        "time_spread_percent": round(float(100 * (high - low) / median), 4),
        "power_window_s": plan.power_s,
    }
    for column, (names, factor) in (sensors.columns if sensors else {}).items():
        value = next((sample[name] for name in names if name in sample), math.nan)
        row[column] = round(value * factor, 3) or math.nan  # a sensor that says 0 is none
    settings = sensors.settings if sensors else {}
    for axis in _AXES:
        row[f"{axis}_requested"] = float(sample.get(settings.get(axis, ""), math.nan))
    row["cap_w"] = float(sample.get(settings.get("power_limits_w", ""), 0))
    off = [row[f"{axis}_observed"] / row[f"{axis}_requested"] - 1 for axis in _AXES]
    row["throttled"] = float(any(abs(share) > _CLOCK_TOLERANCE for share in off))
    return row


def write_tables(
    folder: Path,
    rows: list[_Row],
    plan: Plan,
    info: DeviceInfo,
    failed: dict[str, str],
    counters: Counters,
) -> list[Path]:
    """Write measurements.csv, or one table for each power limit; without the kernels that failed.

    Raises InputError.
    """
    paths = []
    rows = [row for row in rows if row["kernel"] not in failed]
    for cap_w in sorted({row["cap_w"] for row in rows}):
        name = f"measurements-{cap_w:g}w.csv" if cap_w else "measurements.csv"
        of_cap = [row for row in rows if row["cap_w"] == cap_w]
        table = to_table(of_cap, plan, info, failed, counters)
        if cap_w:
            table.metadata["cap_w"] = cap_w
        write_table(table, folder / name)
        paths.append(folder / name)
    return paths


def to_table(
    rows: list[_Row], plan: Plan, info: DeviceInfo, failed: dict[str, str], counters: Counters
) -> Table:
    """The tidy table of the rows; counters stand where all CUs ran at the highest clocks."""
    application = {entry.name: entry.application for entry in SUITES[plan.suite]}
    columns = [name for name in rows[0] if name not in ("kernel", "repetition", "cap_w")]
    columns.sort(key=lambda name: ("cu_count", *_AXES, "time_ms", "power_w", name).index(name))
    values = {name: [row[name] for row in rows] for name in columns}
    base = [max(row[axis] for row in rows) for axis in ("cu_count", *_AXES)]
    for name in dict.fromkeys(name for of_kernel in counters.values() for name in of_kernel):
        values[name] = [
            counters.get(row["kernel"], {}).get(name, math.nan)
            if [row[axis] for axis in ("cu_count", *_AXES)] == base
            else math.nan
            for row in rows
        ]
    numbers = {name: np.array(column, dtype=float) for name, column in values.items()}
    key = device_name(info)
    text = {
        "device": [key] * len(rows),
        "application": [application[row["kernel"]] for row in rows],
        "kernel": [row["kernel"] for row in rows],
    }
    metadata = {
        "origin": "measured",
        "source": f"mlscale collect on {info.name}, {info.backend}",
        "faults": failed,
        "unknown_clocks": [
            axis for axis in _AXES if np.isnan(numbers[f"{axis}_observed"]).all()
            and np.isnan(numbers[f"{axis}_requested"]).all()
        ],
        **facts_to_carry(key),
    }  # fmt: skip
    empty = [name for name, column in numbers.items() if np.isnan(column).all()]
    if "power_w" not in empty:
        metadata |= {"power_kind": "board", "power_sensor": info.sensors}
    if counters:
        metadata["counter_tool"] = "ncu" if info.backend == "cuda" else "rocprofv3"
    return Table("collect", text, {n: c for n, c in numbers.items() if n not in empty}, metadata)


def notes(rows: list[_Row], plan: Plan, info: DeviceInfo, failed: dict[str, str]) -> list[str]:
    """What a reader of the table should know, a line each."""
    lines = [f"{name} is left out: {why}" for name, why in failed.items()]
    throttled = [row for row in rows if row["throttled"]]
    if throttled:
        kernels = list(dict.fromkeys(row["kernel"] for row in throttled))
        lines.append(
            f"{len(throttled)} of {len(rows)} samples ran more than {_CLOCK_TOLERANCE:.0%} off the "
            f"clocks that were set (column 'throttled'): {', '.join(kernels[:3])}"
            + (" …" if len(kernels) > 3 else "")
        )
    elsewhere = {
        f"{row['cu_count_observed']:g} instead of {row['cu_count']:g}"
        for row in rows
        if not math.isnan(row["cu_count_observed"]) and row["cu_count_observed"] != row["cu_count"]
    }
    if elsewhere:
        lines.append(f"samples ran on another number of CUs: {', '.join(sorted(elsewhere))}")
    if info.backend != "opencl" and not info.sensors:
        package = "nvidia-ml-py" if info.backend == "cuda" else "amdsmi"
        lines.append(f"neither power nor clocks were observed: {package} is not installed")
    if plan.power_s and any(math.isnan(row["power_w"]) for row in rows):
        lines.append(f"some samples have no power: the sensor ({info.sensors}) gave none")
    return lines


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
