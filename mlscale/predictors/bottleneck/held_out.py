"""Training `bottleneck`: with applications held out in turn, for corrections and intervals.

How kernels are mispredicted by models that never saw them gives the process' amplitude, the
corrections, and how wide the intervals must be.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.bottleneck.correction import Correction
from mlscale.predictors.bottleneck.curve import base_position
from mlscale.predictors.bottleneck.fit import (
    CurveFit,
    PowerFit,
    TrainingTable,
    fit_curves,
    fit_powers,
)
from mlscale.predictors.bottleneck.power import PowerModel
from mlscale.predictors.bottleneck.time import (
    LEAST_SPREAD,
    KernelTraits,
    TimeModel,
    rule_applies,
)
from mlscale.predictors.conditioning import SurfacePrior, misfit_of

# Groups of applications that are held out in turn; fewer where a fit is dear.
GROUPS, GROUPS_OF_CU_AXIS = 10, 4
AMPLITUDES = (0.1, 1.0, 3.0)
SCORE_LEVELS = 1001
RISING = 1.02


@dataclass(frozen=True, eq=False)
class HeldOutGroup:
    """Kernels of a table (rows), and their prior by a time model that never saw them."""

    rows: Indices
    model: TimeModel
    prior: SurfacePrior

    @cached_property
    def predicted(self) -> Floats:
        """Log time ratios (n, N) of the curve alone."""
        return self.prior.predicted()


@dataclass(frozen=True, eq=False)
class HeldOutKernels:
    """The kernels of one training table, each predicted by a curve that never saw them.

    groups: those that kernels were left to train without.
    """

    known: TrainingTable
    groups: tuple[HeldOutGroup, ...]

    @cached_property
    def correction(self) -> Correction | None:
        """Learnt from all kernels that were predicted; None where it does not help them."""
        better = self._error_of(self._corrected) < self.error
        return self._learnt_from(self.groups) if better else None

    @property
    def predicted(self) -> list[Floats]:
        """For each group log time ratios (n, N), corrected where corrections help."""
        if self.correction is None:
            return [group.predicted for group in self.groups]
        return self._corrected

    @property
    def error(self) -> float:
        """Sum over the kernels of their mean |log error| by the curve alone."""
        return self._error_of([group.predicted for group in self.groups])

    def _error_of(self, predicted: list[Floats]) -> float:
        actual = self.known.log_time
        pairs = zip(self.groups, predicted, strict=True)
        return sum(float(np.abs(own - actual[g.rows]).mean(axis=1).sum()) for g, own in pairs)

    @cached_property
    def _corrected(self) -> list[Floats]:
        """Each group's log time ratios, with the correction that the others teach."""
        corrected = []
        for group in self.groups:
            correction = self._learnt_from([g for g in self.groups if g is not group])
            missed = np.zeros(1)
            if correction is not None:
                missed = correction.predict(self._similarity(group.rows), group.predicted)
            corrected.append(group.predicted + missed)
        return corrected

    def _learnt_from(self, groups: Sequence[HeldOutGroup]) -> Correction | None:
        """None from fewer than two kernels."""
        if sum(len(group.rows) for group in groups) < 2:
            return None
        rows = np.concatenate([group.rows for group in groups])
        predicted = np.concatenate([group.predicted for group in groups])
        return Correction.fit(self._similarity(rows), predicted, self.known.log_time[rows])

    def _similarity(self, rows: Indices) -> dict[str, Floats]:
        return {name: values[rows] for name, values in self.known.similarity.items()}


