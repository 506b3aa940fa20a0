"""Train the shipped models on public measurements, from the registry's files.

    MLSCALE_DATA=FOLDER python tools/train_shipped.py [NAME ...]

FOLDER holds the files of the public data sets, in whatever sub-folders; they are known by their
checksums, see `mlscale datasets list`; headroom's tables ship. A model holds fitted numbers and the
names of the kernels, no row of a table; its card names sources, licences and what it is for.

Two public sets cannot serve the law of runs, so that none is learnt from: Zeus's sweeps of power
caps have no clocks, and gpupowermodel's of clocks have no times (tests/predictors/test_board.py
has its power as a test).
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.datasets import all_datasets, dataset, named_file, path
from mlscale.data.devices import load_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.logs import PROFILE_KIND, clocks_not_reached
from mlscale.data.measurements import Measurements, from_table
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.points import LOW, SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, without_base
from mlscale.data.table import Table
from mlscale.data.table_files import read_csv, read_table
from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model, train
from mlscale.predictors.board import Board
from mlscale.studies.study import plan

MODELS = Path(__file__).parent.parent / "models"
NVIDIA = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")
HEADROOM = tuple(name for name, one in all_datasets().items() if one.parts)
CAPPED = "club-3090"
RUNS = ("a100-sampled", "rtx8000-sampled", "v100-sampled", "p100", *HEADROOM, CAPPED)
# Between 802 and 705 MHz times of the V100's table rise up to three times as fast as the clock
# falls, which no engine clock can do: something else was changed too. It tells of power alone.
CLOCKS_NOT_KEPT = "v100-sampled"
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


@cache
def tables_of(name: str) -> list[Measurements]:
    """A data set at its highest memory clock, in parts where workloads differ in their clocks."""
    if name in HEADROOM:
        return in_parts(read_table(path(dataset(name).file)))
    if name == CAPPED:
        return in_parts(runs_under_caps())
    table = measurements(name)
    step = table.grid.memory_mhz.index(table.grid.highest.memory_mhz)
    return [table.at_steps("memory_mhz", slice(step, step + 1))]


def runs_under_caps() -> Table:
    """The runs of one dense model on an RTX 3090, at the clocks that power caps led to.

    Down to LOW of the highest, as all tables: how low any GPU's answers go is by the lowest.
    """
    raw = read_csv(file_named(CAPPED), ("gpu", "workload", "load", "source_file"))
    clocks, is_gpu = raw.numbers["sm_clock_mhz"], np.array(raw.text["gpu"]) == "RTX 3090"
    raw = raw.select(np.flatnonzero(is_gpu & (clocks >= LOW * clocks[is_gpu].max())).tolist())
    key, loads = dataset(CAPPED).device, raw.text["load"]
    memory_mhz = max(load_device(key).supported_memory_mhz)
    numbers = {
        "engine_mhz": raw.numbers["sm_clock_mhz"],
        "memory_mhz": np.full(len(raw), float(memory_mhz)),
        "time_ms": 1e6 / raw.numbers["tps"],  # of 1000 tokens
        "power_w": raw.numbers["actual_w"],
    }
    text = {"device": [key] * len(raw), "application": loads, "kernel": loads}
    return Table(CAPPED, text, numbers, {"profile_kind": PROFILE_KIND, "power_kind": "board"})


def in_parts(table: Table) -> list[Measurements]:
    """Kernels with the same engine clocks together, each part on a whole grid."""
    of_row, clocks = np.array(table.text["kernel"]), table.numbers["engine_mhz"]
    parts: dict[tuple[float, ...], list[str]] = {}
    for kernel in dict.fromkeys(of_row.tolist()):
        parts.setdefault(tuple(np.unique(clocks[of_row == kernel])), []).append(kernel)
    rows = [np.flatnonzero(np.isin(of_row, names)) for names in parts.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return [from_table(table.select(part)) for part in rows]


def kernels() -> Model:
    """Time of profiled kernels on any GPU, from tables of three of NVIDIA's."""
    first, *others = map(measurements, NVIDIA)
    model = train(
        first, first.grid.mid, "bottleneck", others=[(table, table.grid.mid) for table in others]
    )
    power = board("power")
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": sources(NVIDIA, RUNS),
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

    Power was not, or is left out here. From the mid-grid, over the whole grid but the base, with
    the times that the model predicts.
    """
    held: dict[str, float] = {}
    for name in NVIDIA:
        table = measurements(name)
        power = board("power", left_out=table.device if name in RUNS else "")
        held[name] = held_on(replace(model, predictors=model.predictors | {"power": power}), table)
        print(f"{name}: 90 % intervals of power hold {held[name]} %")
    return held


def held_on(model: Model, table: Measurements) -> float:
    """Share of power within the 90 % intervals [%], from the mid-grid of a table."""
    base = table.grid.mid
    profiles = table.profiles(base)
    turned = model.for_gpu(table.device, table.grid, base, profiles)
    power = turned.predict(profiles, 0.9).surfaces["power"]
    _, held = off_and_held(power, table.relative("power", base))
    return round(float(without_base(held, table.grid.index(base)).mean()), 1)


def runs() -> Model:
    """Time and power of a run on any GPU, from its averages at two engine clocks."""
    (table, base), *others = training("time")
    model = train(table, base, "board", others=others, quantity="time")
    power = board("power")
    model = replace(model, predictors=model.predictors | {"power": power})
    held = {quantity: learnt.held_ for quantity, learnt in model.predictors.items()}
    card = {
        "sources": sources(RUNS),
        "for": "a run's averages at two engine clocks or more, on any GPU",
        "other_vendors": (
            "on others only its power was tried, of one kernel on an MI350X and an MI355X, and of "
            "65 on an RX 580"
        ),
        "errors_on_gpus_left_out": from_two_clocks(),
        "errors_on_gpus_left_out_from": "python tools/train_shipped.py runs",
        "intervals_hold_on": {name: f"{n} of {m} GPUs left out" for name, (n, m) in held.items()},
        "power_learnt_from": list(power.trained_devices()),
    }
    print(f"90 % intervals hold on {card['intervals_hold_on']}")
    return replace(model, card=model.card | card)


def training(quantity: str, left_out: str = "") -> list[tuple[Measurements, HardwareConfig]]:
    """What a quantity is learnt from, each table with its base: all runs but one GPU's."""
    names = [name for name in RUNS if dataset(name).device != left_out]
    if quantity == "time":
        names = [name for name in names if name != CLOCKS_NOT_KEPT]
    return [(table, table.grid.highest) for name in names for table in tables_of(name)]


