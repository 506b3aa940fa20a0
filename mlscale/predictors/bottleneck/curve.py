"""The bottleneck curve: time as a p-norm of what three parts of the GPU would take.

A kernel's time is (rest^p + memory^p + core^p)^(1/p), relative to the base:
- memory: DRAM, 1 / memory clock;
- core, only with several CU counts: load / engine clock, where load is the work of the fullest CU;
- rest: all else that scales with the engine clock, turns^x / engine clock. turns is how often a
  CU's waves have to take turns; x is 1 for what is inside the CUs, less where CUs wait for one
  another (L2, atomics), and 0 with one CU count. With one CU count only what the busiest unit of
  the core explains follows the engine clock; what no unit explains waits.
Their shares at the base (p-th powers that sum to 1) say everything about a kernel, and are read
off its measured utilisations, of the largest that kernels of the GPU reach; `latents`, a kernel's
unknown numbers, are added to the shares' log odds. Decision 0008 says why.

Each formula stands here once, for NumPy, which predicts, and for torch, which trains: `xp` is the
one or the other. K kernels, N configurations, J shares (memory; with a CU axis also core); where
torch trains several fits at once, their axis comes before all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.kernel_use import (
    SCHEDULERS,
    KernelUse,
    UseSources,
    device_with_peaks,
    inputs,
    kernel_use,
)
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, step_weights
from mlscale.data.profiles import Profiles

Array = Any  # NumPy's or torch's

TOP = 3  # peaks are the mean of so many largest uses
LEAST_PEAK = 1e-6  # where no kernel shows a use
TYPICAL_SOFTNESS = 0.7  # waves that can issue twice what very many can, each
LEAST_USE = 1e-3  # a use below is not told from none
LEFT = 0.02  # the largest use leaves this share of time^p to the other parts
LEAST_SHARE = 1e-9
TURNS_SCALE = 0.3  # what a unit of its latent adds to a kernel's exponent of the turns
CLOCK_TABLES = ("cu", "engine", "memory")
# A DRAM access without contention: Wang and Chu (2018), Eq. (4), measured on a GTX 980, of which
# DRAM's part is taken at the highest memory clock that they had, 1000 MHz.
ENGINE_CYCLES, DRAM_US = 277.32, 222.78 / 1000
MEMORY_SHARE = 0.5  # so much of DRAM's part follows the memory clock; all of theirs does
BYTES_PER_LANE = 4  # moved by a request
LARGEST_LOAD = 0.98  # a queue before DRAM is told up to this use
# Prior means: how sharp bottlenecks are, by the number of shares, and how soft the CUs' capacity.
SHARPNESS, SOFTNESS = {1: float(np.log(5)), 2: float(np.log(3))}, float(np.log(TYPICAL_SOFTNESS))


@dataclass(frozen=True, eq=False)
class GpuPeaks:
    """One GPU at one base: its grid, and the largest uses that kernels reach on it.

    memory_peak: of the DRAM bandwidth; issue_peak: of a CU's issue, for many waves.
    """

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    memory_peak: float
    issue_peak: float

    @classmethod
    def from_use(cls, device: str, grid: ConfigGrid, base: HardwareConfig, use: KernelUse) -> Self:
        """Take the peaks that some kernels show at the base; no times are looked at."""
        waves = waves_per_simd(use, np.array([float(base.cu_count)]))[:, 0]
        issue = active_issue(use, base.cu_count) / (1 + TYPICAL_SOFTNESS / waves)
        return cls(device, grid, base, _top(use.memory), _top(issue))

    def inputs(self, use: KernelUse) -> dict[str, Floats]:
        """Return the named inputs of kernels on this GPU, (K,) each, NaN where missing."""
        return inputs(use, use.memory / self.memory_peak)


def _top(values: Floats) -> float:
    """Return the mean of the largest few, and above 0."""
    return float(max(np.sort(np.nan_to_num(values))[-TOP:].mean(), LEAST_PEAK))


@dataclass(frozen=True, eq=False)
class KernelLoad:
    """What kernels ask of the parts of a GPU, at the base unless said otherwise.

    memory, issue (K,): use of the DRAM bandwidth, and of the issue of the CUs that have work, as
    a share of what the GPU reaches. waves_at_base (K,) and waves (K, C): waves per SIMD of the
    fullest CU, at C CU counts. unit (K,): use of the busiest unit of the CUs that have work, as a
    share of its peak. turns (K, C): log of how often the fullest CU is filled with waves, relative
    to the base; less than once counts as once. busiest (K,): use of the core's busiest unit, L2 and
    L1 among them. waiting (K, F): log time, in engine cycles, of what waits.
    """

    memory: Array
    issue: Array
    waves_at_base: Array
    waves: Array
    unit: Array
    turns: Array
    busiest: Array
    waiting: Array

    @classmethod
    def from_traits(
        cls, traits: "KernelTraits", gpu: GpuPeaks, cu_count: Floats, shares: int
    ) -> Self:
        """Take what kernels use. A launch that is not known fills every CU alike.

        shares: of the model; one of several CU counts has no waiting part, on any grid.
        """
        use, base = traits.use, gpu.base.cu_count
        waves, at_base = waves_per_simd(use, cu_count), waves_per_simd(use, np.array([float(base)]))
        held = np.fmax(use.resident_waves, use.waves_per_workgroup)[:, None] / SCHEDULERS
        busiest = np.fmax.reduce([use.issue, use.l2, use.texture, use.shared, use.fp64, use.unit])
        turns = np.log(np.fmax(waves / held, 1)) - np.log(np.fmax(at_base / held, 1))
        return cls(
            memory=use.memory / gpu.memory_peak,
            issue=active_issue(use, base) / gpu.issue_peak,
            waves_at_base=at_base[:, 0],
            waves=waves,
            unit=np.nan_to_num(use.unit) / active_share(use, base),
            turns=turns,
            busiest=np.where(np.isnan(use.issue), 1.0, busiest),
            waiting=traits.waiting(gpu) if shares == 1 else np.zeros((len(use.memory), 1)),
        )


def waves_per_simd(use: KernelUse, cu_count: Floats) -> Floats:
    """Return waves per SIMD of the fullest CU, (K, C): a CU without a workgroup idles.

    A SIMD works at one wave at least.
    """
    workgroups = np.where(np.isnan(use.workgroups), 1e9, use.workgroups)[:, None]
    waves = np.where(np.isnan(use.waves_per_workgroup), 1.0, use.waves_per_workgroup)[:, None]
    return np.asarray(np.maximum(np.maximum(workgroups / cu_count, 1) * waves / SCHEDULERS, 1))


def active_issue(use: KernelUse, base_cu_count: int) -> Floats:
    """Return the issue rate of the CUs that have work, (K,); 0 where it is not known."""
    return np.nan_to_num(use.issue) / active_share(use, base_cu_count)


def active_share(use: KernelUse, base_cu_count: int) -> Floats:
    """Return the share of the CUs that have work, (K,); 1 where the launch is not known."""
    return np.asarray(np.fmin(1, use.workgroups / base_cu_count))


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
    latency_us = ENGINE_CYCLES / base.engine_mhz + DRAM_US
    return np.minimum(requests_per_us * latency_us / np.maximum(waves, 1), 1)


def latency_log_ratios(
    share: Floats, load: Floats, grid: ConfigGrid, base: HardwareConfig
) -> Floats:
    """Return log time ratios (K, N) of what waits for DRAM for that share of the time (K,).

    The rest follows the engine clock. load (K,): use of DRAM, as a share of what the GPU reaches;
    the queue before it, of random arrivals and equal services (M/D/1), follows the memory clock.
    """
    settings = grid.settings()
    engine = base.engine_mhz / settings["engine_mhz"]
    memory = base.memory_mhz / settings["memory_mhz"]
    engine_us, busy = ENGINE_CYCLES / base.engine_mhz, np.minimum(load, LARGEST_LOAD)
    access_us = engine_us * engine + DRAM_US * (1 + MEMORY_SHARE * (memory - 1))
    queue = busy / (2 * (1 - busy))  # over the access without it
    dram = (access_us / (engine_us + DRAM_US) + np.outer(queue, memory)) / (1 + queue)[:, None]
    share = np.minimum(share * (1 + queue), 1)[:, None]
    return np.asarray(np.log(share * dram + (1 - share) * engine))


@dataclass(frozen=True, eq=False)
class KernelTraits:
    """What profiles tell of K kernels, before any model of them; dram_share (K,): see there."""

    use: KernelUse
    dram_share: Floats

    @classmethod
    def from_profiles(cls, profiles: Profiles, trained: UseSources | None = None) -> Self:
        """Take those of profiled kernels. Raises InputError, see `kernel_use`."""
        use = kernel_use(profiles, trained)
        return cls(use, dram_share(profiles, use))

    def select(self, rows: Indices) -> Self:
        """Return the same of some kernels."""
        use = KernelUse(**{name: values[rows] for name, values in vars(self.use).items()})
        return type(self)(use, self.dram_share[rows])

    def waiting(self, gpu: GpuPeaks) -> Floats:
        """Return the log time in engine cycles of what waits, (K, F); 0 where that is not known."""
        clocks, share = replace(gpu.grid, cu_count=(gpu.base.cu_count,)), self.dram_share
        load = self.use.memory / gpu.memory_peak
        logs = latency_log_ratios(np.nan_to_num(share), load, clocks, gpu.base)
        return logs + np.log(clocks.settings()["engine_mhz"] / gpu.base.engine_mhz)


@dataclass(frozen=True, eq=False)
class GridRatios:
    """The configurations of a grid relative to a base: logs of the ratios.

    engine, memory (F,): of the clocks of each pair of clocks; cu_count (C,): the CU counts
    themselves. tables: for each axis the weights of a trained table's S steps, (S, C), (S, F)
    and (S, F); a step at the base has none, and between steps the logarithm is interpolated.
    """

    engine: Array
    memory: Array
    cu_count: Array
    tables: tuple[Array, ...]

    @classmethod
    def from_grid(
        cls, grid: ConfigGrid, base: HardwareConfig, trained: ConfigGrid | None = None
    ) -> Self:
        """Take those of a grid; trained: that of the tables, None where it is the same."""
        _, engines, memories = grid.shape
        cu_count = np.array(grid.cu_count, float)
        engine_mhz = np.repeat(grid.engine_mhz, memories)
        memory_mhz = np.tile(grid.memory_mhz, engines)
        tables = [
            table_weights(trained or grid, axis, base, settings)
            for axis, settings in zip(AXES, (cu_count, engine_mhz, memory_mhz), strict=True)
        ]
        return cls(
            engine=np.log(engine_mhz / base.engine_mhz),
            memory=np.log(memory_mhz / base.memory_mhz),
            cu_count=cu_count,
            tables=tuple(tables),
        )


def table_weights(
    trained: ConfigGrid, axis: str, base: HardwareConfig, to: Floats, going_on: Sequence[str] = ()
) -> Floats:
    """Return weights (S, T) of a table's S steps at T settings, see `step_weights`; 0 at a base."""
    steps = np.array(getattr(trained, axis))
    return np.where(steps == getattr(base, axis), 0.0, step_weights(steps, to, going_on)).T


