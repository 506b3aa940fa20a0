"""The laws of `board`, and how runs differ by them: NumPy.

f is the engine clock, b the base, x = f / the GPU's highest (decision 0016):

    T / T_b = (1 - c + c (f_b / f)^p)^(1/p)
    P / P_b = (1 + a r) v(x) / (1 + a) / v(x_b),  r = T_b / T,  ln v = s W ln(1 + exp((x - x0) / W))

c is the share that follows the clock, p how sharp the bend between the two shares is; a the odds of
watts that follow the rate of work to constant ones; v is V^2 with leakage, flat up to a floor x0.
What the laws leave is a random walk over the log clock. (logit c, ln p) and (ln a, x0, ln s) of
runs are Gaussian, as runs of several GPUs show, each GPU weighing the same.

K runs, N configurations, M engine clocks of a training table, L unknowns of a run.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats, Mask, positive
from mlscale.data.devices import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.logs import clocks_not_reached, require_engine_sweep
from mlscale.data.measurements import Measurements
from mlscale.predictors.conditioning import (
    DIFFERENCE,
    MeasuredRatios,
    SurfacePosterior,
    SurfacePrior,
    random_walk,
)
from mlscale.predictors.intervals import equal_weights

LEAST_CLOCKS = 3  # of a training table
CLOCKS = 12  # of a training table, at most, evenly over it
BEND = 0.08  # W of the law: of the highest clock, how wide the bend at the voltage's floor is
LOG_P_RANGE, LOG_S_RANGE = (-1.0, 3.0), (-1.5, 2.5)
FIRST = {  # mean and deviation of the unknowns before there are runs
    "time": (np.array([1.0, 0.7]), np.array([2.0, 0.7])),
    "power": (np.array([0.0, 0.7, 0.7]), np.array([1.5, 0.15, 0.4])),
}
# Of ln p, of runs: learnt from tables of single kernels it is too sharp, as runs mix kernels.
LOG_P, LOG_P_SD = np.log(2.1), 1.1
FIRST_DRIFT, LEAST_DRIFT, LEAST_SD = 0.03, 0.005, 0.04
TRAINING_NOISE = 0.03  # standard deviation of the log of a ratio of two training measurements
ROUNDS, ROUNDS_AGAIN = 12, 4  # of expectation and maximisation; from nearly the same runs'
STEPS, LONGEST_STEP = 3, 1.0  # of Gauss and Newton in each

Law = Callable[[Floats], Floats]  # from unknowns (L, K) to log ratios (K, N)


def _slopes(law: Law, unknowns: Floats) -> Floats:
    """Derivatives (L, K, N) of a law by each of the unknowns (L, K)."""
    shifts = DIFFERENCE * np.eye(len(unknowns))[:, :, None]
    slopes = [(law(unknowns + s) - law(unknowns - s)) / (2 * DIFFERENCE) for s in shifts]
    return np.array(slopes)


def log_times(log_clock: Floats, unknowns: Floats) -> Floats:
    """Log time ratios (K, N) over ln(f / f_b) (N,), at the unknowns (logit c, ln p) (2, K)."""
    logit, log_p = unknowns[:, :, None]
    p = np.exp(np.clip(log_p, *LOG_P_RANGE))
    log_share, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    return np.asarray(np.logaddexp(log_share - p * log_clock, log_rest) / p)


def log_powers(x: Floats, x_base: float, log_time: Floats, unknowns: Floats) -> Floats:
    """Log power ratios (K, N) at the unknowns (ln a, x0, ln s) (3, K).

    x (N,) and x_base: the clocks over the GPU's highest; log_time (K, N): log time ratios.
    """
    log_odds, floor, log_slope = unknowns[:, :, None]
    slope = BEND * np.exp(np.clip(log_slope, *LOG_S_RANGE))

    def log_power(at: Floats, log_time: Floats) -> Floats:
        log_v = slope * np.logaddexp(0, (at - floor) / BEND)
        return np.asarray(np.logaddexp(0, log_odds - log_time) + log_v)

    return log_power(x, log_time) - log_power(np.array([x_base]), np.zeros((1, 1)))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Training runs of one GPU from its highest clock: log ratios (K, M) over ln(f / f_b) (M,)."""

    device: str
    log_clock: Floats
    logs: Floats
    law: Law

    @classmethod
    def from_table(cls, table: Measurements, base: HardwareConfig, quantity: str) -> Self:
        """That of one quantity, at CLOCKS of the engine clocks that were kept. InputError."""
        require_engine_sweep("board", table, LEAST_CLOCKS)
        clocks = np.array(table.grid.engine_mhz)
        lost = clocks_not_reached(table)
        kept = np.flatnonzero([mhz not in lost or mhz == base.engine_mhz for mhz in clocks])
        even = kept[np.linspace(0, len(kept) - 1, min(CLOCKS, len(kept))).round().astype(int)]
        at = np.union1d(even, np.flatnonzero(clocks == base.engine_mhz))
        log_clock = np.log(clocks[at] / base.engine_mhz)
        times = table.log_ratios("time", base)[:, at]
        if quantity == "time":
            return cls(table.device, log_clock, times, lambda z: log_times(log_clock, z))
        highest = highest_clock(table.device, clocks)
        x, x_base = clocks[at] / highest, base.engine_mhz / highest
        powers = table.log_ratios("power", base)[:, at]
        return cls(table.device, log_clock, powers, lambda z: log_powers(x, x_base, times, z))

    @property
    def away(self) -> Mask:
        """Which clocks are not the base, (M,)."""
        return np.array(self.log_clock != 0)

    def points(self, at: Mask) -> MeasuredRatios:
        """The measured ratios at these clocks (M,)."""
        return MeasuredRatios(np.eye(len(at))[at], self.logs[:, at])

    def second(self, share: float) -> Mask:
        """The clock (M,) that is nearest to a share of the base's, and is not the base."""
        off = np.where(self.away, np.abs(np.exp(self.log_clock) - share), np.inf)
        return np.asarray(np.arange(len(off)) == off.argmin())


