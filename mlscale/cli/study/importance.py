"""mlscale study importance: how much each feature of wu matters, and how few are enough."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli.study import options
from mlscale.cli.study.text import conditions, origins, two_digits
from mlscale.cli.text import columns
from mlscale.studies.base import Rows, Study, grouped
from mlscale.studies.importance import ALL, BEST, NAMED, SHUFFLED
from mlscale.text import counted

SUMMARIES = {"importance": "how much each feature of wu matters, and how few of them are enough"}

NOTE = f"""\
shuffled: the mean error of a held-out kernel that has that feature of each training kernel in turn.
among best {NAMED}: in that share of the folds, as the training kernels alone show it; the best n
are chosen so in every fold, and the kernels that are scored had no part in it.
increase: beyond the error with all, paired by kernel. std. error: over """


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the study."""
    files = "the table importance, and a picture for each table and quantity"
    options.add_of_wu(parser, files)


def draw(study: Study, folder: Path, document: dict[str, Any], _: dict[str, Rows]) -> list[Path]:
    """Draw a picture for each table, quantity and kind of features. Raises InputError."""
    from mlscale.report.comparison_figures import draw_importance

    written = []
    for rows in _blocks(document).values():
        written += draw_importance(folder, rows, origins(study)[rows[0]["table"]])
    return written


def as_text(document: dict[str, Any]) -> str:
    """Return two tables for each table, quantity and kind of features, and a note."""
    texts = [_block(document, rows) for rows in _blocks(document).values()]
    return "\n\n".join([*texts, f"{NOTE}{document['rows'][0]['standard_error_over']}."])


def _blocks(document: dict[str, Any]) -> dict[tuple[Any, ...], Rows]:
    return grouped(document["rows"], "table", "quantity", "features")


def _block(document: dict[str, Any], rows: Rows) -> str:
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
