"""Training `bottleneck`, with applications and GPUs held out in turn.

How kernels are mispredicted by models that never saw them gives the process' amplitude, and how
wide the intervals must be. Two phases, each one batch for all predictors that are trained together:
first the fits of time, a dozen for a table and four more for each of several GPUs; then as many of
power, which need the times.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.bottleneck.curve import GpuPeaks
from mlscale.predictors.bottleneck.fit import CurveFit, GpuKernels, PowerFit, fit_curves, fit_powers
from mlscale.predictors.bottleneck.model import IntervalScores, PowerModel, TimeModel
from mlscale.predictors.conditioning import misfit_of
from mlscale.predictors.intervals import LEVELS, calibrated_scores

# Groups of applications that are held out in turn; fewer where a fit is dear, or GPUs are, too.
GROUPS, GROUPS_OF_CU_AXIS, GROUPS_OF_OTHER_GPUS = 10, 4, 4
AMPLITUDES = (0.1, 3.0)  # standard deviations of the process; which, kernels held out decide
LEAST_APPLICATIONS = 3  # intervals are learnt from so many

Trained = tuple[TimeModel, PowerModel | None, IntervalScores]
Model = TypeVar("Model")


@dataclass(frozen=True, eq=False)
class Job:
    """One predictor to train, on tables with their bases. The rest: see `Bottleneck`."""

    sets: Sequence[TrainingSet]
    quantity: str
    intervals: bool
    amplitude: float | None

    @property
    def time_key(self) -> tuple[object, ...]:
        """What jobs share that share their fits of time."""
        return (self.amplitude, *((id(table), base) for table, base in self.sets))


def train_together(jobs: Sequence[Job]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and then those of power as another.

    Predictors of the same tables, as for time and for power, share their fits of time. Scores are
    none without intervals. Raises InputError.
    """
    scored = {job.time_key for job in jobs if job.intervals and job.quantity == "time"}
    distinct = {job.time_key: job for job in jobs}
    with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
        plans = {key: plan_time(job, key in scored) for key, job in distinct.items()}
        curve_fits = [plan.fits() for plan in plans.values()]
        curves = _split(fit_curves(list(chain(*curve_fits))), curve_fits)
        times = {
            key: trained_time(plan, models)
            for (key, plan), models in zip(plans.items(), curves, strict=True)
        }
        power_fits = [_power_fits(job, times[job.time_key]) for job in jobs]
        powers = _split(fit_powers(list(chain(*power_fits))), power_fits)
        return [
            _trained(job, times[job.time_key], models)
            for job, models in zip(jobs, powers, strict=True)
        ]


def _split(models: Sequence[Model], fits: Sequence[Sequence[object]]) -> list[list[Model]]:
    """Return the models of each list of fits, from those of all fits one after another."""
    rest = iter(models)
    return [list(islice(rest, len(some))) for some in fits]


@dataclass(frozen=True, eq=False)
class GpuLeftOut:
    """A GPU held out together with a group of applications.

    rest: the other GPUs' kernels without the group. tested: the GPU's tables, with the rows of the
    group.
    """

    rest: list[GpuKernels]
    tested: list[tuple[GpuKernels, Indices]]


@dataclass(frozen=True, eq=False)
class TimePlan:
    """The fits of time on one or several tables.

    groups: of applications, the rows of their kernels in every table. gpus: held out for scores.
    with_scores: the intervals' are wanted.
    """

    tables: list[GpuKernels]
    amplitudes: tuple[float, ...]
    groups: list[list[Indices]]
    gpus: list[GpuLeftOut]
    with_scores: bool

    def fits(self) -> list[CurveFit]:
        """Return for each amplitude the fits to all kernels, without each group, without a GPU."""
        without = [
            [without_rows(table, rows) for table, rows in zip(self.tables, group, strict=True)]
            for group in self.groups
        ]
        learnt_from = [self.tables, *without, *(gpu.rest for gpu in self.gpus)]
        return [
            CurveFit(tuple(kernels), amplitude)
            for amplitude in self.amplitudes
            for kernels in learnt_from
        ]


def plan_time(job: Job, with_scores: bool) -> TimePlan:
    """Plan the fits of a job; with_scores: GPUs are held out too. Raises InputError."""
    tables = [GpuKernels.from_table(table, base) for table, base in job.sets]
    several = any(len(table.grid.cu_count) > 1 for table, _ in job.sets)
    amplitudes = AMPLITUDES if several else (1.0,)
    if job.amplitude is not None:
        amplitudes = (job.amplitude,)
    groups = _groups(tables, GROUPS_OF_CU_AXIS if several else GROUPS)
    gpus = _gpus_to_leave_out(tables) if with_scores else []
    return TimePlan(tables, amplitudes, groups, gpus, with_scores)


