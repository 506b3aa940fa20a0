"""The power of a board over the engine clock, its voltage a floor and then a line: NumPy.

K runs, N configurations, L = 3 latents of a run: the log odds of the watts that follow the clock
and of those that follow the rate of work to the constant ones, and the voltage's floor, the clock
up to which it stays at its least, relative to the highest.

What `board-power` has learnt: how the power of runs differs, between GPUs and on one. NumPy.

n training runs, K new ones, N configurations, L = 3 latents of a run, those of `BoardCurve`. A
GPU's runs have a share of them in common; as every GPU weighs the same, the spread over all runs
is that of a run on a new GPU.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats, positive, require_rising
from mlscale.data.devices import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.points import LOW
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.predictors.board import LEAST_CLOCKS
from mlscale.predictors.conditioning import SurfacePrior, random_walk
from mlscale.predictors.features import range_flags
from mlscale.predictors.intervals import equal_weights

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


TOP = 3  # without a limit, it is the mean of so many largest powers
COLUMNS = 2  # of inputs
CLOCKS = 12  # of a training table, at most
TRAINING_NOISE = 0.03  # standard deviation of the log of a ratio of two powers of a training run
LATENT_MEANS = np.array([-0.3, -1.5, 0.7])  # before there are runs
LATENT_SDS = np.array([1.5, 1.5, 0.15])
FIRST_DRIFT, LEAST_DRIFT = 0.03, 0.005
LEAST_SD = 0.02  # of a latent
EXPECTATIONS = 15  # steps of expectation and maximisation
STEPS, LONGEST_STEP = 4, 1.0  # of Gauss and Newton in each expectation


@dataclass(frozen=True, eq=False)
class GpuSweep:
    """Training runs of one GPU at one base, at CLOCKS of its engine clocks.

    share (n,): of the board's limit. log_clock (N,): ln(clock / base). log_power (n, N): log ratios
    to the base. floor: of the voltage, see `known_floor`.
    """

    device: str
    share: Floats
    log_clock: Floats
    log_power: Floats
    curve: BoardCurve
    floor: float | None

    @classmethod
    def of(cls, table: Measurements, base: HardwareConfig, limit_w: float) -> Self:
        """Those of a table with one CU count and one memory clock, at clocks that are not low.

        Raises InputError where these are fewer than LEAST_CLOCKS.
        """
        clocks = np.array(table.grid.engine_mhz)
        highest = highest_clock(table.device, clocks)
        known = np.flatnonzero((clocks >= LOW * highest) | (clocks == base.engine_mhz))
        if len(known) < LEAST_CLOCKS:
            raise InputError(
                f"'board-power' learns from {LEAST_CLOCKS} engine clocks or more at {LOW:.0%} of "
                f"the GPU's highest, {highest:g} MHz, or above; the table of '{table.device}' has "
                f"{len(known)}, its base {base.engine_mhz:g} MHz included: measure higher clocks"
            )
        even = known[np.linspace(0, len(known) - 1, CLOCKS).round().astype(int)]
        at = np.union1d(even, np.flatnonzero(clocks == base.engine_mhz))
        log_clock = np.log(clocks[at] / base.engine_mhz)
        log_time = table.log_ratios("time", base)[:, at]
        return cls(
            device=table.device,
            share=table.profiles(base).base_power_w / limit_w,
            log_clock=log_clock,
            log_power=table.log_ratios("power", base)[:, at],
            curve=BoardCurve(log_clock, highest / base.engine_mhz, log_time),
            floor=known_floor(table.device, highest),
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


def board_limit_w(device: str) -> float | None:
    """The board's default power limit in the device table [W]; None where it is not known."""
    known = known_device(device)
    return known.tdp_w if known else None


def limit_of(profiles: Profiles) -> float:
    """The board's limit [W]; where the table has none, the mean of the three largest powers."""
    largest = np.sort(profiles.base_power_w)[-TOP:]
    return board_limit_w(profiles.device) or float(largest.mean())


