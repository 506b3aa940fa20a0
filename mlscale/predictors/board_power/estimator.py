"""`board-power`: power of any GPU of the device table from its power at one base."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, Mask, positive
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_engine_sweep, require_engine_sweep, without_power_faults
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors import board_time
from mlscale.predictors.base import (
    Bases,
    Predictor,
    State,
    TrainedGpu,
    Training,
    training_grid,
    training_sets,
)
from mlscale.predictors.board_power.inputs import board_limit_w, limit_of
from mlscale.predictors.board_power.memory_clock import on_grid
from mlscale.predictors.board_power.model import (
    BoardCurve,
    GpuSweep,
    PowerPopulation,
    highest_clock,
    is_listed,
)
from mlscale.predictors.conditioning import (
    MeasuredRatios,
    SurfacePosterior,
    condition,
    measured_ratios,
)
from mlscale.predictors.intervals import (
    LEVELS,
    calibrated_scores,
    largest_scores,
    restored_scores,
    score_at,
)
from mlscale.predictors.sampled.curves import PowerCurve
from mlscale.text import listed

# Standard deviation of the log power that intervals have at least, from the base alone and with a
# further point: so far off power is even close to a measured clock. Chosen by leaving out GPUs.
LEAST_SPREAD, LEAST_SPREAD_FURTHER = 0.08, 0.05
SECOND_STEP = 3  # of a GPU's clocks, each is tried as the second one
# Of log power per log memory clock: what is left where it is measured there, and the half-width of
# the interval. Assumed, not learnt.
MISFIT_PER_MEMORY_CLOCK, SPREAD_PER_MEMORY_CLOCK = 0.1, 0.2
LARGEST_LEVEL = 0.9995  # of coverage, that a Gaussian's interval is made for
OWN_TIMES = "times taken to scale as the training GPUs' runs do on average"
NO_FURTHER_POWER = "nor is its power at a second engine clock given (--also)"
MEMORY_CLOCKS = "power at other memory clocks: as measured on a GTX 980 and a GTX 1080 Ti"


@dataclass
class BoardPower(Predictor):
    """P / P_base = w0 + w1 V^2 f / (V_base^2 f_base) + w2 T_base / T, of any GPU.

    V^2 over the clock, as a share of the GPU's highest, has one shape on all GPUs, and steps of a
    size of its own. The weights and that size are Gaussian, as training runs of several GPUs show;
    power's share of the board's limit and the base's clock move their means, power measured at
    further clocks tells the rest. Times are those of `with_times`, else those of the training runs
    on average, which are poor of any one run. spread_from: devices among the training tables that
    are not learnt from, but widen the intervals by how far their power is from predicted.
    """

    name = "board-power"
    quantities: ClassVar[tuple[str, ...]] = ("power",)
    quantity: str = "power"
    spread_from: Sequence[str] = ()

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles with power, over the engine clock alone."""
        has_clocks = len(measurements.grid.engine_mhz) >= board_time.LEAST_CLOCKS
        has_power = measurements.power_samples is not None
        return is_engine_sweep(measurements) and has_clocks and has_power

    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the tables of one GPU or several; one table may come with several bases.

        Kernels whose power is faulty are left out. Intervals are calibrated on each GPU as
        predicted from the others. Raises InputError on several CU counts or memory clocks, on fewer
        than three engine clocks, on what lacks power, and where all is in spread_from.
        """
        pairs = training_sets(self, training, base)
        sets = [(without_power_faults(table), at) for table, at in pairs]
        learnt = [(table, at) for table, at in sets if table.device not in self.spread_from]
        if not learnt:
            raise InputError(f"'{self.name}' needs a training table that is not in spread_from")
        for table, _ in sets:
            require_engine_sweep(self.name, table, board_time.LEAST_CLOCKS)
            table.quantity("power")
        self.limits_w_: dict[str, float] = {}
        for table, at in sets:
            limit_w = limit_of(table.profiles(at))
            self.limits_w_[table.device] = max(self.limits_w_.get(table.device, 0.0), limit_w)
        self.trained_: tuple[TrainedGpu, ...] = tuple(
            (table.device, table.grid, at) for table, at in learnt
        )
        gpus = [GpuSweep.of(table, at, self.limits_w_[table.device]) for table, at in sets]
        devices = self.trained_devices()
        self.population_ = PowerPopulation.of([gpu for gpu in gpus if gpu.device in devices])
        self.runs_ = board_time.TimePopulation.of([board_time.GpuRuns.of(*one) for one in learnt])
        self.scores_, self.further_scores_ = _held_out_scores(gpus, devices, self.population_)
        self.times_: Surfaces | None = None
        return self

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Take the limit of a board that the device table lacks from any of its kernels."""
        self.limits_w_ = {**self.limits_w_, profiles.device: limit_of(profiles)}
        return self

    def refusal(self, profiles: Profiles) -> str | None:
        """Why power on the profiles' GPU cannot be predicted; None where it can.

        Where the board's limit is not known, it can from power at a further clock alone.
        """
        device = profiles.device
        has_limit = device in self.limits_w_ or board_limit_w(device)
        if has_limit or not _from_one_clock(profiles):
            return None
        if known_device(device) is None:
            return f"'{device}' is not in the device table, {NO_FURTHER_POWER}"
        return f"the power limit tdp_w of '{device}' is not in the device table, {NO_FURTHER_POWER}"

    def assumption(self, profiles: Profiles) -> str | None:
        """What is assumed of a GPU that was not learnt from."""
        trained = self.trained_devices()
        if profiles.device in trained:
            return None
        learnt = f"learnt on {len(trained)} other GPU{'s' if len(trained) > 1 else ''}"
        known, vendors = known_device(profiles.device), {*map(_vendor, trained)} - {None}
        if known and vendors and known.vendor not in vendors:
            learnt += f", none of them of {known.vendor}"
        from_one = _from_one_clock(profiles)
        if not from_one:
            return f"power {learnt}"
        of = f" for {listed(from_one)}" if len(from_one) < len(profiles.kernels) else ""
        return (
            f"power from one clock alone{of}, {learnt}: power at a second clock (--also) tells more"
        )

    def with_times(self, times: Surfaces) -> Self:
        """The predictor for kernels with these times, on their grid."""
        other = copy.copy(self)
        other.times_ = times
        return other

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces, on the grid of the training table where none is given. Raises InputError.

        A grid has the CU count of the base alone.
        """
        return self._surfaces(profiles, grid, None)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of kernel x configuration.

        From the base alone they hold it of every GPU like those left out in training, with
        power at a further engine clock on average over such GPUs. The times' own intervals widen
        them. low and high are None after training on one GPU alone. Raises
        InputError.
        """
        return self._surfaces(profiles, grid, coverage)

    def _surfaces(
        self, profiles: Profiles, grid: ConfigGrid | None, coverage: float | None
    ) -> Surfaces:
        grid = self._grid(profiles, grid)
        base, settings, times = profiles.base, grid.settings(), self.times_
        log_clock, log_memory = (
            np.log(settings[axis] / getattr(base, axis)) for axis in ("engine_mhz", "memory_mhz")
        )
        if times is None:
            prior = self.runs_.prior(np.log(np.array(grid.engine_mhz) / base.engine_mhz), 1)
            own = np.exp(prior.predicted())[:, None, :, None]
            factors = np.broadcast_to(own, (len(profiles.kernels), *grid.shape))
        elif times.grid != grid or times.base != base:
            raise InputError(f"'{self.name}' predicts on the grid and base of its times alone")
        else:
            factors = times.values
        measured = _measured_power(profiles, grid)
        posterior = self._posterior(profiles, grid, factors, measured)
        logs = posterior.logs
        flags = self._flags(profiles, is_memory_swept=bool(log_memory.any()))
        if coverage is None or not self.scores_.size:
            return Surfaces.of_logs(grid, base, logs, flags)
        is_elsewhere = np.abs(measured.at @ log_clock) > 1e-9
        has_further = (~np.isnan(measured.logs) & is_elsewhere).any(axis=1, keepdims=True)
        further = score_at(self.further_scores_, coverage) * _scale(posterior, LEAST_SPREAD_FURTHER)
        alone = score_at(self.scores_, coverage) * _scale(posterior, LEAST_SPREAD)
        width = np.where(has_further, further, alone)
        width = np.where((log_clock != 0) | (log_memory != 0), width, 0)
        width = width + SPREAD_PER_MEMORY_CLOCK * np.abs(log_memory)
        low, high = logs - width, logs + width
        if times is not None and times.low is not None and times.high is not None:
            nothing = MeasuredRatios(np.empty((0, grid.size)), np.empty((len(logs), 0)))
            without, slow, fast = (
                self._posterior(profiles, grid, of_times, nothing).logs
                for of_times in (times.values, times.high, times.low)
            )
            low, high = low + slow - without, high + fast - without
        return Surfaces.of_logs(grid, base, logs, flags, (low, high))

    def _posterior(
        self, profiles: Profiles, grid: ConfigGrid, times: Floats, measured: MeasuredRatios
    ) -> SurfacePosterior:
        """Log power ratios (K, N) by time ratios (K, 1, E, M), given power measured elsewhere."""
        base, limit_w = profiles.base, self._limit_w(profiles)
        engine, memory = (
            np.array(getattr(grid, axis)) / getattr(base, axis)
            for axis in ("engine_mhz", "memory_mhz")
        )
        highest = self._highest_clock(profiles, grid) / base.engine_mhz
        at_base = times[:, 0, :, int(np.abs(np.log(memory)).argmin())]
        curve = BoardCurve(PowerCurve(np.log(engine), highest, np.log(at_base)))
        to_grid = on_grid(profiles, grid, times, limit_w)
        columns = self.population_.inputs.columns(
            profiles.base_power_w / limit_w, -float(np.log(highest))
        )
        settings = grid.settings()
        prior = self.population_.prior(
            columns,
            lambda latents: to_grid(curve.log_ratios(latents)),
            np.log(settings["engine_mhz"] / base.engine_mhz),
            MISFIT_PER_MEMORY_CLOCK * np.log(settings["memory_mhz"] / base.memory_mhz)[None],
        )
        return condition(prior, measured)

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

    def _grid(self, profiles: Profiles, grid: ConfigGrid | None) -> ConfigGrid:
        """The grid, or that of the training table. Raises InputError."""
        if grid is None:
            return training_grid(self.trained_, profiles)
        if grid.cu_count != (profiles.base.cu_count,):
            raise InputError(
                "no training table has several CU counts, so the model does not tell what other "
                f"counts do; predict at the profile's, cu={profiles.base.cu_count}"
            )
        return grid

    def _limit_w(self, profiles: Profiles) -> float:
        """The board's limit [W]; NaN where it is not known. Raises InputError."""
        if refusal := self.refusal(profiles):
            raise InputError(f"power of '{profiles.device}' is not predicted: {refusal}")
        device = profiles.device
        return self.limits_w_.get(device) or board_limit_w(device) or float("nan")

    def _flags(self, profiles: Profiles, is_memory_swept: bool) -> tuple[tuple[str, ...], ...]:
        """For each kernel what was assumed of it, and what is outside the range trained."""
        note = []
        if self.times_ is None:
            note.append(OWN_TIMES)
        if is_memory_swept:
            note.append(MEMORY_CLOCKS)
        share = profiles.base_power_w / self._limit_w(profiles)
        return tuple((*note, *flags) for flags in self.population_.inputs.flags(share))

    def state(self) -> State:
        """What was learnt, and from which GPUs."""
        return {
            "population": self.population_.state(),
            "runs": self.runs_.state(),
            "scores": self.scores_,
            "further_scores": self.further_scores_,
            "limits_w": self.limits_w_,
            "trained": [
                {"device": device, **grid_state(grid, base)} for device, grid, base in self.trained_
            ],
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; shapes are checked."""
        self.population_ = PowerPopulation.restore(state["population"])
        self.runs_ = board_time.TimePopulation.restore(state["runs"])
        self.scores_ = restored_scores(state["scores"])
        self.further_scores_ = restored_scores(state["further_scores"])
        self.limits_w_ = {str(device): float(own) for device, own in state["limits_w"].items()}
        positive(np.array(list(self.limits_w_.values())), "a limit")
        self.trained_ = tuple((str(one["device"]), *restore_grid(one)) for one in state["trained"])
        if not self.trained_ or not set(self.trained_devices()) <= self.limits_w_.keys():
            raise ValueError("it does not say the GPUs that it learnt from, or not their limits")
        self.times_ = None
        return self


def _measured_power(profiles: Profiles, grid: ConfigGrid) -> MeasuredRatios:
    """Power of the profiles' further points."""
    points = measured_ratios(profiles, grid, with_power=True)
    at = points.at[:, grid.size :]
    is_power = at.any(axis=1)
    return MeasuredRatios(at[is_power], points.logs[:, is_power])


def _vendor(device: str) -> str | None:
    known = known_device(device)
    return known.vendor if known else None


def _from_one_clock(profiles: Profiles) -> list[str]:
    """The kernels without power at a further point."""
    lack = np.ones(len(profiles.kernels), dtype=bool)
    for point in profiles.points:
        if point.power_w is not None:
            lack &= np.isnan(point.power_w)
    return [name for name, lacks in zip(profiles.kernels, lack, strict=True) if lacks]


def _scale(posterior: SurfacePosterior, least: float) -> Floats:
    """What the intervals' half-widths are proportional to, (K, N)."""
    return np.asarray(np.sqrt(posterior.after + least**2))


def _held_out_scores(
    gpus: Sequence[GpuSweep], learnt: Sequence[str], whole: PowerPopulation
) -> tuple[Floats, Floats]:
    """Scores of GPUs predicted from the others that are learnt from, but none below a Gaussian's.

    The first are from the base alone: every GPU is held by them, as a user has one GPU, not ten on
    average. The others are with power at one further clock, each of every SECOND_STEP; GPUs are
    held by these on average. True times are given, so that those of a predictor of time come on
    top. whole: of all that are learnt from. Empty where fewer than two GPUs can be predicted from
    others.
    """
    alone: list[Floats] = []
    further: list[Floats] = []
    devices: list[str] = []
    for device in dict.fromkeys(gpu.device for gpu in gpus):
        others = [gpu for gpu in gpus if gpu.device in learnt and gpu.device != device]
        if not others:
            continue
        population = PowerPopulation.of(others) if device in learnt else whole
        for gpu in (gpu for gpu in gpus if gpu.device == device):
            away = np.abs(gpu.log_clock) > 1e-9
            alone += list(_scores(population, gpu, [], away))
            each = []
            for step in np.flatnonzero(away)[::SECOND_STEP].tolist():
                is_new = away & (np.arange(away.size) != step)
                each.append(_scores(population, gpu, [step], is_new))
            further += list(np.hstack(each))
            devices += [gpu.device] * len(gpu.share)
    levels = np.minimum(LEVELS, LARGEST_LEVEL)
    gaussian = np.array([NormalDist().inv_cdf((1 + level) / 2) for level in levels])
    calibrated = (largest_scores(alone, devices), calibrated_scores(further, devices, alike=True))
    of_base, of_further = (np.maximum(one, gaussian[: one.size]) for one in calibrated)
    return of_base, of_further


def _scores(population: PowerPopulation, gpu: GpuSweep, steps: list[int], at: Mask) -> Floats:
    """|log error| over what the half-widths are proportional to, where they are asked for.

    steps: at which power was measured besides the base.
    """
    columns = population.inputs.columns(gpu.share, gpu.base)
    prior = population.prior(columns, gpu.curve.log_ratios, gpu.log_clock)
    measured = MeasuredRatios(np.eye(at.size)[steps], gpu.log_power[:, steps])
    posterior = condition(prior, measured)
    scale = _scale(posterior, LEAST_SPREAD_FURTHER if steps else LEAST_SPREAD)
    return np.asarray((np.abs(gpu.log_power - posterior.logs) / scale)[:, at])
