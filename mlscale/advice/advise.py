"""Advice for profiled kernels: from a model's surfaces to the clocks to set."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.model import Model, feature_warnings, training_warnings

TimeAndPower = tuple[Floats, Floats | None]

COVERAGE = 0.9
DYNAMIC = "power_w is dynamic power; give what the board draws beside it as --static-power W"


@dataclass(frozen=True)
class Point:
    """A configuration and what it costs: [ms], [W], [mJ]; None where that is not known."""

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None


@dataclass(frozen=True)
class Choice:
    """The best configuration of one kernel, or of all together (kernel None).

    saving_percent: of the objective, against the base; saving_range: the interval of it where
    the predictors give intervals. slowdown_percent: of time, against the base. front: the Pareto
    front of time and energy from the quickest to the most frugal, of equal points the first in
    the order of the grid; empty where energy is unknown.
    """

    kernel: str | None
    best: Point
    base: Point
    saving_percent: float
    saving_range: tuple[float, float] | None
    slowdown_percent: float
    front: tuple[Point, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What to set for each kernel, and for all together where one configuration suits them all."""

    objective: str
    limits: Limits
    static_power_w: float | None
    choices: tuple[Choice, ...]
    together: Choice | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Predicted:
    """Time [ms] and power [W], static power included, of K kernels: (K, C, E, M).

    low and high: likewise as (time, power), where the predictors give intervals.
    """

    grid: ConfigGrid
    base: Index
    time_ms: Floats
    power_w: Floats | None
    has_energy: bool
    low: TimeAndPower | None
    high: TimeAndPower | None
    flags: tuple[tuple[str, ...], ...]


def advise(
    model: Model,
    profiles: Profiles,
    objective: str | None = None,
    limits: Limits | None = None,
    static_power_w: float | None = None,
) -> Advice:
    """The configuration of the model's grid that serves each kernel best.

    objective: a key of advice.OBJECTIVES; by default 'energy', or 'time' where energy cannot be
    known. static_power_w [W]: what the board draws beside dynamic power, the same at every
    configuration. Of equal configurations best_index says which is taken. Raises InputError where
    objective or limits need what model and profiles do not give, and where no configuration
    keeps the limits, saying what is nearest.
    """
    limits = limits or Limits()
    kind = power_kind(model, profiles)
    lacking = why_no_power(model, profiles)
    if lacking and static_power_w is not None:
        raise InputError(f"static power is of no use: {lacking}")
    static = advice.static_power(kind, static_power_w)
    warnings = training_warnings(model)
    if objective is None:
        why = lacking or (DYNAMIC if static is None else None)
        objective = "time" if why else "energy"
        if why:
            warnings.append(f"time is minimised, not energy: {why}")
    if not lacking and kind is None and static_power_w is None:
        warnings.append("power_w is taken for board power; the model does not say what it is")
    for what in _asked(objective, limits):
        if lacking:
            raise InputError(f"{what} needs power: {lacking}")
        if static is None and what != "the objective 'power'":
            raise InputError(f"{what} needs the whole power: {DYNAMIC}")
    predicted = _predict(model, profiles, static)
    choices = tuple(
        _choose(k, kernel, predicted, objective, limits)
        for k, kernel in enumerate(profiles.kernels)
    )
    joint = _choose_together(predicted, objective, limits) if len(choices) > 1 else None
    if len(choices) > 1 and joint is None:
        warnings.append("no single configuration keeps the limits for every kernel")
    warnings += feature_warnings(model, profiles)
    return Advice(objective, limits, static_power_w, choices, joint, tuple(warnings))


def _asked(objective: str, limits: Limits) -> list[str]:
    """What of objective and limits needs power."""
    asked = [] if objective == "time" else [f"the objective '{objective}'"]
    return asked + (["a limit of power"] if limits.max_power_w is not None else [])


def power_kind(model: Model, profiles: Profiles) -> str | None:
    """'board', 'dynamic', or None for unknown; InputError where profile and model differ."""
    said = (m.get("power_kind") for m in (model.card["metadata"], profiles.metadata))
    kinds = {str(kind) for kind in said if kind is not None}
    if len(kinds) > 1:
        raise InputError(
            f"the model's power_w is {model.card['metadata']['power_kind']} power, the profile's "
            f"{profiles.metadata['power_kind']} power; give the profile the model's"
        )
    return kinds.pop() if kinds else None


def why_no_power(model: Model, profiles: Profiles) -> str | None:
    """Why there is no power, if there is none."""
    if "power" not in model.predictors:
        return "the model was trained without power"
    if profiles.power_w is None:
        return "the profile has no power_w"
    return None


