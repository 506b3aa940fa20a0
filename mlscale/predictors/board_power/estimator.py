"""`board-power`: power of any GPU of the device table from its power at one base."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_engine_sweep, require_engine_sweep, without_power_faults
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, extra_named
from mlscale.predictors.base import (
    Bases,
    Predictor,
    State,
    TrainedGpu,
    Training,
    training_grid,
    training_sets,
)
from mlscale.predictors.board_power.inputs import GpuLimits, board_limit_w, shares
from mlscale.predictors.board_power.memory_clock import with_memory_clock
from mlscale.predictors.board_power.model import (
    FurtherPower,
    GpuSweep,
    PowerOfAnyGpu,
    highest_clock,
    is_listed,
)
from mlscale.predictors.conditioning import MeasuredRatios, measured_ratios
from mlscale.predictors.intervals import calibrated_scores, restored_scores, score_at
from mlscale.predictors.sampled.curves import PowerCurve

# What the intervals' half-widths are proportional to. So far off are GPUs already near the base
# that the first is larger than `sampled`'s; it was chosen on the training GPUs.
LEAST_SPREAD, SPREAD_PER_CLOCK = 0.04, 0.04
SECOND_STEP = 3  # of a GPU's clocks, each is tried as the second one
SPREAD_PER_MEMORY_CLOCK = 0.2  # half-width of log power per log memory clock: assumed, not learnt
OWN_TIMES = "times taken to scale as the training GPUs' kernels with such shares do"
MEMORY_CLOCKS = "power at other memory clocks: as measured on a GTX 980 and a GTX 1080 Ti"

NVIDIA_TOOLS = ("dcgm", "nvidia-smi")  # whose power of a GPU that is not known is of NVIDIA's


@dataclass
class BoardPower(Predictor):
    """P / P_base = w0 + w1 V^2 f / (V_base^2 f_base) + w2 T_base / T, of any GPU of one vendor.

    The weights follow from DRAM's share and from power as a share of the board's limit; V^2 over
    the clock, as a share of the GPU's highest, is what the training GPUs have in common. Times are
    those of `with_times`, else the predictor's own, which are poor on other GPUs. Power measured at
    further clocks moves the weights. spread_from: devices among the training tables that are not
    learnt from, but widen the intervals by how far their power is from predicted.
    """

    name = "board-power"
    quantities: ClassVar[tuple[str, ...]] = ("power",)
    quantity: str = "power"
    spread_from: Sequence[str] = ()

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles with power, over the engine clock alone."""
        has_dram = "dram_active" in measurements.counter_names
        has_power = measurements.power_samples is not None
        return is_engine_sweep(measurements) and has_dram and has_power

    @extra_named("training 'board-power'", "train")
    def fit(self, training: Training, base: Bases) -> Self:
        """Learn from the tables of one GPU or several; one table may come with several bases.

        Kernels whose power is faulty are left out. Intervals are calibrated on each GPU as
        predicted from the others. Raises InputError on several CU counts or memory clocks, and on
        what lacks power or DRAM's share; ImportError without threadpoolctl.
        """
        from threadpoolctl import ThreadpoolController

        pairs = training_sets(self, training, base)
        sets = [(without_power_faults(table), at) for table, at in pairs]
        for table, _ in sets:
            require_engine_sweep(self.name, table, 2)
            table.quantity("power")
        self.limits_: dict[str, GpuLimits] = {}
        for table, at in sets:
            limits = GpuLimits.of(table.profiles(at))
            known = self.limits_.setdefault(table.device, limits)
            most = max(known.dram, limits.dram), max(known.power_w, limits.power_w)
            self.limits_[table.device] = GpuLimits(*most)
        gpus = [GpuSweep.of(table, at, self.limits_[table.device]) for table, at in sets]
        learnt = [gpu for gpu in gpus if gpu.device not in self.spread_from]
        if not learnt:
            raise InputError(f"'{self.name}' needs a training table that is not in spread_from")
        self.trained_: tuple[TrainedGpu, ...] = tuple(
            (table.device, table.grid, at)
            for table, at in sets
            if table.device not in self.spread_from
        )
        with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
            self.model_ = PowerOfAnyGpu.fit(learnt)
            self.scores_, self.further_scores_ = _held_out_scores(gpus, learnt, self.model_)
        self.times_: Surfaces | None = None
        return self

    def trained_devices(self) -> tuple[str, ...]:
        """The GPUs that were learnt from."""
        return tuple(dict.fromkeys(device for device, _, _ in self.trained_))

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(dict.fromkeys(grid for _, grid, _ in self.trained_))

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:  # noqa: ARG002
        """Take what a GPU reaches at most from any of its kernels. Raises InputError."""
        self.limits_ = {**self.limits_, profiles.device: GpuLimits.of(profiles)}
        return self

    def refusal(self, profiles: Profiles) -> str | None:
        """Why power on the profiles' GPU cannot be predicted; None where it can.

        Where the board's limit is not known, it can from power at a further clock alone.
        """
        device = profiles.device
        if device in self.limits_:
            return None
        known = known_device(device)
        is_nvidia = profiles.metadata.get("counter_tool") in NVIDIA_TOOLS
        vendor = known.vendor if known else "NVIDIA" if is_nvidia else None
        learnt = {one.vendor for one in map(known_device, self.trained_devices()) if one}
        if vendor and learnt and vendor not in learnt:
            return f"power was learnt on {' and '.join(sorted(learnt))} GPUs, not on {vendor}'s"
        if board_limit_w(device) or (vendor and _has_further_power(profiles)):
            return None
        if known is None:
            return f"'{device}' is not in the device table"
        return f"the power limit tdp_w of '{device}' is not in the device table"

    def assumption(self, profiles: Profiles) -> str | None:
        """What is assumed of a GPU that was not learnt from."""
        trained = self.trained_devices()
        if profiles.device in trained:
            return None
        learnt = f"by the voltage curve learnt on {' and '.join(trained)}, not on {profiles.device}"
        if _has_further_power(profiles):
            return f"power {learnt}"
        return f"power from one clock alone, {learnt}: power at a second clock (--also) tells more"

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

        They hold it on average over GPUs like those held out in training. The times' own
        intervals widen them. low and high are None after training on one GPU alone. Raises
        InputError.
        """
        return self._surfaces(profiles, grid, coverage)

    def _surfaces(
        self, profiles: Profiles, grid: ConfigGrid | None, coverage: float | None
    ) -> Surfaces:
        grid = self._grid(profiles, grid)
        own = shares(profiles, self._limits(profiles))
        base, settings = profiles.base, grid.settings()
        log_clock = np.log(settings["engine_mhz"] / base.engine_mhz)
        log_memory = np.log(settings["memory_mhz"] / base.memory_mhz)
        times = self.times_
        log_power = self._log_power(profiles, grid, own)
        measured = _measured_power(profiles, grid)
        further = FurtherPower.of(measured, log_clock, log_memory) if len(measured.at) else None
        if times is None:
            factors = np.exp(self.model_.log_time(own, log_clock)).reshape(-1, *grid.shape)
        elif times.grid != grid or times.base != base:
            raise InputError(f"'{self.name}' predicts on the grid and base of its times alone")
        else:
            factors = times.values
        logs = log_power(factors, further)
        flags = self._flags(own, is_memory_swept=bool(log_memory.any()))
        if coverage is None or not self.scores_.size:
            return Surfaces.of_logs(grid, base, logs, flags)
        scale = LEAST_SPREAD * ((log_clock != 0) | (log_memory != 0))
        distance = _distance(measured.logs, log_clock, measured.at @ log_clock)
        alone = score_at(self.scores_, coverage)
        known = self.further_scores_ if self.further_scores_.size else self.scores_
        is_elsewhere = np.abs(measured.at @ log_clock) > 1e-9
        has_further = (~np.isnan(measured.logs) & is_elsewhere).any(axis=1, keepdims=True)
        score = np.where(has_further, score_at(known, coverage), alone)
        width = score * (scale + SPREAD_PER_CLOCK * distance)
        width = width + SPREAD_PER_MEMORY_CLOCK * np.abs(log_memory)
        low, high = logs - width, logs + width
        if times is not None and times.low is not None and times.high is not None:
            without = logs if further is None else log_power(times.values, None)
            low = low + log_power(times.high, None) - without
            high = high + log_power(times.low, None) - without
        return Surfaces.of_logs(grid, base, logs, flags, (low, high))

    def _log_power(
        self, profiles: Profiles, grid: ConfigGrid, own: dict[str, Floats]
    ) -> Callable[[Floats, FurtherPower | None], Floats]:
        """Return what gives log power ratios (K, N): by time ratios (K, 1, E, M) and further power.

        own: the kernels' shares of the limits.
        """
        base = profiles.base
        engine, memory = (np.array(getattr(grid, axis)) for axis in ("engine_mhz", "memory_mhz"))
        highest = self._highest_clock(profiles, grid) / base.engine_mhz
        log_clock, memory = np.log(engine / base.engine_mhz), memory / base.memory_mhz
        nearest = int(np.abs(np.log(memory)).argmin())
        device, base_w = known_device(profiles.device), profiles.base_power_w[:, None]
        sheet = device.datasheet if device else None
        rated = sheet.memory_mhz / base.memory_mhz if sheet else 1.0
        limit_w = self._limits(profiles).power_w

        def log_power(times: Floats, further: FurtherPower | None) -> Floats:
            at_base = times[:, 0, :, nearest]
            slowdown = times[:, 0] / at_base[..., None]

            def on_grid(logs: Floats) -> Floats:
                power_w = base_w * np.exp(logs)
                power_w = with_memory_clock(power_w, slowdown, memory, rated, limit_w)
                return np.asarray(np.log(power_w.reshape(len(times), -1) / base_w))

            curve = PowerCurve(log_clock, highest, np.log(at_base))
            return self.model_.log_power(own, curve, further, on_grid)

        return log_power

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

    def _limits(self, profiles: Profiles) -> GpuLimits:
        """What the GPU reaches at most; of one not seen, the mean DRAM share. InputError.

        The limit of power is NaN where it is not known.
        """
        device = profiles.device
        if device in self.limits_:
            return self.limits_[device]
        if refusal := self.refusal(profiles):
            raise InputError(f"power of '{device}' is not predicted: {refusal}")
        trained = [self.limits_[name].dram for name in self.trained_devices()]
        return GpuLimits(float(np.mean(trained)), board_limit_w(device) or np.nan)

    def _flags(self, own: dict[str, Floats], is_memory_swept: bool) -> tuple[tuple[str, ...], ...]:
        """For each kernel what was assumed of it, and what is outside the range trained."""
        note = []
        if self.times_ is None:
            note.append(OWN_TIMES)
        if is_memory_swept:
            note.append(MEMORY_CLOCKS)
        return tuple((*note, *flags) for flags in self.model_.inputs.flags(own))

    def state(self) -> State:
        """What was learnt, and from which GPUs."""
        return {
            "model": self.model_.state(),
            "scores": self.scores_,
            "further_scores": self.further_scores_,
            "limits": {d: [one.dram, one.power_w] for d, one in self.limits_.items()},
            "trained": [
                {"device": device, **grid_state(grid, base)} for device, grid, base in self.trained_
            ],
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; shapes are checked."""
        self.model_ = PowerOfAnyGpu.restore(state["model"])
        self.scores_ = restored_scores(state["scores"])
        # Model files of before have none: with a further clock their intervals are too wide.
        self.further_scores_ = restored_scores(state.get("further_scores", np.empty(0)))
        self.limits_ = {str(d): GpuLimits(*map(float, own)) for d, own in state["limits"].items()}
        if not all(one.dram > 0 and one.power_w > 0 for one in self.limits_.values()):
            raise ValueError("a limit is not positive")
        self.trained_ = tuple((str(one["device"]), *restore_grid(one)) for one in state["trained"])
        if not self.trained_ or not set(self.trained_devices()) <= self.limits_.keys():
            raise ValueError("it does not say the GPUs that it learnt from, or not their limits")
        self.times_ = None
        return self


