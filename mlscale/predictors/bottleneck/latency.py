"""Kernels that use no unit of their GPU: they wait for latencies, of DRAM or of the core.

Little's law tells the one from the other: the requests in flight are their rate times the latency
of DRAM. If there are as many as waves, each wave waits for DRAM all the time; if there are far
fewer, the waves wait for the core. On a GPU that was learnt from, such kernels' times are known. On
another one this gives their values, and their intervals hold all that parts of the time may do:
stay as they are, or follow one of the clocks.
"""

from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.counters.kernel_use import KernelUse, device_with_peaks
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, scaling_bounds
from mlscale.predictors.conditioning import SurfacePrior
from mlscale.predictors.intervals import reaching

LEAST_USE = 0.3  # of the busiest unit's peak
# A DRAM access without contention: Wang and Chu (2018), Eq. (4), measured on a GTX 980, of which
# DRAM's part is taken at the highest memory clock that they had, 1000 MHz.
ENGINE_CYCLES, DRAM_US = 277.32, 222.78 / 1000
MEMORY_SHARE = 0.5  # of DRAM's part that follows the memory clock: theirs does so by all
BYTES_PER_LANE = 4  # that a request moves
FLAG = (
    f"no unit of the GPU that the profile tells is used by {LEAST_USE:.0%}: which clock such a "
    "kernel follows is only estimated on this GPU; the interval holds everything from no scaling "
    "to full scaling with a clock; a second measured clock (--also) tells"
)
SHORT_MS = 0.015  # chosen on one GPU: docs/decisions/0019-intervals.md
SHORT_FLAG = (
    f"a launch of less than {1e3 * SHORT_MS:g} us: an unknown part of it is the launch itself, "
    "which follows no clock; the interval reaches no scaling"
)


def waits(profiles: Profiles, use: KernelUse) -> Mask:
    """Return which kernels use no unit by LEAST_USE and have no further measured point, (K,).

    Units that the profile does not tell do not count; where it does not tell the core's use by
    issue or throughput, nobody can say so of a kernel.
    """
    units = np.array([use.memory, use.issue, use.l2, use.texture, use.shared, use.fp64])
    is_idle = ~(units >= LEAST_USE).any(axis=0) & ~np.isnan(use.issue)
    return np.asarray(is_idle & ~profiles.has_further_time)


def dram_share(profiles: Profiles, use: KernelUse) -> Floats:
    """Return the share of the waves' time that waits for DRAM, (K,), 0 to 1, by Little's law.

    It is the requests in flight over the resident waves: Volkov (PPoPP 2018) explains occupancy by
    it. A request is one wave's, of 4 bytes a lane. Without occupancy a launch is taken to fill the
    GPU as far as its waves go; NaN where that is not known either.
    """
    device, base = device_with_peaks(profiles.device), profiles.base
    bytes_per_s = use.memory * 1e9 * device.peak_bandwidth_gb_per_s(base.memory_mhz)
    requests_per_us = bytes_per_s / (BYTES_PER_LANE * device.wave_size) / 1e6
    most = base.cu_count * device.max_waves_per_cu
    launched = use.workgroups * use.waves_per_workgroup
    if not (profiles.has_counter("workgroup_size") or profiles.has_counter("waves")):
        launched = np.full_like(launched, np.nan)
    waves = np.minimum(np.fmin(launched, most * use.occupancy), most)
    latency_us = sum(_parts_us(base))
    return np.minimum(requests_per_us * latency_us / np.maximum(waves, 1), 1)


def log_ratios(share: Floats, grid: ConfigGrid, base: HardwareConfig) -> Floats:
    """Return log time ratios (K, N) of kernels that wait for DRAM for that share of the time (K,).

    The rest follows the engine clock. CU counts change nothing.
    """
    settings = grid.settings()
    engine = base.engine_mhz / settings["engine_mhz"]
    memory = base.memory_mhz / settings["memory_mhz"]
    of_engine, of_dram = _parts_us(base)
    dram = of_engine * engine + of_dram * (1 + MEMORY_SHARE * (memory - 1))
    dram = dram / (of_engine + of_dram)
    return np.log(np.outer(share, dram) + np.outer(1 - share, engine))


def _parts_us(base: HardwareConfig) -> tuple[float, float]:
    """Return an access' time at the engine clock, and in DRAM, [us]."""
    return ENGINE_CYCLES / base.engine_mhz, DRAM_US


def shifted(
    prior: SurfacePrior, grid: ConfigGrid, profiles: Profiles, use: KernelUse
) -> SurfacePrior:
    """Return a prior of time whose waiting kernels scale as `log_ratios` says.

    Kernels whose waves are not known stay as they are, and so do all at other CU counts.
    """
    share = dram_share(profiles, use)
    rows = waits(profiles, use) & ~np.isnan(share)
    if not rows.any() or grid.cu_count != (profiles.base.cu_count,):
        return prior
    shift = log_ratios(share, grid, profiles.base) - prior.predicted()
    shift[~rows] = 0
    return replace(prior, log_ratios=lambda latents: prior.log_ratios(latents) + shift)


def holding_bounds(surfaces: Surfaces, profiles: Profiles, use: KernelUse) -> Surfaces:
    """Return surfaces of time whose intervals hold what is not known of waiting and short kernels.

    Those of waiting kernels hold the scaling bounds; those of kernels whose launches are shorter
    than SHORT_MS hold no scaling, unless a further point was measured. Both are flagged. Without
    intervals the surfaces stay as they are.
    """
    is_waiting = waits(profiles, use)
    is_short = (profiles.time_ms < SHORT_MS) & ~profiles.has_further_time
    least, most = scaling_bounds(surfaces.grid, surfaces.base)
    surfaces = _with_bounds(surfaces, is_waiting, (least, most), FLAG)
    same = np.ones_like(least)
    return _with_bounds(surfaces, is_short, (same, same), SHORT_FLAG)


def _with_bounds(
    surfaces: Surfaces, rows: Mask, bounds: tuple[Floats, Floats], flag: str
) -> Surfaces:
    if surfaces.low is None or not rows.any():
        return surfaces
    each = zip(surfaces.flags, rows.tolist(), strict=True)
    flags = tuple((*own, flag) if is_told else own for own, is_told in each)
    return replace(reaching(surfaces, rows, bounds), flags=flags)
