"""What a trained `bottleneck` knows of time and of power, and how it predicts: NumPy only.

Time is by the curve; power is watts that are always there, and energy per work divided by time.
Scores make the intervals. On a GPU that was not learnt from those of kernels that use no unit hold
all that parts of the time may do: stay as they are, or follow one of the clocks.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.counters.kernel_use import KernelUse, device_with_peaks
from mlscale.data.devices import LARGEST_SHARE
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, carried, positions, scaling_bounds
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.predictors.bottleneck.curve import (
    Array,
    BottleneckCurve,
    GpuPeaks,
    GridRatios,
    KernelLoad,
    KernelTraits,
    table_weights,
)
from mlscale.predictors.bottleneck.process import Process, columns_of, standardised
from mlscale.predictors.conditioning import SurfacePrior, random_walk
from mlscale.predictors.intervals import LEVELS, distance_from_base, least_scale, reaching, score_at

ABOVE_PEAK = "{:.2f} times the possible DRAM traffic: time, clocks, GPU or counters are wrong"
UNEXPLAINED_VARIANCE = 0.5  # latents vary by so much, whatever the inputs
# What the curve leaves of a log time on an untrained GPU, at a clock or a CU count e times the
# base's: docs/decisions/0008-bottleneck.md.
UNTRAINED_DRIFT, UNTRAINED_DRIFT_OF_CUS = 0.07, 0.5
WAITING_USE = 0.3  # a kernel waits whose busiest unit is used below this share of its peak
SHORT_MS = 0.015  # chosen on one GPU: docs/decisions/0019-intervals.md
SHORT_FLAG = Note(
    "P05",
    f"a launch of less than {1e3 * SHORT_MS:g} us: part of it is the launch itself, which no clock "
    "changes; the interval allows for that",
)
FLUSHED_FLAG = Note(
    "P05",
    "a launch moves fewer DRAM bytes than the L2 holds, and ncu flushes it before counting "
    "without --cache-control none: time may follow the engine clock alone, as the interval "
    "allows; a reading at a second clock will show",
    "warning",
)

INPUTS = (
    *("memory share", "issue use", "l2 use", "texture use", "shared use", "fp64 use"),
    "eligible waves",
)
POWER_GOES_ON = ("highest",)  # above the trained clocks; below, voltages have a floor
LEAST_DYNAMIC_W = 1.0
SPLIT_VARIANCE = 0.5  # log odds of phi vary by so much, whatever the inputs


@dataclass(frozen=True, eq=False)
class TimeModel:
    """A trained model. values: the curve's numbers by name, see `curve_priors`.

    shares: 1 (memory), or 2 where a training table has several CU counts. misfits: of each GPU,
    see `SurfacePrior`.
    """

    gpus: tuple[GpuPeaks, ...]
    values: dict[str, Floats]
    process: Process
    shares: int
    misfits: tuple[Floats, ...]

    def prior(self, kernels: KernelTraits, gpu: GpuPeaks, number: int | None) -> SurfacePrior:
        """Return what is known of the log time ratios (K, N) before any further measured point.

        number: of the GPU among the trained ones, None for another. On a grid that goes beyond the
        trained one the misfit stays what it is at its nearest step; on one that does not hold all
        of its steps, and on another GPU, it is a random walk.
        """
        trained = gpu.grid if number is None else self.gpus[number].grid
        ratios = GridRatios.from_grid(gpu.grid, gpu.base, trained)
        load = KernelLoad.from_traits(kernels, gpu, ratios.cu_count, self.shares)
        curve = BottleneckCurve.from_values(np, self.values, number, load, ratios)
        mean, variance = self.process.latents(
            self.process.points_of(gpu.inputs(kernels.use)), number
        )
        if number is None or positions(trained, gpu.grid) is None:
            misfit = _untrained_misfit(gpu)
        else:
            misfit = carried(self.misfits[number], trained, gpu.grid)
        variances = np.broadcast_to(variance + UNEXPLAINED_VARIANCE, mean.shape)
        return SurfacePrior(
            lambda latents: _from_base(curve.log_time(latents), gpu), mean, variances, misfit
        )

    def interval_scale(self, kernels: KernelTraits, gpu: GpuPeaks, prior: SurfacePrior) -> Floats:
        """Return what the intervals' half-widths are proportional to, (K, N) in log ratio.

        Wider far from the base, where a share's uncertainty tells, and for a kernel unlike all
        training kernels.
        """
        points = self.process.points_of(gpu.inputs(kernels.use))
        strangeness = 1 + self.process.distance(points)
        least = least_scale(distance_from_base(gpu.grid, gpu.base))
        return np.asarray(strangeness[:, None] * (prior.spread(self.shares) + least))

    def mean_peaks(self, device: str, grid: ConfigGrid, base: HardwareConfig) -> GpuPeaks:
        """Return a GPU that is taken to reach what the trained ones do on average."""
        memory, issue = np.mean([(gpu.memory_peak, gpu.issue_peak) for gpu in self.gpus], axis=0)
        return GpuPeaks(device, grid, base, float(memory), float(issue))

    def flags(self, kernels: KernelTraits, gpu: GpuPeaks) -> list[tuple[Note, ...]]:
        """Return what each kernel's prediction rests on that the reader should know."""
        flags = list(self.process.flags(gpu.inputs(kernels.use)))
        for above in np.flatnonzero(kernels.use.memory > LARGEST_SHARE):
            told = ABOVE_PEAK.format(kernels.use.memory[above])
            flags[above] += (Note("G01", told, "warning"),)
        return flags


