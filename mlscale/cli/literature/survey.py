"""mlscale literature survey: the models of Volkov's survey, side by side, and their figures."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from mlscale.cli import options, outputs, values
from mlscale.cli.text import columns, or_dash, print_document, written
from mlscale.data.device_table import load_device
from mlscale.errors import InputError, UsageError
from mlscale.papers.gpu_file import MeasuredGpu, read_volkov
from mlscale.papers.volkov import GTX_980, ComputeUnit
from mlscale.papers.volkov_simulation import GRID_INTENSITIES, GRID_WARPS
from mlscale.studies.volkov import (
    error_rows,
    measured_errors,
    measured_rows,
    throughput_rows,
    warps_needed_rows,
)
from mlscale.text import counted, number, plain_number

INTENSITIES = (1, 8, 32, 128)
WARPS = (1, 8, 16, 32, 64)
DEVICE = "gtx980"
OWN_CU = "the CU that was given"

OWN_NOTE = """\
Every number is for the CU that was given and counts warp-instructions per cycle (IPC).
simulation: an idealised CU of the same five numbers; it is not hardware."""
NOTE = """\
Every number is for the GTX 980 and counts warp-instructions per cycle and CU (IPC).
simulation: an idealised CU, to verify the models' algebra; it is not hardware, and rests on what
the classical bounds assume, so that their small error says nothing of hardware.
*: reconstructed; the poster gives this model as a graph that its text does not hold."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--alpha",
        action="append",
        type=values.whole_number,
        metavar="A",
        help="arithmetic instructions per memory instruction; may be given again "
        f"(default: {', '.join(map(str, INTENSITIES))})",
    )
    parser.add_argument(
        "--warps",
        action="append",
        type=values.whole_number,
        metavar="N",
        help=f"resident warps per CU; may be given again (default: {', '.join(map(str, WARPS))})",
    )
    parser.add_argument(
        "--cu",
        type=_compute_unit,
        metavar="A,L,I,T,B",
        help="a CU of your own: latencies of arithmetic and memory [cycles], peak rates of issue, "
        "arithmetic and memory [warp-instructions per cycle]",
    )
    parser.add_argument(
        "--measured",
        metavar="FILE",
        help="measured throughputs to set beside the models and to draw as dots: CSV with the "
        "columns warps, intensity (alpha) and ipc, of the CU of --cu, else of the GTX 980",
    )
    outputs.add_results(parser, "the poster's two figures at the given alpha, as PNG and SVG")


def run(arguments: argparse.Namespace) -> None:
    """Print the models' throughput, errors and warps needed; draw the figures. InputError."""
    if measured := _measured_gpu(arguments):
        _survey_measured(measured, arguments)
        return
    intensities = sorted(set(arguments.alpha or INTENSITIES))
    warps = sorted(set(arguments.warps or WARPS))
    document: dict[str, Any] = {"literature": "survey"}
    if arguments.cu is not None:
        name, cu, note = OWN_CU, arguments.cu, OWN_NOTE
        document |= {
            "compute_unit": asdict(cu),
            "throughput": throughput_rows(intensities, warps, cu),
        }
    else:
        name, cu, note = "GTX 980", GTX_980, NOTE
        most = load_device(DEVICE).max_waves_per_cu
        if warps[-1] > most:
            raise UsageError(f"--warps {warps[-1]}: a CU of {DEVICE} holds at most {most} warps")
        document |= {
            "device": DEVICE,
            "throughput": throughput_rows(intensities, warps),
            "errors": error_rows(),
            "errors_over": {"alpha": GRID_INTENSITIES, "warps": GRID_WARPS},
            "warps_needed": warps_needed_rows(intensities, most),
        }
    _draw(document, intensities, arguments, name, cu)
    print_document(document, arguments.json, partial(_text, note=note))


def _measured_gpu(arguments: argparse.Namespace) -> MeasuredGpu | None:
    """The GPU that was measured, by --measured; None without it. Raises InputError."""
    if arguments.measured is None:
        return None
    shown = "with --measured, whose points are shown"
    options.refuse_unused(arguments, ("alpha", "warps"), shown)
    points = read_volkov(options.input_file(arguments.measured))
    if arguments.cu is None:
        return MeasuredGpu("GTX 980", DEVICE, None, GTX_980, points)
    return MeasuredGpu(OWN_CU, "", None, arguments.cu, points)