def log_capacity(xp: Any, waves: Array, softness: Array) -> Array:
    """Return the log of what a CU can issue with so many waves per SIMD, relative to very many.

    Few contend less and issue faster, so a CU's work of x waves is x / capacity(x).
    """
    return xp.log(1 + softness / waves)


def physics_logit(xp: Any, log_use: Array, sharpness: Array) -> Array:
    """Return what a use says of the share: its log odds, (K,).

    A part in use for u of the time takes the share u^p of time^p, without a floor: 0.001 of it
    makes time three times as long at a twelfth of the memory clock.
    """
    log_power = sharpness * xp.clip(log_use, float(np.log(LEAST_USE)), 0.0)
    return log_power - xp.log(1 - xp.exp(log_power) + LEFT)


def waiting_slowdown(xp: Any, load: KernelLoad, sharpness: Array) -> Array:
    """Return the log time of the rest in engine cycles, (K, F), by the share of it that waits.

    That is what neither DRAM nor the busiest unit of the core explains.
    """
    memory = xp.clip(load.memory, LEAST_USE, 1.0) ** sharpness
    busiest = xp.clip(load.busiest, LEAST_USE, 1.0) ** sharpness
    explained = xp.clip(busiest / (1 - memory + LEFT), None, 1.0)[..., None]
    p = sharpness[..., None]
    return xp.log(explained + (1 - explained) * xp.exp(p * load.waiting)) / p


