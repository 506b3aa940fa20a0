"""Made sampled profiles with a known truth: p, each kernel's share, the voltages, the watts.

Time and power are the closed forms written out here, not mlscale's. A kernel's share c follows from
its DRAM share d, and its three parts of power from c, so that inputs tell the latents.
"""

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from synthetic import profiled

CLOCKS = (600.0, 750.0, 900.0, 1050.0, 1200.0, 1350.0, 1500.0)
GRID = ConfigGrid((40,), CLOCKS, (1000.0,))
TOP = GRID.config((0, 6, 0))
MIDDLE = GRID.mid
P = 2.5
VOLTAGE = np.interp(np.array(CLOCKS) / 1500, [0.7, 1.0], [1.0, 1.3])  # relative, flat, then a line


def truth(count: int = 60, seed: int = 0) -> dict[str, np.ndarray]:
    """Each kernel's shares (count,): active, dram, c at the top clock; and watts (3, count)."""
    random = np.random.default_rng(seed)
    dram, active = random.uniform(0, 0.9, count), random.uniform(0.6, 1, count)
    share = 1 / (1 + np.exp(-(4 - 6 * dram)))
    watts = np.array([40 + 0 * dram, 150 * active * (1 - 0.5 * dram), 90 * dram])
    return {"active": active, "dram": dram, "share": share, "watts": watts}


def ratios(kernels: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """True time ratios to the top clock (K, N), and watts (K, N)."""
    slowdown = 1500 / np.array(CLOCKS)
    share = kernels["share"][:, None]
    time = (1 - share + share * slowdown**P) ** (1 / P)
    constant, clocked, memory = (part[:, None] for part in kernels["watts"])
    dynamic = clocked * VOLTAGE**2 / VOLTAGE[-1] ** 2 / slowdown
    return time, constant + dynamic + memory / time


def measurements(
    count: int = 60, seed: int = 0, noise: float = 0.0, per_application: int = 3
) -> Measurements:
    """A table of made kernels; noise: standard deviation of the logs of times and powers."""
    kernels = truth(count, seed)
    random = np.random.default_rng(seed + 1000)
    time, watts = ratios(kernels)
    time = time * random.uniform(1, 50, count)[:, None]
    noisy = [values * np.exp(noise * random.normal(size=time.shape)) for values in (time, watts)]
    return profiled.measurements(
        *(GRID, *(values[:, None, :, None] for values in noisy)),
        {"sm_active": kernels["active"], "dram_active": kernels["dram"]},
        kernels=tuple(f"kernel{k}" for k in range(count)),
        applications=tuple(f"application{k // per_application}" for k in range(count)),
        metadata={"origin": "made", "profile_kind": "sampled"},
    )
