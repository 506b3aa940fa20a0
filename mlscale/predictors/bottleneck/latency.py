"""Kernels that use no unit of their GPU: they wait for latencies, of DRAM or of the core.

No counter at hand tells the one from the other, and they follow different clocks. On the GPUs that
were learnt from, such kernels' times are known; on another GPU all that is sure is that each part
of the time stays, or follows one of the clocks.
"""

from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.counters.kernel_use import KernelUse
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces

LEAST_USE = 0.3  # of the busiest unit's peak
FLAG = (
    f"no unit of the GPU that the profile tells is used by {LEAST_USE:.0%}: which clock such a "
    "kernel follows is not known on this GPU; the interval holds everything from no scaling to "
    "full scaling with a clock; a second measured clock (--also) tells"
)


def waits(profiles: Profiles, use: KernelUse) -> Mask:
    """Return which kernels use no unit by LEAST_USE and have no further measured point, (K,).

    Units that the profile does not tell do not count; where it does not tell the core's use by
    issue or throughput, nobody can say so of a kernel.
    """
    units = np.array([use.memory, use.issue, use.l2, use.texture, use.shared, use.fp64])
    is_idle = ~(units >= LEAST_USE).any(axis=0) & ~np.isnan(use.issue)
    for point in profiles.points:
        is_idle &= np.isnan(point.time_ms)
    return np.asarray(is_idle)


def with_scaling_bounds(surfaces: Surfaces, rows: Mask) -> Surfaces:
    """Return surfaces of time whose intervals hold the scaling bounds of those kernels (K,).

    They are flagged. Without intervals the surfaces stay as they are.
    """
    if surfaces.low is None or surfaces.high is None or not rows.any():
        return surfaces
    least, most = scaling_bounds(surfaces.grid, surfaces.base)
    low, high = surfaces.low.copy(), surfaces.high.copy()
    low[rows], high[rows] = np.minimum(low[rows], least), np.maximum(high[rows], most)
    each = zip(surfaces.flags, rows.tolist(), strict=True)
    flags = tuple((*own, FLAG) if waits else own for own, waits in each)
    return replace(surfaces, low=low, high=high, flags=flags)


def scaling_bounds(grid: ConfigGrid, base: HardwareConfig) -> tuple[Floats, Floats]:
    """Return the least and most time ratio of a sum of parts, (C, E, M) each.

    A part is constant, or follows the memory clock, or the core: engine clock times CUs.
    """
    settings = grid.settings()
    core = base.cu_count * base.engine_mhz / (settings["cu_count"] * settings["engine_mhz"])
    memory = base.memory_mhz / settings["memory_mhz"]
    parts = np.array([np.ones_like(core), core, memory]).reshape(3, *grid.shape)
    return parts.min(axis=0), parts.max(axis=0)
