"""mlscale study: errors of predictors on tables of measurements, and the studies of Wu et al."""

import argparse
from collections.abc import Sequence
from typing import Any

from mlscale.cli import goal, options
from mlscale.cli.study import advice, errors, extrapolation, next_profile, of_wu, wu2015
from mlscale.cli.study.run import carry_out
from mlscale.cli.text import print_document
from mlscale.data.measurements import Measurements
from mlscale.studies.study import plan, settings_of

MODULES = {
    name: module
    for module in (errors, wu2015, of_wu, advice, next_profile, extrapolation)
    for name in module.SUMMARIES
}

OF_PREDICTORS = ("loss", "log_ratios", "counters")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each study, with the options of that study."""
    studies = parser.add_subparsers(dest="study", required=True, metavar="STUDY")
    for name, module in MODULES.items():
        summary = module.SUMMARIES[name]
        description = f"{summary[0].upper()}{summary[1:]}."
        study = studies.add_parser(name, help=summary, description=description)
        module.add_arguments(study, name)


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print or write its figures. Raises InputError."""
    module = MODULES[arguments.study]
    tables = _read_tables(arguments.table, arguments)
    study = plan(arguments.study, tables, **_settings(arguments))
    document, written = carry_out(study, arguments, getattr(module, "draw", None))
    print_document(document, arguments.json, module.as_text)
    if arguments.json:
        return
    if module is errors and not arguments.predictors:
        print("".join(f"\n{note}\n" for note in errors.notes(study)), end="")
    if written:
        print(f"\nWritten: {', '.join(map(str, written))}")


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the study is planned with: the options that are its own. Raises InputError."""
    settings = vars(arguments)
    given = {name: settings[name] for name in OF_PREDICTORS if settings.get(name)}
    if given:
        settings = {**settings, "predictors": _with_parameters(arguments, given)}
    if "max_power" in settings:
        static = {"static_power_w": arguments.static_power}
        settings = {**settings, "limits": goal.read_limits(arguments), **static}
    if settings.get("train_on"):
        settings = {**settings, "train_on": _read_tables(arguments.train_on, arguments)}
    return {name: value for name, value in settings.items() if name in settings_of(arguments.study)}


def _with_parameters(arguments: argparse.Namespace, given: dict[str, Any]) -> list[Any]:
    """Return the predictors with the hyper-parameters that some of them take. InputError."""
    from mlscale.predictors import DEFAULT, create

    asked = getattr(arguments, "predictors", None) or ["wu"]
    predictors: list[Any] = []
    for one in [asked] if isinstance(asked, str) else asked:
        known = {} if one == DEFAULT else create(one).get_params()
        own = {name: value for name, value in given.items() if name in known}
        predictors.append(create(one, **own) if own else one)
    return predictors


def _read_tables(texts: Sequence[str], arguments: argparse.Namespace) -> dict[str, Measurements]:
    """Return each table by the stem of its name. Raises InputError."""
    tables = options.read_tables(arguments, texts)
    return {path.stem: data for path, data in tables.items()}
