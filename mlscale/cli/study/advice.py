"""mlscale study advice: how far from the true optimum the advice of each predictor lands."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.advice.objectives import COSTS, Limits, objective_name
from mlscale.cli import values
from mlscale.cli.goal import add_limits
from mlscale.cli.study import options
from mlscale.cli.study.text import conditions, means_together, origins, two_digits
from mlscale.cli.text import columns, or_dash
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.goal import LAUNCH_SIGMA, MOST_APPLICATIONS
from mlscale.text import shortened

SUMMARIES = {
    "advice": "how much more than the true optimum the advised configurations cost (regret)",
}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the study."""
    options.add_predictors(parser, "all that learn and apply")
    options.add_features(parser)
    _add_objectives(parser)
    _add_runs(parser)
    options.add_base(parser)
    options.add_clusters(parser)
    files = "the tables advice and choices (with --runs also runs), and figures"
    options.add_common(parser, files)


def _add_objectives(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minimize",
        dest="objectives",
        action="append",
        choices=tuple(COSTS),
        help=f"what is to be least; {options.AGAIN} (default: energy, edp and ed2p; time where "
        "the table has no power)",
    )
    add_limits(parser, "the kernel")


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=values.whole_number,
        metavar="N",
        help="advise one configuration for each of N random runs, mixes of 1 to "
        f"{MOST_APPLICATIONS} held-out applications with log-normal launches "
        f"(sigma {LAUNCH_SIGMA:g}), instead of one for each kernel",
    )


def draw(study: Study, folder: Path, _: dict[str, Any], tables: dict[str, Rows]) -> list[Path]:
    """Draw the regrets of each table; the paths. Raises InputError."""
    from mlscale.report import comparison_figures

    return comparison_figures.draw_regrets(folder, tables["choices"], origins(study))


def as_text(document: dict[str, Any]) -> str:
    """Return a block for each table and objective; after several, their mean regrets together."""
    under = Limits(**document["limits"]).under()
    by_block = grouped(document["rows"], "table", "objective")
    blocks = [_block(document, rows, under) for rows in by_block.values()]
    if len(by_block) > 1:
        by_name = {(table, objective_name(of)): rows for (table, of), rows in by_block.items()}
        means = means_together(by_name, "advisor", lambda row: two_digits(row["regret_mean"]))
        blocks.append(f"Mean regret [%] together{under}:\n{means}")
    return "\n\n".join(blocks)


def _block(document: dict[str, Any], rows: Rows, under: str) -> str:
    what = "run" if document["runs"] else "kernel"
    headers = [
        "advisor",
        "features",
        "mean",
        "std. error",
        "median",
        "p90",
        "worst",
        f"worst {what}",
    ]
    has_intervals = any(row["interval_holds_percent"] is not None for row in rows)
    headers += ["saves %", *(["interval holds %"] if has_intervals else [])]
    headers += ["time %", *(["breaks limits %"] if under else [])]
    lines = []
    for row in rows:
        figures = ["mean", "standard_error", "median", "p90"]
        line = [row["advisor"], row["features"] or ""]
        line += [two_digits(row[f"regret_{figure}"]) for figure in figures]
        line += [two_digits(row["worst_regret"]), _worst(row), two_digits(row["saving_mean"])]
        if has_intervals:
            line.append(or_dash(row["interval_holds_percent"], ".1f"))
        line.append(f"{row['slowdown_mean']:+z.1f}")
        lines.append(line + ([f"{row['breaks_limits_percent']:.1f}"] if under else []))
    first = rows[0]
    beyond = f" ({first['n_beyond_limits']} more cannot keep the limits)"
    return (
        f"{first['table']}: regret of {objective_name(first['objective'])} [%]{under}, "
        f"{first[f'n_{what}s']} {'random ' if document['runs'] else ''}{what}s"
        f"{beyond if first['n_beyond_limits'] else ''}, {conditions(document, first)}; "
        f"the optimum saves {first['best_saving_mean']:z.1f} %\n{columns(headers, lines)}"
    )


def _worst(row: Row) -> str:
    """Return whose regret is the largest: the kernel, or the run's number with its applications."""
    if "worst_kernel" in row:
        return row["worst_kernel"] or "-"
    if row["worst_run"] is None:
        return "-"
    return f"{row['worst_run']} ({shortened(row['worst_run_applications'], 40)})"
