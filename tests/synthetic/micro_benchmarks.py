"""Micro-benchmarks' samples of a simulated GPU, with noise.

The GPU meets the classical bounds of Volkov's survey and Wang and Chu's Eq. (4); its kernels take
a launch on top, and every time is off by 1 % (normal). The probes are those that the command runs.
"""

import numpy as np
import pandas as pd

from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import probes
from mlscale.papers.volkov import ComputeUnit, classical_bounds
from synthetic import warps

GPU = DeviceInfo("cuda", "NVIDIA GeForce GTX 980", "u", "d", 16, 2 << 20, 32, sensors="nvml")
PROBES = [probe for probe, _ in probes(GPU)]
CLOCKS = [(600.0, 2000.0), (1200.0, 2000.0), (600.0, 3500.0), (1200.0, 3500.0)]
LAUNCH_MS, NOISE = 0.004, 0.01


def true_cycles(engine: float, memory: float) -> dict[str, float]:
    latency, delay = warps.dram(warps.GTX_980, engine, memory)
    return {
        "dram_latency": latency,
        "dram_delay": delay,
        "l2_latency": 222.0,
        "l2_delay": 1.2,
        "shared_latency": 28.0,
        "shared_delay": 1.0,
    }


def true_unit(engine: float, memory: float) -> ComputeUnit:
    """B: 32 lanes x 4 bytes are four sectors, each of which waits for the DRAM delay."""
    cycles = true_cycles(engine, memory)
    return ComputeUnit(6, cycles["dram_latency"], 4, 4, 1 / (4 * cycles["dram_delay"]))


def simulated(engine: float, memory: float, seed: int) -> pd.DataFrame:
    """The samples of the command at a setting of the clocks."""
    random = np.random.default_rng(seed)
    cycles, unit = true_cycles(engine, memory), true_unit(engine, memory)
    rows = []
    for probe in PROBES:
        if probe.quantity == "volkov":
            needed = probe.work / float(classical_bounds(probe.warps, probe.intensity, unit))
        else:
            needed = probe.work * cycles[probe.quantity]
        exact = needed / engine / 1e3 + LAUNCH_MS
        time_ms = exact * (1 + NOISE * random.standard_normal())
        rows.append((probe.kernel, time_ms, engine, memory))
    return pd.DataFrame(rows, columns=["kernel", "time_ms", "engine_mhz", "memory_mhz"])


SAMPLES = [simulated(*clocks, seed) for seed, clocks in enumerate(CLOCKS)]
