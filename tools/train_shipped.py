"""Train the shipped models on public measurements, from the registry's files.

    MLSCALE_DATA=FOLDER python tools/train_shipped.py [NAME ...]

FOLDER holds the files of the public data sets, in whatever sub-folders; they are known by their
checksums, see `mlscale datasets list`; headroom's tables ship. A model holds fitted numbers and the
names of the kernels, no row of a table; its card names sources, licences and what it is for.
"""

import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from mlscale.predictors.board_power import BoardPower

from mlscale.arrays import Floats
from mlscale.data.datasets import all_datasets, dataset, named_file, path
from mlscale.data.grid import HardwareConfig
from mlscale.data.logs import clocks_not_reached
from mlscale.data.measurements import Measurements, from_table
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.points import SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, without_base
from mlscale.data.table import Table
from mlscale.data.table_files import read_table
from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model, train
from mlscale.predictors.board import BoardTime
from mlscale.studies.study import plan

MODELS = Path(__file__).parent.parent / "models"
SAMPLED = ("a100-sampled", "rtx8000-sampled", "v100-sampled")
NVIDIA = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")
HEADROOM = tuple(name for name, one in all_datasets().items() if one.parts)
ALL_TABLES = (*SAMPLED, *NVIDIA, *HEADROOM)
# Between 802 and 705 MHz times of the V100's table rise up to three times as fast as the clock
# falls, which no engine clock can do: something else was changed too.
CLOCKS_NOT_KEPT = "v100"
# No tool locks these GPUs' clocks: their tables were made with offsets, which move the clock that
# belongs to a voltage, so that power over the clock is of another kind. They widen the intervals.
CLOCKS_BY_OFFSETS = ("gtx980", "gtx1080ti")
TIME_LEFT_OUT = (
    f"mlscale study errors {' '.join(f'{name}.parquet' for name in NVIDIA)} --unseen-gpu --seeds 1"
)


def main(names: list[str]) -> None:
    """Train the named models, or all of them, and write them to models/."""
    for name in names or TRAINERS:
        model = TRAINERS[name]()
        model.save(MODELS / f"{name}.mlscale")
        print(f"models/{name}.mlscale: {model!r}")


@cache
def measurements(name: str) -> Measurements:
    """One public data set, read from where it lies."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return read_nv_dvfs(named_file(name), None)
    except InputError as error:
        sys.exit(str(error))


@cache
def tables_of(name: str) -> list[Measurements]:
    """A data set; one of headroom comes in parts."""
    if name in HEADROOM:
        return in_parts(read_table(path(dataset(name).file)))
    return [measurements(name)]


def in_parts(table: Table) -> list[Measurements]:
    """Kernels with the same engine clocks together, each part on a whole grid."""
    of_row, clocks = np.array(table.text["kernel"]), table.numbers["engine_mhz"]
    parts: dict[tuple[float, ...], list[str]] = {}
    for kernel in dict.fromkeys(of_row.tolist()):
        parts.setdefault(tuple(np.unique(clocks[of_row == kernel])), []).append(kernel)
    rows = [np.flatnonzero(np.isin(of_row, names)) for names in parts.values()]
    return [from_table(table.select(own)) for own in rows]


def kernels() -> Model:
    """Time of profiled kernels on any GPU, from tables of three of NVIDIA's."""
    first, *others = map(measurements, NVIDIA)
    model = train(
        first, first.grid.mid, "bottleneck", others=[(table, table.grid.mid) for table in others]
    )
    power = power_of_any_gpu()
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": sources(NVIDIA, ALL_TABLES),
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
    study = plan("errors", tables, training="unseen-gpu", quantity="time", seeds=1)
    return {
        row["table"]: {
            "mean_error_percent": round(row["mape"], 2),
            "intervals_hold_percent": round(row["coverage"], 1),
        }
        for row in study.rows(study.results())
    }


@cache
def power_of_any_gpu(left_out: str | None = None) -> BoardPower:
    """Power from all tables of board power but those of the GPU left out.

    Those whose clocks were not locked only widen the intervals.
    """
    training = at_two_bases((left_out,))
    return BoardPower(spread_from=CLOCKS_BY_OFFSETS).fit(*map(list, zip(*training, strict=True)))


