"""Whole runs over the engine clock, of many GPUs: what `runs` learns from and `runs.py` predicts.

Public files are looked for in the folder MLSCALE_DATA; the tables of headroom ship. A table has
runs that were measured at the same clocks, so that a GPU may have several. Two boards of the H100,
the A100 and the V100 count as one GPU each.
"""

import csv
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np

from mlscale import ConfigGrid, Measurements
from mlscale.arrays import Floats
from mlscale.data.datasets import dataset, named_file, path
from mlscale.data.devices import known_device
from mlscale.data.logs import POWER_ALONE, PROFILE_KIND, clocks_not_reached
from mlscale.data.measurements import from_table
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.table_files import read_table
from mlscale.errors import DataWarning, InputError
from mlscale.predictors.runs_law import LEAST_CLOCKS

REGISTERED = ("a100-sampled", "rtx8000-sampled", "v100-sampled", "p100")
HEADROOM = ("headroom-rtx5060ti", "headroom-rtx3070ti", "headroom-rtx3060", "headroom-rtx2060s")
SAME_CLOCK = 1.005  # within which rows of a run are one, such as those under caps that do not bite
# Its times rise up to three times as fast as the clock falls, which no engine clock can do:
# something else was changed too, so that only its power is looked at.
ODD_TIMES = "v100-sampled"
LOWEST = 0.36  # share of a run's highest clock from which on it is learnt from
MOST_W = 1000.0  # that an MI350X draws
LEAST_SAMPLES = 5  # for a mean of a busy GPU
# Public sets of one GPU each, in the columns of mlscale's tables.
MODERN = ("b300", "b200", "rtx-pro-6000-blackwell", "rtx-4000-ada", "rtx4050-laptop")
LEFT_OUT = ("powervirus-2s",)  # another run at the same caps, for 2 s
DATACENTER = {  # by the first word of files' names
    "h100": "h100-sxm5",
    "h200": "h200",
    "a100": "a100-sxm4-80gb",
    "a40": "a40",
}
# Engine clocks [MHz] above which a run did not go, whatever was asked: the GPU's highest, or what
# its limit of power left it.
REACHED_MHZ = {
    ("h100-sxm5", "AMBER"): 1785.0,
    ("h100-sxm5", "GROMACS"): 1770.0,
    ("h100-sxm5", "FIRESTARTER"): 1335.0,
    ("h200", "FIRESTARTER"): 1410.0,
    ("a40", "FIRESTARTER"): 1395.0,
    ("rtx-pro-6000-blackwell", "pro6000"): 2205.0,
}
# Where the sets are from that mlscale's registry does not name, with commits and licences.
FURTHER = (
    "github.com/sinkers/gpu-power-lab 249b1c95 (no licence stated)",
    "github.com/GeometricAGI/blog, sparse-matmul-speedup (no licence stated)",
    "github.com/giordano/gpu-power-frequency-benchmarks 2fe08d22 (no licence stated)",
    "github.com/tanish111/Adaptive-GPU-Power-Capping a2327e12 (no licence stated)",
    "github.com/DarshEllisd/Roofline-modeling-powercapping c525f255, 4c2a92cd (no licence stated)",
    "github.com/zyjopensource/GPU-DVFS-Dataset b25725fe (no licence stated)",
    "github.com/hibagus/SC25_AMD_CDNA3_Artifact 06e08111 (MIT)",
    "github.com/williamqwu/sol-execbench-rocm 0f2d867c (no licence stated)",
    "github.com/AyeshaAfzal91/GPU-Energy-Sweetspot 78f77994 (no licence stated)",
    "github.com/apAdomas/GPU-FREQUENCY-DVFS 13eb4b4d (no licence stated)",
)
Rows = list[tuple[float, float, float]]  # engine clock [MHz] or cap [W], time, power [W]
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
    device: str,
    names: list[str],
    clocks: Floats,
    times: Floats,
    powers: Floats,
    tells_times: bool = True,
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
        {"profile_kind": PROFILE_KIND, "power_kind": "board", "origin": "measured"}
        | ({} if tells_times else POWER_ALONE),
    )


def registered(name: str) -> list[Measurements]:
    """A public data set, without the clocks that the GPU did not keep. Raises InputError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the known faults of the files
        table = read_nv_dvfs(named_file(name), None)
    return [kept_clocks(table, tells_times=name != ODD_TIMES)]


def headroom(name: str) -> list[Measurements]:
    """A table of headroom, in parts by the clocks that kernels were measured at."""
    table = read_table(path(dataset(name).file))
    kernels, clocks = np.array(table.text["kernel"]), table.numbers["engine_mhz"]
    parts: dict[tuple[float, ...], list[str]] = {}
    for kernel in dict.fromkeys(kernels.tolist()):
        parts.setdefault(tuple(np.unique(clocks[kernels == kernel])), []).append(kernel)
    rows = [np.flatnonzero(np.isin(kernels, part)) for part in parts.values()]
    return [kept_clocks(from_table(table.select(row.tolist()))) for row in rows]


def kept_clocks(table: Measurements, tells_times: bool = True) -> Measurements:
    """The table at its highest memory clock, without clocks that the GPU did not keep."""
    clocks = np.array(table.grid.engine_mhz)
    kept = ~np.isin(clocks, list(clocks_not_reached(table)))
    times, powers = (table.quantity(name)[:, -1, kept, -1] for name in ("time", "power"))
    names = list(table.kernels)
    return table_of_runs(table.device, names, clocks[kept], times, powers, tells_times)


def one_run(device: str, name: str, rows: Rows, tells_times: bool = True) -> Measurements:
    """A run's rows as a table, those at the same clock averaged."""
    together: list[Rows] = []
    for row in sorted(rows):
        if together and row[0] < SAME_CLOCK * together[-1][0][0]:
            together[-1].append(row)
        else:
            together.append([row])
    clocks, times, powers = np.array([np.mean(part, axis=0) for part in together]).T
    return table_of_runs(device, [name], clocks, times[None], powers[None], tells_times)


