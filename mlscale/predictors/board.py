"""What the predictors of whole boards share: tables of several GPUs, any GPU, and its readings.

K runs, P readings, N configurations. A reading is what was measured of the runs at one clock, the
base or a further point: which of them is called the base changes nothing that is predicted.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, MeasuredPoint, Profiles
from mlscale.data.sampled import is_engine_sweep
from mlscale.data.surfaces import Surfaces, configuration_weights
from mlscale.predictors.base import Predictor, TrainedGpu, TrainingSet, training_grid
from mlscale.predictors.conditioning import MeasuredRatios
from mlscale.predictors.reach import LARGEST_EXPONENTS, NOISE, largest_change
from mlscale.predictors.state import Learner

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
