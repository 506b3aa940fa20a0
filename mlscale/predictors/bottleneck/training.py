"""Training `bottleneck`, with applications and GPUs held out in turn.

How kernels are mispredicted by models that never saw them gives the process' amplitude, the
corrections, and how wide the intervals must be. A training on one GPU makes about a dozen fits of
time, on several four more for each, and as many of power; those of all predictors that are trained
together run together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices
from mlscale.data.measurements import Measurements
from mlscale.errors import warn
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.bottleneck.curve import GpuPeaks
from mlscale.predictors.bottleneck.fit import CurveFit, GpuKernels, PowerFit, fit_curves, fit_powers
from mlscale.predictors.bottleneck.model import Correction, IntervalScores, TimeModel
from mlscale.predictors.bottleneck.power import PowerModel
from mlscale.predictors.conditioning import SurfacePrior, misfit_of
from mlscale.predictors.intervals import LEVELS, calibrated_scores

# Groups of applications that are held out in turn; fewer where a fit is dear, or GPUs are, too.
GROUPS, GROUPS_OF_CU_AXIS, GROUPS_OF_OTHER_GPUS = 10, 4, 4
AMPLITUDES = (0.1, 1.0, 3.0)
LEAST_APPLICATIONS = 3  # that intervals can be learnt from
RISING = 1.02


@dataclass(frozen=True, eq=False)
class HeldOutGroup:
    """Kernels of one GPU, and what a time model that was trained without them knows of them.

    rows: theirs among all kernels of the GPU. gpu: with the peaks that the model has of it.
    """

    rows: Indices
    kernels: GpuKernels
    gpu: GpuPeaks
    model: TimeModel
    prior: SurfacePrior

    @classmethod
    def of(
        cls, kernels: GpuKernels, rows: Indices, model: TimeModel, number: int | None, gpu: GpuPeaks
    ) -> Self:
        """Take some rows of a GPU's kernels; number: of the GPU in the model, None for another."""
        own = kernels.select(rows)
        return cls(rows, own, gpu, model, model.prior(own.traits, gpu, number))

    @cached_property
    def predicted(self) -> Floats:
        """Log time ratios (n, N) of the curve alone."""
        return self.prior.predicted()

    @property
    def actual(self) -> Floats:
        """Log time ratios (n, N) as they were measured."""
        return self.kernels.log_ratios["time"]

    def scores(self, quantity: str, predicted: Floats) -> list[Floats]:
        """Return of each kernel |log error| (N - 1,) of predicted (n, N), see `interval_scale`."""
        error = np.abs(predicted - self.kernels.log_ratios[quantity])
        scale = self.model.interval_scale(self.kernels.traits, self.gpu, self.prior)
        at_base = self.gpu.grid.position(self.gpu.base)
        return list(np.delete(error / scale, at_base, axis=1))


@dataclass(frozen=True, eq=False)
class HeldOutKernels:
    """All training kernels of one GPU, in groups that were held out in turn."""

    kernels: GpuKernels
    groups: tuple[HeldOutGroup, ...]

    @property
    def correction(self) -> Correction | None:
        """Learnt from all kernels that were held out; None from fewer than two."""
        return self._learnt_from(self.groups)

    @cached_property
    def predicted(self) -> list[Floats]:
        """Each group's log time ratios (n, N), with the correction that the others teach."""
        corrected = []
        for group in self.groups:
            correction = self._learnt_from([g for g in self.groups if g is not group])
            missed = np.zeros(1)
            if correction is not None:
                missed = correction.predict(self._similarity([group]), group.predicted)
            corrected.append(group.predicted + missed)
        return corrected

    @property
    def error(self) -> float:
        """Sum over the kernels of their mean |log error| by the curve alone."""
        errors = [np.abs(own.predicted - own.actual).mean(axis=1) for own in self.groups]
        return float(sum(error.sum() for error in errors))

    def _learnt_from(self, groups: Sequence[HeldOutGroup]) -> Correction | None:
        """Return a correction, None from fewer than two kernels."""
        if sum(len(group.rows) for group in groups) < 2:
            return None
        predicted = np.concatenate([group.predicted for group in groups])
        actual = np.concatenate([group.actual for group in groups])
        return Correction.fit(self._similarity(groups), predicted, actual)

    def _similarity(self, groups: Sequence[HeldOutGroup]) -> dict[str, Floats]:
        """Return what makes the kernels alike, with the peaks that all kernels show."""
        rows = np.concatenate([group.rows for group in groups])
        return self.kernels.traits.select(rows).similarity(self.kernels.gpu)


