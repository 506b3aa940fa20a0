"""mlscale literature wang-chu: the analytical model of Wang and Chu on a table of measurements."""

import argparse
from dataclasses import replace
from pathlib import Path

from mlscale.cli import options
from mlscale.cli.text import columns
from mlscale.data.devices import device_keys
from mlscale.data.measurements import read
from mlscale.errors import InputError, UsageError
from mlscale.files import write_text
from mlscale.papers.gpu_file import read_gpu_parameters
from mlscale.papers.wang_chu import CASES
from mlscale.papers.wang_chu_gpus import load_gpu
from mlscale.studies.wang_chu import WangChuErrors, table_errors
from mlscale.text import spreadsheet_cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("table", metavar="TABLE", help="tidy table with nvprof counters")
    parser.add_argument(
        "--device",
        type=options.device_key,
        metavar="DEVICE",
        help="the GPU whose parameters to use, a name of 'devices list' or a device file "
        "(default: the table's device)",
    )
    parser.add_argument(
        "--gpu",
        metavar="FILE",
        help="the GPU's parameters as 'collect --micro' wrote them, gpu.json",
    )
    parser.add_argument(
        "--absolute",
        action="store_true",
        help="predict from counters alone; without it, relative to the time measured at the base",
    )
    parser.add_argument(
        "--base",
        type=options.configuration,
        default="mid",
        help="configuration of the counters, 'mid' (default) or 'highest'",
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
    if arguments.gpu is not None and arguments.device is not None:
        raise UsageError("--device: of no effect with --gpu, which names its own")
    path = options.input_file(arguments.table)
    data = read(path, arguments.incomplete, arguments.repetitions)
    device = arguments.device or data.device
    gpu = load_gpu(device) if arguments.gpu is None else read_gpu_parameters(Path(arguments.gpu))
    device = gpu.key
    if data.device != device and data.device in device_keys():
        raise InputError(f"{path}: is of device '{data.device}', not of '{device}'")
    try:
        base = data.grid.parse(arguments.base)
        errors = table_errors(replace(data, device=device), base, arguments.absolute, gpu)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    how = "time from counters alone" if arguments.absolute else "time relative to the base (max+X)"
    print(f"{path.stem}: {len(data.kernels)} kernels on {device}, base {base}, {how}")
    print(f"parameters: {gpu.source}\n")
    print(_as_text(errors))
    if arguments.output:
        with options.output_folder(arguments.output) as folder:
            for file in _write(folder, f"{device}, base {base}\n{how}", errors):
                print(f"written: {file}")


def _as_text(errors: WangChuErrors) -> str:
    lines = [
        [
            row["kernel"],
            f"({row['case_at_base']}) {CASES[row['case_at_base']]}",
            " ".join(f"({case})" for case in row["other_cases"]),
            f"{row['mape']:.2f}",
            f"{row['bias_percent']:+7.2f}",
            f"{row['worst_percent']:+7.1f}",
        ]
        for row in errors.by_kernel().to_dict("records")
    ]
    headers = ["kernel", "case at the base", "elsewhere", "MAPE", "   bias", "  worst"]
    summary = errors.summary
    return (
        f"{columns(headers, lines)}\n\n"
        f"MAPE {summary.mape:.2f} %, median kernel {summary.median_kernel:.2f}, "
        f"p90 {summary.p90:.2f}, worst kernel {summary.worst_kernel} "
        f"({summary.worst_kernel_mape:.2f}), over {errors.errors.shape[1]} configurations"
    )


def _write(folder: Path, title: str, errors: WangChuErrors) -> list[Path]:
    """Write both CSV files and the paper's figures. Raises InputError."""
    from mlscale.report.wang_chu_figures import (
        draw_kernel_errors,
        draw_signed_errors,
        draw_speedups,
    )

    tables = {
        "predictions.csv": errors.by_configuration(),
        "kernels.csv": errors.by_kernel().drop(columns=["other_cases", "worst_percent"]),
    }
    for name, errors_of in tables.items():
        table = errors_of.map(spreadsheet_cell)
        for column in table.columns.intersection(["engine_mhz", "memory_mhz"]):
            table[column] = table[column].map("{:g}".format)
        for column in table.columns.intersection(["error_percent", "mape", "bias_percent"]):
            table[column] = table[column].map("{:.6g}".format)
        write_text(folder / name, table.to_csv(index=False, lineterminator="\n"))
    data, signed = errors.data, errors.signed_errors[:, 0]
    measured = f"{data.device}, measured"
    compute_bound = (errors.base_case == 9) | (errors.base_case == 15)
    return [
        *(folder / name for name in tables),
        *draw_speedups(folder, measured, data.grid, data.kernels, data.time_ms[:, 0]),
        *draw_signed_errors(folder, title, data.grid, data.kernels, signed),
        *draw_kernel_errors(folder, title, data.kernels, errors.errors.mean(axis=1), compute_bound),
    ]
