"""Training for `bottleneck`: maximum a posteriori by L-BFGS, with the gradient written out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.curve import (
    CORE,
    MEMORY,
    SLOWING_SCALE,
    Load,
    Process,
    Targets,
    bottleneck_curve,
    covariance,
    log_load_ratio,
    physics_logit,
)

STEPS = 120
# The robust loss: squared below this log ratio, absolute above; its weight against the priors.
ROBUST_SCALE, DATA_WEIGHT = 0.015, 4 / 0.03
JITTER = 1e-4
# Prior means and standard deviations (accuracy.md 2.4; the last four are the CU axis').
SHARPNESS_SD, GPU_SHARPNESS_SD = 0.5, 0.3
# By the number of shares: how sharp bottlenecks are thought to be.
SHARPNESS = {1: np.log(5), 2: np.log(3)}
GAIN_SD, OFFSET_SD, CLOCK_SD = 0.3, 1.0, 0.03
CU_SD, CAPACITY_SD, SLOWING_SD = 0.05, 0.2, 0.1
SOFTNESS, SOFTNESS_SD = np.log(0.7), 0.5


@dataclass(frozen=True, eq=False)
class TrainingGpu:
    """One GPU's kernels: inputs (K,) each by name, uses, log surfaces (K, N), and the other law.

    memory_share, issue (K,): use of memory and of the CUs as a share of what the GPU reaches.
    other (K, N): log time ratios by Wang and Chu, NaN for a kernel where they cannot be had; None
    where for none.
    """

    targets: Targets
    memory_share: Floats
    issue: Floats
    load: Load
    log_time: Floats
    other: Floats | None


@dataclass
class Layout:
    """Where each named group of numbers stands in the vector that L-BFGS moves."""

    slices: dict[str, tuple[slice, tuple[int, ...]]] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, *shape: int) -> None:
        """Append a group."""
        length = math.prod(shape)
        self.slices[name] = (slice(self.size, self.size + length), shape)
        self.size += length

    def view(self, vector: Floats, name: str) -> Floats:
        """A group of a vector, in its shape; writing to it writes to the vector."""
        where, shape = self.slices[name]
        return vector[where].reshape(shape)


def layout(gpus: Sequence[TrainingGpu], kernels: int, shares: int) -> Layout:
    """The groups: global numbers, one each per GPU, clock tables, and the process' weights."""
    made, count = Layout(), len(gpus)
    made.add("sharpness", 1)
    made.add("gpu_sharpness", count)
    made.add("gain", shares)
    made.add("offset", count, shares)
    made.add("capacity", 1)
    made.add("softness", 1)
    made.add("slowing", 1)
    made.add("alpha", shares + (shares > 1), kernels)
    for g, gpu in enumerate(gpus):
        for axis, steps in zip(("cu", "engine", "memory"), gpu.targets.steps, strict=True):
            made.add(f"{axis}{g}", int(steps.max()) + 1)
    return made


def priors(made: Layout, gpus: int, shares: int) -> tuple[Floats, Floats]:
    """Prior mean and standard deviation of every number."""
    mean, sd = np.zeros(made.size), np.ones(made.size)
    known = {
        "sharpness": (SHARPNESS[shares], SHARPNESS_SD),
        "gpu_sharpness": (0, GPU_SHARPNESS_SD),
        "gain": (0, GAIN_SD),
        "offset": (0, OFFSET_SD),
        "capacity": (0, CAPACITY_SD),
        "softness": (SOFTNESS, SOFTNESS_SD),
        "slowing": (0, SLOWING_SD),
    }
    for g in range(gpus):
        known |= {f"engine{g}": (0, CLOCK_SD), f"memory{g}": (0, CLOCK_SD), f"cu{g}": (0, CU_SD)}
    for name, (centre, width) in known.items():
        made.view(mean, name)[...] = centre
        made.view(sd, name)[...] = width
    return mean, sd


