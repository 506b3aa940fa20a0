"""mlscale study errors and study compare: predictors beside the baselines, at one base."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.study.text import as_text
from mlscale.cli.study.work import Study, at_one_base, write_rows
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements
    from mlscale.studies.candidates import Contender
    from mlscale.studies.errors import UnitErrors
    from mlscale.studies.training import Training

STUDIES = {
    "errors": "chosen predictors (bottleneck where it applies and wu, unless asked otherwise) "
    "beside the baselines",
    "compare": "all predictors, each with several kinds of features, in one table",
}
CLUSTERS = 8
PROTOCOL = "leave-one-application-out"


def plan(arguments: argparse.Namespace, tables: dict[str, Measurements]) -> Study:
    """The study that is asked for. Raises InputError."""
    from mlscale.studies import errors
    from mlscale.studies.training import training_tables

    with_base = at_one_base(arguments, tables)
    settings = {
        "study": arguments.study,
        "tables": list(tables),
        "protocol": arguments.protocol or PROTOCOL,
        "clusters": arguments.clusters or CLUSTERS,
    }
    training = _training(arguments)
    if training != "own-table":
        settings["training"] = training
    units = errors.plan(
        with_base,
        {table: _contenders(arguments, data) for table, data in tables.items()},
        _quantities(arguments, training),
        settings["clusters"],
        settings["protocol"],
        arguments.seeds,
        training,
    )
    for target in with_base.values():
        training_tables(training, target, list(with_base.values()))

    def document(results: list[UnitErrors]) -> dict[str, Any]:
        results.sort(key=lambda result: units.index(result.unit))
        return {**settings, "rows": errors.rows(results, with_base, arguments.seeds)}

    return Study(
        units=units,
        asked=[arguments.study, *(str(base) for _, base in with_base.values())],
        run=partial(errors.run, units, with_base),
        document=document,
        as_text=as_text,
        write=_write,
    )


def _contenders(arguments: argparse.Namespace, measurements: Measurements) -> list[Contender]:
    from mlscale.predictors import default_predictor
    from mlscale.studies.candidates import contenders, everyone

    kinds = arguments.features or []
    if _training(arguments) != "own-table":
        chosen = arguments.predictor or ["bottleneck"]
        return [one for one in contenders(chosen, kinds, measurements) if one.predictor in chosen]
    if arguments.study == "compare" and not arguments.predictor:
        return everyone(kinds, measurements)
    usual = dict.fromkeys(("wu", default_predictor(measurements)))
    return contenders(arguments.predictor or list(usual), kinds, measurements)


def _quantities(arguments: argparse.Namespace, training: Training) -> tuple[str, ...]:
    """What is studied. Raises InputError."""
    if training != "unseen-gpu":
        return tuple(arguments.quantity or QUANTITIES)
    if "power" in (arguments.quantity or ()):
        raise InputError("power is learnt on the GPU itself; --unseen-gpu is a study of time")
    return ("time",)


def _training(arguments: argparse.Namespace) -> Training:
    """What is trained on. Raises InputError."""
    if arguments.pooled and arguments.unseen_gpu:
        raise InputError("--pooled and --unseen-gpu are two studies; give one")
    if arguments.pooled:
        return "pooled"
    return "unseen-gpu" if arguments.unseen_gpu else "own-table"


def _write(
    folder: Path, suffix: str, document: dict[str, Any], results: list[UnitErrors]
) -> list[Path]:
    """errors: the rows; kernels: the mean error of each kernel and seed."""
    rows = [
        {**row["base"], **row, "mape_by_seed": " ".join(f"{m:.6g}" for m in row["mape_by_seed"])}
        for row in document["rows"]
    ]
    kernels = [
        {
            "table": result.unit.table,
            "quantity": result.unit.quantity,
            "predictor": result.unit.contender.predictor,
            "features": result.unit.contender.features,
            "seed": result.unit.seed,
            "application": application,
            "kernel": kernel,
            "mape": errors.mean(),
        }
        for result in results
        for application, kernel, errors in zip(
            result.applications, result.kernels, result.errors, strict=True
        )
    ]
    for row in rows:
        row["faulty_kernels"] = " ".join(row["faulty_kernels"])
        row["mape_without_faulty"] = (row["without_faulty"] or {}).get("mape")
    left_out = ("base", "without_faulty")
    rows = [{key: row[key] for key in row if key not in left_out} for row in rows]
    return [
        write_rows(folder / f"errors.{suffix}", rows),
        write_rows(folder / f"kernels.{suffix}", kernels),
    ]
