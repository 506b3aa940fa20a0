"""What the predictors of whole boards share: tables of several GPUs, any GPU, and its readings.

K runs, P readings, N configurations. A reading is what was measured of the runs at one clock, the
base or a further point: which of them is called the base changes nothing that is predicted.

`board-time`: time of a whole run on any GPU, from its times at two engine clocks or more: NumPy.

K runs, M engine clocks. A run's time is a p-norm of what follows the engine clock and what does
not, see `log_times`. How large the share is, and how sharp the bend, no average of a run tells on
a GPU that was not trained on; its time at a second clock does. What is learnt is how runs differ.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, Mask, positive
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.logs import clocks_not_reached, is_engine_sweep, require_engine_sweep
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, MeasuredPoint, Profiles
from mlscale.data.surfaces import BOUNDED, Surfaces, configuration_weights, scaling_bounds
from mlscale.errors import InputError
from mlscale.predictors.base import (
    Bases,
    Predictor,
    TrainedGpu,
    Training,
    TrainingSet,
    training_grid,
    training_sets,
)
from mlscale.predictors.bottleneck.curve import p_norm
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    ConditionedSurfaces,
    MeasuredRatios,
    SurfacePosterior,
    SurfacePrior,
    condition,
    measured_ratios,
    random_walk,
)
from mlscale.predictors.intervals import (
    LARGEST_EXPONENTS,
    NOISE,
    calibrated_scores,
    equal_weights,
    largest_change,
    require_scores,
    score_at,
)
from mlscale.predictors.state import INLINE, Learner, learnt

LEAST_CLOCKS = 3  # of a training table
CLOSE = 1e-9  # of the log of a ratio: rounding
RISES = {"time": -1, "power": 1}  # with the engine clock


class BoardPredictor(Learner, Predictor):
    """A predictor that learns from tables of several GPUs, each at its bases, and predicts any."""

    trained_: tuple[TrainedGpu, ...]

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles over the engine clock alone."""
        return is_engine_sweep(measurements) and len(measurements.grid.engine_mhz) >= LEAST_CLOCKS

    def _remember(self, sets: Sequence[TrainingSet]) -> None:
        """Keep of which GPUs the tables are, their grids and bases."""
        self.trained_ = tuple(TrainedGpu(table.device, table.grid, at) for table, at in sets)

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces, on the grid of the training table where none is given. Raises InputError.

        The class says which settings a grid may have.
        """
        return self._predicted(profiles, grid, None)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of runs x configurations.

        The class says of which GPUs they do. low and high are None after training on one GPU alone.
        Raises InputError.
        """
        return self._predicted(profiles, grid, coverage)

    def _predicted(
        self, profiles: Profiles, grid: ConfigGrid | None, coverage: float | None
    ) -> Surfaces:
        grid = grid or training_grid(self.trained_, profiles)
        of_highest = from_highest_reading(profiles, self.quantity, grid)
        return relative_to(self._surfaces(of_highest, grid, coverage), profiles.base)

    @abstractmethod
    def _surfaces(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        """The surfaces, with intervals where a coverage is given. Raises InputError."""

    def check_restored(self) -> None:
        """Raise ValueError where the state names no GPU."""
        if not self.trained_:
            raise ValueError("it does not say the GPUs that it learnt from")


def from_highest_reading(profiles: Profiles, quantity: str, grid: ConfigGrid) -> Profiles:
    """The same profiles with the reading of the highest engine clock as the base, points by clock.

    Of readings of every run at the base's CU count and memory clock. The base stays where it is
    outside the grid's range.
    """
    base, name = profiles.base, QUANTITIES[quantity]
    top = MeasuredPoint(base, profiles.time_ms, profiles.power_w)
    readings = [top, *profiles.points]
    for point in profiles.points if grid.spans(base) else ():
        values = getattr(point, name)
        is_known = values is not None and not np.isnan(values).any()
        if is_known and is_alike(point.config, base):
            top = max(top, point, key=lambda one: one.config.engine_mhz)
    return replace(
        profiles,
        base=top.config,
        time_ms=top.time_ms,
        power_w=top.power_w,
        points=tuple(
            sorted(
                (one for one in readings if one.config != top.config),
                key=lambda one: (one.config.engine_mhz, one.config.memory_mhz),
            )
        ),
    )


def is_alike(config: HardwareConfig, base: HardwareConfig) -> bool:
    """Whether the engine clock alone may differ."""
    return (config.cu_count, config.memory_mhz) == (base.cu_count, base.memory_mhz)


def relative_to(surfaces: Surfaces, base: HardwareConfig) -> Surfaces:
    """The surfaces, relative to another base of the grid's range."""
    if base == surfaces.base and base not in surfaces.grid:
        return surfaces
    weights = configuration_weights(surfaces.grid, base)
    count = len(surfaces.values)
    at_base = np.exp(np.log(surfaces.values).reshape(count, -1) @ weights)[:, None, None, None]
    low, high = (None if end is None else end / at_base for end in (surfaces.low, surfaces.high))
    return replace(surfaces, base=base, values=surfaces.values / at_base, low=low, high=high)


def through_readings(curve: Floats, measured: MeasuredRatios, rises: int) -> Floats:
    """A curve (K, N) over the engine clock, stretched so that it goes through the readings.

    rises: 1 where it rises with the clock, -1 where it falls, which it does all the same: between
    two readings its change is multiplied, beyond them it is shifted. Readings that do not rise
    (fall) stand for their mean. Curve and readings are log ratios to the base.
    """
    at_readings = curve @ measured.at.T
    stretched = curve.copy()
    for k, own in enumerate(curve):
        known = ~np.isnan(measured.logs[k])
        at = rises * np.append(at_readings[k, known], 0.0)
        logs = rises * np.append(measured.logs[k, known], 0.0)
        order = np.argsort(at, kind="stable")
        at, logs = at[order], logs[order]
        highest = np.maximum.accumulate(logs)
        lowest = np.minimum.accumulate(logs[::-1])[::-1]
        stretched[k] += rises * np.interp(rises * own, at, (highest + lowest) / 2 - at)
    return stretched


def from_nearest(
    quantity: str, measured: MeasuredRatios, log_clocks: Mapping[str, Floats]
) -> Floats:
    """How far the log of a quantity can be from its nearest reading, (K, N).

    log_clocks: by axis the logs (N,) of the clocks over the base's. By the law of `reach`.
    """
    of_base = largest_change(quantity, log_clocks)
    nearest = np.broadcast_to(of_base, (len(measured.logs), len(of_base)))
    for at, logs in zip(measured.at, measured.logs.T, strict=True):
        off = {axis: own - at @ own for axis, own in log_clocks.items()}
        own = np.where(np.isnan(logs)[:, None], np.inf, largest_change(quantity, off))
        nearest = np.minimum(nearest, own)
    return nearest


def within_readings(
    quantity: str, profiles: Profiles, grid: ConfigGrid, distance: Floats, logs: list[Floats]
) -> list[Floats]:
    """Log ratios and the ends of their intervals, (K, N) each, held by the law of `reach`.

    As `within_reach` does from the base, here from every reading; at a reading there is no
    interval. Power and its ends nowhere fall as the engine clock rises, so that they are on their
    side of each reading without NOISE. distance: see `from_nearest`.
    """
    values, low, high = logs
    is_power, base, settings = quantity == "power", profiles.base, grid.settings()
    side = 0.0 if is_power else NOISE
    exponent = RISES[quantity] * LARGEST_EXPONENTS[quantity]["engine_mhz"]
    reach = np.where(distance > CLOSE, distance + NOISE, 0.0)
    low, high = np.maximum(low, values - reach), np.minimum(high, values + reach)
    is_alone = (settings["cu_count"] == base.cu_count) & (settings["memory_mhz"] == base.memory_mhz)
    for point in (MeasuredPoint(base, profiles.time_ms, profiles.power_w), *profiles.points):
        measured = getattr(point, QUANTITIES[quantity])
        if measured is None or not is_alike(point.config, base):
            continue
        extreme = exponent * np.log(settings["engine_mhz"] / point.config.engine_mhz)
        reading = np.log(measured / profiles.quantity(quantity))[:, None]
        least = reading + np.where(extreme < 0, extreme - NOISE, -side)
        most = reading + np.where(extreme > 0, extreme + NOISE, side)
        # NaN where the reading was not made of a kernel.
        low = np.where(is_alone & (is_power | (least <= values)), np.fmax(low, least), low)
        high = np.where(is_alone & (is_power | (most >= values)), np.fmin(high, most), high)
    low, high = np.minimum(low, values), np.maximum(high, values)
    if not is_power:
        return [values, low, high]
    values, low, high = (own.reshape(-1, *grid.shape) for own in (values, low, high))
    rising = [
        np.maximum.accumulate(values, axis=2),
        np.minimum.accumulate(low[:, :, ::-1], axis=2)[:, :, ::-1],
        np.maximum.accumulate(high, axis=2),
    ]
    return [own.reshape(distance.shape) for own in rising]


# Before there are runs, of the log odds of the share and of ln p.
LATENT_MEANS = np.array([1.5, np.log(2.0)])
LATENT_SDS = np.array([2.0, 0.5])
LOG_P_RANGE = (-1.0, 3.0)  # below, no sum of parts; above, no smoother than a maximum
LEAST_SD = 0.05  # of a latent between runs
LEAST_DRIFT = 0.01


def log_times(log_clock: Floats, log_odds: Floats, log_p: Floats) -> Floats:
    """Log time ratios (K, M) of runs over ln(clock / base) (M,).

    T / T_base = (1 - c + c (base / clock)^p)^(1/p); c is the share, as a p-th power, of what
    follows the engine clock, the rest is DRAM and the host. log_odds (K,): ln(c / (1 - c)); log_p
    (K,): ln p.
    """
    relative = p_norm(np, [-log_odds], [log_clock], np.exp(log_p))
    return np.asarray(relative[:, 0] - log_clock)


@dataclass(frozen=True, eq=False)
class TimePopulation:
    """How runs differ.

    mean and sd (2,): of their latents, the log odds of the share that follows the engine clock and
    ln p. drift: standard deviation of what the curve leaves of the log time, at a clock e times the
    base's; the variance grows in proportion to the distance of the log clock.
    """

    mean: Annotated[Floats, "2"]
    sd: Annotated[Floats, "2", positive]
    drift: Annotated[float, positive]

    @classmethod
    def of(cls, runs: Sequence["GpuRuns"]) -> Self:
        """That of the runs of several GPUs, each GPU with the same weight."""
        before = cls(LATENT_MEANS, LATENT_SDS, 0.0)
        latents, drifts = [], []
        for gpu in runs:
            away = gpu.away
            fitted = condition(before.prior(gpu.log_clock, len(gpu.logs)), gpu.points(away))
            left = (fitted.logs - gpu.logs)[:, away]
            drifts.append((left**2 / np.abs(gpu.log_clock[away])).mean(axis=1))
            latents.append(fitted.latents)
        weight = equal_weights([gpu.device for gpu in runs for _ in gpu.logs])
        latent = np.concatenate(latents, axis=1)
        mean = latent @ weight
        sd = np.sqrt((latent - mean[:, None]) ** 2 @ weight)
        drift = float(np.sqrt(np.concatenate(drifts) @ weight))
        return cls(mean, np.maximum(sd, LEAST_SD), max(drift, LEAST_DRIFT))

    def prior(self, log_clock: Floats, count: int) -> SurfacePrior:
        """What is believed of that many runs over ln(clock / base) (M,)."""
        return SurfacePrior(
            lambda latents: log_times(log_clock, latents[0], np.clip(latents[1], *LOG_P_RANGE)),
            np.repeat(self.mean[:, None], count, axis=1),
            np.repeat(self.sd[:, None] ** 2, count, axis=1),
            random_walk(log_clock, self.drift),
        )


@dataclass(frozen=True, eq=False)
class GpuRuns:
    """Training runs of one GPU from one base: log time ratios (K, M) over ln(clock / base) (M,)."""

    device: str
    log_clock: Floats
    logs: Floats

    @classmethod
    def of(cls, table: Measurements, base: HardwareConfig) -> Self:
        """Those of a table of one CU count and memory clock, at the engine clocks that were kept.

        Raises InputError on other tables.
        """
        require_engine_sweep("board-time", table, LEAST_CLOCKS)
        clocks = np.array(table.grid.engine_mhz)
        lost = clocks_not_reached(table)
        kept = np.array([clock not in lost or clock == base.engine_mhz for clock in clocks])
        logs = table.log_ratios("time", base)[:, kept]
        return cls(table.device, np.log(clocks / base.engine_mhz)[kept], logs)

    @property
    def away(self) -> Mask:
        """Which clocks are not the base, (M,)."""
        return np.asarray(self.log_clock != 0)

    def points(self, at: Mask) -> MeasuredRatios:
        """The measured ratios at these clocks (M,)."""
        return MeasuredRatios(np.eye(len(at))[at], self.logs[:, at])


@dataclass
class BoardTime(BoardPredictor):
    """T / T_base = (1 - c + c (base / clock)^p)^(1/p) of a whole run, on any GPU.

    c and p of a run follow from its time at a second engine clock, and at more if there are. With
    one clock alone they are those of the training runs on average, the interval's ends are the
    least and the most time that work can take (`scaling_bounds`), and a flag says so. It predicts
    other engine clocks alone, at the CU count and memory clock of the base. Intervals hold what
    they promise on average over GPUs like those held out in training.
    """

    name = "board-time"
    quantities: ClassVar[tuple[str, ...]] = ("time",)
    quantity: str = "time"
    population_: Annotated[TimePopulation, INLINE] = learnt()
    scores_: Annotated[Floats, require_scores] = learnt()
    trained_: tuple[TrainedGpu, ...] = learnt()

    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the tables of one GPU or several; one table may come with several bases.

        Clocks that a GPU did not keep are left out. Intervals are calibrated on each GPU, as
        predicted from the others with a second clock, the one farthest from the base. Raises
        InputError on several CU counts or memory clocks, and on fewer than three engine clocks.
        """
        sets = training_sets(self, training, base)
        if not sets:
            raise InputError(f"'{self.name}' needs a training table")
        gpus = [GpuRuns.of(table, at) for table, at in sets]
        self._remember(sets)
        self.population_ = TimePopulation.of(gpus)
        self.scores_ = _held_out_scores(gpus)
        return self

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Nothing: the curve knows no peaks."""
        return self

    def _surfaces(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        own, measured = self.conditioned(profiles, grid)
        logs = _through(own.posterior, measured)
        if coverage is not None and not profiles.points:
            ends = [np.log(end).ravel() + 0 * logs for end in scaling_bounds(grid, own.base)]
            return Surfaces.from_log_ratios(grid, own.base, np.clip(logs, *ends), own.flags, ends)
        if coverage is None or not self.scores_.size:
            return Surfaces.from_log_ratios(grid, own.base, logs, own.flags)
        log_clock = np.log(np.array(grid.engine_mhz) / own.base.engine_mhz)
        distance = from_nearest("time", measured, {"engine_mhz": log_clock})
        width = score_at(self.scores_, coverage) * _scale(own.posterior)
        ends = [logs, logs - width, logs + width]
        logs, *ends = within_readings("time", profiles, grid, distance, ends)
        return Surfaces.from_log_ratios(grid, own.base, logs, own.flags, ends)

    def conditioned(
        self, profiles: Profiles, grid: ConfigGrid
    ) -> tuple[ConditionedSurfaces, MeasuredRatios]:
        """Surfaces given the points, and these; a flag says where there are none. InputError."""
        base = profiles.base
        if (grid.cu_count, grid.memory_mhz) != ((base.cu_count,), (base.memory_mhz,)):
            raise InputError(
                f"'{self.name}' predicts other engine clocks alone, at "
                f"cu={base.cu_count},memory={base.memory_mhz:g}"
            )
        log_clock = np.log(np.array(grid.engine_mhz) / base.engine_mhz)
        prior = self.population_.prior(log_clock, len(profiles.kernels))
        measured = measured_ratios(profiles, grid, "time")
        posterior = condition(prior, measured)
        flags = (() if profiles.points else (BOUNDED,),) * len(profiles.kernels)
        return ConditionedSurfaces(grid, base, posterior, flags), measured


def _through(posterior: SurfacePosterior, measured: MeasuredRatios) -> Floats:
    """Log time ratios (K, M): the likeliest curve, stretched to go through the readings."""
    return through_readings(posterior.prior.log_ratios(posterior.latents), measured, RISES["time"])


def _scale(posterior: SurfacePosterior) -> Floats:
    """What the intervals' half-widths are proportional to, (K, M), but for 0 at the base."""
    return np.sqrt(posterior.after + RATIO_NOISE**2)


def _held_out_scores(gpus: Sequence[GpuRuns]) -> Floats:
    """Scores of GPUs predicted from the others.

    Every run has a second clock, whose own error does not count. Empty with one GPU.
    """
    scores: list[Floats] = []
    devices: list[str] = []
    for device in dict.fromkeys(gpu.device for gpu in gpus):
        others = [gpu for gpu in gpus if gpu.device != device]
        if not others:
            continue
        population = TimePopulation.of(others)
        for gpu in (gpu for gpu in gpus if gpu.device == device):
            second = np.arange(len(gpu.log_clock)) == np.abs(gpu.log_clock).argmax()
            prior = population.prior(gpu.log_clock, len(gpu.logs))
            measured = gpu.points(second)
            posterior = condition(prior, measured)
            new = gpu.away & ~second
            error = np.abs(_through(posterior, measured) - gpu.logs)[:, new]
            scores += list(error / _scale(posterior)[:, new])
            devices += [gpu.device] * len(error)
    return calibrated_scores(scores, devices, alike=True)
