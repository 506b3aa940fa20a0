"""The bottleneck curve: time as a p-norm of what three parts of the GPU would take.

A kernel's time is (rest^p + memory^p + core^p)^(1/p), relative to the base:
- rest: latency and all else that scales with the engine clock alone, rest = 1 / engine;
- memory: DRAM, 1 / memory clock;
- core: the CUs' throughput, load / engine, where load is the work of the fullest CU. Only with
  more than one CU count; else it is part of the rest.
Their shares at the base (p-th powers that sum to 1) say everything about a kernel, and are read
off its measured utilisations. Pure functions on arrays; K kernels, N configurations, J shares.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.kernel_use import SIMDS, KernelUse
from mlscale.data.grid import ConfigGrid, HardwareConfig

LEAST_USE = 1e-3  # a use below is not told from none
MEMORY, CORE = 0, 1
SLOWING_SCALE = 0.05  # of the kernel's own exponent in CU count, per unit of its latent


@dataclass(frozen=True, eq=False)
class Targets:
    """The N configurations of a grid, relative to a base: logs of the clocks' and CUs' ratios.

    steps: for each axis (CU, engine, memory) the index of every configuration, (N,); base: the
    index of the base among the N.
    """

    cu: Floats
    engine: Floats
    memory: Floats
    cu_count: Floats
    steps: tuple[Indices, Indices, Indices]
    base: int
    base_steps: tuple[int, int, int]

    @classmethod
    def of(cls, grid: ConfigGrid, base: HardwareConfig, at: tuple[int, int, int] | None) -> Self:
        """Those of a grid; at: the index of the base on it, None where it is not on it."""
        axes = [np.array(a, float) for a in (grid.cu_count, grid.engine_mhz, grid.memory_mhz)]
        c, e, m = (mesh.ravel() for mesh in np.meshgrid(*axes, indexing="ij"))
        of_cu, of_engine, of_memory = np.indices(grid.shape).reshape(3, -1)
        return cls(
            cu=np.log(c / base.cu_count),
            engine=np.log(e / base.engine_mhz),
            memory=np.log(m / base.memory_mhz),
            cu_count=c,
            steps=(of_cu, of_engine, of_memory),
            base=-1 if at is None else int(np.ravel_multi_index(at, grid.shape)),
            base_steps=(-1, -1, -1) if at is None else at,
        )


@dataclass(frozen=True, eq=False)
class Load:
    """Waves per SIMD of the fullest CU: at the base (K,) and at every configuration (K, N)."""

    at_base: Floats
    everywhere: Floats

    @classmethod
    def of(cls, use: KernelUse, cu_count: Floats, base_cu_count: int) -> Self:
        """From workgroups and waves; a launch that is not known fills every CU alike."""
        workgroups = np.where(np.isnan(use.workgroups), 1e9, use.workgroups)[:, None]
        waves = np.where(np.isnan(use.waves_per_workgroup), 1.0, use.waves_per_workgroup)[:, None]

        def waves_per_simd(cus: Floats) -> Floats:
            # A CU without a workgroup idles, a SIMD works at one wave at a time.
            return np.asarray(np.maximum(np.maximum(workgroups / cus, 1) * waves / SIMDS, 1))

        return cls(waves_per_simd(np.array([float(base_cu_count)]))[:, 0], waves_per_simd(cu_count))


def active_issue(use: KernelUse, base_cu_count: int) -> Floats:
    """Issue rate of the CUs that have work, (K,); 0 where it is not known."""
    workgroups = np.where(np.isnan(use.workgroups), np.inf, use.workgroups)
    return np.nan_to_num(use.issue) / np.minimum(1, workgroups / base_cu_count)


def log_load_ratio(load: Load, softness: float) -> tuple[Floats, Floats]:
    """Log of the core's work at every configuration / at the base, (K, N), and d / d softness.

    Work is x^2 / (x + softness) of x waves per SIMD: proportional to x for many waves; few
    contend less and issue faster.
    """
    x, x0 = load.everywhere, load.at_base[:, None]
    ratio = 2 * np.log(x / x0) - np.log((x + softness) / (x0 + softness))
    return ratio, 1 / (x0 + softness) - 1 / (x + softness)


def physics_logit(log_use: Floats, sharpness: float) -> tuple[Floats, Floats, Floats]:
    """What a use says of the share, log odds (K,), with its derivatives by log use and sharpness.

    A part in use for u of the time takes the share u^p of time^p.
    """
    kept = np.clip(log_use, np.log(LEAST_USE), 0)
    q = np.exp(sharpness * kept)
    odds = np.log(q + 0.001) - np.log(1 - q + 0.02)
    by_q = 1 / (q + 0.001) + 1 / (1 - q + 0.02)
    inside = kept == log_use
    return odds, by_q * q * sharpness * inside, by_q * q * kept


@dataclass(frozen=True, eq=False)
class Curve:
    """Log time ratios (K, N), and what a gradient needs: shares (J+1, K), weights (J+1, K, N).

    Part 0 is the rest. A weight is a part's share of time^p at a configuration.
    """

    log_time: Floats
    log_norm: Floats
    shares: Floats
    weights: Floats


def bottleneck_curve(logits: Floats, slowdown: Floats, sharpness: float) -> Curve:
    """The p-norm. logits (J, K) of the shares against the rest's 0; slowdown (J+1, K, N).

    slowdown: log time of each part, relative to the base.
    """
    odds = np.concatenate([np.zeros((1, logits.shape[1])), logits])
    log_shares = odds - np.logaddexp.reduce(odds, axis=0)
    parts = log_shares[:, :, None] + sharpness * slowdown
    norm = np.logaddexp.reduce(parts, axis=0)
    return Curve(norm / sharpness, norm, np.exp(log_shares), np.exp(parts - norm))


@dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process over standardised inputs; training points of several GPUs.

    points (n, D); gpu (n,): the number of each point's GPU; weights (n_latents, n);
    inverse (n, n): of the training covariance. names of the D inputs; mean and spread
    standardise them; low and high are the range trained. amplitude: the prior's, see covariance.
    """

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    low: Floats
    high: Floats
    points: Floats
    gpu: Indices
    weights: Floats
    inverse: Floats
    amplitude: float

    def standardise(self, values: dict[str, Floats]) -> tuple[Floats, list[list[str]]]:
        """Points (K, D) from named inputs, clipped to +-3, and flags of every kernel.

        A missing input is taken at the training mean.
        """
        raw = np.column_stack([values[name] for name in self.names])
        flags: list[list[str]] = [[] for _ in raw]
        width = self.high - self.low
        for k, d in zip(*np.nonzero(~((raw >= self.low) & (raw <= self.high))), strict=True):
            value, name = raw[k, d], self.names[d]
            if np.isnan(value):
                flags[k].append(f"{name} missing")
            else:
                side, limit = ("below", self.low) if value < self.low[d] else ("above", self.high)
                over = abs(value - limit[d]) / width[d] if width[d] else np.inf
                if over > 1e-6:
                    flags[k].append(f"{name} {value:.4g} {side} trained {limit[d]:.4g}")
        scaled = np.clip((raw - self.mean) / self.spread, -3, 3)
        return np.nan_to_num(scaled), flags

    def latents(self, points: Floats, gpu: int) -> tuple[Floats, Floats]:
        """Means (n_latents, K) and the prior-conditional variance (K,); gpu -1: none trained."""
        cross = covariance(points, self.points, np.full(len(points), gpu), self.gpu)
        cross = self.amplitude**2 * cross
        own = self.amplitude**2 * (1 + 3 * LINEAR**2 * np.mean(points**2, axis=1))
        variance = own - np.einsum("ki,ij,kj->k", cross, self.inverse, cross)
        return self.weights @ cross.T, np.maximum(variance, 0)

    def state(self) -> dict[str, Any]:
        """Arrays and JSON values for the model file."""
        return {**vars(self), "names": list(self.names)}


# accuracy.md 2.3: k = exp(-2 d2 / ls^2) + 3 lin^2 <z, z'> / D, d2 the mean squared difference.
LENGTH_SCALE, LINEAR, SHARED_BETWEEN_GPUS = 3.0, 0.3, 0.5


def covariance(a: Floats, b: Floats, gpu_a: Indices, gpu_b: Indices) -> Floats:
    """Prior covariance (A, B) at amplitude 1, at points (A, D) and (B, D) of those GPUs."""
    distance = np.mean((a[:, None] - b) ** 2, axis=2)
    smooth = np.exp(-2 * distance / LENGTH_SCALE**2)
    linear = 3 * LINEAR**2 * (a @ b.T) / a.shape[1]
    same = gpu_a[:, None] == gpu_b
    return np.asarray((smooth + linear) * np.where(same, 1.0, SHARED_BETWEEN_GPUS))
