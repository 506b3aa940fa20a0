"""Training `sampled`, with applications held out in turn, for the blend and the intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.predictors.conditioning import misfit_of
from mlscale.predictors.intervals import calibrated_scores
from mlscale.predictors.sampled.curves import TimeCurve
from mlscale.predictors.sampled.model import BaseModel, Opinions, QuantityModel, power_curve

GROUPS = 5  # of applications that are held out in turn
BLEND, CLEARLY_BETTER = 0.5, 0.97  # weight of the trees; error of a pure one that ends the blend


@dataclass(frozen=True, eq=False)
class SampledKernels:
    """Training kernels of one GPU; log_clock (N,), log ratios (n, N), log_power None without."""

    profiles: Profiles
    log_clock: Floats
    log_time: Floats
    log_power: Floats | None

    @classmethod
    def of(cls, table: Measurements, base: HardwareConfig) -> Self:
        """All kernels of a table with one CU count and one memory clock."""
        has_power = table.power_samples is not None
        return cls(
            profiles=table.profiles(base),
            log_clock=np.log(np.array(table.grid.engine_mhz) / base.engine_mhz),
            log_time=table.log_ratios("time", base),
            log_power=table.log_ratios("power", base) if has_power else None,
        )

    def select(self, rows: Indices) -> Self:
        """Some of the kernels."""
        return replace(
            self,
            profiles=self.profiles.select(rows.tolist()),
            log_time=self.log_time[rows],
            log_power=None if self.log_power is None else self.log_power[rows],
        )

    def __len__(self) -> int:
        """The number of kernels."""
        return len(self.log_time)


def train(kernels: SampledKernels, quantity: str, seed: int) -> BaseModel:
    """Train on all kernels, and on those without each group of applications. Raises InputError."""
    groups = application_groups(kernels.profiles.applications)
    everyone = np.arange(len(kernels))
    parts = [kernels.select(np.setdiff1d(everyone, group)) for group in groups]
    held_out = [kernels.select(group) for group in groups]
    whole, *without = [fit(own, quantity, seed) for own in (kernels, *parts)]
    opinions = [
        model.time.opinions(own.profiles, TimeCurve(own.log_clock))
        for model, own in zip(without, held_out, strict=True)
    ]
    weight = tree_weight(opinions, [own.log_time for own in held_out])
    whole = replace(whole, tree_weight=weight)
    scores: list[Floats] = []
    missed: list[Floats] = []
    applications: list[str] = []
    for model, own in zip(without, held_out, strict=True):
        asked, predicted = replace(model, tree_weight=weight).opinions(own.profiles)
        actual = own.log_time
        if quantity == "power" and own.log_power is not None:
            actual = np.hstack([own.log_time, own.log_power])
        missed.append(actual - predicted)
        error = np.abs(missed[-1][:, -len(own.log_clock) :])
        score = error / asked.scale(own.log_clock)
        scores += list(score[:, own.log_clock != 0])
        applications += own.profiles.applications
    if not groups:
        return whole
    misfit = misfit_of(np.concatenate(missed))
    return replace(whole, scores=calibrated_scores(scores, applications), misfit=misfit)


def fit(kernels: SampledKernels, quantity: str, seed: int) -> BaseModel:
    """The model of kernels with the blend's usual weight, without intervals. InputError."""
    curve = TimeCurve(kernels.log_clock)
    time = QuantityModel.fit("time", kernels.profiles, curve, kernels.log_time, seed)
    power = None
    if quantity == "power" and kernels.log_power is not None:
        energy = power_curve(kernels.log_clock, kernels.log_time)
        power = QuantityModel.fit("power", kernels.profiles, energy, kernels.log_power, seed)
    nothing = np.zeros((1, len(kernels.log_clock) * (1 if power is None else 2)))
    base_mhz = kernels.profiles.base.engine_mhz
    return BaseModel(base_mhz, kernels.log_clock, BLEND, time, power, np.empty(0), nothing)


def application_groups(applications: Sequence[str]) -> list[Indices]:
    """Rows of the kernels of each group of applications; none of fewer than three applications."""
    names = list(dict.fromkeys(applications))
    if len(names) < 3:
        return []
    group = np.array([names.index(name) % GROUPS for name in applications])
    return [np.flatnonzero(group == number) for number in range(min(GROUPS, len(names)))]


def tree_weight(opinions: Sequence[Opinions], actual: Sequence[Floats]) -> float:
    """The weight of the trees: a half, unless one alone errs clearly less on kernels held out."""
    if not opinions:
        return BLEND

    def error(weight: float) -> float:
        pairs = zip(opinions, actual, strict=True)
        return float(sum(np.abs(own.blended(weight) - logs).sum() for own, logs in pairs))

    pure = min((0.0, 1.0), key=error)
    return pure if error(pure) < CLEARLY_BETTER * error(BLEND) else BLEND
