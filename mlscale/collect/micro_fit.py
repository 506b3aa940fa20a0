"""From micro-benchmarks to parameters: a GPU for `wang-chu`, and the CU of Volkov's survey."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from mlscale.collect.device import DeviceInfo
from mlscale.collect.micro_kernels import Probe, probes
from mlscale.data.devices import SECTOR_BYTES, Device, known_device
from mlscale.errors import InputError
from mlscale.papers.volkov import ComputeUnit
from mlscale.papers.wang_chu_gpus import LineFit, fit_dram_delay, fit_dram_latency

_WORD_BYTES = 4
_NEAR_THE_TOP = 0.9
_CLOCKS = ["engine_mhz", "memory_mhz"]


def gpu_document(samples: pd.DataFrame, info: DeviceInfo) -> dict[str, Any]:
    """What gpu.json says, from the samples.

    Where the device table lacks the device, there is no entry for wang-chu, and four schedulers a
    CU are assumed. Raises InputError where a benchmark failed.
    """
    cycles, ipc = measured_cycles(samples, probes(info))
    known = known_device(info.key)
    issue_per_cycle = known.schedulers_per_cu if known else 4
    return {
        "format_version": 1,
        "device": info.key,
        "name": info.name,
        "wang_chu": wang_chu_entry(cycles, known) if known else None,
        "compute_unit": asdict(compute_unit(cycles, ipc, info, issue_per_cycle)),
        "volkov": [
            {"warps": warps, "intensity": intensity, "ipc": rate}
            for (warps, intensity), rate in ipc.items()
        ],
        "settings": cycles.reset_index().to_dict("records"),
    }


def measured_cycles(
    samples: pd.DataFrame, probes: Sequence[Probe]
) -> tuple[pd.DataFrame, dict[tuple[int, int], float]]:
    """Cycles of the engine by quantity, and the rate of Volkov's kernel by warps and intensity.

    Cycles are of one load (latency), or between two transactions of a CU with all CUs at work
    (delay); a row for each setting of the clocks [MHz]. The rate is in warp-instructions per cycle
    and CU, at the highest clocks. Raises InputError where a kernel has no time, or a longer one
    took no longer.
    """
    times = samples.pivot_table("time_ms", _CLOCKS, "kernel", aggfunc="median")
    times = times.reindex(columns=[probe.entry.name for probe in probes])
    if missing := [str(name) for name in times.columns[times.isna().any()]]:
        raise InputError(f"micro-benchmarks failed: {', '.join(missing[:3])}")
    all_cycles = times.mul(1e3 * times.index.get_level_values("engine_mhz"), axis=0)
    launches: dict[str, list[Probe]] = {}
    for probe in probes:
        launches.setdefault(probe.quantity, []).append(probe)
    fastest = all_cycles.iloc[-1]
    ipc = {
        (probe.warps, probe.intensity): probe.work / float(fastest[probe.entry.name])
        for probe in launches.pop("volkov")
    }
    cycles = pd.DataFrame(index=all_cycles.index)
    for quantity, (short, long) in launches.items():
        longer = all_cycles[long.entry.name] - all_cycles[short.entry.name]
        if (longer <= 0).any():
            raise InputError(
                f"micro-benchmark {quantity}: the longer of two launches was not the slower; is "
                "something else running on the device?"
            )
        cycles[quantity] = longer / (long.work - short.work)
    return cycles, ipc


def wang_chu_entry(cycles: pd.DataFrame, device: Device) -> dict[str, Any]:
    """A row of wang_chu_gpus.json: latencies and delays as Wang and Chu 2018, section IV-A.

    DRAM parameters are lines through the settings of the clocks, Eq. (4) and Table III; with one
    setting the latency is taken to follow the engine alone and the delay the memory alone, which
    the note says. The issue and FP64 delays follow from the device's lanes.
    """
    engine, memory = (cycles.index.get_level_values(clock).to_numpy() for clock in _CLOCKS)
    latency, delay = cycles["dram_latency"].to_numpy(), cycles["dram_delay"].to_numpy()
    note = f"Measured at {len(cycles)} settings of the clocks."
    if np.unique(engine / memory).size > 1:
        latency_line = fit_dram_latency(engine, memory, latency)
        note += f" DRAM latency: R2 {latency_line.r_squared:.3f}."
    else:
        latency_line = LineFit(0.0, float(latency.mean()), 0.0)
        note += " One ratio of clocks: the DRAM latency is a constant of engine cycles."
    if np.unique(memory).size > 1:
        delay_line = fit_dram_delay(engine, memory, delay)
        note += f" DRAM delay: R2 {delay_line.r_squared:.3f}."
    else:
        delay_line = LineFit(0.0, float(np.mean(delay * memory / engine)), 0.0)
        note += " One memory clock: the DRAM delay is a constant of memory cycles."
    return {
        "dram_latency_slope": latency_line.slope,
        "dram_latency_offset": latency_line.offset,
        "dram_delay_slope": delay_line.slope,
        "dram_delay_offset": delay_line.offset,
        **cycles.drop(columns=["dram_latency", "dram_delay"]).median(),
        "instruction_factor": 1,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": "mlscale collect --micro",
        "note": note,
    }


def compute_unit(
    cycles: pd.DataFrame,
    ipc: Mapping[tuple[int, int], float],
    info: DeviceInfo,
    issue_per_cycle: float,
) -> ComputeUnit:
    """The latencies and rates of a CU from Volkov's kernel and the read of DRAM.

    A and L: the line intensity A + L through the cycles of a loop of one warp alone. T: the median
    of the rates of arithmetic near the highest one. B: one warp's load, in the transactions that
    the DRAM gives a CU.
    """
    loops = {a: (a + 1) / rate for (warps, a), rate in ipc.items() if warps == 1}
    arithmetic, memory = np.polyfit(np.array([*loops]), np.array([*loops.values()]), 1)
    rates = np.array([rate * a / (a + 1) for (_, a), rate in ipc.items()])
    transactions = info.wave_size * _WORD_BYTES / SECTOR_BYTES
    return ComputeUnit(
        arithmetic_latency_cycles=max(float(arithmetic), 1.0),
        memory_latency_cycles=max(float(memory), 1.0),
        issue_per_cycle=issue_per_cycle,
        arithmetic_per_cycle=float(np.median(rates[rates >= _NEAR_THE_TOP * rates.max()])),
        memory_per_cycle=1 / (transactions * cycles["dram_delay"].iloc[-1]),
    )
