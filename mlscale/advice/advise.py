"""Advice for profiled kernels: from a model's surfaces to the clocks to set."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mlscale.advice.objectives import (
    SAME,
    Limits,
    best_index,
    feasible,
    objective_values,
    pareto_front,
    run_in_sequence,
    saving_percent,
    static_power,
)
from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.model import Model, feature_warnings, training_warnings
from mlscale.predictions import COVERAGE, Predictions

DYNAMIC_POWER = "power_w is dynamic power; give what the board draws beside it as --static-power W"


@dataclass(frozen=True)
class OperatingPoint:
    """A configuration and what it costs: [ms], [W], [mJ]; None where that is not known."""

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None


@dataclass(frozen=True)
class Recommendation:
    """The best configuration of one kernel, or the one for all kernels (kernel None).

    saving_percent: of the objective, against the base; saving_range: the interval of it where
    the predictors give intervals. slowdown_percent: of time, against the base. front: the Pareto
    front of time and energy from the quickest to the most frugal, of equal points the first in
    the order of the grid; empty where energy is unknown.
    """

    kernel: str | None
    best: OperatingPoint
    base: OperatingPoint
    saving_percent: float
    saving_range: tuple[float, float] | None
    slowdown_percent: float
    front: tuple[OperatingPoint, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What to set for each kernel.

    all_kernels: the one configuration for kernels that run one after the other; None for a single
    kernel and where no configuration keeps the limits for every kernel.
    """

    objective: str
    limits: Limits
    static_power_w: float | None
    kernels: tuple[Recommendation, ...]
    all_kernels: Recommendation | None
    warnings: tuple[str, ...]

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """That of each kernel, then the one for all of them where there is one."""
        return (*self.kernels, *([self.all_kernels] if self.all_kernels else []))


@dataclass(frozen=True)
class WholePower:
    """How power_w becomes the whole power of the board.

    kind: 'board', 'dynamic', or None for unknown, which is taken for board power. static_w [W]:
    what is added to power_w; None where that is not known. absent: why there is no power_w.
    """

    kind: str | None
    static_w: float | None
    absent: str | None

    @property
    def why_no_energy(self) -> str | None:
        """Why energy cannot be given; None where it can."""
        return self.absent or (DYNAMIC_POWER if self.static_w is None else None)


def advise(
    model: Model,
    profiles: Profiles,
    objective: str | None = None,
    limits: Limits | None = None,
    static_power_w: float | None = None,
) -> Advice:
    """The configuration of the model's grid that serves each kernel best.

    objective: 'energy', 'edp', 'ed2p', 'time' or 'power'; by default 'energy', or 'time' where
    energy cannot be known. limits: what a configuration must keep. static_power_w [W]: what the
    board draws beside dynamic power, the same at every configuration. Of equal configurations
    `best_index` says which is taken. Every surface is predicted once.

    Raises InputError where objective or limits need what model and profiles do not give, and
    where no configuration keeps the limits, saying what is nearest.

    Example:
        >>> import mlscale
        >>> model = mlscale.load("simulated-gcn3.mlscale")
        >>> profiles = mlscale.read_profiles("simulated-gcn3-profile.csv", model.base)
        >>> advice = mlscale.advise(model, profiles, "time")
        >>> str(advice.kernels[0].best.config)
        'EXAMPLE'
    """
    limits = limits or Limits()
    power = whole_power(model, profiles, static_power_w)
    warnings = training_warnings(model)
    if objective is None:
        objective = "time" if power.why_no_energy else "energy"
        if power.why_no_energy:
            warnings.append(f"time is minimised, not energy: {power.why_no_energy}")
    if not power.absent and power.kind is None and static_power_w is None:
        warnings.append("power_w is taken for board power; the model does not say what it is")
    _require_power(objective, limits, power)
    # Both intervals hold at once for at least COVERAGE when each misses half as often.
    coverage = 1 - (1 - COVERAGE) / (1 if power.absent else 2)
    predictions = model.predict(profiles, coverage)
    surfaces = absolute(predictions, power)
    power_w = surfaces["power"].values if "power" in surfaces else None
    search = _Search(
        grid=model.grid,
        base=model.grid.index(model.base),
        costs=_Costs(surfaces["time"].values, power_w),
        low=_interval_end(surfaces, "low"),
        high=_interval_end(surfaces, "high"),
        flags=predictions.flags,
        objective=objective,
        limits=limits,
        has_energy=power.why_no_energy is None,
    )
    kernels = tuple(search.for_kernel(k, kernel) for k, kernel in enumerate(profiles.kernels))
    all_kernels = search.for_all_kernels() if len(kernels) > 1 else None
    if len(kernels) > 1 and all_kernels is None:
        warnings.append("no single configuration keeps the limits for every kernel")
    warnings += feature_warnings(model, profiles)
    return Advice(objective, limits, static_power_w, kernels, all_kernels, tuple(warnings))


def whole_power(model: Model, profiles: Profiles, static_power_w: float | None) -> WholePower:
    """What is known of the power of model and profiles, with the static power that is given [W].

    Raises InputError where model and profiles differ in kind, and on static power that is of no
    use or senseless.
    """
    metadata = (model.card["metadata"], profiles.metadata)
    kinds = {str(m["power_kind"]) for m in metadata if m.get("power_kind") is not None}
    if len(kinds) > 1:
        raise InputError(
            f"the model's power_w is {metadata[0]['power_kind']} power, the profile's "
            f"{metadata[1]['power_kind']} power; give the profile the model's"
        )
    kind = kinds.pop() if kinds else None
    absent = None
    if "power" not in model.predictors:
        absent = "the model was trained without power"
    elif profiles.power_w is None:
        absent = "the profile has no power_w"
    if absent and static_power_w is not None:
        raise InputError(f"static power is of no use: {absent}")
    return WholePower(kind, static_power(kind, static_power_w), absent)


