"""Fits of the time and of the power of `bottleneck`: many of one kind as one batch in torch.

Maximum a posteriori: torch gives the gradients, `minimize_together` moves all fits, since a call of
torch costs by the call. B fits, P parameters each; n kernels of each, filled up to the most that
one has; N configurations. L-BFGS is by Nocedal and Wright, Numerical Optimization (2006):
algorithm 7.4 gives the directions, with the start of (7.20); a line search gives steps that meet
the weak Wolfe conditions, (3.6).
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Self, TypeVar

import numpy as np
import torch

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GpuPeaks,
    GridRatios,
    KernelLoad,
    KernelTraits,
    Prior,
    curve_priors,
    latent_count,
)
from mlscale.predictors.bottleneck.model import (
    INPUTS,
    PowerModel,
    PowerSplit,
    TimeModel,
    energy_weights,
    power_inputs,
)
from mlscale.predictors.bottleneck.process import Process, scaling, standardised

CURVE_STEPS, POWER_STEPS = 120, 200
NUMBERS_PER_BATCH = 250_000  # kernels x configurations of the fits that run together
IDLE_SHARE = 0.6  # idle watts are thought to be this share of the least power at the base
# The robust loss: squared below this log ratio, absolute above; its weight against the priors.
ROBUST_SCALE, DATA_WEIGHT = 0.015, 4 / 0.03

MEMORY = 20  # steps whose gradients are remembered
WOLFE_DECREASE, WOLFE_CURVATURE = 1e-3, 0.9
MOST_TRIES = 20  # steps of one line search; after so many rounding hides any decrease
LEAST_SLOPE, LEAST_GAIN = 1e-5, 2.2e-9  # a fit with less has converged
LONGER = 4.0  # how many times a step that was too short the next one is
INSIDE = 0.1  # a step between two others is so far from both at least, as a share

Tensor = torch.Tensor
Values = dict[str, Tensor]
Loss = Callable[[Values], Tensor]
Evaluate = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class GpuKernels:
    """The training kernels of one GPU: what profiles tell, and their log ratios (n, N).

    gpu: with the peaks that these kernels show. log_ratios: of 'time' and, where it was measured,
    of 'power'; measured (n, N): where they are not filled in. base_w (n,): the power at the base,
    NaN where it was not measured.
    """

    gpu: GpuPeaks
    traits: KernelTraits
    applications: tuple[str, ...]
    log_ratios: dict[str, Floats]
    measured: Mask
    base_w: Floats

    @classmethod
    def from_table(cls, table: Measurements, base: HardwareConfig) -> Self:
        """Take all kernels of a table. Raises InputError, see `kernel_use`."""
        profiles, grid = table.profiles(base), table.grid
        traits = KernelTraits.from_profiles(profiles)
        power_w = profiles.power_w
        quantities = ("time",) if power_w is None else ("time", "power")
        return cls(
            gpu=GpuPeaks.from_use(table.device, grid, base, traits.use),
            traits=traits,
            applications=table.applications,
            log_ratios={name: table.log_ratios(name, base) for name in quantities},
            measured=table.measured.reshape(len(table.kernels), -1),
            base_w=np.full(len(profiles.kernels), np.nan) if power_w is None else power_w,
        )

    def select(self, rows: Indices) -> Self:
        """Return some of the kernels, with the peaks that these alone show."""
        traits = self.traits.select(rows)
        return replace(
            self,
            gpu=GpuPeaks.from_use(self.gpu.device, self.gpu.grid, self.gpu.base, traits.use),
            traits=traits,
            applications=tuple(self.applications[k] for k in rows),
            log_ratios={name: logs[rows] for name, logs in self.log_ratios.items()},
            measured=self.measured[rows],
            base_w=self.base_w[rows],
        )

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self.applications)


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit to the kernels of each GPU."""

    kernels: tuple[GpuKernels, ...]

    @property
    def kind(self) -> Any:
        """Fits of the same kind can run as one batch."""
        return [(kernels.gpu.grid, kernels.gpu.base) for kernels in self.kernels]

    @property
    def numbers(self) -> int:
        """Kernels x configurations."""
        return sum(kernels.log_ratios["time"].size for kernels in self.kernels)


