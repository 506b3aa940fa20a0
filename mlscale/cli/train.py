"""mlscale train: from a table of measurements to a model file."""

import argparse
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale import __version__
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.show import errors_in_words
from mlscale.cli.terminal import base_line, facts, print_line, sentences, shown
from mlscale.data.datasets import input_file
from mlscale.data.grid import BASE_NAMES
from mlscale.errors import InputError, UsageError
from mlscale.text import counted

if TYPE_CHECKING:
    from mlscale.data.grid import HardwareConfig
    from mlscale.data.measurements import Measurements
    from mlscale.data.profiles import Profiles
    from mlscale.model.model import Model
    from mlscale.studies.crossval import ProfiledTable

OF_WU = ("features", "clusters", "loss", "log_ratios", "counters")
HYPER_PARAMETERS = (*OF_WU, "seed")
MOST_NAMED = 4  # counters


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    from mlscale.readers.mapping import COUNTING_TOOLS

    add, more = parser.add, parser.add_more
    parser.usage = "%(prog)s TABLE ... -o MODEL [options]"
    what = (
        "tidy table, CSV or Parquet. The model is for the GPU of the first one; from tables of "
        "further GPUs it learns time, if the predictor can (bottleneck)"
    )
    add("table", nargs="+", metavar="TABLE", help=what)
    what = (
        "where new kernels will be profiled: cu=32,engine=1000,memory=1375 (an axis of one step "
        "may be left out), 'mid', or 'highest' (every axis at its top; the default)"
    )
    add("--base", type=options.configuration, metavar="CONFIG", help=what)
    add("-o", "--output", required=True, metavar="MODEL", help="model file to write")
    what = (
        f"{options.predictor_names()} (default: runs for averages of runs, bottleneck where "
        "it knows the GPU's peaks and the counters; else, and with --features or --clusters, wu)"
    )
    add("--predictor", type=options.predictor_name, metavar="PREDICTOR", help=what)
    what = "learn only this: time or power (default: what the table has)"
    add("--quantity", choices=("time", "power"), metavar="WHAT", help=what)
    what = "train without all kernels of this application (not a kernel's name); may be given again"
    add("--leave-out", action="append", default=[], metavar="APPLICATION", help=what)
    kinds = parser.add_mutually_exclusive_group()
    options.add_wu(parser, group=kinds)
    what = (
        "take the features of Table II, without those that this profiler cannot give and without "
        f"counters of another tool: {', '.join(COUNTING_TOOLS)}"
    )
    more("--features-of", choices=COUNTING_TOOLS, metavar="TOOL", help=what, group=kinds)
    what = "seed of a predictor that uses chance (default: 0)"
    more("--seed", type=options.seed, help=what)
    what = "skip the check of its error on unseen applications"
    add("--no-check", action="store_true", help=what)
    options.add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train and save a model. Raises InputError."""
    from mlscale.model.model import train

    output = outputs.output_file(arguments.output)
    measurements, *others = _tables(arguments)
    base = measurements.base(arguments.base)
    named = arguments.base if arguments.base in BASE_NAMES else None
    sets = [(one, one.base(named)) for one in others]
    measurements = measurements.with_base(base)
    given = {name: getattr(arguments, name) for name in HYPER_PARAMETERS}
    predictor, why_wu = _predictor(arguments.predictor, given, measurements, base)
    if arguments.features_of:
        given["features"] = "table2"
    model = train(
        measurements,
        base,
        predictor,
        others=sets,
        quantity=arguments.quantity,
        **_hyper_parameters(predictor, given, bool(others)),
    )
    if arguments.features_of:
        model.card["features_of"] = arguments.features_of
    checked = _checked(model, [(measurements, base), *sets], arguments.no_check)
    words = ["MODEL" if word == arguments.output else word for word in arguments.words]
    command = options.command_line(words)  # so that the file is the same whatever its name
    model.card["made_by"] = {"command": command, "versions": _versions()}
    model.save(output)
    names, lacking = _features(model, measurements.profiles(base))
    told = [
        ("Profile new kernels at", _where(names)),
        ("Some kernels lack", ", ".join(lacking)),
        ("Also learns time from", ", ".join(other.device for other in others)),
        ("Held-out error", checked),
        ("Why", why_wu or ""),
        ("Next", f"mlscale predict PROFILE --model {output}"),
    ]
    summary = sentences(f"{output}: {_summary(model, predictor)}")
    at = base_line([str(base)], arguments.base, base == measurements.grid.highest)
    print(shown([*at, *summary, *facts(told)]), end="")


def _checked(model: "Model", tables: "list[ProfiledTable]", is_skipped: bool) -> str:
    """How far off the model is on applications left out, in words; its card keeps the figures."""
    from mlscale.studies.statistics import left_out_errors

    if is_skipped:
        return ""
    if sys.stderr.isatty():
        print_line("mlscale: trained; checking it on held-out applications (--no-check skips it)")
    try:
        found = model.card["left_out_errors"] = left_out_errors(model, tables)
    except InputError as error:
        return f"not known: {error}"
    return f"{errors_in_words(found)} (quick check, {found['folds']} folds; --no-check skips it)"


def _where(names: Sequence[str]) -> str:
    named = (
        ", ".join(names) if len(names) <= MOST_NAMED else "'mlscale show MODEL --all' lists them"
    )
    return f"the base, with {counted(len(names), 'counter')}: {named}" if names else "the base"


def _tables(arguments: argparse.Namespace) -> list["Measurements"]:
    from mlscale.readers.mapping import with_obtainable

    paths = [input_file(text) for text in arguments.table]
    files = [path.resolve() for path in paths]
    if twice := [path for path, file in zip(paths, files, strict=True) if files.count(file) > 1]:
        raise UsageError(f"{twice[0]}: is given twice; give it once")
    tables = [options.read_measurements(arguments, path) for path in paths]
    known = {application for table in tables for application in table.applications}
    if unknown := set(arguments.leave_out) - known:
        raise InputError(
            f"{', '.join(map(str, paths))}: there is no application '{min(unknown)}' to leave out; "
            "--leave-out takes applications, not kernels"
        )
    kept = [
        table.select(
            [k for k, name in enumerate(table.applications) if name not in arguments.leave_out]
        )
        for table in tables
    ]
    tool = arguments.features_of
    if tool is None:
        return kept
    return [
        with_obtainable(table, tool, str(path)) for table, path in zip(kept, paths, strict=True)
    ]


def _predictor(
    asked: str | None,
    given: Mapping[str, Any],
    measurements: "Measurements",
    base: "HardwareConfig",
) -> tuple[str, str | None]:
    """The predictor's name, and why the default is no better one.

    given: hyper-parameters, None for those that were not given.
    """
    from mlscale.predictors import DEFAULT, default_predictor, why_wu

    if asked not in (None, DEFAULT):
        return str(asked), None
    if any(given[name] for name in OF_WU):
        return "wu", None
    name = default_predictor(measurements, base)
    return name, why_wu(measurements, base) if name == "wu" else None


def _hyper_parameters(
    name: str, given: Mapping[str, Any], trains_on_several: bool
) -> dict[str, Any]:
    """Those that were given and that the predictor has. Raises UsageError."""
    from mlscale.predictors import create
    from mlscale.predictors.base import PoolsGpus, Savable

    predictor = create(name)
    if not isinstance(predictor, Savable):
        raise UsageError(
            f"--predictor: '{predictor.name}' exists for studies only ('mlscale study errors') and "
            "cannot be trained to a file: it has no methods state and restore"
        )
    if trains_on_several and not isinstance(predictor, PoolsGpus):
        raise UsageError(f"'{predictor.name}' learns from one TABLE at a time")
    known = predictor.get_params()
    return {name: value for name, value in given.items() if name in known and value is not None}


def _summary(model: "Model", predictor: str) -> str:
    settings = counted(model.grid.size - len(model.unmeasured), "setting")
    origin = model.card["metadata"].get("origin")
    return (
        f"{' and '.join(model.predictors)} by '{predictor}', from "
        f"{counted(len(model.card['kernels']), 'kernel')} of "
        f"{counted(len(model.card['applications']), 'application')} at {settings} of "
        f"{model.device}{f' ({origin})' if origin else ''}"
    )


def _features(model: "Model", profiles: "Profiles") -> tuple[list[str], list[str]]:
    """What a profile must have, or what was learnt from; and what some training kernel lacks."""
    from mlscale.predictors.base import NeedsFeatures, ScalesFeatures

    first, *_ = model.predictors.values()
    if isinstance(first, ScalesFeatures):
        names = first.scaling_.names
        columns = zip(names, first.scaling_.values(profiles).T, strict=True)
        return [*names], [name for name, column in columns if np.isnan(column).any()]
    needing = [p for p in model.predictors.values() if isinstance(p, NeedsFeatures)]
    return [*dict.fromkeys(name for p in needing for name in p.needs())], []


def _versions() -> dict[str, str]:
    versions = {"mlscale": __version__, "python": platform.python_version()}
    for package in ("numpy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
