"""mlscale predict: from a model and a profile to time, power and energy everywhere."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from mlscale.cli import options
from mlscale.cli.prediction_table import write_csv, write_parquet
from mlscale.cli.text import columns, number, print_or_write
from mlscale.counters.kernel_use import device_with_peaks
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, parse_settings
from mlscale.data.profiles import profiles_at
from mlscale.data.tables import Table, read_table
from mlscale.errors import InputError, UsageError
from mlscale.model import Model, warnings_for
from mlscale.predictions import COVERAGE, INTERPOLATED, Predictions

FORMATS = ("table", "csv", "json", "parquet")
INTERVAL = f"{COVERAGE:.0%} from"
TABLE = (  # heading, column, significant digits
    ("time ms", "time_ms", 4),
    ("x base", "time_factor", 3),
    (INTERVAL, "time_ms_low", 4),
    ("to", "time_ms_high", 4),
    ("power W", "power_w", 4),
    ("x base", "power_factor", 3),
    (INTERVAL, "power_w_low", 4),
    ("to", "power_w_high", 4),
    ("energy mJ", "energy_mj", 4),
)
WRITERS = {"csv": write_csv, "parquet": write_parquet}
SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_and_profile(parser)
    parser.add_argument(
        "--at",
        action="append",
        type=options.configuration,
        default=[],
        metavar="CONFIG",
        help="predict there only, e.g. cu=16,engine=800,memory=925 (may be given again; "
        "default: every configuration of the grid)",
    )
    options.add_also(parser)
    group = parser.add_argument_group("a GPU that the model has no training data of (time alone)")
    group.add_argument(
        "--device",
        type=options.device_key,
        metavar="DEVICE",
        help="the GPU of PROFILE, a name of 'devices list' or a device file; --at says where to "
        "predict",
    )
    group.add_argument(
        "--base",
        type=options.configuration,
        metavar="CONFIG",
        help="where PROFILE was taken (default: the one configuration that it holds)",
    )
    group.add_argument(
        "--peaks",
        metavar="PROFILES",
        help="profiles of other kernels of that GPU at the same base, best with some that are "
        "bound by memory: what they reach is taken for its peak (default: what the kernels of "
        "the trained GPUs reach of theirs)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="(default: by the name of FILE: *.csv, *.json, *.parquet; else table)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there, not to the terminal")


def run(arguments: argparse.Namespace) -> None:
    """Predict and print or write. Raises InputError."""
    form = arguments.format or _format_by_name(arguments.output)
    if form == "parquet" and arguments.output is None:
        raise UsageError("--format parquet is not for a terminal; name a file with -o FILE")
    if not arguments.device:
        options.refuse_unused(arguments, ("base", "peaks"), "without --device")
    elif not arguments.at:
        raise UsageError("--device needs --at: the model has no grid of that GPU")
    model = options.load_model(arguments)
    table = read_table(options.input_file(arguments.profile))
    if arguments.device:
        model, targets = _for_device(arguments, model, table)
    else:
        targets = [model.grid.parse(text) for text in arguments.at]
    profiles = profiles_at(table, model.base, model.device)
    profiles = options.read_also(arguments.also, profiles, model.grid)
    if form in WRITERS:
        WRITERS[form](model, profiles, targets or None, arguments.output)
        for warning in warnings_for(model, profiles):
            print(f"mlscale: warning: {warning}", file=sys.stderr)
    else:
        predictions = model.predict(profiles, COVERAGE)
        text = {"table": _as_table, "json": _as_json}[form](predictions, targets or None)
        print_or_write(text, arguments.output)


def _format_by_name(output: str | None) -> str:
    return SUFFIXES.get(Path(output or "").suffix.lower(), "table")


def _for_device(
    arguments: argparse.Namespace, model: Model, table: Table
) -> tuple[Model, list[HardwareConfig]]:
    """Return the model for a GPU it was not trained on, and where to predict. Raises InputError."""
    device: str = arguments.device
    device_with_peaks(device)
    base = _config(arguments.base, device) if arguments.base else _only_config(table)
    if (device, base) == (model.device, model.base):
        raise UsageError(f"the model is of {device} at {base} itself; leave out --device")
    peaks = None
    _require_device(table, device)
    if arguments.peaks:
        others = read_table(options.input_file(arguments.peaks))
        _require_device(others, device)
        peaks = profiles_at(others, base, device)
    targets = [_config(text, device, base.cu_count) for text in arguments.at]
    grid = ConfigGrid.spanning([base, *targets])
    return model.for_gpu(device, grid, base, peaks), targets


def _require_device(table: Table, device: str) -> None:
    for other in table.text.get("device", []):
        if other != device:
            raise InputError(f"{table.source}: is of device '{other}', --device says '{device}'")


def _config(text: str, device: str, cu_count: int | None = None) -> HardwareConfig:
    """Read a configuration; without cu it has that count, by default all of the device's."""
    most = device_with_peaks(device).cu_count
    settings = {"cu_count": float(cu_count or most)} | parse_settings(text)
    if settings["cu_count"] > most:
        raise UsageError(f"'{text}': {device} has {most} compute units")
    if lacking := [axis for axis in AXES if axis not in settings]:
        raise UsageError(f"'{text}' gives no {', '.join(lacking)}")
    return HardwareConfig(int(settings["cu_count"]), settings["engine_mhz"], settings["memory_mhz"])


def _only_config(table: Table) -> HardwareConfig:
    """Return the configuration of all rows."""
    table.require(AXES)
    configs = set(zip(*(table.positive(axis).tolist() for axis in AXES), strict=True))
    if len(configs) != 1:
        raise InputError(
            f"{table.source}: has rows at {len(configs)} configurations; say with --base which is "
            "the base"
        )
    cu_count, engine_mhz, memory_mhz = configs.pop()
    return HardwareConfig(int(cu_count), engine_mhz, memory_mhz)


def _as_table(predictions: Predictions, targets: list[HardwareConfig] | None) -> str:
    rows = predictions.columns(targets)
    axes = [[f"{value:g}" for value in rows[axis].tolist()] for axis in AXES]
    shown = [column for column in TABLE if not np.isnan(rows[column[1]]).all()]
    cells = [[number(value, digits) for value in rows[name].tolist()] for _, name, digits in shown]
    marks = [flags.split("; ")[0] for flags in rows["flags"].tolist()]
    marks = [mark if mark == INTERPOLATED else "" for mark in marks]
    headers = ["kernel", "CUs", "engine MHz", "memory MHz", *(heading for heading, _, _ in shown)]
    lines = list(zip(rows["kernel"].tolist(), *axes, *cells, marks, strict=True))
    text = columns([*headers, ""], lines)
    base, device = predictions.base, predictions.device
    text += f"\n\nbase {base} on {device}; factors are relative to it\n"
    for kernel, flags in zip(predictions.profiles.kernels, predictions.flags, strict=True):
        text += "".join(f"flag: {kernel}: {flag}\n" for flag in flags)
    return text + "".join(f"warning: {warning}\n" for warning in predictions.warnings)


def _as_json(predictions: Predictions, targets: list[HardwareConfig] | None) -> str:
    document = {
        "base": predictions.base.as_dict(),
        "predictions": predictions.rows(targets),
        "warnings": list(predictions.warnings),
    }
    return json.dumps(document, indent=1) + "\n"
