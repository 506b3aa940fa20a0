"""Train the shipped models on public measurements, from the registry's files.

    MLSCALE_DATA=FOLDER python tools/train_shipped.py [NAME ...]

FOLDER holds the files of the public data sets, in whatever sub-folders; they are known by their
checksums, see `mlscale datasets list`. A model holds fitted numbers and the names of the kernels,
no row of a table; its card names sources, licences and what it is for.
"""

import os
import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.public.nv_dvfs import read_nv_dvfs
from mlscale.data.public.registry import Dataset, dataset, identify
from mlscale.data.sampled import SECOND_CLOCK, clocks_not_reached
from mlscale.data.surfaces import Surfaces, without_base
from mlscale.errors import DataWarning
from mlscale.model import Model, train
from mlscale.predictors.board_power.estimator import BoardPower
from mlscale.predictors.board_time import BoardTime
from mlscale.predictors.sampled.estimator import Sampled
from mlscale.studies.crossval import cross_validate
from mlscale.studies.splits import folds
from mlscale.studies.study import plan

MODELS = Path(__file__).parent.parent / "models"
SAMPLED = ("a100-sampled", "rtx8000-sampled", "v100-sampled")
NVIDIA = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")
# Between 802 and 705 MHz times of the V100's table rise up to three times as fast as the clock
# falls, which no engine clock can do: something else was changed too.
CLOCKS_NOT_KEPT = "v100"
TIME_LEFT_OUT = (
    f"mlscale study errors {' '.join(f'{name}.parquet' for name in NVIDIA)} --unseen-gpu --seeds 1"
)


def main(names: list[str]) -> None:
    """Train the named models, or all of them, and write them to models/."""
    folder = os.environ.get("MLSCALE_DATA")
    if not folder:
        sys.exit("set MLSCALE_DATA to the folder with the public data sets")
    files = public_files(Path(folder))
    for name in names or TRAINERS:
        model = TRAINERS[name](files)
        model.save(MODELS / f"{name}.mlscale")
        print(f"models/{name}.mlscale: {model!r}")


def public_files(folder: Path) -> dict[str, Path]:
    """The files of the public data sets that a folder holds, by the names of the sets."""
    files = (path for path in sorted(folder.rglob("*.csv")))
    sets = ((identify(path.read_bytes()), path) for path in files)
    return {one.name: path for one, path in sets if one is not None}


def measurements(files: dict[str, Path], name: str) -> tuple[Measurements, Dataset]:
    """One public data set, read from where it lies."""
    if name not in files:
        sys.exit(f"{name} is not in MLSCALE_DATA; see 'mlscale datasets show {name}'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_nv_dvfs(files[name], None), dataset(name)


def nvidia_time(files: dict[str, Path]) -> Model:
    """Time of profiled kernels on any NVIDIA GPU, from tables of three."""
    tables, sets = zip(*(measurements(files, name) for name in NVIDIA), strict=True)
    first, *others = tables
    model = train(
        first, first.grid.mid, "bottleneck", others=[(table, table.grid.mid) for table in others]
    )
    power, of_power = power_of_any_gpu(files)
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": [source(one) for one in (*sets, *of_power)],
        "for": "any NVIDIA GPU",
        "time_on_gpus_left_out": time_left_out(files),
        "time_on_gpus_left_out_from": TIME_LEFT_OUT,
        "power_learnt_from": list(power.trained_devices()),
        "power_intervals_hold_percent": power_held(model, files),
    }
    return replace(model, card=model.card | card)


def time_left_out(files: dict[str, Path]) -> dict[str, dict[str, float]]:
    """By table the mean error of time [%], and the share within the 90 % intervals [%].

    Of applications held out, on a GPU all of whose tables are left out, from the mid-grid.
    """
    tables = {name: measurements(files, name)[0] for name in NVIDIA}
    study = plan("errors", tables, training="unseen-gpu", quantity="time", seeds=1)
    return {
        row["table"]: {
            "mean_error_percent": round(row["mape"], 2),
            "intervals_hold_percent": round(row["coverage"], 1),
        }
        for row in study.rows(study.results())
    }


def power_of_any_gpu(
    files: dict[str, Path], left_out: str | None = None
) -> tuple[BoardPower, list[Dataset]]:
    """Power from tables of board power, each from its highest clock and its mid-grid.

    It is learnt from the sampled profiles of the A100 and the RTX 8000. All other tables, but
    those of the GPU that is left out, only widen the intervals: they follow other curves.
    """
    training, sets = at_two_bases(files, (left_out,))
    power = BoardPower(spread_from=("v100", "gtx980", "gtx1080ti", "p100"))
    return power.fit(*map(list, zip(*training, strict=True))), sets[: len(SAMPLED)]


