"""mlscale literature survey: the models of Volkov's survey, side by side, and their figures."""

import argparse
import json
from typing import Any

import numpy as np

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.errors import InputError

INTENSITIES = (1, 8, 32, 128)
WARPS = (1, 8, 16, 32, 64)
DEVICE = "gtx980"

NOTE = """\
Every number is for the GTX 980 and counts warp-instructions per cycle and CU (IPC).
simulation: an idealised CU, to verify the models' algebra; it is not hardware.
*: reconstructed; the poster gives this model as a graph that its text does not hold."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--alpha",
        action="append",
        type=options.whole_number,
        metavar="A",
        help="arithmetic instructions per memory instruction; may be given again "
        f"(default: {', '.join(map(str, INTENSITIES))})",
    )
    parser.add_argument(
        "--warps",
        action="append",
        type=options.whole_number,
        metavar="N",
        help=f"resident warps per CU; may be given again (default: {', '.join(map(str, WARPS))})",
    )
    parser.add_argument(
        "--figure",
        metavar="DIR",
        help="draw the poster's two figures there, as PNG and SVG, at the given alpha",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")


def run(arguments: argparse.Namespace) -> None:
    """Print the models' throughput, errors and warps needed; draw the figures. InputError."""
    from mlscale.data.devices import load_device

    intensities = sorted(set(arguments.alpha or INTENSITIES))
    warps = sorted(set(arguments.warps or WARPS))
    most = load_device(DEVICE).max_waves_per_cu
    if warps[-1] > most:
        raise InputError(f"--warps {warps[-1]}: a CU of {DEVICE} holds at most {most} warps")
    document = {
        "literature": "survey",
        "device": DEVICE,
        "throughput": _throughput(intensities, warps),
        "errors": _errors(),
        "warps_needed": _warps_needed(intensities, most),
    }
    if arguments.figure:
        from mlscale.report.survey_figures import draw_survey

        with options.output_folder(arguments.figure) as folder:
            document["figures"] = [str(path) for path in draw_survey(folder, intensities)]
    print(json.dumps(document, indent=1) if arguments.json else _as_text(document, most))


def _throughput(intensities: list[int], warps: list[int]) -> list[dict[str, Any]]:
    """The simulation and every model [IPC] at each alpha and occupancy."""
    from mlscale.papers.volkov import GTX_980, MODELS, hong_kim_case
    from mlscale.papers.volkov_simulation import simulate

    return [
        {
            "alpha": alpha,
            "warps": n,
            "simulation": simulate(n, alpha),
            "models": {name: float(model(n, alpha, GTX_980)) for name, model in MODELS.items()},
            "hong_kim_case": int(hong_kim_case(n, alpha)),
        }
        for alpha in intensities
        for n in warps
    ]


def _errors() -> list[dict[str, Any]]:
    """How far each model is from the simulation on the grid of 9 alpha x 14 occupancies."""
    from mlscale.papers.volkov import GTX_980, MODELS, latency_bound, throughput_bound
    from mlscale.papers.volkov_simulation import GRID_INTENSITIES, GRID_WARPS, simulate_grid
    from mlscale.studies.metrics import absolute_percentage_error

    alpha, n = np.meshgrid(GRID_INTENSITIES, GRID_WARPS, indexing="ij")
    simulated = simulate_grid()
    latency_bound_here = latency_bound(n, alpha) < throughput_bound(alpha)
    rows = []
    for name, model in MODELS.items():
        predicted = model(n, alpha, GTX_980)
        errors = absolute_percentage_error(predicted, simulated)
        ratio = predicted / simulated
        rows.append(
            {
                "model": name,
                "mape": float(errors.mean()),
                "worst": float(errors.max()),
                "mean_ratio_latency_bound": float(ratio[latency_bound_here].mean()),
                "largest_ratio_latency_bound": float(ratio[latency_bound_here].max()),
                "mean_ratio_throughput_bound": float(ratio[~latency_bound_here].mean()),
            }
        )
    return rows


def _warps_needed(intensities: list[int], most: int) -> list[dict[str, Any]]:
    """Warps for 99 % of the throughput bound, and the two rules of thumb for all of it."""
    from mlscale.papers import volkov as survey
    from mlscale.papers.volkov_simulation import simulated_warps_needed

    return [
        {
            "alpha": alpha,
            "simulation": simulated_warps_needed(alpha, most),
            "models": {
                name: survey.warps_needed(model, alpha, most)
                for name, model in survey.MODELS.items()
            },
            "vendor_guide": float(survey.vendor_warps(alpha)),
            "saavedra_barrera": float(survey.saavedra_barrera_warps(alpha)),
        }
        for alpha in intensities
    ]


def _as_text(document: dict[str, Any], most: int) -> str:
    """Three tables, a row for each model, and where the figures are."""
    throughput = document["throughput"]
    needed = document["warps_needed"]
    blocks = [NOTE]
    for alpha in dict.fromkeys(row["alpha"] for row in throughput):
        points = [row for row in throughput if row["alpha"] == alpha]
        lines = [
            ["simulation", *(number(p["simulation"]) for p in points)],
            *([name, *(number(p["models"][name]) for p in points)] for name in points[0]["models"]),
            ["case of Hong & Kim", *(str(p["hong_kim_case"]) for p in points)],
        ]
        headers = [f"alpha = {alpha}", *(f"{p['warps']} warps" for p in points)]
        blocks.append(f"Throughput [IPC]\n{columns(headers, lines)}")
    headers = ["model", "MAPE", "worst", "latency-bound", "its largest", "throughput-bound"]
    errors = [
        [row["model"], f"{row['mape']:.1f}", f"{row['worst']:.1f}"]
        + [f"{value:.2f}" for name, value in row.items() if "ratio" in name]
        for row in document["errors"]
    ]
    blocks.append(
        "Error against the simulation [%], 9 alpha x 14 occupancies, and mean ratio model / "
        f"simulation by what limits\n{columns(headers, errors)}"
    )
    lines = [
        ["simulation", *(_whole(row["simulation"]) for row in needed)],
        *([name, *(_whole(row["models"][name]) for row in needed)] for name in needed[0]["models"]),
        ["vendor's guide", *(number(row["vendor_guide"]) for row in needed)],
        ["Saavedra-Barrera", *(number(row["saavedra_barrera"]) for row in needed)],
    ]
    headers = ["model", *(f"alpha = {row['alpha']}" for row in needed)]
    blocks.append(
        f"Warps needed for 99 % of the throughput bound; '-': not with {most}. The last two rows: "
        f"for all of it, by rule of thumb\n{columns(headers, lines)}"
    )
    blocks += document.get("figures", [])
    return "\n\n".join(blocks)


def _whole(warps: int | None) -> str:
    return "-" if warps is None else str(warps)