@dataclass(frozen=True, eq=False)
class Population:
    """How runs differ: mean (L,) and covariance (L, L) of their unknowns, and the walk's drift.

    drift: standard deviation of what the law leaves of the log, at a clock e times the base's.
    """

    mean: Annotated[Floats, "L"]
    covariance: Annotated[Floats, "L L"]
    drift: Annotated[float, positive]

    @staticmethod
    def learn(
        sweeps: Sequence[Sweep], quantity: str, start: "Population | None" = None
    ) -> "Population":
        """That of the runs of several GPUs, by expectation and maximisation.

        start: that of nearly the same runs, if there is one.
        """
        weight = equal_weights([sweep.device for sweep in sweeps for _ in sweep.logs])
        gpus = len({sweep.device for sweep in sweeps})
        between = gpus / max(gpus - 1, 1)  # the mean is known from as many GPUs alone
        mean, sd = FIRST[quantity]
        population = start or Population(mean, np.diag(sd**2), FIRST_DRIFT)
        unknowns = [np.repeat(population.mean[:, None], len(one.logs), axis=1) for one in sweeps]
        for _ in range(ROUNDS if start is None else ROUNDS_AGAIN):
            fits = [population.fitted(*one) for one in zip(sweeps, unknowns, strict=True)]
            unknowns = [fit[0] for fit in fits]
            every = np.hstack(unknowns)
            mean = every @ weight
            off = np.sqrt(weight) * (every - mean[:, None])
            unsure = np.concatenate([fit[1] for fit in fits])
            covariance = between * off @ off.T + np.einsum("k,kij->ij", weight, unsure)
            covariance += LEAST_SD**2 * np.eye(len(mean))
            drift = np.sqrt(weight @ np.concatenate([fit[2] for fit in fits]))
            population = Population(mean, covariance, max(float(drift), LEAST_DRIFT))
        return population

    def fitted(self, sweep: Sweep, unknowns: Floats) -> tuple[Floats, Floats, Floats]:
        """Of training runs the likeliest unknowns (L, K), their covariances (K, L, L), and drift².

        By Gauss and Newton; unknowns: where to begin.
        """
        away = sweep.away
        walk = random_walk(sweep.log_clock[away], self.drift)
        inverse = np.linalg.inv(walk.T @ walk + TRAINING_NOISE**2 * np.eye(away.sum()))
        known = np.linalg.inv(self.covariance)
        for _ in range(STEPS):
            slopes = _slopes(sweep.law, unknowns)[:, :, away]
            left = (sweep.logs - sweep.law(unknowns))[:, away]
            uphill = np.einsum("lkp,pq,kq->kl", slopes, inverse, left)
            uphill -= (unknowns.T - self.mean) @ known
            information = np.einsum("lkp,pq,mkq->klm", slopes, inverse, slopes) + known
            step = np.linalg.solve(information, uphill[..., None])[..., 0].T
            unknowns = unknowns + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        left = (sweep.law(unknowns) - sweep.logs)[:, away]
        drift = (left**2).sum(axis=1) / np.abs(sweep.log_clock).sum()
        return unknowns, np.linalg.inv(information), drift

    def softened(self) -> Self:
        """That of time with the bend of whole runs, which mix kernels: softer than theirs."""
        scale = np.array([1.0, LOG_P_SD / np.sqrt(self.covariance[1, 1])])
        covariance = self.covariance * np.outer(scale, scale)
        return replace(self, mean=np.array([self.mean[0], LOG_P]), covariance=covariance)

    def log_ratios(self, law: Law, fit: SurfacePosterior) -> Floats:
        """What a law says at the likeliest unknowns, (K, N), without what it leaves."""
        root = np.linalg.cholesky(self.covariance)
        return law(self.mean[:, None] + root @ fit.latents)

    def prior(
        self, law: Law, log_clock: Floats, count: int, misfit: Floats | None = None
    ) -> SurfacePrior:
        """What is believed of that many runs over ln(f / f_b) (N,).

        Its latents are in units of their spread. misfit (R, N): besides that of the clock.
        """
        root = np.linalg.cholesky(self.covariance)
        zeros = np.zeros((len(root), count))
        walk = random_walk(log_clock, self.drift)
        return SurfacePrior(
            lambda latents: law(self.mean[:, None] + root @ latents),
            zeros,
            np.ones_like(zeros),
            walk if misfit is None else np.vstack([walk, misfit]),
        )


def highest_clock(device: str, measured_mhz: Iterable[float]) -> float:
    """The highest engine clock that a GPU reaches, where its voltage is at its top [MHz].

    Its rated boost, or one at which it was measured; not the highest that the vendor's tool lists,
    which boards for displays do not reach.
    """
    entry = known_device(device)
    rated_mhz = entry.datasheet.engine_mhz if entry and entry.datasheet else 0.0
    return max([rated_mhz, *measured_mhz])


def is_listed(device: str, engine_mhz: float) -> bool:
    """Whether a GPU lists engine clocks as high as that, as far as is known."""
    entry = known_device(device)
    if entry is None:
        return False
    _, highest_mhz = entry.engine_clock_range_mhz or (0.0, 0.0)
    return engine_mhz <= (entry.max_clock_mhz or highest_mhz)
