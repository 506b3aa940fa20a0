"""Cross-validated errors of predictors: each unit is one predictor, quantity, table and seed."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import Surfaces
from mlscale.predictors import create
from mlscale.predictors.base import predict_surfaces
from mlscale.records import Progress
from mlscale.studies.candidates import ORACLE, Contender, has_parameter
from mlscale.studies.metrics import ErrorSummary, absolute_percentage_error, summarise, without_base
from mlscale.studies.oracle import oracle_surfaces
from mlscale.studies.parallel import sweep
from mlscale.studies.significance import p_values
from mlscale.studies.splits import folds, is_random
from mlscale.studies.training import Based, Training, fit_folds, training_tables

if TYPE_CHECKING:
    from distributed import Client


COVERAGE = 0.9

Tables = dict[str, tuple[Measurements, HardwareConfig]]


@dataclass(frozen=True)
class Unit:
    """One cross-validation: what is held out is predicted from everything refitted without it.

    training: on which tables; studies/training.py.
    """

    table: str
    quantity: str
    contender: Contender
    clusters: int
    protocol: str
    seed: int
    training: Training = "own-table"


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
    training: Training = "own-table",
) -> list[Unit]:
    """All units of a study, with the contenders of each table.

    Power is left out for a table that has none. A unit that no random number enters is planned
    for the first seed only.
    """
    return [
        Unit(table, quantity, contender, clusters, protocol, seed, training)
        for table, (measurements, _) in tables.items()
        for quantity in quantities
        if quantity == "time" or measurements.power_samples is not None
        for contender in contenders[table]
        if contender.predicts(quantity)
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
    calls = []
    for unit in units:
        target = tables[unit.table]
        trained_on = training_tables(unit.training, target, list(tables.values()))
        calls.append((unit, *target, [] if unit.training == "own-table" else trained_on))
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


def _as_json(unit: Unit, *given: Any) -> dict[str, Any]:
    """What run_unit finds, as JSON values."""
    found = run_unit(unit, *given)
    return {**vars(found), "unit": None, "errors": found.errors.tolist()}


def run_unit(
    unit: Unit, data: Measurements, base: HardwareConfig, trained_on: Sequence[Based] = ()
) -> UnitErrors:
    """Cross-validate one predictor on the measurements at one base. Raises InputError.

    trained_on: the tables to train on, of which the held-out applications are left out; empty for
    the measurements themselves.
    """
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
        unseen = unit.training == "unseen-gpu"
        fit_folds(models, split, (data, base), trained_on or [(data, base)], unseen)
        grid = data.grid if unseen else None
        trained = time.perf_counter()
        held_out_data = [data.select(test) for _, test in split]
        folds_surfaces = [
            predict_surfaces(model, test.profiles(base), grid, COVERAGE)
            for model, test in zip(models, held_out_data, strict=True)
        ]
        surfaces = np.concatenate([fold.values for fold in folds_surfaces])
        predicted = time.perf_counter()
        covered = _coverage(folds_surfaces, held_out_data, base, unit.quantity)
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
    predicted: Sequence[Surfaces],
    held_out: Sequence[Measurements],
    base: HardwareConfig,
    name: str,
) -> float | None:
    """Share [%] of kernel x target in the intervals; None where the predictor gives none."""
    inside = []
    for surfaces, test in zip(predicted, held_out, strict=True):
        if surfaces.low is None or surfaces.high is None:
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
    significance = p_values({key: application_errors(group) for key, group in grouped.items()})
    return [
        _row(sorted(group, key=lambda r: r.unit.seed), *tables[key[0]], seeds) | significance[key]
        for key, group in grouped.items()
    ]


def application_errors(group: Sequence[UnitErrors]) -> dict[str, float]:
    """Mean error [%] of each application, over its kernels, the targets and the seeds."""
    found: dict[str, list[Floats]] = {}
    for result in group:
        for application, errors in zip(result.applications, result.errors, strict=True):
            found.setdefault(application, []).append(errors)
    return {application: float(np.mean(errors)) for application, errors in found.items()}


def _row(
    group: list[UnitErrors], data: Measurements, base: HardwareConfig, seeds: int
) -> dict[str, Any]:
    unit = group[0].unit
    errors = np.concatenate([result.errors for result in group])
    kernels = [kernel for result in group for kernel in result.kernels]
    summary = summarise(errors, kernels)
    faulty = [name for name in dict.fromkeys(kernels) if name in data.metadata.get("faults", {})]
    sound = [k for k, kernel in enumerate(kernels) if kernel not in faulty]
    without = None
    if faulty and sound:
        without = _figures(summarise(errors[sound], [kernels[k] for k in sound]))
    by_seed = [float(result.errors.mean()) for result in group]
    return {
        "table": unit.table,
        "base": base.as_dict(),
        "predictor": unit.contender.predictor,
        "features": unit.contender.features,
        "quantity": unit.quantity,
        "n_kernels": len({kernel for result in group for kernel in result.kernels}),
        "n_seeds": seeds,
        **_figures(summary),
        "mape_by_seed": by_seed if len(by_seed) == seeds else by_seed * seeds,
        "coverage": _covered(group),
        "train_seconds": float(np.mean([result.train_seconds for result in group])),
        "predict_microseconds": float(1e6 * np.mean([r.predict_seconds for r in group])),
        "faulty_kernels": faulty,
        "without_faulty": without,
    }


def _covered(group: list[UnitErrors]) -> float | None:
    """Of all seeds together; each counts by its held-out kernels."""
    shares = [result.covered for result in group if result.covered is not None]
    if len(shares) < len(group):
        return None
    return float(np.average(shares, weights=[len(result.kernels) for result in group]))


def _figures(summary: ErrorSummary) -> dict[str, Any]:
    return {
        "mape": summary.mape,
        "median_kernel": summary.median_kernel,
        "p90": summary.p90,
        "worst_kernel": summary.worst_kernel,
        "worst_kernel_mape": summary.worst_kernel_mape,
    }


def _oracle(
    unit: Unit, training: Measurements, held_out: Measurements, base: HardwareConfig
) -> Floats:
    clusters = min(unit.clusters, len(training.kernels))
    return oracle_surfaces(training, held_out, base, unit.quantity, clusters, unit.seed)
