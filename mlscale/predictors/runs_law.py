"""The laws of `runs`, and how runs differ by them: NumPy.

f is the engine clock, b the base, x = f / the GPU's highest (decisions 0016 and 0024):

    T / T_b = (1 - c + c (f_b / f)^p)^(1/p)
    P / P_b = (1 + a r) v(x) / (1 + a) / v(x_b),  r = T_b / T,  ln v = s W ln(1 + exp((x - x0) / W))

c is the share that follows the clock, p how sharp the bend between the two shares is; a the odds of
watts that follow the rate of work to constant ones; v is V^2 with leakage, flat up to a floor x0.
What the laws leave is a random walk over the log clock. (logit c, ln p) and (ln a, x0, ln s) of
runs are Gaussian, as runs of many GPUs show, each GPU weighing the same. The mean of (ln a, x0,
ln s) is that of the GPU's family.

K runs, N configurations, M engine clocks of a training run, L unknowns of a run, G GPUs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats, Mask, positive
from mlscale.data.devices import CDNA, known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.logs import clocks_not_reached, require_engine_sweep, tells_times
from mlscale.data.measurements import Measurements
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePrior,
    condition,
    random_walk,
)
from mlscale.predictors.intervals import equal_weights

LEAST_CLOCKS = 3  # that a training table must have
MOST_CLOCKS, MOST_RUNS = 12, 24  # that are learnt from in a training table, evenly over it
BEND = 0.08  # W of the law: how wide the bend at the voltage's floor is, over the highest clock
LOG_P_RANGE, LOG_S_RANGE = (-1.0, 3.0), (-1.5, 2.5)
LEAST_DRIFT, LEAST_SD = 0.005, 0.04
TRAINING_NOISE = 0.03  # standard deviation of the log of a ratio of two training measurements
GAUSS_NEWTON_STEPS = 3  # in each round, from where the last one ended
ROUNDS, ROUNDS_AGAIN = 12, 4  # to expect and maximise; the latter from nearly the same runs'

# How the architectures of GPUs alike begin: by the process node, then by the generation.
FAMILIES = (
    (("Pascal", "Volta", "Turing", "Ampere"), ("Ada", "Hopper", "Blackwell", *CDNA)),
    (("Volta", "Turing"), ("Ampere",), ("Ada",), ("Hopper",), ("Blackwell",), CDNA),
)

Law = Callable[[Floats], Floats]  # from unknowns (L, K) to log ratios (K, N)


def log_times(log_clock: Floats, unknowns: Floats) -> Floats:
    """Log time ratios (K, N) at the unknowns (logit c, ln p) (2, K).

    log_clock, (N,) or (K, N): ln(f / f_b), or ln(n / n_b) of CU counts.
    """
    logit, log_p = unknowns[:, :, None]
    p = np.exp(np.clip(log_p, *LOG_P_RANGE))
    log_share, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    return np.asarray(np.logaddexp(log_share - p * log_clock, log_rest) / p)


def log_powers(x: Floats, x_base: Floats | float, log_time: Floats, unknowns: Floats) -> Floats:
    """Log power ratios (K, N) at the unknowns (ln a, x0, ln s) (3, K).

    x, (N,) or (K, N), and x_base, one or (K,): clocks over the GPU's highest. log_time (K, N): log
    time ratios.
    """
    log_odds, floor, log_slope = unknowns[:, :, None]
    slope = BEND * np.exp(np.clip(log_slope, *LOG_S_RANGE))

    def log_power(at: Floats, log_time: Floats) -> Floats:
        log_v = slope * np.logaddexp(0, (at - floor) / BEND)
        return np.asarray(np.logaddexp(0, log_odds - log_time) + log_v)

    at_base = log_power(np.reshape(x_base, (-1, 1)), np.zeros((1, 1)))
    return log_power(x, log_time) - at_base


@dataclass(frozen=True, eq=False)
class Sweeps:
    """K training runs, each over M engine clocks at most; short ones are filled up with the base.

    devices (K,). log_clock: ln(f / f_b); x: f over the GPU's highest clock; time and power: log
    ratios to the base, (K, M) each. x_base (K,): x of the base. are_timed (K,): whether the times
    tell of the clock.
    """

    devices: Annotated[np.ndarray, "K"]
    log_clock: Floats
    x: Floats
    time: Floats
    power: Floats
    x_base: Floats
    are_timed: Mask

    @classmethod
    def from_table(cls, table: Measurements, base: HardwareConfig) -> Self:
        """At most MOST_RUNS of a table, at MOST_CLOCKS of the clocks that were kept. InputError."""
        require_engine_sweep("runs", table, LEAST_CLOCKS)
        clocks = np.array(table.grid.engine_mhz)
        lost = clocks_not_reached(table)
        kept = np.flatnonzero([mhz not in lost or mhz == base.engine_mhz for mhz in clocks])
        at = np.union1d(_evenly(kept, MOST_CLOCKS), np.flatnonzero(clocks == base.engine_mhz))
        at = np.pad(at, (0, MOST_CLOCKS + 1 - len(at)), constant_values=table.grid.index(base)[1])
        runs = _evenly(np.arange(len(table.kernels)), MOST_RUNS)
        highest_mhz = highest_clock(table.device, clocks)
        time, power = (
            table.log_ratios(name, base)[np.ix_(runs, at)]
            if name == "time" or table.power_w is not None
            else np.zeros((len(runs), len(at)))
            for name in ("time", "power")
        )
        each = np.ones((len(runs), 1))
        return cls(
            np.array([table.device] * len(runs)),
            np.log(clocks[at] / base.engine_mhz) * each,
            clocks[at] / highest_mhz * each,
            time,
            power,
            base.engine_mhz / highest_mhz * each[:, 0],
            np.full(len(runs), tells_times(table)),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The runs of all of them."""
        columns = ([getattr(part, one.name) for part in parts] for one in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))

    def select(self, chosen: Mask) -> Self:
        """The chosen (K,) runs."""
        return type(self)(*(getattr(self, one.name)[chosen] for one in fields(self)))

    @property
    def away(self) -> Mask:
        """Which clocks are not the base, (K, M)."""
        return np.array(self.log_clock != 0)

    def law(self, quantity: str, log_time: Floats | None = None) -> Law:
        """That of time, or of power at log time ratios (K, M), by default the measured ones."""
        if quantity == "time":
            return lambda z: log_times(self.log_clock, z)
        log_time = self.time if log_time is None else log_time
        return lambda z: log_powers(self.x, self.x_base, log_time, z)

    def points(self, quantity: str, at: Mask, noise: float = RATIO_NOISE) -> MeasuredRatios:
        """The measured ratios of time or power at these clocks (K, M)."""
        logs = np.where(at, getattr(self, quantity), np.nan)
        return MeasuredRatios(np.eye(at.shape[1]), logs, noise)

    def second(self, share: float) -> Mask:
        """Of each run the clock (K, M) nearest to a share of the base's that is not the base."""
        off = np.where(self.away, np.abs(np.exp(self.log_clock) - share), np.inf)
        return np.asarray(np.arange(off.shape[1]) == off.argmin(axis=1)[:, None])


