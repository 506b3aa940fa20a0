"""Made kernels of known truth: groups that scale by a known law, with counters that tell which."""

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from synthetic import profiled

GRID = ConfigGrid((4, 8, 16), (400.0, 600.0, 800.0, 1000.0), (400.0, 700.0, 1000.0))

# Powers of (CU count, engine clock, memory clock) in the time of a kernel of each group.
LAWS = {
    "compute": (-1.0, -1.0, 0.0),
    "bandwidth": (0.0, 0.0, -1.0),
    "latency": (0.0, -0.8, -0.1),
    "contended": (0.3, -0.5, -0.2),
}


def application(kernel: str) -> str:
    """The application of a kernel: 'app-latency-b' of latency1, as no variants are meant."""
    group = kernel.rstrip("0123456789")
    return f"app-{group}-{chr(ord('a') + int(kernel.removeprefix(group)))}"


def surface(law: tuple[float, float, float], grid: ConfigGrid = GRID) -> np.ndarray:
    """Time (C, E, M) of a power law, 1 at the first configuration."""
    cu, engine, memory = np.meshgrid(grid.cu_count, grid.engine_mhz, grid.memory_mhz, indexing="ij")
    time = cu ** law[0] * engine ** law[1] * memory ** law[2]
    return time / time[0, 0, 0]


def measurements(
    per_group: int = 3,
    grid: ConfigGrid = GRID,
    laws: dict[str, tuple[float, float, float]] = LAWS,
    power: bool = True,
    device: str = "made-gpu",
    seed: int = 0,
) -> Measurements:
    """Kernels of each group, each an application of its own; times differ by a factor only.

    Counters `busy_GROUP` are near 1 for the kernel's own group and near 0 for the others, the
    same at every configuration. Power is 100 W x (time at base-free law) ** -0.5.
    """
    random = np.random.default_rng(seed)
    names, times, busy = [], [], []
    for position, (group, law) in enumerate(laws.items()):
        for k in range(per_group):
            names.append(f"{group}{k}")
            times.append(surface(law, grid) * random.uniform(0.5, 5.0))
            is_group = np.zeros(len(laws))
            is_group[position] = 1.0
            busy.append(is_group + random.uniform(0, 0.1, len(laws)))
    time = np.array(times)
    relative = time / time[:, :1, :1, :1]
    return profiled.measurements(
        *(grid, time, 100.0 * relative**-0.5 if power else None),
        {f"busy_{group}": shares for group, shares in zip(laws, np.transpose(busy), strict=True)},
        device=device,
        kernels=tuple(names),
        applications=tuple(map(application, names)),
    )
