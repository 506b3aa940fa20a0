"""The two curves of `sampled` over the engine clock, with their derivatives: NumPy.

K kernels, N clocks, L latents of each kernel, G numbers that all kernels share.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.curve import p_norm

NODES = np.array([0.3, 0.44, 0.58, 0.72, 0.86, 1.0])  # of the highest clock
VOLTAGE_STEPS = np.array([0.01, 0.02, 0.06, 0.16, 0.24])  # prior steps of ln V^2 between nodes


@dataclass(frozen=True, eq=False)
class CurvePrior:
    """What is believed of a kind of curve before there are kernels.

    latent_means (L,), latent_sd: of what all kernels' latents share. number_means and number_sds
    (G,). outlier: root mean square log error at which a kernel counts half.
    """

    latent_means: Floats
    latent_sd: float
    number_means: Floats
    number_sds: Floats
    outlier: float


class Curve(Protocol):
    """Log ratios to the base as a function of latents and numbers."""

    @property
    def prior(self) -> CurvePrior:
        """The prior of its kind."""

    def log_ratios(self, latents: Floats, numbers: Floats) -> Floats:
        """Log ratios (K, N) at latents (L, K) and numbers (G,)."""

    def slopes(self, latents: Floats, numbers: Floats) -> tuple[Floats, Floats]:
        """Derivatives by the latents (L, K, N) and by the numbers (G, K, N)."""


@dataclass(frozen=True, eq=False)
class TimeCurve:
    """T / T_base = (1 - c + c (base / clock)^p)^(1/p).

    c = 1 / (1 + exp(-latent)) is the share, as a p-th power, of what follows the engine clock; the
    rest is DRAM and the host. The one number is ln p. log_clock (N,): ln(clock / base).
    """

    prior: ClassVar[CurvePrior] = CurvePrior(
        latent_means=np.array([1.5]),
        latent_sd=2.0,
        number_means=np.array([np.log(2.0)]),
        number_sds=np.array([0.3]),
        outlier=0.15,
    )

    log_clock: Floats

    def log_ratios(self, latents: Floats, numbers: Floats) -> Floats:
        """Log time ratios (K, N); see `Curve`."""
        slowdown = self.log_clock  # of what does not follow the clock, relative to what does
        relative = p_norm(np, [-latents[0]], [slowdown], np.exp(numbers))
        return np.asarray(relative[:, 0] - self.log_clock)

    def slopes(self, latents: Floats, numbers: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the log time ratios; see `Curve`."""
        p = np.exp(numbers[0])
        share = 1 / (1 + np.exp(-latents[0]))[:, None]
        following = np.exp(-p * self.log_clock)
        whole = 1 - share + share * following
        by_latent = share * (1 - share) * (following - 1) / whole / p
        by_log_p = -share * following * self.log_clock / whole - np.log(whole) / p
        return by_latent[None], by_log_p[None]


@dataclass(frozen=True, eq=False)
class PowerCurve:
    """P / P_base = w0 + w1 g + w2 T_base / T, with (w0, w1, w2) = softmax(0, latents).

    w0 is constant, w1 follows the engine clock and its voltage, g = V^2 clock / base; w2 follows
    the rate of work, as DRAM does at its fixed voltage. ln V^2 is linear between nodes of the
    clock relative to the highest; its steps are softplus(numbers), so that voltage never falls.
    log_clock (N,): ln(clock / base); highest: the highest clock relative to the base. log_time
    (K, N): log time ratios.
    """

    prior: ClassVar[CurvePrior] = CurvePrior(
        latent_means=np.array([-0.3, -1.5]),
        latent_sd=1.5,
        number_means=np.log(np.expm1(VOLTAGE_STEPS)),
        number_sds=np.ones(len(VOLTAGE_STEPS)),
        outlier=0.1,
    )

    log_clock: Floats
    highest: float
    log_time: Floats

    def log_ratios(self, latents: Floats, numbers: Floats) -> Floats:
        """Log power ratios (K, N); see `Curve`."""
        _, parts = self.parts(latents, self.log_voltage(numbers))
        return np.asarray(np.log(parts.sum(axis=0)))

    def slopes(self, latents: Floats, numbers: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the log power ratios; see `Curve`."""
        weights, parts = self.parts(latents, self.log_voltage(numbers))
        shares = parts / parts.sum(axis=0)
        by_latents = shares[1:] - weights[1:]
        steps = self._passed() / (1 + np.exp(-numbers))[:, None]
        return by_latents, shares[1] * steps[:, None, :]

    def log_voltage(self, numbers: Floats) -> Floats:
        """The log ratio of the squared voltage to that at the base, (N,)."""
        return np.asarray(np.log1p(np.exp(numbers)) @ self._passed())

    def _passed(self) -> Floats:
        """The share of each voltage step between the base and a clock, (G, N)."""
        return _passed(np.exp(self.log_clock) / self.highest) - _passed(
            np.array([1 / self.highest])
        )

    def parts(self, latents: Floats, log_voltage: Floats) -> tuple[Floats, Floats]:
        """The weights (3, K, 1), and the weighted parts of the power ratio (3, K, N).

        log_voltage (N,): that of the squared voltage relative to the base.
        """
        logits = np.concatenate([np.zeros((1, latents.shape[1])), latents])
        odds = np.exp(logits - logits.max(axis=0))
        weights = (odds / odds.sum(axis=0))[..., None]
        clocked = np.exp(log_voltage + self.log_clock)
        rates = [np.ones_like(self.log_time), clocked + 0 * self.log_time, np.exp(-self.log_time)]
        return weights, weights * np.array(rates)


def _passed(clock: Floats) -> Floats:
    """The share of each step between two nodes that lies below a clock, (G, N).

    Above the last node the last step goes on.
    """
    low, high = NODES[:-1, None], NODES[1:, None]
    most = np.where(high == NODES[-1], np.inf, 1.0)
    return np.asarray(np.clip((clock - low) / (high - low), 0, most))