def _evenly(places: np.ndarray, most: int) -> np.ndarray:
    """At most that many of the places."""
    chosen = np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int)
    return np.asarray(places[chosen])


@dataclass(frozen=True, eq=False)
class Population:
    """How runs differ: mean (L,) and covariance (L, L) of their unknowns, and the walk's drift.

    drift: standard deviation of what the law leaves of the log, at a clock e times the base's.
    gpus, means (G, L): of power those learnt from, and the mean of each one's runs.
    """

    mean: Annotated[Floats, "L"]
    covariance: Annotated[Floats, "L L"]
    drift: Annotated[float, positive]
    gpus: tuple[str, ...] = ()
    means: Annotated[Floats, "G L"] = field(default_factory=lambda: np.empty((0, 0)))

    @staticmethod
    def learn(sweeps: Sweeps, quantity: str, start: "Population | None" = None) -> "Population":
        """That of the runs of several GPUs, by expectation and maximisation.

        Of time from those that are timed. start: that of nearly the same runs, if there is one.
        Of power the covariance is about the means of families, see `for_gpu`.
        """
        if quantity == "time":
            sweeps = sweeps.select(sweeps.are_timed)
        weight = equal_weights(sweeps.devices.tolist())
        gpus, place = np.unique(sweeps.devices, return_inverse=True)
        between = len(gpus) / max(len(gpus) - 1, 1)  # the mean is known from as many GPUs alone
        population = start or FIRST[quantity]
        unknowns = np.tile(population.mean, (len(place), 1))
        for _ in range(ROUNDS if start is None else ROUNDS_AGAIN):
            unknowns, unsure, squares = population.fitted(sweeps, quantity, unknowns)
            mean = weight @ unknowns
            off = np.sqrt(weight)[:, None] * (unknowns - mean)
            spread = np.einsum("k,kij->ij", weight, unsure) + LEAST_SD**2 * np.eye(len(mean))
            drift = max(float(np.sqrt(weight @ squares)), LEAST_DRIFT)
            population = Population(mean, between * off.T @ off + spread, drift)
        means = np.array([unknowns[place == number].mean(axis=0) for number in range(len(gpus))])
        left = np.sqrt(weight)[:, None] * (unknowns - means[place])
        within = left.T @ left + spread
        if quantity == "time":  # the mean of few GPUs is itself unsure
            whole = population.covariance
            return replace(population, covariance=whole + (whole - within) / len(gpus))
        population = replace(population, gpus=tuple(gpus.tolist()), means=means)
        off = means - [population.for_gpu(name, name).mean for name in population.gpus]
        return replace(population, covariance=within + off.T @ off / len(off))

    def for_gpu(self, device: str, left_out: str = "") -> Self:
        """That for a GPU, by its family: those of FAMILIES that it is in, one within the other.

        The mean is moved to that of the n GPUs alike, by n / (n + 1), where there are two or more.
        left_out: a GPU that does not count.
        """
        architecture = _architecture(device)
        known = [pair for pair in zip(self.gpus, self.means, strict=True) if pair[0] != left_out]
        mean = np.mean([one for _, one in known], axis=0) if left_out and known else self.mean
        for families in FAMILIES:
            family = next((one for one in families if architecture.startswith(one)), ())
            alike = [one for gpu, one in known if _architecture(gpu).startswith(family)]
            if len(alike) > 1:
                mean = mean + len(alike) / (len(alike) + 1) * (np.mean(alike, axis=0) - mean)
        return replace(self, mean=mean)

    def fitted(self, sweeps: Sweeps, quantity: str, begin: Floats) -> tuple[Floats, Floats, Floats]:
        """Of training runs the likeliest unknowns (K, L), their covariances (K, L, L), drift^2.

        begin (K, L): unknowns to begin at.
        """
        law, away = sweeps.law(quantity), sweeps.away
        root = np.linalg.cholesky(self.covariance)
        start = np.linalg.solve(root, (begin - self.mean).T)
        points = sweeps.points(quantity, away, TRAINING_NOISE)
        prior = self.prior(law, sweeps.log_clock, len(away))
        fit = condition(prior, points, start, GAUSS_NEWTON_STEPS)
        slopes = fit.slopes * away
        told = np.einsum("lkp,kpq,mkq->klm", slopes, fit.inverse, slopes)
        unsure = root @ (np.eye(len(root)) - told) @ root.T
        unknowns = self.unknowns(fit.latents)
        left = law(unknowns) - getattr(sweeps, quantity)
        return unknowns.T, unsure, (left**2).sum(axis=1) / np.abs(sweeps.log_clock).sum(axis=1)

    def unknowns(self, latents: Floats) -> Floats:
        """The unknowns (L, K) at latents (L, K), which are in units of their spread."""
        return np.asarray(self.mean[:, None] + np.linalg.cholesky(self.covariance) @ latents)

    def prior(self, law: Law, log_clock: Floats, count: int) -> SurfacePrior:
        """What is believed of that many runs over ln(f / f_b), (N,) or (K, N), by latents."""
        zeros = np.zeros((len(self.mean), count))
        return SurfacePrior(
            lambda latents: law(self.unknowns(latents)),
            zeros,
            np.ones_like(zeros),
            random_walk(log_clock, self.drift),
        )


FIRST = {  # before there are runs
    "time": Population(np.array([1.0, 0.7]), np.diag([2.0, 0.7]) ** 2, 0.03),
    "power": Population(np.array([0.0, 0.7, 0.7]), np.diag([1.5, 0.15, 0.4]) ** 2, 0.03),
}
# Of time over CU counts, n for f. No model file holds a table of it for any GPU, so that what is
# known of kernels before they are read is set here. 178 kernels at 6 SM counts of an H100 and an
# H200 (datasets/) have a bend p of 1.2 in median; kernels that fill an RTX A6000 or an L40 have 2.5
# to 7.
CU_LAW = Population(np.array([1.5, 1.0]), np.diag([2.5, 0.8]) ** 2, 0.05)


def _architecture(device: str) -> str:
    """A GPU's architecture; empty where it is not known."""
    known = known_device(device)
    return known.architecture if known else ""


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
