"""mlscale study advice: how far from the true optimum the advice of each predictor lands."""

import argparse
from typing import Any

from mlscale.advice.objectives import COSTS, Limits
from mlscale.cli.options import add_limits
from mlscale.cli.study import options
from mlscale.cli.study.text import means_together
from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Rows, grouped
from mlscale.studies.errors import CLUSTERS

SUMMARIES = {
    "advice": "how much more than the true optimum the advised configurations cost (regret)",
}


def parents(_: str) -> list[argparse.ArgumentParser]:
    """Return the parsers with the options of the study."""
    return [
        options.predictors(several=True, default="all that learn and apply"),
        options.features(several=True),
        options.parent(_add_objectives),
        options.base(),
        options.clusters(str(CLUSTERS)),
        options.common("the tables advice and choices"),
    ]


def _add_objectives(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minimize",
        dest="objectives",
        action="append",
        choices=tuple(COSTS),
        help=f"{options.AGAIN} (default: energy, edp and ed2p; time without power)",
    )
    add_limits(parser)


def as_text(document: dict[str, Any]) -> str:
    """Return a block for each table and objective; after several, their mean regrets together."""
    under = Limits(**document["limits"]).under()
    by_block = grouped(document["rows"], "table", "objective")
    blocks = [_block(document, rows, under) for rows in by_block.values()]
    if len(by_block) > 1:
        means = means_together(by_block, "advisor", lambda row: _number(row["regret_mean"]))
        blocks.append(f"Mean regret [%] together{under}:\n{means}")
    return "\n\n".join(blocks)


def _block(document: dict[str, Any], rows: Rows, under: str) -> str:
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
