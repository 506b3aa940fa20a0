"""How far off `bottleneck` is, and what its intervals hold, on every table with counters.

    MLSCALE_DATA=FOLDER python reproduction/counters.py [PART ...] [--csv docs/tables]

Parts: `own`, trained on the GPU's own table; `new`, on tables of other GPUs alone. Applications
are held out everywhere: in turn, on the suites in ten groups. From the profile, and with a second
reading: at about 3/4, 1/2 or 1/3 of the engine clock or of the SMs, in the mean of the three, at
settings that neither read. By use of DRAM's peak; kernels that wait use no unit by 30 %. Fair: from
a third of the engine clock, and half of the memory clock.

After a second reading on a new GPU intervals depend on the drift of a random walk. Over clocks it
is chosen for each chip on the others: that of DRIFTS by which 90 % intervals hold nearest to 90 %
in the mean distance over chips. Over SMs one chip alone was measured, so the model's drift stays.
"""

import os
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from common import MEASURED, REPOSITORY, Report, base_of, run, table

from mlscale import HardwareConfig, Measurements, read
from mlscale.arrays import Floats, Mask
from mlscale.counters.kernel_use import kernel_use
from mlscale.data.profiles import MeasuredPoint
from mlscale.predictors.base import predict_surfaces
from mlscale.predictors.bottleneck import model
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.readers.reading import read_table
from mlscale.studies.crossval import cross_validate, folds, same_table, unseen_gpu

AMPERE, AMPERE_BASE = "rtx3080ti", HardwareConfig(80, 1890, 9501)
SUITES = ("h100-suite", "h200-suite")
NAMES = (*MEASURED, AMPERE, *SUITES)
GROUPS = ("all", "below 30 %", "30 to 80 %", "above 80 %", "waiting")
READINGS = ("one", "two", "no scaling", "engine-bound")
PLACES = (3 / 4, 1 / 2, 1 / 3)  # the second reading's share of the base's engine clock or SMs
DRIFTS = (0.03, 0.05, 0.07, 0.1, 0.15)
SAME_CHIP = {"gtx980-high": "gtx980-low"}
TABLES_OF = {"own": "counters-own", "new": "counters-new"}


@cache
def found(name: str) -> tuple[Measurements, HardwareConfig]:
    """A table and the base of its profiles. Raises FileNotFoundError."""
    if name in MEASURED:
        return table(name), base_of(name)
    if name == AMPERE:
        return ampere(), AMPERE_BASE
    suite = read(REPOSITORY / "datasets" / f"{name}.csv")
    return suite, suite.usual


def ampere() -> Measurements:
    """The kernels of the RTX 3080 Ti that were counted, by ncu at clocks of its own."""
    folder = Path(os.environ.get("MLSCALE_DATA", "")) / "modern" / AMPERE
    times = pd.read_csv(folder / "times.csv")
    counted = read_table([folder / "ncu-raw.csv"]).table
    names = [name for name in counted.numbers if name not in times.columns]
    numbers = {name: counted.numbers[name] for name in names}
    data = times.merge(pd.DataFrame({"kernel": counted.text["kernel"], **numbers}), on="kernel")
    is_base = [data[axis] == at for axis, at in AMPERE_BASE.as_dict().items()]
    data.loc[~np.all(is_base, axis=0), names] = np.nan
    return replace(read(data), metadata=dict(counted.metadata))


@dataclass(frozen=True, eq=False)
class Scored:
    """Errors [%] by READINGS, and 100 where intervals of the first two held: (K, N), NaN if known.

    applications, use of DRAM, whether a kernel waits (K,); whether a configuration is fair (N,).
    N: configurations, once for each place of the second reading.
    """

    applications: tuple[str, ...]
    errors: list[Floats]
    held: list[Floats]
    use: Floats
    is_waiting: Mask
    is_fair: Mask

    @property
    def held_fair(self) -> float:
        """What intervals of two readings hold of the fair configurations [%]."""
        return float(np.nanmean(self.held[1][:, self.is_fair]))

    def rows(self) -> list[list[str]]:
        """By region and reading, a cell for each of GROUPS."""
        idle, busy = self.use < 0.3, self.use > 0.8
        regions = {} if self.is_fair.all() else {"fair": self.is_fair}
        groups = (np.ones_like(idle), idle, ~idle & ~busy, busy, self.is_waiting)
        return [
            [region, reading, *(self.cell(number, where, kernels) for kernels in groups)]
            for region, where in {**regions, "all": self.is_fair | True}.items()
            for number, reading in enumerate(READINGS)
        ]

    def cell(self, number: int, where: Mask, kernels: Mask) -> str:
        """Kernels, mean error and its standard error over applications, and what held."""
        if not kernels.any():
            return "-"
        of_kernel = np.nanmean(self.errors[number][kernels][:, where], axis=1)
        names = np.array(self.applications)[kernels]
        each = [of_kernel[names == name].mean() for name in dict.fromkeys(names)]
        told = f"{len(names)}: {of_kernel.mean():.1f}"
        if len(each) > 1:
            told += f" +-{np.std(each, ddof=1) / np.sqrt(len(each)):.1f}"
        held = self.held[number][kernels][:, where] if number < len(self.held) else np.empty(0)
        return f"{told} ({np.nanmean(held):.0f})" if held.size else told


