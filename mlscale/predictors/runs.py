"""`runs`: time, power and energy of a whole run over the engine clock, on any GPU: NumPy.

Time also over CU counts at one clock, from readings at two counts.

`runs_law` has the laws and what is learnt of how runs differ. A run's readings move its unknowns
(`conditioning`): its times those of time, alone, so that power changes nothing about time; its
power, with the times, those of power. Energy is their sum in the log, with a covariance over the
clocks: a run that takes longer than predicted draws less.

Time does not rise with the clock and power does not fall, so readings that do are treated as what
noise makes of equal ones: each is their mean. So the order of readings changes nothing.

K runs, N configurations, P readings.
"""

import copy
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.logs import is_engine_sweep, without_power_faults
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, MeasuredPoint, Profiles
from mlscale.data.surfaces import BOUNDED, BOUNDED_BY_COUNT, Surfaces, scaling_bounds
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.predictors.base import (
    Bases,
    Predictor,
    TrainedGpu,
    Training,
    training_grid,
    training_sets,
)
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePosterior,
    condition,
    measured_ratios,
)
from mlscale.predictors.intervals import ReadingBounds, require_scores, score_at
from mlscale.predictors.runs_intervals import (
    Held,
    calibrated,
    ends_over_cus,
    energy_covariance,
    following,
    scale_of,
)
from mlscale.predictors.runs_law import (
    CU_LAW,
    FIRST,
    LEAST_CLOCKS,
    Population,
    Sweeps,
    highest_clock,
    is_listed,
    log_powers,
    log_times,
)
from mlscale.predictors.state import Learner, learnt
from mlscale.text import listed

SEED_OF_DRAWS = 1
UNREAD = Note(
    "R07",
    "its time was measured at one clock only: it is predicted as training runs' on average, "
    "with an interval from no change to one in proportion to the clock",
)


