"""mlscale literature wang-chu: the analytical model of Wang and Chu on a table of measurements."""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats
from mlscale.cli import options
from mlscale.cli.text import columns
from mlscale.data.devices import device_keys
from mlscale.errors import InputError
from mlscale.files import write_text

if TYPE_CHECKING:
    from mlscale.data.grid import HardwareConfig
    from mlscale.data.measurements import Measurements


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What was predicted; arrays (K, C, E, M), errors (K, targets) absolute [%]."""

    data: Measurements
    base: HardwareConfig
    predicted_ms: Floats
    case: NDArray[np.int_]
    errors: Floats

    @property
    def signed_errors(self) -> Floats:
        """(predicted - measured) / measured [%]."""
        return 100 * (self.predicted_ms / self.data.time_ms - 1)

    @property
    def base_case(self) -> NDArray[np.int_]:
        """The case of each kernel at the base, (K,)."""
        return self.case[(slice(None), *self.data.grid.index(self.base))]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("table", metavar="TABLE", help="tidy table with nvprof counters")
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help=f"the GPU whose parameters to use: {', '.join(device_keys())} "
        "(default: the table's device)",
    )
    parser.add_argument(
        "--absolute",
        action="store_true",
        help="predict from counters alone; without it, relative to the time measured at the base",
    )
    parser.add_argument(
        "--base", default="mid", help="configuration of the counters, or 'mid' (default)"
    )
    options.add_reading(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write predictions.csv, kernels.csv and the paper's Fig. 2, 13 and 14 there",
    )


def run(arguments: argparse.Namespace) -> None:
    """Predict a table from its base and show the errors. Raises InputError."""
    from mlscale.data.measurements import read_measurements
    from mlscale.papers.wang_chu_gpus import load_gpu

    path = options.input_file(arguments.table)
    data = read_measurements(path, arguments.incomplete, arguments.repetitions)
    device = arguments.device or data.device
    gpu = load_gpu(device)
    if data.device != device and data.device in device_keys():
        raise InputError(f"{path}: is of device '{data.device}', not of '{device}'")
    data = replace(data, device=device)
    try:
        base = data.grid.parse(arguments.base)
        outcome = _predict(data, base, arguments.absolute)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    how = "time from counters alone" if arguments.absolute else "time relative to the base (max+X)"
    print(f"{path.stem}: {len(data.kernels)} kernels on {device}, base {base}, {how}")
    print(f"parameters: {gpu.source}\n")
    print(_as_text(outcome))
    if arguments.output:
        title = f"{device}, base {base}\n{how}"
        with options.output_folder(arguments.output) as folder:
            for file in _write(folder, title, outcome):
                print(f"written: {file}")


def _predict(data: Measurements, base: HardwareConfig, absolute: bool) -> _Outcome:
    """Predict the whole grid; absolute errors count the base, relative ones do not."""
    from mlscale.papers.wang_chu import kernel_round, predict_time_factor, predict_time_ms
    from mlscale.papers.wang_chu_gpus import load_gpu, require_cu_count
    from mlscale.papers.wang_chu_inputs import derive_inputs, warn_of_flags
    from mlscale.studies.metrics import absolute_percentage_error, without_base

    grid = data.grid
    gpu = load_gpu(data.device)
    profiles = data.profiles(base)
    inputs = derive_inputs(profiles, gpu)
    require_cu_count(gpu, grid.cu_count)
    warn_of_flags(inputs, profiles)
    _, engine, memory = np.meshgrid(grid.cu_count, grid.engine_mhz, grid.memory_mhz, indexing="ij")
    if absolute:
        predicted = predict_time_ms(inputs, gpu, engine, memory)
        errors = absolute_percentage_error(predicted, data.time_ms).reshape(len(data.kernels), -1)
    else:
        clocks = (base.engine_mhz, base.memory_mhz)
        factors = predict_time_factor(inputs, gpu, clocks, profiles.time_ms, engine, memory)
        predicted = factors * profiles.time_ms[:, None, None, None]
        errors = without_base(absolute_percentage_error(predicted, data.time_ms), grid.index(base))
        if not errors.size:
            raise InputError(f"the table holds the base {base} only: nothing to predict from it")
    case = kernel_round(inputs, gpu, engine, memory).case
    return _Outcome(data, base, predicted, case, errors)


def _as_text(outcome: _Outcome) -> str:
    from mlscale.papers.wang_chu import CASES
    from mlscale.studies.metrics import summarise

    signed = outcome.signed_errors.reshape(len(outcome.errors), -1)
    lines = []
    for k, kernel in enumerate(outcome.data.kernels):
        at_base = int(outcome.base_case[k])
        others = sorted(set(outcome.case[k].ravel().tolist()) - {at_base})
        worst = signed[k, np.abs(signed[k]).argmax()]
        lines.append(
            [
                kernel,
                f"({at_base}) {CASES[at_base]}",
                " ".join(f"({case})" for case in others),
                f"{outcome.errors[k].mean():.2f}",
                f"{signed[k].mean():+7.2f}",
                f"{worst:+7.1f}",
            ]
        )
    headers = ["kernel", "case at the base", "elsewhere", "MAPE", "   bias", "  worst"]
    summary = summarise(outcome.errors, outcome.data.kernels)
    return (
        f"{columns(headers, lines)}\n\n"
        f"MAPE {summary.mape:.2f} %, median kernel {summary.median_kernel:.2f}, "
        f"p90 {summary.p90:.2f}, worst kernel {summary.worst_kernel} "
        f"({summary.worst_kernel_mape:.2f}), over {outcome.errors.shape[1]} configurations"
    )


def _write(folder: Path, title: str, outcome: _Outcome) -> list[Path]:
    """Both CSV files and the figures. Raises InputError."""
    from mlscale.report import wang_chu_figures as figures

    data = outcome.data
    signed = outcome.signed_errors
    predictions = [
        [
            *(data.device, data.applications[k], kernel),
            *(config.cu_count, f"{config.engine_mhz:g}", f"{config.memory_mhz:g}"),
            *(repr(float(values[k].flat[c])) for values in (data.time_ms, outcome.predicted_ms)),
            f"{signed[k].flat[c]:.6g}",
            outcome.case[k].flat[c],
        ]
        for k, kernel in enumerate(data.kernels)
        for c, config in enumerate(data.grid)
    ]
    kernels = [
        [
            *(data.device, data.applications[k], kernel, outcome.base_case[k]),
            f"{outcome.errors[k].mean():.6g}",
            f"{signed[k].mean():.6g}",
        ]
        for k, kernel in enumerate(data.kernels)
    ]
    identity = ["device", "application", "kernel"]
    clocks = ["cu_count", "engine_mhz", "memory_mhz"]
    tables = {
        "predictions.csv": (
            [*identity, *clocks, "time_ms", "predicted_ms", "error_percent", "case"],
            predictions,
        ),
        "kernels.csv": ([*identity, "case_at_base", "mape", "bias_percent"], kernels),
    }
    for name, (header, rows) in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        write_text(folder / name, text.getvalue())
    compute_bound = np.isin(outcome.base_case, (9, 15))
    return [
        *(folder / name for name in tables),
        *figures.draw_speedups(
            folder, f"{data.device}, measured", data.grid, data.kernels, data.time_ms[:, 0]
        ),
        *figures.draw_signed_errors(folder, title, data.grid, data.kernels, signed[:, 0]),
        *figures.draw_kernel_errors(
            folder, title, data.kernels, outcome.errors.mean(axis=1), compute_bound
        ),
    ]
