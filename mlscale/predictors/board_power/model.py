"""What `board-power` has learnt: how the power of runs differs, between GPUs and on one. NumPy.

n training runs, K new ones, N configurations, L = 3 latents of a run: the log odds of the watts
that follow the clock and of those that follow the rate of work to the constant ones, and the log of
how far the voltage's steps are from the usual ones. A GPU's runs have a share of them in common;
as every GPU weighs the same, the spread over all runs is that of a run on a new GPU.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, shaped
from mlscale.data.devices import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.sampled import LOW
from mlscale.predictors.board_power.inputs import COLUMNS, BoardInputs
from mlscale.predictors.conditioning import SurfacePrior, random_walk
from mlscale.predictors.intervals import equal_weights
from mlscale.predictors.sampled.curves import PowerCurve

CLOCKS = 12  # of a training table, at most
READING_NOISE = 0.03  # of training runs: standard deviation of the log of a ratio of two readings
LATENT_MEANS, LATENT_SDS = np.array([-0.3, -1.5, 0.0]), np.array([1.5, 1.5, 0.7])  # before all runs
FIRST_DRIFT, LEAST_DRIFT = 0.03, 0.005
LEAST_SD = 0.02  # of a latent
EXPECTATIONS = 15  # steps of expectation and maximisation
GAUSS_NEWTON_STEPS, LONGEST_STEP = 4, 1.0


@dataclass(frozen=True, eq=False)
class BoardCurve:
    """A `PowerCurve` whose voltage steps are a run's own multiple of the usual ones."""

    curve: PowerCurve

    def log_ratios(self, latents: Floats) -> Floats:
        """Log power ratios (K, N) at latents (3, K)."""
        _, parts = self.curve.parts(latents[:2], self._log_voltage(latents))
        return np.asarray(np.log(parts.sum(axis=0)))

    def slopes(self, latents: Floats) -> Floats:
        """Derivatives by the latents (3, K, N)."""
        log_voltage = self._log_voltage(latents)
        weights, parts = self.curve.parts(latents[:2], log_voltage)
        shares = parts / parts.sum(axis=0)
        return np.concatenate([shares[1:] - weights[1:], shares[1:2] * log_voltage])

    def _log_voltage(self, latents: Floats) -> Floats:
        usual = self.curve.log_voltage(PowerCurve.prior.number_means)
        return np.asarray(np.exp(latents[2])[:, None] * usual)


@dataclass(frozen=True, eq=False)
class GpuSweep:
    """Training runs of one GPU at one base, at CLOCKS of its engine clocks.

    share (n,): of the board's limit. base: ln(base / highest clock). log_clock (N,): ln(clock /
    base). log_power (n, N): log ratios to the base.
    """

    device: str
    share: Floats
    base: float
    log_clock: Floats
    log_power: Floats
    curve: BoardCurve

    @classmethod
    def of(cls, table: Measurements, base: HardwareConfig, limit_w: float) -> Self:
        """Those of a table with one CU count and one memory clock. Raises InputError."""
        clocks = np.array(table.grid.engine_mhz)
        highest = highest_clock(table.device, clocks)
        known = np.flatnonzero((clocks >= LOW * highest) | (clocks == base.engine_mhz))
        even = known[np.linspace(0, len(known) - 1, CLOCKS).round().astype(int)]
        at = np.union1d(even, np.flatnonzero(clocks == base.engine_mhz))
        log_clock = np.log(clocks[at] / base.engine_mhz)
        log_time = table.log_ratios("time", base)[:, at]
        return cls(
            device=table.device,
            share=table.profiles(base).base_power_w / limit_w,
            base=float(np.log(base.engine_mhz / highest)),
            log_clock=log_clock,
            log_power=table.log_ratios("power", base)[:, at],
            curve=BoardCurve(PowerCurve(log_clock, highest / base.engine_mhz, log_time)),
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


@dataclass(frozen=True, eq=False)
class PowerPopulation:
    """How runs differ, each GPU with the same weight.

    coefficients (3, L): of the inputs in the latents' means. covariance (L, L): of what inputs do
    not tell of the latents of a run on a new GPU. drift: as of `random_walk`, what the curve leaves
    of the log power.
    """

    inputs: BoardInputs
    coefficients: Floats
    covariance: Floats
    drift: float

    @classmethod
    def of(cls, gpus: Sequence[GpuSweep]) -> Self:
        """That of the runs of several GPUs, by expectation and maximisation."""
        devices = [one.device for one in gpus for _ in one.share]
        weight = equal_weights(devices)
        inputs = BoardInputs.of(np.concatenate([one.share for one in gpus]), weight)
        columns = [inputs.columns(one.share, one.base) for one in gpus]
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
        away = np.abs(gpu.log_clock) > 1e-9
        misfit = random_walk(gpu.log_clock[away], self.drift)
        spread = misfit.T @ misfit + READING_NOISE**2 * np.eye(away.sum())
        inverse, known = np.linalg.inv(spread), np.linalg.inv(self.covariance)
        mean = (columns @ self.coefficients).T
        for _ in range(GAUSS_NEWTON_STEPS):
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

    def prior(
        self,
        columns: Floats,
        log_ratios: Callable[[Floats], Floats],
        log_clock: Floats,
        misfit: Floats | None = None,
    ) -> SurfacePrior:
        """What is believed of runs with inputs (K, 3) over ln(clock / base) (N,).

        log_ratios: from latents (L, K) to log power ratios (K, N). misfit (R, N): besides that of
        the clock. The latents of the prior are in units of their spread.
        """
        mean = (columns @ self.coefficients).T
        root = np.linalg.cholesky(self.covariance)
        walk = random_walk(log_clock, self.drift)
        return SurfacePrior(
            lambda units: log_ratios(mean + root @ units),
            np.zeros_like(mean),
            np.ones_like(mean),
            walk if misfit is None else np.vstack([walk, misfit]),
        )

    def state(self) -> dict[str, Any]:
        """Arrays and numbers for the model file."""
        return {**vars(self), "inputs": dict(vars(self.inputs))}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        size = len(LATENT_MEANS)
        covariance = shaped(state["covariance"], size, size)
        if not np.allclose(covariance, covariance.T):
            raise ValueError("a covariance is not symmetric")
        positive(np.asarray(np.linalg.eigvalsh(covariance)), "a variance")
        drift = positive(shaped(np.array([float(state["drift"])]), 1), "the drift")
        return cls(
            BoardInputs.restore(state["inputs"]),
            shaped(state["coefficients"], COLUMNS, size),
            covariance,
            float(drift[0]),
        )
