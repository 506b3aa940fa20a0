"""How error falls with further measured points that the predictor itself asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.errors import InputError
from mlscale.predictors import PREDICTORS
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.records import Progress
from mlscale.studies.errors import COVERAGE, Tables
from mlscale.studies.metrics import absolute_percentage_error, summarise
from mlscale.studies.parallel import sweep
from mlscale.studies.splits import folds, is_random

if TYPE_CHECKING:
    from distributed import Client


PREDICTOR = Bottleneck.name


@dataclass(frozen=True)
class Unit:
    """One fold of one table: its kernels are predicted with 0 to `points` further points."""

    table: str
    quantity: str
    points: int
    protocol: str
    seed: int
    fold: int


def plan(
    tables: Tables, quantities: Sequence[str], points: int, protocol: str, seeds: int
) -> list[Unit]:
    """All units of a study. Raises InputError where the predictor or the points do not fit."""
    units: list[Unit] = []
    for table, (data, _) in tables.items():
        if not PREDICTORS[PREDICTOR].applies_to(data):
            raise InputError(
                f"'{table}': '{PREDICTOR}' needs a known GPU and counters of DRAM traffic"
            )
        if points > data.grid.size - 2:
            raise InputError(
                f"'{table}': the grid has {data.grid.size} configurations; {points} points and the "
                "base leave none to predict"
            )
        for quantity in quantities:
            if quantity == "power" and data.power_samples is None:
                continue
            units += [
                Unit(table, quantity, points, protocol, seed, fold)
                for seed in range(seeds if is_random(protocol) else 1)
                for fold in range(len(folds(protocol, data.applications, seed)))
            ]
    return units


def run(
    units: Sequence[Unit],
    tables: Tables,
    jobs: int = 1,
    kept: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[tuple[Unit, list[dict[str, Any]]]]:
    """The findings of each unit as they come; see sweep and run_unit."""
    calls = [(unit, *tables[unit.table]) for unit in units]
    for number, found in sweep(run_unit, calls, jobs, kept, client):
        yield units[number], found


def run_unit(unit: Unit, data: Measurements, base: HardwareConfig) -> list[dict[str, Any]]:
    """What kernel_errors finds for each held-out kernel."""
    train, test = folds(unit.protocol, data.applications, unit.seed)[unit.fold]
    predictor = Bottleneck(quantity=unit.quantity).fit(data.select(train), base)
    return [kernel_errors(predictor, data.select([k]), base, unit.points) for k in test]


def kernel_errors(
    predictor: Bottleneck, kernel: Measurements, base: HardwareConfig, points: int
) -> dict[str, Any]:
    """One held-out kernel with 0 to `points` further points, each chosen by the predictor.

    Gives `kernel`, `application`, `chosen`, and by points `errors` [%] (points + 1, targets) at
    every configuration but the base and all the chosen ones, and `covered` [%], the share of
    those in the 90 % interval, None without intervals.
    """
    truth = kernel.quantity(predictor.quantity)[0].ravel()
    configs, profiles = list(kernel.grid), kernel.profiles(base)
    at_base = configs.index(base)
    actual = truth / truth[at_base]
    predicted: list[Floats] = []
    inside: list[Mask] = []
    chosen: list[int] = []
    for further in range(points + 1):
        surfaces = predictor.predict_interval(profiles, COVERAGE)
        predicted.append(surfaces.values.ravel())
        if surfaces.low is not None and surfaces.high is not None:
            inside.append((surfaces.low.ravel() <= actual) & (actual <= surfaces.high.ravel()))
        if further < points:
            _, ahead = predictor.widths_ahead(profiles, COVERAGE)
            ahead[:, [at_base, *chosen]] = np.inf
            chosen.append(int(np.argmin(ahead[0])))
            profiles = _with_point(profiles, kernel, configs[chosen[-1]])
    kept = np.delete(np.arange(len(configs)), [at_base, *chosen])
    errors = absolute_percentage_error(np.array(predicted), actual)[:, kept]
    covered = 100 * np.array(inside)[:, kept].mean(axis=1) if inside else [None] * len(errors)
    return {
        "kernel": kernel.kernels[0],
        "application": kernel.applications[0],
        "chosen": [str(configs[number]) for number in chosen],
        "errors": errors.tolist(),
        "covered": list(covered),
    }


def _with_point(profiles: Profiles, kernel: Measurements, config: HardwareConfig) -> Profiles:
    """The profiles with what was measured at one configuration more."""
    there = kernel.profiles(config)
    return replace(
        profiles, points=(*profiles.points, MeasuredPoint(config, there.time_ms, there.power_w))
    )


def rows(
    results: Sequence[tuple[Unit, list[dict[str, Any]]]], tables: Tables
) -> list[dict[str, Any]]:
    """One row of figures for each table, quantity and number of points: docs/file-formats.md."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for unit, found in results:
        grouped.setdefault((unit.table, unit.quantity), []).extend(found)
    made = []
    for (table, quantity), found in grouped.items():
        names = [kernel["kernel"] for kernel in found]
        for points in range(len(found[0]["errors"])):
            summary = summarise(np.array([kernel["errors"][points] for kernel in found]), names)
            covered = [kernel["covered"][points] for kernel in found]
            made.append(
                {
                    "table": table,
                    "base": tables[table][1].as_dict(),
                    "quantity": quantity,
                    "points": points,
                    "n_kernels": len(set(names)),
                    **vars(summary),
                    "coverage": None if None in covered else float(np.mean(covered)),
                }
            )
    return made