def power_held(model: Model) -> dict[str, float]:
    """Share of power within the 90 % intervals [%] on the tables that time was learnt from.

    Power was not, or is left out here. From the mid-grid, over the whole grid but the base, with
    the times that the model predicts.
    """
    held: dict[str, float] = {}
    for name in NVIDIA:
        table = measurements(name)
        power = power_of_any_gpu(left_out=table.device)
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
    """Time and power of a run on any GPU, from its averages at two engine clocks.

    Time is not learnt from the V100, whose clocks are not to be trusted, and power not from GPUs
    whose clocks cannot be locked; they are predicted all the same.
    """
    (table, base), *others = at_two_bases((CLOCKS_NOT_KEPT,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # power is another predictor's
        model = train(table, base, "board-time", others=others)
    power = power_of_any_gpu()
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": sources(ALL_TABLES),
        "for": "a run's averages at two engine clocks or more, on any GPU",
        "other_vendors": (
            "on others only its power was tried, of one kernel on an MI350X and an MI355X"
        ),
        "errors_on_gpus_left_out": from_two_clocks(),
        "errors_on_gpus_left_out_from": "python tools/train_shipped.py runs",
        "power_learnt_from": list(power.trained_devices()),
    }
    return replace(model, card=model.card | card)


def at_two_bases(
    left_out: Collection[str | None],
) -> list[tuple[Measurements, HardwareConfig]]:
    """All tables but those of some GPUs, each at its highest clocks and at its mid-grid."""
    pairs = [
        (table, table.grid.config(base))
        for name in ALL_TABLES
        if dataset(name).device not in left_out
        for table in tables_of(name)
        for base in ("highest", "mid")
    ]
    return [(at_memory_clock(table, base.memory_mhz), base) for table, base in pairs]


def from_two_clocks() -> dict[str, dict[str, dict[str, float]]]:
    """By table mean errors [%] of time and power, and their shares within 90 % intervals [%].

    Of runs on a GPU all of whose tables are left out, from the highest clock that they kept and one
    at two thirds of it or just below; at the other clocks that the GPU kept. Power from one reading
    is that of the highest clock alone, with the measured times.
    """
    errors = {}
    for name in ALL_TABLES:
        device = dataset(name).device
        training = at_two_bases((device, CLOCKS_NOT_KEPT))
        time = BoardTime().fit(*map(list, zip(*training, strict=True)))
        power = power_of_any_gpu(left_out=device)
        errors[name], rules = left_out(time, power, tables_of(name))
        simple = ", ".join(f"{rule} {off.mean():.2f}" for rule, off in rules.items())
        words = (
            f"{quantity} {own['mean_error_percent']} % off, intervals hold "
            f"{own['intervals_hold_percent']} %"
            for quantity, own in errors[name].items()
        )
        print(f"{name}: {'; '.join(words)}; time by simple rules: {simple}")
    return errors


def left_out(
    time: BoardTime, power: BoardPower, tables: Sequence[Measurements]
) -> tuple[dict[str, dict[str, float]], dict[str, Floats]]:
    """What models that did not learn from a GPU's tables are off [%], by quantity.

    The errors of simple rules of time besides, by rule.
    """
    parts, rules = zip(*(of_table(time, power, table) for table in tables), strict=True)
    errors = {}
    for quantity in parts[0]:
        off, within = np.hstack([part[quantity] for part in parts])
        errors[quantity] = {
            "mean_error_percent": round(float(np.nanmean(off)), 2),
            "intervals_hold_percent": round(float(within.mean()), 1),
        }
    return errors, {rule: np.concatenate([own[rule] for own in rules]) for rule in rules[0]}


def of_table(
    time: BoardTime, power: BoardPower, table: Measurements
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The errors on one table and where 90 % intervals hold, (2, n) [%] by quantity.

    The errors of simple rules of time besides, (n,) [%] by rule.
    """
    base = table.grid.highest
    table = at_memory_clock(table, base.memory_mhz)
    clocks = np.array(table.grid.engine_mhz)
    second_mhz = max(clocks[clocks <= SECOND_CLOCK * base.engine_mhz], default=clocks[0])
    second = table.profiles(replace(base, engine_mhz=float(second_mhz)))
    one = table.profiles(base)
    both = replace(one, points=(MeasuredPoint(second.base, second.time_ms, second.power_w),))
    times = time.predict_interval(both, 0.9, table.grid)
    measured = Surfaces(table.grid, base, table.relative("time", base))
    lost = clocks_not_reached(table)
    new = [clock not in (base.engine_mhz, second_mhz, *lost) for clock in clocks]
    actual = table.relative("power", base)
    of_both = power.with_times(times).predict_interval(both, 0.9, table.grid)
    of_one = power.with_times(measured).predict_interval(one, 0.9, table.grid)
    return {
        "time": off_and_held(times, measured.values)[:, :, :, new].reshape(2, -1),
        "power": off_and_held(of_both, actual)[:, :, :, new].reshape(2, -1),
        "power from one reading": off_and_held(of_one, actual)[:, :, :, new].reshape(2, -1),
    }, simple_rules(both, table, new)


def off_and_held(predicted: Surfaces, actual: Floats) -> Floats:
    """The errors [%], and 100 where the intervals hold the truth, else 0: (2, K, C, E, M)."""
    errors = absolute_percentage_error(predicted.values, actual)
    return np.array([errors, 100.0 * predicted.holds(actual)])


def simple_rules(profiles: Profiles, table: Measurements, new: list[bool]) -> dict[str, Floats]:
    """Errors in time of rules without training at some engine clocks [%]."""
    actual = table.relative("time", profiles.base)[:, 0, new, 0]
    clocks = np.log(np.array(table.grid.engine_mhz)[new] / profiles.base.engine_mhz)
    (point,) = profiles.points
    slope = np.log(point.time_ms / profiles.time_ms) / np.log(
        point.config.engine_mhz / profiles.base.engine_mhz
    )
    rules = {"none": 0.0 * clocks, "clock": -clocks, "line": slope[:, None] * clocks}
    return {name: 100 * np.abs(np.exp(logs) / actual - 1).ravel() for name, logs in rules.items()}


def at_memory_clock(table: Measurements, memory_mhz: float) -> Measurements:
    """The table's rows at one of its memory clocks."""
    step = table.grid.memory_mhz.index(memory_mhz)
    return table.at_steps("memory_mhz", slice(step, step + 1))


def sources(*names: Sequence[str]) -> list[str]:
    """Where data sets are from, and under which licence."""
    sets = map(dataset, chain(*names))
    where = (f"{s.url or s.url_of_parts} ({s.licence or 'no licence stated'})" for s in sets)
    return list(dict.fromkeys(where))


TRAINERS: dict[str, Callable[[], Model]] = {"kernels": kernels, "runs": runs}

if __name__ == "__main__":
    main(sys.argv[1:])
