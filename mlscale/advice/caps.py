"""Power caps: what a run does under each, from its kernels' time and power over the engine clock.

Under a cap a GPU runs each kernel at the highest engine clock whose power is at most the cap.
Between two clocks of the grid it dithers: it runs a share of the time at the upper one and the
rest at the lower, so that the mean power is the cap. Power, mean clock and work done per
millisecond are therefore linear in that share.

Advice on power caps: from a model's surfaces to the cap to set.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from mlscale.advice.advise import absolute, whole_power
from mlscale.advice.objectives import (
    SAME,
    Limits,
    best_index,
    feasible,
    interval_ends,
    objective_values,
    saving_percent,
    slowdown_percent,
)
from mlscale.advice.search import Advice, OperatingPoint, Row
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.devices import Device, known_device
from mlscale.data.grid import Index
from mlscale.data.points import second_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.data.supply import drawn_w, supply_of
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.predictions import coverage_of_each

MOST_IDLE = 0.1  # of a logged run, whose mean power then is that of the work


@dataclass(frozen=True, eq=False)
class CapCurve:
    """K kernels, and the run of all their launches, under each of P power caps.

    power_w (K, P) [W]: of one launch of each kernel, NaN where even the lowest clock draws more
    than the cap, or time or power is not known. run_time_ms [ms], run_power_w [W], run_energy_mj
    [mJ], run_engine_mhz [MHz] (P,): of the run, power and clock as the mean over its time; NaN
    where any kernel's is. too_low (P,): how many kernels draw more than the cap at every clock.
    """

    power_w: Floats
    run_time_ms: Floats
    run_power_w: Floats
    run_energy_mj: Floats
    run_engine_mhz: Floats
    too_low: Indices


def cap_curve(
    cap_w: Sequence[float] | Floats,
    engine_mhz: Sequence[float] | Floats,
    time_ms: Floats,
    power_w: Floats,
    launches: Floats | None = None,
) -> CapCurve:
    """Time, power and energy of a run under each power cap.

    cap_w (P,) [W], infinity for none; engine_mhz (E,) [MHz], ascending; time_ms, power_w (K, E):
    of one launch of each kernel at each engine clock, at the same CU count and memory clock
    [ms], [W]; launches (K,): how often each runs, by default once.

    Example:
        >>> curve = cap_curve([300, 200, 100], [1000, 1400],
        ...                   np.array([[2.0, 1.5]]), np.array([[150.0, 250.0]]))
        >>> curve.run_time_ms.round(3).tolist()  # at 1400 MHz, half of the time at each, unknown
        [1.5, 1.714, nan]
        >>> curve.too_low.tolist()
        [0, 0, 1]
    """
    caps, clocks = (np.asarray(values, dtype=np.float64) for values in (cap_w, engine_mhz))
    within = power_w[:, None, :] <= caps[:, None] * (1 + SAME)  # (K, P, E)
    lower = len(clocks) - 1 - np.argmax(within[:, :, ::-1], axis=2)
    upper = np.minimum(lower + 1, len(clocks) - 1)
    low_w, high_w = (np.take_along_axis(power_w, steps, axis=1) for steps in (lower, upper))
    share = np.zeros(lower.shape)  # of the time, at the upper clock
    dithers = upper > lower
    np.divide(caps - low_w, high_w - low_w, out=share, where=dithers)
    share = np.where(within.any(axis=2), np.clip(share, 0.0, 1.0), np.nan)

    def mean(values: Floats) -> Floats:
        low, high = (np.take_along_axis(values, steps, axis=1) for steps in (lower, upper))
        return np.asarray(low + share * (high - low))

    of_kernels, power = 1 / mean(1 / time_ms), mean(power_w)
    clock = mean(np.broadcast_to(clocks, power_w.shape))
    counts = np.ones(len(time_ms)) if launches is None else launches
    run_ms, run_w = run_in_sequence(of_kernels, power, counts)
    _, run_mhz = run_in_sequence(of_kernels, clock, counts)
    return CapCurve(
        power_w=power,
        run_time_ms=run_ms,
        run_power_w=run_w,
        run_energy_mj=run_ms * run_w,
        run_engine_mhz=run_mhz,
        too_low=(power_w[:, None, :] > caps[:, None] * (1 + SAME)).all(axis=2).sum(axis=0),
    )


def refuse_pauses(metadata: Mapping[str, Any], time_ms: Floats) -> None:
    """Raise InputError where a logged run has pauses, so that its mean power is not of the work.

    time_ms (K,): of the runs [ms]. Where the logs do not tell, nothing is refused.
    """
    working_ms = sum(metadata.get("working_ms", {}).values())
    paused = 1 - working_ms / float(time_ms.sum())
    if working_ms and paused > MOST_IDLE:
        raise InputError(
            f"a power cap acts while the GPU works, and {paused:.0%} of the run's log are pauses, "
            "which its mean power holds too: log a run under a load that keeps the GPU busy"
        )


LEAST_STEP_W = 25.0  # between the caps of a sweep
MOST_STEPS = 20
OPEN_INTERVAL = "one end of each interval is not known: there it would be below the clocks tried"
CLOCK_TOLERANCE = 1.01  # clocks nearer than this are the same


@dataclass(frozen=True)
class CappedRun:
    """The run under a power cap: [ms], [W], [mJ].

    engine_mhz: the mean over its time. slowdown_percent: of time, against the base;
    saving_percent: of the objective against the base, of energy where the objective is time;
    their ranges where the predictors give intervals. Where at the high ends of power the cap is
    too low for the clocks tried, the longest time and the least saving are infinite: not known.
    """

    engine_mhz: float
    time_ms: float
    power_w: float
    energy_mj: float
    slowdown_percent: float
    slowdown_range: tuple[float, float] | None
    saving_percent: float
    saving_range: tuple[float, float] | None


@dataclass(frozen=True)
class CapPoint:
    """A power cap, and the run under it, None where that cannot be said, which a flag explains.

    too_low: how many kernels draw more than the cap even at the lowest clock tried. can_be_set:
    whether the GPU takes it, as far as its limits are known.
    """

    cap_w: float
    run: CappedRun | None
    too_low: int
    flags: tuple[str, ...]
    can_be_set: bool = True

    def row(self) -> Row:
        """The cap and the fields of its run as JSON has them, intervals as two numbers each.

        None for what is not known, an open end of an interval among it.
        """
        of_run = asdict(self.run) if self.run else dict.fromkeys(f.name for f in fields(CappedRun))
        row = {"cap_w": self.cap_w, **of_run}
        for name in ("slowdown", "saving"):
            ends = row.pop(f"{name}_range") or (None, None)
            low, high = (end if end is not None and math.isfinite(end) else None for end in ends)
            row |= {f"{name}_low_percent": low, f"{name}_high_percent": high}
        return row | {"too_low": self.too_low, "flags": list(self.flags)}


@dataclass(frozen=True)
class CapAdvice:
    """A run of `kernels` kernels under each power cap, in ascending order, and the best cap.

    objective: what `best` has least of. best: None where no cap that the GPU takes keeps the
    limits, or none is high enough. binds: whether the best changes anything against the GPU's own
    cap, or none at all where that is not known; helps: whether it does so for the better against
    the base, or the base keeps not the limits. default_w: the GPU's own cap by the device table,
    None where it is not known.
    """

    objective: str
    limits: Limits
    kernels: int
    at_base: OperatingPoint
    points: tuple[CapPoint, ...]
    best: CapPoint | None
    binds: bool
    helps: bool
    default_w: float | None
    warnings: tuple[str, ...]

    @property
    def saved(self) -> str:
        """What `saving_percent` is of: the objective, or energy where that is time."""
        return "energy" if self.objective == "time" else self.objective


def advise_caps(
    model: Model,
    profiles: Profiles,
    cap_w: Sequence[float] = (),
    objective: str | None = None,
    limits: Limits | None = None,
    static_power_w: float | None = None,
    surfaces: dict[str, Surfaces] | None = None,
) -> CapAdvice:
    """What the run of all launches does under each power cap, and the cap that serves it best.

    cap_w [W]: by default from the GPU's lowest power limit to its highest. objective: 'energy'
    (the default), 'edp', 'ed2p', 'time' or 'power'; limits and static_power_w
    [W]: as for `advise`. CU count and memory clock are those of the base. Of
    equal caps the lowest is taken. surfaces: those of an `Advice` for these profiles, which need
    not be predicted again.

    Raises InputError without power, or with dynamic power alone; on the objective 'clock'; without
    caps on a GPU whose power limits are not known; of runs at one engine clock alone; and of a
    logged run with many pauses.

    Example:
        >>> caps = advise_caps(model, profiles, [200, 250, 300])  # doctest: +SKIP
        >>> caps.best.cap_w, caps.best.run.saving_percent  # doctest: +SKIP
        (250.0, 14.2)
    """
    power = whole_power(model, profiles, static_power_w)
    if power.why_no_energy:
        raise InputError(f"a power cap needs the whole power: {power.why_no_energy}")
    objective = objective or "energy"
    if objective == "clock":
        raise InputError(
            "the objective 'clock' says nothing of power caps; 'power' finds the least power "
            "within a limit of time"
        )
    refuse_pauses(profiles.metadata, profiles.time_ms)
    limits = limits or Limits()
    device = known_device(model.device)
    caps = np.unique(np.array(cap_w, dtype=np.float64)) if len(cap_w) else cap_sweep(device)
    surfaces = surfaces or absolute(model.predict(profiles, coverage_of_each(2)), power)
    _refuse_bounds(surfaces["time"], profiles)
    supply = supply_of(model.device, drawn_w(profiles) + (power.static_w or 0.0))
    runs = _Runs(surfaces, profiles.weights, np.append(caps, supply.default_w), objective)
    points = tuple(
        runs.point(p, _outside_limits(device, cap)) for p, cap in enumerate(caps.tolist())
    )
    best = runs.best(limits, np.array([point.can_be_set for point in points]))
    return CapAdvice(
        objective=objective,
        limits=limits,
        kernels=len(profiles.kernels),
        at_base=runs.at_base,
        points=points,
        best=None if best is None else points[best],
        binds=best is not None and runs.binds(best),
        helps=best is not None and runs.helps(best, limits),
        default_w=device.default_power_w if device else None,
        warnings=(
            *_cannot_be_set(device, points),
            *_above_trained(device, surfaces["time"].grid.engine_mhz[-1]),
            *_above_base(surfaces["time"].base.engine_mhz, points),
        ),
    )


def caps_of_run(
    model: Model,
    profiles: Profiles,
    advice: Advice,
    cap_w: Sequence[float],
    objective: str | None,
    is_lever: bool,
) -> CapAdvice:
    """The run of an advice under power caps [W], within its limits, as by `advise_caps`.

    objective: as the advice was asked for; 'clock', which says nothing of caps, is energy unless a
    cap is what the verdict is to set (is_lever), where it is refused. Raises InputError.
    """
    by = None if objective == "clock" and not is_lever else objective
    of_advice = advice.limits, advice.static_power_w, advice.surfaces
    return advise_caps(model, profiles, cap_w, by, *of_advice)


def cap_sweep(device: Device | None) -> Floats:
    """Caps from the lowest power limit of a GPU to its highest (P,) [W], 25 W or more apart.

    The highest is the default limit where the table knows no other. Raises InputError where the
    limits are not known.
    """
    lowest, highest = _power_limits(device)
    if lowest is None or highest is None:
        raise InputError(
            f"the power limits of {device.key if device else 'this GPU'} are not known; name the "
            "caps with --power-cap W ..."
        )
    step = max(LEAST_STEP_W, (highest - lowest) / MOST_STEPS)
    return np.append(np.arange(lowest, highest - SAME, step), highest)


def _power_limits(device: Device | None) -> tuple[float | None, float | None]:
    """The lowest and the highest cap that a GPU takes [W], None where that is not known."""
    return (device.min_power_limit_w, device.most_power_w) if device else (None, None)


@dataclass(frozen=True, eq=False)
class _Runs:
    """The run under each cap, of which the last is the GPU's own, or none where that is not known.

    surfaces: absolute ones of time and power; launches (K,); caps (P,) [W].
    """

    surfaces: dict[str, Surfaces]
    launches: Floats
    caps: Floats
    objective: str

    @cached_property
    def at_base(self) -> OperatingPoint:
        """The run at the base."""
        _, e, _ = self._base
        time_ms, power_w = (self._over_clocks(q, "values")[:, e] for q in ("time", "power"))
        run = run_in_sequence(time_ms, power_w, self.launches)
        run_ms, run_w = (float(cost) for cost in run)
        return OperatingPoint(self.surfaces["time"].base, run_ms, run_w, run_ms * run_w)

    @cached_property
    def curve(self) -> CapCurve:
        """The run as predicted."""
        return self._curve("values")

    @cached_property
    def ends(self) -> tuple[CapCurve, CapCurve] | None:
        """The run at the low and at the high ends of all intervals; None without intervals."""
        if any(surface.low is None for surface in self.surfaces.values()):
            return None
        return self._curve("low"), self._curve("high")

    def point(self, place: int, flags: tuple[str, ...]) -> CapPoint:
        """The run under one cap. flags: why the GPU does not take it."""
        cap_w, curve, can_be_set = float(self.caps[place]), self.curve, not flags
        too_low = int(curve.too_low[place])
        if too_low:
            of_several = f": {too_low} of {len(self.launches)} kernels"
            flags += ("below the clocks tried" + of_several * (len(self.launches) > 1),)
            return CapPoint(cap_w, None, too_low, flags, can_be_set)
        if not np.isfinite(curve.run_energy_mj[place]):
            flags += ("not predicted for every kernel",)
            return CapPoint(cap_w, None, too_low, flags, can_be_set)
        slowdown_range = saving_range = None
        if self.ends is not None:
            low, high = self.ends
            slowdowns, savings = (
                [of(one, place) for one in (low, curve, high)]
                for of in (self._slowdown, self._saving)
            )
            if high.too_low[place]:
                flags += (OPEN_INTERVAL,)
                slowdowns[-1], savings[-1] = math.inf, -math.inf
            slowdown_range, saving_range = interval_ends(slowdowns), interval_ends(savings)
        run = CappedRun(
            engine_mhz=float(curve.run_engine_mhz[place]),
            time_ms=float(curve.run_time_ms[place]),
            power_w=float(curve.run_power_w[place]),
            energy_mj=float(curve.run_energy_mj[place]),
            slowdown_percent=self._slowdown(curve, place),
            slowdown_range=slowdown_range,
            saving_percent=self._saving(curve, place),
            saving_range=saving_range,
        )
        return CapPoint(cap_w, run, too_low, flags, can_be_set)

    def best(self, limits: Limits, can_be_set: Mask) -> int | None:
        """The place of the best cap of those that can be set; None where none keeps the limits."""
        caps = slice(len(self.caps) - 1)
        curve = self.curve
        time_ms, power_w, peak_w = (
            values[None, caps, None]
            for values in (curve.run_time_ms, curve.run_power_w, curve.power_w.max(axis=0))
        )
        time_ms = np.where(can_be_set[None, :, None], time_ms, np.nan)
        if not feasible(limits, time_ms, peak_w, self.at_base.time_ms).any():
            return None
        base_ms = self.at_base.time_ms
        of_run = best_index(self.objective, time_ms, power_w, base_ms, limits, peak_power_w=peak_w)
        return of_run[1]

    def binds(self, place: int) -> bool:
        """Whether a cap changes the run."""
        run_ms, energy_mj = self.curve.run_time_ms, self.curve.run_energy_mj
        return not all(math.isclose(of[place], of[-1], rel_tol=SAME) for of in (run_ms, energy_mj))

    def helps(self, place: int, limits: Limits) -> bool:
        """Whether the run under a cap is better than at the base, or that keeps not the limits."""
        if not self.binds(place):
            return False
        _, e, _ = self._base
        peak_w = self._over_clocks("power", "values")[:, e].max()
        base_ms = self.at_base.time_ms
        base_keeps = feasible(limits, np.array(base_ms), np.array(peak_w), base_ms).all()
        is_less = self._saving(self.curve, place) > 0
        return is_less or self.objective == "time" or not base_keeps

    @property
    def _base(self) -> Index:
        return self.surfaces["time"].grid.index(self.surfaces["time"].base)

    def _over_clocks(self, quantity: str, side: str) -> Floats:
        """Values over the engine clock at the base's other settings, (K, E)."""
        c, _, m = self._base
        return np.asarray(getattr(self.surfaces[quantity], side)[:, c, :, m])

    def _curve(self, side: str) -> CapCurve:
        time_ms, power_w = (self._over_clocks(quantity, side) for quantity in ("time", "power"))
        clocks = self.surfaces["time"].grid.engine_mhz
        return cap_curve(self.caps, clocks, time_ms, power_w, self.launches)

    def _slowdown(self, curve: CapCurve, place: int) -> float:
        return float(slowdown_percent(curve.run_time_ms[place], self.at_base.time_ms))

    def _saving(self, curve: CapCurve, place: int) -> float:
        """Of the objective, or of energy where the objective is time [%]."""
        objective = "energy" if self.objective == "time" else self.objective
        base = self.at_base
        value, at_base = (
            objective_values(objective, np.array(time_ms), np.array(power_w))
            for time_ms, power_w in (
                (curve.run_time_ms[place], curve.run_power_w[place]),
                (base.time_ms, base.power_w),
            )
        )
        return float(saving_percent(value, at_base))