def runs_of(device: str, rows: list[dict[str, str]]) -> list[Measurements]:
    """The runs of a table in mlscale's columns, up to the clocks that they reached."""
    runs: dict[tuple[str, str], Rows] = {}
    for row in rows:
        values = (float(row[column]) for column in ("engine_mhz", "time_ms", "power_w"))
        mhz, *others = values
        most_mhz = REACHED_MHZ.get((device, row["application"]), np.inf)
        if mhz <= most_mhz and row["kernel"] not in LEFT_OUT:
            runs.setdefault((row["application"], row["kernel"]), []).append((mhz, *others))
    return [one_run(device, "-".join(name), found) for name, found in runs.items()]


def modern(name: str) -> list[Measurements]:
    """A public set of one GPU. Raises FileNotFoundError."""
    return runs_of(name, csv_rows("modern", f"{name}.csv"))


def v100_applications() -> list[Measurements]:
    """33 applications on another board of the V100. Raises FileNotFoundError."""
    return runs_of("v100", csv_rows("modern", "v100-sxm2-32gb.csv"))


def datacenter(word: str) -> list[Measurements]:
    """AMBER, GROMACS and FIRESTARTER, over the clocks asked for. Raises FileNotFoundError."""
    files = sorted(file_in("modern", "datacenter").glob(f"{word}-*-clocks.csv"))
    rows = [row for file in files for row in csv_rows("modern", "datacenter", file.name)]
    return runs_of(DATACENTER[word], rows)


def rtx3080ti() -> list[Measurements]:
    """56 kernels, but for the clock below the one that was kept. Raises FileNotFoundError."""
    rows = csv_rows("modern", "rtx3080ti", "times.csv")
    kept = [row for row in rows if row["memory_mhz"] == "9501" and row["engine_mhz"] != "210"]
    return joined(runs_of("rtx3080ti", kept))


def mi325x() -> list[Measurements]:
    """GEMMs of hipBLASLt in three modes of power, with the clock observed. FileNotFoundError."""
    runs: dict[str, Rows] = {}
    for row in csv_rows("modern", "cdna3-gemm.csv"):
        if row["mode"].startswith("MI325X") and int(row["n_busy"]) >= LEAST_SAMPLES:
            work = float(row["gflops"]) / 1e6
            values = float(row["engine_mhz"]), 1 / work, float(row["power_w"])
            runs.setdefault(f"{row['lib']}-{row['kernel']}", []).append(values)
    tables = [one_run("mi325x", name, rows) for name, rows in runs.items() if len(rows) > 2]
    return [table for table in tables if len(table.grid.engine_mhz) >= LEAST_CLOCKS]


def mi350x() -> list[Measurements]:
    """Power of a GEMM on GPU 0, over the clocks observed below its limit. FileNotFoundError."""
    found = csv_rows("modern", "mi350x.csv")
    rows = [row for row in found if row["gpu"] == "0" and float(row["median_power_w"]) < MOST_W]
    values = [(float(r["achieved_median_mhz"]), float(r["median_power_w"])) for r in rows]
    return [one_run("mi350x", "gemm", [(mhz, 1 / mhz, w) for mhz, w in values], tells_times=False)]


def joined(found: list[Measurements]) -> list[Measurements]:
    """Tables of one run each as one, where the clocks are the same."""
    first = found[0]
    times, powers = (
        np.concatenate([table.quantity(name)[:, 0, :, 0] for table in found])
        for name in ("time", "power")
    )
    names = [name for table in found for name in table.kernels]
    return [table_of_runs(first.device, names, np.array(first.grid.engine_mhz), times, powers)]


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
    loaders += [rtx3090, rtx5000ada, v100_applications, rtx3080ti, mi325x, mi350x]
    loaders += [partial(modern, name) for name in MODERN]
    loaders += [partial(datacenter, word) for word in DATACENTER]
    found: Tables = {}
    for loader in loaders:
        try:
            for table in loader():
                found.setdefault(table.device, []).append(table)
        except (InputError, FileNotFoundError) as error:
            print(f"left out: {error}")
    return found


def training_tables(left_out: str = "") -> list[Measurements]:
    """What `runs` learns from: all runs but one GPU's, from LOWEST of their highest clock on.

    How low any GPU's answers go is by the lowest.
    """
    found = []
    for table in chain(*(mine for device, mine in tables().items() if device != left_out)):
        clocks = np.array(table.grid.engine_mhz)
        first = int((clocks < LOWEST * clocks[-1]).sum())
        if len(clocks) - first >= LEAST_CLOCKS:
            found.append(table.at_steps("engine_mhz", slice(first, None)))
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
    return table_of_runs(device, names, clocks, np.ones_like(powers), powers, tells_times=False)


def source(name: str) -> str:
    """Where a set of mlscale's registry is from, and under which licence."""
    one = dataset(name)
    return f"{one.url or one.url_of_parts} ({one.licence or 'no licence stated'})"


def sources() -> list[str]:
    """Where the runs are from, and under which licence."""
    return [*dict.fromkeys(map(source, (*REGISTERED, *HEADROOM, "club-3090"))), *FURTHER]
