"""Training `bottleneck`, with applications held out in turn, for corrections and intervals.

How kernels are mispredicted by models that never saw them gives the process' amplitude, the
corrections, and how wide the intervals must be. A training makes about a dozen fits of time, and as
many of power; those of all predictors that are trained together run together.
"""

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.bottleneck.correction import Correction
from mlscale.predictors.bottleneck.curve import base_position
from mlscale.predictors.bottleneck.fit import (
    CurveFit,
    GpuKernels,
    PowerFit,
    fit_curves,
    fit_powers,
)
from mlscale.predictors.bottleneck.power import PowerModel
from mlscale.predictors.bottleneck.time import LEAST_SPREAD, TimeModel, blended, rule_applies
from mlscale.predictors.bottleneck.tree_opinion import TreeOpinion, weight_of_trees
from mlscale.predictors.conditioning import SurfacePrior, misfit_of

if TYPE_CHECKING:
    from mlscale.predictors.bottleneck.estimator import Bottleneck

# Groups of applications that are held out in turn; fewer where a fit is dear.
GROUPS, GROUPS_OF_CU_AXIS = 10, 4
AMPLITUDES = (0.1, 1.0, 3.0)
SCORE_LEVELS = 1001
RISING = 1.02

Fit = TypeVar("Fit")
Model = TypeVar("Model")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class HeldOutGroup:
    """Kernels of one GPU, and what a time model that was trained without them knows of them.

    rows: theirs among all kernels of the GPU.
    """

    rows: Indices
    kernels: GpuKernels
    model: TimeModel
    prior: SurfacePrior

    @cached_property
    def predicted(self) -> Floats:
        """Log time ratios (n, N) of the curve alone."""
        return self.prior.predicted()


@dataclass(frozen=True, eq=False)
class HeldOutKernels:
    """All training kernels of one GPU, in groups that were held out in turn."""

    kernels: GpuKernels
    groups: tuple[HeldOutGroup, ...]

    @cached_property
    def correction(self) -> Correction | None:
        """Learnt from all kernels that were held out; None where it does not help them."""
        better = self._error_of(self._corrected) < self.error
        return self._learnt_from(self.groups) if better else None

    @cached_property
    def trees(self) -> TreeOpinion | None:
        """Grown from all kernels; None where they do not help those held out."""
        if not self._by_trees:
            return None
        curve, trees = np.concatenate(self._by_curve), np.concatenate(self._by_trees)
        actual = np.concatenate([group.kernels.log_ratios["time"] for group in self.groups])
        applications = [name for group in self.groups for name in group.kernels.applications]
        weight = weight_of_trees(curve, trees, actual, applications)
        if not weight:
            return None
        named = self.kernels.traits.similarity(self.kernels.gpu)
        return TreeOpinion.fit(named, self.kernels.log_ratios["time"], weight)

    @property
    def predicted(self) -> list[Floats]:
        """For each group log time ratios (n, N), corrected and with trees where these help."""
        if self.trees is None:
            return self._by_curve
        pairs = zip(self._by_curve, self._by_trees, strict=True)
        return [blended(curve, trees, self.trees.weight) for curve, trees in pairs]

    @property
    def _by_curve(self) -> list[Floats]:
        """Each group's log time ratios (n, N), corrected where corrections help."""
        if self.correction is None:
            return [group.predicted for group in self.groups]
        return self._corrected

    @cached_property
    def _by_trees(self) -> list[Floats]:
        """Each group's log time ratios by trees of the others; none without a CU axis."""
        if len(self.kernels.gpu.grid.cu_count) == 1:
            return []
        predicted = []
        for group in self.groups:
            others = _others(self.kernels, group.rows)
            named = others.traits.similarity(others.gpu)
            trees = TreeOpinion.fit(named, others.log_ratios["time"])
            predicted.append(trees.predict(group.kernels.traits.similarity(others.gpu)))
        return predicted

    @property
    def error(self) -> float:
        """Sum over the kernels of their mean |log error| by the curve alone."""
        return self._error_of([group.predicted for group in self.groups])

    def _error_of(self, predicted: list[Floats]) -> float:
        actual = [group.kernels.log_ratios["time"] for group in self.groups]
        errors = [np.abs(a - b).mean(axis=1) for a, b in zip(predicted, actual, strict=True)]
        return float(sum(error.sum() for error in errors))

    @cached_property
    def _corrected(self) -> list[Floats]:
        """Each group's log time ratios, with the correction that the others teach."""
        corrected = []
        for group in self.groups:
            correction = self._learnt_from([g for g in self.groups if g is not group])
            missed = np.zeros(1)
            if correction is not None:
                missed = correction.predict(self._similarity([group]), group.predicted)
            corrected.append(group.predicted + missed)
        return corrected

    def _learnt_from(self, groups: Sequence[HeldOutGroup]) -> Correction | None:
        """Return None from fewer than two kernels."""
        if sum(len(group.rows) for group in groups) < 2:
            return None
        predicted = np.concatenate([group.predicted for group in groups])
        actual = np.concatenate([group.kernels.log_ratios["time"] for group in groups])
        return Correction.fit(self._similarity(groups), predicted, actual)

    def _similarity(self, groups: Sequence[HeldOutGroup]) -> dict[str, Floats]:
        """Return what makes the kernels alike, with the peaks that all kernels show."""
        rows = np.concatenate([group.rows for group in groups])
        return self.kernels.traits.select(rows).similarity(self.kernels.gpu)


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gives; scores: see `calibrate`, empty without intervals."""

    time: TimeModel
    power: PowerModel | None
    scores: Floats


def train_together(jobs: Sequence[tuple["Bottleneck", Sequence[TrainingSet]]]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and those of power as another.

    Predictors of the same tables, as for time and for power, share their fits of time.
    Raises InputError.
    """
    keys = [(job.amplitude, tuple((id(table), base) for table, base in sets)) for job, sets in jobs]
    distinct = {key: sets for key, (_, sets) in zip(keys, jobs, strict=True)}
    with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
        timings = [_train_time(sets, amplitude) for (amplitude, _), sets in distinct.items()]
        times = dict(zip(distinct, _run(timings, fit_curves), strict=True))
        rest = [_train(job, *times[key]) for key, (job, _) in zip(keys, jobs, strict=True)]
        return _run(rest, fit_powers)


