"""mlscale literature nagasaka-estimate: the power of kernels by a model of nagasaka-fit."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.cli import options
from mlscale.cli.text import columns, flag_lines, kernel_names, number
from mlscale.data.profiles import Profiles, profiles_at
from mlscale.data.surfaces import absolute_percentage_error
from mlscale.data.tables import is_tidy, read_table
from mlscale.errors import InputError
from mlscale.files import write_text
from mlscale.papers.nagasaka_model import FittedPowerModel
from mlscale.text import spreadsheet_cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="what 'literature nagasaka-fit' wrote")
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        help="table or profiler's export of kernels at the model's GPU and configuration; power_w "
        "is compared where it is there, and not needed",
    )
    options.add_json(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write too")


def run(arguments: argparse.Namespace) -> None:
    """Estimate, print and write. Raises InputError."""
    output = options.output_file(arguments.output) if arguments.output else None
    model = FittedPowerModel.load(options.input_file(arguments.model))
    path = options.input_file(arguments.profile)
    profiles = _profiles(path, model)
    try:
        estimates = model.estimate(profiles)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    document = _document(model, profiles, estimates.estimated_w.tolist(), estimates.flags)
    if output is not None:
        write_text(output, _csv(document["estimates"]))
    print(json.dumps(document, indent=1) if arguments.json else _text(document))


def _profiles(path: Path, model: FittedPowerModel) -> Profiles:
    """The kernels at the model's configuration. Raises InputError."""
    if is_tidy(path):
        return profiles_at(read_table(path), model.base, model.device)
    from mlscale.profilers import import_profile

    return import_profile(path, device=model.device, base=model.base.as_dict())


def _document(
    model: FittedPowerModel,
    profiles: Profiles,
    estimated_w: list[float],
    flags: tuple[tuple[str, ...], ...],
) -> dict[str, Any]:
    """Return the estimates as JSON values; of a kernel that was measured its power and error."""
    actual = profiles.power_w
    rows: list[dict[str, Any]] = []
    for k, kernel in enumerate(profiles.kernels):
        time_ms = float(profiles.time_ms[k])
        row: dict[str, Any] = {
            "kernel": kernel,
            "time_ms": time_ms,
            "estimated_w": estimated_w[k],
            "energy_mj": estimated_w[k] * time_ms,
        }
        if actual is not None and np.isfinite(actual[k]):
            row["actual_w"] = float(actual[k])
        rows.append({**row, "flags": list(flags[k])})
    measured = [row for row in rows if "actual_w" in row]
    errors = [
        float(absolute_percentage_error(np.array(row["estimated_w"]), np.array(row["actual_w"])))
        for row in measured
    ]
    return {
        "literature": "nagasaka-estimate",
        "device": model.device,
        "base": model.base.as_dict(),
        "counters": model.counters,
        "held_out_mape": model.mape,
        "estimates": rows,
        **({"mape": float(np.mean(errors))} if errors else {}),
    }


def _text(document: dict[str, Any]) -> str:
    rows = document["estimates"]
    shown = kernel_names(row["kernel"] for row in rows)
    lines = [
        [
            shown[row["kernel"]],
            number(row["time_ms"]),
            f"{row['estimated_w']:.1f}",
            f"{row['actual_w']:.1f}" if "actual_w" in row else "-",
            number(row["energy_mj"]),
        ]
        for row in rows
    ]
    headers = ["kernel", "time ms", "estimated W", "measured W", "energy mJ"]
    base = ",".join(f"{axis.split('_')[0]}={v:g}" for axis, v in document["base"].items())
    return (
        f"{document['counters']} on {document['device']}, base {base}; in training, held-out "
        f"kernels erred by {document['held_out_mape']:.1f} %\n{columns(headers, lines)}\n"
        + "".join(flag_lines({row["kernel"]: row["flags"] for row in rows}))
        + (f"mean error of the measured: {document['mape']:.1f} %" if "mape" in document else "")
    ).rstrip()


def _csv(rows: list[dict[str, Any]]) -> str:
    import pandas as pd

    table = pd.DataFrame([{**row, "flags": "; ".join(row["flags"])} for row in rows])
    return str(table.map(spreadsheet_cell).to_csv(index=False, lineterminator="\n"))