@cache
def board(quantity: str, left_out: str = "") -> Board:
    """The law of runs, learnt from all but those of one GPU."""
    return Board(quantity=quantity).fit(*map(list, zip(*training(quantity, left_out), strict=True)))


def from_two_clocks() -> dict[str, dict[str, dict[str, float]]]:
    """By table and quantity the mean error [%], and the share within 90 % intervals [%]."""
    errors = {}
    for name in dict.fromkeys((*RUNS, *NVIDIA)):
        left_out = dataset(name).device if name in RUNS else ""
        time, power = board("time", left_out), board("power", left_out)
        errors[name] = errors_on(time, power, tables_of(name))
        words = (
            f"{quantity} {one['mean_error_percent']} % off, intervals hold "
            f"{one['intervals_hold_percent']} %"
            for quantity, one in errors[name].items()
        )
        print(f"{name}: {'; '.join(words)}")
    return errors


def errors_on(
    time: Board, power: Board, tables: Sequence[Measurements]
) -> dict[str, dict[str, float]]:
    """Mean errors [%] on a GPU's tables and shares within 90 % intervals [%], by quantity."""
    parts = [off_on(time, power, table) for table in tables]
    errors = {}
    for quantity in parts[0]:
        off, within = np.hstack([part[quantity] for part in parts])
        errors[quantity] = {
            "mean_error_percent": round(float(np.nanmean(off)), 2),
            "intervals_hold_percent": round(float(within.mean()), 1),
        }
    return errors


def off_on(time: Board, power: Board, table: Measurements) -> dict[str, Floats]:
    """The errors on one table and where 90 % intervals hold, (2, n) [%] by quantity.

    From the highest clock and the one nearest to SECOND_CLOCK of it, at the other clocks that the
    GPU kept. Power from one reading is that of the highest clock alone, with the measured times.
    """
    base, clocks = table.grid.highest, np.array(table.grid.engine_mhz)
    second_mhz = clocks[np.abs(clocks / base.engine_mhz - SECOND_CLOCK).argmin()]
    second = table.profiles(replace(base, engine_mhz=float(second_mhz)))
    one = table.profiles(base)
    both = replace(one, points=(MeasuredPoint(second.base, second.time_ms, second.power_w),))
    true = {quantity: table.relative(quantity, base) for quantity in ("time", "power")}
    times = time.predict_interval(both, 0.9, table.grid)
    of_both = power.with_times(times)
    of_one = power.with_times(Surfaces(table.grid, base, true["time"]))
    predicted = {
        "time": (times, true["time"]),
        "power": (of_both.predict_interval(both, 0.9, table.grid), true["power"]),
        "energy": (
            of_both.predict_energy(both, 0.9, table.grid),
            true["time"] * true["power"],
        ),
        "power from one reading": (of_one.predict_interval(one, 0.9, table.grid), true["power"]),
    }
    lost = clocks_not_reached(table)
    new = [clock not in (base.engine_mhz, second_mhz, *lost) for clock in clocks]
    return {
        quantity: off_and_held(*pair)[:, :, :, new].reshape(2, -1)
        for quantity, pair in predicted.items()
    }


def off_and_held(predicted: Surfaces, actual: Floats) -> Floats:
    """The errors [%], and 100 where the intervals hold the truth, else 0: (2, K, C, E, M)."""
    errors = absolute_percentage_error(predicted.values, actual)
    return np.array([errors, 100.0 * predicted.holds(actual)])


def sources(*names: Sequence[str]) -> list[str]:
    """Where data sets are from, and under which licence."""
    sets = map(dataset, chain(*names))
    where = (f"{s.url or s.url_of_parts} ({s.licence or 'no licence stated'})" for s in sets)
    return list(dict.fromkeys(where))


TRAINERS: dict[str, Callable[[], Model]] = {"kernels": kernels, "runs": runs}

if __name__ == "__main__":
    main(sys.argv[1:])
