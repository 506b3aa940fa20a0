"""Whole runs over the engine clock, of many GPUs: the tables that `runs.py` predicts.

Public files are looked for in the folder MLSCALE_DATA; the tables of headroom ship. A table has
runs that were measured at the same clocks, so that a GPU may have several.
"""

import csv
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from mlscale import ConfigGrid, Measurements
from mlscale.arrays import Floats
from mlscale.data.datasets import dataset, named_file, path
from mlscale.data.devices import known_device
from mlscale.data.logs import clocks_not_reached
from mlscale.data.measurements import from_table
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.table_files import read_table
from mlscale.errors import DataWarning, InputError

REGISTERED = ("a100-sampled", "rtx8000-sampled", "v100-sampled", "p100")
HEADROOM = ("headroom-rtx5060ti", "headroom-rtx3070ti", "headroom-rtx3060", "headroom-rtx2060s")
SAME_CLOCK = 1.005  # within which rows of a run are one, such as those under caps that do not bite
# Its times do not follow the clocks that were set, so that only its power is looked at.
WITHOUT_TIMES = "v100"
Rows = list[tuple[float, float, float]]  # of a run: engine clock [MHz] or cap [W], time, power [W]
Tables = dict[str, list[Measurements]]


def file_in(*parts: str) -> Path:
    """A file of the folder MLSCALE_DATA. Raises FileNotFoundError."""
    folder = os.environ.get("MLSCALE_DATA")
    if not folder:
        raise FileNotFoundError("MLSCALE_DATA does not name the folder of the public tables")
    file = Path(folder, *parts)
    if not file.exists():
        raise FileNotFoundError(f"{file} is not there")
    return file


def csv_rows(*parts: str) -> list[dict[str, str]]:
    """The rows of a CSV of the folder MLSCALE_DATA. Raises FileNotFoundError."""
    with file_in(*parts).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_of_runs(
    device: str, names: list[str], clocks: Floats, times: Floats, powers: Floats
) -> Measurements:
    """Runs at engine clocks (E,) [MHz], ascending; times and powers [W] (K, E)."""
    entry = known_device(device)
    memory = entry.datasheet.memory_mhz if entry and entry.datasheet else 1000.0
    grid = ConfigGrid((entry.cu_count if entry else 1,), tuple(clocks.tolist()), (memory,))
    shape = (1, len(names), 1, len(clocks), 1)
    return Measurements(
        device,
        grid,
        tuple(names),
        tuple(names),
        times.reshape(shape),
        powers.reshape(shape),
        (),
        np.empty((*shape, 0)),
        {"profile_kind": "sampled"},
    )


def registered(name: str) -> list[Measurements]:
    """A public data set, without the clocks that the GPU did not keep. Raises InputError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the known faults of the files
        table = read_nv_dvfs(named_file(name), None)
    return [kept_clocks(table)]


def headroom(name: str) -> list[Measurements]:
    """A table of headroom, in parts by the clocks that kernels were measured at."""
    table = read_table(path(dataset(name).file))
    kernels, clocks = np.array(table.text["kernel"]), table.numbers["engine_mhz"]
    parts: dict[tuple[float, ...], list[str]] = {}
    for kernel in dict.fromkeys(kernels.tolist()):
        parts.setdefault(tuple(np.unique(clocks[kernels == kernel])), []).append(kernel)
    rows = [np.flatnonzero(np.isin(kernels, part)) for part in parts.values()]
    return [kept_clocks(from_table(table.select(row.tolist()))) for row in rows]


def kept_clocks(table: Measurements) -> Measurements:
    """The table at its highest memory clock, without clocks that the GPU did not keep."""
    clocks = np.array(table.grid.engine_mhz)
    kept = ~np.isin(clocks, list(clocks_not_reached(table)))
    times, powers = (table.quantity(name)[:, -1, kept, -1] for name in ("time", "power"))
    return table_of_runs(table.device, list(table.kernels), clocks[kept], times, powers)


def one_run(device: str, name: str, rows: Rows) -> Measurements:
    """A run's rows as a table, those at the same clock averaged."""
    together: list[Rows] = []
    for row in sorted(rows):
        if together and row[0] < SAME_CLOCK * together[-1][0][0]:
            together[-1].append(row)
        else:
            together.append([row])
    clocks, times, powers = np.array([np.mean(part, axis=0) for part in together]).T
    return table_of_runs(device, [name], clocks, times[None], powers[None])


def rtx3090() -> list[Measurements]:
    """Two phases of a dense language model on an RTX 3090, under caps with the clock observed."""
    runs: dict[str, Rows] = {}
    for row in csv_rows("caps", "club-3090-power-caps.csv"):
        if row["sm_clock_mhz"]:
            values = float(row["sm_clock_mhz"]), 1 / float(row["tps"]), float(row["actual_w"])
            runs.setdefault(row["load"], []).append(values)
    return [one_run("rtx3090", name, rows) for name, rows in runs.items()]


def rtx5000ada() -> list[Measurements]:
    """Kernels of known intensity on an RTX 5000 Ada, under caps with the clock observed."""
    runs: dict[str, Rows] = {}
    for row in csv_rows("caps", "rtx5000ada-caps-by-intensity.csv"):
        name = f"{row['regime']}-{row['arithmetic_intensity_flop_per_byte']}"
        values = float(row["mean_sm_mhz"]), float(row["seconds"]), float(row["mean_w"])
        runs.setdefault(name, []).append(values)
    return [one_run("rtx-5000-ada", name, rows) for name, rows in runs.items()]


@cache
def tables() -> Tables:
    """The runs by GPU; a set whose file is not there is left out, and said."""
    loaders: list[Callable[[], list[Measurements]]] = []
    loaders += [partial(registered, name) for name in REGISTERED]
    loaders += [partial(headroom, name) for name in HEADROOM]
    loaders += [rtx3090, rtx5000ada]
    found: Tables = {}
    for loader in loaders:
        try:
            for table in loader():
                found.setdefault(table.device, []).append(table)
        except (InputError, FileNotFoundError) as error:
            print(f"left out: {error}")
    return found


def power_alone(device: str, file_name: str) -> Measurements:
    """Power of micro-benchmarks at the highest memory clock; all times are 1. FileNotFoundError.

    Below a header of four lines the file has W, engine and memory clock, and utilisations, kernel
    by kernel.
    """
    with file_in("power-clocks", file_name).open(encoding="utf-8", newline="") as file:
        rows = [[float(row[column]) for column in range(3)] for row in list(csv.reader(file))[4:]]
    values = np.array(rows)
    values = values[values[:, 2] == values[:, 2].max()]
    clocks, places = np.unique(values[:, 1], return_inverse=True)
    powers = np.empty((len(values) // len(clocks), len(clocks)))
    powers[np.arange(len(values)) // len(clocks), places] = values[:, 0]
    names = [f"kernel{place}" for place in range(len(powers))]
    return table_of_runs(device, names, clocks, np.ones_like(powers), powers)
