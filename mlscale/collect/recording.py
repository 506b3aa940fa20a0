"""What is written: the tidy table, and a record of what it was measured on and how."""

import json
import math
import statistics
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.collect.clocks import Clocks
from mlscale.collect.device import THROTTLING, Facts
from mlscale.collect.entries import Entry
from mlscale.collect.plan import Plan, Unit
from mlscale.data.tables import Table, write_table
from mlscale.errors import DataWarning, InputError
from mlscale.files import parse_json_object, write_text
from mlscale.profilers.mapping import device_key

RECORD = "collect.json"
TABLE = "measurements.csv"

Results = dict[int, dict[str, Any]]
_Row = tuple[Unit, Entry, dict[str, Any]]


def device_name(facts: Facts) -> str:
    """The key of the device table, or for another GPU its name in one word."""
    return device_key(facts.name) or "-".join(facts.name.lower().split())


def begin(folder: Path, facts: Facts, plan: Plan, mode: str, mark: str) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same board taken up again.

    Raises InputError where the folder holds measurements of another board.
    """
    path = folder / RECORD
    if path.is_file():
        there = parse_json_object(path.read_bytes(), str(path))
        board = there.get("device", {})
        if board.get("uuid") != facts.uuid:
            raise InputError(
                f"{folder}: holds measurements of another device ({board.get('name')}, "
                f"{board.get('uuid')}), this one is {facts.name}, {facts.uuid}; name another folder"
            )
        if there.get("fingerprint") != mark:
            raise InputError(
                f"{folder}: was collected with other settings, another driver or another version; "
                "ask for the same again, or name another folder"
            )
        return there
    record = {
        "finished": None,
        "started": _now(),
        "fingerprint": mark,
        "device": {
            "key": device_name(facts),
            "name": facts.name,
            "uuid": facts.uuid,
            "cu_count": facts.cu_count,
            "compute_capability": facts.capability / 10,
            "highest_engine_mhz": facts.engine_mhz,
            "highest_memory_mhz": facts.memory_mhz,
            "memory_bus_bits": facts.memory_bus_bits,
            "max_waves_per_cu": facts.max_waves_per_cu,
            "l2_bytes": facts.l2_bytes,
        },
        "versions": facts.versions,
        "power_sensor": mode,
        "power_window_s": plan.window_s,
        "repeat": plan.repeat,
        "cu_counts": [
            {"requested": asked, "granted": granted} for granted, asked in plan.cu_counts.items()
        ],
        "clocks": [
            {
                axis: {
                    "requested": getattr(clocks, f"{axis}_requested"),
                    "locked": getattr(clocks, f"{axis}_locked"),
                }
                for axis in ("engine", "memory")
            }
            for clocks in plan.clocks
        ],
        "kernels": [entry.name for entry in plan.entries],
    }
    _write(path, record)
    return record


def finish(
    folder: Path, record: dict[str, Any], plan: Plan, facts: Facts, results: Results, whole: bool
) -> Table | None:
    """Write the table of what is there, and bring the record up to date; None without a sample.

    Warns of kernels that failed, of samples at throttled clocks, and of missing power. Raises
    InputError.
    """
    table, told = to_table(plan, facts, record["power_sensor"], results)
    for line in told["told"]:
        warnings.warn(line, DataWarning, stacklevel=2)
    if table is not None:
        write_table(table, folder / TABLE)
    finished = _now() if whole else None  # once the table is there
    _write(folder / RECORD, {**record, **told, "finished": finished})
    return table


@dataclass(frozen=True)
class _Sorted:
    """The results by what they are: samples, kernels that failed and why, counters, complaints."""

    rows: list[_Row]
    failed: dict[str, str]
    counters: dict[tuple[str, int, Clocks], dict[str, float]]
    lacking: list[str]


def _sorted(plan: Plan, results: Results) -> _Sorted:
    found = _Sorted([], {}, {}, [])
    for number, unit in enumerate(plan.units()):
        result = results.get(number, {})
        if unit.entry is None:
            for kernel, values in result.get("counters", {}).items():
                found.counters[kernel, unit.cu_count, unit.clocks] = values
            found.lacking.extend(result.get("missing", []))
        elif "failed" in result:
            found.failed[unit.entry.name] = result["failed"]
        elif result:
            found.rows.append((unit, unit.entry, result))
    found.rows[:] = [row for row in found.rows if row[1].name not in found.failed]
    return found


def to_table(
    plan: Plan, facts: Facts, mode: str, results: Results
) -> tuple[Table | None, dict[str, Any]]:
    """The tidy table of the samples, and what to tell of them.

    The clock axes are the locked clocks; a clock that was left alone is the median of what was
    observed over all samples, one number, since it is no axis.
    """
    found = _sorted(plan, results)
    rows, counters = found.rows, found.counters
    spreads: dict[str, list[float]] = {}
    for _, entry, result in rows:
        spreads.setdefault(entry.name, []).append(result["time_spread_percent"])
    summary = {
        "told": _told(plan, mode, found),
        "failed": found.failed,
        "time_spread_percent": {name: statistics.median(all_) for name, all_ in spreads.items()},
    }
    if not rows:
        return None, summary
    columns = _columns(rows, facts)
    if all(result["power_w"] is not None for _, _, result in rows):
        columns["power_w"] = [result["power_w"] for _, _, result in rows]
    for name in dict.fromkeys(name for values in counters.values() for name in values):
        columns[name] = [
            counters.get((entry.name, unit.cu_count, unit.clocks), {}).get(name)
            for unit, entry, _ in rows
        ]
    numbers = {
        name: np.array([math.nan if value is None else value for value in values], dtype=float)
        for name, values in columns.items()
    }
    text = {
        "device": [device_name(facts)] * len(rows),
        "application": [entry.application for _, entry, _ in rows],
        "kernel": [entry.name for _, entry, _ in rows],
    }
    metadata = {
        "origin": "measured",
        "source": f"mlscale collect on {facts.name}",
        "power_kind": "board",
        "power_sensor": mode,
        "counter_tool": "ncu" if counters else None,
        "throttle_reasons": {str(bit): word for bit, word in THROTTLING.items()},
        "faults": found.failed,
    }
    return Table("collect", text, numbers, metadata), summary


def _told(plan: Plan, mode: str, found: _Sorted) -> list[str]:
    """What a reader of the table should know, a line each."""
    rows = found.rows
    told = [f"{name} is left out: {why}" for name, why in found.failed.items()]
    throttled = dict.fromkeys(entry.name for _, entry, result in rows if result["throttled"])
    if throttled:
        count = sum(result["throttled"] for _, _, result in rows)
        told.append(
            f"{count} of {len(rows)} samples were taken while the clocks were held down "
            f"(column 'throttled'): {', '.join(list(throttled)[:3])}"
            + (" …" if len(throttled) > 3 else "")
        )
    elsewhere = dict.fromkeys(
        f"{result['used']} instead of {unit.cu_count}"
        for unit, _, result in rows
        if result["used"] != unit.cu_count
    )
    if elsewhere:
        told.append(f"a probe ran on another number of multiprocessors: {', '.join(elsewhere)}")
    short = sum(result["power_w"] is None for _, _, result in rows)
    if plan.window_s and short:
        why = (
            "the board senses none"
            if mode == "none"
            else f"{short} of {len(rows)} windows were too short for the sensor ({mode}); give "
            "--power-seconds 2 or more"
        )
        told.append(f"there is no power in the table: {why}")
    return [*told, *(f"counters are missing: {why}" for why in dict.fromkeys(found.lacking))]


def _columns(rows: list[_Row], facts: Facts) -> dict[str, list[Any]]:
    nominal = {}
    for axis, highest in (("engine", facts.engine_mhz), ("memory", facts.memory_mhz)):
        seen = [r[f"{axis}_mhz"] for _, _, r in rows if r[f"{axis}_mhz"] is not None]
        nominal[axis] = float(round(statistics.median(seen))) if seen else highest
    columns: dict[str, list[Any]] = {
        "cu_count": [unit.cu_count for unit, _, _ in rows],
        **{
            f"{axis}_mhz": [
                getattr(unit.clocks, f"{axis}_locked") or nominal[axis] for unit, _, _ in rows
            ]
            for axis in ("engine", "memory")
        },
        "time_ms": [result["time_ms"] for _, _, result in rows],
        "cu_count_observed": [result["used"] for _, _, result in rows],
    }
    for axis in ("engine", "memory"):
        for kind in ("requested", "locked"):
            columns[f"{axis}_mhz_{kind}"] = [
                getattr(unit.clocks, f"{axis}_{kind}") for unit, _, _ in rows
            ]
        columns[f"{axis}_mhz_observed"] = [result[f"{axis}_mhz"] for _, _, result in rows]
    for name, key in (
        ("time_spread_percent", "time_spread_percent"),
        ("power_window_s", "power_s"),
        ("temperature_c", "temperature_c"),
        ("throttled", "throttled"),
        ("throttle_reasons", "reasons"),
    ):
        columns[name] = [result[key] for _, _, result in rows]
    return columns


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, record: dict[str, Any]) -> None:
    write_text(path, json.dumps(record, indent=1) + "\n")
