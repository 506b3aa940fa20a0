"""mlscale predict: from a model and a profile to time, power and energy everywhere."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__, subject
from mlscale.advice.recommendation import WHOLE_RUN
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import (
    Emphasis,
    Line,
    columns_wide,
    end,
    held_warnings,
    json_text,
    notes_line,
    percent,
    print_or_write,
    print_warnings,
    sentences,
    shown,
    shows_colours,
    si,
    table,
    tell,
)
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.errors import extra_named
from mlscale.files import write_text
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
from mlscale.notes import Note, merged, note_rows, notes_by_kernel
from mlscale.text import counted, share_in_percent, short_names

SCHEMA = 1  # the version of the JSON document
FORMATS = ("table", "csv", "json", "parquet")
SIGNS = {ABOVE_LIMIT: "!", MEASURED: "=", TIME_MEASURED: "t", INTERPOLATED: "~", EXTRAPOLATED: "?"}
SETTINGS = 6  # that are shown where none are asked for
MOST_ROWS = 14
_SHORTEST_NAME = 16  # a kernel's, beside columns that are so wide
_COLUMN_OF_A_SETTING, _OTHER_COLUMNS = 9, 14
_CLOCKS = ("engine MHz", "memory MHz")
_LEAST_SHARE_OF_CLOCK = 0.5  # clocks below this share of the base's show if others are few

Settings = Sequence[HardwareConfig]


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    what = (
        "a setting to predict, e.g. engine=1.2GHz, the rest as at the base; may be given again "
        "(default: all of the grid, of which six are shown; --all shows each)"
    )
    at = options.configuration
    parser.add("--at", action="append", type=at, default=[], metavar="CONFIG", help=what)
    options.add_subject(parser)
    what = (
        "profiles of other kernels of a GPU without training data, at the same base: the most "
        "they reach counts as its peak"
    )
    parser.add_more("--peaks", metavar="PROFILES", help=what)
    what = "by kernel: how much slower each one is at these settings"
    parser.add("--kernels", action="store_true", help=what)
    what = "show every setting or kernel, not only a few"
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
    lines = _answer(predictions, targets, arguments.kernels, arguments.all)
    noted = merged(notes)
    text = shown([*lines, *notes_line(note.code for note in noted)], has_colours)
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
        "lowers its clock, draws less and takes longer than shown"
    )
    return [Note("P03", warning, "warning")]


def _answer(
    predictions: Predictions, targets: Settings | None, by_kernel: bool, shows_all: bool
) -> list[Line]:
    """The answer, line by line.

    targets: the settings that are asked for. by_kernel: what each kernel takes longer there.
    shows_all: every setting, or kernel, not a few.
    """
    base = predictions.base
    asked = targets or [*predictions.grid]
    if targets or shows_all:
        settings = asked if shows_all else asked[: MOST_ROWS - 1]
        further = "All settings: without --at." if targets else ""
        if more := len(asked) - len(settings):
            further = f"{counted(more, 'more setting')}: --all. {further}"
    else:
        settings = _chosen(asked, base)
        axis, one = _varying(settings)[0], settings[len(settings) // 2]
        name = one.cu_axis if axis == AXES[0] and one.cu_axis else SHORT_NAMES[axis]
        further = f"{counted(len(asked), 'setting')} in all: --all, or -o all.csv. "
        further += f"One: --at {name}={getattr(one, axis):g}."
    settings = [base, *(one for one in settings if one != base)]
    if by_kernel or "time" not in predictions:  # a model of power alone
        body = _by_kernel(predictions, settings, shows_all)
    else:
        body = _whole_run(predictions, settings)
        further += " By kernel: --kernels."
    heading = sentences(_subject(predictions), "bold")
    return [*heading, Line(), *body, Line(), *sentences(further, "dim")]


def _subject(predictions: Predictions) -> str:
    """Whose prediction it is, and from where."""
    profiles, base = predictions.profiles, predictions.base
    who = counted(len(profiles.kernels), "kernel")
    if len(profiles.kernels) == 1:
        who = short_names(profiles.kernels)[profiles.kernels[0]]
    elif profiles.launches is None:
        who += ", each counted once,"
    cus = f"{base.cu_count} {base.cu_axis or 'CUs'}, " * (len(predictions.grid.cu_count) > 1)
    taken = f": {si(float(profiles.run_times_ms.sum()) / 1e3, 's')}" * ("time" in predictions)
    at = f"{cus}{base.engine_mhz:g} / {base.memory_mhz:g} MHz"
    gpus = f"{profiles.gpu_count} x " * (profiles.gpu_count > 1)
    return f"{who} on {gpus}{predictions.device}, measured at {at}{taken}"


def _chosen(settings: Settings, base: HardwareConfig) -> Settings:
    """The base and settings spread evenly along one axis, highest first, the rest as at the base.

    The axis is the engine clock, if it has other steps; what is below half of the base is left out
    where there are enough others.
    """
    for axis in ("engine_mhz", "cu_count", "memory_mhz"):
        others = [name for name in AXES if name != axis]
        along = [
            one for one in settings if all(getattr(one, o) == getattr(base, o) for o in others)
        ]
        if len(along) > 1:
            break
    along = sorted({*along, base}, key=lambda one: (*one.as_dict().values(),), reverse=True)
    least = _LEAST_SHARE_OF_CLOCK * getattr(base, axis)
    near = [one for one in along if getattr(one, axis) >= least]
    along = near if len(near) >= SETTINGS else along
    places = {round(place) for place in np.linspace(0, len(along) - 1, SETTINGS).tolist()}
    at_base = along.index(base)
    nearest = min(places, key=lambda place: abs(place - at_base))
    return [along[place] for place in sorted(places - {nearest} | {at_base})]


def _varying(settings: Settings) -> list[str]:
    """The axes along which settings differ; the engine clock if there is none."""
    varying = [axis for axis in AXES if len({getattr(one, axis) for one in settings}) > 1]
    return varying or ["engine_mhz"]


def _axis_names(predictions: Predictions) -> dict[str, str]:
    """What the settings are called in a table."""
    return dict(zip(AXES, (predictions.base.cu_axis or "CUs", *_CLOCKS), strict=True))


def _whole_run(predictions: Predictions, settings: Settings) -> list[Line]:
    """A row for each setting, and what the signs in the rows mean."""
    run, profiles = predictions.whole_run(settings), predictions.profiles
    axes = _varying(settings)
    names = _axis_names(predictions)
    marks = [flags.split("; ") for flags in run["flags"].tolist()]
    slower = 100 * (run["time_factor"] - 1)
    base_ms = float(profiles.run_times_ms.sum())
    ends = [100 * (run[f"time_ms_{which}"] / base_ms - 1) for which in ("low", "high")]
    energy = 100 * (run["time_factor"] * run["power_factor"] - 1)
    rows = []
    meanings: list[Emphasis | None] = []
    for place, setting in enumerate(settings):
        at_base = place == 0
        low, high = (end(float(values[place])) for values in ends)
        base_energy = si(float(run["energy_mj"][place]) / 1e3, "J") if at_base else ""
        rows.append([
            *(f"{getattr(setting, axis):g}" for axis in axes),
            si(float(run["time_ms"][place]) / 1e3, "s"),
            "base" if at_base else percent(float(slower[place])),
            f"{low} to {high} %" if low and high and not at_base else "",
            si(float(run["power_w"][place]), "W").removeprefix("-"),
            base_energy.removeprefix("-") or percent(float(energy[place])),
            "".join(sign for mark, sign in SIGNS.items() if mark in marks[place]),
        ])  # fmt: skip
        meanings.append("over" if ABOVE_LIMIT in marks[place] else "bold" if at_base else None)
    time = WHOLE_RUN if len(profiles.kernels) > 1 and profiles.launches is not None else "time"
    headings = [
        *(names[axis] for axis in axes),
        time,
        "slower",
        "90 % interval",
        "power",
        "energy",
        "",
    ]
    most = max(float(np.nanmax(slower)), 1e-9)
    shares = np.nan_to_num(slower / most).clip(0).tolist()
    lines = table(headings, rows, shares, meanings)
    used = [f"{sign} {mark}" for mark, sign in SIGNS.items() if any(mark in row for row in marks)]
    return [*lines, *([Line(",  ".join(used))] if used else [])]


def _by_kernel(predictions: Predictions, settings: Settings, shows_all: bool) -> list[Line]:
    """A row for each kernel, those of the largest share of the run first: how much slower it is.

    Of a model of power alone, the change of its power.
    """
    quantity = "time" if "time" in predictions else "power"
    axes = _varying(settings)
    settings = settings[1:SETTINGS] or settings
    kernels, times = predictions.profiles.kernels, predictions.profiles.run_times_ms
    factors = predictions.columns(settings)[f"{quantity}_factor"].reshape(-1, len(settings))
    room = columns_wide() - _OTHER_COLUMNS - _COLUMN_OF_A_SETTING * len(settings)
    shown = short_names(kernels, max(room, _SHORTEST_NAME))
    places = np.argsort(-times, kind="stable").tolist()[: None if shows_all else MOST_ROWS]
    rows = []
    for number, k in enumerate(places, start=1):
        share = f"{share_in_percent(float(times[k] / times.sum()))} %" * (quantity == "time")
        changes = (percent(100 * (one - 1)) for one in factors[k].tolist())
        rows.append([str(number), shown[kernels[k]], share, *changes])
    if quantity == "time":
        whole = predictions.whole_run(settings)["time_factor"].tolist()
        rows.append(["", WHOLE_RUN, "", *(percent(100 * (one - 1)) for one in whole)])
    at = [" / ".join(f"{getattr(one, axis):g}" for axis in axes) for one in settings]
    meanings: list[Emphasis | None] = ["bold" if row[1] == WHOLE_RUN else None for row in rows]
    lines = table(["", "kernel", "share", *at], rows, (), meanings)
    names = _axis_names(predictions)
    told = f"Changes of {quantity} from the base, at {' / '.join(names[axis] for axis in axes)}."
    if more := len(kernels) - len(places):
        told += f" {counted(more, 'more kernel')}: --all."
    return [*lines, *sentences(told)]
