"""Training the time and the power of `bottleneck`: many fits of one kind as one batch in torch.

A training makes about a dozen fits of the curve, one with all kernels and one without each group of
applications; a study makes as many for each of its folds. They do not depend on one another.
B fits, n kernels of each, filled up to the most that one has; N configurations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import torch

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GridRatios,
    KernelLoad,
    base_position,
    latent_count,
    table_weights,
)
from mlscale.predictors.bottleneck.posterior import (
    Posterior,
    Prior,
    Tensor,
    Values,
    robust_loss,
)
from mlscale.predictors.bottleneck.power import (
    INPUTS,
    PowerModel,
    PowerSplit,
    energy_weights,
    power_inputs,
)
from mlscale.predictors.bottleneck.process import Process
from mlscale.predictors.bottleneck.time import (
    GpuPeaks,
    KernelTraits,
    TimeModel,
    blended,
    rule_and_weight,
    value_shapes,
)

CURVE_STEPS, POWER_STEPS = 120, 200
NUMBERS_PER_BATCH = 250_000  # kernels x configurations of the fits that run together
# Prior means and standard deviations of the curve's numbers, see `value_shapes`; decision 0008.
CURVE_PRIORS = {
    "gpu_sharpness": (0.0, 0.3),
    "gain": (0.0, 0.3),
    "offset": (0.0, 1.0),
    "capacity": (0.0, 0.2),
    "softness": (float(np.log(0.7)), 0.5),
    "slowing": (0.0, 0.1),
    "cu": (0.0, 0.05),
    "engine": (0.0, 0.03),
    "memory": (0.0, 0.03),
}
# By the number of shares: how sharp bottlenecks are thought to be.
SHARPNESS, SHARPNESS_SD = {1: float(np.log(5)), 2: float(np.log(3))}, 0.5
IDLE_SHARE = 0.6  # of the least power at the base: what the idle watts are thought to be


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """One GPU's measurements with a base, and what its K kernels' profiles there tell."""

    table: Measurements
    base: HardwareConfig
    traits: KernelTraits

    @cached_property
    def log_time(self) -> Floats:
        """Log time ratios (K, N)."""
        return self.log_ratios("time")

    @cached_property
    def log_power(self) -> Floats:
        """Log power ratios (K, N). Raises InputError where power was not measured."""
        return self.log_ratios("power")

    def log_ratios(self, quantity: str) -> Floats:
        """Log ratios of a quantity (K, N)."""
        relative = self.table.relative(quantity, self.base)
        return np.log(relative).reshape(len(relative), self.table.grid.size)

    @cached_property
    def base_w(self) -> Floats:
        """Power at the base (K,). Raises InputError."""
        return self.table.profiles(self.base).quantity("power")

    @cached_property
    def similarity(self) -> dict[str, Floats]:
        """What makes the kernels alike, (K,) each; see `KernelTraits.similarity`."""
        use = self.traits.use
        return self.traits.similarity(
            GpuPeaks.of(self.table.device, self.table.grid, self.base, use)
        )

    @property
    def with_rule(self) -> bool:
        """Whether Wang and Chu's rule stands beside the curve."""
        return self.traits.rule is not None