def _untrained_misfit(gpu: GpuPeaks) -> Floats:
    """Return the misfit (R, N) where no training kernel shows it: a walk along each axis."""
    settings = gpu.grid.settings()
    distances = [np.log(settings[axis] / getattr(gpu.base, axis)) for axis in AXES]
    drifts = (UNTRAINED_DRIFT_OF_CUS, UNTRAINED_DRIFT, UNTRAINED_DRIFT)
    return np.vstack(list(map(random_walk, distances, drifts)))


def _from_base(logs: Floats, gpu: GpuPeaks) -> Floats:
    """Return log ratios (..., N) less those at the base, where the grid has it."""
    if gpu.base not in gpu.grid:
        return logs
    base = gpu.grid.position(gpu.base)
    return logs - logs[..., base : base + 1]


@dataclass(frozen=True, eq=False)
class IntervalScores:
    """Scores at levels of coverage, see `calibrated_scores`; of power those of one GPU alone.

    trained (G, L): of each trained GPU, with applications held out. known_peaks, mean_peaks (L,):
    of GPUs held out together with applications, whose peaks other kernels of them show, or that
    are taken to reach what the others do. These two are empty where training had one GPU alone;
    all are where it was without intervals.
    """

    trained: Floats = field(default_factory=lambda: np.empty((0, LEVELS.size)))
    known_peaks: Floats = field(default_factory=lambda: np.empty(0))
    mean_peaks: Floats = field(default_factory=lambda: np.empty(0))

    def __bool__(self) -> bool:
        """Whether there are intervals."""
        return bool(self.trained.size)

    def at(self, coverage: float, number: int | None, knows_peaks: bool) -> float:
        """Return the score for a coverage on the trained GPU of that number, or on another.

        Another is assumed to be no easier than any trained one: few were held out.
        """
        if number is not None:
            return score_at(self.trained[number], coverage)
        elsewhere = self.known_peaks if knows_peaks else self.mean_peaks
        rows = [*self.trained, elsewhere] if elsewhere.size else self.trained
        return max(score_at(scores, coverage) for scores in rows)


def waits(profiles: Profiles, use: KernelUse) -> Mask:
    """Return which kernels use no unit by WAITING_USE and have no further measured point, (K,).

    Units that the profile does not tell do not count; where it does not tell the core's use by
    issue or throughput, nobody can say so of a kernel.
    """
    units = np.array([use.memory, use.issue, use.l2, use.texture, use.shared, use.fp64])
    is_idle = ~(units >= WAITING_USE).any(axis=0) & ~np.isnan(use.issue)
    return np.asarray(is_idle & ~profiles.has_further_time)


def may_stay_in_cache(profiles: Profiles, use: KernelUse) -> Mask:
    """Return which kernels may find in L2 what ncu, which empties it, saw in DRAM, (K,).

    None of a table that says how its caches were (`counter_caches`).
    """
    device, counted = device_with_peaks(profiles.device), profiles.metadata
    is_flushed = counted.get("counter_tool") == "ncu" and "counter_caches" not in counted
    gb_per_s = use.memory * device.peak_bandwidth_gb_per_s(profiles.base.memory_mhz)
    is_small = gb_per_s * profiles.time_ms * 1e6 < (device.l2_bytes or 0)
    return is_flushed & is_small & (use.memory >= WAITING_USE)


def waiting_note() -> Note:
    """What is told of kernels that `waits` finds."""
    text = (
        f"no unit reaches {100 * WAITING_USE:.0f} % use, so no counter shows which clock matters: "
        f"the interval is wide; measure a second clock: {parameter('also')}"
    )
    return Note("P05", text, "warning")


def holding_bounds(surfaces: Surfaces, profiles: Profiles, use: KernelUse) -> Surfaces:
    """Return surfaces of time whose intervals hold what one reading does not tell of some kernels.

    Those of waiting kernels hold the scaling bounds; of launches shorter than SHORT_MS no scaling;
    of those that may stay in the cache the engine clock's law. Each is flagged. Kernels measured
    at a further point, and surfaces without intervals, stay as they are.
    """
    is_new = ~profiles.has_further_time
    least, most = scaling_bounds(surfaces.grid, surfaces.base)
    surfaces = reaching(surfaces, waits(profiles, use), (least, most), waiting_note())
    same = np.ones_like(least)
    is_short = (profiles.time_ms < SHORT_MS) & is_new
    surfaces = reaching(surfaces, is_short, (same, same), SHORT_FLAG)
    slower = same * (surfaces.base.engine_mhz / np.array(surfaces.grid.engine_mhz))[:, None]
    return reaching(
        surfaces, may_stay_in_cache(profiles, use) & is_new, (slower, slower), FLUSHED_FLAG
    )


