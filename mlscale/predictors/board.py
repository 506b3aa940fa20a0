"""`board`: time, power and energy of a whole run over the engine clock, on any GPU: NumPy.

Time also over CU counts at one clock, from readings at two counts.

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
from mlscale.data.grid import ConfigGrid
from mlscale.data.logs import is_engine_sweep, without_power_faults
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import BOUNDED, BOUNDED_BY_COUNT, Surfaces, scaling_bounds
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.predictors.base import (
    Bases,
    Predictor,
    TrainedGpu,
    Training,
    training_grid,
    training_sets,
)
from mlscale.predictors.board_cus import CU_LAW, ends_over_cus
from mlscale.predictors.board_law import (
    FIRST,
    LEAST_CLOCKS,
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
from mlscale.predictors.board_readings import from_highest_reading, without_crossings
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePosterior,
    condition,
    measured_ratios,
)
from mlscale.predictors.intervals import (
    ReadingBounds,
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
UNREAD = Note(
    "R07",
    "its time was measured at one clock only: it is predicted as training runs' on average, "
    "with an interval from no change to one in proportion to the clock",
)
MEMORY_CLOCKS = Note(
    "P02", "power at other memory clocks is estimated from a GTX 980 and a GTX 1080 Ti"
)


@dataclass
class Board(Learner, Predictor):
    """Time or power of a whole run on any GPU, from one reading or more.

    Time needs two; from one it is bounded, from unchanged to in proportion to the clock, and a flag
    says so. Power takes its times from `with_times`, else those of training runs on average. A grid
    of power has the CU count of the base; one of time its memory clock, and either its CU count or
    its engine clock. The reading of the highest clock is the base of all that is computed, so that
    the order of readings changes nothing. Intervals are calibrated on GPUs left out in turn,
    `held_` tells on how many of how many they held; those over CU counts are by `CU_LAW`.
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
        self.laws_ = {}
        for quantity in dict.fromkeys(("time", self.quantity)):
            sweeps = [Sweep.from_table(*one, quantity) for one in sets]
            self.laws_[quantity] = Population.learn(sweeps, quantity)
        self._calibrate(sweeps)
        self.times_: Surfaces | None = None
        return self

    def _calibrate(self, sweeps: Sequence[Sweep]) -> None:
        """Learn the scores of intervals from GPUs predicted by the others.

        With a second reading, and from one, such that every GPU left out is held.
        """
        devices = list(dict.fromkeys(sweep.device for sweep in sweeps))
        groups, two, one = [], [], []
        for device in devices if len(devices) > 1 else ():
            others = [sweep for sweep in sweeps if sweep.device != device]
            known = Population.learn(others, self.quantity, self.laws_[self.quantity])
            for sweep in (sweep for sweep in sweeps if sweep.device == device):
                seconds = [sweep.second(share) for share in SECOND_CLOCKS]
                two += list(np.hstack([self._scores(known, sweep, read) for read in seconds]))
                one += list(self._scores(known, sweep, np.zeros_like(sweep.away)))
                groups += [device] * len(sweep.logs)
        self.scores_ = {
            "two": calibrated_scores(two, groups, alike=True),
            "one": largest_scores(one, groups),
        }
        held = [_is_held(device, two, groups) for device in devices if len(devices) > 2]
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

    def refusal(self, profiles: Profiles, grid: ConfigGrid) -> str | None:
        """Why power on the profiles' GPU, on a grid, cannot be predicted; None where it can."""
        if grid.cu_count != (profiles.base.cu_count,):
            return "power at other CU counts is not predicted, as no training table has them"
        if known_device(profiles.device) or not _from_one_clock(profiles):
            return None
        return (
            f"'{profiles.device}' is not in the device table, and its power is known at one "
            "engine clock only; add a second: --also FILE"
        )

    def assumption(self, profiles: Profiles) -> Note | None:
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
            return Note("G03", f"power was {learnt_on}")
        some = f" for {listed(from_one)}" if len(from_one) < len(profiles.kernels) else ""
        return Note(
            "R07",
            f"power is known at one clock only{some}, and was {learnt_on}; a second reading, "
            "--also, narrows the interval",
            "warning",
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
        highest = without_crossings(from_highest_reading(profiles, self.quantity, grid))
        if self.quantity == "time":
            surfaces = self._times(highest, grid, coverage)
        else:
            surfaces = self._powers(highest, grid, coverage, is_energy)
        ratio = np.ones(len(profiles.kernels))
        for quantity in ("time", "power") if is_energy else (self.quantity,):
            ratio = ratio * highest.quantity(quantity) / profiles.quantity(quantity)
        return replace(surfaces.absolute(ratio), base=profiles.base)

    def _times(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        base, settings = profiles.base, grid.settings()
        if grid.memory_mhz != (base.memory_mhz,):
            raise InputError(
                f"'{self.name}' predicts times at one memory clock, memory={base.memory_mhz:g}"
            )
        log_clock = np.log(settings["engine_mhz"] / base.engine_mhz)
        log_count = np.log(settings["cu_count"] / base.cu_count)
        if profiles.points and log_clock.any() and log_count.any():
            raise InputError(
                "further readings predict time at other engine clocks or at other CU counts, "
                "not at both; give readings and --at for one of them only"
            )
        log_core = log_clock + log_count
        law = CU_LAW if log_count.any() else self.laws_["time"]
        prior = law.prior(lambda z: log_times(log_core, z), log_core, len(profiles.kernels))
        bounded = [np.log(end).ravel() for end in scaling_bounds(grid, base)]
        if not profiles.points:
            logs = np.clip(prior.predicted(), *bounded)
            flags = ((BOUNDED_BY_COUNT if log_count.any() else BOUNDED,),) * len(logs)
            ends = [end + 0 * logs for end in bounded] if coverage is not None else []
            return Surfaces.from_log_ratios(grid, base, logs, flags, ends)
        fit = condition(prior, _readings(profiles, grid, "time"))
        logs, ends = fit.logs, list[Floats]()
        if not log_count.any():
            bounds = ReadingBounds.by(profiles, grid, "time")
            logs = bounds.within(logs)
        if coverage is not None and log_count.any():
            ends = ends_over_cus(profiles, grid, fit, coverage)
        elif coverage is not None and self.scores_["two"].size:
            width = score_at(self.scores_["two"], coverage) * self._scale(fit) * (log_clock != 0)
            ends = bounds.ends(logs, width, width)
        is_read = profiles.has_further_time
        both = zip(ends, bounded, strict=True) if ends else ()
        ends = [np.where(is_read[:, None], end, bound) for end, bound in both]
        logs, *ends = (np.minimum.accumulate(one, axis=1) for one in (logs, *ends))
        told = tuple((UNREAD,) * (not is_known) for is_known in is_read.tolist())
        return Surfaces.from_log_ratios(grid, base, logs, told, ends)

    def _powers(
        self, profiles: Profiles, grid: ConfigGrid, coverage: float | None, is_energy: bool
    ) -> Surfaces:
        base, count = profiles.base, len(profiles.kernels)
        if refusal := self.refusal(profiles, grid):
            raise InputError(f"power of '{profiles.device}' is not predicted: {refusal}")
        times = self._times_on(profiles, grid)
        log_time = np.log(times.values).reshape(count, -1)
        settings, population = grid.settings(), self.laws_["power"]
        log_engine = np.log(settings["engine_mhz"] / base.engine_mhz)
        log_memory = np.log(settings["memory_mhz"] / base.memory_mhz)
        highest_mhz = self._highest_clock(profiles, grid)
        x, x_base = np.array(grid.engine_mhz) / highest_mhz, base.engine_mhz / highest_mhz
        at_base_memory, to_grid = on_grid(profiles, times)
        prior = population.prior(
            lambda z: to_grid(log_powers(x, x_base, at_base_memory, z)),
            log_engine,
            count,
            MISFIT_PER_MEMORY_CLOCK * log_memory[None],
        )
        fit = condition(prior, _readings(profiles, grid, "power"))
        bounds = ReadingBounds.by(profiles, grid, "power")
        logs = _rising(bounds.within(fit.logs), grid)
        ends: list[Floats] = []
        if coverage is not None and self.scores_["two"].size:
            from_one = np.isin(profiles.kernels, _from_one_clock(profiles))[:, None]
            two, one = (score_at(self.scores_[name], coverage) for name in ("two", "one"))
            width = np.where(from_one, one, two) * self._scale(fit) * (log_engine != 0)
            width = width + SPREAD_PER_MEMORY_CLOCK * np.abs(log_memory)
            low, high = (times.values if end is None else end for end in (times.low, times.high))
            shorter = log_time - np.log(low).reshape(count, -1)
            longer = np.log(high).reshape(count, -1) - log_time
            # Watts that follow the rate of work fall as time rises: energy is more, power is less.
            follows = 1 / (1 + np.exp(log_time - population.unknowns(fit.latents)[0][:, None]))
            if is_energy:
                down, up = (1 - follows) * shorter, (1 - follows) * longer
                ends = [logs - np.hypot(width, down), logs + np.hypot(width, up)]
            else:
                down, up = np.hypot(width, follows * longer), np.hypot(width, follows * shorter)
                ends = bounds.ends(logs, down, up)
        if is_energy:
            logs, *ends = (values + log_time for values in (logs, *ends))
        else:
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
        return times.relative_to(base)

    def _highest_clock(self, profiles: Profiles, grid: ConfigGrid) -> float:
        """Where the voltage is at its top [MHz], see `highest_clock`.

        A clock asked for counts as measured where the GPU, not learnt from, does not list it.
        """
        device, asked_mhz = profiles.device, grid.engine_mhz[-1]
        reached = [profiles.base.engine_mhz, *(p.config.engine_mhz for p in profiles.points)]
        reached += [known.engine_mhz[-1] for name, known, _ in self.trained_ if name == device]
        if device not in self.trained_devices() and not is_listed(device, asked_mhz):
            reached.append(asked_mhz)
        return highest_clock(device, reached)

    def check_restored(self) -> None:
        """There are no times yet. Raises ValueError on a state that cannot be a `Board`'s."""
        held, gpus = self.held_
        if not self.trained_ or not 0 <= held <= gpus:
            raise ValueError("it does not say the GPUs that it learnt from")
        for quantity in {"time", self.quantity}:
            if len(self.laws_[quantity].mean) != len(FIRST[quantity].mean):
                raise ValueError(f"the law of {quantity} has other unknowns")
        self.times_ = None


def _is_held(device: str, scores: Sequence[Floats], groups: Sequence[str]) -> bool:
    """Whether 90 % intervals by the scores of the other GPUs hold ENOUGH of a GPU's truth."""
    others = [one for one, group in zip(scores, groups, strict=True) if group != device]
    names = [group for group in groups if group != device]
    limit = score_at(calibrated_scores(others, names, alike=True), 0.9)
    theirs = [one for one, group in zip(scores, groups, strict=True) if group == device]
    return bool(np.mean([(one <= limit).mean() for one in theirs]) >= ENOUGH)


def _readings(profiles: Profiles, grid: ConfigGrid, quantity: str) -> MeasuredRatios:
    """The readings over the base's, with the noise of time that repeated runs show, if it is more.

    Never with less: what a GPU does alike in runs on one day, as by its heat, they do not show.
    """
    readings = replace(measured_ratios(profiles, grid, quantity), are_kept=True)
    if quantity == "time":
        return replace(readings, noise=np.fmax(RATIO_NOISE, profiles.factor_sd.T))
    return readings


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