def p_norm(
    xp: Any, logits: list[Array], slowdowns: list[Array], sharpness: Array, rest: Array = 0.0
) -> Array:
    """Return log time in engine cycles (K, C, F): log sum share x slowdown^p over parts, / p.

    logits: the log odds of each share (K,) against the rest's 0. slowdowns of these parts, and
    that of the rest: log time in engine cycles, arrays that broadcast to (K, C, F). sharpness: p,
    (1,).
    """
    p = sharpness[..., None, None]
    odds = [xp.exp(logit) for logit in logits]
    rest_share = 1 / (1 + sum(odds))
    total = rest_share[..., None, None] * xp.exp(p * rest)
    for part, slowdown in zip(odds, slowdowns, strict=True):
        total = total + (part * rest_share)[..., None, None] * xp.exp(p * slowdown)
    return xp.log(total) * (1 / p)  # a quotient's gradient takes twice the passes


@dataclass(frozen=True, eq=False)
class BottleneckCurve:
    """The curve of K kernels on one GPU, all but their latents.

    sharpness (1,); logits: of each share (K,); rest (F,): log time of what scales with the engine
    clock alone, relative to the base; slowdowns: see `p_norm`; waiting (K, F): that of the rest by
    what waits. turning (1,): the exponent of the
    turns (K, C) that all kernels have; cu_table (C,): what is added to the log time.
    """

    xp: Any
    sharpness: Array
    logits: list[Array]
    rest: Array
    slowdowns: list[Array]
    waiting: Array
    turning: Array
    turns: Array
    cu_table: Array

    @classmethod
    def from_values(
        cls,
        xp: Any,
        values: dict[str, Array],
        number: int | None,
        load: KernelLoad,
        ratios: GridRatios,
    ) -> Self:
        """Make a curve of the trained numbers by name; see `curve_priors`.

        number: of the GPU among the trained ones; None for a GPU without training data, whose
        clocks are assumed to be what they are called.
        """
        log_sharpness, offset = values["sharpness"], 0 * values["gain"]
        cu_table, engine, memory = 0 * ratios.cu_count, 0 * ratios.engine, 0 * ratios.memory
        if number is not None:
            log_sharpness = log_sharpness + values["gpu_sharpness"][..., number : number + 1]
            offset = values["offset"][..., number, :]
            cu_table, engine, memory = (
                values[f"{name}{number}"] @ weights
                for name, weights in zip(CLOCK_TABLES, ratios.tables, strict=True)
            )
        sharpness, softness = xp.exp(log_sharpness), xp.exp(values["softness"])
        rest = -(ratios.engine + engine)
        waiting = waiting_slowdown(xp, load, sharpness)
        log_uses = [xp.log(xp.clip(load.memory, LEAST_SHARE, None))]
        slowdowns = [(-(ratios.memory + memory) - rest)[..., None, None, :]]
        gain = xp.exp(values["gain"])
        if gain.shape[-1] > 1:
            at_base, waves = load.waves_at_base, load.waves
            capacity = log_capacity(xp, at_base, softness)
            issue = xp.log(xp.clip(load.issue, LEAST_SHARE, None))
            unit = xp.log(xp.clip(load.unit, LEAST_SHARE, None))
            log_uses.append(xp.maximum(issue - values["capacity"] - capacity, unit))
            more_waves = xp.log(waves / at_base[..., None])
            more_capacity = log_capacity(xp, waves, softness[..., None]) - capacity[..., None]
            slowdowns.append((more_waves - more_capacity)[..., None])
        logits = [
            gain[..., j : j + 1] * physics_logit(xp, log_use, sharpness) + offset[..., j : j + 1]
            for j, log_use in enumerate(log_uses)
        ]
        turning = values["turning"]
        return cls(xp, sharpness, logits, rest, slowdowns, waiting, turning, load.turns, cu_table)

    def log_time(self, latents: Array) -> Array:
        """Return log time ratios (K, N) at `latents` (J, K), with a CU axis (J + 1, K).

        The last of them then is the kernel's own share in the exponent of the turns.
        """
        shares = len(self.logits)
        logits = [logit + latents[..., j, :] for j, logit in enumerate(self.logits)]
        rest = self.waiting[..., None, :]
        if shares > 1:
            exponent = self.turning + TURNS_SCALE * latents[..., shares, :]
            rest = rest + (exponent[..., None] * self.turns)[..., None]
        surfaces = p_norm(self.xp, logits, self.slowdowns, self.sharpness, rest)
        surfaces = surfaces + self.rest[..., None, None, :] + self.cu_table[..., None, :, None]
        *outer, cus, clocks = surfaces.shape
        return surfaces.reshape(*outer, cus * clocks)


