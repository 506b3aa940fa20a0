"""Surfaces conditioned on further measured points: Gaussian latents and a common misfit.

log ratio = log_ratios(latents) + misfit + noise, all three Gaussian. A kernel's latents are its own
unknown numbers, such as the log odds of its memory share. The misfit is what no latents can make
up for, drawn for each kernel with the one covariance that training kernels show. Maximum a
posteriori by Gauss-Newton steps, variances by linearisation there. K kernels, L latents, M outputs
(log ratios at every configuration), P points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.surfaces import Surfaces, configuration_weights
from mlscale.notes import Note

RATIO_NOISE = 0.01  # standard deviation of the log of a ratio of two measurements
KEPT_VARIANCE = 1e-14  # where the outputs go through a point
MISSING_VARIANCE = 1e6  # where a point was not measured
GAUSS_NEWTON_STEPS, HALVINGS, DIFFERENCE = 20, 12, 1e-4
CLOSE = 1e-9
LARGEST_SURPRISE = 4.0
STRANGE = "a further point is {:.1f} standard deviations off, unlike the training kernels"
LARGEST_MISFIT = 3.0  # times the kernels' median; a kernel beyond is scaled down


@dataclass(frozen=True, eq=False)
class SurfacePrior:
    """What is known of kernels' surfaces before the points.

    log_ratios: from latents (L, K) to log ratios (K, M). mean and variance (L, K): of the latents.
    misfit, (R, M) or (K, R, M): misfit.T @ misfit is the covariance of what latents cannot make up
    for.
    """

    log_ratios: Callable[[Floats], Floats]
    mean: Floats
    variance: Floats
    misfit: Floats

    def predicted(self) -> Floats:
        """Return the log ratios (K, M) at the mean of the latents."""
        return self.log_ratios(self.mean)

    def spread(self, latents: int) -> Floats:
        """Return the log ratios' deviation (K, M) by the uncertainty of the first latents."""
        variance: Floats = np.zeros(1)
        for j in range(latents):
            shift = np.zeros_like(self.mean)
            shift[j] = np.sqrt(self.variance[j])
            high, low = self.log_ratios(self.mean + shift), self.log_ratios(self.mean - shift)
            variance = variance + (high - low) ** 2 / 4
        return np.sqrt(variance)

    def slopes(self, latents: Floats) -> Floats:
        """Return derivatives (L, K, M) of the log ratios by each latent, by central differences."""
        slopes = []
        for j in range(len(latents)):
            shift = np.zeros_like(latents)
            shift[j] = DIFFERENCE
            high, low = self.log_ratios(latents + shift), self.log_ratios(latents - shift)
            slopes.append((high - low) / (2 * DIFFERENCE))
        return np.array(slopes).reshape(*latents.shape, self.misfit.shape[-1])


@dataclass(frozen=True, eq=False)
class MeasuredRatios:
    """Measured log ratios (K, P), NaN where missing; at (P, M): the outputs' weights in each.

    noise: their standard deviation, of all or of each (K, P). are_kept: whether the outputs go
    through them all the same, by the misfit.
    """

    at: Floats
    logs: Floats
    noise: float | Floats = RATIO_NOISE
    are_kept: bool = False


