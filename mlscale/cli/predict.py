"""mlscale predict: from a model and a profile to time, power and energy everywhere."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.advice.recommendation import WHOLE_RUN
from mlscale.cli import options, outputs, subject
from mlscale.cli.brief import SPELLED_OUT, notes_line
from mlscale.cli.parser import Parser
from mlscale.cli.predict_text import brief
from mlscale.cli.terminal import shows_colours
from mlscale.cli.text import (
    axis_headings,
    columns,
    flag_lines,
    json_text,
    kept_warnings,
    kernel_names,
    print_or_write,
    print_warnings,
    warning_lines,
)
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.errors import extra_named
from mlscale.model.model import warnings_for
from mlscale.model.prediction_table import csv_parts, write_csv, write_parquet
from mlscale.model.predictions import (
    ABOVE_LIMIT,
    COVERAGE,
    EXTRAPOLATED,
    INTERPOLATED,
    MEASURED,
    TIME_MEASURED,
    Predictions,
)
from mlscale.notes import Note, note_rows, notes_by_kernel
from mlscale.text import number

SCHEMA = 1  # of the JSON document
FORMATS = ("table", "csv", "json", "parquet")
FROM = f"{COVERAGE:.0%} from"
TABLE = (  # heading, column, significant digits
    ("time ms", "time_ms", 4),
    ("x base", "time_factor", 3),
    (FROM, "time_ms_low", 4),
    ("to", "time_ms_high", 4),
    ("power W", "power_w", 4),
    ("x base", "power_factor", 3),
    (FROM, "power_w_low", 4),
    ("to", "power_w_high", 4),
    ("energy mJ", "energy_mj", 4),
)
MARKS = (ABOVE_LIMIT, MEASURED, TIME_MEASURED, INTERPOLATED, EXTRAPOLATED)


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
        "reach is taken for its peak"
    )
    parser.add_more("--peaks", metavar="PROFILES", help=what)
    what = "by kernel: how much slower each one is at these settings"
    parser.add("--kernels", action="store_true", help=what)
    what = "print every kernel at every setting, with all notes"
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
    with kept_warnings() as told:
        found = subject.read(subject.asked(arguments, at=arguments.at, peaks=arguments.peaks))
    model, profiles, targets = found.model, found.profiles, list(found.targets) or None
    if form in ("csv", "parquet"):
        if arguments.output is None:
            print_or_write(b"".join(csv_parts(model, profiles, targets)).decode(), None)
        else:
            write = write_csv if form == "csv" else write_parquet
            write(model, profiles, targets, Path(arguments.output))
        print_warnings([*found.notes, *warnings_for(model, profiles)])
        return
    predictions = model.predict(profiles, COVERAGE)
    predictions = replace(predictions, warnings=(*found.notes, *predictions.warnings))
    if form == "json":
        name = found.model_name.removesuffix(".mlscale")
        text = _as_json(predictions, targets, name, _notes(predictions, targets, told))
        print_or_write(text, arguments.output)
    elif arguments.output or arguments.all:
        print_or_write(_as_table(predictions, targets), arguments.output)
    else:
        asked = brief(predictions, targets, arguments.kernels, shows_colours(arguments.color))
        print("\n".join([*asked, *notes_line(_notes(predictions, targets, told))]))
        notes = _notes(predictions, targets)
        print_warnings(notes if arguments.notes else notes[:SPELLED_OUT])


def _as_table(predictions: Predictions, targets: list[HardwareConfig] | None) -> str:
    rows = predictions.columns(targets)
    if _is_run(predictions):
        run = predictions.whole_run(targets)
        run["kernel"] = np.full(len(run["time_ms"]), WHOLE_RUN, dtype=object)
        rows = {name: np.concatenate([values, run[name]]) for name, values in rows.items()}
    axes = [[f"{value:g}" for value in rows[axis].tolist()] for axis in AXES]
    shown = [column for column in TABLE if not np.isnan(rows[column[1]]).all()]
    cells = [[number(value, digits) for value in rows[name].tolist()] for _, name, digits in shown]
    flags = [text.split("; ")[: len(MARKS)] for text in rows["flags"].tolist()]
    marks = [", ".join(flag for flag in row if flag in MARKS) for row in flags]
    headers = ["kernel", *axis_headings(predictions.base), *(heading for heading, _, _ in shown)]
    shown_names = {**kernel_names(predictions.profiles.kernels), WHOLE_RUN: WHOLE_RUN}
    names = [shown_names[kernel] for kernel in rows["kernel"].tolist()]
    lines = list(zip(names, *axes, *cells, marks, strict=True))
    text = columns([*headers, ""], lines)
    base, device = predictions.base, predictions.device
    text += f"\n\nbase {base} on {device}; factors are relative to it\n"
    by_kernel = zip(predictions.profiles.kernels, predictions.flags, strict=True)
    text += "".join(flag_lines(dict(by_kernel)))
    warnings = (*predictions.warnings, *_limit_warning(predictions, flags))
    return text + "".join(warning_lines(warnings))


def _is_run(predictions: Predictions) -> bool:
    """Whether there is a run of several kernels to sum up."""
    profiles = predictions.profiles
    return profiles.launches is not None and len(profiles.kernels) > 1


def _as_json(
    predictions: Predictions,
    targets: list[HardwareConfig] | None,
    model_name: str,
    notes: Iterable[Note],
) -> str:
    rows = predictions.rows(targets)
    for row in rows:
        row["flags"] = [flag for flag in row["flags"] if flag in MARKS]
    document = {
        "schema": SCHEMA,
        "mlscale": __version__,
        "model": model_name,
        "device": predictions.device,
        "base": predictions.base.as_dict(),
        "predictions": rows,
        "whole_run": _run_rows(predictions, targets),
        "notes": note_rows(notes),
    }
    return json_text(document)


def _notes(
    predictions: Predictions, targets: list[HardwareConfig] | None, told: Sequence[Note] = ()
) -> list[Note]:
    """What a reader should know, each once: of all kernels, then of some. told: by the files."""
    above = _limit_warning(predictions, predictions.whole_run(targets)["flags"].tolist())
    flags = dict(zip(predictions.profiles.kernels, predictions.flags, strict=True))
    return [*told, *predictions.warnings, *above, *notes_by_kernel(flags)]


def _run_rows(
    predictions: Predictions, targets: list[HardwareConfig] | None
) -> list[dict[str, Any]]:
    """The whole run at each target, with marks as lists; none of a single kernel."""
    if not _is_run(predictions):
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
        f"rows marked '{ABOVE_LIMIT}' are of more than {predictions.supply.most_in_words}: there "
        "the GPU lowers its clock, draws less and takes longer than they say"
    )
    return [Note("P03", warning, "warning")]
