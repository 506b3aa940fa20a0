"""Kernels' latents as Gaussian processes of their inputs, fitted by Gauss-Newton steps: NumPy.

n training kernels, K new ones, L latents, D inputs, G numbers that all kernels share.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, shaped
from mlscale.predictors.bottleneck.process import squared_distance
from mlscale.predictors.sampled.curves import Curve, CurvePrior

STEPS = 15
LONGEST_STEP = 1.5  # of a latent


@dataclass(frozen=True)
class Setting:
    """noise: standard deviation of a kernel's log ratios.

    length: root mean square distance, in standard deviations, that is still alike; linear and
    amplitude: prior standard deviations of what latents add linearly and smoothly in the inputs.
    """

    noise: float
    length: float
    linear: float
    amplitude: float

    def covariance(self, a: Floats, b: Floats, shared_sd: float) -> Floats:
        """Prior covariance (A, B) of a latent at points (A, D) and (B, D)."""
        smooth = np.exp(-squared_distance(a, b) / (2 * self.length**2))
        linear = a @ b.T / a.shape[1]
        return np.asarray(shared_sd**2 + self.linear**2 * linear + self.amplitude**2 * smooth)


@dataclass(frozen=True, eq=False)
class Latents:
    """A fit: weights (L, n) of the training points in the latents' means, and the numbers (G,)."""

    setting: Setting
    weights: Floats
    numbers: Floats

    @classmethod
    def fit(cls, curve: Curve, logs: Floats, points: Floats, setting: Setting) -> Self:
        """Maximum a posteriori; logs (n, N): measured log ratios, points (n, D).

        A kernel's clocks count together as one observation of its latents, and one far off the
        curve counts less (Cauchy's weight).
        """
        prior = curve.prior
        covariance = setting.covariance(points, points, prior.latent_sd)
        count, (kernels, clocks) = len(prior.latent_means), logs.shape
        mean = np.repeat(prior.latent_means[:, None], kernels, axis=1)
        latents, weights, numbers = mean, np.zeros_like(mean), prior.number_means
        for _ in range(STEPS):
            left = logs - curve.log_ratios(latents, numbers)
            off = (left**2).mean(axis=1)
            precision = 1 / (1 + off / prior.outlier**2) / setting.noise**2 / clocks
            by_latent, _ = curve.slopes(latents, numbers)
            information = np.einsum("akn,bkn,k->akb", by_latent, by_latent, precision)
            target = np.einsum("akn,kn,k->ak", by_latent, left, precision)
            target += np.einsum("akb,bk->ak", information, latents - mean)
            system = information[..., None] * covariance[:, None, :]
            system = np.eye(count * kernels) + system.reshape(count * kernels, -1)
            weights = np.linalg.solve(system, target.ravel()).reshape(count, kernels)
            step = mean + weights @ covariance - latents
            latents = latents + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            left = logs - curve.log_ratios(latents, numbers)
            _, by_number = curve.slopes(latents, numbers)
            curvature = np.einsum("akn,bkn,k->ab", by_number, by_number, precision)
            uphill = np.einsum("akn,kn,k->a", by_number, left, precision)
            uphill -= (numbers - prior.number_means) / prior.number_sds**2
            curvature += np.diag(prior.number_sds**-2.0)
            numbers = numbers + np.linalg.solve(curvature, uphill)
        return cls(setting, weights, numbers)

    def at(self, curve: Curve, training: Floats, points: Floats) -> Floats:
        """The log ratios (K, N) of a curve at points (K, D); training (n, D): those fitted."""
        return curve.log_ratios(self.means(curve.prior, training, points), self.numbers)

    def means(self, prior: CurvePrior, training: Floats, points: Floats) -> Floats:
        """The latents' means (L, K) at points (K, D); training (n, D): those fitted."""
        cross = self.setting.covariance(training, points, prior.latent_sd)
        return np.asarray(prior.latent_means[:, None] + self.weights @ cross)

    def state(self) -> dict[str, Any]:
        """Arrays for the model file."""
        return {"weights": self.weights, "numbers": self.numbers}

    @classmethod
    def restore(
        cls, state: dict[str, Any], setting: Setting, prior: CurvePrior, kernels: int
    ) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        weights = shaped(state["weights"], len(prior.latent_means), kernels)
        return cls(setting, weights, shaped(state["numbers"], len(prior.number_means)))