def latent_count(shares: int) -> int:
    """Return a kernel's number of latents: one of each share, with a CU axis one of turns."""
    return shares + (shares > 1)


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent normal priors of a parameter of that shape.

    mean: one for all, or an array of that shape. sd: standard deviation.
    """

    shape: tuple[int, ...]
    mean: float | Floats
    sd: float


def curve_priors(grids: Sequence[ConfigGrid], shares: int) -> dict[str, Prior]:
    """Return the trained numbers of the curve by name, for GPUs of those grids and J shares."""
    priors = {
        "sharpness": Prior((1,), SHARPNESS[shares], 0.5),  # log of p
        "gpu_sharpness": Prior((len(grids),), 0.0, 0.3),  # what each GPU adds to it
        "gain": Prior((shares,), 0.0, 0.3),  # log of the factor of the physics' log odds
        "offset": Prior((len(grids), shares), 0.0, 1.0),  # what each GPU adds to them
        "capacity": Prior((1,), 0.0, 0.2),  # log of what very many waves can issue
        "softness": Prior((1,), SOFTNESS, 0.5),  # log of the waves that can issue twice that
        "turning": Prior((1,), 1.0, 0.3),  # exponent of the turns
    }
    for g, grid in enumerate(grids):  # what a step of the grid is in truth, as a log ratio
        for name, length, sd in zip(CLOCK_TABLES, grid.shape, (0.05, 0.03, 0.03), strict=True):
            priors[f"{name}{g}"] = Prior((length,), 0.0, sd)
    return priors
