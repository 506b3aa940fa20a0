"""How well two readings of a run tell its time, power and energy on GPUs that no model learnt from.

    python reproduction/two_readings.py DEVICE=CSV...

DEVICE is the GPU's name in `mlscale devices list`; CSV has the columns kernel, engine_mhz,
memory_mhz, time_ms and power_w; each kernel at each memory clock is a workload. The shipped model
`runs` is given each workload's time and power at the highest clock and at one at two thirds of it
or just below, as `mlscale advise LOG --also LOG` gives them, and predicts the others, down to LOW
of the highest. Beside it stand rules that need no training, and what the clock of least predicted
energy costs more than the best one does. docs/sampled-errors.md has the figures.
"""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import mlscale
from mlscale.arrays import Floats
from mlscale.cli.text import columns
from mlscale.data.devices import load_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.points import LOW, SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.model.predictions import COVERAGE

MODEL = Path(__file__).parent.parent / "models" / "runs.mlscale"
LEAST_CLOCKS = 4
Sweep = tuple[Floats, Floats, Floats, float]  # clocks [MHz], times [ms], powers [W], memory [MHz]


def read_sweeps(path: Path) -> list[Sweep]:
    """The workloads of a table, by clock, from LOW of their highest on."""
    workloads: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = tuple(float(row[name]) for name in ("engine_mhz", "time_ms", "power_w"))
            workloads.setdefault((row["kernel"], float(row["memory_mhz"])), []).append(numbers)
    sweeps = []
    for (_, memory_mhz), rows in workloads.items():
        values = np.array(sorted(rows)).T
        sweeps.append((*values[:, values[0] >= LOW * values[0, -1]], memory_mhz))
    return sweeps


def second_of(clocks: Floats) -> int:
    """The place of the second reading."""
    return max(int(np.sum(clocks <= SECOND_CLOCK * clocks[-1])) - 1, 0)


def predict(model: mlscale.Model, device: str, sweep: Sweep) -> dict[str, Floats]:
    """Low end, value and high end of time [ms] and power [W] at every clock, (3, N).

    `power from one` is that of the highest clock alone, with the measured times.
    """
    clocks, times, watts, memory_mhz = sweep
    second = second_of(clocks)
    grid = ConfigGrid((load_device(device).cu_count,), tuple(clocks.tolist()), (memory_mhz,))
    one = Profiles(
        device,
        grid.highest,
        kernels=("run",),
        applications=("run",),
        time_ms=times[-1:],
        power_w=watts[-1:],
        counter_names=(),
        counters=np.empty((1, 0)),
        metadata={"profile_kind": "sampled"},
    )
    at_second = MeasuredPoint(grid.config((0, second, 0)), times[[second]], watts[[second]])
    both = replace(one, points=(at_second,))
    power = model.predictors["power"]
    time = model.predictors["time"].predict_interval(both, COVERAGE, grid)
    measured = Surfaces(grid, grid.highest, (times / times[-1]).reshape(1, *grid.shape))
    ratios = {
        "time": (times[-1], time),
        "power": (watts[-1], power.with_times(time).predict_interval(both, COVERAGE, grid)),
        "power from one": (
            watts[-1],
            power.with_times(measured).predict_interval(one, COVERAGE, grid),
        ),
    }
    return {
        quantity: at_base * np.array([of.low, of.values, of.high])[:, 0, 0, :, 0]
        for quantity, (at_base, of) in ratios.items()
    }


def line(clocks: Floats, values: Floats) -> Floats:
    """A straight line through both readings, on logarithmic axes, at every clock."""
    known = [second_of(clocks), -1]
    slope = np.diff(np.log(values[known])) / np.diff(np.log(clocks[known]))
    return np.asarray(values[-1] * (clocks / clocks[-1]) ** slope)


def figures(model: mlscale.Model, device: str, sweep: Sweep) -> dict[str, float]:
    """Errors, shares within 90 % intervals and what energy costs more [%], of one workload."""
    clocks, times, watts, _ = sweep
    new = np.ones(len(clocks), dtype=bool)  # the clocks that were not read
    new[[second_of(clocks), -1]] = False
    predicted = predict(model, device, sweep)
    by_rule = {
        "time": {
            "flat": np.full_like(times, times[-1]),
            "1 / clock": times[-1] * clocks[-1] / clocks,
            "straight line": line(clocks, times),
        },
        "power": {"flat": np.full_like(watts, watts[-1]), "straight line": line(clocks, watts)},
    }
    row = {}
    for quantity, truth in (("time", times), ("power", watts), ("power from one", watts)):
        low, values, high = predicted[quantity]
        held = ((low <= truth) & (truth <= high))[new].mean()
        row[f"{quantity}: error"] = 100 * np.abs(values / truth - 1)[new].mean()
        row[f"{quantity}: intervals hold"] = 100 * held
        for name, own in by_rule.get(quantity, {}).items():
            row[f"{quantity}: error, {name}"] = 100 * np.abs(own / truth - 1)[new].mean()
    energy = times * watts
    choices = {
        "at the clock of least predicted energy": predicted["time"][1] * predicted["power"][1],
        "by the straight lines": line(clocks, times) * line(clocks, watts),
        "at the highest clock": -clocks,
        "at the second reading's": np.arange(len(clocks)) != second_of(clocks),
    }
    for name, least in choices.items():
        row[f"energy too high {name}"] = 100 * (energy[np.argmin(least)] / energy.min() - 1)
    return {name: float(value) for name, value in row.items()}


def main(arguments: list[str]) -> None:
    """Print the means over each GPU's workloads."""
    model = mlscale.load(MODEL)
    means: dict[str, list[str]] = {}
    gpus = [argument.partition("=") for argument in arguments]
    for device, _, place in gpus:
        sweeps = [sweep for sweep in read_sweeps(Path(place)) if len(sweep[0]) >= LEAST_CLOCKS]
        rows = [figures(model, device, sweep) for sweep in sweeps]
        means.setdefault("workloads", []).append(str(len(rows)))
        for name in rows[0]:
            means.setdefault(name, []).append(f"{np.mean([row[name] for row in rows]):.2f}")
    print("Means over the workloads [%]; from two readings of each, at the other clocks:")
    print(columns(["", *(gpu[0] for gpu in gpus)], [[name, *of] for name, of in means.items()]))


if __name__ == "__main__":
    main(sys.argv[1:])