def _run(
    trainings: Sequence[Generator[list[Fit], list[Model], Result]],
    train: Callable[[Sequence[Fit]], list[Model]],
) -> list[Result]:
    """Run trainings side by side: the fits that all of them ask for are trained in one call.

    A training yields its fits once, is sent their models, and returns what it makes of them.
    """
    fits = [next(training) for training in trainings]
    models = iter(train([fit for own in fits for fit in own]))
    results = []
    for training, own in zip(trainings, fits, strict=True):
        try:
            training.send(list(islice(models, len(own))))
        except StopIteration as end:
            results.append(end.value)
    return results


def _train_time(
    sets: Sequence[TrainingSet], amplitude: float | None
) -> Generator[list[CurveFit], list[TimeModel], tuple[TimeModel, list[HeldOutKernels]]]:
    """Return the time model, and what it is with applications held out. Raises InputError.

    amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
    predicts held-out training applications best.
    """
    for table, _ in sets:
        _warn_of_rising_times(table)
    with_rule = all(rule_applies(table.profiles(base), table.grid) for table, base in sets)
    tables = [GpuKernels.of(table, base, with_rule) for table, base in sets]
    several = any(len(table.grid.cu_count) > 1 for table, _ in sets)
    amplitudes = AMPLITUDES if several else (1.0,)
    if amplitude is not None:
        amplitudes = (amplitude,)
    groups = _groups(tables, GROUPS_OF_CU_AXIS if several else GROUPS)
    without = [
        [_others(own, rows) for own, rows in zip(tables, group, strict=True)] for group in groups
    ]
    models = yield [
        CurveFit(tuple(kernels), tried) for tried in amplitudes for kernels in (tables, *without)
    ]
    candidates = []
    for first in range(0, len(models), 1 + len(groups)):
        whole, *parts = models[first : first + 1 + len(groups)]
        candidates.append(
            (
                replace(whole, parts=tuple(parts) if several else ()),
                [_held_out(g, own, groups, parts) for g, own in enumerate(tables)],
            )
        )
    model, held_out = min(candidates, key=lambda pair: sum(held.error for held in pair[1]))
    misfits = []
    for g, own in enumerate(tables):
        predicted = model.alone.prior(own.traits, own.gpu, g).predicted()
        misfits.append(misfit_of(own.log_ratios["time"] - predicted))
    corrections = tuple(held.correction for held in held_out)
    trees = tuple(held.trees for held in held_out)
    model = replace(model, corrections=corrections, trees=trees, misfits=tuple(misfits))
    return model, held_out