def _survey_measured(gpu: MeasuredGpu, arguments: argparse.Namespace) -> None:
    """Print the models beside the measurements of a GPU; draw the figures. Raises InputError."""
    throughput = measured_rows(gpu.volkov, gpu.compute_unit)
    document = {
        "literature": "survey",
        "device": gpu.device,
        "name": gpu.name,
        "compute_unit": asdict(gpu.compute_unit),
        "throughput": throughput,
        "errors": measured_errors(throughput),
    }
    intensities = sorted({int(point["intensity"]) for point in gpu.volkov})
    _draw(document, intensities, arguments, gpu.name, gpu.compute_unit, gpu.volkov)
    print_document(document, arguments.json, _measured_text)


def _draw(
    document: dict[str, Any],
    intensities: list[int],
    arguments: argparse.Namespace,
    name: str,
    cu: ComputeUnit,
    points: Sequence[dict[str, float]] | None = None,
) -> None:
    """Draw the figures where -o asks for them, and name their files. Raises InputError.

    points: the measured dots; None for those of the simulation of the CU.
    """
    if not arguments.output:
        return
    from mlscale.report.volkov_figures import draw_survey

    outputs.write_into(
        arguments,
        document,
        lambda folder: draw_survey(folder, intensities, name, cu, points),
        "figures",
    )


def _measured_text(document: dict[str, Any]) -> str:
    """Return the CU, each model's error against the measurements, and where the figures are."""
    unit = ", ".join(f"{name} {number(value)}" for name, value in document["compute_unit"].items())
    errors = [
        [row["model"], *(f"{row[key]:.1f}" for key in ("mape", "median", "worst"))]
        for row in document["errors"]
    ]
    return "\n\n".join(
        [
            f"{document['name']}, measured: {unit}",
            f"Error against {counted(len(document['throughput']), 'measured throughput')} [%]\n"
            + columns(["model", "MAPE", "median", "worst"], errors),
            *written(document),
        ]
    )


def _throughput_text(throughput: list[dict[str, Any]]) -> list[str]:
    """Return a table for each intensity."""
    blocks = []
    for alpha in dict.fromkeys(row["alpha"] for row in throughput):
        points = [row for row in throughput if row["alpha"] == alpha]
        lines = [
            ["simulation", *(number(p["simulation"]) for p in points)],
            *([name, *(number(p["models"][name]) for p in points)] for name in points[0]["models"]),
            ["case of Hong & Kim", *(str(p["hong_kim_case"]) for p in points)],
        ]
        headers = [f"alpha = {alpha}", *(f"{p['warps']} warps" for p in points)]
        blocks.append(f"Throughput [IPC]\n{columns(headers, lines)}")
    return blocks


def _compute_unit(text: str) -> ComputeUnit:
    """Return a CU of five numbers, for argparse."""
    try:
        values = [plain_number(part) for part in text.split(",")]
        return ComputeUnit(*values)
    except (TypeError, ValueError) as error:
        why = str(error) if isinstance(error, InputError) else "five numbers A,L,I,T,B are needed"
        raise argparse.ArgumentTypeError(f"'{text}': {why}") from None


def _text(document: dict[str, Any], note: str) -> str:
    """Return the note, a table of throughput for each intensity, and what else there is."""
    blocks = [note, *_throughput_text(document["throughput"])]
    if "warps_needed" in document:
        blocks += [_errors_text(document["errors"]), _needed_text(document["warps_needed"])]
    return "\n\n".join([*blocks, *written(document)])


def _errors_text(rows: list[dict[str, Any]]) -> str:
    headers = ["model", "MAPE", "worst", "latency-bound", "its largest", "throughput-bound"]
    errors = [
        [row["model"], f"{row['mape']:.1f}", f"{row['worst']:.1f}"]
        + [f"{value:.2f}" for name, value in row.items() if "ratio" in name]
        for row in rows
    ]
    return (
        "Error against the simulation [%], 9 alpha x 14 occupancies, and mean ratio model / "
        f"simulation by what limits\n{columns(headers, errors)}"
    )


def _needed_text(rows: list[dict[str, Any]]) -> str:
    lines = [
        ["simulation", *(or_dash(row["simulation"]) for row in rows)],
        *([name, *(or_dash(row["models"][name]) for row in rows)] for name in rows[0]["models"]),
        ["vendor's guide", *(number(row["vendor_guide"]) for row in rows)],
        ["Saavedra-Barrera", *(number(row["saavedra_barrera"]) for row in rows)],
    ]
    headers = ["model", *(f"alpha = {row['alpha']}" for row in rows)]
    return (
        "Warps needed for 99 % of the throughput bound; '-': not with "
        f"{load_device(DEVICE).max_waves_per_cu}. The last two rows: for all of it, by rule of "
        f"thumb\n{columns(headers, lines)}"
    )
