"""amd-smi's logs: CSV of `metric` and of `monitor`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mlscale.profilers.sampled.log import Lines, Sample, csv_cells, number, rows, values_of

_CSV = {  # of metric, then of monitor
    **dict.fromkeys(("socket_power", "power_usage"), "power_w"),
    "gfx_clk": "engine_mhz",
    **dict.fromkeys(("mem_0_clk", "mem_clock"), "memory_mhz"),
    **dict.fromkeys(("gfx_activity", "gfx"), "gpu_utilisation"),
    **dict.fromkeys(("umc_activity", "mem"), "memory_copy_utilisation"),
}
_DIE_CLOCK = re.compile(r"gfx_\d+_clk")


def read_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; where the clocks of its dies are there, their mean counts.

    Raises InputError.
    """
    header = csv_cells(lines[0][1])
    for where, row in rows(path, lines, csv_cells, lambda cells: cells == header):
        yield _sample(row["gpu"], row, row.get("timestamp"), where)


def _sample(gpu: str, cells: Mapping[str, str], timestamp: str | None, where: str) -> Sample:
    """Of cells by the names of the CSV. Raises InputError."""
    values = values_of(cells, _CSV, where)
    dies = [name for name in cells if _DIE_CLOCK.fullmatch(name)]
    clocks = [values_of(cells, {die: "engine_mhz"}, where)["engine_mhz"] for die in dies]
    if not np.isnan(clocks).all():
        values["engine_mhz"] = float(np.nanmean(clocks))
    return Sample(gpu, None, number(timestamp, where) if timestamp else None, values)
