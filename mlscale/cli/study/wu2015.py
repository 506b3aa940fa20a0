"""The studies of section V of Wu et al., HPCA 2015: what is asked, tables, figures, a summary."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.study.work import Study, write_rows
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements

STUDIES = {
    "base-configuration": "a model for every base (Wu et al., Fig. 10 to 12)",
    "cluster-count": "2 to 20 clusters at five bases (Fig. 13, 16)",
    "error-distribution": "histogram of errors with 2, 6 and 12 clusters (Fig. 14, 17)",
    "oracle": "network against oracle on the training set (Fig. 15)",
}
CLUSTERS = 12
PROTOCOL = "holdout"

Rows = list[dict[str, Any]]


def plan(arguments: argparse.Namespace, tables: dict[str, Measurements]) -> Study:
    """The study that is asked for. Raises InputError."""
    from mlscale.studies import wu2015 as paper

    predictor, kinds = _chosen(arguments)
    settings = paper.Settings(
        study=arguments.study,
        quantities=tuple(arguments.quantity or QUANTITIES),
        clusters=arguments.clusters,
        protocol=arguments.protocol or PROTOCOL,
        seeds=arguments.seeds,
    )
    bases = {name: _bases(arguments, name, data) for name, data in tables.items()}
    contenders = {
        name: paper.beside_baselines(predictor, kinds, data) for name, data in tables.items()
    }
    units = paper.plan(settings, tables, bases, contenders)

    def document(results: list[tuple[int, Rows]]) -> dict[str, Any]:
        return {
            "study": arguments.study,
            "tables": list(tables),
            "protocol": settings.protocol,
            "predictor": predictor,
            "rows": [row for _, rows in sorted(results, key=lambda r: r[0]) for row in rows],
        }

    return Study(
        units=units,
        asked=[arguments.study],
        run=partial(paper.run, units, tables),
        document=document,
        as_text=_as_text,
        write=partial(_write, tables),
    )


def _chosen(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """The one predictor, and its features if they were given."""
    from mlscale.studies.candidates import has_parameter

    study = arguments.study
    if len(arguments.predictor or []) > 1 or len(arguments.features or []) > 1:
        raise InputError(f"the study '{study}' takes one --predictor and one --features")
    predictor = (arguments.predictor or ["wu"])[0]
    if study == "oracle" and predictor != "wu":
        raise InputError(f"the study 'oracle' is of 'wu', not of '{predictor}'")
    varies = study != "base-configuration"
    if varies and not has_parameter(predictor, "clusters"):
        raise InputError(
            f"the study '{study}' varies the number of clusters, and '{predictor}' has none; "
            "take --predictor wu"
        )
    if varies and arguments.clusters:
        raise InputError(f"the study '{study}' varies the clusters itself; leave out --clusters")
    return predictor, arguments.features or []


def _bases(
    arguments: argparse.Namespace, name: str, data: Measurements
) -> tuple[HardwareConfig, ...]:
    """The bases that a table is studied at."""
    from mlscale.studies.wu2015 import five_bases, varied_bases

    given = [data.grid.parse(text) for text in arguments.base or []]
    for base in given:
        data.grid.index(base)
    if arguments.study != "base-configuration":
        if arguments.vary:
            raise InputError("--vary is of the study 'base-configuration'")
        return tuple(dict.fromkeys(given)) or five_bases(data.grid)
    if len(given) > 1 or (given and not arguments.vary):
        raise InputError(
            "the study 'base-configuration' takes one --base, and that with --vary: it is where "
            "the other axes stay"
        )
    try:
        return varied_bases(data.grid, given[0] if given else data.grid.mid, arguments.vary)
    except InputError as error:
        raise InputError(f"'{name}': {error}") from None


def _write(
    tables: dict[str, Measurements],
    folder: Path,
    suffix: str,
    document: dict[str, Any],
    _: list[tuple[int, Rows]],
) -> list[Path]:
    """STUDY.csv or .parquet, and the figures of each table and quantity."""
    from mlscale.report import study_figures

    study = document["study"]
    written = [write_rows(folder / f"{study}.{suffix}", document["rows"])]
    for (table, quantity), rows in _parts(document["rows"]):
        origin = tables[table].metadata.get("origin")
        what = study_figures.What(document["predictor"], table, quantity, origin)
        written += study_figures.draw(study, folder, what, rows)
    return written


def _parts(rows: Rows) -> list[tuple[tuple[str, str], Rows]]:
    """The rows of each table and quantity."""
    parts: dict[tuple[str, str], Rows] = {}
    for row in rows:
        parts.setdefault((row["table"], row["quantity"]), []).append(row)
    return list(parts.items())


def _as_text(document: dict[str, Any]) -> str:
    from mlscale.cli.study.wu2015_text import as_text

    return as_text(document)
