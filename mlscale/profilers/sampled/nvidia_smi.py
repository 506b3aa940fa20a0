"""nvidia-smi's logs: --query-gpu as CSV, with or without units, and the table of dmon."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from mlscale.errors import InputError, warn
from mlscale.profilers.sampled.log import Lines, Sample, csv_cells, rows, values_of

_POWERS = ("power.draw.instant", "power.draw", "power.draw.average")
_CLOCKS = ("clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr")
_REQUESTED_CLOCKS = ("clocks.applications.graphics", "clocks.applications.gr")
_QUERY = {
    **dict.fromkeys(_POWERS, "power_w"),
    **dict.fromkeys(_CLOCKS, "engine_mhz"),
    **dict.fromkeys(("clocks.current.memory", "clocks.mem"), "memory_mhz"),
    **dict.fromkeys(_REQUESTED_CLOCKS, "engine_mhz_requested"),
    "utilization.gpu": "gpu_utilisation",
    "utilization.memory": "memory_copy_utilisation",
}
_DMON = {
    "pwr": "power_w",
    "pclk": "engine_mhz",
    "mclk": "memory_mhz",
    "sm": "gpu_utilisation",
    "mem": "memory_copy_utilisation",
}
_INDEX = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_EPOCH = datetime(1970, 1, 1)
_SECONDS = re.compile(r"\d{1,10}(\.\d{1,9})?", re.ASCII)  # milliseconds since 1970 have more digits
_ONE_GPU = 0.1  # of the usual time between samples; GPUs of one tick follow each other closer


def read_query(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of `nvidia-smi --query-gpu=… --format=csv`. Raises InputError."""
    names = csv_cells(lines[0][1])
    unnumbered: list[float] = []
    unknown = 0
    for where, with_units in rows(path, lines, csv_cells, lambda cells: cells == names):
        row = {name.partition("[")[0].strip(): cell for name, cell in with_units.items()}
        time_s = _timestamp(row["timestamp"], where) if "timestamp" in row else None
        gpu = next((row[name] for name in _INDEX if name in row), None)
        if gpu is None and time_s is not None:
            unnumbered.append(time_s)
        unknown += gpu is None and time_s is None
        name = row.get("name") or row.get("gpu_name")
        values = values_of(row, _QUERY, where)
        yield Sample("0" if gpu is None else gpu, name, time_s, values)
    if _of_several_gpus(unnumbered):
        raise InputError(
            f"{path}: is of several GPUs that cannot be told apart, or its time stamps are too "
            "coarse to tell that it is of one; record again with 'index' among --query-gpu's "
            "names, or one GPU alone with --id and times in milliseconds"
        )
    if unknown > 1:
        warn(
            f"{path}: has neither 'index' nor 'timestamp' among its columns: its {unknown} rows "
            "are taken for samples of one GPU; if it is of several, record again with both"
        )


def _of_several_gpus(seconds: list[float]) -> bool:
    """Whether two fifths of the samples follow at once on another, as those of one tick do."""
    steps = np.diff(seconds)
    if len(steps) < 3:
        return False
    short, usual = np.quantile(steps, (0.4, 0.9))
    return bool(short < _ONE_GPU * usual)


def _timestamp(text: str, where: str) -> float:
    """Seconds since 1970: nvidia-smi's own form, ISO 8601, or seconds as a number."""
    try:
        if _SECONDS.fullmatch(text):
            return float(text)
        time = datetime.fromisoformat(text.replace("/", "-"))
        return time.timestamp() if time.tzinfo else (time - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        raise InputError(
            f"{where}, column 'timestamp': '{text[:40]}' is no time such as "
            "2024/03/29 11:16:49.355, nor seconds"
        ) from None


def read_dmon(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of `nvidia-smi dmon`, with times where -o T or DT asked for them.

    Raises InputError.
    """
    day, before = timedelta(0), timedelta(0)
    for where, row in rows(path, lines, _dmon_cells, lambda cells: "gpu" in cells):
        time_s = None
        if "Time" in row:
            clock = _clock_time(row, where)
            if clock < before:  # -o T has no date: past midnight
                day += timedelta(days=1)
            before = clock
            time_s = (clock + day).total_seconds()
        yield Sample(row["gpu"], None, time_s, values_of(row, _DMON, where))


def _dmon_cells(text: str) -> list[str] | None:
    """The names behind '#', or the values; None of the line of units. CSV has commas between."""
    words = text.replace("#", " ").replace(",", " ").split()
    is_of_units = text.lstrip().startswith("#") and "gpu" not in words
    return None if is_of_units else words


def _clock_time(row: Mapping[str, str], where: str) -> timedelta:
    text, form = row["Time"], "%H:%M:%S"
    if "Date" in row:
        text, form = f"{row['Date']} {text}", "%Y%m%d %H:%M:%S"
    try:
        start = _EPOCH if "Date" in row else datetime(1900, 1, 1)
        return datetime.strptime(text, form) - start
    except ValueError:
        raise InputError(f"{where}, column 'Time': '{text[:40]}' is no time") from None
