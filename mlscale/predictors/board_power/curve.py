"""The power of a board over the engine clock, its voltage a floor and then a line: NumPy.

K runs, N configurations, L = 3 latents of a run: the log odds of the watts that follow the clock
and of those that follow the rate of work to the constant ones, and the voltage's floor, the clock
up to which it stays at its least, relative to the highest.
"""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device_table import known_device

LATENTS = ("log odds of clocked watts", "log odds of watts by rate", "voltage floor")
# Of ln V^2 by the clock relative to the highest, above the floor. It is 2.0 on two A100s whose
# voltage was measured; leakage, which follows more than V^2, is in it. Chosen by leaving out GPUs.
VOLTAGE_SLOPE = 3.0
BEND = 0.05  # of the highest clock: how wide the bend at the floor is
FLOOR_SD = 0.04  # of a floor in the device table: the two A100s' differ by 0.06
# The power of V^2 that the parts follow: constant watts, clocked watts, and those by the rate of
# work, of which DRAM's have a voltage of their own.
FOLLOWING = np.array([0.0, 1.0, 0.5])[:, None, None]


@dataclass(frozen=True, eq=False)
class BoardCurve:
    """P / P_base, with P in proportion to 1 + a v clock + b v^0.5 T_base / T.

    v is V^2 over its floor's, and clock relative to the highest; a and b are the odds. ln v is 0 up
    to the floor and rises in a line from there, with a smooth bend. log_clock (N,): ln(clock /
    base); highest: the highest clock relative to the base. log_time (K, N): log time ratios.

    Example:
        curve = BoardCurve(np.log([0.5, 1.0]), 1.0, np.log([[2.0, 1.0]]))
        curve.log_ratios(np.array([[0.4], [0.2], [0.7]]))  # log power ratios (1, 2)
    """

    log_clock: Floats
    highest: float
    log_time: Floats

    def log_ratios(self, latents: Floats) -> Floats:
        """Log power ratios (K, N) at latents (3, K)."""
        there, base = (np.log(np.exp(parts).sum(axis=0)) for parts in self._log_parts(latents))
        return np.asarray(there - base)

    def slopes(self, latents: Floats) -> Floats:
        """Derivatives of the log power ratios by the latents (3, K, N)."""
        there, base = (_shares(parts) for parts in self._log_parts(latents))
        by_floor = [
            (FOLLOWING * shares).sum(axis=0) * -VOLTAGE_SLOPE / (1 + np.exp(-above))
            for shares, above in zip((there, base), self._above(latents[2]), strict=True)
        ]
        return np.concatenate([there[1:] - base[1:], (by_floor[0] - by_floor[1])[None]])

    def _log_parts(self, latents: Floats) -> tuple[Floats, Floats]:
        """The logs of the three parts over the constant one: (3, K, N), at the base (3, K, 1)."""
        odds = np.concatenate([np.zeros((1, latents.shape[1])), latents[:2]])[..., None]
        log_base = -np.log(self.highest)
        clocks = (self.log_clock + log_base, np.array([log_base]))
        times = (self.log_time, np.zeros((len(self.log_time), 1)))
        there, base = (
            odds
            + np.array([0 * time, clock + 0 * time, -time])
            + FOLLOWING * VOLTAGE_SLOPE * BEND * np.logaddexp(0, above)
            for clock, time, above in zip(clocks, times, self._above(latents[2]), strict=True)
        )
        return there, base

    def _above(self, floor: Floats) -> tuple[Floats, Floats]:
        """How far the clocks (K, N) and the base (K, 1) are above floors (K,), in bends."""
        clock = np.exp(self.log_clock) / self.highest
        return (clock - floor[:, None]) / BEND, (1 / self.highest - floor[:, None]) / BEND


def _shares(log_parts: Floats) -> Floats:
    parts = np.exp(log_parts)
    return np.asarray(parts / parts.sum(axis=0))


def known_floor(device: str, highest_mhz: float) -> float | None:
    """The voltage's floor of a GPU relative to its highest clock; None where it is not known."""
    known = known_device(device)
    if known is None or known.voltage_floor_mhz is None:
        return None
    return known.voltage_floor_mhz / highest_mhz


def given_floor(means: Floats, covariance: Floats, floor: float | None) -> tuple[Floats, Floats]:
    """Latents' means (L, K) and covariance (L, L), where the GPU's floor may be known.

    By the rule for a Gaussian of which one entry was observed, to FLOOR_SD.
    """
    if floor is None:
        return means, covariance
    gain = covariance[:, -1] / (covariance[-1, -1] + FLOOR_SD**2)
    means = means + gain[:, None] * (floor - means[-1])
    return means, covariance - np.outer(gain, covariance[-1])
