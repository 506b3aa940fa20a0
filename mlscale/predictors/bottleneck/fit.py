"""From measurements to the time model of `bottleneck`, and the scores of its intervals."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices, Mask
from mlscale.counters.kernel_use import kernel_use
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning
from mlscale.predictors.base import TrainingSet
from mlscale.predictors.baselines import log_surfaces
from mlscale.predictors.bottleneck import training
from mlscale.predictors.bottleneck.correction import Correction, similarity
from mlscale.predictors.bottleneck.curve import Load, Targets, active_issue
from mlscale.predictors.bottleneck.power_fit import fit_power
from mlscale.predictors.bottleneck.time import (
    LEAST_SPREAD,
    OTHER_LAW,
    Gpu,
    TimeModel,
    other_law,
    other_law_applies,
    training_use,
)
from mlscale.predictors.conditioning import misfit_of

THREADS = ThreadpoolController()  # matrices this small run slower on several
# Groups of applications that are held out in turn; fewer where a fit is dear.
GROUPS, GROUPS_OF_CU_AXIS = 10, 4
AMPLITUDES = (0.1, 1.0, 3.0)
SCORE_LEVELS = 1001
RISING = 1.02


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The kernels of one training table, each predicted by a curve that never saw them.

    models: by group; group (n,): of each kernel, -1 where no model could be trained without it.
    predicted, spread, actual (n, N): log time ratios, half their spread, and the true ones;
    named: what makes the kernels alike, (n,) each.
    """

    models: tuple[TimeModel | None, ...]
    group: Indices
    predicted: Floats
    spread: Floats
    actual: Floats
    named: dict[str, Floats]

    @cached_property
    def correction(self) -> Correction | None:
        """Learnt from all kernels that were predicted; None where it does not help them."""
        before = after = 0.0
        for group in range(len(self.models)):
            own, corrected = self._corrected(group)
            before += float(np.abs(self.predicted - self.actual)[own].sum())
            after += float(np.abs(corrected - self.actual[own]).sum())
        return self._learnt_from(self.group >= 0) if after < before else None

    def _learnt_from(self, which: Mask) -> Correction | None:
        """None from fewer than two kernels."""
        which = which & (self.group >= 0)
        if which.sum() < 2:
            return None
        named = {name: values[which] for name, values in self.named.items()}
        return Correction.fit(named, self.predicted[which], self.actual[which])

    def of_group(self, group: int) -> tuple[Mask, Floats]:
        """The kernels of a group, and their log time ratios as a model without them has them."""
        own, corrected = self._corrected(group)
        return own, self.predicted[own] if self.correction is None else corrected

    def _corrected(self, group: int) -> tuple[Mask, Floats]:
        own = self.group == group
        correction, predicted = self._learnt_from(~own), self.predicted[own]
        if correction is not None:
            named = {name: values[own] for name, values in self.named.items()}
            predicted = predicted + correction.predict(named, predicted)
        return own, predicted


def fit_time(
    sets: Sequence[TrainingSet], amplitude: float | None
) -> tuple[TimeModel, tuple[HeldOut, ...]]:
    """Train the time model on one GPU or several; and what it is with applications held out.

    amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
    predicts held-out training applications best. Raises InputError.
    """
    for table, _ in sets:
        _warn_of_rising_times(table)
    several = any(len(table.grid.cu_count) > 1 for table, _ in sets)
    candidates = AMPLITUDES if several else (1.0,)
    if amplitude is not None:
        candidates = (amplitude,)
    groups = GROUPS_OF_CU_AXIS if several else GROUPS
    held_out = {tried: _hold_out(sets, tried, groups) for tried in candidates}
    best = min(candidates, key=lambda tried: _error(held_out[tried]))
    model = fit_curve(sets, best)
    corrections = [held.correction for held in held_out[best]]
    return replace(model, corrections=tuple(corrections)), held_out[best]


def fit_curve(sets: Sequence[TrainingSet], amplitude: float) -> TimeModel:
    """The model without corrections."""
    profiles = [table.profiles(base) for table, base in sets]
    shares = 2 if any(len(table.grid.cu_count) > 1 for table, _ in sets) else 1
    uses_other = other_law_applies(profiles, [table.grid for table, _ in sets])
    gpus, data, named = [], [], []
    for table, base in sets:
        gpu, one, inputs = _time_data(table, base, uses_other)
        gpus.append(gpu)
        data.append(one)
        named.append(inputs)
    fitted = training.fit(data, named, shares, OTHER_LAW, amplitude)
    unknown = tuple(np.zeros((1, gpu.grid.size)) for gpu in gpus)
    none = (None,) * len(gpus)
    values, process = fitted.values, fitted.process
    model = TimeModel(tuple(gpus), values, process, shares, uses_other, none, unknown)
    misfits = []
    for number, (one, own) in enumerate(zip(data, profiles, strict=True)):
        law, _, _ = model.predict(own, gpus[number], number)
        misfits.append(misfit_of(one.log_time - law.logs(law.mean)))
    return replace(model, misfits=tuple(misfits))


