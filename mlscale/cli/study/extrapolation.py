"""mlscale study extrapolation: errors beyond the outermost step that was trained on."""

import argparse
from typing import Any

from mlscale.cli.study import options
from mlscale.cli.study.text import two_digits
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Rows, grouped
from mlscale.text import counted

SUMMARIES = {
    "extrapolation": "errors at the outermost step of each axis, which is not trained on",
}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the study."""
    options.add_predictors(parser, "bottleneck where it applies, and wu")
    options.add_features(parser)
    options.add_quantities(parser)
    options.add_base(parser)
    options.add_clusters(parser)
    options.add_common(parser, "the table extrapolation")


def as_text(document: dict[str, Any]) -> str:
    """Return a block for each table, quantity and edge."""
    by_block = grouped(document["rows"], "table", "quantity", "axis", "end")
    return "\n\n".join(_block(document, rows) for rows in by_block.values())


def _block(document: dict[str, Any], rows: Rows) -> str:
    first = rows[0]
    covered = any(row["coverage_outside"] is not None for row in rows)
    headers = ["predictor", "features", "inside", "std. error", "outside", "std. error"]
    headers += ["outside / inside", "if trained on it"]
    headers += ["inside in 90 %", "outside in 90 %"] if covered else []
    lines = []
    for row in rows:
        figures = ["mape_inside", "standard_error_inside", "mape_outside"]
        figures += ["standard_error_outside", "ratio", "mape_trained"]
        cells = [row["predictor"], row["features"] or "", *(two_digits(row[f]) for f in figures)]
        if covered:
            shares = [row["coverage_inside"], row["coverage_outside"]]
            cells += ["" if share is None else f"{share:.1f}" for share in shares]
        lines.append(cells)
    return (
        f"{first['table']}: error of {first['quantity']} [%] at {first['axis']} "
        f"{first['step']:g}, the {first['end']}, which is not trained on, "
        f"{counted(first['n_kernels'], 'kernel')}, base {HardwareConfig(**first['base'])}, "
        f"{document['protocol']}; std. error over {first['standard_error_over']}\n"
        f"{columns(headers, lines)}"
    )
