"""kernel_tuner's caches and T4 files as training tables.

Written by `tune_kernel(..., cache="cache.json")` of kernel_tuner (JSON, not closed where the tuning
was stopped), and as T4 results by the autotuning community; plain or packed. Each
configuration of the tuned parameters is a kernel, all of one file an application, and the clocks
that were tuned are the grid.

To watch for: clocks of AMD's SMI and of a Jetson are in Hz; a sensor that says 0 has said nothing.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlscale.data.devices import facts_to_carry, find_device
from mlscale.data.grid import AXES
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.files import parse_json, parse_json_object, read_bytes
from mlscale.parameters import parameter
from mlscale.readers.given import Given
from mlscale.readers.run import set_up

# Tuned parameters that are settings of the GPU, by the axis that they set.
_CLOCKS = {
    "nvml_gr_clock": "engine_mhz",
    "nvml_mem_clock": "memory_mhz",
    "tegra_gr_clock": "engine_mhz",
}
_OTHER_SETTINGS = ("nvml_pwr_limit", "cuda_sm_percentage")
# What the observers call what they read, the best first; those of a long run under load have pwr_.
_READINGS = {
    "power_w": ("nvml_power", "ps_power", "amdsmi_power", "tegra_power"),
    "engine_mhz_observed": ("pwr_core_freq", "core_freq", "amdsmi_core_freq"),
    "memory_mhz_observed": ("pwr_mem_freq", "mem_freq", "amdsmi_mem_freq"),
    "temperature_c": ("pwr_temperature", "temperature", "amdsmi_temperature"),
}
_ENERGY_J = ("nvml_energy", "ps_energy")
_HIGHEST_MHZ = 1e5  # no clock is so high: a larger number is in Hz
_TOLERANCE = 0.02


@dataclass(frozen=True)
class TunedTable:
    """The tidy table of some files, and what was left out.

    Attributes:
        table: a row for each kernel and setting.
        failed: how many configurations did not compile or run, or gave a wrong result.
        off_clock: how many ran at a clock more than 2 % from the one that was set.
    """

    table: Table
    failed: int
    off_clock: int


class _Tuning(NamedTuple):
    """What one file holds; rows: of the samples that ran, with 'off_clock'."""

    device_name: str
    rows: list[dict[str, Any]]
    failed: int


def import_tuned(
    paths: Sequence[Path], device: str | None = None, base: Mapping[str, float] | None = None
) -> TunedTable:
    """Read the files of one GPU.

    device: a key of the device table or any name; needed where the files do not name it. base:
    'cu_count', 'engine_mhz' and 'memory_mhz' as far as they were not tuned. Warns of a memory clock
    that is taken from the device table. Raises InputError.
    """
    tunings = [_read(path) for path in paths]
    names = Counter[str | float](t.device_name for t in tunings if t.device_name)
    rows = [row for tuning in tunings for row in tuning.rows]
    highest_mhz = {
        axis: max(row[axis] for row in rows if axis in row)
        for axis in AXES[1:]
        if any(axis in row for row in rows)
    }
    fixed = dict(base or {})
    known = find_device(device or str(next(iter(names), "")))
    if known and known.datasheet and "memory_mhz" not in highest_mhz | fixed:
        fixed["memory_mhz"] = known.datasheet.memory_mhz
        warn(
            "L04",
            f"{paths[0]}: has no memory clock, so the data sheet's is used, "
            f"{fixed['memory_mhz']:g} MHz; if it was another, give {parameter('base', 'memory=…')}",
        )
    setup = set_up(str(paths[0]), {"device_name": names}, Given(device, fixed | highest_mhz))
    fixed["cu_count"] = setup.config.cu_count
    failed = sum(tuning.failed for tuning in tunings)
    on_clock = [fixed | row for row in rows if not row["off_clock"]]
    off_clock = len(rows) - len(on_clock)
    if not on_clock:
        raise InputError(
            f"{paths[0]}: no configuration ran at the clock that was set: {failed} failed, "
            f"{off_clock} were more than 2 % off it"
        )
    return TunedTable(_table(on_clock, setup.device, paths), failed, off_clock)


def read_document(path: Path) -> dict[str, Any]:
    """A cache or a T4 file as written, packed or not. Raises InputError."""
    text = read_bytes(path).decode("utf-8", "replace").strip()
    try:
        parse_json(text, str(path))
    except InputError:  # a cache of a tuning that was stopped is not closed
        text = text.rstrip(",") + "}}"
    return parse_json_object(text, str(path))


def readings(sample: Mapping[str, Any]) -> dict[str, float]:
    """What was observed in a sample: power [W], clocks [MHz], temperature [C]; else NaN.

    Power is measured, or the energy over the mean time.
    """
    values = {
        column: float(next((sample[name] for name in names if name in sample), 0)) or math.nan
        for column, names in _READINGS.items()
    }
    energy = next((sample[name] for name in _ENERGY_J if name in sample), math.nan)
    if math.isnan(values["power_w"]):
        values["power_w"] = float(energy) / float(sample["time"]) * 1e3
    return {n: _mhz(value) if "_mhz" in n else value for n, value in values.items()}


def _mhz(clock: float) -> float:
    return clock / 1e6 if clock > _HIGHEST_MHZ else clock


def _read(path: Path) -> _Tuning:
    """One file, of either kind. Raises InputError, also where it is not as its tool writes it."""
    document = read_document(path)
    try:
        return _tuning(path, document)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"[:100]
        raise InputError(f"{path}: is not in kernel_tuner's or T4's format ({what})") from None


def _tuning(path: Path, document: dict[str, Any]) -> _Tuning:
    kernel, device_name = path.stem, ""
    if isinstance(document.get("cache"), dict) and "tune_params_keys" in document:
        kernel = str(document.get("kernel_name", path.stem))
        parameters = tuple(map(str, document["tune_params_keys"]))
        device_name = str(document.get("device_name") or "")
        entries = list(document["cache"].values())
    elif isinstance(document.get("results"), list):
        results = document["results"]
        parameters = tuple(results[0]["configuration"]) if results else ()
        entries = [_from_t4(result) for result in results]
    else:
        raise InputError(f"{path}: is neither a cache of kernel_tuner nor a T4 file")
    samples = [entry for entry in entries if _time_ms(entry) is not None]
    if not samples:
        measured = sorted({str(name) for entry in entries for name in entry} - {*parameters})
        raise InputError(
            f"{path}: none of its {len(entries)} configurations has a time"
            + (f"; measured instead: {', '.join(measured[:5])}" if measured else "")
        )
    if limits := [name for name in _OTHER_SETTINGS if name in parameters]:
        raise InputError(
            f"{path}: tunes {limits[0]}, which this reader does not know as an axis; import the "
            "entries of one value"
        )
    rows = _rows(path, kernel, parameters, samples)
    return _Tuning(device_name, rows, len(entries) - len(samples))


def _from_t4(result: dict[str, Any]) -> dict[str, Any]:
    """A result as kernel_tuner's cache has it; empty where it is not a valid one."""
    measured = {m["name"]: m["value"] for m in result.get("measurements", [])}
    if result.get("invalidity") != "correct":
        return {}
    if "time" not in measured:
        return measured
    times = result.get("times", {}).get("runtimes") or [measured["time"]]
    return {**result["configuration"], **measured, "times": times}