def _groups(tables: Sequence[GpuKernels], count: int) -> list[list[Indices]]:
    """Return for each group of applications the rows of its kernels in every table.

    A group is left out where no kernel of a table, or one of all, would be left without it.
    """
    applications = list(dict.fromkeys(name for own in tables for name in own.applications))
    number = {name: i % count for i, name in enumerate(applications)}
    of_kernels = [np.array([number[name] for name in own.applications]) for own in tables]
    groups = []
    for group in range(min(count, len(applications))):
        left = [int((own != group).sum()) for own in of_kernels]
        if min(left) and sum(left) >= 2:
            groups.append([np.flatnonzero(own == group) for own in of_kernels])
    return groups


def _others(kernels: GpuKernels, rows: Indices) -> GpuKernels:
    return kernels.select(np.setdiff1d(np.arange(len(kernels)), rows))


def _held_out(
    number: int, kernels: GpuKernels, groups: list[list[Indices]], models: list[TimeModel]
) -> HeldOutKernels:
    """Return the kernels of the GPU of that number; models: each trained without a group."""
    held_out = []
    for model, group in zip(models, groups, strict=True):
        rows = group[number]
        if rows.size:
            own = kernels.select(rows)
            prior = model.prior(own.traits, model.gpus[number], number)
            held_out.append(HeldOutGroup(rows, own, model, prior))
    return HeldOutKernels(kernels, tuple(held_out))


def _train(
    job: "Bottleneck", time: TimeModel, held_out: list[HeldOutKernels]
) -> Generator[list[PowerFit], list[PowerModel], Trained]:
    """Return the rest of a training: the power where it is asked for, and the scores."""
    if job.quantity == "time":
        yield []
        predicted = [held.predicted for held in held_out]
        scores = calibrate("time", held_out, predicted) if job.intervals else np.empty(0)
        return Trained(time, None, scores)
    # Power is better with the time as it is before its corrections: decision 0008.
    time = time.alone
    kernels, gpu = held_out[0].kernels, time.gpus[0]
    groups = held_out[0].groups if job.intervals else ()
    fits = [PowerFit(_others(kernels, g.rows), g.model.gpus[0]) for g in groups]
    whole, *parts = yield [PowerFit(kernels, gpu), *fits]
    prior = whole.prior(kernels.traits.use, kernels.base_w, gpu, time.prior(kernels.traits, gpu, 0))
    actual = np.hstack([kernels.log_ratios["time"], kernels.log_ratios["power"]])
    whole = replace(whole, misfit=misfit_of(actual - prior.predicted()))
    of_groups = [
        part.prior(g.kernels.traits.use, g.kernels.base_w, g.model.gpus[0], g.prior).predicted()
        for part, g in zip(parts, groups, strict=True)
    ]
    of_power = [own[:, gpu.grid.size :] for own in of_groups]
    scores = calibrate("power", held_out[:1], [of_power]) if groups else np.empty(0)
    return Trained(time, whole, scores)


def calibrate(
    quantity: str, held_out: Sequence[HeldOutKernels], predicted: Sequence[list[Floats]]
) -> Floats:
    """Return quantiles of |log error| / (spread + 0.02) of kernels held out, at levels 0 to 1.

    predicted: of each GPU, for each group log ratios (n, N) by models that never saw them. But
    the other kernels' corrections come from curves that did, and the amplitude was chosen with
    them. Empty with fewer than three applications. No level is added for the few applications: the
    models that are scored learnt from fewer kernels than the one that predicts, so their scores
    are large enough (decision 0008).
    """
    if len({name for held in held_out for name in held.kernels.applications}) < 3:
        return np.empty(0)
    scores = []
    for held, of_groups in zip(held_out, predicted, strict=True):
        at_base = base_position(held.kernels.gpu.grid, held.kernels.gpu.base)
        for group, own in zip(held.groups, of_groups, strict=True):
            spread = group.prior.spread(group.model.shares) + LEAST_SPREAD
            score = np.abs(own - group.kernels.log_ratios[quantity]) / spread
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
