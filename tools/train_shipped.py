"""Train the shipped models on public measurements, from the registry's files.

    MLSCALE_DATA=FOLDER PYTHONPATH=reproduction python tools/train_shipped.py [NAME ...]

FOLDER holds the files of the public data sets, in whatever sub-folders; they are known by their
checksums, see `mlscale datasets list`. What `runs` learns from, and how far off it is on GPUs left
out, is by reproduction/run_tables.py and run_predictions.py. A model holds fitted numbers and the
names of the kernels, no row of a table; its card names sources, licences and what it is for.

Two public sets cannot serve the law of runs, so that none is learnt from: Zeus's sweeps of power
caps have no clocks, and gpupowermodel's of clocks have no times (tests/predictors/test_runs.py
has its power as a test).
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from run_predictions import QUANTITIES, by_law, law_for, outcome
from run_tables import source, sources, tables, training_tables

from mlscale.arrays import Floats
from mlscale.data.datasets import named_file
from mlscale.data.measurements import Measurements
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.points import SECOND_CLOCK
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, without_base
from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model, train
from mlscale.predictors.runs import Runs
from mlscale.studies.study import plan

MODELS = Path(__file__).parent.parent / "models"
NVIDIA = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")
TIME_LEFT_OUT = (
    f"mlscale study errors {' '.join(f'{name}.parquet' for name in NVIDIA)} --base mid "
    "--unseen-gpu --seeds 1"
)


def main(names: list[str]) -> None:
    """Train the named models, or all of them, and write them to models/."""
    for name in names or TRAINERS:
        model = TRAINERS[name]()
        model.save(MODELS / f"{name}.mlscale")
        print(f"models/{name}.mlscale: {model!r}")


@cache
def measurements(name: str) -> Measurements:
    """One public table, read from where it lies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_nv_dvfs(file_named(name), None)


def file_named(name: str) -> Path:
    """The file of a public data set; ends with a message where it is not here."""
    try:
        return named_file(name)
    except InputError as error:
        sys.exit(str(error))


def kernels() -> Model:
    """Time of profiled kernels on any GPU, from tables of three of NVIDIA's."""
    first, *others = map(measurements, NVIDIA)
    model = train(
        first, first.grid.mid, "bottleneck", others=[(table, table.grid.mid) for table in others]
    )
    power = law("power")
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": [*dict.fromkeys([*map(source, NVIDIA), *sources()])],
        "for": "profiled kernels on any GPU of the device table",
        "other_vendors": "its intervals were never checked on others",
        "time_on_gpus_left_out": time_left_out(),
        "time_on_gpus_left_out_from": TIME_LEFT_OUT,
        "power_learnt_from": list(power.trained_devices()),
        "power_intervals_hold_percent": power_held(model),
    }
    return replace(model, card=model.card | card)


def time_left_out() -> dict[str, dict[str, float]]:
    """By table the mean error of time [%], and the share within the 90 % intervals [%].

    Of applications held out, on a GPU all of whose tables are left out, from the mid-grid.
    """
    tables = {name: measurements(name) for name in NVIDIA}
    study = plan("errors", tables, base="mid", training="unseen-gpu", quantity="time", seeds=1)
    return {
        row["table"]: {
            "mean_error_percent": round(row["mape"], 2),
            "intervals_hold_percent": round(row["coverage"], 1),
        }
        for row in study.rows(study.results())
    }


def power_held(model: Model) -> dict[str, float]:
    """Share of power within the 90 % intervals [%] on the tables that time was learnt from.

    Power was not, or is left out here. From the mid-grid, over the engine clocks but the base's,
    with the times that the model predicts.
    """
    held: dict[str, float] = {}
    for name in NVIDIA:
        table = measurements(name)
        _, power = law_for(table.device)
        held[name] = held_on(replace(model, predictors=model.predictors | {"power": power}), table)
        print(f"{name}: 90 % intervals of power hold {held[name]} %")
    return held


def held_on(model: Model, table: Measurements) -> float:
    """Share of power within the 90 % intervals [%], at engine clocks, from a table's mid-grid."""
    base = table.grid.mid
    profiles = table.profiles(base)
    turned = model.for_gpu(table.device, table.grid, base, profiles)
    power = turned.predict(profiles, 0.9).surfaces["power"]
    _, held = off_and_held(power, table.relative("power", base))
    held = np.where(np.isfinite(power.values), held, np.nan)
    return round(float(np.nanmean(without_base(held, table.grid.index(base)))), 1)


def runs() -> Model:
    """Time and power of a run on any GPU, from its averages at two engine clocks."""
    first, *others = training_tables()
    model = train(
        first,
        first.grid.highest,
        "runs",
        others=[(table, table.grid.highest) for table in others],
        quantity="time",
    )
    power = law("power")
    model = replace(model, predictors=model.predictors | {"power": power})
    held = {quantity: learnt.held_["two"] for quantity, learnt in model.predictors.items()}
    held["energy"] = power.held_["energy"]
    card = {
        "sources": sources(),
        "for": "a run's averages at two engine clocks or more, on any GPU",
        "other_vendors": (
            "of AMD's it learnt from one MI325X under caps and the power of one MI350X; times at a "
            "locked clock of theirs were never tried"
        ),
        "errors_on_gpus_left_out": from_two_clocks(),
        "errors_on_gpus_left_out_from": "python tools/train_shipped.py runs",
        "intervals_hold_on": {name: f"{n} of {m} GPUs left out" for name, (n, m) in held.items()},
        "power_learnt_from": list(power.trained_devices()),
    }
    print(f"90 % intervals hold on {card['intervals_hold_on']}")
    return replace(model, card=model.card | card)


def law(quantity: str) -> Runs:
    """The law of runs, learnt from all of them."""
    found = training_tables()
    return Runs(quantity=quantity).fit(found, [table.grid.highest for table in found])


def from_two_clocks() -> dict[str, dict[str, dict[str, float]]]:
    """By GPU and quantity the mean error [%], and the share within 90 % intervals [%].

    From the highest clock and the one nearest to SECOND_CLOCK of it, at the others.
    """
    errors: dict[str, dict[str, dict[str, float]]] = {}
    for device, found in tables().items():
        one = outcome(found, by_law, (SECOND_CLOCK,))
        everywhere = np.ones(len(one.over_lowest), dtype=bool)
        off = {name: one.mean(one.errors, name, everywhere) for name in QUANTITIES}
        errors[device] = {
            name: {
                "mean_error_percent": round(value, 2),
                "intervals_hold_percent": round(one.mean(one.held, name, everywhere), 1),
            }
            for name, value in off.items()
            if np.isfinite(value)
        }
        words = (
            f"{name} {one['mean_error_percent']} % off, intervals hold "
            f"{one['intervals_hold_percent']} %"
            for name, one in errors[device].items()
        )
        print(f"{device}: {'; '.join(words)}")
    return errors


def off_and_held(predicted: Surfaces, actual: Floats) -> Floats:
    """The errors [%], and 100 where the intervals hold the truth, else 0: (2, K, C, E, M)."""
    errors = absolute_percentage_error(predicted.values, actual)
    return np.array([errors, 100.0 * predicted.holds(actual)])


TRAINERS: dict[str, Callable[[], Model]] = {"kernels": kernels, "runs": runs}

if __name__ == "__main__":
    main(sys.argv[1:])
