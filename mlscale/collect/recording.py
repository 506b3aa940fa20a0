"""What is written: the tidy table, and a record of what it was measured on and how."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlscale import __version__
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.collect.running import cache_file
from mlscale.data.devices import device_keys, facts_to_carry
from mlscale.data.grid import AXES
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.table import IDENTITY, Table
from mlscale.data.tables import table_from_frame, write_table
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes, write_text
from mlscale.profilers.kernel_tuner import read_document, readings
from mlscale.profilers.mapping import device_key

_CLOCK_TOLERANCE = 0.02
_CLOCKS = AXES[1:]
Counters = dict[str, dict[str, float]]


def device_name(info: DeviceInfo) -> str:
    """The key of the device table, or for another device its name in one word."""
    return device_key(info.name, info.cu_count) or "-".join(info.name.lower().split())


def begin(folder: Path, info: DeviceInfo, plan: Plan, resume: bool) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same plan taken up again.

    Raises InputError where the folder holds something else.
    """
    path = folder / "collect.json"
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


def finish(folder: Path, record: dict[str, Any], failed: Mapping[str, str]) -> None:
    """Write down the end, and which kernels failed."""
    content = {**record, "finished": _now(), "failed": failed}
    write_text(folder / "collect.json", json.dumps(content, indent=1) + "\n")


def samples(folder: Path, plan: Plan, info: DeviceInfo) -> pd.DataFrame:
    """Every sample in the folder's caches, a row each, with the names of the table and cap_w."""
    frame = pd.DataFrame(_rows(folder, plan, device_name(info)))
    for axis in _CLOCKS if len(frame) else ():
        observed = frame[f"{axis}_observed"]
        if plan.settings[axis]:
            frame["throttled"] |= abs(observed / frame[axis] - 1) > _CLOCK_TOLERANCE
        elif observed.notna().any():  # a clock that was left alone is no axis, but one number
            frame[axis] = round(float(observed.median()))
        else:
            frame[axis] = getattr(info, axis) or 1.0
    return frame


def _rows(folder: Path, plan: Plan, device: str) -> Iterator[dict[str, Any]]:
    for entry in plan.entries:
        identity = dict(zip(IDENTITY, (device, entry.application, entry.name), strict=True))
        for cu_count in plan.cu_counts:
            path = cache_file(folder, entry.name, cu_count)
            for sample in read_document(path)["cache"].values() if path.exists() else ():
                if "times" in sample:
                    yield {**identity, **_measured(sample)}


def _measured(sample: dict[str, Any]) -> dict[str, Any]:
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


def base(frame: pd.DataFrame) -> dict[str, float]:
    """The configuration that counters are of: all CUs, the highest clocks."""
    return {axis: float(frame[axis].max()) for axis in AXES}


def with_counters(frame: pd.DataFrame, counters: Counters) -> pd.DataFrame:
    """The samples with the counters by kernel, at the base."""
    columns = pd.DataFrame(counters).T
    joined = frame.join(columns, on="kernel")
    elsewhere = (frame[[*AXES]] != base(frame)).any(axis=1)
    joined.loc[elsewhere, columns.columns] = np.nan
    return joined


def write_tables(folder: Path, frame: pd.DataFrame, plan: Plan, info: DeviceInfo) -> list[Path]:
    """Write measurements.csv, or one table for each power limit. Raises InputError."""
    paths = []
    for cap_w in map(float, sorted(frame["cap_w"].unique())):
        table = to_table(frame[frame["cap_w"] == cap_w], plan, info)
        if cap_w:
            table.metadata["cap_w"] = cap_w
        paths.append(folder / (f"measurements-{cap_w:g}w.csv" if cap_w else "measurements.csv"))
        write_table(table, paths[-1])
    return paths


def to_table(frame: pd.DataFrame, plan: Plan, info: DeviceInfo) -> Table:
    """The tidy table of samples at one power limit; columns that are empty are left out."""
    names = dict.fromkeys((*IDENTITY, *AXES, "time_ms", "power_w", *frame.drop(columns="cap_w")))
    table = table_from_frame(frame[[*names]].dropna(axis=1, how="all"))
    numbers = table.numbers
    table.metadata.update(
        {
            "origin": "measured",
            "source": f"mlscale collect on {info.name}, {info.backend}",
            "unknown_clocks": [
                axis
                for axis in _CLOCKS
                if f"{axis}_observed" not in numbers and not plan.settings[axis]
            ],
            **facts_to_carry(device_name(info)),
        }
    )
    if "power_w" in numbers:
        power = {"kind": "board", "sensor": info.sensors, "window_s": plan.power_s}
        table.metadata.update({f"power_{name}": value for name, value in power.items()})
    if {*numbers} - {*NOT_COUNTERS}:
        table.metadata["counter_tool"] = "ncu" if info.backend == "cuda" else "rocprofv3"
    return table


def notes(frame: pd.DataFrame, plan: Plan, info: DeviceInfo) -> list[str]:
    """What a reader of the table should know, a line each."""
    lines = []
    throttled = frame["kernel"][frame["throttled"]]
    if len(throttled):
        lines.append(
            f"{len(throttled)} of {len(frame)} samples ran more than {_CLOCK_TOLERANCE:.0%} off "
            f"the clocks that were set (column 'throttled'): {', '.join(throttled.unique())}"
        )
    if info.backend != "opencl" and not info.sensors:
        package = "nvidia-ml-py" if info.backend == "cuda" else "amdsmi"
        lines.append(
            f"neither power nor clocks were observed: {package} is not installed, or does not know "
            "the board"
        )
    if plan.power_s and frame["power_w"].isna().any():
        lines.append(f"some samples have no power: the sensor ({info.sensors}) gave none")
    if device_name(info) not in device_keys() and info.backend != "opencl":
        lines.append(
            f"'{device_name(info)}' is not in the device table, so 'bottleneck' does not apply; "
            "docs/collecting.md says how to describe a GPU"
        )
    return lines


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
