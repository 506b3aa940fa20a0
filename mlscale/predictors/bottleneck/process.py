"""The Gaussian process that adds to the physics of the bottleneck curve: NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self, TypeVar

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.roofline import readable
from mlscale.predictors.features import Flags, range_flags

# The covariance: exp(-2 d2 / LENGTH_SCALE^2) + 3 LINEAR^2 <z, z'> / D, where d2 is the mean
# squared difference of the D inputs; times SHARED_BETWEEN_GPUS for kernels on different GPUs.
LENGTH_SCALE, LINEAR, SHARED_BETWEEN_GPUS = 3.0, 0.3, 0.7
JITTER = 1e-4
FARTHEST = 3.0  # standard deviations of an input from the training mean; it is clipped there
# Inducing points: some kernels that stand for all of a large training set. With all K kernels time
# grows as K^3 and memory as K^2; with n that stand for them, as K n^2 and K n. Decision 0017 says
# what that costs in accuracy.
MOST_POINTS = 400  # where there are fewer kernels, each stands for itself

Array = TypeVar("Array", Floats, Indices)


@dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process over D standardised inputs of the training kernels on several GPUs.

    n of the kernels, with few kernels each of them, stand for all: `inducing_rows`. names of the
    inputs; mean and spread (D,), the training kernels' mean and standard deviation, standardise
    them; low and high (D,) are the range trained. points (n, D) and gpu (n,): their inputs and the
    number of their GPU; weights (L, n) of the points in the means of the L latents; inverse (n, n)
    of the points' covariance. amplitude: prior standard deviation of the latents.
    """

    names: Annotated[tuple[str, ...], "D"]
    mean: Annotated[Floats, "D"]
    spread: Annotated[Floats, "D"]
    low: Annotated[Floats, "D"]
    high: Annotated[Floats, "D"]
    points: Annotated[Floats, "n D"]
    gpu: Annotated[Indices, "n"]
    weights: Annotated[Floats, "L n"]
    inverse: Annotated[Floats, "n n"]
    amplitude: float

    @classmethod
    def from_inputs(
        cls, inputs: Sequence[dict[str, Floats]], amplitude: float
    ) -> tuple[Self, Floats]:
        """Make a process without weights, from the named inputs of each GPU's kernels.

        An input that no kernel has is left out. The second result, (n, K), turns independent
        normal numbers (L, n) into the latents of all K kernels, as `whitening` into weights.
        """
        joined = {name: np.concatenate([gpu[name] for gpu in inputs]) for name in inputs[0]}
        names = known_names(joined)
        raw = columns_of(joined, names)
        mean, spread = scaling(raw)
        points = standardised(raw, mean, spread)
        sizes = [len(next(iter(named.values()))) for named in inputs]
        gpu = np.repeat(np.arange(len(sizes)), sizes)
        low, high = np.nanmin(raw, axis=0), np.nanmax(raw, axis=0)

        rows = inducing_rows(len(points))
        kept, gpu_kept, none = at_rows(points, rows), at_rows(gpu, rows), np.zeros((0, len(rows)))
        process = cls(names, mean, spread, low, high, kept, gpu_kept, none, none, amplitude)
        process = replace(process, inverse=process.whitening.T @ process.whitening)
        prior = amplitude**2 * covariance(process.points, points, process.gpu, gpu)
        return process, process.whitening @ prior

    @cached_property
    def whitening(self) -> Floats:
        """The matrix (n, n) that turns independent normal numbers (L, n) into weights."""
        prior = self.amplitude**2 * covariance(self.points, self.points, self.gpu, self.gpu)
        noisy = prior + JITTER * self.amplitude**2 * np.eye(len(self.points))
        return np.asarray(np.linalg.inv(np.linalg.cholesky(noisy)))

    def points_of(self, values: dict[str, Floats]) -> Floats:
        """Return points (K, D) from named inputs; a missing one is taken at the training mean."""
        return standardised(columns_of(values, self.names), self.mean, self.spread)

    def distance(self, points: Floats) -> Floats:
        """Return how far points (K, D) are from the nearest that stands for training kernels, (K,).

        The root mean square over the inputs, in standard deviations.
        """
        return np.asarray(np.sqrt(squared_distance(points, self.points).min(axis=1)))

    def flags(self, values: dict[str, Floats]) -> Flags:
        """Return for each kernel the inputs that are missing or outside the range trained."""
        columns = columns_of(values, self.names)
        return range_flags(self.names, columns, self.low, self.high, readable)

    def latents(self, points: Floats, gpu: int | None) -> tuple[Floats, Floats]:
        """Return means (L, K), and the variance (K,), given the training kernels, at points (K, D).

        gpu: the number of the kernels' GPU; None for one without training data.
        """
        number = np.full(len(points), -1 if gpu is None else gpu)
        cross = self.amplitude**2 * covariance(points, self.points, number, self.gpu)
        prior = self.amplitude**2 * (1 + 3 * LINEAR**2 * np.mean(points**2, axis=1))
        variance = prior - ((cross @ self.inverse) * cross).sum(axis=1)
        return self.weights @ cross.T, np.maximum(variance, 0)


