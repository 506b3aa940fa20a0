"""Cross-validated errors of predictors: each unit is one predictor, quantity, table and seed."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.grid import HardwareConfig
from mlscale.measurements import Measurements
from mlscale.metrics import absolute_percentage_error, summarise, without_base
from mlscale.predictors import Predictor, create
from mlscale.progress import Progress
from mlscale.studies.contenders import ORACLE, Contender, has_parameter, predicts
from mlscale.studies.oracle import oracle_surfaces
from mlscale.studies.protocols import folds, is_random
from mlscale.studies.sweep import sweep

if TYPE_CHECKING:
    from distributed import Client

Floats = NDArray[np.float64]

COVERAGE = 0.9

Tables = dict[str, tuple[Measurements, HardwareConfig]]


@dataclass(frozen=True)
class Unit:
    """One cross-validation: what is held out is predicted from everything refitted without it."""

    table: str
    quantity: str
    contender: Contender
    clusters: int
    protocol: str
    seed: int


@dataclass(frozen=True)
class UnitErrors:
    """Errors [%] (n, targets) of the held-out kernels; seconds to train, and per prediction.

    covered: share [%] of kernel x target in the 90 % intervals, None without intervals.
    """

    unit: Unit
    kernels: tuple[str, ...]
    applications: tuple[str, ...]
    errors: Floats
    train_seconds: float
    predict_seconds: float
    covered: float | None = None


def plan(
    tables: Tables,
    contenders: dict[str, list[Contender]],
    quantities: Sequence[str],
    clusters: int,
    protocol: str,
    seeds: int,
) -> list[Unit]:
    """All units of a study, with the contenders of each table.

    Power is left out for a table that has none. A unit that no random number enters is planned
    for the first seed only.
    """
    return [
        Unit(table, quantity, contender, clusters, protocol, seed)
        for table, (measurements, _) in tables.items()
        for quantity in quantities
        if quantity == "time" or measurements.power_samples is not None
        for contender in contenders[table]
        if predicts(contender.predictor, quantity)
        for seed in range(seeds)
        if seed == 0 or is_random(protocol) or has_parameter(contender.predictor, "seed")
    ]


def run(
    units: Sequence[Unit],
    tables: Tables,
    jobs: int = 1,
    kept: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[UnitErrors]:
    """The errors of each unit as they come; see sweep."""
    calls = [(unit, *tables[unit.table]) for unit in units]
    for number, found in sweep(_as_json, calls, jobs, kept, client):
        yield UnitErrors(
            unit=units[number],
            kernels=tuple(found["kernels"]),
            applications=tuple(found["applications"]),
            errors=np.array(found["errors"]),
            train_seconds=found["train_seconds"],
            predict_seconds=found["predict_seconds"],
            covered=found["covered"],
        )


def _as_json(unit: Unit, data: Measurements, base: HardwareConfig) -> dict[str, Any]:
    """What run_unit finds, as JSON values."""
    found = run_unit(unit, data, base)
    return {**vars(found), "unit": None, "errors": found.errors.tolist()}


def run_unit(unit: Unit, data: Measurements, base: HardwareConfig) -> UnitErrors:
    """Cross-validate one predictor on the measurements at one base. Raises InputError."""
    split = folds(unit.protocol, data.applications, unit.seed)
    truth = data.quantity(unit.quantity)
    at = data.grid.index(base)
    started = time.perf_counter()
    if unit.contender.predictor == ORACLE:
        surfaces = np.concatenate(
            [_oracle(unit, data.select(train), data.select(test), base) for train, test in split]
        )
        trained = predicted = time.perf_counter()
        covered = None
    else:
        models = [
            create(
                unit.contender.predictor,
                quantity=unit.quantity,
                features=unit.contender.features,
                clusters=unit.clusters,
                seed=unit.seed,
            )
            for _ in split
        ]
        training = [(m, data.select(t), base) for m, (t, _) in zip(models, split, strict=True)]
        type(models[0]).fit_together(training)
        trained = time.perf_counter()
        surfaces = np.concatenate(
            [
                model.predict(data.select(test).profiles(base)).values
                for model, (_, test) in zip(models, split, strict=True)
            ]
        )
        predicted = time.perf_counter()
        covered = _coverage(models, [data.select(test) for _, test in split], base, unit.quantity)
    held_out = np.concatenate([test for _, test in split])
    actual = truth[held_out] / truth[(held_out, *at)][:, None, None, None]
    return UnitErrors(
        unit=unit,
        kernels=tuple(data.kernels[k] for k in held_out),
        applications=tuple(data.applications[k] for k in held_out),
        errors=without_base(absolute_percentage_error(surfaces, actual), at),
        train_seconds=(trained - started) / len(split),
        predict_seconds=(predicted - trained) / len(held_out),
        covered=covered,
    )


def _coverage(
    models: Sequence[Predictor], held_out: Sequence[Measurements], base: HardwareConfig, name: str
) -> float | None:
    """Share [%] of kernel x target in the intervals; None where the predictor gives none."""
    inside = []
    for model, test in zip(models, held_out, strict=True):
        surfaces = model.predict_interval(test.profiles(base), COVERAGE)
        if surfaces is None or surfaces.low is None or surfaces.high is None:
            return None
        at = test.grid.index(base)
        truth = test.quantity(name)
        actual = truth / truth[(slice(None), *at)][:, None, None, None]
        found = (surfaces.low <= actual) & (actual <= surfaces.high)
        inside.append(without_base(np.where(found, 100.0, 0.0), at))
    return float(np.concatenate(inside).mean())


def rows(results: Iterable[UnitErrors], tables: Tables, seeds: int) -> list[dict[str, Any]]:
    """One row of figures for each table, quantity and contender: docs/file-formats.md."""
    grouped: dict[tuple[str, str, Contender], list[UnitErrors]] = {}
    for result in results:
        unit = result.unit
        grouped.setdefault((unit.table, unit.quantity, unit.contender), []).append(result)
    return [
        _row(sorted(group, key=lambda r: r.unit.seed), tables[table][1], seeds)
        for (table, _, _), group in grouped.items()
    ]


def _row(group: list[UnitErrors], base: HardwareConfig, seeds: int) -> dict[str, Any]:
    unit = group[0].unit
    summary = summarise(
        np.concatenate([result.errors for result in group]),
        [kernel for result in group for kernel in result.kernels],
    )
    by_seed = [float(result.errors.mean()) for result in group]
    return {
        "table": unit.table,
        "base": base.as_dict(),
        "predictor": unit.contender.predictor,
        "features": unit.contender.features,
        "quantity": unit.quantity,
        "n_kernels": len({kernel for result in group for kernel in result.kernels}),
        "n_seeds": seeds,
        "mape": summary.mape,
        "mape_by_seed": by_seed if len(by_seed) == seeds else by_seed * seeds,
        "median_kernel": summary.median_kernel,
        "p90": summary.p90,
        "worst_kernel": summary.worst_kernel,
        "worst_kernel_mape": summary.worst_kernel_mape,
        "coverage": group[0].covered,
        "train_seconds": float(np.mean([result.train_seconds for result in group])),
        "predict_microseconds": float(1e6 * np.mean([r.predict_seconds for r in group])),
    }


def _oracle(
    unit: Unit, training: Measurements, held_out: Measurements, base: HardwareConfig
) -> Floats:
    clusters = min(unit.clusters, len(training.kernels))
    return oracle_surfaces(training, held_out, base, unit.quantity, clusters, unit.seed)
