"""mlscale study errors and study compare: predictors beside the baselines, at one base."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.study_work import Study, write_rows
from mlscale.cli.text import columns
from mlscale.errors import InputError
from mlscale.grid import HardwareConfig
from mlscale.profiles import QUANTITIES

if TYPE_CHECKING:
    from mlscale.measurements import Measurements
    from mlscale.studies.contenders import Contender
    from mlscale.studies.errors import UnitErrors

STUDIES = {
    "errors": "chosen predictors (wu, unless asked otherwise) beside the baselines",
    "compare": "all predictors, each with several kinds of features, in one table",
}
CLUSTERS = 8
PROTOCOL = "leave-one-application-out"


def plan(arguments: argparse.Namespace, tables: dict[str, Measurements]) -> Study:
    """The study that is asked for. Raises InputError."""
    from mlscale.studies import errors

    if len(arguments.base or []) > 1 or arguments.vary:
        raise InputError(f"the study '{arguments.study}' takes one --base, and no --vary")
    with_base = {
        name: (data, data.grid.parse((arguments.base or ["mid"])[0]))
        for name, data in tables.items()
    }
    for data, base in with_base.values():
        data.grid.index(base)
    settings = {
        "study": arguments.study,
        "tables": list(tables),
        "protocol": arguments.protocol or PROTOCOL,
        "clusters": arguments.clusters or CLUSTERS,
    }
    units = errors.plan(
        with_base,
        {table: _contenders(arguments, data) for table, data in tables.items()},
        arguments.quantity or tuple(QUANTITIES),
        settings["clusters"],
        settings["protocol"],
        arguments.seeds,
    )

    def document(results: list[UnitErrors]) -> dict[str, Any]:
        results.sort(key=lambda result: units.index(result.unit))
        return {**settings, "rows": errors.rows(results, with_base, arguments.seeds)}

    return Study(
        units=units,
        asked=[arguments.study, *(str(base) for _, base in with_base.values())],
        run=partial(errors.run, units, with_base),
        document=document,
        as_text=_as_text,
        write=_write,
    )


def _contenders(arguments: argparse.Namespace, measurements: Measurements) -> list[Contender]:
    from mlscale.studies.contenders import contenders, everyone

    kinds = arguments.features or []
    if arguments.study == "compare" and not arguments.predictor:
        return everyone(kinds, measurements)
    return contenders(arguments.predictor or ["wu"], kinds, measurements)


def _as_text(document: dict[str, Any]) -> str:
    """The figures as one table for each table of measurements and quantity."""
    timed = document["study"] == "compare"
    headers = ["predictor", "features", "MAPE", "seeds", "median", "p90", "worst", "worst kernel"]
    headers += ["train ms", "predict us"] if timed else []
    blocks = []
    for table, quantity in dict.fromkeys((r["table"], r["quantity"]) for r in document["rows"]):
        found = [r for r in document["rows"] if (r["table"], r["quantity"]) == (table, quantity)]
        base = HardwareConfig(**found[0]["base"])
        lines = []
        for row in found:
            low, high = min(row["mape_by_seed"]), max(row["mape_by_seed"])
            spread = f"{low:.1f} to {high:.1f}" if low < high else ""
            cells = [row["predictor"], row["features"] or "", f"{row['mape']:.2f}", spread]
            cells += [f"{row[k]:.2f}" for k in ("median_kernel", "p90", "worst_kernel_mape")]
            cells += [row["worst_kernel"]]
            if timed:
                cells += [f"{1e3 * row['train_seconds']:.1f}", f"{row['predict_microseconds']:.0f}"]
            lines.append(cells)
        blocks.append(
            f"{table}: error of {quantity} [%], {found[0]['n_kernels']} kernels, base {base}, "
            f"{document['protocol']}, {found[0]['n_seeds']} seeds, {document['clusters']} clusters"
            f"\n{columns(headers, lines)}"
        )
    return "\n\n".join(blocks)


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
    left_out = ("base", "coverage")
    rows = [{key: row[key] for key in row if key not in left_out} for row in rows]
    return [
        write_rows(folder / f"errors.{suffix}", rows),
        write_rows(folder / f"kernels.{suffix}", kernels),
    ]