@dataclass(frozen=True)
class BoardInputs:
    """How a run's power becomes the input of its latents.

    mean: of the log of power's share of the limit, over the training runs. low and high: the
    range of that share.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, share: Floats, weight: Floats) -> Self:
        """Those of training runs (n,) with weights that sum to 1."""
        return cls(float(np.log(share) @ weight), float(share.min()), float(share.max()))

    def columns(self, share: Floats) -> Floats:
        """1 and the log of the share over the mean, (K, 2).

        share (K,): NaN where the limit is not known, which is taken for the mean.
        """
        log_share = np.nan_to_num(np.log(share) - self.mean)
        return np.column_stack([np.ones_like(log_share), log_share])

    def flags(self, share: Floats) -> list[list[str]]:
        """For each run whether the share is outside the range trained."""
        return range_flags(
            ("power share",), share[:, None], np.array([self.low]), np.array([self.high])
        )

    def check_restored(self) -> None:
        """Raise ValueError on a range that ends below where it begins."""
        require_rising(np.array(self.low), np.array(self.high))


@dataclass(frozen=True, eq=False)
class PowerPopulation:
    """How runs differ, each GPU with the same weight.

    coefficients (2, L): of the inputs in the latents' means. covariance (L, L): of what inputs do
    not tell of the latents of a run on a new GPU. drift: as of `random_walk`, what the curve leaves
    of the log power.
    """

    inputs: BoardInputs
    coefficients: Annotated[Floats, "2 L"]
    covariance: Annotated[Floats, "L L"]
    drift: Annotated[float, positive]
    latents: Annotated[tuple[str, ...], "L"] = LATENTS

    @classmethod
    def of(cls, gpus: Sequence[GpuSweep]) -> Self:
        """That of the runs of several GPUs, by expectation and maximisation."""
        devices = [one.device for one in gpus for _ in one.share]
        weight = equal_weights(devices)
        inputs = BoardInputs.of(np.concatenate([one.share for one in gpus]), weight)
        columns = [inputs.columns(one.share) for one in gpus]
        coefficients = np.vstack([LATENT_MEANS, np.zeros((COLUMNS - 1, len(LATENT_MEANS)))])
        own = cls(inputs, coefficients, np.diag(LATENT_SDS**2), FIRST_DRIFT)
        latents = [(rows @ coefficients).T for rows in columns]
        for _ in range(EXPECTATIONS):
            fits = [own._fitted(*one) for one in zip(gpus, columns, latents, strict=True)]
            latents = [fit[0] for fit in fits]
            own = own._maximised(fits, np.vstack(columns), weight, len(set(devices)))
        return own

    def _fitted(
        self, gpu: GpuSweep, columns: Floats, latents: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The likeliest latents (L, n) of training runs, their covariances (n, L, L), and drift².

        latents: where to begin.
        """
        away = gpu.log_clock != 0
        misfit = random_walk(gpu.log_clock[away], self.drift)
        spread = misfit.T @ misfit + TRAINING_NOISE**2 * np.eye(away.sum())
        mean, covariance = self._believed(columns, gpu.floor)
        inverse, known = np.linalg.inv(spread), np.linalg.inv(covariance)
        for _ in range(STEPS):
            slopes = gpu.curve.slopes(latents)[:, :, away]
            left = (gpu.log_power - gpu.curve.log_ratios(latents))[:, away]
            uphill = np.einsum("lkp,pq,kq->kl", slopes, inverse, left) - (latents - mean).T @ known
            information = np.einsum("lkp,pq,mkq->klm", slopes, inverse, slopes) + known
            step = np.linalg.solve(information, uphill[..., None])[..., 0].T
            latents = latents + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        left = (gpu.log_power - gpu.curve.log_ratios(latents))[:, away]
        drift = (left**2).sum(axis=1) / np.abs(gpu.log_clock).sum()
        return latents, np.linalg.inv(information), drift

    def _maximised(
        self,
        fits: Sequence[tuple[Floats, Floats, Floats]],
        columns: Floats,
        weight: Floats,
        count: int,
    ) -> Self:
        """The population of such runs, of so many GPUs."""
        latents, unsure, drift = (
            np.concatenate(own)
            for own in zip(*((one.T, *others) for one, *others in fits), strict=True)
        )
        root = np.sqrt(weight)[:, None]
        coefficients = np.linalg.lstsq(root * columns, root * latents, rcond=None)[0]
        left = root * (latents - columns @ coefficients)
        between = count / max(count - 1, 1)  # the mean is known from as many GPUs alone
        covariance = between * left.T @ left + np.einsum("n,nij->ij", weight, unsure)
        covariance += LEAST_SD**2 * np.eye(len(covariance))
        return type(self)(
            self.inputs, coefficients, covariance, max(float(np.sqrt(drift @ weight)), LEAST_DRIFT)
        )

    def _believed(self, columns: Floats, floor: float | None) -> tuple[Floats, Floats]:
        """The latents' means (L, K) of runs with inputs (K, 2), and their covariance (L, L)."""
        return given_floor((columns @ self.coefficients).T, self.covariance, floor)

    def prior(
        self,
        columns: Floats,
        log_ratios: Callable[[Floats], Floats],
        log_clock: Floats,
        floor: float | None,
        misfit: Floats | None = None,
    ) -> SurfacePrior:
        """What is believed of runs with inputs (K, 2) over ln(clock / base) (N,).

        log_ratios: from latents (L, K) to log power ratios (K, N). floor: see `known_floor`.
        misfit (R, N): besides that of the clock. The latents of the prior are in units of their
        spread.
        """
        mean, covariance = self._believed(columns, floor)
        root = np.linalg.cholesky(covariance)
        walk = random_walk(log_clock, self.drift)
        return SurfacePrior(
            lambda units: log_ratios(mean + root @ units),
            np.zeros_like(mean),
            np.ones_like(mean),
            walk if misfit is None else np.vstack([walk, misfit]),
        )

    def check_restored(self) -> None:
        """Raise ValueError on other latents, and on variances that are not positive."""
        if self.latents != LATENTS:
            raise ValueError("the latents of power are not these")
        positive(np.asarray(np.linalg.eigvalsh(self.covariance)), "a variance")