def _groups(tables: Sequence[GpuKernels], count: int) -> list[list[Indices]]:
    """Return for each group of applications the rows of its kernels in every table.

    A group is left out where no kernel of a table, or one of all, would be left without it.
    """
    applications = sorted({name for table in tables for name in table.applications})
    number = {name: i % count for i, name in enumerate(applications)}
    numbers = [np.array([number[name] for name in table.applications]) for table in tables]
    groups = []
    for group in range(min(count, len(applications))):
        left = [int((kernels != group).sum()) for kernels in numbers]
        if min(left) and sum(left) >= 2:
            groups.append([np.flatnonzero(kernels == group) for kernels in numbers])
    return groups


def _gpus_to_leave_out(tables: Sequence[GpuKernels]) -> list[GpuLeftOut]:
    """Return each GPU with each group of applications; nothing with one GPU alone."""
    devices = dict.fromkeys(table.gpu.device for table in tables)
    left_out = []
    for device in devices if len(devices) > 1 else ():
        for group in _groups(tables, GROUPS_OF_OTHER_GPUS):
            known = list(zip(tables, group, strict=True))
            rest = [without_rows(t, rows) for t, rows in known if t.gpu.device != device]
            tested = [(t, rows) for t, rows in known if t.gpu.device == device and rows.size]
            left_out.append(GpuLeftOut(rest, tested))
    return left_out


def without_rows(kernels: GpuKernels, rows: Indices) -> GpuKernels:
    """Return the kernels that are not in those rows, with the peaks that these show."""
    return kernels.select(np.setdiff1d(np.arange(len(kernels)), rows))


class HeldOutGroup:
    """Some rows of a GPU's kernels, and what a time model that never saw them knows of them.

    number: of the GPU in the model, None for another. gpu: with the peaks that the model has of
    it. predicted: log time ratios (n, N).
    """

    def __init__(
        self, table: GpuKernels, rows: Indices, model: TimeModel, number: int | None, gpu: GpuPeaks
    ) -> None:
        self.rows, self.model, self.gpu = rows, model, gpu
        self.kernels = table.select(rows)
        self.prior = model.prior(self.kernels.traits, gpu, number)
        self.predicted = self.prior.predicted()

    @property
    def error(self) -> float:
        """Sum over the kernels of their mean |log error| of time."""
        off = np.abs(self.predicted - self.kernels.log_ratios["time"])
        return float(off.mean(axis=1, where=self.kernels.measured).sum())

    def scores(self, quantity: str, predicted: Floats) -> list[Floats]:
        """Return of each kernel |log error| where measured, of predicted, see `interval_scale`."""
        error = np.abs(predicted - self.kernels.log_ratios[quantity])
        scale = self.model.interval_scale(self.kernels.traits, self.gpu, self.prior)
        at_base = self.gpu.grid.position(self.gpu.base)
        targets = np.delete(self.kernels.measured, at_base, axis=1)
        scores = np.delete(error / scale, at_base, axis=1)
        return [row[is_target] for row, is_target in zip(scores, targets, strict=True)]


@dataclass(frozen=True, eq=False)
class TrainedTime:
    """A time model, of each table the groups that were held out in turn, and the scores of time."""

    model: TimeModel
    tables: list[GpuKernels]
    held_out: list[list[HeldOutGroup]]
    scores: IntervalScores

    @property
    def error(self) -> float:
        """Sum over all kernels held out of their mean |log error|."""
        return sum(group.error for group in chain(*self.held_out))


def trained_time(plan: TimePlan, models: Sequence[TimeModel]) -> TrainedTime:
    """Return what becomes of a plan's fits: of the amplitude that errs least held out."""
    size = len(models) // len(plan.amplitudes)
    each = [_trained_at(plan, models[n : n + size]) for n in range(0, len(models), size)]
    return min(each, key=lambda time: time.error)


