"""From micro-benchmarks to parameters: a GPU for `wang-chu`, and the CU of Volkov's survey."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Setting:
    """What was measured at one setting of the clocks [MHz].

    cycles: of the engine, by quantity: of one load (latency), or between two transactions of a CU
    with all CUs at work (delay); ipc: warp-instructions per cycle and CU of Volkov's kernel, by
    warps and intensity.
    """

    engine_mhz: float
    memory_mhz: float
    cycles: dict[str, float]
    ipc: dict[tuple[int, int], float]


def gpu_document(samples: pd.DataFrame, info: DeviceInfo) -> dict[str, Any]:
    """What gpu.json says, from the samples; Volkov's kernel at the highest clocks.

    Where the device table lacks the device, there is no entry for wang-chu, and four schedulers a
    CU are assumed. Raises InputError where a benchmark failed.
    """
    names = ["engine_mhz", "memory_mhz"]
    times = samples.pivot_table("time_ms", names, "kernel", aggfunc="median")
    by_clocks = zip(times.index.to_list(), times.to_dict("records"), strict=True)
    settings = [setting(probes(info), time_ms, *clocks) for clocks, time_ms in by_clocks]
    known = known_device(info.key)
    unit = compute_unit(settings[-1], info, known.schedulers_per_cu if known else 4)
    return {
        "format_version": 1,
        "device": info.key,
        "name": info.name,
        "wang_chu": wang_chu_entry(settings, known) if known else None,
        "compute_unit": asdict(unit),
        "volkov": [
            {"warps": warps, "intensity": intensity, "ipc": ipc}
            for (warps, intensity), ipc in settings[-1].ipc.items()
        ],
        "settings": [
            {"engine_mhz": s.engine_mhz, "memory_mhz": s.memory_mhz, **s.cycles} for s in settings
        ],
    }


def setting(
    probes: Sequence[Probe], time_ms: Mapping[Any, float], engine_mhz: float, memory_mhz: float
) -> Setting:
    """The quantities from the times of the probes' kernels [ms], at one setting of the clocks.

    Raises InputError where a kernel has no time, or a longer one took no longer.
    """
    names = [probe.entry.name for probe in probes]
    if missing := [name for name in names if not time_ms.get(name, 0) > 0]:
        raise InputError(f"micro-benchmarks failed: {', '.join(missing[:3])}")
    of: dict[str, list[tuple[float, float]]] = {}
    ipc = {}
    for probe in probes:
        cycles = time_ms[probe.entry.name] * engine_mhz * 1e3
        if probe.quantity == "volkov":
            ipc[probe.warps, probe.intensity] = probe.work / cycles
        else:
            of.setdefault(probe.quantity, []).append((probe.work, cycles))
    slopes = {
        quantity: (last[1] - first[1]) / (last[0] - first[0])
        for quantity, (first, last) in of.items()
    }
    for quantity, slope in slopes.items():
        if slope <= 0:
            raise InputError(
                f"micro-benchmark {quantity}: the longer of two launches was not the slower; is "
                "something else running on the device?"
            )
    return Setting(engine_mhz, memory_mhz, slopes, ipc)


def wang_chu_entry(settings: Sequence[Setting], device: Device) -> dict[str, Any]:
    """A row of wang_chu_gpus.json: latencies and delays as Wang and Chu 2018, section IV-A.

    DRAM parameters are lines through the settings of the clocks, Eq. (4) and Table III; with one
    setting the latency is taken to follow the engine alone and the delay the memory alone, which
    the note says. The issue and FP64 delays follow from the device's lanes.
    """
    engine = np.array([s.engine_mhz for s in settings])
    memory = np.array([s.memory_mhz for s in settings])
    cycles = {n: np.array([s.cycles[n] for s in settings]) for n in settings[0].cycles}
    latency, delay = cycles["dram_latency"], cycles["dram_delay"]
    note = f"Measured at {len(settings)} settings of the clocks."
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
        **{n: float(np.median(cycles[n])) for n in cycles if not n.startswith("dram")},
        "instruction_factor": 1,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": "mlscale collect --micro",
        "note": note,
    }


def compute_unit(measured: Setting, info: DeviceInfo, issue_per_cycle: float) -> ComputeUnit:
    """The latencies and rates of a CU from Volkov's kernel and the read of DRAM.

    A and L: the line intensity A + L through the cycles of a loop of one warp alone. T: the median
    of the rates of arithmetic near the highest one. B: one warp's load, in the transactions that
    the DRAM gives a CU.
    """
    loops = {a: (a + 1) / ipc for (warps, a), ipc in measured.ipc.items() if warps == 1}
    arithmetic, memory = np.polyfit(np.array([*loops]), np.array([*loops.values()]), 1)
    rates = np.array([ipc * a / (a + 1) for (_, a), ipc in measured.ipc.items()])
    transactions = info.wave_size * _WORD_BYTES / SECTOR_BYTES
    return ComputeUnit(
        arithmetic_latency_cycles=max(float(arithmetic), 1.0),
        memory_latency_cycles=max(float(memory), 1.0),
        issue_per_cycle=issue_per_cycle,
        arithmetic_per_cycle=float(np.median(rates[rates >= _NEAR_THE_TOP * rates.max()])),
        memory_per_cycle=1 / (transactions * measured.cycles["dram_delay"]),
    )
