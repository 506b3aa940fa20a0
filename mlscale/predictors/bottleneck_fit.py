"""From measurements to the models of `bottleneck`: time, power, and the intervals' scores."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlscale.counters.kernel_use import kernel_use
from mlscale.errors import DataWarning
from mlscale.grid import HardwareConfig
from mlscale.measurements import Measurements
from mlscale.predictors import bottleneck_training as training
from mlscale.predictors.baselines import log_surfaces
from mlscale.predictors.bottleneck_power import LEAST_DYNAMIC_W, PowerModel, power_inputs, sigmoid
from mlscale.predictors.bottleneck_surface import Load, Targets, active_issue
from mlscale.predictors.bottleneck_time import (
    OTHER_LAW,
    Gpu,
    TimeModel,
    other_law,
    other_law_applies,
    training_use,
)
from mlscale.predictors.conditioning import misfit_of
from mlscale.predictors.interface import TrainingSet

if TYPE_CHECKING:
    from mlscale.predictors.bottleneck import Bottleneck

Floats = NDArray[np.float64]

CALIBRATION_FOLDS = 10
AMPLITUDES, AMPLITUDE_FOLDS = (0.1, 1.0, 3.0), 4
SCORE_LEVELS = 1001
POWER_STEPS = 200
RISING = 1.02


def fit_time(sets: Sequence[TrainingSet], amplitude: float | None) -> TimeModel:
    """Train the time model on one GPU or several. Raises InputError.

    amplitude: of the process; None is 1, and with several CU counts the one of AMPLITUDES that
    predicts training applications best when they are held out.
    """
    if amplitude is None:
        several = any(len(table.grid.cu_count) > 1 for table, _ in sets)
        amplitude = _best_amplitude(sets) if several else 1.0
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
    model = TimeModel(tuple(gpus), fitted.values, fitted.process, shares, uses_other, unknown)
    misfits = []
    for number, (one, own) in enumerate(zip(data, profiles, strict=True)):
        law, _, _ = model.predict(own, gpus[number], number)
        misfits.append(misfit_of(one.log_time - law.logs(law.mean)))
    return replace(model, misfits=tuple(misfits))


def _best_amplitude(sets: Sequence[TrainingSet]) -> float:
    """The amplitude of least mean |log error| over applications held out in four groups."""
    applications = list(dict.fromkeys(a for table, _ in sets for a in table.applications))
    errors = dict.fromkeys(AMPLITUDES, 0.0)
    for group in range(AMPLITUDE_FOLDS):
        held_out = set(applications[group::AMPLITUDE_FOLDS])
        parts = [np.array([a in held_out for a in table.applications]) for table, _ in sets]
        if any((~part).sum() < 2 for part in parts):
            continue
        rest = [
            (table.select(np.flatnonzero(~part)), base)
            for (table, base), part in zip(sets, parts, strict=True)
        ]
        for amplitude in AMPLITUDES:
            model = fit_time(rest, amplitude)
            for number, ((table, base), part) in enumerate(zip(sets, parts, strict=True)):
                test = table.select(np.flatnonzero(part))
                if test.kernels:
                    law, _, _ = model.predict(test.profiles(base), model.gpus[number], number)
                    logs = law.logs(law.mean)
                    actual = log_surfaces(test.time_ms, test.grid, base).reshape(logs.shape)
                    errors[amplitude] += float(np.abs(logs - actual).mean(axis=1).sum())
    return min(AMPLITUDES, key=lambda amplitude: errors[amplitude])


def _time_data(
    table: Measurements, base: HardwareConfig, uses_other: bool
) -> tuple[Gpu, training.TrainingGpu, dict[str, Floats]]:
    profiles = table.profiles(base)
    gpu = Gpu.of(profiles, table.grid, kernel_use(profiles))
    _warn_of_rising_times(table)
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


def fit_power(time: TimeModel, table: Measurements, base: HardwareConfig) -> PowerModel:
    """Train the energy split on one GPU's measured times and powers. Raises InputError."""
    from scipy.optimize import minimize

    gpu, profiles = time.gpus[0], table.profiles(base)
    log_time = log_surfaces(table.time_ms, table.grid, base).reshape(len(table.kernels), -1)
    power = table.quantity("power")
    log_power = log_surfaces(power, table.grid, base).reshape(log_time.shape)
    raw = power_inputs(profiles, gpu)
    given = ~np.isnan(raw).all(axis=0)
    mean, spread = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    mean[given] = np.nanmean(raw[:, given], axis=0)
    spread[given] = np.nanstd(raw[:, given], axis=0) + 1e-9
    objective = _PowerObjective(
        points=np.nan_to_num((raw - mean) / spread),
        base_w=profiles.quantity("power"),
        log_time=log_time,
        log_power=log_power,
        targets=Targets.of(table.grid, base, table.grid.index(base)),
    )
    found = minimize(
        objective,
        objective.start(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": POWER_STEPS, "maxcor": 20},
    )
    parts = objective.parts(found.x)
    model = PowerModel(
        idle_w=parts.idle_w,
        log_core=parts.log_core,
        log_memory=parts.log_memory,
        split=parts.split,
        mean=mean,
        spread=spread,
        misfit=np.zeros((1, 2 * gpu.grid.size)),
    )
    law = model.predict(profiles, gpu, time.predict(profiles, gpu, 0)[0])
    left_over = np.hstack([log_time, log_power]) - law.logs(law.mean)
    return replace(model, misfit=misfit_of(left_over))


@dataclass(frozen=True, eq=False)
class _Parts:
    idle_base_w: float
    idle_w: Floats
    log_core: Floats
    log_memory: Floats
    split: Floats


@dataclass(frozen=True, eq=False)
class _PowerObjective:
    """Minus the log posterior of the energy split, and its gradient (accuracy.md 3)."""

    points: Floats
    base_w: Floats
    log_time: Floats
    log_power: Floats
    targets: Targets

    @property
    def _sizes(self) -> tuple[int, int, int, int, int]:
        steps = self.targets.steps
        engines, memories = int(steps[1].max()) + 1, int(steps[2].max()) + 1
        return 1, self.log_time.shape[1], engines, memories, 1 + self.points.shape[1]

    def start(self) -> Floats:
        """The priors' means."""
        return np.concatenate([mean for mean, _, _ in self._priors()])

    def _priors(self) -> list[tuple[Floats, float, float]]:
        """Mean, standard deviation and weight of each group."""
        _, configs, engines, memories, inputs = self._sizes
        idle = np.log(0.6 * self.base_w.min())
        return [
            (np.array([idle]), 0.3, 1.0),
            (self.log_power.mean(axis=0).reshape(configs), 0.2, 0.2),
            (np.zeros(engines), 0.5, 1.0),
            (np.zeros(memories), 0.1, 1.0),
            (np.zeros(inputs), 1.0, 1.0),
        ]

    def parts(self, x: Floats) -> _Parts:
        """The vector's groups; tables are 0 at the base."""
        idle, ratio, core, memory, split = np.split(x, np.cumsum(self._sizes)[:-1])
        ratio, core, memory = ratio.copy(), core.copy(), memory.copy()
        ratio[self.targets.base] = 0
        core[self.targets.base_steps[1]] = 0
        memory[self.targets.base_steps[2]] = 0
        idle_base = float(np.exp(idle[0]))
        return _Parts(idle_base, idle_base * np.exp(ratio), core, memory, split)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        value, gradient, at = 0.0, np.zeros_like(x), 0
        for mean, sd, weight in self._priors():
            part = slice(at, at + len(mean))
            off = (x[part] - mean) / sd
            value += 0.5 * weight * float(off @ off)
            gradient[part] += weight * off / sd
            at = part.stop
        parts, steps = self.parts(x), self.targets.steps
        phi = sigmoid(parts.split[0] + self.points @ parts.split[1:])[:, None]
        core, memory = np.exp(parts.log_core[steps[1]]), np.exp(parts.log_memory[steps[2]])
        energy = (1 - phi) * core + phi * memory
        dynamic = self.base_w[:, None] - parts.idle_base_w
        above = dynamic > LEAST_DYNAMIC_W
        dynamic = np.maximum(dynamic, LEAST_DYNAMIC_W)
        rate = np.exp(-self.log_time)
        watts = parts.idle_w + dynamic * energy * rate
        base_w = parts.idle_base_w + dynamic
        error = np.log(watts / base_w) - self.log_power
        root = np.sqrt(error**2 + training.ROBUST_SCALE**2)
        scale = training.DATA_WEIGHT / error.shape[1]
        value += scale * float((root - training.ROBUST_SCALE).sum())
        by_log = scale * error / root
        by_watts = by_log / watts
        by_base = -by_log.sum(axis=1, keepdims=True) / base_w
        by_dynamic = (by_watts * energy * rate).sum(axis=1, keepdims=True) + by_base
        by_energy = by_watts * dynamic * rate
        idle, ratio, log_core, log_memory, split = np.split(gradient, np.cumsum(self._sizes)[:-1])
        by_idle = by_watts.sum(axis=0)
        own = by_idle * parts.idle_w
        idle += own.sum() + parts.idle_base_w * float(by_base.sum() - (by_dynamic * above).sum())
        own[self.targets.base] = 0
        ratio += own
        log_core += self._by_step(1, (by_energy * (1 - phi)).sum(axis=0) * core)
        log_memory += self._by_step(2, (by_energy * phi).sum(axis=0) * memory)
        by_phi = (by_energy * (memory - core)).sum(axis=1) * (phi * (1 - phi))[:, 0]
        split[0] += by_phi.sum()
        split[1:] += self.points.T @ by_phi
        return value, gradient

    def _by_step(self, axis: int, by_config: Floats) -> Floats:
        steps = self.targets.steps[axis]
        summed = np.bincount(steps, by_config, minlength=int(steps.max()) + 1)
        summed[self.targets.base_steps[axis]] = 0
        return np.asarray(summed, dtype=np.float64)


def calibrate(predictor: "Bottleneck", sets: Sequence[TrainingSet]) -> Floats:
    """Quantiles of |log error| / (spread + 0.02) of kernels held out, at levels 0 to 1.

    Applications are held out in ten groups, on every GPU at once; the models that are scored
    never saw them (only the amplitude stays as chosen). Empty with fewer than three applications.
    A new kernel's score exceeds the level q of n applications' with probability 1 - q n / (n + 1):
    levels are shifted by that.
    """
    applications = list(dict.fromkeys(a for table, _ in sets for a in table.applications))
    if len(applications) < 3:
        return np.empty(0)
    groups = min(CALIBRATION_FOLDS, len(applications))
    amplitude = predictor.time_.process.amplitude
    scores = []
    for group in range(groups):
        held_out = set(applications[group::groups])
        kept = [[a not in held_out for a in table.applications] for table, _ in sets]
        if any(sum(keep) < 2 for keep in kept):
            continue
        rest = [
            (table.select(np.flatnonzero(keep)), base)
            for (table, base), keep in zip(sets, kept, strict=True)
        ]
        model = type(predictor)(quantity=predictor.quantity, intervals=False, amplitude=amplitude)
        model.fit([table for table, _ in rest], [base for _, base in rest])
        for (table, base), keep in zip(sets, kept, strict=True):
            test = table.select(np.flatnonzero(~np.array(keep)))
            if test.kernels:
                scores.append(_scores(model, test, base))
    if not scores:
        return np.empty(0)
    pooled = np.concatenate(scores)
    shift = (len(applications) + 1) / len(applications)
    return np.quantile(pooled, np.minimum(1, shift * np.linspace(0, 1, SCORE_LEVELS)))


def _scores(model: "Bottleneck", test: Measurements, base: HardwareConfig) -> Floats:
    """The scores of held-out kernels at every configuration but the base, flat."""
    predicted, scale = model.log_factors(test.profiles(base))
    actual = log_surfaces(test.quantity(model.quantity), test.grid, base)
    scores = np.abs(predicted - actual.reshape(predicted.shape)) / scale
    at = int(np.ravel_multi_index(test.grid.index(base), test.grid.shape))
    return np.asarray(np.delete(scores, at, axis=1).ravel())
