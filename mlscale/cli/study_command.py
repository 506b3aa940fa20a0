"""mlscale study: cross-validated errors of predictors on tables of measurements."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options
from mlscale.cli.study_text import as_text
from mlscale.errors import InputError
from mlscale.files import write_text
from mlscale.profiles import QUANTITIES

if TYPE_CHECKING:
    from mlscale.measurements import Measurements
    from mlscale.studies.contenders import Contender
    from mlscale.studies.errors import Tables, Unit, UnitErrors

STUDIES = {
    "errors": "chosen predictors (wu, unless asked otherwise) beside the baselines",
    "compare": "all predictors, each with several kinds of features, in one table",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from mlscale.counters.features import FEATURE_KINDS
    from mlscale.predictors import PREDICTORS
    from mlscale.studies.protocols import PROTOCOLS

    parser.add_argument(
        "study",
        choices=tuple(STUDIES),
        metavar="STUDY",
        help="; ".join(f"{name}: {what}" for name, what in STUDIES.items()),
    )
    parser.add_argument("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    parser.add_argument(
        "--base",
        default="mid",
        help="configuration to predict from, or 'mid' (default)",
    )
    parser.add_argument(
        "--predictor",
        action="append",
        choices=tuple(PREDICTORS),
        help="may be given again; the baselines always stand beside",
    )
    parser.add_argument(
        "--features",
        action="append",
        choices=FEATURE_KINDS,
        help="may be given again (default: what suits the counters; compare: all that fit)",
    )
    parser.add_argument(
        "--clusters",
        type=options.whole_number,
        metavar="K",
        default=8,
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        type=options.whole_number,
        default=3,
        metavar="N",
        help="repeat with the seeds 0 to N-1 (default: 3)",
    )
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default=PROTOCOLS[0],
        help="who is held out; kernels of one application always together (default: %(default)s)",
    )
    parser.add_argument(
        "--quantity",
        action="append",
        choices=tuple(QUANTITIES),
        help="may be given again (default: both, where the table has power)",
    )
    options.add_reading(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write errors.csv, kernels.csv and study.json there",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print or write its figures. Raises InputError."""
    from mlscale.studies import errors

    tables = _read_tables(arguments)
    units = errors.plan(
        tables,
        {table: _contenders(arguments, m) for table, (m, _) in tables.items()},
        arguments.quantity or tuple(QUANTITIES),
        arguments.clusters,
        arguments.protocol,
        arguments.seeds,
    )
    if not units:
        raise InputError("no table has a column 'power_w'")
    if not arguments.output:
        document, _ = _carry_out(arguments, units, tables)
    else:
        with options.output_folder(arguments.output) as folder:
            document, results = _carry_out(arguments, units, tables)
            _write(folder, document, results)
    print(json.dumps(document, indent=1) if arguments.json else as_text(document))


def _carry_out(
    arguments: argparse.Namespace, units: list[Unit], tables: Tables
) -> tuple[dict[str, Any], list[UnitErrors]]:
    """Run all units with a progress bar: the document of figures, and the results it sums up."""
    from tqdm import tqdm

    from mlscale.studies import errors

    running = errors.run(units, tables, jobs=min(os.cpu_count() or 1, len(units)))
    bar = tqdm(running, total=len(units), unit="run", disable=None, leave=False)
    results = sorted(bar, key=lambda result: units.index(result.unit))
    document = {
        "study": arguments.study,
        "tables": list(tables),
        "protocol": arguments.protocol,
        "clusters": arguments.clusters,
        "rows": errors.rows(results, tables, arguments.seeds),
    }
    return document, results


def _read_tables(arguments: argparse.Namespace) -> Tables:
    """Each table by the stem of its name, with the base to predict from."""
    from mlscale.measurements import read_measurements

    tables: Tables = {}
    for text in arguments.table:
        path = options.input_file(text)
        measurements = read_measurements(path, arguments.incomplete, arguments.repetitions)
        base = measurements.grid.parse(arguments.base)
        measurements.grid.index(base)
        if path.stem in tables:
            raise InputError(f"two tables are named '{path.stem}'; rename one")
        tables[path.stem] = (measurements, base)
    return tables


def _contenders(arguments: argparse.Namespace, measurements: Measurements) -> list[Contender]:
    from mlscale.studies.contenders import contenders, everyone

    kinds = arguments.features or []
    if arguments.study == "compare" and not arguments.predictor:
        return everyone(kinds, measurements)
    return contenders(arguments.predictor or ["wu"], kinds, measurements)


def _write(folder: Path, document: dict[str, Any], results: Sequence[UnitErrors]) -> None:
    """errors.csv: the rows; kernels.csv: the mean error of each kernel and seed; study.json."""
    import pandas as pd

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
    by_row = pd.DataFrame(rows).drop(columns=["base", "coverage"])
    write_text(folder / "errors.csv", by_row.to_csv(index=False))
    write_text(folder / "kernels.csv", pd.DataFrame(kernels).to_csv(index=False))
    write_text(folder / "study.json", json.dumps(document, indent=1) + "\n")