def _predict(model: Model, profiles: Profiles, static: float | None) -> _Predicted:
    # Both intervals hold at once for at least COVERAGE when each misses half as often.
    quantities = 1 if why_no_power(model, profiles) else 2
    surfaces = model.predict(profiles, 1 - (1 - COVERAGE) / quantities)
    at_base = {quantity: profiles.quantity(quantity)[:, None, None, None] for quantity in surfaces}
    added = {"time": 0.0, "power": static or 0.0}

    def absolute(factors: dict[str, Floats]) -> TimeAndPower:
        found = {q: factors[q] * at_base[q] + added[q] for q in factors}
        return found["time"], found.get("power")

    lows = {q: s.low for q, s in surfaces.items() if s.low is not None}
    highs = {q: s.high for q, s in surfaces.items() if s.high is not None}
    time_ms, power_w = absolute(
        {quantity: surface.values for quantity, surface in surfaces.items()}
    )
    return _Predicted(
        grid=model.grid,
        base=model.grid.index(model.base),
        time_ms=time_ms,
        power_w=power_w,
        has_energy=power_w is not None and static is not None,
        low=absolute(lows) if lows.keys() == surfaces.keys() else None,
        high=absolute(highs) if highs.keys() == surfaces.keys() else None,
        flags=surfaces.flags,
    )


def _choose(k: int, kernel: str, predicted: _Predicted, objective: str, limits: Limits) -> Choice:
    time_ms, power_w = _kernel(k, (predicted.time_ms, predicted.power_w))
    base = predicted.base
    try:
        best = advice.best_index(objective, time_ms, power_w, float(time_ms[base]), limits)
    except InputError as error:
        raise InputError(f"kernel '{kernel}': {error}") from None
    saving_range = None
    if predicted.low and predicted.high:
        at_base = advice.objective_values(objective, time_ms, power_w)[base]
        low, high = (
            float(
                advice.saving_percent(
                    advice.objective_values(objective, *_kernel(k, end))[best], at_base
                )
            )
            for end in (predicted.high, predicted.low)
        )
        saving_range = low, high
    chosen = _choice(best, time_ms, power_w, predicted, objective)
    return replace(chosen, kernel=kernel, saving_range=saving_range, flags=predicted.flags[k])


def _kernel(k: int, of_all: TimeAndPower) -> TimeAndPower:
    """Time and power of one kernel, (C, E, M)."""
    time_ms, power_w = of_all
    return time_ms[k], None if power_w is None else power_w[k]


def _choose_together(predicted: _Predicted, objective: str, limits: Limits) -> Choice | None:
    """The best of the configurations that keep the limits for every kernel; None without one."""
    kept = np.ones(predicted.grid.shape, dtype=bool)
    for k in range(len(predicted.time_ms)):
        time_ms, power_w = _kernel(k, (predicted.time_ms, predicted.power_w))
        kept &= advice.feasible(limits, time_ms, power_w, float(time_ms[predicted.base]))
    if not kept.any():
        return None
    time_ms, power_w = advice.together(predicted.time_ms, predicted.power_w)
    allowed = np.where(kept, time_ms, np.nan)
    best = advice.best_index(objective, allowed, power_w, float(time_ms[predicted.base]))
    return _choice(best, time_ms, power_w, predicted, objective)


def _choice(
    best: Index, time_ms: Floats, power_w: Floats | None, predicted: _Predicted, objective: str
) -> Choice:
    """What a configuration costs and saves, and the front beside it."""
    energy_mj = None
    if power_w is not None and predicted.has_energy:
        energy_mj = advice.objective_values("energy", time_ms, power_w)

    def point(at: Index) -> Point:
        config = predicted.grid.config(at)
        costs = [None if a is None else float(a[at]) for a in (power_w, energy_mj)]
        return Point(config, float(time_ms[at]), *costs)

    points: list[Point] = []
    if energy_mj is not None:
        for c, e, m in np.argwhere(advice.pareto_front(time_ms, energy_mj)).tolist():
            new = point((c, e, m))
            if not any(math.isclose(new.time_ms, p.time_ms, rel_tol=advice.SAME) for p in points):
                points.append(new)
    values = advice.objective_values(objective, time_ms, power_w)
    return Choice(
        kernel=None,
        best=point(best),
        base=point(predicted.base),
        saving_percent=float(advice.saving_percent(values[best], values[predicted.base])),
        saving_range=None,
        slowdown_percent=float(100 * (time_ms[best] / time_ms[predicted.base] - 1)),
        front=tuple(sorted(points, key=lambda p: p.time_ms)),
        flags=(),
    )