def _measured_power(profiles: Profiles, grid: ConfigGrid) -> MeasuredRatios:
    """Power of the profiles' further points."""
    points = measured_ratios(profiles, grid, with_power=True)
    at = points.at[:, grid.size :]
    is_power = at.any(axis=1)
    return MeasuredRatios(at[is_power], points.logs[:, is_power])


def _distance(logs: Floats, log_clock: Floats, measured_clock: Floats) -> Floats:
    """How far clocks (N,) are from the base and the nearest of P measured ones: (K, N).

    logs (K, P): what was measured, NaN where it was not.
    """
    off = np.abs(log_clock[:, None, None] - measured_clock)
    own = np.where(np.isnan(logs), np.inf, off)
    return np.asarray(np.minimum(np.abs(log_clock), own.min(axis=2, initial=np.inf).T))


def _has_further_power(profiles: Profiles) -> bool:
    powers = [point.power_w for point in profiles.points if point.power_w is not None]
    return bool(powers) and not np.isnan(powers).all(axis=0).any()


def _held_out_scores(
    gpus: Sequence[GpuSweep], learnt: Sequence[GpuSweep], whole: PowerOfAnyGpu
) -> tuple[Floats, Floats]:
    """Scores of GPUs predicted from the others.

    The first are from the base alone, the others with power at one further clock, each of every
    SECOND_STEP. True times are given, so that those of a predictor of time come on top. Empty where
    fewer than two GPUs can be predicted from others.
    """
    alone: list[Floats] = []
    further: list[Floats] = []
    devices: list[str] = []
    for device in dict.fromkeys(gpu.device for gpu in gpus):
        others = [gpu for gpu in learnt if gpu.device != device]
        if not others:
            continue
        model = whole if len(others) == len(learnt) else PowerOfAnyGpu.fit(others)
        for gpu in (gpu for gpu in gpus if gpu.device == device):
            logs, distance = model.log_power(gpu.own, gpu.power_curve), np.abs(gpu.log_clock)
            alone += list(_scores(gpu, logs, distance, distance > 1e-9))
            each = []
            for step in np.flatnonzero(distance > 1e-9)[::SECOND_STEP]:
                second = MeasuredRatios(np.eye(distance.size)[[step]], gpu.log_power[:, [step]])
                further_power = FurtherPower.of(second, gpu.log_clock, 0 * gpu.log_clock)
                logs = model.log_power(gpu.own, gpu.power_curve, further_power)
                near = _distance(second.logs, gpu.log_clock, gpu.log_clock[[step]])
                is_new = (distance > 1e-9) & (np.arange(distance.size) != step)
                each.append(_scores(gpu, logs, near, is_new))
            further += list(np.hstack(each))
            devices += [gpu.device] * len(logs)
    of_base, of_further = (calibrated_scores(s, devices, alike=True) for s in (alone, further))
    return of_base, of_further


def _scores(gpu: GpuSweep, logs: Floats, distance: Floats, at: Mask) -> Floats:
    """|log error| over what the half-widths are proportional to, where they are asked for."""
    scale = LEAST_SPREAD + SPREAD_PER_CLOCK * distance
    return np.asarray((np.abs(gpu.log_power - logs) / scale)[:, at])
