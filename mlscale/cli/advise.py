"""mlscale advise: the configuration to set for each kernel, from a model and a profile."""

import argparse
import csv
import io
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlscale.advice.advise import COVERAGE, Advice, Choice, Point, advise
from mlscale.advice.objectives import OBJECTIVES
from mlscale.cli import options
from mlscale.cli.advise_next import next_profile_text
from mlscale.cli.limits import add_limits, read_limits
from mlscale.cli.text import columns, number
from mlscale.data.profiles import read_profiles
from mlscale.files import write_text
from mlscale.model import Model
from mlscale.model_file import load

TOGETHER = "all kernels together"
COLUMNS = (
    "kernel",
    "cu_count",
    "engine_mhz",
    "memory_mhz",
    "time_ms",
    "power_w",
    "energy_mj",
    "best",
    "on_front",
    "saving_percent",
    "saving_low_percent",
    "saving_high_percent",
    "slowdown_percent",
    "flags",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    options.add_model_and_profile(parser)
    parser.add_argument(
        "--minimize",
        choices=tuple(OBJECTIVES),
        help="energy; edp: energy x time; ed2p: energy x time^2; time; power (default: energy, "
        "or time where model or profile give no energy)",
    )
    add_limits(parser)
    options.add_also(parser)
    parser.add_argument(
        "--next-profile",
        action="store_true",
        help="instead, where to measure these kernels next, for --also, and how much narrower "
        "the intervals of time would get",
    )
    parser.add_argument(
        "--format", choices=("table", "csv", "json"), default="table", help="(default: %(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there, not to the terminal")


def run(arguments: argparse.Namespace) -> None:
    """Advise and print or write. Raises InputError."""
    limits = read_limits(arguments)
    model = load(options.input_file(arguments.model))
    profiles = read_profiles(options.input_file(arguments.profile), model.base, model.device)
    profiles = options.read_also(arguments.also, profiles, model.grid)
    if arguments.next_profile:
        _write(arguments.output, next_profile_text(model, profiles, arguments.format))
        return
    advice = advise(model, profiles, arguments.minimize, limits, arguments.static_power)
    text = {"table": _as_table, "csv": _as_csv, "json": _as_json}[arguments.format](model, advice)
    if arguments.format == "csv":
        for warning in advice.warnings:
            print(f"mlscale: warning: {warning}", file=sys.stderr)
    _write(arguments.output, text)


def _write(output: str | None, text: str) -> None:
    if output:
        write_text(Path(output), text)
    else:
        sys.stdout.write(text)


def _as_table(model: Model, advice: Advice) -> str:
    choices = [*advice.choices, *([advice.together] if advice.together else [])]
    has_power = choices[0].best.power_w is not None
    has_energy = choices[0].best.energy_mj is not None
    costs = ["time ms", *["power W"] * has_power, *["energy mJ"] * has_energy]
    axes = ["CUs", "engine MHz", "memory MHz"]
    with_range = any(choice.saving_range for choice in choices)
    lines = []
    for choice in choices:
        line = [choice.kernel or TOGETHER, *_cells(choice.best), f"{choice.slowdown_percent:+.1f}"]
        line.append(f"{choice.saving_percent:.1f}")
        if with_range:
            ends = choice.saving_range
            line.append(f"{ends[0]:.1f} to {ends[1]:.1f}" if ends else "")
        lines.append(line)
    headers = ["kernel", *axes, *costs, "time %", "saves %"]
    headers += [f"{100 * COVERAGE:g} % interval"] if with_range else []
    text = f"Least {advice.objective}{advice.limits.under()}:\n{columns(headers, lines)}\n"
    text += f"\nbase {model.base} on {model.device}; time % and saves % are against it\n"
    if any(choice.front for choice in choices):
        points = [
            [choice.kernel or TOGETHER, *_cells(point), _marks(point, choice)]
            for choice in choices
            for point in choice.front
        ]
        text += "\nPareto front of time and energy:\n"
        text += columns(["kernel", *axes, *costs, ""], points) + "\n"
    notes = [f"flag: {choice.kernel}: {flag}\n" for choice in choices for flag in choice.flags]
    notes += [f"warning: {warning}\n" for warning in advice.warnings]
    return text + ("\n" if notes else "") + "".join(notes)


def _cells(point: Point) -> list[str]:
    config = point.config
    costs = [c for c in (point.time_ms, point.power_w, point.energy_mj) if c is not None]
    axes = (config.cu_count, config.engine_mhz, config.memory_mhz)
    return [*(f"{axis:g}" for axis in axes), *(number(cost) for cost in costs)]


def _marks(point: Point, choice: Choice) -> str:
    marks = ["best"] * (point == choice.best) + ["base"] * (point == choice.base)
    return ", ".join(marks)


def _as_csv(_model: Model, advice: Advice) -> str:
    """A row for each kernel's best configuration and for each of its front."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for choice in [*advice.choices, *([advice.together] if advice.together else [])]:
        for point in dict.fromkeys([choice.best, *choice.front]):
            row: dict[str, Any] = {"kernel": choice.kernel or TOGETHER, **_as_dict(point)}
            row |= {"best": int(point == choice.best), "on_front": int(point in choice.front)}
            if point == choice.best:
                row |= _savings(choice)
                row["flags"] = "; ".join(choice.flags)
            writer.writerow(row)
    return text.getvalue()


def _as_json(model: Model, advice: Advice) -> str:
    document = {
        "device": model.device,
        "base": model.base.as_dict(),
        "objective": advice.objective,
        "unit": OBJECTIVES[advice.objective],
        "limits": asdict(advice.limits),
        "static_power_w": advice.static_power_w,
        "coverage": COVERAGE,
        "kernels": [{"kernel": c.kernel, **_choice_as_dict(c)} for c in advice.choices],
        "together": advice.together and _choice_as_dict(advice.together),
        "warnings": list(advice.warnings),
    }
    return json.dumps(document, indent=1) + "\n"


def _choice_as_dict(choice: Choice) -> dict[str, Any]:
    return {
        "best": _as_dict(choice.best),
        "at_base": _as_dict(choice.base),
        **_savings(choice),
        "front": [_as_dict(point) for point in choice.front],
        "flags": list(choice.flags),
    }


def _savings(choice: Choice) -> dict[str, float | None]:
    low, high = choice.saving_range or (None, None)
    return {
        "saving_percent": choice.saving_percent,
        "saving_low_percent": low,
        "saving_high_percent": high,
        "slowdown_percent": choice.slowdown_percent,
    }


def _as_dict(point: Point) -> dict[str, float | None]:
    costs = {"time_ms": point.time_ms, "power_w": point.power_w, "energy_mj": point.energy_mj}
    return {**point.config.as_dict(), **costs}
