"""How well two readings of a run tell its time, power and energy on GPUs that no model learnt from.

    python tools/two_clocks.py DEVICE=PATH...

DEVICE is the GPU's name in `mlscale devices list`. PATH is one of these:

- results/master/aggregated_all_kernels_effective.csv of
  https://github.com/apAdomas/GPU-FREQUENCY-DVFS, of which the highest memory clock is taken;
- a CSV of one's own with the columns kernel, engine_mhz, memory_mhz, time_ms and power_w; each
  kernel at each memory clock is a workload.

The shipped model `nvidia-sampled` is given each workload's time and power at the highest clock that
was kept and at one at two thirds of it or just below, as `mlscale advise LOG --also LOG` gives
them, and predicts the others, down to LOW of the highest. Beside it stand rules that need no
training, and what the clock of least predicted energy costs more than the best one does.
"""

import csv
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import mlscale
from mlscale.arrays import Floats, Mask
from mlscale.cli.text import columns
from mlscale.data.device_table import load_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.same_work import LOW, SECOND_CLOCK
from mlscale.data.surfaces import Surfaces
from mlscale.predictions import COVERAGE

MODEL = Path(__file__).parent.parent / "models" / "nvidia-sampled.mlscale"
LEAST_CLOCKS = 4
CAPPED = 0.97  # of the default power limit: from there on the GPU may lower its clock
Sweep = tuple[Floats, Floats, Floats, float]  # clocks [MHz], times [ms], powers [W], memory [MHz]


def read_kernels(path: Path, device: str) -> list[Sweep]:
    """The sweeps of a table of kernels, where the power limit leaves the clock as it was set."""
    limit_w = capped_from_w(device)
    rows = [row for row in read_rows(path) if row["is_auto_baseline"] == "0"]
    highest = max(float(row["effective_mem_clock"]) for row in rows)
    kernels: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        is_kept = float(row["avg_power_mean_W"]) < limit_w
        if is_kept and float(row["effective_mem_clock"]) == highest:
            kernels.setdefault((row["workload"], row["kernel"]), []).append(row)
    names = ("effective_core_clock", "time_per_launch_mean_ms", "avg_power_mean_W")
    return [(*in_order(own, names), highest) for own in kernels.values()]


def read_own(path: Path) -> list[Sweep]:
    """The sweeps of a table of one's own."""
    workloads: dict[tuple[str, float], list[dict[str, str]]] = {}
    for row in read_rows(path):
        workloads.setdefault((row["kernel"], float(row["memory_mhz"])), []).append(row)
    names = ("engine_mhz", "time_ms", "power_w")
    return [(*in_order(rows, names), memory) for (_, memory), rows in workloads.items()]


def sweeps_of(path: Path, device: str) -> list[Sweep]:
    """The sweeps of a file, of whichever of the two kinds it is."""
    with path.open(encoding="utf-8") as file:
        is_own = "engine_mhz" in file.readline().strip().split(",")
    return read_own(path) if is_own else read_kernels(path, device)


def capped_from_w(device: str) -> float:
    """The power from which on a GPU may run below the clock that it was set to [W]."""
    return CAPPED * (load_device(device).tdp_w or math.inf)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def in_order(rows: list[dict[str, str]], names: tuple[str, ...]) -> Floats:
    """The columns, by the first, from LOW of its highest value on, (n, N)."""
    values = np.array([[float(row[name]) for name in names] for row in rows]).T
    values = values[:, np.argsort(values[0])]
    return np.asarray(values[:, values[0] >= LOW * values[0, -1]])


def second_of(clocks: Floats) -> int:
    """The place of the second reading."""
    return max(int(np.sum(clocks <= SECOND_CLOCK * clocks[-1])) - 1, 0)


