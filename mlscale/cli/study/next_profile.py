"""mlscale study next-profile: how error falls with further points that the predictor chooses."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli import values
from mlscale.cli.study import options
from mlscale.cli.study.text import MEAN_HEADERS, origins, summary_cells
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Rows, Study, grouped
from mlscale.text import counted

SUMMARIES = {
    "next-profile": "how the error falls with further points that the predictor chooses itself",
}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the study."""
    parser.add_argument(
        "--predictor",
        dest="predictors",
        action=options.Once,
        type=values.predictor_name,
        metavar="PREDICTOR",
        help="a predictor that uses further points, or package.module:Class for one of your own "
        "(default: bottleneck)",
    )
    options.add_quantities(parser)
    parser.add_argument(
        "--points",
        type=values.whole_number,
        metavar="N",
        help="highest number of further points; all from 0 to N are studied (default: 3)",
    )
    options.add_base(parser)
    options.add_common(parser, "the tables next-profile and chosen, and figures")


def draw(study: Study, folder: Path, document: dict[str, Any], _: dict[str, Rows]) -> list[Path]:
    """Draw the errors of each table; the paths. Raises InputError."""
    from mlscale.report import comparison_figures

    return comparison_figures.draw_points(folder, document, origins(study))


def as_text(document: dict[str, Any]) -> str:
    """Return a block for each table and quantity, a row for each number of points."""
    by_block = grouped(document["rows"], "table", "quantity")
    return "\n\n".join(_block(document, rows) for rows in by_block.values())


def _block(document: dict[str, Any], rows: Rows) -> str:
    covered = rows[0]["coverage"] is not None
    lines = [
        [str(row["points"]), *summary_cells(row), *([f"{row['coverage']:.1f}"] if covered else [])]
        for row in rows
    ]
    headers = ["further points", *MEAN_HEADERS, *(["in 90 % interval"] if covered else [])]
    first = rows[0]
    return (
        f"{first['table']}: error of {first['quantity']} [%], {document['predictor']}, "
        f"{counted(first['n_kernels'], 'kernel')}, base {HardwareConfig(**first['base'])}, "
        f"{document['protocol']}; the same configurations in every row: without the base and the "
        f"{len(rows) - 1} chosen\n{columns(headers, lines)}\n"
        f"std. error: over {first['standard_error_over']}."
    )