def _refuse_bounds(times: Surfaces, profiles: Profiles) -> None:
    """Raise InputError where times are bounds: under a cap the clock, too, would be a guess."""
    if times.is_bounded:
        raise InputError(
            "a power cap needs a second run: one engine clock alone tells neither the clock under "
            f"a cap nor how time follows it; run it at about {second_clock_mhz(profiles)} MHz too, "
            "and give that with --also"
        )


def _outside_limits(device: Device | None, cap_w: float) -> tuple[str, ...]:
    """A flag of a cap that the GPU does not take."""
    lowest, highest = _power_limits(device)
    if lowest is not None and cap_w < lowest:
        return (f"below the GPU's lowest power limit, {lowest:g} W",)
    if highest is not None and cap_w > highest:
        return (f"above the GPU's highest known power limit, {highest:g} W",)
    return ()


def _cannot_be_set(device: Device | None, points: Sequence[CapPoint]) -> tuple[str, ...]:
    """A warning of the caps that the GPU does not take, with the limits that are known of it."""
    caps = [f"{point.cap_w:g} W" for point in points if not point.can_be_set]
    if device is None or not caps:
        return ()
    lowest, highest = _power_limits(device)
    ends = [f"at least {lowest:g} W"] if lowest is not None else []
    ends += [f"at most {highest:g} W"] if highest is not None else []
    warning = (
        f"{', '.join(caps)} cannot be set: {device.key} is known to take power caps of "
        f"{' and '.join(ends)}; others are predicted, and never advised"
    )
    return (warning,)