@dataclass(frozen=True, eq=False)
class SurfacePosterior:
    """Log ratios (K, M) after the points, and their variances before and after them.

    latents (L, K): the most likely. surprise (K,): the largest distance of a point from what was
    predicted without it, in standard deviations. gain (K, M, P) and inverse (K, P, P): covariance
    of outputs and points, inverse of the points'.
    """

    prior: SurfacePrior
    logs: Floats
    latents: Floats
    surprise: Floats
    gain: Floats
    inverse: Floats

    @cached_property
    def slopes(self) -> Floats:
        """Derivatives (L, K, M) of the log ratios by each latent, at the most likely."""
        return self.prior.slopes(self.latents)

    @cached_property
    def before(self) -> Floats:
        """Variance (K, M) without the points."""
        by_latents = np.einsum("lkm,lk->km", self.slopes**2, self.prior.variance)
        return np.asarray(by_latents + (self.prior.misfit**2).sum(axis=-2))

    @property
    def after(self) -> Floats:
        """Variance (K, M) with the points."""
        gained = np.einsum("kmp,kpq,kmq->km", self.gain, self.inverse, self.gain)
        return np.asarray(np.maximum(self.before - gained, 0))

    @property
    def covariance(self) -> Floats:
        """Covariance of the outputs (K, M, M) with the points."""
        misfit = self.prior.misfit
        by_latents = np.einsum("lkm,lk,lkn->kmn", self.slopes, self.prior.variance, self.slopes)
        gained = np.einsum("kmp,kpq,knq->kmn", self.gain, self.inverse, self.gain)
        return np.asarray(by_latents + _transposed(misfit) @ misfit - gained)

    def surprise_flags(self) -> list[tuple[Note, ...]]:
        """Return for each kernel a flag where a point surprises."""
        return [
            (Note("T02", STRANGE.format(surprise), "warning"),)
            if surprise > LARGEST_SURPRISE
            else ()
            for surprise in self.surprise.tolist()
        ]

    def narrowing(self) -> Floats:
        """Return the standard deviation after / before the points, (K, M)."""
        if not self.gain.shape[2]:
            return np.ones_like(self.logs)
        after, before = self.after, self.before
        ratio = np.divide(after, before, out=np.ones_like(before), where=before > 0)
        return np.sqrt(ratio)


@dataclass(frozen=True, eq=False)
class ConditionedSurfaces:
    """Surfaces of one quantity on a grid given the points, and intervals of half-widths (K, N).

    posterior: its last N outputs are of the quantity. Half-widths are of log ratios; at the base
    they are 0.
    """

    grid: ConfigGrid
    base: HardwareConfig
    posterior: SurfacePosterior
    flags: tuple[tuple[Note, ...], ...]

    def surfaces(self, half_width: Floats | None = None) -> Surfaces:
        """Return the surfaces, with intervals of that half-width, which knows the points."""
        logs, ends = self.posterior.logs[:, -self.grid.size :], []
        if half_width is not None:
            settings = self.grid.settings()
            is_other = [settings[axis] != getattr(self.base, axis) for axis in AXES]
            width = half_width * np.any(is_other, axis=0)
            ends = [logs - width, logs + width]
        return Surfaces.from_log_ratios(self.grid, self.base, logs, self.flags, ends)

    def narrowing(self) -> Floats:
        """Return the standard deviation after / before the points, (K, N)."""
        return self.posterior.narrowing()[:, -self.grid.size :]


def measured_ratios(profiles: Profiles, grid: ConfigGrid, *quantities: str) -> MeasuredRatios:
    """Return the points of `Profiles.points` as log ratios to the base; between steps interpolated.

    Outputs are the log ratios (N) of each of the quantities, one after the other. Raises
    InputError on a point outside the grid's range.
    """
    measured = [
        (number, point.config, values / profiles.quantity(quantity))
        for point in profiles.points
        for number, quantity in enumerate(quantities)
        if (values := getattr(point, QUANTITIES[quantity])) is not None
    ]
    at = np.zeros((len(measured), len(quantities), grid.size))
    for row, (number, config, _) in zip(at, measured, strict=True):
        row[number] = configuration_weights(grid, config)
    logs = np.log([ratios for _, _, ratios in measured]).reshape(-1, len(profiles.kernels)).T
    return MeasuredRatios(at.reshape(-1, grid.size * len(quantities)), logs)


