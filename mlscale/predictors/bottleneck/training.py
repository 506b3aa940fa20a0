"""Training `bottleneck`, with applications and GPUs held out in turn.

How kernels are mispredicted by models that never saw them gives the process' amplitude, the
corrections, and how wide the intervals must be. A training on one GPU makes about a dozen fits of
time, on several four more for each, and as many of power; those of all predictors that are trained
together run together.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
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
from mlscale.predictors.intervals import LEVELS, calibrated_scores

if TYPE_CHECKING:
    from mlscale.predictors.bottleneck.estimator import Bottleneck

# Groups of applications that are held out in turn; fewer where a fit is dear, or GPUs are, too.
GROUPS, GROUPS_OF_CU_AXIS, GROUPS_OF_OTHER_GPUS = 10, 4, 4
AMPLITUDES = (0.1, 1.0, 3.0)
LEAST_APPLICATIONS = 3  # that intervals can be learnt from
RISING = 1.02

Trained = tuple[TimeModel, PowerModel | None, IntervalScores]
Fit = TypeVar("Fit")
Model = TypeVar("Model")
Result = TypeVar("Result")


def train_together(jobs: Sequence[tuple["Bottleneck", Sequence[TrainingSet]]]) -> list[Trained]:
    """Train many predictors, their fits of time as one batch and those of power as another.

    Predictors of the same tables, as for time and for power, share their fits of time. Scores are
    none without intervals. Raises InputError.
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
    sets: Sequence[TrainingSet], amplitude: float | None, with_scores: bool
) -> Generator[
    list[CurveFit], list[TimeModel], tuple[TimeModel, list[HeldOutKernels], IntervalScores]
]:
    """Return the time model, each GPU's kernels held out, and scores of time. Raises InputError.

    amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
    predicts held-out training applications best. with_scores: GPUs are held out too.
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
    of_gpus = _gpus_to_hold_out(tables) if with_scores else []
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
    scores = IntervalScores()
    if with_scores:
        pairs = [
            _as_another_gpu(own, rows, trained)
            for trained, (_, parts) in zip(elsewhere, of_gpus, strict=True)
            for own, rows in parts
            # As when predicting: what other CU counts do is known of a table of several alone.
            if trained.shares > 1 or len(own.gpu.grid.cu_count) == 1
        ]
        scores = time_scores(held_out, pairs)
    return model, held_out, scores


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
    job: "Bottleneck",
    time: TimeModel,
    held_out: Sequence[HeldOutKernels],
    scores: IntervalScores,
) -> Generator[list[PowerFit], list[PowerModel], Trained]:
    """Return the whole training: besides time's what is of the power, where that is asked for."""
    if job.quantity == "time":
        yield []
        return time, None, scores if job.intervals else IntervalScores()
    # Power is better with the time as it is before its corrections: decision 0008.
    time, first = time.alone, held_out[0]
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
    of_gpu = _application_scores("power", list(zip(groups, of_power, strict=True)))
    return time, whole, IntervalScores(of_gpu.reshape(-1, LEVELS.size))


def time_scores(
    held_out: Sequence[HeldOutKernels], elsewhere: Sequence[tuple[HeldOutGroup, HeldOutGroup]]
) -> IntervalScores:
    """Return the scores of held-out kernels, each as it will be predicted: corrected, with trees.

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
