"""What a trained `bottleneck` knows of time, and how it predicts: NumPy only.

The curve, what it misses of kernels that are alike (`Correction`), and the scores that make
intervals. On a GPU that was not learnt from those of kernels that use no unit hold all that parts
of the time may do: stay as they are, or follow one of the clocks.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.counters.kernel_use import KernelUse, device_with_peaks
from mlscale.data.devices import LARGEST_SHARE
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, carried, positions, scaling_bounds
from mlscale.notes import Note
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GpuPeaks,
    GridRatios,
    KernelLoad,
    KernelTraits,
)
from mlscale.predictors.bottleneck.process import (
    JITTER,
    Process,
    at_rows,
    columns_of,
    inducing_rows,
    known_names,
    scaling,
    squared_distance,
    standardised,
)
from mlscale.predictors.conditioning import SurfacePrior, random_walk
from mlscale.predictors.intervals import LEVELS, distance_from_base, least_scale, reaching, score_at

ABOVE_PEAK = "{:.2f} times the possible DRAM traffic: time, clocks, GPU or counters are wrong"
UNEXPLAINED_VARIANCE = 0.5  # of the latents, whatever the inputs
# What the curve leaves of a log time on an untrained GPU, at a clock e times the base's; chosen on
# four tables as if never trained on: docs/decisions/0008-bottleneck.md.
UNTRAINED_DRIFT = 0.07
# Of corrections.
LENGTH_SCALE = 0.4  # root mean square distance, in standard deviations, that is still alike
UNREPEATED_VARIANCE = 0.5  # variance of what does not repeat, against 1 of what does
ALIKE_DIRECTIONS = 3  # coordinates of the predicted surface that count as inputs
# Of kernels that wait.
WAITING_USE = 0.3  # of the busiest unit's peak
FLAG = Note(
    "P05",
    f"no unit reaches {WAITING_USE:.0%} use, so no counter shows which clock matters: the "
    "interval is wide; measure a second clock: --also",
    "warning",
)
SHORT_MS = 0.015  # chosen on one GPU: docs/decisions/0019-intervals.md
SHORT_FLAG = Note(
    "P05",
    f"a launch of less than {1e3 * SHORT_MS:g} us: part of it is the launch itself, which no clock "
    "changes; the interval allows for that",
)
FLUSHED_FLAG = Note(
    "P05",
    "a launch moves fewer DRAM bytes than the L2 holds, which ncu empties before it counts: time "
    "may follow the engine clock alone, which the interval holds; give ncu --cache-control none",
    "warning",
)


@dataclass(frozen=True, eq=False)
class Correction:
    """Kernel regression on the log times that training kernels were mispredicted by when held out.

    Alike are kernels near each other in D inputs: those of `KernelTraits.similarity`, then the
    coordinates of the predicted log surface along its main directions. mean, spread (D,)
    standardise; centre (N,) and directions (A, N) give the coordinates; points (n, D) of the
    kernels that stand for all, `inducing_rows`; weights (n, N). A kernel unlike all others gets no
    correction.
    """

    names: tuple[str, ...]
    centre: Annotated[Floats, "N"]
    directions: Annotated[Floats, "A N"]
    mean: Annotated[Floats, "D"]
    spread: Annotated[Floats, "D"]
    points: Annotated[Floats, "n D"]
    weights: Annotated[Floats, "n N"]

    @classmethod
    def fit(cls, named: dict[str, Floats], predicted: Floats, actual: Floats) -> Self:
        """Learn from K kernels' inputs, held-out log time ratios (K, N), and the true ones."""
        names = known_names(named)
        centre = predicted.mean(axis=0)
        directions = np.linalg.svd(predicted - centre, full_matrices=False)[2][:ALIKE_DIRECTIONS]
        raw = np.hstack([columns_of(named, names), (predicted - centre) @ directions.T])
        mean, spread = scaling(raw)
        points = standardised(raw, mean, spread)
        rows = inducing_rows(lambda rows: _alike(points[rows], points[rows]), len(points))
        weights = _weights(points, rows, actual - predicted)
        return cls(names, centre, directions, mean, spread, at_rows(points, rows), weights)

    def predict(self, named: dict[str, Floats], predicted: Floats) -> Floats:
        """Return what to add to the log time ratios predicted, (K, N)."""
        coordinates = (predicted - self.centre) @ self.directions.T
        raw = np.hstack([columns_of(named, self.names), coordinates])
        return _alike(standardised(raw, self.mean, self.spread), self.points) @ self.weights


def _alike(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * squared_distance(a, b) / LENGTH_SCALE**2))


def _weights(points: Floats, rows: Indices, missed: Floats) -> Floats:
    """Return the weights (n, N) of the kernels in those rows, by what was missed (K, N) of all.

    Kernel regression where the rows are all; else by the subset of regressors (Quinonero-Candela
    and Rasmussen, JMLR 6, 2005, section 5).
    """
    unrepeated = UNREPEATED_VARIANCE * np.eye(len(rows))
    alike = _alike(at_rows(points, rows), points)
    if len(rows) == len(points):
        return np.asarray(np.linalg.solve(alike + unrepeated, missed))
    whitening = np.linalg.inv(np.linalg.cholesky(alike[:, rows] + JITTER * np.eye(len(rows))))
    features = whitening @ alike
    seen = features @ features.T + unrepeated
    return np.asarray(whitening.T @ np.linalg.solve(seen, features @ missed))


