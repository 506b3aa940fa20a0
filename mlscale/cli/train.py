"""mlscale train: from a table of measurements to a model file."""

import argparse
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from mlscale import __version__
from mlscale.cli import options, outputs, values
from mlscale.errors import InputError, UsageError
from mlscale.text import counted

if TYPE_CHECKING:
    from mlscale.data.grid import HardwareConfig
    from mlscale.data.measurements import Measurements

HYPER_PARAMETERS = ("features", "clusters", "seed", "gpu", "loss", "log_ratios", "counters")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from mlscale.counters.features import FEATURE_KINDS
    from mlscale.profilers import COUNTING_TOOLS

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
        type=values.configuration,
        help="the configuration at which new kernels will be profiled: "
        "cu=32,engine=1000,memory=1375 (an axis of one step may be left out), 'mid', or "
        "'highest' (every axis at its top)",
    )
    parser.add_argument(
        "--predictor",
        type=values.predictor_name,
        metavar="PREDICTOR",
        help=f"{values.predictor_names()} (default: sampled for sampled profiles, bottleneck "
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
        type=values.cluster_count,
        metavar="K",
        help="number of clusters in each cluster set of wu, or 'auto': chosen by cross-validation "
        "(default: 8, or the number of kernels if smaller)",
    )
    parser.add_argument(
        "--seed", type=values.seed, help="seed of a predictor that uses chance (default: 0)"
    )
    options.add_gpu(parser)
    options.add_wu(parser)
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="APPLICATION",
        help="train without the kernels of this application; may be given again",
    )
    options.add_reading(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="model file to write"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train and save a model. Raises InputError."""
    from mlscale.model import train
    from mlscale.model_file import save
    from mlscale.predictors import DEFAULT, create, default_predictor
    from mlscale.predictors.base import HasFeatures, PoolsGpus, Savable

    output = outputs.output_file(arguments.output)
    measurements, *others = _read(arguments)
    why_wu = None
    features = "table2" if arguments.features_of else arguments.features
    base = measurements.grid.parse(arguments.base)
    measurements.grid.index(base)
    if arguments.predictor in (None, DEFAULT):
        names = ("features", "clusters", "loss", "log_ratios", "counters")
        of_wu = any(getattr(arguments, name) for name in names)
        arguments.predictor = "wu" if of_wu else default_predictor(measurements, base)
        if arguments.predictor == "wu" and not of_wu:
            why_wu = _why_not_bottleneck(measurements, base)
    predictor = create(arguments.predictor)
    if not isinstance(predictor, Savable):
        raise UsageError(
            f"--predictor: '{predictor.name}' exists for studies only and cannot be trained to a "
            "file"
        )
    if others and not isinstance(predictor, PoolsGpus):
        raise UsageError(f"'{predictor.name}' learns from one TABLE at a time")
    own = [name for name in HYPER_PARAMETERS if name in predictor.get_params()]
    others_own = [name for name in HYPER_PARAMETERS if name not in own]
    options.refuse_unused(arguments, others_own, f"with '{predictor.name}'")
    parameters = {**vars(arguments), "features": features}
    model = train(
        measurements,
        base,
        arguments.predictor,
        others=[(other, other.grid.mid) for other in others],
        **{name: parameters[name] for name in own if parameters[name] is not None},
    )
    if arguments.features_of:
        model.card["features_of"] = arguments.features_of
    arguments.base = str(base)
    command = options.command_again(arguments, without=["output"])
    model.card["made_by"] = {"command": command, "versions": _versions()}
    save(model, output)
    print(
        f"{output}: '{arguments.predictor}' for {' and '.join(model.predictors)}, "
        f"{counted(len(model.card['kernels']), 'kernel')} of "
        f"{counted(len(model.card['applications']), 'application')}, "
        f"{counted(model.grid.size, 'configuration')} of {model.device}, base {base}"
    )
    if others:
        print(f"time learnt from {len(others)} more: {', '.join(other.device for other in others)}")
    if why_wu:
        print(f"not 'bottleneck', which gives intervals: {why_wu}")
    with_features = [p for p in model.predictors.values() if isinstance(p, HasFeatures)]
    needs = dict.fromkeys(name for p in with_features for name in p.needs())
    if needs:
        print(f"features that a profile needs ({len(needs)}): {', '.join(needs)}")


def _why_not_bottleneck(measurements: "Measurements", base: "HardwareConfig") -> str | None:
    """What of the GPU or the counters the predictor lacks."""
    from mlscale.counters.kernel_use import kernel_use

    try:
        kernel_use(measurements.profiles(base))
    except InputError as error:
        return str(error)
    return None


def _read(arguments: argparse.Namespace) -> list["Measurements"]:
    """Return each table without what is left out. Raises InputError."""
    from mlscale.data.measurements import read

    paths = [options.input_file(text) for text in arguments.table]
    tables = [read(p, arguments.incomplete, arguments.repetitions) for p in paths]
    unknown = set(arguments.leave_out).difference(*(table.applications for table in tables))
    if unknown:
        where = ", ".join(map(str, paths))
        raise InputError(f"{where}: there is no application '{min(unknown)}' to leave out")
    kept = [
        table.select(
            [k for k, app in enumerate(table.applications) if app not in arguments.leave_out]
        )
        for table in tables
    ]
    if arguments.features_of is None:
        return kept
    from mlscale.profilers import with_obtainable

    return [
        with_obtainable(table, arguments.features_of, str(path))
        for path, table in zip(paths, kept, strict=True)
    ]


def _versions() -> dict[str, str]:
    """Return versions of what makes a model what it is."""
    versions = {"mlscale": __version__, "python": platform.python_version()}
    for package in ("numpy", "scikit-learn", "torch"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
