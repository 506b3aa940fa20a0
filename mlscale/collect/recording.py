"""What is written: the tidy table, and a record of what it was measured on and how."""

import json
import math
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.collect.clocks import Clocks
from mlscale.collect.device import THROTTLING, DeviceInfo
from mlscale.collect.entries import Entry
from mlscale.collect.plan import Plan, PlanStep
from mlscale.data.devices import facts_to_carry
from mlscale.data.tables import Table, write_table
from mlscale.errors import InputError, warn
from mlscale.files import parse_json_object, write_text
from mlscale.profilers.mapping import device_key

RECORD = "collect.json"
TABLE = "measurements.csv"

Results = dict[int, dict[str, Any]]
_Row = tuple[PlanStep, Entry, dict[str, Any]]


def device_name(info: DeviceInfo) -> str:
    """The key of the device table, or for another GPU its name in one word."""
    return device_key(info.name) or "-".join(info.name.lower().split())


def begin(folder: Path, info: DeviceInfo, plan: Plan, mode: str, mark: str) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same board taken up again.

    Raises InputError where the folder holds measurements of another board.
    """
    path = folder / RECORD
    if path.is_file():
        there = parse_json_object(path.read_bytes(), str(path))
        board = there.get("device", {})
        if board.get("uuid") != info.uuid:
            raise InputError(
                f"{folder}: holds measurements of another device ({board.get('name')}, "
                f"{board.get('uuid')}), this one is {info.name}, {info.uuid}; name another folder"
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
            "key": device_name(info),
            "name": info.name,
            "uuid": info.uuid,
            "cu_count": info.cu_count,
            "compute_capability": info.capability / 10,
            "highest_engine_mhz": info.engine_mhz,
            "highest_memory_mhz": info.memory_mhz,
            "memory_bus_bits": info.memory_bus_bits,
            "max_waves_per_cu": info.max_waves_per_cu,
            "l2_bytes": info.l2_bytes,
        },
        "versions": info.versions,
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
    folder: Path,
    record: dict[str, Any],
    plan: Plan,
    info: DeviceInfo,
    results: Results,
    whole: bool,
) -> Table | None:
    """Write the table of what is there, and bring the record up to date; None without a sample.

    Warns of kernels that failed, of samples at throttled clocks, and of missing power. Raises
    InputError.
    """
    table, summary = to_table(plan, info, record["power_sensor"], results)
    for line in summary["told"]:
        warn(line)
    if table is not None:
        write_table(table, folder / TABLE)
    finished = _now() if whole else None  # once the table is there
    _write(folder / RECORD, {**record, **summary, "finished": finished})
    return table


@dataclass(frozen=True)
class _SortedResults:
    """The results by what they are: samples, kernels that failed and why, counters, complaints."""

    rows: list[_Row]
    failed: dict[str, str]
    counters: dict[tuple[str, int, Clocks], dict[str, float]]
    lacking: list[str]


def _sorted(plan: Plan, results: Results) -> _SortedResults:
    by_kind = _SortedResults([], {}, {}, [])
    for number, step in enumerate(plan.steps()):
        result = results.get(number, {})
        if step.entry is None:
            for kernel, values in result.get("counters", {}).items():
                by_kind.counters[kernel, step.cu_count, step.clocks] = values
            by_kind.lacking.extend(result.get("missing", []))
        elif "failed" in result:
            by_kind.failed[step.entry.name] = result["failed"]
        elif result:
            by_kind.rows.append((step, step.entry, result))
    by_kind.rows[:] = [row for row in by_kind.rows if row[1].name not in by_kind.failed]
    return by_kind


def to_table(
    plan: Plan, info: DeviceInfo, mode: str, results: Results
) -> tuple[Table | None, dict[str, Any]]:
    """The tidy table of the samples, and what to tell of them.

    The clock axes are the locked clocks; a clock that was left alone is the median of what was
    observed over all samples, one number, since it is no axis.
    """
    by_kind = _sorted(plan, results)
    rows, counters = by_kind.rows, by_kind.counters
    spreads: dict[str, list[float]] = {}
    for _, entry, result in rows:
        spreads.setdefault(entry.name, []).append(result["time_spread_percent"])
    summary = {
        "told": _notes(plan, mode, by_kind),
        "failed": by_kind.failed,
        "time_spread_percent": {name: statistics.median(all_) for name, all_ in spreads.items()},
    }
    if not rows:
        return None, summary
    columns = _columns(rows, info)
    if all(result["power_w"] is not None for _, _, result in rows):
        columns["power_w"] = [result["power_w"] for _, _, result in rows]
    for name in dict.fromkeys(name for values in counters.values() for name in values):
        columns[name] = [
            counters.get((entry.name, step.cu_count, step.clocks), {}).get(name)
            for step, entry, _ in rows
        ]
    numbers = {
        name: np.array([math.nan if value is None else value for value in values], dtype=float)
        for name, values in columns.items()
    }
    text = {
        "device": [device_name(info)] * len(rows),
        "application": [entry.application for _, entry, _ in rows],
        "kernel": [entry.name for _, entry, _ in rows],
    }
    metadata = {
        "origin": "measured",
        "source": f"mlscale collect on {info.name}",
        "power_kind": "board",
        "power_sensor": mode,
        "counter_tool": "ncu" if counters else None,
        "throttle_reasons": {str(bit): word for bit, word in THROTTLING.items()},
        "faults": by_kind.failed,
        **facts_to_carry(device_name(info)),
    }
    return Table("collect", text, numbers, metadata), summary


def _notes(plan: Plan, mode: str, results: _SortedResults) -> list[str]:
    """What a reader of the table should know, a line each."""
    rows = results.rows
    notes = [f"{name} is left out: {why}" for name, why in results.failed.items()]
    throttled = dict.fromkeys(entry.name for _, entry, result in rows if result["throttled"])
    if throttled:
        count = sum(result["throttled"] for _, _, result in rows)
        notes.append(
            f"{count} of {len(rows)} samples were taken while the clocks were held down "
            f"(column 'throttled'): {', '.join(list(throttled)[:3])}"
            + (" …" if len(throttled) > 3 else "")
        )
    elsewhere = dict.fromkeys(
        f"{result['used']} instead of {step.cu_count}"
        for step, _, result in rows
        if result["used"] != step.cu_count
    )
    if elsewhere:
        notes.append(f"a probe ran on another number of multiprocessors: {', '.join(elsewhere)}")
    short = sum(result["power_w"] is None for _, _, result in rows)
    if plan.window_s and short:
        why = (
            "the board senses none"
            if mode == "none"
            else f"{short} of {len(rows)} windows were too short for the sensor ({mode}); give "
            "--power-seconds 2 or more"
        )
        notes.append(f"there is no power in the table: {why}")
    return [*notes, *(f"counters are missing: {why}" for why in dict.fromkeys(results.lacking))]


def _columns(rows: list[_Row], info: DeviceInfo) -> dict[str, list[Any]]:
    nominal = {}
    for axis, highest in (("engine", info.engine_mhz), ("memory", info.memory_mhz)):
        seen = [r[f"{axis}_mhz"] for _, _, r in rows if r[f"{axis}_mhz"] is not None]
        nominal[axis] = float(round(statistics.median(seen))) if seen else highest
    columns: dict[str, list[Any]] = {
        "cu_count": [step.cu_count for step, _, _ in rows],
        **{
            f"{axis}_mhz": [
                getattr(step.clocks, f"{axis}_locked") or nominal[axis] for step, _, _ in rows
            ]
            for axis in ("engine", "memory")
        },
        "time_ms": [result["time_ms"] for _, _, result in rows],
        "cu_count_observed": [result["used"] for _, _, result in rows],
    }
    for axis in ("engine", "memory"):
        for kind in ("requested", "locked"):
            columns[f"{axis}_mhz_{kind}"] = [
                getattr(step.clocks, f"{axis}_{kind}") for step, _, _ in rows
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