def _trained_at(plan: TimePlan, models: Sequence[TimeModel]) -> TrainedTime:
    """Return what becomes of the fits of one amplitude, in the order of `TimePlan.fits`."""
    model, *others = models
    without_group, without_gpu = others[: len(plan.groups)], others[len(plan.groups) :]
    held_out = [
        [
            HeldOutGroup(table, group[number], part, number, part.gpus[number])
            for part, group in zip(without_group, plan.groups, strict=True)
            if group[number].size
        ]
        for number, table in enumerate(plan.tables)
    ]
    misfits = []
    for number, table in enumerate(plan.tables):
        predicted = model.prior(table.traits, table.gpu, number).predicted()
        misfits.append(misfit_of(table.log_ratios["time"] - predicted))
    model = replace(model, misfits=tuple(misfits))
    scores = _time_scores(plan, held_out, without_gpu) if plan.with_scores else IntervalScores()
    return TrainedTime(model, plan.tables, held_out, scores)


def _time_scores(
    plan: TimePlan, held_out: Sequence[Sequence[HeldOutGroup]], without_gpu: Sequence[TimeModel]
) -> IntervalScores:
    """Return the scores of kernels held out.

    A GPU with fewer than three applications takes the scores of all. without_gpu: the models
    trained without a GPU; it is predicted with its own peaks and with mean ones.
    """
    each = [_application_scores("time", [(g, g.predicted) for g in groups]) for groups in held_out]
    with_grid = [group for group in chain(*held_out) if group.gpu.grid.size > 1]
    common = _application_scores("time", [(group, group.predicted) for group in with_grid])
    if not common.size:
        return IntervalScores()
    known_peaks, mean_peaks = [], []
    for model, left_out in zip(without_gpu, plan.gpus, strict=True):
        for table, rows in left_out.tested:
            # As when predicting: what other CU counts do is known of a table of several alone.
            if model.shares > 1 or len(table.gpu.grid.cu_count) == 1:
                known = without_rows(table, rows).gpu
                mean = model.mean_peaks(known.device, known.grid, known.base)
                known_peaks.append(HeldOutGroup(table, rows, model, None, known))
                mean_peaks.append(HeldOutGroup(table, rows, model, None, mean))
    return IntervalScores(
        trained=np.array([scores if scores.size else common for scores in each]),
        known_peaks=_gpu_scores(known_peaks),
        mean_peaks=_gpu_scores(mean_peaks),
    )


def _application_scores(quantity: str, predicted: Sequence[tuple[HeldOutGroup, Floats]]) -> Floats:
    """Return the scores for unseen applications; empty with fewer than LEAST_APPLICATIONS."""
    scores = [kernel for group, logs in predicted for kernel in group.scores(quantity, logs)]
    applications = [name for group, _ in predicted for name in group.kernels.applications]
    if len(set(applications)) < LEAST_APPLICATIONS:
        return np.empty(0)
    return calibrated_scores(scores, applications)


def _gpu_scores(groups: Sequence[HeldOutGroup]) -> Floats:
    """Return the scores for unseen applications on unseen GPUs."""
    scores = [kernel for group in groups for kernel in group.scores("time", group.predicted)]
    devices = [group.gpu.device for group in groups for _ in group.rows]
    return calibrated_scores(scores, devices)


def _power_fits(job: Job, time: TrainedTime) -> list[PowerFit]:
    """Return the fits of power: of all kernels, and for intervals without each group of them."""
    if job.quantity == "time":
        return []
    kernels, groups = time.tables[0], time.held_out[0] if job.intervals else []
    fits = [PowerFit((without_rows(kernels, g.rows),), g.model.gpus[0]) for g in groups]
    return [PowerFit((kernels,), time.model.gpus[0]), *fits]


def _trained(job: Job, time: TrainedTime, powers: Sequence[PowerModel]) -> Trained:
    """Return the whole training; powers: the models of `_power_fits`."""
    if job.quantity == "time":
        return time.model, None, time.scores if job.intervals else IntervalScores()
    kernels, gpu = time.tables[0], time.model.gpus[0]
    power, *without_group = powers
    curve = time.model.prior(kernels.traits, gpu, 0)
    prior = power.prior(kernels.traits.use, kernels.base_w, gpu, curve)
    actual = np.hstack([kernels.log_ratios["time"], kernels.log_ratios["power"]])
    power = replace(power, misfit=misfit_of(actual - prior.predicted()))
    predicted = []
    for part, group in zip(without_group, time.held_out[0] if job.intervals else [], strict=True):
        use, base_w = group.kernels.traits.use, group.kernels.base_w
        logs = part.prior(use, base_w, group.model.gpus[0], group.prior).predicted()
        predicted.append((group, logs[:, gpu.grid.size :]))
    scores = _application_scores("power", predicted)
    return time.model, power, IntervalScores(scores.reshape(-1, LEVELS.size))