def power_held(model: Model, files: dict[str, Path]) -> dict[str, dict[str, float]]:
    """Share of power within the 90 % intervals [%] on the tables that only widen them.

    'shipped': where the GPU widens them too; 'left_out': where it does not. From the mid-grid,
    over the whole grid but the base, with the times that the model predicts.
    """
    held: dict[str, dict[str, float]] = {}
    for name in NVIDIA:
        table, _ = measurements(files, name)
        without, _ = power_of_any_gpu(files, left_out=table.device)
        left_out = replace(model, predictors=model.predictors | {"power": without})
        held[name] = {"shipped": held_on(model, table), "left_out": held_on(left_out, table)}
        print(f"{name}: 90 % intervals of power hold {held[name]} %")
    return held


def held_on(model: Model, table: Measurements) -> float:
    """Share of power within the 90 % intervals [%], from the mid-grid of a table."""
    base = table.grid.mid
    profiles = table.profiles(base)
    turned = model.for_gpu(table.device, table.grid, base, profiles)
    power = turned.predict(profiles, 0.9).surfaces["power"]
    actual = table.relative("power", base)
    within = (power.low <= actual) & (actual <= power.high)
    percent = np.where(within, 100.0, 0.0)
    return round(float(without_base(percent, table.grid.index(base)).mean()), 1)


def nvidia_sampled(files: dict[str, Path]) -> Model:
    """Time and power of a sampled run on any NVIDIA GPU, from its averages at two engine clocks.

    Time is not learnt from the V100, whose clocks are not to be trusted; it is predicted all the
    same.
    """
    training, sets = at_two_bases(files, (CLOCKS_NOT_KEPT,))
    (table, base), *others = training
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # power is another predictor's
        model = train(table, base, "board-time", others=others)
    power, _ = power_of_any_gpu(files)
    model = replace(model, predictors={"time": model.predictors["time"], "power": power})
    card = {
        "sources": [source(one) for one in sets],
        "for": "a run's averages at two engine clocks or more, on any NVIDIA GPU",
        "errors_on_gpus_left_out": from_two_clocks(files),
        "errors_on_gpus_left_out_from": "python tools/train_shipped.py nvidia-sampled",
        "power_learnt_from": list(power.trained_devices()),
    }
    return replace(model, card=model.card | card)


def at_two_bases(
    files: dict[str, Path], left_out: Collection[str | None] = ()
) -> tuple[list[tuple[Measurements, HardwareConfig]], list[Dataset]]:
    """All tables but those of some GPUs, each at its highest clocks and at its mid-grid."""
    tables, sets = zip(*(measurements(files, name) for name in (*SAMPLED, *NVIDIA)), strict=True)
    pairs = [
        (table, table.grid.config(base))
        for table in tables
        if table.device not in left_out
        for base in ("highest", "mid")
    ]
    return [(at_memory_clock(table, base.memory_mhz), base) for table, base in pairs], list(sets)


def from_two_clocks(files: dict[str, Path]) -> dict[str, dict[str, dict[str, float]]]:
    """By table mean errors [%] of time and power, and their shares within 90 % intervals [%].

    Of runs on a GPU all of whose tables are left out, from its highest clock and one at two thirds
    of it or just below; at the other clocks that the GPU kept.
    """
    errors = {}
    for name in (*SAMPLED, *NVIDIA):
        table, _ = measurements(files, name)
        base = table.grid.highest
        table = at_memory_clock(table, base.memory_mhz)
        training, _ = at_two_bases(files, (table.device, CLOCKS_NOT_KEPT))
        clocks = np.array(table.grid.engine_mhz)
        second_mhz = max(clocks[clocks <= SECOND_CLOCK * base.engine_mhz], default=clocks[0])
        second = table.profiles(replace(base, engine_mhz=float(second_mhz)))
        point = MeasuredPoint(second.base, second.time_ms, second.power_w)
        profiles = replace(table.profiles(base), points=(point,))
        time = BoardTime().fit(*map(list, zip(*training, strict=True)))
        times = time.predict_interval(profiles, 0.9, table.grid)
        power, _ = power_of_any_gpu(files, left_out=table.device)
        powers, of_nvidia_smi = (
            power.with_times(times).predict_interval(one, 0.9, table.grid)
            for one in (profiles, without_counters(profiles))
        )
        known = {base.engine_mhz, second_mhz, *clocks_not_reached(table)}
        new = [clock not in known for clock in clocks]
        errors[name] = {
            quantity: of_surfaces(surfaces, table.relative(quantity, base), new)
            for quantity, surfaces in (("time", times), ("power", powers))
        }
        off, hold = (
            [errors[name][quantity][figure] for quantity in ("time", "power")]
            for figure in ("mean_error_percent", "intervals_hold_percent")
        )
        alone = of_surfaces(of_nvidia_smi, table.relative("power", base), new)
        rules = simple_rules(profiles, table, new)
        print(
            f"{name}, from {base.engine_mhz:g} and {second_mhz:g} MHz: time {off[0]} % off "
            f"({rules}), intervals hold {hold[0]} %; power {off[1]} % off, intervals hold "
            f"{hold[1]} %, by nvidia-smi alone {alone['mean_error_percent']} % off, hold "
            f"{alone['intervals_hold_percent']} %"
        )
    return errors


