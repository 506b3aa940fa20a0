"""Advice for profiled kernels: from a model's surfaces to the clocks to set."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from mlscale.advice.objectives import (
    SAME,
    WITHOUT_POWER,
    Limits,
    best_index,
    feasible,
    objective_values,
    pareto_front,
    run_in_sequence,
    saving_percent,
    slowdown_percent,
    static_power,
)
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces, absolute_values
from mlscale.errors import InputError
from mlscale.model import Model, feature_warnings, power_kind, training_warnings
from mlscale.predictions import Predictions, coverage_of_each

USUAL_SLOWDOWN_PERCENT = 5.0  # allowed for the lowest clock, where no limit is given
DYNAMIC_POWER = "power_w is dynamic power; give what the board draws beside it as --static-power W"


Costs = tuple[Floats, Floats | None]  # time [ms] and power [W] everywhere on the grid


@dataclass(frozen=True)
class OperatingPoint:
    """A configuration and what it costs: [ms], [W], [mJ]; None where that is not known."""

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None


@dataclass(frozen=True)
class Recommendation:
    """The best configuration of one launch of a kernel, or of the whole run (kernel None).

    saving_percent: of the objective, against the base; slowdown_percent: of time, against the
    base; saving_range and slowdown_range: their intervals where the predictors give intervals.
    front: the Pareto
    front of time and energy from the quickest to the most frugal, of equal points the first in
    the order of the grid; empty where energy is unknown.
    """

    kernel: str | None
    best: OperatingPoint
    base: OperatingPoint
    saving_percent: float
    saving_range: tuple[float, float] | None
    slowdown_percent: float
    slowdown_range: tuple[float, float] | None
    front: tuple[OperatingPoint, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What to set for each kernel.

    whole_run: the one configuration for the run, which is each kernel as often as its launches
    say; None where no configuration keeps the limits for every kernel. lowest_mhz: the lowest
    engine clock that was tried. surfaces: what all this rests on, by quantity every kernel's
    absolute values [ms], [W], with intervals that hold at once.
    """

    objective: str
    limits: Limits
    static_power_w: float | None
    kernels: tuple[Recommendation, ...]
    whole_run: Recommendation | None
    lowest_mhz: float
    warnings: tuple[str, ...]
    surfaces: dict[str, Surfaces] = field(default_factory=dict, repr=False, compare=False)

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """That of each kernel, then that of the whole run, where it is more than one launch."""
        run = self.whole_run
        if run is None or (len(self.kernels) == 1 and run.base == self.kernels[0].base):
            return self.kernels
        return (*self.kernels, run)


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

    objective: 'energy', 'edp', 'ed2p', 'time', 'power', or 'clock', the lowest engine clock; by
    default 'energy', or 'clock' where energy cannot be known. The lowest clock is sought at the
    CU count and memory clock of the base, within USUAL_SLOWDOWN_PERCENT of its time where no
    limit of time is given. limits: what a
    configuration must keep. static_power_w [W]: what the board draws beside dynamic power, the
    same at every configuration. Of equal configurations `best_index` says which is taken.

    Raises InputError where objective or limits need what model and profiles do not give, and
    where no configuration keeps the limits, saying what is nearest.

    Example:
        >>> import mlscale
        >>> model = mlscale.load("models/simulated-gcn3.mlscale")
        >>> profile = "datasets/simulated-gcn3-profile.csv"
        >>> profiles = mlscale.read_profiles(profile, model.base, model.device)
        >>> limits = mlscale.Limits(max_slowdown_percent=5)
        >>> advice = mlscale.advise(model, profiles, "time", limits)
        >>> str(advice.kernels[0].best.config), round(advice.kernels[0].saving_percent, 1)
        ('cu=32,engine=1000,memory=1000', 21.7)
    """
    limits = limits or Limits()
    power = whole_power(model, profiles, static_power_w)
    warnings = training_warnings(model)
    if objective is None:
        objective = "clock" if power.why_no_energy else "energy"
        if power.why_no_energy:
            warnings.append(f"the lowest clock is sought, not least energy: {power.why_no_energy}")
    if objective == "clock" and limits.max_slowdown_percent is None and limits.max_time_ms is None:
        limits = replace(limits, max_slowdown_percent=USUAL_SLOWDOWN_PERCENT)
    if not power.absent and power.kind is None and static_power_w is None:
        warnings.append("power_w is taken for board power; the model does not say what it is")
    _require_power(objective, limits, power)
    predictions = model.predict(profiles, coverage_of_each(1 if power.absent else 2))
    surfaces = absolute(predictions, power)
    search = _Search(surfaces, profiles.weights, objective, limits, power.why_no_energy is None)
    kernels = tuple(
        search.for_kernel(k, kernel, predictions.flags[k])
        for k, kernel in enumerate(profiles.kernels)
    )
    whole_run = search.for_whole_run()
    if whole_run is None:
        warnings.append("no single configuration keeps the limits for every kernel")
    warnings += feature_warnings(model, profiles)
    lowest_mhz = predictions.grid.engine_mhz[0]
    return Advice(
        objective=objective,
        limits=limits,
        static_power_w=static_power_w,
        kernels=kernels,
        whole_run=whole_run,
        lowest_mhz=lowest_mhz,
        warnings=tuple(warnings),
        surfaces=surfaces,
    )


def whole_power(model: Model, profiles: Profiles, static_power_w: float | None) -> WholePower:
    """What is known of the power of model and profiles, with the static power that is given [W].

    Raises InputError where model and profiles differ in kind, and on static power that is of no
    use or senseless.
    """
    kind = power_kind(model, profiles)
    absent = model.why_no_power(profiles)
    if absent and static_power_w is not None:
        raise InputError(f"static power is of no use: {absent}")
    return WholePower(kind, static_power(kind, static_power_w), absent)


def absolute(predictions: Predictions, power: WholePower) -> dict[str, Surfaces]:
    """Predicted surfaces with their intervals in ms and W, static power added where it is known."""
    in_units = {}
    for quantity, surfaces in predictions.surfaces.items():
        at_base = predictions.profiles.quantity(quantity)
        added = (power.static_w or 0.0) if quantity == "power" else 0.0
        with np.errstate(over="ignore"):
            low, high = (
                None if end is None else absolute_values(end, at_base) + added
                for end in (surfaces.low, surfaces.high)
            )
            values = absolute_values(surfaces.values, at_base) + added
        in_units[quantity] = replace(surfaces, values=values, low=low, high=high)
    return in_units


def _require_power(objective: str, limits: Limits, power: WholePower) -> None:
    """Raise InputError where objective or limits need power that is not there, or not whole."""
    needs = [] if objective in WITHOUT_POWER else [f"the objective '{objective}'"]
    needs += ["a limit of power"] if limits.max_power_w is not None else []
    for need in needs:
        if power.absent:
            raise InputError(f"{need} needs power: {power.absent}")
        if power.static_w is None and need != "the objective 'power'":
            raise InputError(f"{need} needs the whole power: {DYNAMIC_POWER}")


@dataclass(frozen=True, eq=False)
class _Search:
    """What the best configurations are sought on and by: absolute surfaces, objective, limits.

    launches (K,): of each kernel in the run.
    """

    surfaces: dict[str, Surfaces]
    launches: Floats
    objective: str
    limits: Limits
    has_energy: bool

    def for_kernel(self, k: int, kernel: str, flags: tuple[str, ...]) -> Recommendation:
        """The best configuration of one kernel. Raises InputError where none keeps the limits."""
        time_ms, power_w = self._costs("values", k)
        try:
            best = best_index(
                self.objective,
                np.where(self._sought, time_ms, np.nan),
                power_w,
                float(time_ms[self._base]),
                self.limits,
                self._grid.engine_mhz,
            )
        except InputError as error:
            raise InputError(f"kernel '{kernel}': {error}") from None
        ends = None
        if self._has_intervals:
            ends = (self._costs("low", k), self._costs("high", k))
        recommendation = self._recommendation(best, (time_ms, power_w), ends)
        return replace(recommendation, kernel=kernel, flags=flags)

    def for_whole_run(self) -> Recommendation | None:
        """The best that keeps the limits for every kernel; None where no configuration does.

        Its intervals add the kernels' own, as if all of them were off to the same side.
        """
        time_ms, power_w = self._costs("values")
        base_ms = time_ms[:, *self._base][:, None, None, None]
        keeps = self._sought & feasible(self.limits, time_ms, power_w, base_ms).all(axis=0)
        if not keeps.any():
            return None
        time_ms, power_w = run_in_sequence(time_ms, power_w, self.launches)
        best = best_index(
            self.objective,
            np.where(keeps, time_ms, np.nan),
            power_w,
            float(time_ms[self._base]),
            engine_mhz=self._grid.engine_mhz,
        )
        ends = None
        if self._has_intervals:
            low, high = (
                run_in_sequence(*self._costs(side), self.launches) for side in ("low", "high")
            )
            ends = low, high
        return self._recommendation(best, (time_ms, power_w), ends)

    @property
    def _sought(self) -> Mask:
        """Where the best is sought, (C, E, M); a lowest clock at the base's other settings."""
        sought = np.ones(self._grid.shape, dtype=bool)
        if self.objective == "clock":
            c, _, m = self._base
            sought[:] = False
            sought[c, :, m] = True
        return sought

    @property
    def _has_intervals(self) -> bool:
        return all(surface.low is not None for surface in self.surfaces.values())

    @property
    def _grid(self) -> ConfigGrid:
        return self.surfaces["time"].grid

    @property
    def _base(self) -> Index:
        return self._grid.index(self.surfaces["time"].base)

    def _costs(self, side: str, k: int | None = None) -> Costs:
        """Time [ms] and power [W] of one kernel (C, E, M) or all; side: 'values', 'low', 'high'."""
        index = slice(None) if k is None else k
        costs = {q: getattr(surface, side)[index] for q, surface in self.surfaces.items()}
        return costs["time"], costs.get("power")

    def _recommendation(
        self, best: Index, costs: Costs, ends: tuple[Costs, Costs] | None
    ) -> Recommendation:
        """What a configuration costs and saves, and the front beside it.

        ends: the low and the high end of the costs, None without intervals.
        """
        time_ms, power_w = costs
        energy_mj = objective_values("energy", time_ms, power_w) if self.has_energy else None

        def point(index: Index) -> OperatingPoint:
            values = [None if cost is None else float(cost[index]) for cost in (power_w, energy_mj)]
            return OperatingPoint(self._grid.config(index), float(time_ms[index]), *values)

        def saving(at_best: Costs) -> float:
            value = self._values(at_best)[best]
            return float(saving_percent(value, self._values(costs)[self._base]))

        def slowdown(at_best: Costs) -> float:
            return float(slowdown_percent(at_best[0][best], time_ms[self._base]))

        front: list[OperatingPoint] = []
        if energy_mj is not None:
            for c, e, m in np.argwhere(pareto_front(time_ms, energy_mj)).tolist():
                new = point((c, e, m))
                if not any(math.isclose(new.time_ms, p.time_ms, rel_tol=SAME) for p in front):
                    front.append(new)
        return Recommendation(
            kernel=None,
            best=point(best),
            base=point(self._base),
            saving_percent=saving(costs),
            saving_range=None if ends is None else (saving(ends[1]), saving(ends[0])),
            slowdown_percent=slowdown(costs),
            slowdown_range=None if ends is None else (slowdown(ends[0]), slowdown(ends[1])),
            front=tuple(sorted(front, key=lambda point: point.time_ms)),
            flags=(),
        )

    def _values(self, costs: Costs) -> Floats:
        return objective_values(self.objective, *costs, self._grid.engine_mhz)