def scored(name: str, training: str) -> dict[float, Scored]:
    """Predict every kernel of a table by models that saw neither it nor, if new, its GPU.

    By drift, which only predictions over clocks on a new GPU depend on.
    """
    (data, base), is_new = found(name), training == "new"
    known = SUITES if name in SUITES else MEASURED
    learning, others = (unseen_gpu, [found(one) for one in known]) if is_new else (same_table, [])
    protocol = "k-fold" if name in SUITES else "leave-one-application-out"
    splits, places = folds(protocol, data.applications, 0, 10), second_readings(data, base)
    drifts = DRIFTS if is_new and name not in SUITES else DRIFTS[:1]
    relative = data.measured_relative("time", base)
    errors, held = np.full((2, len(drifts), 2, len(places), *relative.shape), np.nan)
    found_by = cross_validate(data, [base], splits, lambda: [Bottleneck()], learning, others, 0.9)
    for (_, rows), one in zip(splits, found_by, strict=True):
        profiles, true = one.held_out.profiles(base), relative[rows]
        for (at, drift), (place, step) in product(enumerate(drifts), enumerate(places)):
            time_ms = one.held_out.quantity("time")[:, *data.grid.index(step)]
            again = replace(profiles, points=(MeasuredPoint(step, time_ms, None),))
            with patch.object(model, "UNTRAINED_DRIFT", drift):
                two = predict_surfaces(one.predictor, again, data.grid if is_new else None, 0.9)
            for number, surfaces in enumerate((one.surfaces, two)):
                off = 100 * np.abs(surfaces.values / true - 1)  # noqa: PD011
                holds = np.where(np.isnan(true), np.nan, 100.0 * surfaces.holds(true))
                errors[at, number, place, rows], held[at, number, place, rows] = off, holds
    for kept in (errors, held):
        kept[..., *data.grid.index(base)] = np.nan
        for place, step in enumerate(places):
            kept[:, :, place, :, *data.grid.index(step)] = np.nan
    use, settings = kernel_use(data.profiles(base)), data.grid.settings()
    slower = base.engine_mhz / settings["engine_mhz"] * base.cu_count / settings["cu_count"]
    plain = [100 * np.abs(slow / relative - 1) for slow in (1, slower.reshape(data.grid.shape))]
    units = np.array([use.memory, use.issue, use.l2, use.texture, use.shared, use.fp64])
    is_near = settings["memory_mhz"] >= base.memory_mhz / 2
    is_fair = np.tile(is_near & (settings["engine_mhz"] >= base.engine_mhz / 3), len(places))
    told = (use.memory, ~(units >= 0.3).any(axis=0), is_fair)
    by_drift = {}
    for at, drift in enumerate(drifts):
        rules = (np.where(np.isnan(errors[at, 0]), np.nan, one) for one in plain)
        kinds = ((*errors[at], *rules), held[at])
        flat = [[by_kernel(one) for one in kind] for kind in kinds]
        by_drift[drift] = Scored(data.applications, *flat, *told)
    return by_drift


def by_kernel(values: Floats) -> Floats:
    """Values (places, K, C, E, M) as (K, places x N)."""
    return np.moveaxis(values, 0, 1).reshape(values.shape[1], -1)


def second_readings(data: Measurements, base: HardwareConfig) -> list[HardwareConfig]:
    """Where the second reading is, at the base's other settings: steps nearest to PLACES."""
    axis = "cu_count" if len(data.grid.cu_count) > 1 else "engine_mhz"
    at_base, steps = getattr(base, axis), getattr(data.grid, axis)
    nearest = [min(steps, key=lambda step: abs(step - share * at_base)) for share in PLACES]
    return [replace(base, **{axis: step}) for step in dict.fromkeys(nearest) if step != at_base]


def chosen_drift(name: str, tables: dict[str, dict[float, Scored]]) -> float:
    """The drift by which intervals of two readings hold nearest to 90 % on all other chips."""
    chip = SAME_CHIP.get(name, name)

    def missed(drift: float) -> float:
        held: dict[str, list[float]] = {}
        for other, by_drift in tables.items():
            held.setdefault(SAME_CHIP.get(other, other), []).append(by_drift[drift].held_fair)
        return float(np.mean([abs(np.mean(held[one]) - 90) for one in held if one != chip]))

    return min(DRIFTS, key=missed)


def own(report: Report) -> None:
    """Print and write what models of the GPU's own table predict."""
    show(report, "own", {name: next(iter(scored(name, "own").values())) for name in NAMES})


def new(report: Report) -> None:
    """Print and write what models of other GPUs predict, each with the drift of the other chips."""
    tables = {name: scored(name, "new") for name in NAMES}
    over_clocks = {name: table for name, table in tables.items() if name not in SUITES}
    drifts = {name: chosen_drift(name, over_clocks) for name in over_clocks}
    drifts |= dict.fromkeys(SUITES, DRIFTS[0])
    show(report, "new", {name: table[drifts[name]] for name, table in tables.items()})
    rows = [
        [name, drifts[name], *(f"{one.held_fair:.1f}" for one in table.values())]
        for name, table in over_clocks.items()
    ]
    title = "new: two readings: the drift chosen on the other chips, and what holds [%] by each"
    report.rows(title, ("table", "chosen", *map(str, DRIFTS)), rows, "counters-drift")


def show(report: Report, training: str, tables: dict[str, Scored]) -> None:
    """Print and write the rows of one training."""
    rows = [[name, *row] for name, table in tables.items() for row in table.rows()]
    title = f"{training}: kernels: error of time [%] +- standard error (intervals hold [%])"
    report.rows(title, ("table", "region", "readings", *GROUPS), rows, TABLES_OF[training])


if __name__ == "__main__":
    run(__doc__ or "", {"own": own, "new": new})
