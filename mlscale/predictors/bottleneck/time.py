"""What a trained time model of `bottleneck` knows, and how it predicts: NumPy only."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, shaped
from mlscale.data.device import LARGEST_SHARE
from mlscale.data.extrapolation import carried, positions
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.predictors.bottleneck.corrections import Correction, TimeTrees
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GridRatios,
    blended,
    curve_priors,
    latent_count,
)
from mlscale.predictors.bottleneck.kernels import GpuPeaks, KernelLoad, KernelTraits
from mlscale.predictors.bottleneck.process import Process
from mlscale.predictors.conditioning import SurfacePrior, random_walk
from mlscale.predictors.intervals import distance_from_base, least_scale

ABOVE_PEAK = "{:.2f} times the DRAM bytes that can pass: time, clocks, GPU or counters are wrong"
UNEXPLAINED_VARIANCE = 0.5  # of the latents, whatever the inputs
# What the curve leaves of a log time on an untrained GPU, at a clock e times the base's; chosen on
# four tables as if never trained on: docs/decisions/0008-bottleneck.md.
UNTRAINED_DRIFT = 0.03


@dataclass(frozen=True, eq=False)
class TimeModel:
    """A trained model. values: the curve's numbers by name, see `curve_priors`.

    shares: 1 (memory), or 2 where a training table has several CU counts. uses_rule: whether
    max-overlap stands beside the curve. Of each GPU, corrections: what the curve misses;
    misfits: see `SurfacePrior`; trees: None where they do not help. parts: with
    several CU counts the models without a group of applications, whose mean the curve gives.
    """

    gpus: tuple[GpuPeaks, ...]
    values: dict[str, Floats]
    process: Process
    shares: int
    uses_rule: bool
    corrections: tuple[Correction | None, ...]
    misfits: tuple[Floats, ...]
    trees: tuple[TimeTrees | None, ...]
    parts: tuple["TimeModel", ...] = ()

    @property
    def alone(self) -> Self:
        """The curve alone: without parts, corrections and trees."""
        none = (None,) * len(self.gpus)
        return replace(self, corrections=none, trees=none, parts=())

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
                if self.parts or self.corrections[number] or self.trees[number]:
                    missed = self._missed(kernels, number, by_curve(mean))
            elif home is not None:
                at_home = self.prior(kernels.at(home), trained, number).predicted()
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
        ratios = GridRatios.of(gpu.grid, gpu.base, trained)
        load = KernelLoad.of(kernels.use, gpu, ratios.cu_count)
        rule = kernels.rule_and_weight if self.uses_rule else None
        curve = BottleneckCurve.of(np, self.values, number, load, ratios, rule)
        return lambda latents: _from_base(curve.log_time(latents), gpu)

    def _missed(self, kernels: KernelTraits, number: int, by_curve: Floats) -> Floats:
        """Return what to add to log time ratios (K, N) of this one curve on the trained grid."""
        correction, trees, gpu = self.corrections[number], self.trees[number], self.gpus[number]
        best = by_curve
        if self.parts:
            own = [part.prior(kernels, part.gpus[number], number) for part in self.parts]
            best = np.mean([prior.predicted() for prior in own], axis=0)
        if correction is not None:
            best = best + correction.predict(kernels.similarity(gpu), best)
        if trees is not None:
            best = blended(best, trees.predict(kernels.similarity(gpu)), trees.weight)
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

    def flags(self, kernels: KernelTraits, gpu: GpuPeaks) -> list[list[str]]:
        """Return what each kernel's prediction rests on that the reader should know."""
        flags = self.process.flags(gpu.inputs(kernels.use))
        for above in np.flatnonzero(kernels.use.memory > LARGEST_SHARE):
            flags[above].append(ABOVE_PEAK.format(kernels.use.memory[above]))
        for k, own in enumerate(flags if self.uses_rule else ()):
            if kernels.rule is None:
                own.append("max-overlap does not know this GPU: left out")
            elif np.isnan(kernels.rule[k, 0]):
                own.append("max-overlap left out: its counters lack or contradict")
        return flags

    def state(self) -> dict[str, Any]:
        """Return arrays and JSON values for the model file."""
        gpus = [
            {
                "device": gpu.device,
                **grid_state(gpu.grid, gpu.base),
                "memory_peak": gpu.memory_peak,
                "issue_peak": gpu.issue_peak,
            }
            for gpu in self.gpus
        ]
        return {
            "gpus": gpus,
            "values": self.values,
            "process": self.process.state(),
            "shares": self.shares,
            "uses_other": self.uses_rule,
            "corrections": [None if c is None else c.state() for c in self.corrections],
            "misfits": list(self.misfits),
            "trees": [None if own is None else own.state() for own in self.trees],
            "parts": [part.state() for part in self.parts],
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return the model that `state` described; a damaged one raises KeyError or ValueError."""
        gpus = []
        for saved in state["gpus"]:
            peaks = float(saved["memory_peak"]), float(saved["issue_peak"])
            if not min(peaks) > 0:
                raise ValueError("a peak is not positive")
            gpus.append(GpuPeaks(str(saved["device"]), *restore_grid(saved), *peaks))
        shares = int(state["shares"])
        if shares not in (1, 2):
            raise ValueError(f"a model has 1 or 2 shares, not {shares}")
        priors, saved_values = curve_priors([gpu.grid for gpu in gpus], shares), state["values"]
        if shares == 1:  # where it has no effect; older files lack it
            saved_values = {"turning": np.ones(1), **saved_values}
        parts = tuple(cls.restore(part) for part in state.get("parts", ()))
        places = [(gpu.device, gpu.grid, gpu.base) for gpu in gpus]
        if any([(g.device, g.grid, g.base) for g in part.gpus] != places for part in parts):
            raise ValueError("a part of the model is for another GPU")
        trees = state.get("trees", [None] * len(gpus))  # older files lack them
        return cls(
            gpus=tuple(gpus),
            values={n: shaped(saved_values[n], *prior.shape) for n, prior in priors.items()},
            process=Process.restore(state["process"], latent_count(shares)),
            shares=shares,
            uses_rule=bool(state["uses_other"]),
            corrections=tuple(
                None if saved is None else Correction.restore(saved, gpu.grid.size)
                for gpu, saved in zip(gpus, state["corrections"], strict=True)
            ),
            misfits=tuple(
                shaped(misfit, None, gpu.grid.size)
                for misfit, gpu in zip(state["misfits"], gpus, strict=True)
            ),
            trees=tuple(
                None if saved is None else TimeTrees.restore(saved, gpu.grid.size)
                for gpu, saved in zip(gpus, trees, strict=True)
            ),
            parts=parts,
        )


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