def _time_ms(entry: dict[str, Any]) -> float | None:
    """The median over the repeated launches; None where it did not run."""
    time = entry.get("time")
    if "__error__" in entry or not isinstance(time, int | float) or not 0 < time < math.inf:
        return None
    return float(statistics.median(entry.get("times") or [time]))


def _rows(
    path: Path, kernel: str, parameters: Sequence[str], samples: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A row for each sample, with 'off_clock', and without the axes that were not tuned."""
    varied = [
        name
        for name in parameters
        if name not in _CLOCKS and len({str(sample.get(name)) for sample in samples}) > 1
    ]
    rows = []
    for sample in samples:
        what = ", ".join(f"{name}={sample[name]}" for name in varied)
        row: dict[str, Any] = {
            "kernel": f"{kernel} [{what}]" if what else kernel,
            "application": kernel,
            "time_ms": _time_ms(sample),
            **readings(sample),
            "off_clock": False,
        }
        for name, axis in _CLOCKS.items():
            if name in parameters:
                row[axis] = _mhz(float(sample[name]))
                off = abs(row[f"{axis}_observed"] / row[axis] - 1)
                row["off_clock"] |= off > _TOLERANCE
        if infinite := [name for name in ("time_ms", *_READINGS) if math.isinf(row[name])]:
            raise InputError(
                f"{path}: {row['kernel']}: {infinite[0]} is too large for a number; measure this "
                "configuration again, or delete it from the file"
            )
        rows.append(row)
    return rows


def _table(rows: Sequence[dict[str, Any]], key: str, paths: Sequence[Path]) -> Table:
    names = [*AXES, "time_ms", *_READINGS]
    numbers = {
        name: np.array([row.get(name, math.nan) for row in rows], dtype=float) for name in names
    }
    text = {
        "device": [key] * len(rows),
        "application": [row["application"] for row in rows],
        "kernel": [row["kernel"] for row in rows],
    }
    metadata = {
        "origin": "measured",
        "source": "kernel_tuner, " + ", ".join(path.name for path in paths),
        **facts_to_carry(key),
    }
    return Table(
        "import", text, {n: v for n, v in numbers.items() if not np.isnan(v).all()}, metadata
    )