@dataclass(frozen=True, eq=False)
class TimeTraining:
    """What one training of the time model takes: its tables, and amplitudes to choose from."""

    tables: tuple[TrainingTable, ...]
    amplitudes: tuple[float, ...]

    @classmethod
    def of(cls, sets: Sequence[TrainingSet], amplitude: float | None) -> "TimeTraining":
        """From measurements. Raises InputError.

        amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
        predicts held-out training applications best.
        """
        profiles = [table.profiles(base) for table, base in sets]
        grids = [table.grid for table, _ in sets]
        with_rule = all(map(rule_applies, profiles, grids))
        traits = [
            KernelTraits.of(p, grid, with_rule) for p, grid in zip(profiles, grids, strict=True)
        ]
        for table, _ in sets:
            _warn_of_rising_times(table)
        several = AMPLITUDES if any(len(grid.cu_count) > 1 for grid in grids) else (1.0,)
        return cls(
            tuple(TrainingTable(*pair, own) for pair, own in zip(sets, traits, strict=True)),
            several if amplitude is None else (amplitude,),
        )

    @cached_property
    def groups(self) -> list[list[Indices]]:
        """For each group of applications the rows of its kernels in every table.

        A group is left out where no kernel of a table, or one of all, would be left without it.
        """
        of_tables = [known.table.applications for known in self.tables]
        applications = list(dict.fromkeys(name for names in of_tables for name in names))
        several = any(len(known.table.grid.cu_count) > 1 for known in self.tables)
        count = GROUPS_OF_CU_AXIS if several else GROUPS
        number = {name: i % count for i, name in enumerate(applications)}
        of_kernels = [np.array([number[name] for name in names]) for names in of_tables]
        groups = []
        for group in range(min(count, len(applications))):
            left = [int((own != group).sum()) for own in of_kernels]
            if min(left) and sum(left) >= 2:
                groups.append([np.flatnonzero(own == group) for own in of_kernels])
        return groups

    @cached_property
    def fits(self) -> list[CurveFit]:
        """For each amplitude a fit to all kernels, and one without each group."""
        rows = [[np.arange(len(known.table.kernels)) for known in self.tables]]
        rows += [
            [np.setdiff1d(all_rows, own) for all_rows, own in zip(rows[0], group, strict=True)]
            for group in self.groups
        ]
        return [
            CurveFit(self.tables, tuple(own), amplitude)
            for amplitude in self.amplitudes
            for own in rows
        ]

    def finish(self, models: Iterator[TimeModel]) -> tuple[TimeModel, list[HeldOutKernels]]:
        """The model of the best amplitude, complete, and its kernels held out.

        models: of `fits`, in their order.
        """
        candidates = []
        for _ in self.amplitudes:
            whole = next(models)
            parts = [next(models) for _ in self.groups]
            candidates.append((whole, [self._held_out(g, parts) for g in range(len(self.tables))]))
        model, held_out = min(candidates, key=lambda pair: sum(held.error for held in pair[1]))
        misfits = []
        for number, (known, gpu) in enumerate(zip(self.tables, model.gpus, strict=True)):
            predicted = model.prior(known.traits, gpu, number).predicted()
            misfits.append(misfit_of(known.log_time - predicted))
        corrections = tuple(held.correction for held in held_out)
        return replace(model, corrections=corrections, misfits=tuple(misfits)), held_out

    def _held_out(self, number: int, models: list[TimeModel]) -> HeldOutKernels:
        known, groups = self.tables[number], []
        for model, group in zip(models, self.groups, strict=True):
            rows = group[number]
            if rows.size:
                prior = model.prior(known.traits.select(rows), model.gpus[number], number)
                groups.append(HeldOutGroup(rows, model, prior))
        return HeldOutKernels(known, tuple(groups))


@dataclass(frozen=True, eq=False)
class PowerTraining:
    """What one training of the power takes: a time model, its first table, and kernels held out."""

    time: TimeModel
    known: TrainingTable
    groups: tuple[HeldOutGroup, ...]

    @cached_property
    def fits(self) -> list[PowerFit]:
        """A fit to all kernels, and one without each group."""
        every = np.arange(len(self.known.table.kernels))
        return [PowerFit(self.known, every, self.time.gpus[0])] + [
            PowerFit(self.known, np.setdiff1d(every, group.rows), group.model.gpus[0])
            for group in self.groups
        ]

    def finish(self, models: Iterator[PowerModel]) -> tuple[PowerModel, list[Floats]]:
        """The complete model, and each group's log power ratios (n, N) by one without it."""
        known, model, gpu = self.known, next(models), self.time.gpus[0]
        time = self.time.prior(known.traits, gpu, 0)
        predicted = model.prior(known.traits.use, known.base_w, gpu, time).predicted()
        actual = np.hstack([known.log_time, known.log_power])
        model = replace(model, misfit=misfit_of(actual - predicted))
        of_groups = []
        for group in self.groups:
            use, base_w = known.traits.select(group.rows).use, known.base_w[group.rows]
            prior = next(models).prior(use, base_w, group.model.gpus[0], group.prior)
            of_groups.append(prior.predicted()[:, gpu.grid.size :])
        return model, of_groups