@dataclass(frozen=True, eq=False)
class CurveFit(Fit):
    """One fit of the curve; amplitude: of the process."""

    amplitude: float

    @cached_property
    def process(self) -> tuple[Process, Floats]:
        """The process over these kernels' inputs, without weights, and its basis (n, K)."""
        inputs = [kernels.gpu.inputs(kernels.traits.use) for kernels in self.kernels]
        return Process.from_inputs(inputs, self.amplitude)

    @property
    def shares(self) -> int:
        """1, or 2 where a grid has several CU counts."""
        return 1 + any(len(kernels.gpu.grid.cu_count) > 1 for kernels in self.kernels)

    def priors(self, points: int) -> dict[str, Prior]:
        """Return those of the curve, and of alpha: independent normal numbers for each latent."""
        priors = curve_priors([kernels.gpu.grid for kernels in self.kernels], self.shares)
        return {**priors, "alpha": Prior((latent_count(self.shares), points), 0.0, 1.0)}

    def model(self, values: dict[str, Floats], place: Indices) -> TimeModel:
        """Return the model without misfits; place: the kernels' in the batch."""
        gpus, (process, _) = tuple(kernels.gpu for kernels in self.kernels), self.process
        alpha = values["alpha"][:, place[: len(process.points)]]
        return TimeModel(
            gpus=gpus,
            values={name: value for name, value in values.items() if name != "alpha"},
            process=replace(process, weights=alpha @ process.whitening),
            shares=self.shares,
            misfits=tuple(np.zeros((1, gpu.grid.size)) for gpu in gpus),
        )


@dataclass(frozen=True, eq=False)
class PowerFit(Fit):
    """One fit of the power's split to kernels of one GPU; gpu: with the peaks of the time model."""

    gpu: GpuPeaks

    @cached_property
    def inputs(self) -> tuple[Floats, Floats, Floats]:
        """The standardised inputs (n, D), and the mean and the standard deviation of each."""
        raw = power_inputs(self.kernels[0].traits.use, self.gpu)
        mean, spread = scaling(raw)
        return standardised(raw, mean, spread, farthest=np.inf), mean, spread

    def priors(self) -> dict[str, Prior]:
        """Return log idle watts at the base, of configurations, energies by clock, the split."""
        configurations, (_, engines, memories) = self.gpu.grid.size, self.gpu.grid.shape
        [kernels] = self.kernels
        least_w, ratios = np.min(kernels.base_w), kernels.log_ratios["power"]
        return {
            "idle": Prior((1,), float(np.log(IDLE_SHARE * least_w)), 0.3),
            "idle_ratio": Prior((configurations,), ratios.mean(axis=0), np.sqrt(0.2)),
            "core": Prior((engines,), 0.0, 0.5),
            "memory": Prior((memories,), 0.0, 0.1),
            "split": Prior((1 + len(INPUTS),), 0.0, 1.0),
        }

    def model(self, values: dict[str, Floats]) -> PowerModel:
        """Return the model without a misfit."""
        _, engine, memory = self.gpu.grid.index(self.gpu.base)
        for name, step in (("core", engine), ("memory", memory)):
            values[name][step] = 0
        values["idle_ratio"][self.gpu.grid.position(self.gpu.base)] = 0
        _, mean, spread = self.inputs
        return PowerModel(
            idle_w=np.exp(values["idle"] + values["idle_ratio"]),
            log_core=values["core"],
            log_memory=values["memory"],
            split=values["split"],
            mean=mean,
            spread=spread,
            misfit=np.zeros((1, 2 * self.gpu.grid.size)),
        )


AnyFit = TypeVar("AnyFit", CurveFit, PowerFit)
Model = TypeVar("Model", TimeModel, PowerModel)


def fit_curves(fits: Sequence[CurveFit]) -> list[TimeModel]:
    """Train a time model, without misfits, for every fit."""

    def train(alike: Sequence[CurveFit]) -> list[TimeModel]:
        values = curve_posterior(alike).most_probable(CURVE_STEPS)
        triples = zip(alike, values, _places(alike), strict=True)
        return [fit.model(found, place) for fit, found, place in triples]

    return _in_batches(fits, train)


def fit_powers(fits: Sequence[PowerFit]) -> list[PowerModel]:
    """Train a power model, without a misfit, for every fit."""

    def train(alike: Sequence[PowerFit]) -> list[PowerModel]:
        values = power_posterior(alike).most_probable(POWER_STEPS)
        return [fit.model(found) for fit, found in zip(alike, values, strict=True)]

    return _in_batches(fits, train)


