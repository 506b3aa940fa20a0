"""The studies of section V of Wu et al., HPCA 2015: options, tables as text, and figures."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mlscale.cli import values
from mlscale.cli.options import add_wu
from mlscale.cli.study import options
from mlscale.cli.study.text import two_digits
from mlscale.cli.text import columns
from mlscale.data.grid import AXES
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.wu2015 import BASE_CONFIGURATION, BIN_WIDTH, BINS, ORACLE_STUDY
from mlscale.studies.wu2015_summary import (
    Spread,
    box,
    boxes,
    by_base,
    labels,
    overall,
    shares,
)

SUMMARIES = {
    BASE_CONFIGURATION: "a model for every base (Wu et al., Fig. 10 to 12)",
    "cluster-count": "2 to 20 clusters at five bases (Wu et al., Fig. 13, 16)",
    "error-distribution": "histogram of errors with 2, 6 and 12 clusters (Wu et al., Fig. 14, 17)",
    ORACLE_STUDY: "network against oracle on the training set (Wu et al., Fig. 15)",
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of the study."""
    if name == BASE_CONFIGURATION:
        options.add_predictors(parser, "wu", several=False)
        _add_vary(parser)
        options.add_clusters(parser)
    else:
        _add_bases(parser)
        add_wu(parser)
    options.add_features(parser, several=False)
    options.add_quantities(parser)
    options.add_common(parser, "a table and figures", "holdout")


def _add_vary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vary",
        action="append",
        choices=AXES,
        help="move the base along this axis only, the others as in --base; "
        f"{options.AGAIN} (default: every configuration is a base)",
    )
    parser.add_argument(
        "--base",
        action=options.Once,
        type=values.configuration,
        help="configuration of the axes that --vary does not name (default: mid-grid)",
    )


def _add_bases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base",
        action="append",
        type=values.configuration,
        help="configuration to predict from, 'mid' or 'highest' (every axis at its top); "
        f"{options.AGAIN} (default: five over the grid)",
    )


def draw(study: Study, folder: Path, document: dict[str, Any], _: dict[str, Rows]) -> list[Path]:
    """Draw the figures of each table and quantity; their paths. Raises InputError."""
    from mlscale.report import wu2015_figures

    written = []
    for (table, quantity), rows in grouped(document["rows"], "table", "quantity").items():
        origin = study.tables[table].metadata.get("origin")
        what = wu2015_figures.FigureSubject(document["predictor"], table, quantity, origin)
        written += wu2015_figures.draw_study(study.name, folder, what, rows)
    return written


def as_text(document: dict[str, Any]) -> str:
    """Return a table for each table of measurements and quantity; errors in percent."""
    study, predictor = document["study"], document["predictor"]
    blocks = []
    for (table, quantity), rows in grouped(document["rows"], "table", "quantity").items():
        ours = [row for row in rows if row["predictor"] == predictor]
        features = f" with {ours[0]['features']} features" if ours[0]["features"] else ""
        kernels = sorted({row["n_kernels"] for row in ours})
        body = _TEXTS[study](rows, predictor)
        note = "; std. error: over seeds" if "std. error" in body else ""
        blocks.append(
            f"{table}: {study}, error of {quantity} [%], {predictor}{features}, "
            f"{' or '.join(map(str, kernels))} kernels "
            f"{'trained on' if study == ORACLE_STUDY else 'held out'}, {document['protocol']}, "
            f"seeds {len({row['seed'] for row in ours})}{note}\n{body}"
        )
    return "\n\n".join(blocks)


def _base_text(rows: Sequence[Row], predictor: str) -> str:
    """Return a row for each engine clock of the base, as in Fig. 12; then the extremes."""
    [ours] = labels(rows, predictor)
    others = [name for name in labels(rows) if name != ours]
    by_clock, bases = boxes(rows), by_base(rows)
    by_clock_and_all = {
        name: {
            **{f"{engine:g}": found for engine, found in by_clock[name].items()},
            "all": box([spread.mean for spread in bases[name].values()]),
        }
        for name in by_clock
    }
    lines = []
    for clock, own in by_clock_and_all[ours].items():
        figures = [own.mean, own.std, own.low, own.high]
        figures += [by_clock_and_all[other][clock].mean for other in others]
        lines.append([clock, str(own.bases), *map(two_digits, figures)])
    headers = ["base engine MHz", "bases", f"{ours}: mean", "std", "min", "max", *others]
    errors = {base: spread.mean for base, spread in bases[ours].items()}
    best, worst = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
    mean = overall(rows)[ours]
    by_seed = (
        f"; mean {two_digits(mean.mean)}, std. error {two_digits(mean.standard_error)}, by seed"
    )
    return (
        f"{columns(headers, lines)}\nbest base {best}: {errors[best]:.2f}; worst {worst}: "
        f"{errors[worst]:.2f}" + (f"{by_seed} {_range(mean)}" if _range(mean) else "")
    )


def _cluster_text(rows: Sequence[Row], _: str, each_base: bool = True) -> str:
    """Return a row for each number of clusters and baseline, a column for each base and a mean."""
    at_base = by_base(rows)
    bases = [str(base) for base in next(iter(at_base.values()))] if each_base else []
    lines = [
        [
            name,
            *(two_digits(spread.mean) for spread in at_base[name].values() if each_base),
            two_digits(mean.mean),
            two_digits(mean.standard_error),
            _range(mean),
        ]
        for name, mean in overall(rows).items()
    ]
    return columns(["", *bases, "mean", "std. error", "by seed"], lines)


def _bin_text(rows: Sequence[Row], _: str) -> str:
    """Return the share of each bin [%], a column for each number of clusters and baseline."""
    found = shares(rows)
    lows = [BIN_WIDTH * position for position in range(BINS)]
    names = [f"{low:g} to {low + BIN_WIDTH:g}" for low in lows[:-1]] + [f"{lows[-1]:g} or more"]
    lines = [
        [name, *(two_digits(found[label][low].mean) for label in found)]
        for name, low in zip(names, lows, strict=True)
    ]
    return columns(["error [%]", *found], lines)


_TEXTS: dict[str, Callable[[Sequence[Row], str], str]] = {
    "base-configuration": _base_text,
    "cluster-count": _cluster_text,
    "error-distribution": _bin_text,
    "oracle": partial(_cluster_text, each_base=False),
}


def _range(spread: Spread) -> str:
    return f"{spread.low:.2f} to {spread.high:.2f}" if spread.low < spread.high else ""
