"""`board-power`: power of any GPU over its clocks, learnt from other GPUs' (decision 0016).

`estimator` is the predictor, `curve` its formula over the engine clock, `population` what it has
learnt of how runs differ, and `memory_clock` its rule for other memory clocks.

What another memory clock does to board power: less work while waiting, and a cheaper interface.

Of no GPU that `board-power` learns from can the memory clock be set. Two constants, measured on a
GTX 980 and a GTX 1080 Ti (docs/decisions/0016-board-power.md), are taken for all others.

`board-power`: power of any GPU of the device table from its power at one base.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, Mask, positive
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.logs import require_engine_sweep, without_power_faults
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors.base import Bases, TrainedGpu, Training, training_sets
from mlscale.predictors.board import (
    CLOSE,
    LEAST_CLOCKS,
    RISES,
    BoardPredictor,
    GpuRuns,
    TimePopulation,
    from_nearest,
    relative_to,
    through_readings,
    within_readings,
)
from mlscale.predictors.board_population import (
    BoardCurve,
    GpuSweep,
    PowerPopulation,
    board_limit_w,
    highest_clock,
    is_listed,
    known_floor,
    limit_of,
)
from mlscale.predictors.conditioning import (
    RATIO_NOISE,
    MeasuredRatios,
    SurfacePosterior,
    SurfacePrior,
    condition,
    measured_ratios,
)
from mlscale.predictors.intervals import (
    at_least_gaussian,
    calibrated_scores,
    largest_scores,
    require_scores,
    score_at,
)
from mlscale.predictors.state import learnt
from mlscale.text import listed

WAITING = 0.4  # of the board's limit: what the GPU draws while all its waves wait for memory
INTERFACE = 0.12  # of the board's limit: what the memory draws by its clock alone, at the rated one
WAITING_SHARE = 0.5  # of the kernel's power, where the board's limit is not known
LARGEST_INTERFACE_SHARE = 0.5  # of the kernel's power; not measured, for boards that hardly work
LEAST = 0.05  # of the base's power; nothing runs on less


def with_memory_clock(
    power_w: Floats, slowdown: Floats, memory: Floats, rated: float, limit_w: float
) -> Floats:
    """Return power (K, E, M) [W] at other memory clocks.

    power_w (K, E): at the base's memory clock. slowdown (K, E, M): time over that there. memory
    (M,): clocks relative to the base's; rated: the rated clock, likewise. limit_w: the board's
    default limit; where it is NaN, W is half the power, and D is left out.

    The two constants are for boards that are busy: W is at most the power, and D half of it.

    P(m) = W + (P - W) / slowdown - D (1 - m) / rated: W is drawn by a GPU whose work waits, what
    is above it goes with the rate of work, and D, at the rated clock, with the memory clock.

    By hand, at half the clock and half the rate of work, of a board of 200 W: W is 80 and D is 24.

    >>> import numpy as np
    >>> half = np.array([[[2.0]]])
    >>> with_memory_clock(np.array([[180.0]]), half, np.array([0.5]), 1.0, 200.0)
    array([[[118.]]])
    """
    power = power_w[..., None]
    waiting, interface = WAITING_SHARE * power, np.zeros_like(memory)
    if not np.isnan(limit_w):
        waiting = np.minimum(WAITING * limit_w, power)
        of_clock = np.minimum(INTERFACE * limit_w, LARGEST_INTERFACE_SHARE * power)
        interface = of_clock * (1 - memory) / rated
    return np.maximum(waiting + (power - waiting) / slowdown - interface, LEAST * power)


def on_grid(
    profiles: Profiles, memory: Floats, slowdown: Floats, limit_w: float
) -> Callable[[Floats], Floats]:
    """Return what gives log power ratios (K, N) on a grid by those at its engine clocks (K, E).

    memory (M,), slowdown (K, E, M) and limit_w: as of `with_memory_clock`.
    """
    device, base_w = known_device(profiles.device), profiles.base_power_w[:, None]
    base_mhz = profiles.base.memory_mhz
    rated = device.datasheet.memory_mhz / base_mhz if device and device.datasheet else 1.0

    def to_grid(logs: Floats) -> Floats:
        power_w = with_memory_clock(base_w * np.exp(logs), slowdown, memory, rated, limit_w)
        return np.asarray(np.log(power_w.reshape(len(base_w), -1) / base_w))

    return to_grid


# Standard deviation of the log power that intervals have at least, from the base alone and with a
# further point: so far off power is even near a measured clock. Chosen by leaving out GPUs. Nearer
# than the law of `reach` lets power change that much, it is less, down to a reading's noise.
LEAST_SPREAD, LEAST_SPREAD_FURTHER = 0.08, 0.05
SECOND_STEP = 3  # of a GPU's clocks, each is tried as the second one
# Of log power per log memory clock: what is left where it is measured there, and the half-width of
# the interval. Assumed, not learnt.
MISFIT_PER_MEMORY_CLOCK, SPREAD_PER_MEMORY_CLOCK = 0.1, 0.2
OWN_TIMES = "times taken to scale as the training GPUs' runs do on average"
NO_FURTHER_POWER = "nor is its power at a second engine clock given (--also)"
MEMORY_CLOCKS = "power at other memory clocks: as measured on a GTX 980 and a GTX 1080 Ti"


@dataclass
class BoardPower(BoardPredictor):
    """P / P_base = w0 + w1 V^2 f / (V^2 f)_base + w2 V T_base / (V_base T), of any GPU.

    V^2 over the clock, as a share of the GPU's highest, is flat up to a floor and rises from there
    (`BoardCurve`). The weights and the floor are Gaussian, as training runs of several GPUs show;
    power's share of the board's limit, and the floor where the device table has it, move their
    means, power measured at further clocks tells the rest. Times are those of `with_times`, else
    those of the training runs on average, which are poor of any one run. A grid has the CU count of
    the base alone. Intervals from the base alone hold what they promise of every GPU like those
    left out in training, those with power at a further engine clock on average over such GPUs; the
    times' own widen them.
    spread_from: devices among the training tables that are not learnt from, but widen the
    intervals by how far their power is from predicted.
    """

    name = "board-power"
    quantities: ClassVar[tuple[str, ...]] = ("power",)
    quantity: str = "power"
    spread_from: Sequence[str] = ()
    population_: PowerPopulation = learnt()
    time_population_: TimePopulation = learnt()
    scores_: Annotated[Floats, require_scores] = learnt()
    further_scores_: Annotated[Floats, require_scores] = learnt()
    limits_w_: dict[str, Annotated[float, positive]] = learnt()
    trained_: tuple[TrainedGpu, ...] = learnt()

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles with power, over the engine clock alone."""
        return super().applies_to(measurements) and measurements.power_samples is not None

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
            require_engine_sweep(self.name, table, LEAST_CLOCKS)
            table.quantity("power")
        self.limits_w_: dict[str, float] = {}
        for table, at in sets:
            limit_w = limit_of(table.profiles(at))
            self.limits_w_[table.device] = max(self.limits_w_.get(table.device, 0.0), limit_w)
        self._remember(learnt)
        gpus = [GpuSweep.of(table, at, self.limits_w_[table.device]) for table, at in sets]
        devices = self.trained_devices()
        self.population_ = PowerPopulation.of([gpu for gpu in gpus if gpu.device in devices])
        self.time_population_ = TimePopulation.of([GpuRuns.of(*one) for one in learnt])
        self.scores_, self.further_scores_ = _held_out_scores(gpus, devices, self.population_)
        self.times_: Surfaces | None = None
        return self

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
        known = known_device(profiles.device)
        vendors = {device.vendor for device in map(known_device, trained) if device}
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

    def _surfaces(self, profiles: Profiles, grid: ConfigGrid, coverage: float | None) -> Surfaces:
        base, times = profiles.base, self.times_
        if grid.cu_count != (base.cu_count,):
            raise InputError(
                "no training table has several CU counts, so the model does not tell what other "
                f"counts do; predict at the profile's, cu={base.cu_count}"
            )
        settings = grid.settings()
        logs = {a: np.log(settings[a] / getattr(base, a)) for a in ("engine_mhz", "memory_mhz")}
        if times is None:
            engine = np.log(np.array(grid.engine_mhz) / base.engine_mhz)
            own = np.exp(self.time_population_.prior(engine, 1).predicted())[:, None, :, None]
            factors = np.broadcast_to(own, (len(profiles.kernels), *grid.shape))
        elif times.grid != grid or times.base not in (base, *(p.config for p in profiles.points)):
            raise InputError(f"'{self.name}' predicts on the grid and base of its times alone")
        else:
            times = relative_to(times, base)
            factors = times.values
        measured = measured_ratios(profiles, grid, "power")
        prior = self._prior(profiles, grid, factors)
        posterior = condition(prior, measured)
        flags = self._flags(profiles, is_memory_swept=bool(logs["memory_mhz"].any()))
        own = _through_readings(posterior, measured, profiles, grid)
        distance = from_nearest("power", measured, logs)
        if coverage is None or not self.scores_.size:
            own, *_ = within_readings("power", profiles, grid, distance, [own] * 3)
            return Surfaces.from_log_ratios(grid, base, own, flags)
        width = self._half_width(posterior, measured, logs, distance, coverage)
        low, high = own - width, own + width
        if times is not None and times.low is not None and times.high is not None:
            without = prior.predicted()
            slow, fast = (
                self._prior(profiles, grid, ends).predicted() - without
                for ends in (times.high, times.low)
            )
            low = low + np.clip(slow, -distance, distance)
            high = high + np.clip(fast, -distance, distance)
        own, *ends = within_readings("power", profiles, grid, distance, [own, low, high])
        return Surfaces.from_log_ratios(grid, base, own, flags, ends)

    def _half_width(
        self,
        posterior: SurfacePosterior,
        measured: MeasuredRatios,
        logs: dict[str, Floats],
        distance: Floats,
        coverage: float,
    ) -> Floats:
        """Of the intervals of log power, (K, N); logs and distance: see `from_nearest`."""
        is_elsewhere = np.abs(measured.at @ logs["engine_mhz"]) > 1e-9
        has_further = (~np.isnan(measured.logs) & is_elsewhere).any(axis=1, keepdims=True)
        further, alone = score_at(self.further_scores_, coverage), score_at(self.scores_, coverage)
        least = np.where(has_further, LEAST_SPREAD_FURTHER, LEAST_SPREAD)
        width = np.where(has_further, further, alone) * _scale(posterior, distance, least)
        is_away = (logs["engine_mhz"] != 0) | (logs["memory_mhz"] != 0)
        return np.where(is_away, width, 0) + SPREAD_PER_MEMORY_CLOCK * np.abs(logs["memory_mhz"])

    def _prior(self, profiles: Profiles, grid: ConfigGrid, times: Floats) -> SurfacePrior:
        """Log power ratios (K, N) by time ratios (K, 1, E, M), before power measured elsewhere."""
        base, limit_w = profiles.base, self._limit_w(profiles)
        engine, memory = (
            np.array(getattr(grid, axis)) / getattr(base, axis)
            for axis in ("engine_mhz", "memory_mhz")
        )
        highest_mhz = self._highest_clock(profiles, grid)
        highest = highest_mhz / base.engine_mhz
        at_base = times[:, 0, :, int(np.abs(np.log(memory)).argmin())]
        curve = BoardCurve(np.log(engine), highest, np.log(at_base))
        to_grid = on_grid(profiles, memory, times[:, 0] / at_base[..., None], limit_w)
        columns = self.population_.inputs.columns(profiles.base_power_w / limit_w)
        settings = grid.settings()
        return self.population_.prior(
            columns,
            lambda latents: to_grid(curve.log_ratios(latents)),
            np.log(settings["engine_mhz"] / base.engine_mhz),
            known_floor(profiles.device, highest_mhz),
            MISFIT_PER_MEMORY_CLOCK * np.log(settings["memory_mhz"] / base.memory_mhz)[None],
        )

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

    def check_restored(self) -> None:
        """Raise ValueError where a GPU's limit lacks; there are no times yet."""
        super().check_restored()
        if not set(self.trained_devices()) <= self.limits_w_.keys():
            raise ValueError("it does not say the limits of the GPUs that it learnt from")
        self.times_ = None


