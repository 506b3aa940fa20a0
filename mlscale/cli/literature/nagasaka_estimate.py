"""mlscale literature nagasaka-estimate: the power of kernels by a model of nagasaka-fit."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli import options, outputs
from mlscale.cli.text import columns, csv_text, flag_lines, kernel_names, or_dash, print_document
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles, profiles_at
from mlscale.data.table_files import is_tidy, read_table
from mlscale.errors import InputError
from mlscale.files import write_text
from mlscale.papers.nagasaka_model import FittedPowerModel
from mlscale.text import number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="what 'literature nagasaka-fit' wrote")
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        help="table or profiler's export of kernels at the model's GPU and configuration; power_w "
        "is not needed, and is compared where it is there",
    )
    outputs.add_json(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write too")


def run(arguments: argparse.Namespace) -> None:
    """Estimate, print and write. Raises InputError."""
    output = outputs.output_file(arguments.output) if arguments.output else None
    model = FittedPowerModel.load(options.input_file(arguments.model))
    path = options.input_file(arguments.profile)
    profiles = _profiles(path, model)
    try:
        document = model.estimates_document(profiles)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if output is not None:
        rows = [{**row, "flags": "; ".join(row["flags"])} for row in document["estimates"]]
        write_text(output, csv_text(rows))
    print_document(document, arguments.json, _text)


def _profiles(path: Path, model: FittedPowerModel) -> Profiles:
    """The kernels at the model's configuration. Raises InputError."""
    if is_tidy(path):
        return profiles_at(read_table(path), model.base, model.device)
    from mlscale.profilers import import_profile

    return import_profile(path, device=model.device, base=model.base.as_dict())


def _text(document: dict[str, Any]) -> str:
    rows = document["estimates"]
    shown = kernel_names(row["kernel"] for row in rows)
    lines = [
        [
            shown[row["kernel"]],
            number(row["time_ms"]),
            f"{row['estimated_w']:.1f}",
            or_dash(row["actual_w"], ".1f"),
            number(row["energy_mj"]),
        ]
        for row in rows
    ]
    headers = ["kernel", "time ms", "estimated W", "measured W", "energy mJ"]
    head = (
        f"{document['counters']} on {document['device']}, base {HardwareConfig(**document['base'])}"
        f"; in training, held-out kernels erred by {document['held_out_mape']:.1f} %"
    )
    notes = flag_lines({row["kernel"]: row["flags"] for row in rows})
    if document["mape"] is not None:
        notes.append(f"mean error of the measured: {document['mape']:.1f} %")
    return f"{head}\n{columns(headers, lines)}\n{''.join(notes)}".rstrip()