def others(kernels: GpuKernels, rows: Indices) -> GpuKernels:
    """Return the kernels that are not in those rows, with the peaks that these show."""
    return kernels.select(np.setdiff1d(np.arange(len(kernels)), rows))


Trained = tuple[TimeModel, PowerModel | None, IntervalScores]
GpuRows = list[tuple[GpuKernels, Indices]]
Model = TypeVar("Model")


@dataclass(frozen=True, eq=False)
class Job:
    """One predictor to train, on tables with their bases. The rest: see `Bottleneck`."""

    sets: Sequence[TrainingSet]
    quantity: str
    intervals: bool
    amplitude: float | None

    @property
    def tables(self) -> tuple[object, ...]:
        """What jobs share that share their fits of time."""
        return (self.amplitude, *((id(table), base) for table, base in self.sets))


def train_together(jobs: Sequence[Job]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and then those of power as another.

    Predictors of the same tables, as for time and for power, share their fits of time. Scores are
    none without intervals. Raises InputError.
    """
    scored = {job.tables for job in jobs if job.intervals and job.quantity == "time"}
    with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
        timings = {
            job.tables: TimeTraining.of(job, job.tables in scored)
            for job in {job.tables: job for job in jobs}.values()
        }
        curves = [own.fits() for own in timings.values()]
        models = _split(fit_curves([fit for own in curves for fit in own]), curves)
        times = {
            key: own.finished(of_own)
            for (key, own), of_own in zip(timings.items(), models, strict=True)
        }
        of_jobs = [times[job.tables] for job in jobs]
        powers = [power_fits(job, time) for job, time in zip(jobs, of_jobs, strict=True)]
        watts = _split(fit_powers([fit for own in powers for fit in own]), powers)
        return [
            _trained(job, time, own) for job, time, own in zip(jobs, of_jobs, watts, strict=True)
        ]


def _split(models: Sequence[Model], of_jobs: Sequence[Sequence[object]]) -> list[list[Model]]:
    """Return the models of each job, from those of all jobs one after another."""
    rest = iter(models)
    return [list(islice(rest, len(own))) for own in of_jobs]


@dataclass(frozen=True, eq=False)
class TrainedTime:
    """A time model, each GPU's kernels held out, and the intervals' scores of time."""

    model: TimeModel
    held_out: list[HeldOutKernels]
    scores: IntervalScores


@dataclass(frozen=True, eq=False)
class TimeTraining:
    """The fits of time on one or several tables.

    groups: of applications, the rows of their kernels in every table. other_gpus: the kernels that
    are left with a GPU and a group held out, and the GPU's tables with the rows of the group.
    several: whether a table has several CU counts. with_scores: the intervals' are wanted.
    """

    tables: list[GpuKernels]
    amplitudes: tuple[float, ...]
    groups: list[list[Indices]]
    other_gpus: list[tuple[list[GpuKernels], GpuRows]]
    several: bool
    with_scores: bool

    @classmethod
    def of(cls, job: Job, with_scores: bool) -> Self:
        """Take the tables of a job; with_scores: GPUs are held out too. Raises InputError."""
        for table, _ in job.sets:
            _warn_of_rising_times(table)
        tables = [GpuKernels.of(table, base) for table, base in job.sets]
        several = any(len(table.grid.cu_count) > 1 for table, _ in job.sets)
        amplitudes = AMPLITUDES if several else (1.0,)
        if job.amplitude is not None:
            amplitudes = (job.amplitude,)
        groups = _groups(tables, GROUPS_OF_CU_AXIS if several else GROUPS)
        other_gpus = _gpus_to_hold_out(tables) if with_scores else []
        return cls(tables, amplitudes, groups, other_gpus, several, with_scores)

    @property
    def _kernels(self) -> list[list[GpuKernels]]:
        """What each of an amplitude's fits learns from: all, without a group, without a GPU too."""
        without = [
            [others(own, rows) for own, rows in zip(self.tables, group, strict=True)]
            for group in self.groups
        ]
        return [self.tables, *without, *(rest for rest, _ in self.other_gpus)]

    def fits(self) -> list[CurveFit]:
        """Return the fits: of every amplitude one after another."""
        kernels = self._kernels
        return [CurveFit(tuple(own), amplitude) for amplitude in self.amplitudes for own in kernels]

    def finished(self, models: Sequence[TimeModel]) -> TrainedTime:
        """Return what becomes of the fits' models: of the amplitude that errs least held out."""
        size = len(models) // len(self.amplitudes)
        candidates = [
            self._candidate(models[first : first + size]) for first in range(0, len(models), size)
        ]
        model, held_out, elsewhere = min(
            candidates, key=lambda own: sum(held.error for held in own[1])
        )
        misfits = []
        for g, own in enumerate(self.tables):
            predicted = model.alone.prior(own.traits, own.gpu, g).predicted()
            misfits.append(misfit_of(own.log_ratios["time"] - predicted))
        corrections = tuple(held.correction for held in held_out)
        model = replace(model, corrections=corrections, misfits=tuple(misfits))
        if not self.with_scores:
            return TrainedTime(model, held_out, IntervalScores())
        pairs = [
            _as_another_gpu(own, rows, trained)
            for trained, (_, parts) in zip(elsewhere, self.other_gpus, strict=True)
            for own, rows in parts
            # As when predicting: what other CU counts do is known of a table of several alone.
            if trained.shares > 1 or len(own.gpu.grid.cu_count) == 1
        ]
        return TrainedTime(model, held_out, time_scores(held_out, pairs))

    def _candidate(
        self, models: Sequence[TimeModel]
    ) -> tuple[TimeModel, list[HeldOutKernels], Sequence[TimeModel]]:
        """Return one amplitude's model, the kernels held out, and the models without a GPU."""
        whole, *without = models
        parts, elsewhere = without[: len(self.groups)], without[len(self.groups) :]
        held_out = [_held_out(g, own, self.groups, parts) for g, own in enumerate(self.tables)]
        return replace(whole, parts=tuple(parts) if self.several else ()), held_out, elsewhere


def _groups(tables: Sequence[GpuKernels], count: int) -> list[list[Indices]]:
    """Return for each group of applications the rows of its kernels in every table.

    A group is left out where no kernel of a table, or one of all, would be left without it.
    """
    applications = sorted({name for own in tables for name in own.applications})
    number = {name: i % count for i, name in enumerate(applications)}
    of_kernels = [np.array([number[name] for name in own.applications]) for own in tables]
    groups = []
    for group in range(min(count, len(applications))):
        left = [int((own != group).sum()) for own in of_kernels]
        if min(left) and sum(left) >= 2:
            groups.append([np.flatnonzero(own == group) for own in of_kernels])
    return groups


def _gpus_to_hold_out(
    tables: Sequence[GpuKernels],
) -> list[tuple[list[GpuKernels], GpuRows]]:
    """Return for each GPU and group of applications the kernels without both, and which these are.

    The second are the GPU's tables, with the rows of the group. Nothing with one GPU alone.
    """
    devices = dict.fromkeys(own.gpu.device for own in tables)
    pairs = []
    for device in devices if len(devices) > 1 else ():
        for group in _groups(tables, GROUPS_OF_OTHER_GPUS):
            known = list(zip(tables, group, strict=True))
            rest = [others(own, rows) for own, rows in known if own.gpu.device != device]
            left_out = [
                (own, rows) for own, rows in known if own.gpu.device == device and rows.size
            ]
            pairs.append((rest, left_out))
    return pairs


def _as_another_gpu(
    kernels: GpuKernels, rows: Indices, model: TimeModel
) -> tuple[HeldOutGroup, HeldOutGroup]:
    """Return kernels of a GPU that the model never saw, with its own peaks and with mean ones."""
    own = others(kernels, rows).gpu
    mean = model.mean_peaks(own.device, own.grid, own.base)
    known, taken = (HeldOutGroup.of(kernels, rows, model, None, gpu) for gpu in (own, mean))
    return known, taken


def _held_out(
    number: int, kernels: GpuKernels, groups: list[list[Indices]], models: list[TimeModel]
) -> HeldOutKernels:
    """Return the kernels of the GPU of that number; models: each trained without a group."""
    held_out = []
    for model, group in zip(models, groups, strict=True):
        rows = group[number]
        if rows.size:
            gpu = model.gpus[number]
            held_out.append(HeldOutGroup.of(kernels, rows, model, number, gpu))
    return HeldOutKernels(kernels, tuple(held_out))


def power_fits(job: Job, time: TrainedTime) -> list[PowerFit]:
    """Return the fits of power: of all kernels, and for intervals without each group of them."""
    if job.quantity == "time":
        return []
    first = time.held_out[0]
    groups = first.groups if job.intervals else ()
    fits = [PowerFit(others(first.kernels, g.rows), g.model.gpus[0]) for g in groups]
    return [PowerFit(first.kernels, time.model.gpus[0]), *fits]


def _trained(job: Job, time: TrainedTime, powers: Sequence[PowerModel]) -> Trained:
    """Return the whole training; powers: the models of `power_fits`."""
    if job.quantity == "time":
        return time.model, None, time.scores if job.intervals else IntervalScores()
    # Power is better with the time as it is before its corrections: decision 0008.
    model, first = time.model.alone, time.held_out[0]
    kernels, gpu = first.kernels, model.gpus[0]
    whole, *parts = powers
    curve = model.prior(kernels.traits, gpu, 0)
    prior = whole.prior(kernels.traits.use, kernels.base_w, gpu, curve)
    actual = np.hstack([kernels.log_ratios["time"], kernels.log_ratios["power"]])
    whole = replace(whole, misfit=misfit_of(actual - prior.predicted()))
    groups = first.groups if job.intervals else ()
    of_groups = [
        part.prior(g.kernels.traits.use, g.kernels.base_w, g.model.gpus[0], g.prior).predicted()
        for part, g in zip(parts, groups, strict=True)
    ]
    of_power = [own[:, gpu.grid.size :] for own in of_groups]
    of_gpu = _application_scores("power", list(zip(groups, of_power, strict=True)))
    return model, whole, IntervalScores(of_gpu.reshape(-1, LEVELS.size))


def time_scores(
    held_out: Sequence[HeldOutKernels], elsewhere: Sequence[tuple[HeldOutGroup, HeldOutGroup]]
) -> IntervalScores:
    """Return the scores of held-out kernels, each as it will be predicted: corrected.

    But the other kernels' corrections come from curves that saw them, and the amplitude was
    chosen with them. A GPU with fewer than three applications takes the scores of all. elsewhere:
    kernels of GPUs held out together with applications, see `_as_another_gpu`.
    """
    of_gpus = [list(zip(own.groups, own.predicted, strict=True)) for own in held_out]
    sizes = [own.kernels.gpu.grid.size for own in held_out]
    everyone = [pair for own, size in zip(of_gpus, sizes, strict=True) if size > 1 for pair in own]
    of_all = _application_scores("time", everyone)
    if not of_all.size:
        return IntervalScores()
    each = [_application_scores("time", own) for own in of_gpus]
    rows = np.array([own if own.size else of_all for own in each])
    known, mean = ([pair[i] for pair in elsewhere] for i in (0, 1))
    return IntervalScores(rows, _gpu_scores(known), _gpu_scores(mean))


def _application_scores(quantity: str, predicted: Sequence[tuple[HeldOutGroup, Floats]]) -> Floats:
    """Return the scores for unseen applications; empty with fewer than LEAST_APPLICATIONS."""
    scores = [own for group, logs in predicted for own in group.scores(quantity, logs)]
    applications = [name for group, _ in predicted for name in group.kernels.applications]
    if len(set(applications)) < LEAST_APPLICATIONS:
        return np.empty(0)
    return calibrated_scores(scores, applications)


def _gpu_scores(groups: Sequence[HeldOutGroup]) -> Floats:
    """Return the scores for unseen applications on unseen GPUs."""
    scores = [own for group in groups for own in group.scores("time", group.predicted)]
    devices = [group.gpu.device for group in groups for _ in group.rows]
    return calibrated_scores(scores, devices)


def _warn_of_rising_times(table: Measurements) -> None:
    """Warn where most kernels take longer at the highest clocks than at the lowest."""
    slower = table.time_ms[:, :, -1, -1] > RISING * table.time_ms[:, :, 0, 0]
    if slower.mean() > 0.5:
        warn(
            f"'{table.device}': {slower.mean():.0%} of the times are longer at the highest clocks "
            "than at the lowest; are the clocks' columns those of the measurement?"
        )
