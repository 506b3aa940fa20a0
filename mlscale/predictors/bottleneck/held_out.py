"""Training kernels that time models were trained without, and how they are mispredicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.predictors.bottleneck.corrections import Correction, TimeTrees, weight_of_trees
from mlscale.predictors.bottleneck.curve import blended
from mlscale.predictors.bottleneck.fit import GpuKernels
from mlscale.predictors.bottleneck.kernels import GpuPeaks
from mlscale.predictors.bottleneck.time import TimeModel
from mlscale.predictors.conditioning import SurfacePrior


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

    @cached_property
    def correction(self) -> Correction | None:
        """Learnt from all kernels that were held out; None where it does not help them."""
        better = self._error_of(self._corrected) < self.error
        return self._learnt_from(self.groups) if better else None

    @cached_property
    def trees(self) -> TimeTrees | None:
        """Grown from all kernels; None where they do not help those held out."""
        if not self._by_trees:
            return None
        curve, trees = np.concatenate(self._by_curve), np.concatenate(self._by_trees)
        actual = np.concatenate([group.actual for group in self.groups])
        applications = [name for group in self.groups for name in group.kernels.applications]
        weight = weight_of_trees(curve, trees, actual, applications)
        if not weight:
            return None
        named = self.kernels.traits.similarity(self.kernels.gpu)
        return TimeTrees.fit(named, self.kernels.log_ratios["time"], weight)

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
            rest = others(self.kernels, group.rows)
            trees = TimeTrees.fit(rest.traits.similarity(rest.gpu), rest.log_ratios["time"])
            predicted.append(trees.predict(group.kernels.traits.similarity(rest.gpu)))
        return predicted

    @property
    def error(self) -> float:
        """Sum over the kernels of their mean |log error| by the curve alone."""
        return self._error_of([group.predicted for group in self.groups])

    def _error_of(self, predicted: list[Floats]) -> float:
        actual = [group.actual for group in self.groups]
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
        actual = np.concatenate([group.actual for group in groups])
        return Correction.fit(self._similarity(groups), predicted, actual)

    def _similarity(self, groups: Sequence[HeldOutGroup]) -> dict[str, Floats]:
        """Return what makes the kernels alike, with the peaks that all kernels show."""
        rows = np.concatenate([group.rows for group in groups])
        return self.kernels.traits.select(rows).similarity(self.kernels.gpu)


def others(kernels: GpuKernels, rows: Indices) -> GpuKernels:
    """Return the kernels that are not in those rows, with the peaks that these show."""
    return kernels.select(np.setdiff1d(np.arange(len(kernels)), rows))
