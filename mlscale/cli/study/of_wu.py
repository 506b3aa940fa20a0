"""mlscale study classifier and study importance: what wu chooses, and which features matter."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli.options import add_wu
from mlscale.cli.study import options
from mlscale.cli.study.text import conditions, origins, two_digits
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.importance import ALL, BEST, NAMED, SHUFFLED
from mlscale.text import counted

CLASSIFIER, IMPORTANCE = "classifier", "importance"
SUMMARIES = {
    CLASSIFIER: "how often wu's networks choose the cluster that the oracle would",
    IMPORTANCE: "how much each feature of wu matters, and how few of them are enough",
}
FILES = {
    CLASSIFIER: "the tables classifier and confusion, and a picture of each matrix",
    IMPORTANCE: "the table importance, and a picture for each table and quantity",
}
NOTES = {
    CLASSIFIER: """\
Right: the network's choice is the cluster nearest to the kernel's own scaling values, the oracle's.
Clustering: what the oracle errs, with the same clusters. Misclassification: what wu errs beyond.
std. error: over """,
    IMPORTANCE: f"""\
shuffled: the mean error of a held-out kernel that has that feature of each training kernel in turn.
among best {NAMED}: in that share of the folds, as the training kernels alone show it; the best n
are chosen so in every fold, and the kernels that are scored had no part in it.
increase: beyond the error with all, paired by kernel. std. error: over """,
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of the study."""
    options.add_features(parser)
    options.add_quantities(parser)
    options.add_base(parser)
    options.add_clusters(parser)
    add_wu(parser)
    options.add_common(parser, FILES[name])


def draw(study: Study, folder: Path, document: dict[str, Any], _: dict[str, Rows]) -> list[Path]:
    """Draw each confusion matrix, or each case's features; the paths. Raises InputError."""
    from mlscale.report.comparison_figures import draw_importance
    from mlscale.report.map_figures import draw_confusion

    written, origin_of = [], origins(study)
    for rows in _blocks(document):
        origin = origin_of[rows[0]["table"]]
        if study.name == CLASSIFIER:
            written += draw_confusion(folder, rows[0], origin)
        else:
            written += draw_importance(folder, rows, origin)
    return written


def as_text(document: dict[str, Any]) -> str:
    """Return the tables of the study, and a note."""
    study = document["study"]
    note = f"{NOTES[study]}{document['rows'][0]['standard_error_over']}."
    if study == CLASSIFIER:
        return f"{_choices(document)}\n{note}"
    return "\n\n".join([*(_importance(document, rows) for rows in _blocks(document)), note])


def _blocks(document: dict[str, Any]) -> list[Rows]:
    """Return the rows of each table, quantity and kind of features; of the classifier one each."""
    return [*grouped(document["rows"], "table", "quantity", "features").values()]


def _choices(document: dict[str, Any]) -> str:
    """Return a row for each table, quantity and kind of features."""
    lines = [_cells(row) for row in document["rows"]]
    headers = ["table", "quantity", "features", "base", "kernels", "seeds", "right: training"]
    headers += ["held out", "std. error", "wu errs", "clustering", "std. error"]
    headers += ["misclassification", "std. error", "where right", "where wrong"]
    return (
        f"classifier: choices [%] and errors [%], {document['protocol']}, "
        f"{document['clusters']} clusters\n{columns(headers, lines)}"
    )


def _cells(row: Row) -> list[str]:
    figures = ["accuracy_standard_error", "mape", "clustering", "clustering_standard_error"]
    figures += ["misclassification", "misclassification_standard_error"]
    figures += ["mape_where_right", "mape_where_wrong"]
    return [
        *(row["table"], row["quantity"], row["features"], str(HardwareConfig(**row["base"]))),
        *(str(row["n_kernels"]), str(row["n_seeds"])),
        *(f"{row['training_accuracy']:.1f}", f"{row['accuracy']:.1f}"),
        *(two_digits(row[figure]) for figure in figures),
    ]


def _importance(document: dict[str, Any], rows: Rows) -> str:
    """Return the shuffled features, and the best few alone."""
    first = rows[0]
    errors = ["mape", "standard_error", "increase", "increase_standard_error"]
    headers = ["MAPE", "std. error", "increase", "std. error"]
    shuffled = [
        [
            row["feature"],
            *(two_digits(row[name]) for name in errors),
            f"{row['chosen_percent']:.0f}",
        ]
        for row in rows
        if row["what"] == SHUFFLED
    ]
    subsets = [
        [
            "all" if row["what"] == ALL else f"best {row['n_features']}",
            *(two_digits(row[name]) for name in errors),
        ]
        for row in sorted(rows, key=lambda row: row["n_features"])
        if row["what"] in (ALL, BEST)
    ]
    return (
        f"{first['table']}: error of {first['quantity']} [%], wu with {first['features']} "
        f"features, {counted(first['n_kernels'], 'kernel')}, {conditions(document, first)}\n"
        f"{columns(['shuffled', *headers, f'among best {NAMED} %'], shuffled)}\n\n"
        f"{columns(['features', *headers], subsets)}"
    )
