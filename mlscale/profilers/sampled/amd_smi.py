"""amd-smi's logs: `metric --csv` and the table of `monitor`."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mlscale.errors import InputError
from mlscale.profilers.sampled.log import Lines, Sample, is_whole_row, number, values_of

_METRIC = {
    "socket_power": ("power_w", 1.0),
    "mem_0_clk": ("memory_mhz", 1.0),
    "gfx_activity": ("gpu_utilisation", 0.01),
    "umc_activity": ("memory_copy_utilisation", 0.01),
}
_MONITOR = {
    "POWER": ("power_w", 1.0),
    "GFX_CLK": ("engine_mhz", 1.0),
    "GFX_CLOCK": ("engine_mhz", 1.0),
    "MEM_CLOCK": ("memory_mhz", 1.0),
    "GFX%": ("gpu_utilisation", 0.01),
    "GFX_UTIL": ("gpu_utilisation", 0.01),
    "MEM%": ("memory_copy_utilisation", 0.01),
    "MEM_UTIL": ("memory_copy_utilisation", 0.01),
}
_DIE_CLOCK = re.compile(r"gfx_\d+_clk")
# A cell of monitor: N/A, or a number (or used/total) with its unit a blank away.
_CELL = re.compile(r"N/A|[\d.]+(?:\s*/\s*[\d.]+)?(?:\s*(?:W|°C|MHz|%|GB|MB|[MG]b/s)(?=\s|$))?")


def read_metric(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; its engine clock is the mean over its dies.

    Raises InputError.
    """
    header = lines[0][1].strip().split(",")
    dies = [name for name in header if _DIE_CLOCK.fullmatch(name)]
    for line, text in lines[1:]:
        cells = next(csv.reader([text.strip()]), [])
        where = f"{path}: row {line}"
        if not cells or cells == header:
            continue
        if not is_whole_row(cells, header, where, is_last=line == lines[-1][0]):
            continue
        row = dict(zip(header, cells, strict=True))
        time_s = number(row["timestamp"], where) if "timestamp" in row else None
        values = values_of(row, _METRIC, where)
        clocks = [number(row[name], f"{where}, column '{name}'") for name in dies]
        if not np.isnan(clocks).all():
            values["engine_mhz"] = float(np.nanmean(clocks))
        yield Sample(row["gpu"], None, time_s, values)


def read_monitor(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU, with times where --watch gave them. Raises InputError."""
    header: list[str] = []
    for line, text in lines:
        where = f"{path}: row {line}"
        words = text.split()
        if "GPU" in words[:2]:
            header = words
            continue
        cells = _CELL.findall(text)
        if not words or not is_whole_row(cells, header, where, is_last=line == lines[-1][0]):
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["GPU"].isdecimal():
            raise InputError(f"{where}, column 'GPU': '{row['GPU']}' is no index")
        time_s = number(row["TIMESTAMP"], where) if "TIMESTAMP" in row else None
        yield Sample(row["GPU"], None, time_s, values_of(row, _MONITOR, where))