@dataclass
class Runs(Learner, Predictor):
    """Time or power of a whole run on any GPU, from one reading or more.

    Time needs two; from one it is bounded, from unchanged to in proportion to the clock, and a flag
    says so. Power takes its times from `with_times`, else those of training runs on average. A grid
    has the memory clock of the base; one of power its CU count, one of time that or its engine
    clock. The reading of the highest clock is the base of all that is computed, so that
    the order of readings changes nothing. Intervals are calibrated on GPUs left out in turn,
    `held_` tells on how many of how many they held; those over CU counts are by `CU_LAW`.
    scores_ (errors over what half-widths follow) and held_: of 'two' readings or more, of 'one',
    and of 'energy' from two.
    """

    name = "runs"
    quantities: ClassVar[tuple[str, ...]] = ("time", "power")
    quantity: str = "time"
    laws_: dict[str, Population] = learnt()
    scores_: dict[str, Annotated[Floats, require_scores]] = learnt()
    held_: Held = learnt()
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
        sweeps = Sweeps.joined([Sweeps.from_table(*one) for one in sets])
        quantities = dict.fromkeys(("time", self.quantity))
        self.laws_ = {quantity: Population.learn(sweeps, quantity) for quantity in quantities}
        self.scores_, self.held_ = calibrated(self.quantity, self.laws_, sweeps)
        self.times_: Surfaces | None = None
        self.are_of_law_ = False
        return self

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Nothing: the laws know no peaks."""
        return self

    def with_times(self, times: Surfaces, are_of_law: bool = False) -> Self:
        """The predictor of power for runs with these times, on their grid.

        are_of_law: whether they are those of `Runs` from readings at two clocks or more, so that
        their covariance over the clocks is known, and with it energy's.
        """
        other = copy.copy(self)
        other.times_, other.are_of_law_ = times, are_of_law
        return other

    def refusal(self, profiles: Profiles, grid: ConfigGrid) -> str | None:
        """Why power on the profiles' GPU, on a grid, cannot be predicted; None where it can."""
        if grid.cu_count != (profiles.base.cu_count,):
            return "power at other CU counts is not predicted, as no training table has them"
        if profiles.base.memory_mhz not in grid.memory_mhz:
            return "power is predicted only at the memory clock of the base"
        if known_device(profiles.device) or not _from_one_clock(profiles):
            return None
        return (
            f"'{profiles.device}' is not in the device table, and its power is known at one "
            f"engine clock only; add a second: {parameter('also', 'FILE')}"
        )

    def assumption(self, profiles: Profiles) -> Note | None:
        """What is assumed of a GPU that was not learnt from."""
        trained = self.trained_devices()
        if profiles.device in trained:
            return None
        learnt_on = f"trained on {len(trained)} other GPU{'s' if len(trained) > 1 else ''}"
        known = known_device(profiles.device)
        vendors = {device.vendor for device in map(known_device, trained) if device}
        if known and vendors and known.vendor not in vendors:
            learnt_on += f", none of them of {known.vendor}"
        from_one = _from_one_clock(profiles)
        if not from_one:
            return Note("G03", f"the law of power was {learnt_on}")
        some = f" for {listed(from_one)}" if len(from_one) < len(profiles.kernels) else ""
        return Note(
            "R07",
            f"power is known at one clock only{some}, its law {learnt_on}; a second reading, "
            f"{parameter('also')}, narrows the interval",
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
        memory_mhz = profiles.base.memory_mhz
        if grid.memory_mhz != (memory_mhz,):
            raise InputError(
                f"'{self.name}' predicts at one memory clock, that of the run: give readings and "
                f"settings at memory={memory_mhz:g}"
            )
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
        log_clock = np.log(settings["engine_mhz"] / base.engine_mhz)
        log_count = np.log(settings["cu_count"] / base.cu_count)
        if profiles.points and log_clock.any() and log_count.any():
            raise InputError(
                "further readings predict time at other engine clocks or at other CU counts, "
                f"not at both; give readings and {parameter('at')} for one of them only"
            )
        fit = self._time_fit(profiles, grid)
        bounded = [np.log(end).ravel() for end in scaling_bounds(grid, base)]
        if not profiles.points:
            logs = np.clip(fit.logs, *bounded)
            flags = ((BOUNDED_BY_COUNT if log_count.any() else BOUNDED,),) * len(logs)
            ends = [end + 0 * logs for end in bounded] if coverage is not None else []
            return Surfaces.from_log_ratios(grid, base, logs, flags, ends)
        logs, ends = fit.logs, list[Floats]()
        if not log_count.any():
            bounds = ReadingBounds.by(profiles, grid, "time")
            logs = bounds.within(logs)
        if coverage is not None and log_count.any():
            ends = ends_over_cus(profiles, grid, fit, coverage)
        elif coverage is not None and self.scores_["two"].size:
            score = score_at(self.scores_["two"], coverage)
            width = score * scale_of(fit.after, "time") * (log_clock != 0)
            ends = bounds.ends(logs, width, width)
        is_read = profiles.has_further_time
        both = zip(ends, bounded, strict=True) if ends else ()
        ends = [np.where(is_read[:, None], end, bound) for end, bound in both]
        logs, *ends = (np.minimum.accumulate(one, axis=1) for one in (logs, *ends))
        told = tuple((UNREAD,) * (not is_known) for is_known in is_read.tolist())
        return Surfaces.from_log_ratios(grid, base, logs, told, ends)

    def _time_fit(self, profiles: Profiles, grid: ConfigGrid) -> SurfacePosterior:
        """Time over the engine clock, or over CU counts, after the readings."""
        log_count = np.log(grid.settings()["cu_count"] / profiles.base.cu_count)
        log_core = np.log(grid.settings()["engine_mhz"] / profiles.base.engine_mhz) + log_count
        law = CU_LAW if log_count.any() else self.laws_["time"]
        prior = law.prior(lambda z: log_times(log_core, z), log_core, len(profiles.kernels))
        return condition(prior, _readings(profiles, grid, "time"))

    def _powers(
        self, profiles: Profiles, grid: ConfigGrid, coverage: float | None, is_energy: bool
    ) -> Surfaces:
        base, count = profiles.base, len(profiles.kernels)
        times, fit, logs = self._fitted(profiles, grid)
        log_time = np.log(times.values).reshape(count, -1)
        ends: list[Floats] = []
        if coverage is not None and self.scores_["two"].size:
            from_one = np.isin(profiles.kernels, _from_one_clock(profiles))[:, None]
            two, one = (score_at(self.scores_[name], coverage) for name in ("two", "one"))
            width = np.where(from_one, one, two) * scale_of(fit.after, self.quantity)
            low, high = (times.values if end is None else end for end in (times.low, times.high))
            shorter = log_time - np.log(low).reshape(count, -1)
            longer = np.log(high).reshape(count, -1) - log_time
            follows = self._follows(profiles, fit, log_time)
            if is_energy and self.are_of_law_:
                covariance = self._energy_covariance(profiles, grid, fit, log_time)
                scale = scale_of(np.diagonal(covariance, axis1=1, axis2=2), "energy")
                width = score_at(self.scores_["energy"], coverage) * scale
                shorter = longer = np.zeros_like(scale)
            width = width * (np.array(grid.engine_mhz) != base.engine_mhz)
            # Watts that follow the rate of work fall as time rises: energy is more, power is less.
            if is_energy:
                down, up = (1 - follows) * shorter, (1 - follows) * longer
                ends = [logs - np.hypot(width, down), logs + np.hypot(width, up)]
            else:
                down, up = np.hypot(width, follows * longer), np.hypot(width, follows * shorter)
                ends = ReadingBounds.by(profiles, grid, "power").ends(logs, down, up)
        if is_energy:
            logs, *ends = (values + log_time for values in (logs, *ends))
        else:
            ends = [_rising(end, grid) for end in ends]
        return Surfaces.from_log_ratios(grid, base, logs, ends=ends)

    def _fitted(
        self, profiles: Profiles, grid: ConfigGrid
    ) -> tuple[Surfaces, SurfacePosterior, Floats]:
        """Times; power after the readings; its logs (K, N) within what these allow. InputError."""
        if refusal := self.refusal(profiles, grid):
            raise InputError(f"power of '{profiles.device}' is not predicted: {refusal}")
        count, times = len(profiles.kernels), self._times_on(profiles, grid)
        log_time, clocks = np.log(times.values).reshape(count, -1), np.array(grid.engine_mhz)
        base_mhz, highest_mhz = profiles.base.engine_mhz, self._highest_clock(profiles, grid)
        x, x_base = clocks / highest_mhz, base_mhz / highest_mhz
        known = self.laws_["power"].for_gpu(profiles.device)
        prior = known.prior(
            lambda z: log_powers(x, x_base, log_time, z), np.log(clocks / base_mhz), count
        )
        fit = condition(prior, _readings(profiles, grid, "power"))
        return times, fit, _rising(ReadingBounds.by(profiles, grid, "power").within(fit.logs), grid)

    def _follows(self, profiles: Profiles, fit: SurfacePosterior, log_time: Floats) -> Floats:
        """The share of the watts (K, N) that follows the rate of work."""
        known = self.laws_["power"].for_gpu(profiles.device)
        return following(log_time, known.unknowns(fit.latents)[0])

    def _energy_covariance(
        self, profiles: Profiles, grid: ConfigGrid, fit: SurfacePosterior, log_time: Floats
    ) -> Floats:
        """That of log energy (K, N, N), by that of power at these times and that of time."""
        times = self._time_fit(profiles, grid)
        return energy_covariance(fit, times, self._follows(profiles, fit, log_time))

    def energy_draws(self, profiles: Profiles, grid: ConfigGrid, draws: int) -> Floats:
        """What energy over the base's may be, (draws, K, N), by the posterior. Raises InputError.

        Of times of the law, see `with_times`. Errors of kernels go together, as all are of one GPU.
        The same draws each time.
        """
        highest = without_crossings(from_highest_reading(profiles, "power", grid))
        times, fit, powers = self._fitted(highest, grid)
        log_time = np.log(times.values).reshape(powers.shape)
        values, vectors = np.linalg.eigh(self._energy_covariance(highest, grid, fit, log_time))
        roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        normal = np.random.default_rng(SEED_OF_DRAWS).standard_normal((draws, grid.size))
        off = (normal @ roots.transpose(0, 2, 1)).swapaxes(0, 1)
        ratio = [getattr(highest, one) / getattr(profiles, one) for one in ("time_ms", "power_w")]
        return np.asarray(np.prod(ratio, axis=0)[:, None] * np.exp(log_time + powers + off))

    def _times_on(self, profiles: Profiles, grid: ConfigGrid) -> Surfaces:
        """The runs' times on the grid, relative to the profiles' base. Raises InputError."""
        base, times = profiles.base, self.times_
        if times is None:
            return self._times(profiles, grid, None)
        if times.grid != grid or times.base not in (base, *(p.config for p in profiles.points)):
            raise InputError(f"'{self.name}' predicts only on the grid and base of its times")
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
        """There are no times yet. Raises ValueError on a state that cannot be that of `Runs`."""
        if not self.trained_ or any(not 0 <= held <= gpus for held, gpus in self.held_.values()):
            raise ValueError("it does not list the GPUs that it was trained on")
        for quantity in {"time", self.quantity}:
            law = self.laws_[quantity]
            sizes = {law.mean.size, *(mean.size for mean in law.means)}
            if sizes != {FIRST[quantity].mean.size} or len(law.means) != len(law.gpus):
                raise ValueError(f"the law of {quantity} has other unknowns")
        self.times_, self.are_of_law_ = None, False


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
    """The kernels without power at a further point of the base's memory clock."""
    lack = np.ones(len(profiles.kernels), dtype=bool)
    for point in profiles.points:
        if point.power_w is not None and point.config.memory_mhz == profiles.base.memory_mhz:
            lack &= np.isnan(point.power_w)
    return [name for name, lacks in zip(profiles.kernels, lack, strict=True) if lacks]


def from_highest_reading(profiles: Profiles, quantity: str, grid: ConfigGrid) -> Profiles:
    """The same profiles with the reading of the highest engine clock as the base, points by clock.

    Or of the most CUs. Of readings of every run. The base stays where it is outside the grid's
    range.
    """
    base, name = profiles.base, QUANTITIES[quantity]
    top = first = MeasuredPoint(
        base, profiles.time_ms, profiles.power_w, log_time_sd=profiles.log_time_sd
    )
    for point in profiles.points if grid.spans(base) else ():
        values = getattr(point, name)
        is_known = values is not None and not np.isnan(values).any()
        if is_known and _core(point) > _core(top):
            top = point
    others = [point for point in (first, *profiles.points) if point is not top]
    others.sort(key=_core)
    return replace(
        profiles, base=top.config, time_ms=top.time_ms, power_w=top.power_w, points=tuple(others),
        log_time_sd=top.log_time_sd,
    )  # fmt: skip


def without_crossings(profiles: Profiles) -> Profiles:
    """The same profiles, of readings that cross the mean of their logs; see `pooled`."""
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    readings = {one.config: one for one in (*profiles.points, base)}
    by_core = sorted(readings.values(), key=_core)
    for name, rising in (("time_ms", by_core[::-1]), ("power_w", by_core)):
        having = [one.config for one in rising if getattr(one, name) is not None]
        values = pooled(np.array([getattr(readings[config], name) for config in having]))
        for config, made in zip(having, values, strict=True):
            readings[config] = replace(readings[config], **{name: made})
    base = readings[base.config]
    points = tuple(readings[point.config] for point in profiles.points)
    return replace(profiles, time_ms=base.time_ms, power_w=base.power_w, points=points)


def pooled(values: Floats) -> Floats:
    """Values (P, K) that nowhere fall from row to row: those that do become their mean in the log.

    Pool adjacent violators, each kernel by itself; NaN stays. Ayer et al., Ann. Math. Stat. 26,
    1955.
    """
    values = values.copy()
    for column in values.T:
        known = np.flatnonzero(np.isfinite(column))
        blocks: list[list[float]] = []
        for value in column[known].tolist():
            blocks.append([value])
            while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
                blocks[-2:] = [blocks[-2] + blocks[-1]]
        column[known] = [_mean(block) for block in blocks for _ in block]
    return values


def _mean(block: list[float]) -> float:
    """The geometric mean; of one value itself, to the last bit."""
    return block[0] if len(block) == 1 else float(np.exp(np.log(block).mean()))


def _core(point: MeasuredPoint) -> float:
    return point.config.cu_count * point.config.engine_mhz
