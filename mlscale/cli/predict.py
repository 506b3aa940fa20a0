"""mlscale predict: from a model and a profile to time, power and energy everywhere."""

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from mlscale.cli import options, untrained
from mlscale.cli.text import columns, number
from mlscale.data.profiles import read_profiles
from mlscale.files import write_text
from mlscale.model import Model
from mlscale.model_file import load
from mlscale.predictions import COLUMNS, COVERAGE

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    options.add_model_and_profile(parser)
    parser.add_argument(
        "--at",
        action="append",
        metavar="CONFIG",
        help="predict there only, e.g. cu=16,engine=800,memory=925 (may be given again; "
        "default: every configuration of the grid)",
    )
    options.add_also(parser)
    untrained.add_arguments(parser)
    parser.add_argument(
        "--format", choices=("table", "csv", "json"), default="table", help="(default: %(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there, not to the terminal")


def run(arguments: argparse.Namespace) -> None:
    """Predict and print or write. Raises InputError."""
    model = load(options.input_file(arguments.model))
    if untrained.asked(arguments):
        model, profiles, targets = untrained.read(arguments, model)
    else:
        profiles = read_profiles(options.input_file(arguments.profile), model.base, model.device)
        targets = [model.grid.parse(text) for text in arguments.at or ()]
    profiles = options.read_also(arguments.also, profiles, model.grid)
    predictions = model.predict(profiles, COVERAGE)
    rows, warnings = predictions.rows(targets or None), list(predictions.warnings)
    text = {"table": _as_table, "csv": _as_csv, "json": _as_json}[arguments.format](
        model, rows, warnings
    )
    if arguments.format == "csv":
        for warning in warnings:
            print(f"mlscale: warning: {warning}", file=sys.stderr)
    if arguments.output:
        write_text(Path(arguments.output), text)
    else:
        sys.stdout.write(text)


def _as_table(model: Model, rows: list[Row], warnings: list[str]) -> str:
    given = {name for row in rows for name in row if row[name] is not None}
    groups = [("time ms", "time_ms", "time_factor"), ("power W", "power_w", "power_factor")]
    headers = ["kernel", "CUs", "engine MHz", "memory MHz"]
    for heading, name, _ in groups:
        if name in given:
            headers += [heading, "x base"]
            headers += [f"{COVERAGE:.0%} from", "to"] if f"{name}_low" in given else []
    headers += ["energy mJ"] if "energy_mj" in given else []
    lines = []
    for row in rows:
        cells = [row["kernel"], *(f"{row[a]:g}" for a in ("cu_count", "engine_mhz", "memory_mhz"))]
        for _, name, factor in groups:
            if name in given:
                cells += [number(row[name]), number(row[factor], 3)]
                if f"{name}_low" in given:
                    cells += [number(row[f"{name}_low"]), number(row[f"{name}_high"])]
        cells += [number(row["energy_mj"])] if "energy_mj" in given else []
        lines.append([*cells, "interpolated" if "interpolated" in row["flags"] else ""])
    text = columns([*headers, ""], lines)
    text += f"\n\nbase {model.base} on {model.device}; factors are relative to it\n"
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        flags = next(row["flags"] for row in rows if row["kernel"] == kernel)
        for flag in flags:
            if flag != "interpolated":
                text += f"flag: {kernel}: {flag}\n"
    return text + "".join(f"warning: {warning}\n" for warning in warnings)


def _as_csv(_model: Model, rows: list[Row], _warnings: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "flags": "; ".join(row["flags"])} for row in rows)
    return text.getvalue()


def _as_json(model: Model, rows: list[Row], warnings: list[str]) -> str:
    document = {"base": model.base.as_dict(), "predictions": rows, "warnings": warnings}
    return json.dumps(document, indent=1) + "\n"
