"""Training `bottleneck`, with applications and GPUs held out in turn.

How kernels are mispredicted by models that never saw them gives the process' amplitude, the
corrections, and how wide the intervals must be. A training on one GPU makes about a dozen fits of
time, on several four more for each, and as many of power; those of all predictors that are trained
together run together.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices
from mlscale.data.measurements import Measurements
from mlscale.errors import warn
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.bottleneck.fit import (
    CurveFit,
    GpuKernels,
    PowerFit,
    fit_curves,
    fit_powers,
)
from mlscale.predictors.bottleneck.held_out import HeldOutGroup, HeldOutKernels, others
from mlscale.predictors.bottleneck.kernels import rule_applies
from mlscale.predictors.bottleneck.power import PowerModel
from mlscale.predictors.bottleneck.scores import IntervalScores
from mlscale.predictors.bottleneck.time import TimeModel
from mlscale.predictors.conditioning import misfit_of
from mlscale.predictors.intervals import calibrated_scores

if TYPE_CHECKING:
    from mlscale.predictors.bottleneck.estimator import Bottleneck

# Groups of applications that are held out in turn; fewer where a fit is dear, or GPUs are, too.
GROUPS, GROUPS_OF_CU_AXIS, GROUPS_OF_OTHER_GPUS = 10, 4, 4
AMPLITUDES = (0.1, 1.0, 3.0)
LEAST_APPLICATIONS = 3  # that intervals can be learnt from
RISING = 1.02

Fit = TypeVar("Fit")
Model = TypeVar("Model")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gives; scores are none without intervals."""

    time: TimeModel
    power: PowerModel | None
    scores: IntervalScores


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a time model is with kernels held out.

    gpus: of each GPU all kernels, in groups of applications. elsewhere: of GPUs held out
    together with applications, by models of the other GPUs: pairs with the peaks that the GPU's
    other kernels show, and with those that the others reach.
    """

    gpus: list[HeldOutKernels]
    elsewhere: list[tuple[HeldOutGroup, HeldOutGroup]]


def train_together(jobs: Sequence[tuple["Bottleneck", Sequence[TrainingSet]]]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and those of power as another.

    Predictors of the same tables, as for time and for power, share their fits of time.
    Raises InputError.
    """
    keys = [(job.amplitude, tuple((id(table), base) for table, base in sets)) for job, sets in jobs]
    distinct = {key: sets for key, (_, sets) in zip(keys, jobs, strict=True)}
    pairs = zip(keys, jobs, strict=True)
    scored = {key for key, (job, _) in pairs if job.intervals and job.quantity == "time"}
    with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
        timings = [_train_time(sets, key[0], key in scored) for key, sets in distinct.items()]
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
    sets: Sequence[TrainingSet], amplitude: float | None, with_other_gpus: bool
) -> Generator[list[CurveFit], list[TimeModel], tuple[TimeModel, HeldOut]]:
    """Return the time model, and what it is with kernels held out. Raises InputError.

    amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
    predicts held-out training applications best. with_other_gpus: whether GPUs are held out too.
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
        [others(own, rows) for own, rows in zip(tables, group, strict=True)] for group in groups
    ]
    of_gpus = _gpus_to_hold_out(tables) if with_other_gpus else []
    trained_on = [tables, *without, *(rest for rest, _ in of_gpus)]
    models = yield [CurveFit(tuple(own), tried) for tried in amplitudes for own in trained_on]
    candidates = []
    for first in range(0, len(models), len(trained_on)):
        whole, *without_groups = models[first : first + len(trained_on)]
        parts, elsewhere = without_groups[: len(groups)], without_groups[len(groups) :]
        candidates.append(
            (
                replace(whole, parts=tuple(parts) if several else ()),
                [_held_out(g, own, groups, parts) for g, own in enumerate(tables)],
                elsewhere,
            )
        )
    model, held_out, elsewhere = min(candidates, key=lambda own: sum(held.error for held in own[1]))
    misfits = []
    for g, own in enumerate(tables):
        predicted = model.alone.prior(own.traits, own.gpu, g).predicted()
        misfits.append(misfit_of(own.log_ratios["time"] - predicted))
    corrections = tuple(held.correction for held in held_out)
    trees = tuple(held.trees for held in held_out)
    model = replace(model, corrections=corrections, trees=trees, misfits=tuple(misfits))
    pairs = [
        _as_another_gpu(own, rows, trained)
        for trained, (_, parts) in zip(elsewhere, of_gpus, strict=True)
        for own, rows in parts
    ]
    return model, HeldOut(held_out, pairs)


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


def _gpus_to_hold_out(
    tables: Sequence[GpuKernels],
) -> list[tuple[list[GpuKernels], list[tuple[GpuKernels, Indices]]]]:
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


def _train(
    job: "Bottleneck", time: TimeModel, held_out: HeldOut
) -> Generator[list[PowerFit], list[PowerModel], Trained]:
    """Return the rest of a training: the power where it is asked for, and the scores."""
    if job.quantity == "time":
        yield []
        scores = time_scores(held_out) if job.intervals else IntervalScores.none()
        return Trained(time, None, scores)
    # Power is better with the time as it is before its corrections: decision 0008.
    time, first = time.alone, held_out.gpus[0]
    kernels, gpu = first.kernels, time.gpus[0]
    groups = first.groups if job.intervals else ()
    fits = [PowerFit(others(kernels, g.rows), g.model.gpus[0]) for g in groups]
    whole, *parts = yield [PowerFit(kernels, gpu), *fits]
    prior = whole.prior(kernels.traits.use, kernels.base_w, gpu, time.prior(kernels.traits, gpu, 0))
    actual = np.hstack([kernels.log_ratios["time"], kernels.log_ratios["power"]])
    whole = replace(whole, misfit=misfit_of(actual - prior.predicted()))
    of_groups = [
        part.prior(g.kernels.traits.use, g.kernels.base_w, g.model.gpus[0], g.prior).predicted()
        for part, g in zip(parts, groups, strict=True)
    ]
    of_power = [own[:, gpu.grid.size :] for own in of_groups]
    return Trained(time, whole, power_scores(groups, of_power))


def time_scores(held_out: HeldOut) -> IntervalScores:
    """Return the scores of held-out kernels, each as it will be predicted: corrected, with trees.

    But the other kernels' corrections come from curves that saw them, and the amplitude was
    chosen with them. A GPU with fewer than three applications takes the scores of all.
    """
    of_gpus = [
        (own.groups, own.predicted) for own in held_out.gpus if own.kernels.gpu.grid.size > 1
    ]
    everyone = [pair for pairs in of_gpus for pair in zip(*pairs, strict=True)]
    of_all = _application_scores("time", everyone)
    if not of_all.size:
        return IntervalScores.none()
    rows = []
    for own in held_out.gpus:
        scores = _application_scores("time", list(zip(own.groups, own.predicted, strict=True)))
        rows.append(scores if scores.size else of_all)
    known, mean = ([pair[i] for pair in held_out.elsewhere] for i in (0, 1))
    return IntervalScores(np.array(rows), _gpu_scores(known), _gpu_scores(mean))


def power_scores(groups: Sequence[HeldOutGroup], predicted: Sequence[Floats]) -> IntervalScores:
    """Return the scores of one GPU's groups, whose log power ratios (n, N) were predicted."""
    scores = _application_scores("power", list(zip(groups, predicted, strict=True)))
    nothing = np.empty(0)
    if not scores.size:
        return IntervalScores.none()
    return IntervalScores(scores[None], nothing, nothing)


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
