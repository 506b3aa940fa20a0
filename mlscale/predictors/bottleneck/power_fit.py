"""Training the energy split of `bottleneck`: maximum a posteriori by L-BFGS."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.predictors.baselines import log_surfaces
from mlscale.predictors.bottleneck import training
from mlscale.predictors.bottleneck.curve import Targets
from mlscale.predictors.bottleneck.power import LEAST_DYNAMIC_W, PowerModel, power_inputs, sigmoid
from mlscale.predictors.bottleneck.time import TimeModel
from mlscale.predictors.conditioning import misfit_of

POWER_STEPS = 200


def fit_power(time: TimeModel, table: Measurements, base: HardwareConfig) -> PowerModel:
    """Train the energy split on one GPU's measured times and powers. Raises InputError."""
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