def _above_trained(device: Device | None, highest_mhz: float) -> tuple[str, ...]:
    """A warning where the GPU's clock goes higher than the surfaces tell."""
    reached = device.max_clock_mhz if device else None
    if device and device.engine_clock_range_mhz:
        reached = device.engine_clock_range_mhz[1]
    if not device or reached is None or reached <= highest_mhz * CLOCK_TOLERANCE:
        return ()
    warning = (
        f"under a power cap {device.key} is taken to run at {highest_mhz:g} MHz at most, the "
        f"highest clock tried, not at {reached:g} MHz"
    )
    return (warning,)


def _above_base(base_mhz: float, points: Sequence[CapPoint]) -> tuple[str, ...]:
    """A warning where a GPU under a cap runs faster than at the base, so that was held there."""
    point = next((point for point in reversed(points) if point.run and point.can_be_set), None)
    if point is None or point.run is None or point.run.engine_mhz <= base_mhz * CLOCK_TOLERANCE:
        return ()
    warning = (
        f"under {point.cap_w:g} W the engine clock is {point.run.engine_mhz:.0f} MHz, at the base "
        f"{base_mhz:g}: caps are predicted for a clock that is not locked; if it is locked there, "
        "unlock it first, or a cap changes only what draws more than it at that clock"
    )
    return (warning,)
