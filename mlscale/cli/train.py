"""mlscale train: from a table of measurements to a model file."""

import argparse
import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mlscale import __version__
from mlscale.cli import options, outputs
from mlscale.errors import InputError, UsageError
from mlscale.text import counted

if TYPE_CHECKING:
    from mlscale.data.grid import HardwareConfig
    from mlscale.data.measurements import Measurements
    from mlscale.model.model import Model

OF_WU = ("features", "clusters", "loss", "log_ratios", "counters")
HYPER_PARAMETERS = (*OF_WU, "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from mlscale.counters.features import FEATURE_KINDS
    from mlscale.readers.mapping import COUNTING_TOOLS

    parser.add_argument(
        "table",
        nargs="+",
        metavar="TABLE",
        help="tidy table, CSV or Parquet. The model is for the GPU of the first one. From tables "
        "of further GPUs it learns time, each from its mid-grid, if the predictor can (bottleneck)",
    )
    parser.add_argument(
        "--base",
        required=True,
        type=options.configuration,
        help="the configuration at which new kernels will be profiled: "
        "cu=32,engine=1000,memory=1375 (an axis of one step may be left out), 'mid', or "
        "'highest' (every axis at its top)",
    )
    parser.add_argument(
        "--predictor",
        type=options.predictor_name,
        metavar="PREDICTOR",
        help=f"{options.predictor_names()} (default: board-time for averages of runs, bottleneck "
        "where it knows the GPU's peaks and the counters; else, and with --features or --clusters, "
        "wu)",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--features",
        choices=FEATURE_KINDS,
        help="what to compute from the counters (default: table2 for AMD's counters, "
        "utilisation for nvprof's on a known device, else raw)",
    )
    kinds.add_argument(
        "--features-of",
        choices=COUNTING_TOOLS,
        metavar="TOOL",
        help="take the features of Table II, without those that this profiler cannot give and "
        f"without counters of another tool: {', '.join(COUNTING_TOOLS)}",
    )
    parser.add_argument(
        "--clusters",
        type=options.cluster_count,
        metavar="K",
        help="number of clusters in each cluster set of wu, or 'auto': chosen by cross-validation "
        "(default: 8, or the number of kernels if smaller)",
    )
    parser.add_argument(
        "--seed", type=options.seed, help="seed of a predictor that uses chance (default: 0)"
    )
    options.add_wu(parser)
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="APPLICATION",
        help="train without all kernels of this application (not a kernel's name); may be given "
        "again",
    )
    options.add_reading(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="model file to write"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train and save a model. Raises InputError."""
    from mlscale.model.model import save, train

    output = outputs.output_file(arguments.output)
    measurements, *others = _read(arguments)
    base = measurements.grid.parse(arguments.base)
    measurements.grid.index(base)
    why_wu = _choose_predictor(arguments, measurements, base)
    parameters = _hyper_parameters(arguments, bool(others))
    model = train(
        measurements,
        base,
        arguments.predictor,
        others=[(other, other.grid.mid) for other in others],
        **parameters,
    )
    if arguments.features_of:
        model.card["features_of"] = arguments.features_of
    words = _without_output(arguments.words, arguments.output)
    model.card["made_by"] = {"command": options.command_line(words), "versions": _versions()}
    save(model, output)
    print(f"{output}: '{arguments.predictor}' for {_summary(model)}")
    if others:
        print(f"time learnt from {len(others)} more: {', '.join(other.device for other in others)}")
    if why_wu:
        print(why_wu)
    if needs := _needs(model):
        print(f"features that a profile needs ({len(needs)}): {', '.join(needs)}")


def _without_output(words: Sequence[str], output: str) -> list[str]:
    """The words of the command line, MODEL in place of what -o names."""
    named = []
    for before, word in pairwise(["", *words]):
        option = before if word == output else word.removesuffix(output).removesuffix("=")
        is_output = option == "-o" or (option.startswith("--o") and "--output".startswith(option))
        is_named = is_output and word.endswith(output)
        named.append(f"{word.removesuffix(output)}MODEL" if is_named else word)
    return named


def _choose_predictor(
    arguments: argparse.Namespace, measurements: "Measurements", base: "HardwareConfig"
) -> str | None:
    """Name the predictor where the user does not, and return why it is no better one."""
    from mlscale.predictors import DEFAULT, default_predictor, why_wu

    if arguments.predictor not in (None, DEFAULT):
        return None
    if any(getattr(arguments, name) for name in OF_WU):
        arguments.predictor = "wu"
        return None
    arguments.predictor = default_predictor(measurements, base)
    return why_wu(measurements, base) if arguments.predictor == "wu" else None


def _hyper_parameters(arguments: argparse.Namespace, trains_on_several: bool) -> dict[str, Any]:
    """Those that were given and that the predictor has. Raises InputError."""
    from mlscale.predictors import create
    from mlscale.predictors.base import PoolsGpus, Savable

    predictor = create(arguments.predictor)
    if not isinstance(predictor, Savable):
        raise UsageError(
            f"--predictor: '{predictor.name}' exists for studies only and cannot be trained to a "
            "file: it has no methods state and restore"
        )
    if trains_on_several and not isinstance(predictor, PoolsGpus):
        raise UsageError(f"'{predictor.name}' learns from one TABLE at a time")
    own = [name for name in HYPER_PARAMETERS if name in predictor.get_params()]
    features = "table2" if arguments.features_of else arguments.features
    given = {**vars(arguments), "features": features}
    return {name: given[name] for name in own if given[name] is not None}


def _summary(model: "Model") -> str:
    """What was learnt, and from how much."""
    return (
        f"{' and '.join(model.predictors)}, {counted(len(model.card['kernels']), 'kernel')} of "
        f"{counted(len(model.card['applications']), 'application')}, "
        f"{counted(model.grid.size, 'configuration')} of {model.device}, base {model.base}"
    )


def _needs(model: "Model") -> list[str]:
    """The features that a profile must have."""
    from mlscale.predictors.base import HasFeatures

    with_features = [p for p in model.predictors.values() if isinstance(p, HasFeatures)]
    return list(dict.fromkeys(name for p in with_features for name in p.needs()))


def _read(arguments: argparse.Namespace) -> list["Measurements"]:
    """Return each table without what is left out. Raises InputError."""
    paths = [options.input_file(text) for text in arguments.table]
    files = [path.resolve() for path in paths]
    if twice := [path for path, file in zip(paths, files, strict=True) if files.count(file) > 1]:
        raise UsageError(f"{twice[0]}: is given twice, and would count twice")
    tables = [options.read_measurements(arguments, path) for path in paths]
    unknown = set(arguments.leave_out).difference(*(table.applications for table in tables))
    if unknown:
        where, absent = ", ".join(map(str, paths)), min(unknown)
        raise InputError(
            f"{where}: there is no application '{absent}' to leave out{_owners(tables, absent)}"
        )
    kept = [
        table.select(
            [k for k, app in enumerate(table.applications) if app not in arguments.leave_out]
        )
        for table in tables
    ]
    if arguments.features_of is None:
        return kept
    from mlscale.readers.mapping import with_obtainable

    return [
        with_obtainable(table, arguments.features_of, str(path))
        for path, table in zip(paths, kept, strict=True)
    ]


def _owners(tables: Sequence["Measurements"], name: str) -> str:
    """The end of a message: the applications that have a kernel of that name, if there are any."""
    pairs = [pair for of in tables for pair in zip(of.kernels, of.applications, strict=True)]
    owners = sorted({f"'{application}'" for kernel, application in pairs if kernel == name})
    if not owners:
        return ""
    word = "application" if len(owners) == 1 else "applications"
    return f", but a kernel of the {word} {', '.join(owners)}: --leave-out takes applications"


def _versions() -> dict[str, str]:
    """Return versions of what makes a model what it is."""
    versions = {"mlscale": __version__, "python": platform.python_version()}
    for package in ("numpy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
