"""mlscale predict: from a model and a profile to time, power and energy everywhere."""

import argparse
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__, subject
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.predict_text import SIGNS, answer
from mlscale.cli.terminal import notes_line, shown, shows_colours
from mlscale.cli.text import held_warnings, json_text, print_or_write, print_warnings, tell
from mlscale.data.grid import HardwareConfig
from mlscale.errors import extra_named
from mlscale.files import write_text
from mlscale.model.model import warnings_for
from mlscale.model.prediction_table import csv_parts, write_csv, write_parquet
from mlscale.model.predictions import ABOVE_LIMIT, COVERAGE, Predictions
from mlscale.notes import Note, note_rows, notes_by_kernel

SCHEMA = 1  # of the JSON document
FORMATS = ("table", "csv", "json", "parquet")


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    what = (
        "a setting to predict, e.g. engine=1.2GHz, the rest as at the base; may be given again "
        "(default: every one of the grid)"
    )
    at = options.configuration
    parser.add("--at", action="append", type=at, default=[], metavar="CONFIG", help=what)
    options.add_subject(parser)
    what = (
        "profiles of other kernels of a GPU without training data, at the same base: what they "
        "reach counts as its peak"
    )
    parser.add_more("--peaks", metavar="PROFILES", help=what)
    what = "by kernel: how much slower each one is at these settings"
    parser.add("--kernels", action="store_true", help=what)
    what = "show every setting, or kernel, not a few"
    parser.add("--all", action="store_true", help=what)
    outputs.add_output_of_format(parser, FORMATS)
    outputs.add_notes(parser)
    outputs.add_colours(parser)
    options.add_fleet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict and print or write. Raises InputError."""
    if options.is_of_fleet(arguments):
        with extra_named("a fleet", "study"):
            from mlscale.cli import fleet
        fleet.predict(arguments)
        return
    form = outputs.format_of_output(arguments, FORMATS)
    with held_warnings() as told:
        found = subject.read(options.asked_run(arguments, at=arguments.at, peaks=arguments.peaks))
    model, profiles, targets = found.model, found.profiles, list(found.targets) or None
    if form in ("csv", "parquet"):
        if arguments.output is None:
            print_or_write(b"".join(csv_parts(model, profiles, targets)).decode(), None)
        else:
            write = write_csv if form == "csv" else write_parquet
            write(model, profiles, targets, Path(arguments.output))
        print_warnings([*told, *found.notes, *warnings_for(model, profiles)])
        return
    predictions = model.predict(profiles, COVERAGE)
    predictions = replace(predictions, warnings=(*found.notes, *predictions.warnings))
    notes = [*told, *_notes(predictions, targets)]
    if form == "json":
        name = found.model_name.removesuffix(".mlscale")
        text = _as_json(predictions, targets, name, notes)
        print_or_write(text, arguments.output)
        return
    has_colours = arguments.output is None and shows_colours(arguments.color)
    lines = answer(predictions, targets, arguments.kernels, arguments.all)
    noted = note_rows(notes)
    text = shown([*lines, *notes_line(note["code"] for note in noted)], has_colours)
    if arguments.output:
        write_text(Path(arguments.output), text)
    else:
        print(text, end="")
    tell(noted, arguments.notes)


def _as_json(
    predictions: Predictions,
    targets: list[HardwareConfig] | None,
    model_name: str,
    notes: Iterable[Note],
) -> str:
    rows = predictions.rows(targets)
    for row in rows:
        row["flags"] = [flag for flag in row["flags"] if flag in SIGNS]
    document = {
        "schema": SCHEMA,
        "mlscale": __version__,
        "model": model_name,
        "device": predictions.device,
        "gpu_count": predictions.profiles.gpu_count,
        "base": predictions.base.as_dict(),
        "predictions": rows,
        "whole_run": _run_rows(predictions, targets),
        "notes": note_rows(notes),
    }
    return json_text(document)


def _notes(predictions: Predictions, targets: list[HardwareConfig] | None) -> list[Note]:
    """What a reader should know, each once: of all kernels, then of some."""
    above = _limit_warning(predictions, predictions.whole_run(targets)["flags"].tolist())
    flags = dict(zip(predictions.profiles.kernels, predictions.flags, strict=True))
    return [*predictions.warnings, *above, *notes_by_kernel(flags)]


def _run_rows(
    predictions: Predictions, targets: list[HardwareConfig] | None
) -> list[dict[str, Any]]:
    """The whole run at each target, with marks as lists; none of a single kernel."""
    profiles = predictions.profiles
    if profiles.launches is None or len(profiles.kernels) == 1:
        return []
    run = predictions.whole_run(targets)
    rows = [dict(zip(run, row, strict=True)) for row in zip(*run.values(), strict=True)]
    return [{name: _json_value(value) for name, value in row.items()} for row in rows]


def _json_value(value: Any) -> Any:
    """A number, None for NaN; marks as a list."""
    if isinstance(value, str):
        return list(filter(None, value.split("; ")))
    return None if np.isnan(value) else value.item()


def _limit_warning(predictions: Predictions, flags: Iterable[Collection[str]]) -> list[Note]:
    """What a GPU does where the rows with these flags are of more power than its board supplies."""
    if not any(ABOVE_LIMIT in row for row in flags):
        return []
    warning = (
        f"rows marked '{ABOVE_LIMIT}' exceed {predictions.supply.most_in_words}: there the GPU "
        "lowers its clock, draws less and takes longer than they say"
    )
    return [Note("P03", warning, "warning")]
