"""mlscale study next-profile: how error falls with further points that the predictor chooses."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.study.errors import PROTOCOL
from mlscale.cli.study.work import Study, at_one_base, write_rows
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements

STUDIES = {
    "next-profile": "how the error of bottleneck falls with further points that it chooses itself",
}
POINTS = 3

Document = dict[str, Any]
Rows = list[dict[str, Any]]


def plan(arguments: argparse.Namespace, tables: dict[str, Measurements]) -> Study:
    """The study that is asked for. Raises InputError."""
    from mlscale.studies import next_profile

    with_base = at_one_base(arguments, tables)
    for option in ("predictor", "features", "clusters"):
        if getattr(arguments, option):
            raise InputError(
                f"the study 'next-profile' is of '{next_profile.PREDICTOR}'; leave out --{option}"
            )
    settings = {
        "study": arguments.study,
        "tables": list(tables),
        "protocol": arguments.protocol or PROTOCOL,
        "predictor": next_profile.PREDICTOR,
    }
    units = next_profile.plan(
        with_base,
        arguments.quantity or tuple(QUANTITIES),
        arguments.points or POINTS,
        settings["protocol"],
        arguments.seeds,
    )

    def document(results: list[Any]) -> Document:
        results.sort(key=lambda result: units.index(result[0]))
        return {**settings, "rows": next_profile.rows(results, with_base)}

    return Study(
        units=units,
        asked=[arguments.study, *(str(base) for _, base in with_base.values())],
        run=partial(next_profile.run, units, with_base),
        document=document,
        as_text=_as_text,
        write=_write,
    )


def _write(folder: Path, suffix: str, document: Document, results: list[Any]) -> list[Path]:
    """next-profile: the rows; chosen: what was chosen for each kernel, and its errors."""
    rows = [
        {key: value for key, value in {**row["base"], **row}.items() if key != "base"}
        for row in document["rows"]
    ]
    chosen = [
        {
            "table": unit.table,
            "quantity": unit.quantity,
            "seed": unit.seed,
            "application": kernel["application"],
            "kernel": kernel["kernel"],
            "points": points,
            "chosen": kernel["chosen"][points - 1] if points else "",
            "mape": sum(errors) / len(errors),
        }
        for unit, found in results
        for kernel in found
        for points, errors in enumerate(kernel["errors"])
    ]
    return [
        write_rows(folder / f"next-profile.{suffix}", rows),
        write_rows(folder / f"chosen.{suffix}", chosen),
    ]


def _as_text(document: Document) -> str:
    """A block for each table and quantity, a row for each number of points."""
    by_block: dict[tuple[str, str], Rows] = {}
    for row in document["rows"]:
        by_block.setdefault((row["table"], row["quantity"]), []).append(row)
    return "\n\n".join(_block(document, rows) for rows in by_block.values())


def _block(document: Document, rows: Rows) -> str:
    covered = rows[0]["coverage"] is not None
    lines = [
        [
            str(row["points"]),
            *(f"{row[k]:.2f}" for k in ("mape", "median_kernel", "p90", "worst_kernel_mape")),
            row["worst_kernel"],
            *([f"{row['coverage']:.1f}"] if covered else []),
        ]
        for row in rows
    ]
    headers = ["further points", "MAPE", "median", "p90", "worst", "worst kernel"]
    headers += ["in 90 % interval"] if covered else []
    first = rows[0]
    return (
        f"{first['table']}: error of {first['quantity']} [%], {document['predictor']}, "
        f"{first['n_kernels']} kernels, base {HardwareConfig(**first['base'])}, "
        f"{document['protocol']}; the same configurations in every row: without the base and the "
        f"{len(rows) - 1} chosen\n{columns(headers, lines)}"
    )
