"""Power of `bottleneck`: watts that are always there, and energy per work divided by time."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, shaped
from mlscale.counters.kernel_use import inputs, kernel_use
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.predictors.bottleneck.curve import Targets
from mlscale.predictors.bottleneck.time import Gpu
from mlscale.predictors.conditioning import Law

INPUTS = (
    *("memory share", "issue use", "l2 use", "texture use", "shared use", "fp64 use"),
    "eligible waves",
)
LEAST_DYNAMIC_W = 1.0
SPLIT_VARIANCE = 0.5  # of the log odds of phi that no input explains


@dataclass(frozen=True, eq=False)
class PowerModel:
    """P = idle + dynamic [(1 - phi) core(engine) + phi memory(memory)] / time ratio, in watts.

    idle_w (N,): kernel-independent watts of every configuration. dynamic = base power - idle at
    the base, at least 1 W. log_core (E,), log_memory (M,): energy per unit of work at an engine
    or memory clock, relative to the base's. phi = sigmoid(split[0] + split[1:] . z), memory's
    share of the dynamic energy at the base; z (D,) standardised by mean and spread. misfit
    (R, 2 N): of log time and log power ratios, see conditioning.Law.
    """

    idle_w: Floats
    log_core: Floats
    log_memory: Floats
    split: Floats
    mean: Floats
    spread: Floats
    misfit: Floats

    def predict(self, profiles: Profiles, gpu: Gpu, time: Law) -> Law:
        """The law of the log time ratios and, after them, the log power ratios: (K, 2 N).

        Its latents are those of the time and the log odds of phi. Raises InputError where a
        kernel has no power at the base.
        """
        base_w = profiles.quantity("power")
        if np.isnan(base_w).any():
            name = profiles.kernels[int(np.flatnonzero(np.isnan(base_w))[0])]
            raise InputError(f"kernel '{name}' has no 'power_w' at the base")
        targets = Targets.of(gpu.grid, gpu.base, gpu.grid.index(gpu.base))
        core = np.exp(self.log_core[targets.steps[1]])
        memory = np.exp(self.log_memory[targets.steps[2]])
        dynamic = np.maximum(base_w - self.idle_w[targets.base], LEAST_DYNAMIC_W)

        def logs(latents: Floats) -> Floats:
            log_time = time.logs(latents[:-1])
            phi = sigmoid(latents[-1])[:, None]
            energy = (1 - phi) * core + phi * memory
            watts = self.idle_w + dynamic[:, None] * energy * np.exp(-log_time)
            return np.hstack([log_time, np.log(watts / watts[:, [targets.base]])])

        odds = self.split[0] + self.points(profiles, gpu) @ self.split[1:]
        variance = np.full((1, len(odds)), SPLIT_VARIANCE)
        return Law(
            logs,
            np.vstack([time.mean, odds]),
            np.vstack([time.variance, variance]),
            self.misfit,
        )

    def points(self, profiles: Profiles, gpu: Gpu) -> Floats:
        """Standardised inputs (K, D); a missing one is at the training mean."""
        return np.nan_to_num((power_inputs(profiles, gpu) - self.mean) / self.spread)

    def state(self) -> dict[str, Any]:
        """Arrays for the model file."""
        return dict(vars(self))

    @classmethod
    def restore(cls, state: dict[str, Any], grid: ConfigGrid) -> Self:
        """The model that `state` described; a damaged one raises KeyError or ValueError."""
        _, engine, memory = grid.shape
        shapes = {
            "idle_w": grid.size,
            "log_core": engine,
            "log_memory": memory,
            "split": 1 + len(INPUTS),
            "mean": len(INPUTS),
            "spread": len(INPUTS),
        }
        arrays = {name: shaped(state[name], length) for name, length in shapes.items()}
        for name in ("idle_w", "spread"):
            positive(arrays[name], name)
        return cls(**arrays, misfit=shaped(state["misfit"], None, 2 * grid.size))


def power_inputs(profiles: Profiles, gpu: Gpu) -> Floats:
    """What tells core from memory energy, (K, D), NaN where missing."""
    use = kernel_use(profiles)
    share = use.memory / gpu.memory_peak
    named = {**inputs(use, share), "memory share": share}
    return np.column_stack([named[name] for name in INPUTS])


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))