@dataclass(frozen=True, eq=False)
class PowerSplit:
    """Power on one grid: P = idle + dynamic [(1 - phi) core + phi memory] / time ratio, in watts.

    The one formula for NumPy, which predicts, and torch, which trains; `xp` is the one or the
    other, and an axis of fits may come before all others. K kernels, N configurations.

    idle_w (N,): watts of every configuration, whatever the kernel. base_w (K,): watts at the base;
    dynamic is what they have above the idle ones there, 1 W at least. log_core, log_memory (N,):
    log of the energy per unit of work at the engine and the memory clock, relative to the base.
    base: its position among the N.
    """

    xp: Any
    idle_w: Array
    base_w: Array
    log_core: Array
    log_memory: Array
    base: int

    def log_power(self, odds: Array, log_time: Array) -> Array:
        """Return log power ratios (K, N).

        odds (K,): log odds of phi, memory's share of the dynamic energy at the base.
        log_time (K, N): log time ratios.
        """
        xp = self.xp
        phi = (0.5 + 0.5 * xp.tanh(0.5 * odds))[..., None]
        core, memory = (xp.exp(log)[..., None, :] for log in (self.log_core, self.log_memory))
        energy = (1 - phi) * core + phi * memory
        base = slice(self.base, self.base + 1)
        dynamic_w = xp.clip(self.base_w - self.idle_w[..., base], LEAST_DYNAMIC_W, None)
        watts = self.idle_w[..., None, :] + dynamic_w[..., None] * energy * xp.exp(-log_time)
        return xp.log(watts / watts[..., base])


def energy_weights(grid: ConfigGrid, base: Any, trained: ConfigGrid | None = None) -> list[Floats]:
    """Return weights (E, N), (M, N) of engine and memory steps at a grid's configurations.

    trained: the grid of these steps, None where it is the same. A step at the base has none.
    """
    settings = grid.settings()
    return [table_weights(trained or grid, a, base, settings[a], POWER_GOES_ON) for a in AXES[1:]]


@dataclass(frozen=True, eq=False)
class PowerModel:
    """A trained model. idle_w (N,): as in `PowerSplit`, log_core (E,) and log_memory (M,) by step.

    The log odds of phi are split[0] + split[1:] . z; z (D,) standardised by mean and spread, the
    training kernels' mean and standard deviation. misfit (R, 2 N): of log time and log power
    ratios, see `SurfacePrior`.
    """

    idle_w: Floats
    log_core: Annotated[Floats, "E"]
    log_memory: Annotated[Floats, "M"]
    split: Floats
    mean: Annotated[Floats, "D"]
    spread: Annotated[Floats, "D"]
    misfit: Floats

    def prior(
        self,
        use: KernelUse,
        base_w: Floats,
        gpu: GpuPeaks,
        time: SurfacePrior,
        trained: ConfigGrid | None = None,
    ) -> SurfacePrior:
        """Return the prior of the log time ratios and, after them, the log power ratios: (K, 2 N).

        base_w (K,): watts at the base. Its latents are those of the time and the log odds of phi.
        trained: the grid of training where the GPU's is another one. Below it, idle watts and
        energies per work are what they are at its lowest step, as voltages have a floor; above it
        they go on as between its two highest.
        """
        base = gpu.grid.position(gpu.base)
        core, memory = energy_weights(gpu.grid, gpu.base, trained)
        log_core, log_memory = self.log_core @ core, self.log_memory @ memory
        idle_w, misfit = self.idle_w, self.misfit
        if trained is not None:
            idle_w = np.exp(carried(np.log(idle_w), trained, gpu.grid, POWER_GOES_ON))
            halves = np.split(misfit, 2, axis=1)
            misfit = np.hstack([carried(half, trained, gpu.grid) for half in halves])
        split = PowerSplit(np, idle_w, base_w, log_core, log_memory, base)

        def log_ratios(latents: Floats) -> Floats:
            log_time = time.log_ratios(latents[:-1])
            return np.hstack([log_time, split.log_power(latents[-1], log_time)])

        raw = power_inputs(use, gpu)
        points = standardised(raw, self.mean, self.spread, farthest=np.inf)
        odds = self.split[0] + points @ self.split[1:]
        variance = np.full((1, len(odds)), SPLIT_VARIANCE)
        return SurfacePrior(
            log_ratios, np.vstack([time.mean, odds]), np.vstack([time.variance, variance]), misfit
        )


def power_inputs(use: KernelUse, gpu: GpuPeaks) -> Floats:
    """Return what tells core from memory energy, (K, D), NaN where missing."""
    named = {**gpu.inputs(use), "memory share": use.memory / gpu.memory_peak}
    return columns_of(named, INPUTS)