@dataclass(frozen=True, eq=False)
class TimeModel:
    """A trained model. values: the curve's numbers by name, see `curve_priors`.

    shares: 1 (memory), or 2 where a training table has several CU counts. Of each GPU,
    corrections: what the curve misses; misfits: see `SurfacePrior`. parts: with several CU counts
    the models without a group of applications, whose mean the curve gives.
    """

    gpus: tuple[GpuPeaks, ...]
    values: dict[str, Floats]
    process: Process
    shares: int
    corrections: tuple[Correction | None, ...]
    misfits: tuple[Floats, ...]
    parts: tuple["TimeModel", ...] = ()

    @property
    def alone(self) -> Self:
        """The curve alone: without parts and corrections."""
        none = (None,) * len(self.gpus)
        return replace(self, corrections=none, parts=())

    def prior(self, kernels: KernelTraits, gpu: GpuPeaks, number: int | None) -> SurfacePrior:
        """Return what is known of the log time ratios (K, N) before any further measured point.

        number: of the GPU among the trained ones, None for another. On a grid that goes beyond the
        trained one, corrections and misfit stay what they are at its nearest step; on one that
        does not hold all of its steps, and on another GPU, there is no correction, and the misfit
        is a random walk.
        """
        points = self.process.points_of(gpu.inputs(kernels.use))
        mean, variance = self.process.latents(points, number)
        by_curve = self._by_curve(kernels, gpu, number)
        missed, home = np.zeros(gpu.grid.size), None
        if number is not None:
            trained = self.gpus[number]
            home = positions(trained.grid, gpu.grid)
            if gpu.grid == trained.grid:
                if self.parts or self.corrections[number]:
                    missed = self._missed(kernels, number, by_curve(mean))
            elif home is not None:
                at_home = self.prior(kernels, trained, number).predicted()
                missed = carried(at_home - by_curve(mean)[:, home], trained.grid, gpu.grid)
        if number is None or home is None:
            misfit = _untrained_misfit(gpu)
        else:
            misfit = carried(self.misfits[number], trained.grid, gpu.grid)
        missed = _from_base(missed, gpu)
        variances = np.broadcast_to(variance + UNEXPLAINED_VARIANCE, mean.shape)
        return SurfacePrior(lambda latents: by_curve(latents) + missed, mean, variances, misfit)

    def _by_curve(
        self, kernels: KernelTraits, gpu: GpuPeaks, number: int | None
    ) -> Callable[[Floats], Floats]:
        """Return the curve as a function from latents (L, K) to log time ratios (K, N)."""
        trained = gpu.grid if number is None else self.gpus[number].grid
        ratios = GridRatios.from_grid(gpu.grid, gpu.base, trained)
        load = KernelLoad.from_traits(kernels, gpu, ratios.cu_count)
        curve = BottleneckCurve.from_values(np, self.values, number, load, ratios)
        return lambda latents: _from_base(curve.log_time(latents), gpu)

    def _missed(self, kernels: KernelTraits, number: int, by_curve: Floats) -> Floats:
        """Return what to add to log time ratios (K, N) of this one curve on the trained grid."""
        correction, gpu = self.corrections[number], self.gpus[number]
        best = by_curve
        if self.parts:
            priors = [part.prior(kernels, part.gpus[number], number) for part in self.parts]
            best = np.mean([prior.predicted() for prior in priors], axis=0)
        if correction is not None:
            best = best + correction.predict(kernels.similarity(gpu), best)
        return best - by_curve

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

    def flags(self, kernels: KernelTraits, gpu: GpuPeaks) -> list[list[Note]]:
        """Return what each kernel's prediction rests on that the reader should know."""
        flags = self.process.flags(gpu.inputs(kernels.use))
        for above in np.flatnonzero(kernels.use.memory > LARGEST_SHARE):
            told = ABOVE_PEAK.format(kernels.use.memory[above])
            flags[above].append(Note("G01", told, "warning"))
        return flags


def _untrained_misfit(gpu: GpuPeaks) -> Floats:
    """Return the misfit (R, N) where no training kernel shows it: a walk along each axis."""
    settings = gpu.grid.settings()
    distances = [np.log(settings[axis] / getattr(gpu.base, axis)) for axis in AXES]
    return np.vstack([random_walk(distance, UNTRAINED_DRIFT) for distance in distances])


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

        Another is taken to be no easier than any trained one: few were held out.
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
    """Return which kernels, launched again, may find in L2 what ncu, which empties it, saw in DRAM.

    (K,); none of a table that says how its caches were (`counter_caches`).
    """
    device, counted = device_with_peaks(profiles.device), profiles.metadata
    is_flushed = counted.get("counter_tool") == "ncu" and "counter_caches" not in counted
    gb_per_s = use.memory * device.peak_bandwidth_gb_per_s(profiles.base.memory_mhz)
    is_small = gb_per_s * profiles.time_ms * 1e6 < (device.l2_bytes or 0)
    return is_flushed & is_small & (use.memory >= WAITING_USE) & (profiles.weights > 1)


def holding_bounds(surfaces: Surfaces, profiles: Profiles, use: KernelUse) -> Surfaces:
    """Return surfaces of time whose intervals hold what one reading does not tell of some kernels.

    Those of waiting kernels hold the scaling bounds; of launches shorter than SHORT_MS no scaling;
    of those that may stay in the cache the engine clock's law. Each is flagged. Kernels measured
    at a further point, and surfaces without intervals, stay as they are.
    """
    is_new = ~profiles.has_further_time
    least, most = scaling_bounds(surfaces.grid, surfaces.base)
    surfaces = reaching(surfaces, waits(profiles, use), (least, most), FLAG)
    same = np.ones_like(least)
    is_short = (profiles.time_ms < SHORT_MS) & is_new
    surfaces = reaching(surfaces, is_short, (same, same), SHORT_FLAG)
    slower = same * (surfaces.base.engine_mhz / np.array(surfaces.grid.engine_mhz))[:, None]
    return reaching(
        surfaces, may_stay_in_cache(profiles, use) & is_new, (slower, slower), FLUSHED_FLAG
    )
