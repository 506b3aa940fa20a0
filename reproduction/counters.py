"""How far off `bottleneck` is, and what its intervals hold, on every table with counters.

    MLSCALE_DATA=FOLDER python reproduction/counters.py [PART ...] [--csv docs/tables]

Parts: `own`, trained on the GPU's own table; `new`, on tables of other GPUs alone. Applications
are held out everywhere: in turn, on the suites in ten groups. From the profile, and with a second
reading: at two thirds of the engine clock, or half of the SMs. By use of DRAM's peak; kernels that
wait use no unit by 30 %. Fair: from a third of the engine clock, and half of the memory clock.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from common import MEASURED, REPOSITORY, Report, base_of, run, table

from mlscale import HardwareConfig, Measurements, read
from mlscale.arrays import Floats, Mask
from mlscale.counters.kernel_use import kernel_use
from mlscale.data.profiles import MeasuredPoint
from mlscale.predictors.base import predict_surfaces
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.readers.reading import read_table
from mlscale.studies.crossval import cross_validate, folds, same_table, unseen_gpu

AMPERE, AMPERE_BASE = "rtx3080ti", HardwareConfig(80, 1890, 9501)
SUITES = ("h100-suite", "h200-suite")
GROUPS = ("all", "below 30 %", "30 to 80 %", "above 80 %", "waiting")
TABLES_OF = {"own": "counters-own", "new": "counters-new"}
READINGS = ("one", "two", "no scaling", "engine-bound")


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
    """

    applications: tuple[str, ...]
    errors: list[Floats]
    held: list[Floats]
    use: Floats
    is_waiting: Mask
    is_fair: Mask

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


def scored(name: str, training: str) -> Scored:
    """Predict every kernel of a table by models that saw neither it nor, if new, its GPU."""
    (data, base), is_new = found(name), training == "new"
    known = SUITES if name in SUITES else MEASURED
    learning, others = (unseen_gpu, [found(one) for one in known]) if is_new else (same_table, [])
    protocol = "k-fold" if name in SUITES else "leave-one-application-out"
    splits, step = folds(protocol, data.applications, 0, 10), second_reading(data, base)
    relative = data.measured_relative("time", base)
    errors, held = np.full((2, 2, *relative.shape), np.nan)
    found_by = cross_validate(data, [base], splits, lambda: [Bottleneck()], learning, others, 0.9)
    for (_, rows), one in zip(splits, found_by, strict=True):
        profiles, true = one.held_out.profiles(base), relative[rows]
        point = MeasuredPoint(step, one.held_out.quantity("time")[:, *data.grid.index(step)], None)
        again = replace(profiles, points=(point,))
        two = predict_surfaces(one.predictor, again, data.grid if is_new else None, 0.9)
        for number, surfaces in enumerate((one.surfaces, two)):
            errors[number][rows] = 100 * np.abs(surfaces.values / true - 1)  # noqa: PD011
            held[number][rows] = np.where(np.isnan(true), np.nan, 100.0 * surfaces.holds(true))
    for kept in (errors, held):
        kept[:, :, *data.grid.index(base)] = kept[1, :, *data.grid.index(step)] = np.nan
    use, settings = kernel_use(data.profiles(base)), data.grid.settings()
    slower = base.engine_mhz / settings["engine_mhz"] * base.cu_count / settings["cu_count"]
    plain = [100 * np.abs(slow / relative - 1) for slow in (1, slower.reshape(data.grid.shape))]
    errors = [*errors, *(np.where(np.isnan(errors[0]), np.nan, one) for one in plain)]
    units = np.array([use.memory, use.issue, use.l2, use.texture, use.shared, use.fp64])
    is_near = settings["memory_mhz"] >= base.memory_mhz / 2
    is_fair = is_near & (settings["engine_mhz"] >= base.engine_mhz / 3)
    flat = [[one.reshape(len(use.memory), -1) for one in kind] for kind in (errors, held)]
    return Scored(data.applications, *flat, use.memory, ~(units >= 0.3).any(axis=0), is_fair)


def second_reading(data: Measurements, base: HardwareConfig) -> HardwareConfig:
    """Where the second reading is: two thirds of the engine clock, or half of the SMs."""
    axis, share = ("cu_count", 1 / 2) if len(data.grid.cu_count) > 1 else ("engine_mhz", 2 / 3)
    steps, to = getattr(data.grid, axis), share * getattr(base, axis)
    return replace(base, **{axis: min(steps, key=lambda step: abs(step - to))})


def part(training: str) -> Callable[[Report], None]:
    """Print and write the rows of one training."""

    def shown(report: Report) -> None:
        names = (*MEASURED, AMPERE, *SUITES)
        rows = [[name, *row] for name in names for row in scored(name, training).rows()]
        title = f"{training}: kernels: error of time [%] +- standard error (intervals hold [%])"
        report.rows(title, ("table", "region", "readings", *GROUPS), rows, TABLES_OF[training])

    return shown


if __name__ == "__main__":
    run(__doc__ or "", {name: part(name) for name in TABLES_OF})