def predict(model: mlscale.Model, device: str, sweep: Sweep) -> dict[str, Floats]:
    """Low end, value and high end of time [ms] and power [W] at every clock, (3, N).

    `power from one` is that of the highest clock alone, with the measured times.
    """
    clocks, times, watts, memory_mhz = sweep
    cu_count, second = load_device(device).cu_count, second_of(clocks)
    grid = ConfigGrid((cu_count,), tuple(clocks.tolist()), (memory_mhz,))
    at_second = grid.config((0, second, 0))
    profiles = Profiles(
        device,
        grid.highest,
        kernels=("run",),
        applications=("run",),
        time_ms=times[-1:],
        power_w=watts[-1:],
        counter_names=(),
        counters=np.empty((1, 0)),
        metadata={"profile_kind": "sampled"},
        points=(MeasuredPoint(at_second, times[[second]], watts[[second]]),),
    )
    ratios = {"time": model.predictors["time"].predict_interval(profiles, COVERAGE, grid)}
    power = model.predictors["power"]
    ratios["power"] = power.with_times(ratios["time"]).predict_interval(profiles, COVERAGE, grid)
    measured = Surfaces(grid, grid.highest, (times / times[-1]).reshape(1, *grid.shape))
    from_one = power.with_times(measured)
    one = replace(profiles, points=())
    ratios["power from one"] = from_one.predict_interval(one, COVERAGE, grid)
    at_base = {"time": times[-1], "power": watts[-1], "power from one": watts[-1]}
    return {
        quantity: at_base[quantity] * np.array([of.low, of.values, of.high])[:, 0, 0, :, 0]
        for quantity, of in ratios.items()
    }


def line(clocks: Floats, values: Floats) -> Floats:
    """A straight line through both readings, on logarithmic axes, at every clock."""
    known = [second_of(clocks), -1]
    slope = np.diff(np.log(values[known])) / np.diff(np.log(clocks[known]))
    return np.asarray(values[-1] * (clocks / clocks[-1]) ** slope)


def percent_off(values: Floats, measured: Floats, new: Mask) -> float:
    """Mean absolute error at the clocks that were not read [%]."""
    return float(100 * np.abs(values / measured - 1)[new].mean())


def figures(model: mlscale.Model, device: str, sweep: Sweep) -> dict[str, float]:
    """Errors, shares within 90 % intervals and what energy costs more [%], of one workload."""
    clocks, times, watts, _ = sweep
    new = np.ones(len(clocks), dtype=bool)
    new[[second_of(clocks), -1]] = False
    predicted = predict(model, device, sweep)
    rules = {
        "time": {
            "flat": np.full_like(times, times[-1]),
            "1 / clock": times[-1] * clocks[-1] / clocks,
            "straight line": line(clocks, times),
        },
        "power": {
            "flat": np.full_like(watts, watts[-1]),
            "straight line": line(clocks, watts),
        },
        "power from one": {},
    }
    row = {}
    for quantity, truth in (("time", times), ("power", watts), ("power from one", watts)):
        low, values, high = predicted[quantity]
        row[f"{quantity}: error"] = percent_off(values, truth, new)
        row[f"{quantity}: intervals hold"] = float(
            100 * ((low <= truth) & (truth <= high))[new].mean()
        )
        for name, by_rule in rules[quantity].items():
            row[f"{quantity}: error, {name}"] = percent_off(by_rule, truth, new)
    energy = times * watts
    choices = {
        "at the clock of least predicted energy": predicted["time"][1] * predicted["power"][1],
        "by the straight lines": line(clocks, times) * line(clocks, watts),
        "at the highest clock": -clocks,
        "at the second reading's": np.arange(len(clocks)) != second_of(clocks),
    }
    for name, least in choices.items():
        row[f"energy too high {name}"] = float(100 * (energy[np.argmin(least)] / energy.min() - 1))
    return row


def main(arguments: list[str]) -> None:
    """Print the means over each GPU's workloads."""
    model = mlscale.load(MODEL)
    means: dict[str, list[str]] = {}
    gpus = [argument.partition("=") for argument in arguments]
    for device, _, place in gpus:
        sweeps = sweeps_of(Path(place), device)
        rows = [figures(model, device, sweep) for sweep in sweeps if len(sweep[0]) >= LEAST_CLOCKS]
        means.setdefault("workloads", []).append(str(len(rows)))
        for name in rows[0]:
            means.setdefault(name, []).append(f"{np.mean([row[name] for row in rows]):.2f}")
    print("Means over the workloads [%]; from two readings of each, at the other clocks:")
    print(columns(["", *(gpu[0] for gpu in gpus)], [[name, *of] for name, of in means.items()]))


if __name__ == "__main__":
    main(sys.argv[1:])