@dataclass(frozen=True, eq=False)
class CurveFit:
    """One fit of the curve: on some kernels of each table; amplitude: of the process."""

    tables: tuple[TrainingTable, ...]
    rows: tuple[Indices, ...]
    amplitude: float

    @cached_property
    def traits(self) -> list[KernelTraits]:
        """Those of the kernels of each table."""
        pairs = zip(self.tables, self.rows, strict=True)
        return [known.traits.select(rows) for known, rows in pairs]

    @cached_property
    def gpus(self) -> tuple[GpuPeaks, ...]:
        """The GPU of each table, with the peaks that these kernels show."""
        return tuple(
            GpuPeaks.of(known.table.device, known.table.grid, known.base, traits.use)
            for known, traits in zip(self.tables, self.traits, strict=True)
        )

    @cached_property
    def process(self) -> Process:
        """The process over these kernels' inputs, without weights."""
        pairs = zip(self.gpus, self.traits, strict=True)
        return Process.of([gpu.inputs(traits.use) for gpu, traits in pairs], self.amplitude)

    @property
    def shares(self) -> int:
        """1, or 2 where a table has several CU counts."""
        return 1 + any(len(known.table.grid.cu_count) > 1 for known in self.tables)

    @property
    def numbers(self) -> int:
        """Kernels x configurations."""
        return sum(
            len(rows) * known.table.grid.size
            for known, rows in zip(self.tables, self.rows, strict=True)
        )

    @property
    def kind(self) -> Any:
        """Fits of the same kind can run as one batch."""
        return [(known.table.grid, known.base, known.with_rule) for known in self.tables]

    def priors(self) -> dict[str, Prior]:
        """Those of every number of the curve, see `value_shapes`."""
        shapes = value_shapes([known.table.grid for known in self.tables], self.shares)
        known = {**CURVE_PRIORS, "sharpness": (SHARPNESS[self.shares], SHARPNESS_SD)}
        return {
            name: Prior(shape, *known[name.rstrip("0123456789")]) for name, shape in shapes.items()
        }

    def model(self, values: dict[str, Floats], alpha: Floats) -> TimeModel:
        """The model without corrections and misfits; alpha (L, n): the weights, whitened."""
        return TimeModel(
            gpus=self.gpus,
            values={name: own for name, own in values.items() if name != "alpha"},
            process=replace(self.process, weights=alpha @ self.process.whitening),
            shares=self.shares,
            uses_rule=self.tables[0].with_rule,
            corrections=(None,) * len(self.gpus),
            misfits=tuple(np.zeros((1, gpu.grid.size)) for gpu in self.gpus),
        )


