"""mlscale study: errors of predictors on tables of measurements, and the studies of Wu et al."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from mlscale.cli import options
from mlscale.cli.study import advice as study_advice
from mlscale.cli.study import errors as study_errors
from mlscale.cli.study import next_profile as study_next_profile
from mlscale.cli.study import work as study_work
from mlscale.cli.study import wu2015 as study_paper
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements

PLANS = {
    study: module.plan
    for module in (study_errors, study_paper, study_advice, study_next_profile)
    for study in module.STUDIES
}
STUDIES = {
    **study_errors.STUDIES,
    **study_paper.STUDIES,
    **study_advice.STUDIES,
    **study_next_profile.STUDIES,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from mlscale.advice.objectives import OBJECTIVES
    from mlscale.cli.limits import add_limits
    from mlscale.counters.features import FEATURE_KINDS, WITH_POWER
    from mlscale.predictors import PREDICTORS
    from mlscale.studies.splits import PROTOCOLS

    parser.add_argument(
        "study",
        choices=tuple(STUDIES),
        metavar="STUDY",
        help="; ".join(f"{name}: {what}" for name, what in STUDIES.items()),
    )
    parser.add_argument("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    parser.add_argument(
        "--predictor",
        action="append",
        choices=tuple(PREDICTORS),
        help="errors, compare: may be given again; the baselines always stand beside",
    )
    parser.add_argument(
        "--features",
        action="append",
        choices=(*FEATURE_KINDS, *(kind + WITH_POWER for kind in FEATURE_KINDS)),
        help="errors, compare: may be given again; with +power the power at the base is a feature "
        "too, for power alone (default: what suits the counters; compare: all that fit)",
    )
    parser.add_argument(
        "--quantity",
        action="append",
        choices=tuple(QUANTITIES),
        help="may be given again (default: both, where the table has power)",
    )
    parser.add_argument(
        "--pooled",
        action="store_true",
        help="errors, compare: train on all tables at once, what is held out is held out of each "
        "(default: bottleneck alone, which can; the baselines learn from one table)",
    )
    parser.add_argument(
        "--unseen-gpu",
        action="store_true",
        help="errors, compare: train on the tables of other GPUs alone, without what is held out; "
        "of a table's own GPU only base profiles of other kernels are seen",
    )
    parser.add_argument(
        "--minimize",
        action="append",
        choices=tuple(OBJECTIVES),
        help="advice: may be given again (default: energy, edp and ed2p; time without power)",
    )
    parser.add_argument(
        "--points",
        type=options.whole_number,
        metavar="N",
        help=f"next-profile: predict with 0 to N further points (default: "
        f"{study_next_profile.POINTS})",
    )
    add_limits(parser)
    _add_protocol(parser, PROTOCOLS)
    options.add_reading(parser)
    _add_output(parser)


def _add_protocol(parser: argparse.ArgumentParser, protocols: tuple[str, ...]) -> None:
    """What is held out, how often, and where the profile is taken."""
    from mlscale.data.grid import AXES

    parser.add_argument(
        "--base",
        action="append",
        help="configuration to predict from, or 'mid' (default); cluster-count, "
        "error-distribution, oracle: may be given again (default: five over the grid)",
    )
    parser.add_argument(
        "--vary",
        action="append",
        choices=AXES,
        default=[],
        help="base-configuration: move the base along this axis only, the others as in --base; "
        "may be given again (default: every configuration is a base)",
    )
    parser.add_argument(
        "--clusters",
        type=options.whole_number,
        metavar="K",
        help=f"(default: {study_errors.CLUSTERS}; base-configuration: {study_paper.CLUSTERS}; "
        "the paper's other studies vary it)",
    )
    parser.add_argument(
        "--seeds",
        type=options.whole_number,
        default=3,
        metavar="N",
        help="repeat with the seeds 0 to N-1 (default: 3); 1 for the paper's single split",
    )
    parser.add_argument(
        "--protocol",
        choices=protocols,
        help="who is held out; kernels of one application always together (default: "
        f"{study_errors.PROTOCOL}; the paper's studies: {study_paper.PROTOCOL})",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Where the results go, and where the work is done."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write there study.json and, errors and compare: tables errors and kernels; the "
        "paper's studies: a table and figures. What is done is kept there for --resume",
    )
    parser.add_argument(
        "--format",
        choices=study_work.FORMATS,
        default="csv",
        help="of the tables in -o DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the unfinished study in -o DIR"
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of that scheduler, such as tcp://host:8786",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print or write its figures. Raises InputError."""
    if arguments.resume and not arguments.output:
        raise InputError("--resume needs -o DIR, the folder of the unfinished study")
    if arguments.study not in study_advice.STUDIES:
        study_advice.refuse_options(arguments)
    if arguments.points and arguments.study not in study_next_profile.STUDIES:
        raise InputError(f"--points is for the study 'next-profile', not '{arguments.study}'")
    tables = _read_tables(arguments)
    if arguments.study not in study_errors.STUDIES and (arguments.pooled or arguments.unseen_gpu):
        raise InputError("--pooled and --unseen-gpu are for the studies errors and compare")
    study = PLANS[arguments.study](arguments, tables)
    if not study.units:
        raise InputError("no table has a column 'power_w'")
    document, written = study_work.carry_out(study, tables, arguments)
    print(json.dumps(document, indent=1) if arguments.json else study.as_text(document))
    if written and not arguments.json:
        print(f"\nWritten: {', '.join(map(str, written))}")


def _read_tables(arguments: argparse.Namespace) -> dict[str, Measurements]:
    """Each table by the stem of its name."""
    from mlscale.data.measurements import read

    tables: dict[str, Measurements] = {}
    for text in arguments.table:
        path = options.input_file(text)
        if path.stem in tables:
            raise InputError(f"two tables are named '{path.stem}'; rename one")
        tables[path.stem] = read(path, arguments.incomplete, arguments.repetitions)
    return tables