@dataclass(frozen=True, eq=False)
class Objective:
    """Minus the log posterior and its gradient.

    basis (n, n): the latents are alpha @ basis.T; first: the first kernel of each GPU;
    blend: the weight of the other law in the log time.
    """

    gpus: Sequence[TrainingGpu]
    basis: Floats
    made: Layout
    shares: int
    blend: float

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Value and gradient at a vector of the layout's size."""
        mean, sd = priors(self.made, len(self.gpus), self.shares)
        value = 0.5 * float((((x - mean) / sd) ** 2).sum())
        gradient = (x - mean) / sd**2
        alpha = self.made.view(x, "alpha")
        latents = alpha @ self.basis.T
        by_latents = np.zeros_like(latents)
        start = 0
        for g, gpu in enumerate(self.gpus):
            own = slice(start, start + len(gpu.log_time))
            value += self._gpu(g, x, latents[:, own], gradient, by_latents[:, own])
            start = own.stop
        self.made.view(gradient, "alpha")[...] += by_latents @ self.basis
        return value, gradient

    def _gpu(  # noqa: PLR0915 - forward and backward of one formula, side by side
        self, g: int, x: Floats, latents: Floats, gradient: Floats, by_latents: Floats
    ) -> float:
        """Data term of one GPU; adds to the gradient and to that by the latents."""
        gpu, view = self.gpus[g], self.made.view
        p = float(np.exp(view(x, "sharpness")[0] + view(x, "gpu_sharpness")[g]))
        gain, offset = np.exp(view(x, "gain")), view(x, "offset")[g]
        softness = float(np.exp(view(x, "softness")[0]))
        # forward
        uses = [np.log(np.maximum(gpu.memory_share, 1e-9))]
        if self.shares > 1:
            base_load = gpu.load.at_base
            log_core = np.log(np.maximum(gpu.issue, 1e-9)) - view(x, "capacity")[0]
            uses.append(log_core - np.log1p(softness / base_load))
        odds = [physics_logit(use, p) for use in uses]
        logits = np.array([gain[j] * odds[j][0] + offset[j] for j in range(self.shares)])
        logits = logits + latents[: self.shares]
        tables = [view(x, f"{axis}{g}").copy() for axis in ("cu", "engine", "memory")]
        for table, at in zip(tables, gpu.targets.base_steps, strict=True):
            table[at] = 0
        c, e, m = (t[s] for t, s in zip(tables, gpu.targets.steps, strict=True))
        slow = np.empty((self.shares + 1, *gpu.log_time.shape))
        slow[0], slow[1 + MEMORY] = -(gpu.targets.engine + e), -(gpu.targets.memory + m)
        exponent = 0.0
        if self.shares > 1:
            more, by_softness = log_load_ratio(gpu.load, softness)
            slow[1 + CORE] = more - (gpu.targets.engine + e)
            own = view(x, "slowing")[0] + SLOWING_SCALE * latents[self.shares]
            exponent = own[:, None] * gpu.targets.cu + c
        curve = bottleneck_curve(logits, slow, p)
        predicted = curve.log_time + exponent
        blend = np.zeros((len(predicted), 1))
        if gpu.other is not None:
            blend[~np.isnan(gpu.other[:, 0])] = self.blend
            predicted = (1 - blend) * predicted + blend * np.nan_to_num(gpu.other)
        error = predicted - gpu.log_time
        root = np.sqrt(error**2 + ROBUST_SCALE**2)
        scale = DATA_WEIGHT / error.shape[1]
        # backward
        by_y = (1 - blend) * scale * error / root
        by_slow = by_y * curve.weights
        by_logits = (by_y * (curve.weights - curve.shares[:, :, None])).sum(axis=2)[1:] / p
        by_latents[: self.shares] += by_logits
        view(gradient, "offset")[g] += by_logits.sum(axis=1)
        by_p = float((by_y * ((curve.weights * slow).sum(axis=0) - curve.log_time)).sum()) / p
        for j, (logit, by_use, by_sharpness) in enumerate(odds):
            view(gradient, "gain")[j] += gain[j] * float(by_logits[j] @ logit)
            by_p += gain[j] * float(by_logits[j] @ by_sharpness)
            if j == CORE:
                by_log_use = gain[j] * by_logits[j] * by_use
                view(gradient, "capacity")[0] -= by_log_use.sum()
                shift = -(softness / base_load) / (1 + softness / base_load)
                change = float(by_log_use @ shift)
                change += softness * float((by_slow[1 + CORE] * by_softness).sum())
                view(gradient, "softness")[0] += change
                by_latents[self.shares] += SLOWING_SCALE * (by_y @ gpu.targets.cu)
                view(gradient, "slowing")[0] += float((by_y @ gpu.targets.cu).sum())
        view(gradient, "sharpness")[0] += by_p * p
        view(gradient, "gpu_sharpness")[g] += by_p * p
        by_engine = -by_slow[0].sum(axis=0)
        if self.shares > 1:
            by_engine = by_engine - by_slow[1 + CORE].sum(axis=0)
            self._by_table(gradient, g, 0, by_y.sum(axis=0))
        self._by_table(gradient, g, 1, by_engine)
        self._by_table(gradient, g, 2, -by_slow[1 + MEMORY].sum(axis=0))
        return float(scale * (root - ROBUST_SCALE).sum())

    def _by_table(self, gradient: Floats, g: int, axis: int, by_config: Floats) -> None:
        targets = self.gpus[g].targets
        table = self.made.view(gradient, f"{('cu', 'engine', 'memory')[axis]}{g}")
        summed = np.bincount(targets.steps[axis], by_config, minlength=len(table))
        summed[targets.base_steps[axis]] = 0
        table += summed


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training gives: every named group of numbers, and the process with its weights."""

    values: dict[str, Floats]
    process: Process


def fit(
    gpus: Sequence[TrainingGpu],
    named_inputs: Sequence[dict[str, Floats]],
    shares: int,
    blend: float,
    amplitude: float,
) -> Fitted:
    """Train on the kernels of one GPU or several; named_inputs: those of each GPU's kernels.

    amplitude: prior standard deviation of the process. An input that no kernel has is left out.
    """
    joined = {name: np.concatenate([g[name] for g in named_inputs]) for name in named_inputs[0]}
    names = tuple(name for name, values in joined.items() if not np.isnan(values).all())
    raw = np.column_stack([joined[name] for name in names])
    mean = np.asarray(np.nanmean(raw, axis=0))
    spread = np.asarray(np.nanstd(raw, axis=0) + 1e-9)
    points = np.nan_to_num(np.clip((raw - mean) / spread, -3, 3))
    owner = np.concatenate([np.full(len(g.log_time), i) for i, g in enumerate(gpus)])
    prior = amplitude**2 * covariance(points, points, owner, owner)
    noisy = prior + JITTER * amplitude**2 * np.eye(len(prior))
    inverse, root = np.asarray(np.linalg.inv(noisy)), np.linalg.cholesky(noisy)
    basis = np.linalg.solve(root, prior).T
    made = layout(gpus, len(points), shares)
    first, _ = priors(made, len(gpus), shares)
    found = minimize(
        Objective(gpus, basis, made, shares, blend),
        first,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "maxcor": 20},
    )
    values = {name: made.view(found.x, name).copy() for name in made.slices}
    weights = np.asarray(np.linalg.solve(root.T, values.pop("alpha").T).T)
    low = np.asarray(np.nanmin(raw, axis=0))
    high = np.asarray(np.nanmax(raw, axis=0))
    return Fitted(
        values,
        Process(names, mean, spread, low, high, points, owner, weights, inverse, amplitude),
    )
