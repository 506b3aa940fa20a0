"""What `board-power` has learnt from the kernels of several GPUs: NumPy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.predictors.board_power.inputs import GpuLimits, ShareInputs, shares
from mlscale.predictors.conditioning import MeasuredRatios, SurfacePrior, condition
from mlscale.predictors.sampled.curves import Curve, PowerCurve, TimeCurve
from mlscale.predictors.sampled.latents import Latents
from mlscale.predictors.sampled.model import SETTINGS

CLOCKS = 12  # that each training table is interpolated at
# Standard deviations of what is left of log power per log clock where power is measured further.
MISFIT_PER_CLOCK, MISFIT_PER_MEMORY_CLOCK = 0.1, 0.1


@dataclass(frozen=True, eq=False)
class GpuSweep:
    """Training kernels of one GPU at one base, at CLOCKS even steps of the log engine clock.

    own: their shares of the limits; log_clock (N,): ln(clock / base); highest: the GPU's highest
    clock relative to the base; log_time and log_power (n, N): log ratios to the base.
    """

    device: str
    own: dict[str, Floats]
    log_clock: Floats
    highest: float
    log_time: Floats
    log_power: Floats

    @classmethod
    def of(cls, table: Measurements, base: HardwareConfig, limits: GpuLimits) -> Self:
        """Those of a table with one CU count and one memory clock. Raises InputError."""
        measured = np.log(np.array(table.grid.engine_mhz) / base.engine_mhz)
        log_clock = np.linspace(measured[0], measured[-1], CLOCKS)

        def resampled(quantity: str) -> Floats:
            logs = table.log_ratios(quantity, base)
            return np.array([np.interp(log_clock, measured, row) for row in logs])

        return cls(
            device=table.device,
            own=shares(table.profiles(base), limits),
            log_clock=log_clock,
            highest=highest_clock(table.device, table.grid.engine_mhz) / base.engine_mhz,
            log_time=resampled("time"),
            log_power=resampled("power"),
        )

    @property
    def power_curve(self) -> PowerCurve:
        """The curve of their power, with their true times."""
        return PowerCurve(self.log_clock, self.highest, self.log_time)


@dataclass(frozen=True, eq=False)
class FurtherPower:
    """Power measured at further configurations, and what no weights can make up for.

    misfit (R, N): see `SurfacePrior`.
    """

    measured: MeasuredRatios
    misfit: Floats

    @classmethod
    def of(cls, measured: MeasuredRatios, log_clock: Floats, log_memory: Floats) -> Self:
        """The misfit grows with the log clocks (N,) of engine and memory."""
        slopes = MISFIT_PER_CLOCK * log_clock, MISFIT_PER_MEMORY_CLOCK * log_memory
        return cls(measured, np.array(slopes))


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


class Pooled:
    """Curves of one kind, one of each GPU; the kernels of each lie one after the other.

    curves and rows: of each GPU, how many kernels it has. The prior is that of the kind.
    """

    def __init__(self, curves: Sequence[Curve], rows: Sequence[int]) -> None:
        self.curves = curves
        self.ends = np.cumsum(rows)[:-1]
        self.prior = curves[0].prior

    def log_ratios(self, latents: Floats, numbers: Floats) -> Floats:
        """Log ratios (K, N) at latents (L, K) and numbers (G,)."""
        own = zip(self.curves, np.split(latents, self.ends, axis=1), strict=True)
        return np.concatenate([curve.log_ratios(part, numbers) for curve, part in own])

    def slopes(self, latents: Floats, numbers: Floats) -> tuple[Floats, Floats]:
        """Derivatives by the latents (L, K, N) and by the numbers (G, K, N)."""
        own = zip(self.curves, np.split(latents, self.ends, axis=1), strict=True)
        pairs = [curve.slopes(part, numbers) for curve, part in own]
        by_latents, by_numbers = zip(*pairs, strict=True)
        return np.concatenate(by_latents, axis=1), np.concatenate(by_numbers, axis=1)


@dataclass(frozen=True, eq=False)
class PowerOfAnyGpu:
    """Fits of power and, for use without another predictor of it, of time; averaged each."""

    inputs: ShareInputs
    power: tuple[Latents, ...]
    time: tuple[Latents, ...]

    @classmethod
    def fit(cls, gpus: Sequence[GpuSweep]) -> Self:
        """Learn from kernels of one GPU or several."""
        own = {name: np.concatenate([gpu.own[name] for gpu in gpus]) for name in gpus[0].own}
        inputs = ShareInputs.of(own)
        rows = [len(gpu.log_time) for gpu in gpus]
        power = Pooled([gpu.power_curve for gpu in gpus], rows)
        time = Pooled([TimeCurve(gpu.log_clock) for gpu in gpus], rows)
        log_power = np.concatenate([gpu.log_power for gpu in gpus])
        log_time = np.concatenate([gpu.log_time for gpu in gpus])
        points = inputs.points
        return cls(
            inputs,
            tuple(Latents.fit(power, log_power, points, one) for one in SETTINGS["power"]),
            tuple(Latents.fit(time, log_time, points, one) for one in SETTINGS["time"]),
        )

    def log_power(
        self,
        own: dict[str, Floats],
        curve: PowerCurve,
        further: FurtherPower | None = None,
        on_grid: Callable[[Floats], Floats] = lambda logs: logs,
    ) -> Floats:
        """Log power ratios (K, N) of kernels with those shares and the curve's times.

        further: power measured elsewhere, which moves each kernel's weights. on_grid: from log
        ratios at the curve's clocks (K, E) to those at N configurations.
        """
        points = self.inputs.points_of(own)
        logs = []
        for fit in self.power:
            latents = fit.means(curve.prior, self.inputs.points, points)

            def log_ratios(latents: Floats, numbers: Floats = fit.numbers) -> Floats:
                return on_grid(curve.log_ratios(latents, numbers))

            if further is None:
                logs.append(log_ratios(latents))
            else:
                variance = np.full_like(latents, curve.prior.latent_sd**2)
                prior = SurfacePrior(log_ratios, latents, variance, further.misfit)
                logs.append(condition(prior, further.measured).logs)
        return np.asarray(np.mean(logs, axis=0))

    def log_time(self, own: dict[str, Floats], log_clock: Floats) -> Floats:
        """Log time ratios (K, N): all kernels with those shares are taken to scale alike."""
        points, curve = self.inputs.points_of(own), TimeCurve(log_clock)
        fits = [fit.at(curve, self.inputs.points, points) for fit in self.time]
        return np.asarray(np.mean(fits, axis=0))

    def state(self) -> dict[str, Any]:
        """Arrays for the model file."""
        return {
            "inputs": dict(vars(self.inputs)),
            "power": [fit.state() for fit in self.power],
            "time": [fit.state() for fit in self.time],
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        inputs = ShareInputs.restore(state["inputs"])
        kernels = len(inputs.points)
        power = zip(state["power"], SETTINGS["power"], strict=True)
        time = zip(state["time"], SETTINGS["time"], strict=True)
        return cls(
            inputs,
            tuple(Latents.restore(fit, one, PowerCurve.prior, kernels) for fit, one in power),
            tuple(Latents.restore(fit, one, TimeCurve.prior, kernels) for fit, one in time),
        )