def _from_one_clock(profiles: Profiles) -> list[str]:
    """The kernels without power at a further point."""
    lack = np.ones(len(profiles.kernels), dtype=bool)
    for point in profiles.points:
        if point.power_w is not None:
            lack &= np.isnan(point.power_w)
    return [name for name, lacks in zip(profiles.kernels, lack, strict=True) if lacks]


def _through_readings(
    posterior: SurfacePosterior, measured: MeasuredRatios, profiles: Profiles, grid: ConfigGrid
) -> Floats:
    """Log power ratios (K, N), through the readings at the base's memory clock.

    At other memory clocks they are shifted as there.
    """
    memory = np.array(grid.memory_mhz)
    at_base = int(np.abs(np.log(memory / profiles.base.memory_mhz)).argmin())
    alike = [
        p
        for p, weights in enumerate(measured.at.reshape(-1, *grid.shape))
        if weights[..., at_base].sum() > 1 - CLOSE
    ]
    by_clock = MeasuredRatios(
        measured.at.reshape(-1, *grid.shape)[alike, 0, :, at_base], measured.logs[:, alike]
    )
    curve = posterior.prior.log_ratios(posterior.latents).reshape(-1, *grid.shape)
    logs = posterior.logs.reshape(curve.shape)
    own = through_readings(curve[:, 0, :, at_base], by_clock, RISES["power"])
    shift = own - logs[:, 0, :, at_base]
    return (logs + shift[:, None, :, None]).reshape(posterior.logs.shape)


