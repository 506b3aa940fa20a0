"""From micro-benchmarks to parameters: a device entry for `wang-chu`, and Volkov's CU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlscale.collect.micro import MemorySample
from mlscale.data.devices import Device
from mlscale.errors import InputError
from mlscale.papers.volkov import MODELS, ComputeUnit
from mlscale.papers.wang_chu_gpus import fit_dram_delay, fit_dram_latency


def device_entry(samples: Sequence[MemorySample], device: Device, source: str) -> dict[str, Any]:
    """A row of wang_chu_gpus.json: latencies and delays as Wang and Chu 2018, section IV-A.

    DRAM parameters are lines through the settings of the clocks, Eq. (4) and Table III; with one
    setting the latency is taken to follow the engine alone and the delay the memory alone, which
    the note says. The issue and FP64 delays follow from the device's lanes. Raises InputError
    without samples.
    """
    if not samples:
        raise InputError("a device entry needs micro-benchmarks at one setting of the clocks")
    engine, memory, latency, delay = np.array(
        [[s.engine_mhz, s.memory_mhz, s.dram_latency, s.dram_delay] for s in samples]
    ).T
    note = f"Measured at {len(samples)} settings of the clocks."
    latency_line, delay_line = (0.0, float(np.mean(latency))), (0.0, 0.0)
    if np.unique(engine / memory).size > 1:
        fit = fit_dram_latency(engine, memory, latency)
        latency_line = (fit.slope, fit.offset)
        note += f" DRAM latency: R2 {fit.r_squared:.3f}."
    else:
        note += " One ratio of clocks: the DRAM latency is a constant of engine cycles."
    if np.unique(memory).size > 1:
        fit = fit_dram_delay(engine, memory, delay)
        delay_line = (fit.slope, fit.offset)
        note += f" DRAM delay: R2 {fit.r_squared:.3f}."
    else:
        delay_line = (0.0, float(np.mean(delay * memory / engine)))
        note += " One memory clock: the DRAM delay is a constant of memory cycles."
    medians = {
        name: float(np.median([getattr(sample, name) for sample in samples]))
        for name in ("l2_latency", "l2_delay", "shared_latency", "shared_delay")
    }
    return {
        "dram_latency_slope": latency_line[0],
        "dram_latency_offset": latency_line[1],
        "dram_delay_slope": delay_line[0],
        "dram_delay_offset": delay_line[1],
        **medians,
        "instruction_factor": 1,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": source,
        "note": note,
    }


def fit_compute_unit(rows: Sequence[dict[str, Any]], issue_per_cycle: float) -> ComputeUnit:
    """The latencies and rates of a CU from Volkov's kernel; rows with warps, intensity, ipc.

    A and L: the line intensity A + L through the cycles of a loop of one warp alone. T and B: the
    highest rates seen of arithmetic and of memory. Raises InputError without one warp at two
    intensities.
    """
    warps, intensity, ipc = np.array(
        [[row["warps"], row["intensity"], row["ipc"]] for row in rows], dtype=float
    ).T
    alone = warps == 1
    if np.unique(intensity[alone]).size < 2:
        raise InputError("a CU's latencies need one warp alone at two intensities at least")
    loop = (intensity[alone] + 1) / ipc[alone]
    arithmetic, memory = np.polyfit(intensity[alone], loop, 1)
    return ComputeUnit(
        arithmetic_latency_cycles=float(arithmetic),
        memory_latency_cycles=float(memory),
        issue_per_cycle=issue_per_cycle,
        arithmetic_per_cycle=float(np.max(ipc * intensity / (intensity + 1))),
        memory_per_cycle=float(np.max(ipc / (intensity + 1))),
    )


def survey_rows(rows: Sequence[dict[str, Any]], cu: ComputeUnit) -> list[dict[str, Any]]:
    """Each measured throughput beside every model of the survey [IPC]."""
    return [
        {
            **row,
            **{
                name: float(model(row["warps"], row["intensity"], cu))
                for name, model in MODELS.items()
            },
        }
        for row in rows
    ]


def survey_errors(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By model: the mean, median and largest absolute percentage error over the rows [%]."""
    measured = np.array([row["ipc"] for row in rows])
    errors = []
    for name in MODELS:
        off = 100 * np.abs(np.array([row[name] for row in rows]) / measured - 1)
        errors.append(
            {"model": name, "mape": float(off.mean()), "median": float(np.median(off)),
             "worst": float(off.max())}
        )  # fmt: skip
    return errors
