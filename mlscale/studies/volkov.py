"""Volkov's survey as rows: throughput, errors against the simulation, and warps needed.

All is for the GTX 980, but for rows of another CU. Throughput counts warp-instructions per cycle
and CU (IPC).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlscale.data.surfaces import absolute_percentage_error
from mlscale.papers.volkov import (
    GTX_980,
    MODELS,
    ComputeUnit,
    hong_kim_case,
    latency_bound,
    saavedra_barrera_warps,
    throughput_bound,
    vendor_warps,
    warps_needed,
)
from mlscale.papers.volkov_simulation import (
    GRID_INTENSITIES,
    GRID_WARPS,
    simulate,
    simulate_grid,
    simulated_warps_needed,
)


def throughput_rows(
    intensities: Sequence[int], warps: Sequence[int], cu: ComputeUnit = GTX_980
) -> list[dict[str, Any]]:
    """Return simulation and models [IPC] at each intensity and occupancy. Raises InputError."""
    return [
        {
            "alpha": alpha,
            "warps": n,
            "simulation": simulate(n, alpha, cu),
            "models": _models(n, alpha, cu),
            "hong_kim_case": int(hong_kim_case(n, alpha, cu)),
        }
        for alpha in intensities
        for n in warps
    ]


def _models(warps: float, intensity: float, cu: ComputeUnit) -> dict[str, float]:
    """Return what each model gives [IPC]."""
    return {name: float(model(warps, intensity, cu)) for name, model in MODELS.items()}


def error_rows() -> list[dict[str, Any]]:
    """How far each model is from the simulation on the grid of 9 intensities x 14 occupancies.

    Mean and worst absolute error [%], and the ratio model / simulation by what limits.
    """
    alpha, n = np.meshgrid(GRID_INTENSITIES, GRID_WARPS, indexing="ij")
    simulated = simulate_grid()
    latency_limits = latency_bound(n, alpha) < throughput_bound(alpha)
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
                "mean_ratio_latency_bound": float(ratio[latency_limits].mean()),
                "largest_ratio_latency_bound": float(ratio[latency_limits].max()),
                "mean_ratio_throughput_bound": float(ratio[~latency_limits].mean()),
            }
        )
    return rows


def measured_rows(points: Sequence[dict[str, Any]], cu: ComputeUnit) -> list[dict[str, Any]]:
    """Measured throughputs, each with what the models give for it [IPC].

    points: `warps`, `intensity` and the measured `ipc`.
    """
    return [
        {**point, "models": _models(point["warps"], point["intensity"], cu)} for point in points
    ]


def measured_errors(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How far each model is from measured throughputs, by model [%].

    rows: as from `measured_rows`. Mean, median and largest absolute error.
    """
    ipc = np.array([row["ipc"] for row in rows], dtype=float)
    errors = {
        name: absolute_percentage_error(np.array([row["models"][name] for row in rows]), ipc)
        for name in MODELS
    }
    return [
        {
            "model": name,
            "mape": float(error.mean()),
            "median": float(np.median(error)),
            "worst": float(error.max()),
        }
        for name, error in errors.items()
    ]


def warps_needed_rows(intensities: Sequence[int], most: int) -> list[dict[str, Any]]:
    """Warps for 99 % of the throughput bound, up to `most`, and two rules of thumb for all of it.

    Raises InputError.
    """
    return [
        {
            "alpha": alpha,
            "simulation": simulated_warps_needed(alpha, most),
            "models": {name: warps_needed(model, alpha, most) for name, model in MODELS.items()},
            "vendor_guide": float(vendor_warps(alpha)),
            "saavedra_barrera": float(saavedra_barrera_warps(alpha)),
        }
        for alpha in intensities
    ]