def _scale(posterior: SurfacePosterior, distance: Floats, least: Floats | float) -> Floats:
    """What the intervals' half-widths are proportional to, (K, N).

    distance: see `from_nearest`; at a reading itself its noise alone is left of the least spread.
    """
    return np.asarray(np.sqrt(posterior.after + np.clip(distance, RATIO_NOISE, least) ** 2))


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
            away = gpu.log_clock != 0
            alone += list(_scores(population, gpu, [], away))
            each = []
            for step in np.flatnonzero(away)[::SECOND_STEP].tolist():
                is_new = away & (np.arange(away.size) != step)
                each.append(_scores(population, gpu, [step], is_new))
            further += list(np.hstack(each))
            devices += [gpu.device] * len(gpu.share)
    of_further = calibrated_scores(further, devices, alike=True)
    return at_least_gaussian(largest_scores(alone, devices)), at_least_gaussian(of_further)


def _scores(population: PowerPopulation, gpu: GpuSweep, steps: list[int], at: Mask) -> Floats:
    """|log error| over what the half-widths are proportional to, where they are asked for.

    steps: at which power was measured besides the base.
    """
    columns = population.inputs.columns(gpu.share)
    prior = population.prior(columns, gpu.curve.log_ratios, gpu.log_clock, gpu.floor)
    measured = MeasuredRatios(np.eye(at.size)[steps], gpu.log_power[:, steps])
    posterior = condition(prior, measured)
    distance = from_nearest("power", measured, {"engine_mhz": gpu.log_clock})
    scale = _scale(posterior, distance, LEAST_SPREAD_FURTHER if steps else LEAST_SPREAD)
    curve = prior.log_ratios(posterior.latents)
    own = through_readings(curve, measured, RISES["power"])
    return np.asarray((np.abs(gpu.log_power - own) / scale)[:, at])