@dataclass(frozen=True, eq=False)
class Job:
    """A predictor to train: its quantity and hyper-parameters, and the tables to learn from."""

    quantity: str
    sets: Sequence[TrainingSet]
    amplitude: float | None
    intervals: bool

    @property
    def time_key(self) -> tuple[object, ...]:
        """Jobs with the same key have the same time model."""
        return self.amplitude, *((id(table), base) for table, base in self.sets)


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gives; scores: see `calibrate`, empty without intervals."""

    time: TimeModel
    power: PowerModel | None
    scores: Floats


def train_together(jobs: Sequence[Job]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and those of power as another.

    Raises InputError.
    """
    of_key = {job.time_key: job for job in jobs}
    trainings = [TimeTraining.of(job.sets, job.amplitude) for job in of_key.values()]
    models = iter(fit_curves([fit for training in trainings for fit in training.fits]))
    times = {key: t.finish(models) for key, t in zip(of_key, trainings, strict=True)}
    powers = {
        job: _power_training(job, *times[job.time_key]) for job in jobs if job.quantity == "power"
    }
    power_models = iter(fit_powers([fit for training in powers.values() for fit in training.fits]))
    return [_trained(job, *times[job.time_key], powers.get(job), power_models) for job in jobs]


def _power_training(job: Job, time: TimeModel, held_out: list[HeldOutKernels]) -> PowerTraining:
    """Power is better with the time as it is before its corrections: decision 0008."""
    bare = replace(time, corrections=(None,) * len(time.gpus))
    return PowerTraining(bare, held_out[0].known, held_out[0].groups if job.intervals else ())


def _trained(
    job: Job,
    time: TimeModel,
    held_out: list[HeldOutKernels],
    power: PowerTraining | None,
    power_models: Iterator[PowerModel],
) -> Trained:
    predicted, power_model = [held.predicted for held in held_out], None
    if power is not None:
        power_model, of_groups = power.finish(power_models)
        time, held_out, predicted = power.time, held_out[:1], [of_groups]
    scores = calibrate(job.quantity, held_out, predicted) if job.intervals else np.empty(0)
    return Trained(time, power_model, scores)


def calibrate(
    quantity: str, held_out: Sequence[HeldOutKernels], predicted: Sequence[list[Floats]]
) -> Floats:
    """Quantiles of |log error| / (spread + 0.02) of kernels held out, at levels 0 to 1.

    predicted: of each table, for each group log ratios (n, N) by models that never saw them. But
    the other kernels' corrections come from curves that did, and the amplitude was chosen with
    them. Empty with fewer than three applications. No level is added for the few applications: the
    models that are scored learnt from fewer kernels than the one that predicts, so their scores
    are large enough (decision 0008).
    """
    if len({a for held in held_out for a in held.known.table.applications}) < 3:
        return np.empty(0)
    scores = []
    for held, of_groups in zip(held_out, predicted, strict=True):
        actual, table = held.known.log_ratios(quantity), held.known.table
        for group, own in zip(held.groups, of_groups, strict=True):
            spread = group.prior.spread(group.model.shares) + LEAST_SPREAD
            score = np.abs(own - actual[group.rows]) / spread
            at_base = base_position(table.grid, held.known.base)
            scores.append(np.delete(score, at_base, axis=1).ravel())
    if not sum(score.size for score in scores):
        return np.empty(0)
    return np.quantile(np.concatenate(scores), np.linspace(0, 1, SCORE_LEVELS))


def _warn_of_rising_times(table: Measurements) -> None:
    """Warn where most kernels take longer at the highest clocks than at the lowest."""
    slower = table.time_ms[:, :, -1, -1] > RISING * table.time_ms[:, :, 0, 0]
    if slower.mean() > 0.5:
        warnings.warn(
            f"'{table.device}': {slower.mean():.0%} of the times are longer at the highest clocks "
            "than at the lowest; are the clocks' columns those of the measurement?",
            DataWarning,
            stacklevel=2,
        )