def squared_distance(a: Floats, b: Floats) -> Floats:
    """Return the mean squared difference (A, B) of points (A, D) and (B, D) over D coordinates."""
    lengths = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return np.asarray(np.maximum(lengths - 2 * a @ b.T, 0) / a.shape[1])


def covariance(a: Floats, b: Floats, gpu_a: Indices, gpu_b: Indices) -> Floats:
    """Return the prior covariance (A, B) at amplitude 1, of points (A, D), (B, D) of those GPUs."""
    smooth = np.exp(-2 * squared_distance(a, b) / LENGTH_SCALE**2)
    linear = 3 * LINEAR**2 * (a @ b.T) / a.shape[1]
    same = gpu_a[:, None] == gpu_b
    return np.asarray((smooth + linear) * np.where(same, 1.0, SHARED_BETWEEN_GPUS))


def known_names(named: dict[str, Floats]) -> tuple[str, ...]:
    """Return the names of inputs that some kernel has; named: (K,) each, NaN where missing."""
    return tuple(name for name, values in named.items() if not np.isnan(values).all())


def columns_of(named: dict[str, Floats], names: Sequence[str]) -> Floats:
    """Return named inputs (K,) as columns (K, D), NaN where there is none of a name."""
    missing = np.full(len(next(iter(named.values()))), np.nan)
    return np.column_stack([named.get(name, missing) for name in names])


def scaling(raw: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of inputs (K, D); 0 and 1 of one that no kernel has."""
    mean, spread = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    present = ~np.isnan(raw).all(axis=0)
    mean[present] = np.nanmean(raw[:, present], axis=0)
    spread[present] = np.nanstd(raw[:, present], axis=0) + 1e-9
    return mean, spread


def standardised(raw: Floats, mean: Floats, spread: Floats, farthest: float = FARTHEST) -> Floats:
    """Return inputs (K, D) standardised and clipped; a missing one is at the mean."""
    return np.nan_to_num(np.clip((raw - mean) / spread, -farthest, farthest))


def inducing_rows(count: int) -> Indices:
    """Return the rows, in order, of the kernels that stand for all: MOST_POINTS at most, drawn.

    count: of all kernels. The same kernels give the same rows.
    """
    drawn = np.random.default_rng(0).permutation(count)[:MOST_POINTS]
    return np.sort(drawn)


def at_rows(values: Array, rows: Indices) -> Array:
    """Return the values (n, ...) in those rows of (K, ...): the array itself where they are all.

    NumPy multiplies an array by itself transposed otherwise than by a copy, which shows in the
    last digits.
    """
    return values if len(rows) == len(values) else values[rows]