def _hold_out(sets: Sequence[TrainingSet], amplitude: float, groups: int) -> tuple[HeldOut, ...]:
    """Predict every application by a curve trained without it, on every GPU at once."""
    applications = list(dict.fromkeys(a for table, _ in sets for a in table.applications))
    number = {name: i % groups for i, name in enumerate(applications)}
    of_kernels = [np.array([number[a] for a in table.applications]) for table, _ in sets]
    found = [_nothing_held_out(table, base) for table, base in sets]
    models: list[TimeModel | None] = []
    for group in range(min(groups, len(applications))):
        models.append(None)
        left = [int((own != group).sum()) for own in of_kernels]
        if not min(left) or sum(left) < 2:
            continue
        rest = [
            (table.select(np.flatnonzero(own != group)), base)
            for (table, base), own in zip(sets, of_kernels, strict=True)
        ]
        models[-1] = model = fit_curve(rest, amplitude)
        for i, ((table, base), own) in enumerate(zip(sets, of_kernels, strict=True)):
            mine = np.flatnonzero(own == group)
            if mine.size:
                profiles = table.select(mine).profiles(base)
                law, spread, _ = model.predict(profiles, model.gpus[i], i)
                found[i].predicted[mine], found[i].spread[mine] = law.logs(law.mean), spread
                found[i].group[mine] = group
    return tuple(replace(held, models=tuple(models)) for held in found)


def _nothing_held_out(table: Measurements, base: HardwareConfig) -> HeldOut:
    profiles = table.profiles(base)
    use = kernel_use(profiles)
    actual = log_surfaces(table.time_ms, table.grid, base).reshape(len(table.kernels), -1)
    gpu = Gpu.of(profiles, table.grid, use)
    return HeldOut(
        models=(),
        group=np.full(len(actual), -1),
        predicted=np.zeros_like(actual),
        spread=np.zeros_like(actual),
        actual=actual,
        named=similarity(profiles, use, use.memory / gpu.memory_peak),
    )


def _error(held_out: tuple[HeldOut, ...]) -> float:
    """Sum over the kernels of their mean |log error|."""
    return sum(
        float(np.abs(held.predicted - held.actual)[held.group >= 0].mean(axis=1).sum())
        for held in held_out
    )


def _time_data(
    table: Measurements, base: HardwareConfig, uses_other: bool
) -> tuple[Gpu, training.TrainingGpu, dict[str, Floats]]:
    profiles = table.profiles(base)
    gpu = Gpu.of(profiles, table.grid, kernel_use(profiles))
    use, named = training_use(profiles, gpu)
    targets = Targets.of(table.grid, base, table.grid.index(base))
    logs = log_surfaces(table.time_ms, table.grid, base)
    data = training.TrainingGpu(
        targets=targets,
        memory_share=use.memory / gpu.memory_peak,
        issue=active_issue(use, base.cu_count) / gpu.issue_peak,
        load=Load.of(use, targets.cu_count, base.cu_count),
        log_time=logs.reshape(len(logs), -1),
        other=other_law(profiles, table.grid) if uses_other else None,
    )
    return gpu, data, named


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


def calibrate(quantity: str, sets: Sequence[TrainingSet], held_out: Sequence[HeldOut]) -> Floats:
    """Quantiles of |log error| / (spread + 0.02) of kernels held out, at levels 0 to 1.

    The models that are scored never saw the kernels; but the other kernels' corrections come from
    curves that did, and the amplitude was chosen with them. Empty with fewer than three
    applications. No level is added for the few applications: the models that are scored learnt from
    fewer kernels than the one that predicts, so their scores are large enough (decision 0008).
    """
    applications = {a for table, _ in sets for a in table.applications}
    if len(applications) < 3:
        return np.empty(0)
    scores = []
    for (table, base), held in zip(sets, held_out, strict=True):
        actual = log_surfaces(table.quantity(quantity), table.grid, base)
        at = int(np.ravel_multi_index(table.grid.index(base), table.grid.shape))
        for group, model in enumerate(held.models):
            own, predicted = held.of_group(group)
            if model is None or not own.any():
                continue
            if quantity == "power":
                split = fit_power(model, table.select(np.flatnonzero(~own)), base)
                profiles = table.select(np.flatnonzero(own)).profiles(base)
                time, _, _ = model.predict(profiles, model.gpus[0], 0)
                law = split.predict(profiles, model.gpus[0], time)
                predicted = law.logs(law.mean)[:, table.grid.size :]
            missed = np.abs(predicted - actual.reshape(len(actual), -1)[own])
            score = missed / (held.spread[own] + LEAST_SPREAD)
            scores.append(np.delete(score, at, axis=1).ravel())
    if not sum(score.size for score in scores):
        return np.empty(0)
    return np.quantile(np.concatenate(scores), np.linspace(0, 1, SCORE_LEVELS))
