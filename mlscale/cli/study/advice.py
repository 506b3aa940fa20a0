"""mlscale study advice: how far from the true optimum the advice of each predictor lands."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.study.errors import CLUSTERS, PROTOCOL
from mlscale.cli.study.text import together
from mlscale.cli.study.work import Study, at_one_base, write_rows
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements
    from mlscale.studies.advice import Chosen

STUDIES = {
    "advice": "how much more than the true optimum the advised configurations cost (regret)",
}

Document = dict[str, Any]
Rows = list[dict[str, Any]]


def refuse_options(arguments: argparse.Namespace) -> None:
    """Raise InputError on an option that only this study takes."""
    for name in ("minimize", "max_power", "max_time", "max_slowdown", "static_power"):
        if getattr(arguments, name) is not None:
            option = name.replace("_", "-")
            raise InputError(f"--{option} is for the study 'advice', not '{arguments.study}'")


def plan(arguments: argparse.Namespace, tables: dict[str, Measurements]) -> Study:
    """The study that is asked for. Raises InputError."""
    from mlscale.cli.limits import read_limits
    from mlscale.studies import advice, regret

    if arguments.quantity:
        raise InputError("the study 'advice' is of objectives; leave out --quantity")
    limits = read_limits(arguments)
    asked: advice.Tables = {}
    for name, (data, base) in at_one_base(arguments, tables).items():
        objectives = arguments.minimize or ()
        static = arguments.static_power
        asked[name] = data, advice.ask(name, data, base, objectives, limits, static)
    settings = {
        "study": arguments.study,
        "tables": list(tables),
        "protocol": arguments.protocol or PROTOCOL,
        "clusters": arguments.clusters or CLUSTERS,
        "limits": vars(limits),
    }
    advisors = {
        name: advice.advisors(arguments.predictor or (), arguments.features or (), data)
        for name, data in tables.items()
    }
    units = advice.plan(
        asked, advisors, settings["clusters"], settings["protocol"], arguments.seeds
    )

    def judged(results: list[Chosen]) -> Rows:
        results.sort(key=lambda result: units.index(result.unit))
        return regret.choices(results, asked)

    def document(results: list[Chosen]) -> Document:
        rows = regret.rows(judged(results), asked, arguments.seeds)
        if not rows:
            raise InputError("no configuration of any kernel keeps the limits")
        return {**settings, "rows": rows}

    def write(folder: Path, suffix: str, document: Document, results: list[Chosen]) -> list[Path]:
        """advice: the rows; choices: what was chosen for each kernel and seed."""
        rows = [{**row["base"], **row} for row in document["rows"]]
        rows = [{key: row[key] for key in row if key != "base"} for row in rows]
        return [
            write_rows(folder / f"advice.{suffix}", rows),
            write_rows(folder / f"choices.{suffix}", judged(results)),
        ]

    return Study(
        units=units,
        asked=[arguments.study, *(str(asked[name][1]) for name in tables)],
        run=partial(advice.run, units, asked),
        document=document,
        as_text=partial(_as_text, limits.under()),
        write=write,
    )


def _as_text(under: str, document: Document) -> str:
    """A block for each table and objective; after several, their mean regrets together."""
    by_block: dict[tuple[str, str], Rows] = {}
    for row in document["rows"]:
        by_block.setdefault((row["table"], row["objective"]), []).append(row)
    blocks = [_block(document, rows, under) for rows in by_block.values()]
    if len(by_block) > 1:
        means = together(by_block, "advisor", lambda row: _number(row["regret_mean"]))
        blocks.append(f"Mean regret [%] together{under}:\n{means}")
    return "\n\n".join(blocks)


def _block(document: Document, rows: Rows, under: str) -> str:
    headers = ["advisor", "features", "mean", "median", "p90", "worst", "worst kernel"]
    headers += ["saves %", "time %", *(["breaks limits %"] if under else [])]
    lines = []
    for row in rows:
        figures = [row[k] for k in ("regret_mean", "regret_median", "regret_p90", "worst_regret")]
        line = [row["advisor"], row["features"] or "", *map(_number, figures)]
        line += [row["worst_kernel"] or "-", _number(row["saving_mean"])]
        line.append(f"{row['slowdown_mean']:+.1f}")
        lines.append(line + ([f"{row['breaks_limits_percent']:.1f}"] if under else []))
    first = rows[0]
    beyond = f" ({first['n_beyond_limits']} more cannot keep the limits)"
    return (
        f"{first['table']}: regret of {first['objective']} [%]{under}, {first['n_kernels']} kernels"
        f"{beyond if first['n_beyond_limits'] else ''}, base {HardwareConfig(**first['base'])}, "
        f"{document['protocol']}, {first['n_seeds']} seeds, {document['clusters']} clusters; "
        f"the optimum saves {first['best_saving_mean']:.1f} %\n{columns(headers, lines)}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