def without_counters(profiles: Profiles) -> Profiles:
    """What `nvidia-smi` tells of runs: times and powers."""
    return replace(
        profiles,
        counter_names=(),
        counters=np.empty((len(profiles.kernels), 0)),
        metadata={"profile_kind": "sampled"},
    )


def simple_rules(profiles: Profiles, table: Measurements, new: list[bool]) -> str:
    """What rules without training err in time at some engine clocks [%], in words."""
    actual = table.relative("time", profiles.base)[:, 0, new, 0]
    clocks = np.log(np.array(table.grid.engine_mhz)[new] / profiles.base.engine_mhz)
    (point,) = profiles.points
    slope = np.log(point.time_ms / profiles.time_ms) / np.log(
        point.config.engine_mhz / profiles.base.engine_mhz
    )
    rules = {"none": 0.0 * clocks, "clock": -clocks, "line": slope[:, None] * clocks}
    return ", ".join(
        f"{name} {100 * np.abs(np.exp(logs) / actual - 1).mean():.2f}"
        for name, logs in rules.items()
    )


def of_surfaces(predicted: Surfaces, actual: Floats, new: list[bool]) -> dict[str, float]:
    """Mean error [%] at some engine clocks, and the share within the intervals [%]."""
    off = np.abs(predicted.values / actual - 1)[:, :, new]
    within = ((predicted.low <= actual) & (actual <= predicted.high))[:, :, new]
    return {
        "mean_error_percent": round(float(100 * np.nanmean(off)), 2),
        "intervals_hold_percent": round(float(100 * within.mean()), 1),
    }


def at_memory_clock(table: Measurements, memory_mhz: float) -> Measurements:
    """The table's rows at one of its memory clocks."""
    step = [table.grid.memory_mhz.index(memory_mhz)]
    power = table.power_samples
    return replace(
        table,
        grid=replace(table.grid, memory_mhz=(memory_mhz,)),
        time_samples=table.time_samples[..., step],
        power_samples=None if power is None else power[..., step],
        counter_samples=table.counter_samples[..., step, :],
    )


def sampled(files: dict[str, Path], name: str, note: str | None = None) -> Model:
    """Time and power of sampled runs on one GPU, with the errors of applications held out."""
    table, of_table = measurements(files, f"{name}-sampled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = train(table, "highest", "sampled")
        errors = {base: held_out_errors(table, base) for base in ("highest", "mid")}
    card = {
        "sources": [source(of_table)],
        "for": f"sampled runs on {table.device} and boards of the same chip",
        "mean_errors_percent": errors,
        "errors_from": f"mlscale study errors {name}.parquet --predictor sampled --base BASE",
    }
    return replace(model, card=model.card | card | ({"note": note} if note else {}))


def held_out_errors(table: Measurements, base: str) -> dict[str, float]:
    """Mean error of time and of power [%], each application held out in turn, from one base."""
    at = table.grid.config(base)
    split = folds("leave-one-application-out", table.applications, 0)
    errors: dict[str, float] = {}
    for quantity in ("time", "power"):
        predicted = cross_validate(
            table,
            [at],
            split,
            lambda q=quantity: [Sampled(quantity=q, intervals=False, bases=0)],
        )
        errors[quantity] = round(float(np.concatenate([f.errors for f in predicted]).mean()), 2)
    return errors


def source(one: Dataset) -> str:
    """Where a data set is from, and under which licence."""
    return f"{one.url} ({one.licence or 'no licence stated'})"


NOT_THE_SET_CLOCK = (
    "below 700 MHz the GPU ran slower than it was set to: good for power, poor for time"
)
TRAINERS: dict[str, Callable[[dict[str, Path]], Model]] = {
    "nvidia-time": nvidia_time,
    "nvidia-sampled": nvidia_sampled,
    "a100": partial(sampled, name="a100"),
    "rtx8000": partial(sampled, name="rtx8000"),
    "v100": partial(sampled, name="v100", note=NOT_THE_SET_CLOCK),
}

if __name__ == "__main__":
    main(sys.argv[1:])