def _in_batches(
    fits: Sequence[AnyFit], train: Callable[[Sequence[AnyFit]], list[Model]]
) -> list[Model]:
    """Train fits of one kind together, as many as the processor's cache holds.

    Batches run side by side, each on one thread of as many as the machine has cores.
    """
    batches: list[list[int]] = []
    left = list(range(len(fits)))
    while left:
        same = [i for i in left if fits[i].kind == fits[left[0]].kind]
        batches.append(same[: max(1, NUMBERS_PER_BATCH // max(fits[i].numbers for i in same))])
        left = [i for i in left if i not in batches[-1]]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small are slower on several threads
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            trained = list(pool.map(train, [[fits[i] for i in batch] for batch in batches]))
    finally:
        torch.set_num_threads(threads)
    models = dict(zip(chain(*batches), chain(*trained), strict=True))
    return [models[i] for i in range(len(fits))]


class Posterior:
    """The posterior of B fits' parameters.

    priors: of each fit, the same names and shapes in all. loss: minus the log likelihoods (B,) of
    the fits at parameters (B, *shape).
    """

    def __init__(self, priors: Sequence[dict[str, Prior]], loss: Loss) -> None:
        self._shapes = {name: prior.shape for name, prior in priors[0].items()}
        self.loss = loss
        self.start = np.array([_joined(fit, "mean") for fit in priors])
        self._mean = torch.from_numpy(self.start)
        self._precision = torch.from_numpy(np.array([_joined(fit, "sd") for fit in priors]) ** -2)

    def named(self, points: Tensor) -> Values:
        """Return the parameters (B, *shape) by their names, of points (B, P)."""
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        parts = zip(self._shapes.items(), torch.split(points, sizes, 1), strict=True)
        return {name: part.reshape(-1, *shape) for (name, shape), part in parts}

    def evaluate(self, points: Floats) -> tuple[Floats, Floats]:
        """Return minus the log posterior (B,) and its gradient (B, P) at points (B, P)."""
        vectors = torch.tensor(points, requires_grad=True)
        off = (vectors - self._mean) ** 2 * self._precision
        value = 0.5 * off.sum(1) + self.loss(self.named(vectors))
        (gradient,) = torch.autograd.grad(value.sum(), vectors)
        return value.detach().numpy(), gradient.numpy()

    def most_probable(self, steps: int) -> list[dict[str, Floats]]:
        """Return each fit's parameters by name, at the largest density that L-BFGS finds."""
        best = minimize_together(self.evaluate, self.start, steps)
        values = self.named(torch.from_numpy(best))
        return [{name: v[b].numpy() for name, v in values.items()} for b in range(len(best))]


def _joined(priors: dict[str, Prior], field: str) -> Floats:
    """Return the means or the standard deviations of all parameters, one after another."""
    return np.concatenate(
        [np.broadcast_to(getattr(one, field), one.shape).ravel() for one in priors.values()]
    )


def robust_loss(predicted: Tensor, measured: Tensor, weight: Tensor) -> Tensor:
    """Return minus the log likelihoods (B,) of log ratios (B, K, N): mean over N, sum over K.

    weight (B, K): 1 of a kernel, 0 of one that only fills the batch.
    """
    size = torch.sqrt((predicted - measured) ** 2 + ROBUST_SCALE**2)
    return (DATA_WEIGHT * weight * (size.mean(2) - ROBUST_SCALE)).sum(1)


def _starts(fits: Sequence[CurveFit]) -> list[int]:
    """Return where each GPU's kernels start in a batch, and where the last of them end."""
    by_gpu = zip(*(fit.kernels for fit in fits), strict=True)
    sizes = [max(map(len, kernels)) for kernels in by_gpu]
    return list(accumulate(sizes, initial=0))


def _places(fits: Sequence[CurveFit]) -> list[Indices]:
    """Return the place in a batch of each fit's kernels."""
    starts = _starts(fits)
    return [
        np.concatenate([s + np.arange(len(k)) for s, k in zip(starts, fit.kernels, strict=False)])
        for fit in fits
    ]


def curve_posterior(fits: Sequence[CurveFit]) -> Posterior:
    """Return the posterior of fits of the curve that run together."""
    *starts, size = _starts(fits)
    losses = [
        _gpu_loss(number, [fit.kernels[number] for fit in fits], start, fits[0].shares)
        for number, start in enumerate(starts)
    ]
    places, bases = _places(fits), [fit.process[1] for fit in fits]
    points = [place[: len(basis)] for place, basis in zip(places, bases, strict=True)]
    count = 1 + max(int(rows[-1]) for rows in points)
    batch = np.zeros((len(fits), count, size))
    for b, basis in enumerate(bases):
        batch[b][np.ix_(points[b], places[b])] = basis
    to_latents = torch.from_numpy(batch)

    def loss(values: Values) -> Tensor:
        latents = values["alpha"] @ to_latents
        return torch.stack([gpu_loss(values, latents) for gpu_loss in losses]).sum(0)

    return Posterior([fits[0].priors(count)] * len(fits), loss)


def _gpu_loss(
    number: int, kernels: Sequence[GpuKernels], start: int, shares: int
) -> Callable[[Values, Tensor], Tensor]:
    """Return minus the log likelihoods (B,) of one GPU's kernels at values and latents.

    number: of the GPU. kernels: of each fit. start: where they stand among all kernels. shares: of
    the model.
    """
    gpu = kernels[0].gpu
    ratios = GridRatios.from_grid(gpu.grid, gpu.base)
    on_torch = GridRatios(
        engine=torch.from_numpy(ratios.engine),
        memory=torch.from_numpy(ratios.memory),
        cu_count=torch.from_numpy(ratios.cu_count),
        tables=tuple(map(torch.from_numpy, ratios.tables)),
    )
    loads = [KernelLoad.from_traits(k.traits, k.gpu, ratios.cu_count, shares) for k in kernels]
    names = KernelLoad.__dataclass_fields__
    load = KernelLoad(**{name: _stacked([getattr(one, name) for one in loads]) for name in names})
    log_time = _stacked([k.log_ratios["time"] for k in kernels])
    real = _stacked([np.ones(len(k)) for k in kernels], fill=0.0)

    def loss(values: Values, latents: Tensor) -> Tensor:
        curve = BottleneckCurve.from_values(torch, values, number, load, on_torch)
        predicted = curve.log_time(latents[..., start : start + real.shape[1]])
        return robust_loss(predicted, log_time, real)

    return loss


def power_posterior(fits: Sequence[PowerFit]) -> Posterior:
    """Return the posterior of fits of the power's split that run together."""
    grid, base = fits[0].gpu.grid, fits[0].gpu.base
    at_base = grid.position(base)
    elsewhere = torch.ones(grid.size, dtype=torch.float64)
    elsewhere[at_base] = 0
    core, memory = map(torch.from_numpy, energy_weights(grid, base))
    kernels = [fit.kernels[0] for fit in fits]
    log_time = _stacked([k.log_ratios["time"] for k in kernels])
    log_power = _stacked([k.log_ratios["power"] for k in kernels])
    base_w = _stacked([k.base_w for k in kernels])
    real = _stacked([np.ones(len(k)) for k in kernels], fill=0.0)
    points = _stacked([fit.inputs[0] for fit in fits])

    def loss(values: Values) -> Tensor:
        split = PowerSplit(
            xp=torch,
            idle_w=torch.exp(values["idle"] + elsewhere * values["idle_ratio"]),
            base_w=base_w,
            log_core=values["core"] @ core,
            log_memory=values["memory"] @ memory,
            base=at_base,
        )
        odds = values["split"][:, None, :1] + points @ values["split"][:, 1:, None]
        return robust_loss(split.log_power(odds[..., 0], log_time), log_power, real)

    return Posterior([fit.priors() for fit in fits], loss)


def _stacked(arrays: Sequence[Floats], fill: float = 1.0) -> Tensor:
    """Return arrays (n, ...) of several fits as one (B, n, ...), filled up to the longest."""
    size = max(len(array) for array in arrays)
    stack = np.full((len(arrays), size, *arrays[0].shape[1:]), fill)
    for row, array in zip(stack, arrays, strict=True):
        row[: len(array)] = array
    return torch.from_numpy(stack)


@np.errstate(all="ignore")  # steps may end where a function is no number
def minimize_together(evaluate: Evaluate, starts: Floats, steps: int) -> Floats:
    """Minimise B functions from starts (B, P), by so many steps at most, and return where they end.

    evaluate: points (B, P) to values (B,) and gradients (B, P). No function moves another.
    """
    points = starts.copy()
    values, gradients = evaluate(points)
    memory, taken = Memory(*points.shape), np.zeros(len(points), int)
    directions = -gradients / np.linalg.norm(gradients, axis=1, keepdims=True).clip(1e-300)
    search = LineSearch(values, dot(gradients, directions))
    goes_on = np.abs(gradients).max(axis=1) > LEAST_SLOPE
    while goes_on.any():
        tried = points + search.step[:, None] * directions
        new_values, new_gradients = evaluate(tried)
        arrived = search.judge(new_values, dot(new_gradients, directions)) & goes_on
        goes_on &= search.tries < MOST_TRIES
        memory.add(arrived, tried - points, new_gradients - gradients)
        gain = (values - new_values) / np.maximum(1, np.maximum(abs(values), abs(new_values)))
        points[arrived], values[arrived] = tried[arrived], new_values[arrived]
        gradients[arrived] = new_gradients[arrived]
        taken += arrived
        is_flat = (gain <= LEAST_GAIN) | (np.abs(gradients).max(axis=1) <= LEAST_SLOPE)
        goes_on &= ~(arrived & (is_flat | (taken == steps)))
        directions[arrived] = memory.directions(gradients)[arrived]
        search.restart(arrived, values, dot(gradients, directions))
    return points


def dot(a: Floats, b: Floats) -> Floats:
    """Return the inner products (B,) of the rows of two arrays (B, P)."""
    return np.asarray(np.einsum("bp,bp->b", a, b))


class Memory:
    """The last steps and what the gradient changed by on them, both (M, B, P), the newest last."""

    def __init__(self, functions: int, variables: int) -> None:
        self.steps, self.changes = np.zeros((2, MEMORY, functions, variables))
        self.weights = np.zeros((MEMORY, functions))  # 0 of a step that is not there
        self.scale = np.ones(functions)

    def add(self, rows: Mask, steps: Floats, changes: Floats) -> None:
        """Remember steps and changes (B, P) of some functions, unless one curves downwards."""
        curvature, length = dot(steps, changes), dot(changes, changes)
        rows = rows & (curvature > np.finfo(float).eps * length)
        for kept, new in ((self.steps, steps), (self.changes, changes)):
            kept[:, rows] = np.roll(kept[:, rows], -1, axis=0)
            kept[-1, rows] = new[rows]
        self.weights[:, rows] = np.roll(self.weights[:, rows], -1, axis=0)
        self.weights[-1, rows] = 1 / curvature[rows]
        self.scale[rows] = curvature[rows] / length[rows]

    def directions(self, gradients: Floats) -> Floats:
        """Return where the functions fall from points with these gradients, (B, P)."""
        result, shares = -gradients, np.zeros_like(self.weights)
        for m in reversed(range(MEMORY)):
            shares[m] = self.weights[m] * dot(self.steps[m], result)
            result -= shares[m, :, None] * self.changes[m]
        result *= self.scale[:, None]
        for m in range(MEMORY):
            back = self.weights[m] * dot(self.changes[m], result)
            result += (shares[m] - back)[:, None] * self.steps[m]
        return np.asarray(result)


class LineSearch:
    """How far to go along B directions: `step` (B,), tried after `tries` (B,) others.

    values, slopes (B,): of each function and along its direction, where the search starts.
    """

    def __init__(self, values: Floats, slopes: Floats) -> None:
        self.values, self.slopes = values.copy(), slopes.copy()
        # The longest step that was too short, with value and slope there; the shortest too long.
        self.low, self.low_values, self.low_slopes = 0 * values, values.copy(), slopes.copy()
        self.high, self.step = np.full_like(values, np.inf), np.ones_like(values)
        self.tries = np.zeros(len(values), int)

    def restart(self, rows: Mask, values: Floats, slopes: Floats) -> None:
        """Begin anew for some functions."""
        for name, new in vars(LineSearch(values, slopes)).items():
            getattr(self, name)[rows] = new[rows]

    def judge(self, values: Floats, slopes: Floats) -> Mask:
        """Return which steps are right, by what is found there (B,); the others are changed."""
        enough = values <= self.values + WOLFE_DECREASE * self.step * self.slopes
        too_short = enough & (slopes < WOLFE_CURVATURE * self.slopes)
        width = self.step - self.low
        bend = values - self.low_values - self.low_slopes * width
        lowest = self.low - 0.5 * self.low_slopes * width**2 / bend
        self.high = np.where(enough, self.high, self.step)
        for name, new in (("low", self.step), ("low_values", values), ("low_slopes", slopes)):
            setattr(self, name, np.where(too_short, new, getattr(self, name)))
        between = self.high - self.low
        inside = np.where(enough | ~np.isfinite(lowest), self.low + 0.5 * between, lowest)
        inside = np.clip(inside, self.low + INSIDE * between, self.high - INSIDE * between)
        self.step = np.where(np.isinf(self.high), LONGER * self.step, inside)
        self.tries += 1
        return np.asarray(enough & ~too_short)