def condition(
    prior: SurfacePrior,
    points: MeasuredRatios,
    start: Floats | None = None,
    steps: int = GAUSS_NEWTON_STEPS,
) -> SurfacePosterior:
    """Return the outputs given the points; with no point known, those of the mean.

    start (L, K): latents to begin at, by default the mean; steps: of Gauss and Newton, at most.
    """
    if not len(points.at):
        nothing = np.empty((*points.logs.shape[:1], 0, 0))
        logs = prior.predicted()
        none, empty = np.zeros(len(logs)), np.empty((*logs.shape, 0))
        return SurfacePosterior(prior, logs, prior.mean, none, empty, nothing)
    shared = points.at @ _transposed(prior.misfit)
    missing = np.isnan(points.logs)
    noise = np.where(missing, MISSING_VARIANCE, points.noise**2)
    spread: Floats = shared @ _transposed(shared) + noise[:, :, None] * np.eye(len(points.at))
    inverse = np.asarray(np.linalg.inv(spread))
    start = prior.mean if start is None else start
    latents = _most_likely(prior, points, missing, inverse, start, steps)
    logs, slopes = prior.log_ratios(latents), prior.slopes(latents)
    at_points = np.einsum("lkm,pm->lkp", slopes, points.at)
    gain = np.einsum("lkm,lk,lkp->kmp", slopes, prior.variance, at_points)
    gain = gain + _transposed(prior.misfit) @ _transposed(shared)
    whole = spread + np.einsum("lkp,lk,lkq->kpq", at_points, prior.variance, at_points)
    off = np.where(missing, 0, points.logs - prior.predicted() @ points.at.T)
    surprise = (np.abs(off) / np.sqrt(np.diagonal(whole, axis1=1, axis2=2))).max(axis=1)
    left = np.where(missing, 0, points.logs - logs @ points.at.T)
    if points.are_kept:
        noise = np.where(missing, MISSING_VARIANCE, KEPT_VARIANCE)
        spread = shared @ _transposed(shared) + noise[:, :, None] * np.eye(len(points.at))
    weights = np.linalg.solve(spread, left[:, :, None])[:, None, :, 0]
    moved = logs + (weights @ shared @ prior.misfit)[:, 0]
    return SurfacePosterior(prior, moved, latents, surprise, gain, np.asarray(np.linalg.inv(whole)))


def _most_likely(
    prior: SurfacePrior,
    points: MeasuredRatios,
    missing: Mask,
    inverse: Floats,
    start: Floats,
    steps: int,
) -> Floats:
    """Return the latents (L, K) of largest posterior density; a step never lowers it."""

    def left(latents: Floats) -> Floats:
        return np.where(missing, 0, points.logs - prior.log_ratios(latents) @ points.at.T)

    def cost(latents: Floats) -> Floats:
        rest = left(latents)
        off = ((latents - prior.mean) ** 2 / prior.variance).sum(axis=0)
        return np.asarray(off + np.einsum("kp,kpq,kq->k", rest, inverse, rest))

    latents, costs = start, cost(start)
    for _ in range(steps):
        slopes = np.einsum("lkm,pm->lkp", prior.slopes(latents), points.at)
        uphill = np.einsum("lkp,kpq,kq->kl", slopes, inverse, left(latents))
        uphill -= ((latents - prior.mean) / prior.variance).T
        curvature = np.einsum("lkp,kpq,mkq->klm", slopes, inverse, slopes)
        curvature += np.eye(len(latents)) / prior.variance.T[:, :, None]
        step = np.linalg.solve(curvature, uphill[:, :, None])[:, :, 0].T
        if np.abs(step).max(initial=0) < CLOSE:
            break
        improved = np.zeros(len(costs), dtype=bool)
        before = latents
        for _ in range(HALVINGS):
            tried = np.where(improved, latents, before + step)
            new = cost(tried)
            better = ~improved & (new < costs)
            latents = np.where(better, tried, latents)
            costs = np.where(better, new, costs)
            improved |= better
            if improved.all():
                break
            step = step / 2
        if not improved.any():
            break
    return latents


def random_walk(log_clock: Floats, drift: float) -> Floats:
    """Return the misfit (..., R, M) of independent steps between clocks, from the base both ways.

    log_clock (..., M): ln(clock / base). drift: standard deviation where that is 1 or -1.
    """
    rows = []
    for side in (-1, 1):
        distance = np.maximum(side * log_clock, 0)
        far = np.sort(distance, axis=-1)
        steps = np.diff(far, prepend=0)
        is_step = steps.reshape(-1, steps.shape[-1]).any(axis=0)
        far, steps = far[..., is_step, None], steps[..., is_step, None]
        rows.append(drift * np.sqrt(steps) * (distance[..., None, :] >= far))
    return np.concatenate(rows, axis=-2)


def _transposed(matrices: Floats) -> Floats:
    return np.swapaxes(matrices, -1, -2)


def misfit_of(left_over: Floats) -> Floats:
    """Return the misfit (R, M) that training kernels show; left_over (K, M): measured - predicted.

    A kernel that is far beyond the others' counts as one at the limit.
    """
    size = np.sqrt((left_over**2).mean(axis=1))
    limit = LARGEST_MISFIT * np.median(size)
    kept = left_over * np.minimum(1, limit / np.maximum(size, 1e-12))[:, None]
    return np.asarray(np.linalg.qr(kept / np.sqrt(len(kept)), mode="r"))
