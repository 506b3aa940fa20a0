"""Power of `bottleneck`: watts that are always there, and energy per work divided by time."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.kernel_use import KernelUse
from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.surfaces import carried
from mlscale.predictors.bottleneck.curve import Array, GpuPeaks, table_weights
from mlscale.predictors.bottleneck.process import columns_of, standardised
from mlscale.predictors.conditioning import SurfacePrior

INPUTS = (
    *("memory share", "issue use", "l2 use", "texture use", "shared use", "fp64 use"),
    "eligible waves",
)
ABOVE = ("highest",)
LEAST_DYNAMIC_W = 1.0
SPLIT_VARIANCE = 0.5  # of the log odds of phi, whatever the inputs


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
    return [table_weights(trained or grid, a, base, settings[a], ABOVE) for a in AXES[1:]]


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
            idle_w = np.exp(carried(np.log(idle_w), trained, gpu.grid, ABOVE))
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
