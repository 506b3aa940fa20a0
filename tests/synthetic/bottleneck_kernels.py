"""Made kernels of the bottleneck curve itself, with nvprof's or Table II's counters."""

from dataclasses import replace

import numpy as np

from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from synthetic import profiled

CLOCKS = ConfigGrid((16,), (500.0, 700.0, 900.0, 1100.0), (1000.0, 2000.0, 3000.0, 4000.0))
PEAK_BYTES_PER_MS_AND_MHZ = 256 / 8 * 2 * 1e3  # a GTX 980's: 256 bits, 2 transfers per cycle


def measurements(
    kernels: int = 16, seed: int = 0, sharpness: float = 4.0, grid: ConfigGrid = CLOCKS
) -> Measurements:
    """GTX 980 kernels with memory shares u ** sharpness, u the DRAM use, up to 90 %.

    A third of the kernels reach that.

    Power is 30 W + 2 W per 100 MHz of engine + (base energy) x clock-independent work / time.
    """
    random = np.random.default_rng(seed)
    base = grid.mid
    use = np.minimum(1, np.linspace(0.05, 1.5, kernels))
    random.shuffle(use)
    share = use**sharpness
    _, engine, memory = np.meshgrid(grid.cu_count, grid.engine_mhz, grid.memory_mhz, indexing="ij")
    parts = np.stack(
        [
            (1 - share)[:, None, None, None] * (base.engine_mhz / engine) ** sharpness,
            share[:, None, None, None] * (base.memory_mhz / memory) ** sharpness,
        ]
    )
    factor = parts.sum(axis=0) ** (1 / sharpness)
    base_ms = random.uniform(0.5, 5.0, kernels)
    sectors = 0.9 * use * PEAK_BYTES_PER_MS_AND_MHZ * base.memory_mhz * base_ms / 32
    counters = {"dram_read_transactions": 0.7 * sectors, "dram_write_transactions": 0.3 * sectors}
    dynamic = random.uniform(40, 90, kernels)[:, None, None, None]
    time_ms = base_ms[:, None, None, None] * factor
    power_w = 30 + 0.02 * engine + dynamic / factor
    return profiled.measurements(grid, time_ms, power_w, counters, device="gtx980")


def with_cu_axis(kernels: int = 16, seed: int = 0) -> Measurements:
    """Kernels of the simulated GPU, Table II's counters; many waves: core time ~ 1 / CUs.

    The issue rate sets the core's share, (issue / 0.3) ** 3; the rest scales with the engine.
    """
    grid = ConfigGrid((4, 8, 16, 32), (400.0, 700.0, 1000.0), (400.0, 700.0))
    random = np.random.default_rng(seed)
    issue = np.linspace(0.02, 0.3, kernels)
    random.shuffle(issue)
    share = ((issue / 0.3) ** 3)[:, None, None, None]
    cu, engine, _ = np.meshgrid(grid.cu_count, grid.engine_mhz, grid.memory_mhz, indexing="ij")
    base = grid.mid
    factor = (share * (base.cu_count / cu) ** 3 + 1 - share) ** (1 / 3) * base.engine_mhz / engine
    counters = {
        "ReadBandwidth": np.full(kernels, 1e6),
        "WriteBandwidth": np.full(kernels, 1e6),
        "V_IPC": issue,
        "NumWorkGroups": np.full(kernels, 1e7),
    }
    time_ms = random.uniform(0.01, 1, kernels)[:, None, None, None] * factor
    return profiled.measurements(grid, time_ms, None, counters, device="simulated-gcn3")


def checkered(table: Measurements, sizes: np.ndarray) -> Measurements:
    """The table with what no curve gives: times x exp(+-size) on a checkerboard of the clocks.

    sizes (K,) of the kernels; the base stays as it is.
    """
    _, engine, memory = np.indices(table.grid.shape)
    board = np.where((engine + memory) % 2 == 0, 1.0, -1.0)
    board[table.grid.index(table.grid.mid)] = 0
    factors = np.exp(sizes[:, None, None, None] * board)
    return replace(table, time_samples=table.time_samples * factors)


def with_occupancy(table: Measurements, occupancy: np.ndarray) -> Measurements:
    """The table with the counter achieved_occupancy (K,)."""
    shape = (*table.counter_samples.shape[:-1], 1)
    column = np.broadcast_to(occupancy[:, None, None, None, None], shape)
    return replace(
        table,
        counter_names=(*table.counter_names, "achieved_occupancy"),
        counter_samples=np.concatenate([table.counter_samples, column], axis=-1),
    )


def edge(grid: ConfigGrid) -> HardwareConfig:
    """The grid's first configuration."""
    return grid.config((0, 0, 0))
