"""mlscale study errors and study compare: predictors beside the baselines, at one base."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli import values
from mlscale.cli.study import options
from mlscale.cli.study.text import (
    MEAN_HEADERS,
    conditions,
    means_together,
    origins,
    summary_cells,
    two_digits,
)
from mlscale.cli.text import columns, without_empty
from mlscale.data.grid import HardwareConfig
from mlscale.predictors import why_wu
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.errors import COMPARE
from mlscale.text import counted

SUMMARIES = {
    "errors": "errors of predictors beside the baselines",
    COMPARE: "all predictors, each with several kinds of features, in one table",
}
LEGEND = (
    "std. error: over {}. behind best: mean difference to the best, paired by application, +- its "
    "standard error; = not told from the best (paired t test, 5 %)."
)
TRAINED = {
    "own-table": "",
    "pooled": ", trained on all tables at once",
    "unseen-gpu": ", trained on other GPUs alone",
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of the study."""
    default = "all that apply" if name == COMPARE else "bottleneck where it applies, and wu"
    options.add_predictors(parser, default)
    options.add_features(parser)
    options.add_quantities(parser)
    _add_training(parser)
    options.add_base(parser)
    options.add_clusters(parser)
    options.add_common(parser, "the tables errors and kernels, and figures")


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--pooled",
        action="store_const",
        const="pooled",
        dest="training",
        help="train on all tables at once; what is held out is held out of each (predictors: by "
        "default bottleneck alone, which can; the baselines learn from one table)",
    )
    group.add_argument(
        "--unseen-gpu",
        action="store_const",
        const="unseen-gpu",
        dest="training",
        help="train on the tables of other GPUs alone, without what is held out; of the predicted "
        "GPU only base profiles of other kernels are seen",
    )

    group.add_argument(
        "--train-on",
        action="append",
        metavar="TABLE",
        help="train on this table alone, without the applications that are tested, and test on "
        f"every kernel of the first tables, without folds; {options.AGAIN}, for predictors that "
        "learn from several",
    )
    group.add_argument(
        "--train-base",
        type=values.configuration,
        metavar="CONFIG",
        help="train on profiles at this base and predict from those at --base; for predictors that "
        "can do so ('sampled') and for those that learn nothing",
    )


def draw(study: Study, folder: Path, _: dict[str, Any], tables: dict[str, Rows]) -> list[Path]:
    """Draw the errors of each table; the paths. Raises InputError."""
    from mlscale.report import comparison_figures

    return comparison_figures.draw_errors(folder, tables["kernels"], origins(study))


def notes(study: Study) -> list[str]:
    """Which predictor would be better than `wu` where nobody chose, and why it does not stand."""
    told = []
    for table, data in study.tables.items():
        names = {part.candidate.name for part in study.parts if part.table == table}
        if "wu" in names and not names.intersection(("bottleneck", "sampled")):
            told.append((table, why_wu(data, study.base_of(table))))
    return [f"{table}: {why}" for table, why in told if why]


def as_text(document: dict[str, Any]) -> str:
    """Return a block for each table and quantity; after several, their means together."""
    by_block = grouped(document["rows"], "table", "quantity")
    blocks = [_block(document, rows) for rows in by_block.values()]
    blocks.append(LEGEND.format(document["rows"][0]["standard_error_over"]))
    if len(by_block) > 1:
        means = means_together(by_block, "predictor", lambda row: f"{row['mape']:.1f}")
        blocks.append(f"Mean errors [%] together:\n{means}")
    return "\n\n".join(blocks)


def _block(document: dict[str, Any], rows: Rows) -> str:
    """Return the table of one quantity of one table, under a heading, with its notes."""
    first, is_compared = rows[0], document["study"] == COMPARE
    headers = ["predictor", "features", *MEAN_HEADERS[:2], "behind best", "seeds"]
    headers += [*MEAN_HEADERS[2:], "without faulty", "in 90 % interval"]
    lines = [_cells(row) for row in rows]
    notes = ""
    if faulty := first["faulty_kernels"]:
        notes += f"\nNamed faulty: {', '.join(faulty)} (not scored there)."
    if is_compared:
        headers += ["p", "train ms", "predict us"]
        lines = [[*line, *_cells_compared(row)] for line, row in zip(lines, rows, strict=True)]
        if references := {row["compared_with"] for row in rows if row["p_value"] is not None}:
            notes += (
                f"\np: that it errs as much as wu on {references.pop()}; Wilcoxon's signed-rank "
                f"test on the mean errors of {first['n_applications']} applications, after Holm."
            )
    trained, note = _training(document, first)
    return (
        f"{first['table']}: error of {first['quantity']} [%], "
        f"{counted(first['n_kernels'], 'kernel')}, {conditions(document, first, trained)}\n"
        f"{columns(*without_empty(headers, lines))}{notes}{note}"
    )


def _cells(row: Row) -> list[str]:
    """Return a predictor's figures; what is empty in all rows gets no column."""
    mape, error, *others = summary_cells(row)
    without_faulty = row["without_faulty"]
    return [
        *(row["predictor"], row["features"] or "", mape, error),
        *(_behind_best(row), _range_of_seeds(row), *others),
        f"{without_faulty['mape']:.2f}" if without_faulty else "",
        "" if row["coverage"] is None else f"{row['coverage']:.1f}",
    ]


def _cells_compared(row: Row) -> list[str]:
    """Return what only the comparison of all predictors shows."""
    p_value = "" if row["p_value"] is None else f"{row['p_value']:.2g}"
    return [p_value, f"{1e3 * row['train_seconds']:.1f}", f"{row['predict_microseconds']:.0f}"]


def _range_of_seeds(row: Row) -> str:
    """Return the lowest and the highest mean of a seed, '' where all are one."""
    low, high = min(row["mape_by_seed"]), max(row["mape_by_seed"])
    return f"{low:.1f} to {high:.1f}" if low < high else ""


def _behind_best(row: Row) -> str:
    """Return how far a predictor is behind the best; nothing for the oracle."""
    if row["behind_best"] is None:
        return ""
    if row["behind_best"] == 0:
        return "best"
    error = two_digits(row["behind_best_standard_error"])
    mark = " =" if row["within_error_of_best"] else ""
    return f"{row['behind_best']:z.2f} +- {error}{mark}"


def _training(document: dict[str, Any], first: dict[str, Any]) -> tuple[str, str]:
    """Return what was trained on, behind the protocol, and a note on what was left out of it."""
    if "train_base" in document:
        return f", trained at {HardwareConfig(**document['train_base'][first['table']])}", ""
    if "train_on" not in first:
        return TRAINED[document.get("training", "own-table")], ""
    note = ""
    if first["left_out_of_training"]:
        left_out = ", ".join(first["left_out_of_training"])
        note = f"\nLeft out of the training, as they are tested: {left_out}."
    return (
        f" {', '.join(first['train_on'])} ({counted(first['n_training_kernels'], 'kernel')})",
        note,
    )
