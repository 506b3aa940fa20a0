"""mlscale study classifier: how often wu's networks choose the cluster that the oracle would."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli.study import options
from mlscale.cli.study.text import origins, two_digits
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Row, Rows, Study

SUMMARIES = {"classifier": "how often wu's networks choose the cluster that the oracle would"}

NOTE = """\
Right: the network's choice is the cluster nearest to the kernel's own scaling values, the oracle's.
Clustering: what the oracle errs, with the same clusters. Misclassification: what wu errs beyond.
std. error: over """


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the study."""
    files = "the tables classifier and confusion, and a picture of each matrix"
    options.add_of_wu(parser, files)


def draw(study: Study, folder: Path, document: dict[str, Any], _: dict[str, Rows]) -> list[Path]:
    """Draw each confusion matrix; the paths. Raises InputError."""
    from mlscale.report.map_figures import draw_confusion

    written = []
    for row in document["rows"]:
        written += draw_confusion(folder, row, origins(study)[row["table"]])
    return written


def as_text(document: dict[str, Any]) -> str:
    """Return a row for each table, quantity and kind of features."""
    lines = [_cells(row) for row in document["rows"]]
    headers = ["table", "quantity", "features", "base", "kernels", "seeds", "right: training"]
    headers += ["held out", "std. error", "wu errs", "clustering", "std. error"]
    headers += ["misclassification", "std. error", "where right", "where wrong"]
    over = document["rows"][0]["standard_error_over"]
    return (
        f"classifier: choices [%] and errors [%], {document['protocol']}, "
        f"{document['clusters']} clusters\n{columns(headers, lines)}\n{NOTE}{over}."
    )


def _cells(row: Row) -> list[str]:
    def two(name: str) -> str:
        return "" if row[name] is None else f"{row[name]:.2f}"

    cells = [row["table"], row["quantity"], row["features"], str(HardwareConfig(**row["base"]))]
    cells += [str(row["n_kernels"]), str(row["n_seeds"])]
    cells += [f"{row['training_accuracy']:.1f}", f"{row['accuracy']:.1f}"]
    cells += [two_digits(row["accuracy_standard_error"]), two("mape"), two("clustering")]
    cells += [two_digits(row["clustering_standard_error"]), two("misclassification")]
    cells += [two_digits(row["misclassification_standard_error"])]
    return [*cells, two("mape_where_right"), two("mape_where_wrong")]
