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
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePrior,
    condition,
    random_walk,
)
from mlscale.predictors.intervals import equal_weights

LEAST_CLOCKS = 3  # of a training table
CLOCKS = 12  # of a training table, at most, evenly over it
BEND = 0.08  # W of the law: of the highest clock, how wide the bend at the voltage's floor is
LOG_P_RANGE, LOG_S_RANGE = (-1.0, 3.0), (-1.5, 2.5)
# Of ln p, of runs: learnt from tables of single kernels it is too sharp, as runs mix kernels.
LOG_P, LOG_P_SD = np.log(2.1), 1.1
LEAST_DRIFT, LEAST_SD = 0.005, 0.04
TRAINING_NOISE = 0.03  # standard deviation of the log of a ratio of two training measurements
STEPS = 3  # of Gauss and Newton in each round, from where the last one ended
ROUNDS, ROUNDS_AGAIN = 12, 4  # of expectation and maximisation; from nearly the same runs'

Law = Callable[[Floats], Floats]  # from unknowns (L, K) to log ratios (K, N)


def log_times(log_clock: Floats, unknowns: Floats) -> Floats:
    """Log time ratios (K, N) over ln(f / f_b) (N,), at the unknowns (logit c, ln p) (2, K).

    Or over ln(n / n_b) of CU counts.
    """
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
    """Training runs of one GPU from their base: log ratios (K, M) over ln(f / f_b) (M,)."""

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

    def points(self, at: Mask, noise: float = RATIO_NOISE) -> MeasuredRatios:
        """The measured ratios at these clocks (M,)."""
        return MeasuredRatios(np.eye(len(at))[at], self.logs[:, at], noise)

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

        Of time with the bend of whole runs. start: that of nearly the same runs, if there is one.
        """
        weight = equal_weights([sweep.device for sweep in sweeps for _ in sweep.logs])
        gpus = len({sweep.device for sweep in sweeps})
        between = gpus / max(gpus - 1, 1)  # the mean is known from as many GPUs alone
        population = start or FIRST[quantity]
        begin = [np.tile(population.mean, (len(sweep.logs), 1)) for sweep in sweeps]
        for _ in range(ROUNDS if start is None else ROUNDS_AGAIN):
            fits = [population.fitted(*one) for one in zip(sweeps, begin, strict=True)]
            begin = [fit[0] for fit in fits]
            unknowns, unsure, squares = (np.concatenate(parts) for parts in zip(*fits, strict=True))
            mean = weight @ unknowns
            off = np.sqrt(weight)[:, None] * (unknowns - mean)
            covariance = between * off.T @ off + np.einsum("k,kij->ij", weight, unsure)
            covariance += LEAST_SD**2 * np.eye(len(mean))
            drift = max(float(np.sqrt(weight @ squares)), LEAST_DRIFT)
            population = Population(mean, covariance, drift)
        return population.with_bend(LOG_P, LOG_P_SD) if quantity == "time" else population

    def fitted(self, sweep: Sweep, begin: Floats) -> tuple[Floats, Floats, Floats]:
        """Of training runs the likeliest unknowns (K, L), their covariances (K, L, L), drift^2.

        begin (K, L): unknowns to begin at.
        """
        prior = self.prior(sweep.law, sweep.log_clock, len(sweep.logs))
        root = np.linalg.cholesky(self.covariance)
        start = np.linalg.solve(root, (begin - self.mean).T)
        fit = condition(prior, sweep.points(sweep.away, TRAINING_NOISE), start, STEPS)
        slopes = fit.slopes[:, :, sweep.away]
        told = np.einsum("lkp,kpq,mkq->klm", slopes, fit.inverse, slopes)
        unsure = root @ (np.eye(len(root)) - told) @ root.T
        unknowns = self.unknowns(fit.latents)
        left = sweep.law(unknowns) - sweep.logs
        return unknowns.T, unsure, (left**2).sum(axis=1) / np.abs(sweep.log_clock).sum()

    def with_bend(self, log_p: float, sd: float) -> Self:
        """That of time with this mean and deviation of ln p."""
        scale = np.array([1.0, sd / np.sqrt(self.covariance[1, 1])])
        covariance = self.covariance * np.outer(scale, scale)
        return replace(self, mean=np.array([self.mean[0], log_p]), covariance=covariance)

    def unknowns(self, latents: Floats) -> Floats:
        """The unknowns (L, K) at latents (L, K), which are in units of their spread."""
        return np.asarray(self.mean[:, None] + np.linalg.cholesky(self.covariance) @ latents)

    def prior(
        self, law: Law, log_clock: Floats, count: int, misfit: Floats | None = None
    ) -> SurfacePrior:
        """What is believed of that many runs over ln(f / f_b) (N,), by latents.

        misfit (R, N): besides that of the clock.
        """
        zeros = np.zeros((len(self.mean), count))
        walk = random_walk(log_clock, self.drift)
        return SurfacePrior(
            lambda latents: law(self.unknowns(latents)),
            zeros,
            np.ones_like(zeros),
            walk if misfit is None else np.vstack([walk, misfit]),
        )


FIRST = {  # before there are runs
    "time": Population(np.array([1.0, 0.7]), np.diag([2.0, 0.7]) ** 2, 0.03),
    "power": Population(np.array([0.0, 0.7, 0.7]), np.diag([1.5, 0.15, 0.4]) ** 2, 0.03),
}


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
