"""mlscale literature wang-chu: the analytical model of Wang and Chu on a table of measurements."""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mlscale.cli import options, outputs, values
from mlscale.cli.text import columns, print_document, written
from mlscale.data.device_table import device_keys
from mlscale.data.grid import HardwareConfig, parse_settings
from mlscale.data.measurements import Measurements, from_table, read
from mlscale.data.table_files import is_tidy
from mlscale.errors import InputError
from mlscale.files import write_text
from mlscale.papers.wang_chu import CASES
from mlscale.papers.wang_chu_gpus import GpuParameters, load_gpu
from mlscale.studies.wang_chu import MODELS, TABLE_6, WangChuErrors, table_errors
from mlscale.text import counted, spreadsheet_cell

TABLE_VI = "table-vi"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="tidy table with nvprof counters, or a profiler's export that has them (docs/"
        "profiling.md says which metrics of ncu), for --absolute",
    )
    options.add_device(
        parser,
        "the GPU whose parameters to use, a name of 'devices list' or a device file "
        "(default: the table's device)",
    )
    model = parser.add_mutually_exclusive_group()
    model.add_argument(
        "--absolute",
        action="store_const",
        const="absolute",
        dest="model",
        help="predict from counters alone; without it, relative to the time measured at the base",
    )
    model.add_argument(
        "--max-overlap",
        action="store_const",
        const="max-overlap",
        dest="model",
        help="predict by this project's rule of that name in place of the paper's model",
    )
    parser.add_argument(
        "--kernels",
        type=_kernels,
        metavar="NAMES",
        help=f"kernels to predict, by commas, or '{TABLE_VI}': the paper's (default: all)",
    )
    options.add_base(
        parser,
        "configuration of the counters, 'mid' (default) or 'highest'; of an export what the "
        "GPU was set to, where the file does not say it",
    )
    options.add_reading(parser)
    outputs.add_results(
        parser, "predictions.csv, kernels.csv and the paper's Fig. 2, 12, 13 and 14"
    )


def run(arguments: argparse.Namespace) -> None:
    """Predict a table from its base and show the errors. Raises InputError."""
    path = options.input_file(arguments.table)
    data, gpu = _read(path, arguments)
    model = arguments.model or "wang-chu"
    try:
        base = data.grid.parse(arguments.base if is_tidy(path) else "mid")
        document = {
            "literature": "wang-chu",
            "table": path.stem,
            "device": gpu.key,
            "parameters": gpu.source,
            "base": asdict(base),
            "n_kernels": len(data.kernels),
        }
        errors = table_errors(data, base, model, gpu)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    document |= {"model": model, **errors.document()}
    title = f"{gpu.key}, base {base}\n{MODELS[model]}"
    outputs.write_into(arguments, document, lambda folder: _write(folder, title, errors, gpu))
    print_document(document, arguments.json, _as_text)


def _read(path: Path, arguments: argparse.Namespace) -> tuple[Measurements, GpuParameters]:
    """Return the table, of the kernels that were asked for, and its GPU. Raises InputError."""
    data = _measurements(path, arguments)
    gpu = load_gpu(arguments.device or data.device)
    if data.device != gpu.key and data.device in device_keys():
        raise InputError(f"{path}: is of device '{data.device}', not of '{gpu.key}'")
    if arguments.kernels is not None:
        data = data.select(sorted(options.positions(arguments.kernels, data.kernels, str(path))))
    return replace(data, device=gpu.key), gpu


def _measurements(path: Path, arguments: argparse.Namespace) -> Measurements:
    """A table's measurements, or the one configuration of an export. Raises InputError."""
    if is_tidy(path):
        return read(path, arguments.incomplete, arguments.repetitions)
    from mlscale.profilers import import_exports

    settings = {} if arguments.base in ("mid", "highest") else parse_settings(arguments.base)
    table = import_exports([path], device=arguments.device, base=settings).table
    return from_table(table, arguments.incomplete, arguments.repetitions)


def _kernels(text: str) -> tuple[str, ...]:
    """Return names of kernels, for argparse."""
    return TABLE_6 if text == TABLE_VI else values.names(text)


def _as_text(document: dict[str, Any]) -> str:
    lines = [
        [
            row["kernel"],
            f"({row['case_at_base']}) {CASES[row['case_at_base']]}",
            " ".join(f"({case})" for case in row["other_cases"]),
            f"{row['mape']:.2f}",
            f"{row['bias_percent']:+z7.2f}",
            f"{row['worst_percent']:+z7.1f}",
        ]
        for row in document["kernels"]
    ]
    headers = ["kernel", "case at the base", "elsewhere", "MAPE", "   bias", "  worst"]
    how = MODELS[document["model"]]
    largest = document["largest"]
    summary = [
        f"largest error {largest['percent']:.1f} % ({largest['kernel']} at {_clocks(largest)}), ",
        f"below 10 % in {document['within_10_percent']:.1f} % of the predictions\n",
        f"MAPE {document['mape']:.2f} %, median kernel {document['median_kernel']:.2f}, ",
        f"p90 {document['p90']:.2f}, worst kernel {document['worst_kernel']} ",
        f"({document['worst_kernel_mape']:.2f}), over {document['n_configurations']} ",
        "configurations",
    ]
    return "\n".join(
        [
            f"{_subject(document)}, {how}",
            f"parameters: {document['parameters']}\n",
            f"{columns(headers, lines)}\n",
            "".join(summary),
            *written(document),
        ]
    )


def _subject(document: dict[str, Any]) -> str:
    base = HardwareConfig(**document["base"])
    kernels = counted(document["n_kernels"], "kernel")
    return f"{document['table']}: {kernels} on {document['device']}, base {base}"


def _clocks(config: dict[str, Any]) -> str:
    return f"engine {config['engine_mhz']:g}, memory {config['memory_mhz']:g} MHz"


def _write(folder: Path, title: str, errors: WangChuErrors, gpu: GpuParameters) -> list[Path]:
    """Write both CSV files and the paper's figures. Raises InputError."""
    from mlscale.report.wang_chu_figures import draw_figures

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
    return [*(folder / name for name in tables), *draw_figures(folder, title, errors, gpu)]
