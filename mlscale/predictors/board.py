"""`board`: time, power and energy of a whole run over the engine clock, on any GPU: NumPy.

`board_law` has the laws and what is learnt of how runs differ. A run's readings move its unknowns
(`conditioning`): its times those of time, alone, so that power changes nothing about time; its
power, with the times, those of power. Energy is their sum in the log, with an interval of its own.

K runs, N configurations.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.logs import is_engine_sweep, without_power_faults
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, MeasuredPoint, Profiles
from mlscale.data.surfaces import BOUNDED, Surfaces, configuration_weights, scaling_bounds
from mlscale.errors import InputError
from mlscale.predictors.base import (
    Bases,
    Predictor,
    TrainedGpu,
    Training,
    training_grid,
    training_sets,
)
from mlscale.predictors.board_law import (
    LEAST_CLOCKS,
    Law,
    Population,
    Sweep,
    highest_clock,
    is_listed,
    log_powers,
    log_times,
)
from mlscale.predictors.board_memory import (
    MISFIT_PER_MEMORY_CLOCK,
    SPREAD_PER_MEMORY_CLOCK,
    on_grid,
)
from mlscale.predictors.conditioning import SurfacePosterior, condition, measured_ratios
from mlscale.predictors.intervals import (
    calibrated_scores,
    largest_scores,
    require_scores,
    score_at,
)
from mlscale.predictors.state import Learner, learnt
from mlscale.text import listed

LEAST_SPREAD = {"time": 0.01, "power": 0.045}  # of the log, that intervals have
SECOND_CLOCKS = (0.9, 0.8, 0.67, 0.55)  # of the base's, that GPUs left out are read at
ENOUGH = 0.85  # of a left-out GPU's truth, that 90 % intervals held: the GPU counts as held
NO_FURTHER_POWER = "nor is its power at a second engine clock given (--also)"
MEMORY_CLOCKS = "power at other memory clocks: as measured on a GTX 980 and a GTX 1080 Ti"
DIFFERENCE = 1e-4  # of a log of time, to see how power follows it


@dataclass
class Board(Learner, Predictor):
    """Time or power of a whole run on any GPU, from one reading or more.

    Time needs two; from one it is bounded, from unchanged to in proportion to the clock, and a flag
    says so. Power takes its times from `with_times`, else those of training runs on average. A grid
    has the CU count of the base, of time its memory clock too. The reading of the highest clock is
    the base of all that is computed, so that the order of readings changes nothing. Intervals are
    calibrated on GPUs left out in turn, `held_` tells on how many of how many they held.
    """

    name = "board"
    quantities: ClassVar[tuple[str, ...]] = ("time", "power")
    quantity: str = "time"
    laws_: dict[str, Population] = learnt()
    scores_: dict[str, Annotated[Floats, require_scores]] = learnt()
    held_: tuple[int, int] = learnt()
    trained_: tuple[TrainedGpu, ...] = learnt()

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are logs over the engine clock alone."""
        return is_engine_sweep(measurements) and len(measurements.grid.engine_mhz) >= LEAST_CLOCKS

    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the tables of one GPU or several. Raises InputError.

        Clocks that a GPU did not keep, and kernels whose power is faulty, are left out.
        """
        sets = training_sets(self, training, base)
        if self.quantity == "power":
            sets = [(without_power_faults(table), at) for table, at in sets]
        if not sets:
            raise InputError(f"'{self.name}' needs a training table")
        self.trained_ = tuple(TrainedGpu(table.device, table.grid, at) for table, at in sets)
        sweeps = [Sweep.from_table(*one, self.quantity) for one in sets]
        whole = Population.learn(sweeps, self.quantity)
        self._calibrate(sweeps, whole)
        self.laws_ = {self.quantity: whole}
        if self.quantity == "power":
            times = Population.learn([Sweep.from_table(*one, "time") for one in sets], "time")
            self.laws_["time"] = times.softened()
        else:
            self.laws_["time"] = whole.softened()
        self.times_: Surfaces | None = None
        return self

    def _calibrate(self, sweeps: Sequence[Sweep], whole: Population) -> None:
        """Learn the scores of intervals, of GPUs predicted from the others with a second reading.

        Of power besides from one reading, such that every GPU left out is held.
        """
        devices = dict.fromkeys(sweep.device for sweep in sweeps)
        scores: dict[str, list[Floats]] = {"two": [], "one": []}
        groups: list[str] = []
        for device in devices if len(devices) > 1 else ():
            others = [sweep for sweep in sweeps if sweep.device != device]
            known = Population.learn(others, self.quantity, whole)
            if self.quantity == "time":
                known = known.softened()
            for sweep in (sweep for sweep in sweeps if sweep.device == device):
                two = [self._scores(known, sweep, sweep.second(share)) for share in SECOND_CLOCKS]
                scores["two"] += list(np.hstack(two))
                scores["one"] += list(self._scores(known, sweep, sweep.log_clock > np.inf))
                groups += [device] * len(sweep.logs)
        self.scores_ = {"two": calibrated_scores(scores["two"], groups, alike=True)}
        if self.quantity == "power":
            self.scores_["one"] = largest_scores(scores["one"], groups)
        limit = score_at(self.scores_["two"], 0.9)
        within: dict[str, list[float]] = {device: [] for device in groups}
        for device, values in zip(groups, scores["two"], strict=True):
            within[device].append((values <= limit).mean())
        held = [float(np.mean(shares)) >= ENOUGH for shares in within.values()]
        self.held_ = (sum(held), len(held))

    def _scores(self, known: Population, sweep: Sweep, read: Mask) -> Floats:
        """|log error| over what half-widths are proportional to, (K, ...), where not read."""
        prior = known.prior(sweep.law, sweep.log_clock, len(sweep.logs))
        fit = condition(prior, sweep.points(read))
        new = sweep.away & ~read
        return np.asarray((np.abs(fit.logs - sweep.logs) / self._scale(fit))[:, new])

    def _scale(self, fit: SurfacePosterior) -> Floats:
        return np.sqrt(fit.after + LEAST_SPREAD[self.quantity] ** 2)

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Nothing: the laws know no peaks."""
        return self

    def with_times(self, times: Surfaces) -> Self:
        """The predictor of power for runs with these times, on their grid."""
        other = copy.copy(self)
        other.times_ = times
        return other

    def refusal(self, profiles: Profiles) -> str | None:
        """Why power on the profiles' GPU cannot be predicted; None where it can."""
        if known_device(profiles.device) or not _from_one_clock(profiles):
            return None
        return f"'{profiles.device}' is not in the device table, {NO_FURTHER_POWER}"

    def assumption(self, profiles: Profiles) -> str | None:
        """What is assumed of a GPU that was not learnt from."""
        trained = self.trained_devices()
        if profiles.device in trained:
            return None
        learnt_on = f"learnt on {len(trained)} other GPU{'s' if len(trained) > 1 else ''}"
        known = known_device(profiles.device)
        vendors = {device.vendor for device in map(known_device, trained) if device}
        if known and vendors and known.vendor not in vendors:
            learnt_on += f", none of them of {known.vendor}"
        from_one = _from_one_clock(profiles)
        if not from_one:
            return f"power {learnt_on}"
        some = f" for {listed(from_one)}" if len(from_one) < len(profiles.kernels) else ""
        return (
            f"power from one clock alone{some}, {learnt_on}: power at a second clock (--also) "
            "tells more"
        )

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces, on the grid of the training table where none is given. InputError."""
        return self._predicted(profiles, grid, None)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high; None after training on one GPU alone. Raises InputError."""
        return self._predicted(profiles, grid, coverage)

    def predict_energy(
        self, profiles: Profiles, coverage: float, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Energy over the base's by the predictor of power, with intervals of its own.

        A run that takes longer than predicted draws less, so they are narrower than the product
        of those of time and power. Raises InputError.
        """
        return self._predicted(profiles, grid, coverage, is_energy=True)

    def _predicted(
        self,
        profiles: Profiles,
        grid: ConfigGrid | None,
        coverage: float | None,
        is_energy: bool = False,
    ) -> Surfaces:
        grid = grid or training_grid(self.trained_, profiles)
        highest = from_highest_reading(profiles, self.quantity, grid)
        if self.quantity == "time":
            surfaces = self._times(highest, grid, coverage)
        else:
            surfaces = self._powers(highest, grid, coverage, is_energy)
        return relative_to(surfaces, profiles.base)

    def _times(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        base = profiles.base
        if (grid.cu_count, grid.memory_mhz) != ((base.cu_count,), (base.memory_mhz,)):
            raise InputError(
                f"'{self.name}' predicts other engine clocks alone, at "
                f"cu={base.cu_count},memory={base.memory_mhz:g}"
            )
        log_clock = np.log(np.array(grid.engine_mhz) / base.engine_mhz)
        count = len(profiles.kernels)
        prior = self.laws_["time"].prior(lambda z: log_times(log_clock, z), log_clock, count)
        fit = condition(prior, measured_ratios(profiles, grid, "time"))
        logs, ends = np.minimum.accumulate(fit.logs, axis=1), []
        flags = (() if profiles.points else (BOUNDED,),) * count
        if coverage is not None and not profiles.points:
            ends = [np.log(end).ravel() + 0 * logs for end in scaling_bounds(grid, base)]
            logs = np.clip(logs, *ends)
        elif coverage is not None and self.scores_["two"].size:
            width = score_at(self.scores_["two"], coverage) * self._scale(fit) * (log_clock != 0)
            ends = [np.minimum.accumulate(end, axis=1) for end in (logs - width, logs + width)]
        return Surfaces.from_log_ratios(grid, base, logs, flags, ends)

    def _powers(
        self, profiles: Profiles, grid: ConfigGrid, coverage: float | None, is_energy: bool
    ) -> Surfaces:
        base, count, settings = profiles.base, len(profiles.kernels), grid.settings()
        if refusal := self.refusal(profiles):
            raise InputError(f"power of '{profiles.device}' is not predicted: {refusal}")
        if grid.cu_count != (base.cu_count,):
            raise InputError(
                "no training table has several CU counts, so the model does not tell what other "
                f"counts do; predict at the profile's, cu={base.cu_count}"
            )
        times = self._times_on(profiles, grid)
        axes = ("engine_mhz", "memory_mhz")
        log_engine, log_memory = (np.log(settings[a] / getattr(base, a)) for a in axes)
        law, law_if_slower = (
            self._power_law(profiles, grid, times, shift) for shift in (0.0, DIFFERENCE)
        )
        population = self.laws_["power"]
        misfit = MISFIT_PER_MEMORY_CLOCK * log_memory[None]
        prior = population.prior(law, log_engine, count, misfit)
        fit = condition(prior, measured_ratios(profiles, grid, "power"))
        logs = _rising(fit.logs, grid)
        ends: list[Floats] = []
        if coverage is not None and self.scores_["two"].size:
            from_one = np.isin(profiles.kernels, _from_one_clock(profiles))[:, None]
            two, one = (score_at(self.scores_[name], coverage) for name in ("two", "one"))
            width = np.where(from_one, one, two) * self._scale(fit) * (log_engine != 0)
            width = width + SPREAD_PER_MEMORY_CLOCK * np.abs(log_memory)
            # How power, or energy, follows time: what takes longer than predicted draws less.
            by_time = population.log_ratios(law_if_slower, fit) - population.log_ratios(law, fit)
            by_time = by_time / DIFFERENCE + is_energy
            low, high = (times.values if end is None else end for end in (times.low, times.high))
            longer = np.log(high / times.values).reshape(count, -1)
            shorter = np.log(times.values / low).reshape(count, -1)
            up = np.where(by_time > 0, by_time * longer, by_time * shorter)
            down = np.where(by_time > 0, by_time * shorter, by_time * longer)
            ends = [logs - np.hypot(width, down), logs + np.hypot(width, up)]
        if is_energy:
            log_time = np.log(times.values).reshape(count, -1)
            logs, *ends = (values + log_time for values in (logs, *ends))
        elif ends:
            ends = [_rising(end, grid) for end in ends]
        note = (MEMORY_CLOCKS,) if log_memory.any() else ()
        return Surfaces.from_log_ratios(grid, base, logs, (note,) * count, ends)

    def _times_on(self, profiles: Profiles, grid: ConfigGrid) -> Surfaces:
        """The runs' times on the grid, relative to the profiles' base. Raises InputError."""
        base, times = profiles.base, self.times_
        if times is None:
            return self._times(profiles, grid, None)
        if times.grid != grid or times.base not in (base, *(p.config for p in profiles.points)):
            raise InputError(f"'{self.name}' predicts on the grid and base of its times alone")
        return relative_to(times, base)

    def _power_law(
        self, profiles: Profiles, grid: ConfigGrid, times: Surfaces, shift: float
    ) -> Law:
        """The law on a grid, as if all but the base took `shift` longer in the log."""
        base = profiles.base
        memory = np.array(grid.memory_mhz) / base.memory_mhz
        factors = times.values[:, 0]
        at_base = factors[:, :, int(np.abs(np.log(memory)).argmin())]
        highest_mhz = self._highest_clock(profiles, grid)
        x, x_base = np.array(grid.engine_mhz) / highest_mhz, base.engine_mhz / highest_mhz
        log_time = np.log(at_base) + shift * (x != x_base)
        to_grid = on_grid(profiles, memory, factors / at_base[..., None])
        return lambda z: to_grid(log_powers(x, x_base, log_time, z))

    def _highest_clock(self, profiles: Profiles, grid: ConfigGrid) -> float:
        """Where the voltage is at its top [MHz], see `highest_clock`.

        A clock asked for counts as measured where the GPU, not learnt from, does not list it.
        """
        device, asked_mhz = profiles.device, grid.engine_mhz[-1]
        reached = [profiles.base.engine_mhz, *(p.config.engine_mhz for p in profiles.points)]
        reached += [own.engine_mhz[-1] for name, own, _ in self.trained_ if name == device]
        if device not in self.trained_devices() and not is_listed(device, asked_mhz):
            reached.append(asked_mhz)
        return highest_clock(device, reached)

    def check_restored(self) -> None:
        """There are no times yet. Raises ValueError where the state names no GPU."""
        if not self.trained_:
            raise ValueError("it does not say the GPUs that it learnt from")
        self.times_ = None


def _rising(logs: Floats, grid: ConfigGrid) -> Floats:
    """Log power (K, N) that nowhere falls as the engine clock rises."""
    return np.maximum.accumulate(logs.reshape(-1, *grid.shape), axis=2).reshape(logs.shape)


def _from_one_clock(profiles: Profiles) -> list[str]:
    """The kernels without power at a further point."""
    lack = np.ones(len(profiles.kernels), dtype=bool)
    for point in profiles.points:
        if point.power_w is not None:
            lack &= np.isnan(point.power_w)
    return [name for name, lacks in zip(profiles.kernels, lack, strict=True) if lacks]


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
        is_alike = replace(point.config, engine_mhz=base.engine_mhz) == base
        if is_known and is_alike:
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


def relative_to(surfaces: Surfaces, base: HardwareConfig) -> Surfaces:
    """The surfaces, relative to another base of the grid's range."""
    if base == surfaces.base and base not in surfaces.grid:
        return surfaces
    weights = configuration_weights(surfaces.grid, base)
    count = len(surfaces.values)
    at_base = np.exp(np.log(surfaces.values).reshape(count, -1) @ weights)[:, None, None, None]
    low, high = (None if end is None else end / at_base for end in (surfaces.low, surfaces.high))
    return replace(surfaces, base=base, values=surfaces.values / at_base, low=low, high=high)