@dataclass(frozen=True, eq=False)
class PowerFit:
    """One fit of the power's split, on some kernels of a table; gpu: the time model's."""

    known: TrainingTable
    rows: Indices
    gpu: GpuPeaks

    @cached_property
    def raw_inputs(self) -> Floats:
        """The kernels' `power_inputs`."""
        return power_inputs(self.known.traits.select(self.rows).use, self.gpu)

    @cached_property
    def scaling(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the inputs; 0 and 1 of one that no kernel has."""
        mean, spread = np.zeros(len(INPUTS)), np.ones(len(INPUTS))
        some = ~np.isnan(self.raw_inputs).all(axis=0)
        mean[some] = np.nanmean(self.raw_inputs[:, some], axis=0)
        spread[some] = np.nanstd(self.raw_inputs[:, some], axis=0) + 1e-9
        return mean, spread

    @property
    def points(self) -> Floats:
        """The standardised inputs (n, D)."""
        mean, spread = self.scaling
        return np.nan_to_num((self.raw_inputs - mean) / spread)

    @property
    def numbers(self) -> int:
        """Kernels x configurations."""
        return len(self.rows) * self.gpu.grid.size

    @property
    def kind(self) -> Any:
        """Fits of the same kind can run as one batch."""
        return self.gpu.grid, self.gpu.base

    def priors(self) -> dict[str, Prior]:
        """Log idle watts at the base, of each configuration, of clocks; log odds of the split."""
        _, engines, memories = self.gpu.grid.shape
        idle = np.log(IDLE_SHARE * self.known.base_w[self.rows].min())
        ratios = self.known.log_power[self.rows].mean(axis=0)
        return {
            "idle": Prior((1,), idle, 0.3),
            "idle_ratio": Prior((self.gpu.grid.size,), ratios, 0.2 / np.sqrt(0.2)),
            "core": Prior((engines,), 0.0, 0.5),
            "memory": Prior((memories,), 0.0, 0.1),
            "split": Prior((1 + len(INPUTS),), 0.0, 1.0),
        }

    def model(self, values: dict[str, Floats], idle_w: Floats) -> PowerModel:
        """The model without a misfit."""
        grid, (_, engine, memory) = self.gpu.grid, self.gpu.grid.index(self.gpu.base)
        values["core"][engine] = values["memory"][memory] = 0
        mean, spread = self.scaling
        return PowerModel(
            idle_w=idle_w,
            log_core=values["core"],
            log_memory=values["memory"],
            split=values["split"],
            mean=mean,
            spread=spread,
            misfit=np.zeros((1, 2 * grid.size)),
        )


Fit = TypeVar("Fit", CurveFit, PowerFit)
Model = TypeVar("Model", TimeModel, PowerModel)


def fit_curves(fits: Sequence[CurveFit]) -> list[TimeModel]:
    """Train a time model, without corrections and misfits, for every fit."""

    def train(some: Sequence[CurveFit]) -> list[TimeModel]:
        batch = CurveBatch(some)
        return batch.models(batch.posterior.most_probable(CURVE_STEPS))

    return _in_batches(fits, train)


def fit_powers(fits: Sequence[PowerFit]) -> list[PowerModel]:
    """Train a power model, without a misfit, for every fit."""

    def train(some: Sequence[PowerFit]) -> list[PowerModel]:
        batch = PowerBatch(some)
        return batch.models(batch.posterior.most_probable(POWER_STEPS))

    return _in_batches(fits, train)


def _in_batches(fits: Sequence[Fit], train: Callable[[Sequence[Fit]], list[Model]]) -> list[Model]:
    """Train fits of one kind together, as many as the processor's cache holds."""
    models: dict[int, Model] = {}
    left = list(range(len(fits)))
    while left:
        same = [i for i in left if fits[i].kind == fits[left[0]].kind]
        batch = same[: max(1, NUMBERS_PER_BATCH // max(fits[i].numbers for i in same))]
        models |= zip(batch, train([fits[i] for i in batch]), strict=True)
        left = [i for i in left if i not in models]
    return [models[i] for i in range(len(fits))]


@dataclass(frozen=True, eq=False)
class _GpuBatch:
    """One GPU's kernels in every fit of a batch, as tensors.

    real (B, n): 1 of a kernel, 0 of what fills up the batch. where: these among all kernels.
    rule: the log times of Wang and Chu's rule and its weight.
    """

    load: KernelLoad
    ratios: GridRatios
    weights: list[Tensor]
    log_time: Tensor
    rule: list[Tensor] | None
    real: Tensor
    where: slice

    @classmethod
    def of(cls, fits: Sequence[CurveFit], g: int, start: int) -> Self:
        known = fits[0].tables[g]
        ratios = GridRatios.of(known.table.grid, known.base)
        loads = [vars(fit.gpus[g].load(fit.traits[g].use, ratios)) for fit in fits]
        rules = [rule_and_weight(fit.traits[g]) for fit in fits]
        real = _stacked([np.ones(len(fit.rows[g])) for fit in fits], fill=0.0)
        weights = table_weights(known.table.grid, known.base, known.table.grid)
        return cls(
            load=KernelLoad(
                **{name: _stacked([load[name] for load in loads]) for name in loads[0]}
            ),
            ratios=GridRatios(**{name: _tensor(value) for name, value in vars(ratios).items()}),
            weights=[_tensor(one) for one in weights],
            log_time=_stacked([fit.tables[g].log_time[fit.rows[g]] for fit in fits]),
            rule=[_stacked(parts) for parts in zip(*rules, strict=True)]
            if known.with_rule
            else None,
            real=real,
            where=slice(start, start + real.shape[1]),
        )

    def loss(self, g: int, values: Values, latents: Tensor) -> Tensor:
        """Minus the log likelihoods (B,) of this GPU's kernels; latents (B, L, all kernels)."""
        curve = BottleneckCurve.of(torch, values, (g, self.weights), self.load, self.ratios)
        log_time = curve.log_time(latents[..., self.where])
        if self.rule is not None:
            log_time = blended(log_time, *self.rule)
        return robust_loss(log_time, self.log_time, self.real)


class CurveBatch:
    """Fits of the curve that run together. places: of each fit's kernels among the batch's."""

    def __init__(self, fits: Sequence[CurveFit]) -> None:
        self.fits = fits
        self._gpus: list[_GpuBatch] = []
        for g in range(len(fits[0].tables)):
            start = self._gpus[-1].where.stop if self._gpus else 0
            self._gpus.append(_GpuBatch.of(fits, g, start))
        size = self._gpus[-1].where.stop
        starts = [gpu.where.start for gpu in self._gpus]
        self._places = [
            np.concatenate([s + np.arange(len(r)) for s, r in zip(starts, fit.rows, strict=True)])
            for fit in fits
        ]
        bases = np.zeros((len(fits), size, size))
        for basis, fit, place in zip(bases, fits, self._places, strict=True):
            basis[np.ix_(place, place)] = fit.process.basis
        self._basis = torch.from_numpy(bases)
        alpha = Prior((latent_count(fits[0].shares), size), 0.0, 1.0)
        self.posterior = Posterior([{**fit.priors(), "alpha": alpha} for fit in fits], self._loss)

    def _loss(self, values: Values) -> Tensor:
        latents = values["alpha"] @ self._basis
        return torch.stack([g.loss(i, values, latents) for i, g in enumerate(self._gpus)]).sum(0)

    def models(self, values: Sequence[dict[str, Floats]]) -> list[TimeModel]:
        """The models at each fit's parameters."""
        return [
            fit.model(own, own["alpha"][:, place])
            for fit, own, place in zip(self.fits, values, self._places, strict=True)
        ]


class PowerBatch:
    """Fits of the power's split that run together."""

    def __init__(self, fits: Sequence[PowerFit]) -> None:
        self.fits = fits
        grid, base = fits[0].gpu.grid, fits[0].gpu.base
        self._base = base_position(grid, base)
        self._elsewhere = _tensor(np.where(np.arange(grid.size) == self._base, 0.0, 1.0))
        self._weights = [_tensor(weights) for weights in energy_weights(grid, base)]
        self._log_time, self._log_power, self._base_w = (
            _stacked([getattr(fit.known, name)[fit.rows] for fit in fits])
            for name in ("log_time", "log_power", "base_w")
        )
        self._points = _stacked([fit.points for fit in fits])
        self._real = _stacked([np.ones(len(fit.rows)) for fit in fits], fill=0.0)
        self.posterior = Posterior([fit.priors() for fit in fits], self._loss)

    def _loss(self, values: Values) -> Tensor:
        idle_w = torch.exp(values["idle"] + self._elsewhere * values["idle_ratio"])
        log_energy = [values["core"] @ self._weights[0], values["memory"] @ self._weights[1]]
        split = PowerSplit.of(torch, idle_w, log_energy, self._base_w, self._base)
        odds = values["split"][:, None, :1] + self._points @ values["split"][:, 1:, None]
        log_power = split.log_power(odds[..., 0], self._log_time)
        return robust_loss(log_power, self._log_power, self._real)

    def models(self, values: Sequence[dict[str, Floats]]) -> list[PowerModel]:
        """The models at each fit's parameters."""
        elsewhere = self._elsewhere.numpy()
        return [
            fit.model(own, np.exp(own["idle"] + elsewhere * own["idle_ratio"]))
            for fit, own in zip(self.fits, values, strict=True)
        ]


def _stacked(arrays: list[Floats], fill: float = 1.0) -> Tensor:
    """Arrays (n, ...) of several fits as one (B, n, ...), filled up to the longest."""
    size = max(len(array) for array in arrays)
    stack = np.full((len(arrays), size, *arrays[0].shape[1:]), fill)
    for own, array in zip(stack, arrays, strict=True):
        own[: len(array)] = array
    return torch.from_numpy(stack)


def _tensor(value: Any) -> Any:
    """An array as a tensor; anything else as it is."""
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