def absolute(predictions: Predictions, power: WholePower) -> dict[str, Surfaces]:
    """Predicted surfaces with their intervals in ms and W, static power added where it is known."""
    in_units = {}
    for quantity, surfaces in predictions.surfaces.items():
        at_base = predictions.profiles.quantity(quantity)[:, None, None, None]
        added = (power.static_w or 0.0) if quantity == "power" else 0.0
        with np.errstate(over="ignore"):
            low, high = (
                None if end is None else at_base * end + added
                for end in (surfaces.low, surfaces.high)
            )
            values = at_base * surfaces.values + added
        in_units[quantity] = replace(surfaces, values=values, low=low, high=high)
    return in_units


def _require_power(objective: str, limits: Limits, power: WholePower) -> None:
    """Raise InputError where objective or limits need power that is not there, or not whole."""
    needs = [] if objective == "time" else [f"the objective '{objective}'"]
    needs += ["a limit of power"] if limits.max_power_w is not None else []
    for need in needs:
        if power.absent:
            raise InputError(f"{need} needs power: {power.absent}")
        if power.static_w is None and need != "the objective 'power'":
            raise InputError(f"{need} needs the whole power: {DYNAMIC_POWER}")


@dataclass(frozen=True, eq=False)
class _Costs:
    """Time [ms] and power [W], static power included: (K, C, E, M), or (C, E, M) of one kernel."""

    time_ms: Floats
    power_w: Floats | None

    def of_kernel(self, k: int) -> "_Costs":
        return _Costs(self.time_ms[k], None if self.power_w is None else self.power_w[k])

    def in_objective(self, objective: str) -> Floats:
        return objective_values(objective, self.time_ms, self.power_w)


def _interval_end(surfaces: Mapping[str, Surfaces], end: str) -> _Costs | None:
    """The costs at the 'low' or 'high' end of the intervals; None unless all quantities have it."""
    values = {quantity: getattr(surface, end) for quantity, surface in surfaces.items()}
    if any(v is None for v in values.values()):
        return None
    return _Costs(values["time"], values.get("power"))


@dataclass(frozen=True, eq=False)
class _Search:
    """What the best configurations are sought on: the costs of K kernels, objective and limits.

    low, high: the ends of the intervals; None unless every quantity has them.
    """

    grid: ConfigGrid
    base: Index
    costs: _Costs
    low: _Costs | None
    high: _Costs | None
    flags: tuple[tuple[str, ...], ...]
    objective: str
    limits: Limits
    has_energy: bool

    def for_kernel(self, k: int, name: str) -> Recommendation:
        """The best configuration of one kernel. Raises InputError where none keeps the limits."""
        costs = self.costs.of_kernel(k)
        base_ms = float(costs.time_ms[self.base])
        try:
            best = best_index(self.objective, costs.time_ms, costs.power_w, base_ms, self.limits)
        except InputError as error:
            raise InputError(f"kernel '{name}': {error}") from None
        savings = None
        if self.low and self.high:
            at_base = costs.in_objective(self.objective)[self.base]
            low, high = (
                float(saving_percent(side.of_kernel(k).in_objective(self.objective)[best], at_base))
                for side in (self.high, self.low)
            )
            savings = low, high
        recommendation = self._recommendation(costs, best)
        return replace(recommendation, kernel=name, saving_range=savings, flags=self.flags[k])

    def for_all_kernels(self) -> Recommendation | None:
        """The best that keeps the limits for every kernel; None where no configuration does."""
        each = self.costs
        base_ms = each.time_ms[:, *self.base][:, None, None, None]
        keeps = feasible(self.limits, each.time_ms, each.power_w, base_ms).all(axis=0)
        if not keeps.any():
            return None
        total = _Costs(*run_in_sequence(each.time_ms, each.power_w))
        allowed_ms = np.where(keeps, total.time_ms, np.nan)
        total_base_ms = float(total.time_ms[self.base])
        best = best_index(self.objective, allowed_ms, total.power_w, total_base_ms)
        return self._recommendation(total, best)

    def _recommendation(self, costs: _Costs, best: Index) -> Recommendation:
        """What a configuration costs and saves, and the front beside it."""
        values = costs.in_objective(self.objective)
        return Recommendation(
            kernel=None,
            best=self._point(costs, best),
            base=self._point(costs, self.base),
            saving_percent=float(saving_percent(values[best], values[self.base])),
            saving_range=None,
            slowdown_percent=float(100 * (costs.time_ms[best] / costs.time_ms[self.base] - 1)),
            front=self._front(costs),
            flags=(),
        )

    def _point(self, costs: _Costs, index: Index) -> OperatingPoint:
        power_w = None if costs.power_w is None else float(costs.power_w[index])
        energy_mj = float(costs.in_objective("energy")[index]) if self.has_energy else None
        config = self.grid.config(index)
        return OperatingPoint(config, float(costs.time_ms[index]), power_w, energy_mj)

    def _front(self, costs: _Costs) -> tuple[OperatingPoint, ...]:
        points: list[OperatingPoint] = []
        if self.has_energy:
            for c, e, m in np.argwhere(
                pareto_front(costs.time_ms, costs.in_objective("energy"))
            ).tolist():
                new = self._point(costs, (c, e, m))
                if not any(math.isclose(new.time_ms, p.time_ms, rel_tol=SAME) for p in points):
                    points.append(new)
        return tuple(sorted(points, key=lambda point: point.time_ms))
