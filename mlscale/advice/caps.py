"""Power caps: what a run does under each, and the cap to set.

Under a cap a GPU runs each kernel at the highest engine clock whose power is at most the cap.
Between two clocks of the grid it dithers: it runs a share of the time at the upper one and the
rest at the lower, so that the mean power is the cap. Power, mean clock and work done per
millisecond are therefore linear in that share.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlscale.advice.advise import absolute, whole_power
from mlscale.advice.objectives import SAME, Limits, best_index, feasible, require_objective
from mlscale.advice.recommendation import Row, Setting
from mlscale.advice.search import Points, effects
from mlscale.arrays import Floats, Indices
from mlscale.data.devices import Device, known_device
from mlscale.data.points import second_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.data.supply import drawn_w, supply_of
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.predictions import coverage_of_each

MOST_IDLE = 0.1  # of a logged run, whose mean power then is that of the work
LEAST_STEP_W = 25.0  # between the caps of a sweep
MOST_STEPS = 20
ROUND_W = 5.0  # to which a sweep's start is rounded up, where the GPU's lowest limit is not known
OPEN_INTERVAL = "one end of each interval is not known: there it would be below the clocks tried"
CLOCK_TOLERANCE = 1.01  # clocks nearer than this are the same

_COSTS = ("engine_mhz", "time_ms", "power_w", "energy_mj")
_EFFECTS = ("slowdown_percent", "saving_percent", "slowdown_low_percent", "slowdown_high_percent")
_ENDS_OF_SAVING = ("saving_low_percent", "saving_high_percent")


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

    kernels_ms, power = 1 / mean(1 / time_ms), mean(power_w)
    clock = mean(np.broadcast_to(clocks, power_w.shape))
    counts = np.ones(len(time_ms)) if launches is None else launches
    run_ms, run_w = run_in_sequence(kernels_ms, power, counts)
    _, run_mhz = run_in_sequence(kernels_ms, clock, counts)
    return CapCurve(
        power_w=power,
        run_time_ms=run_ms,
        run_power_w=run_w,
        run_energy_mj=run_ms * run_w,
        run_engine_mhz=run_mhz,
        too_low=(power_w[:, None, :] > caps[:, None] * (1 + SAME)).all(axis=2).sum(axis=0),
    )


@dataclass(frozen=True)
class CapPoint:
    """A power cap, and the run under it, None where that cannot be said, which a flag explains.

    Of the run the saving is of energy where the objective is time. Where at the high ends of power
    the cap is too low for the clocks tried, its longest time and least saving are infinite: not
    known. too_low: how many kernels draw more than the cap even at the lowest clock tried.
    can_be_set: whether the GPU takes it, as far as its limits are known.
    """

    cap_w: float
    run: Setting | None
    too_low: int
    flags: tuple[str, ...]
    can_be_set: bool = True

    def row(self) -> Row:
        """The cap and what the run does, intervals as two numbers each, as JSON has them.

        None for what is not known, an open end of an interval among it.
        """
        values = {**self.run.row(), **self.run.effects()} if self.run else {}
        row: Row = {"cap_w": self.cap_w}
        for name in (*_COSTS, *_EFFECTS, *_ENDS_OF_SAVING):
            value = values.get(name)
            row[name] = None if value is None or math.isinf(value) else value
        return {**row, "too_low": self.too_low, "flags": list(self.flags)}


@dataclass(frozen=True)
class CapAdvice:
    """A run under each power cap, in ascending order, and the best cap.

    objective: what `best` has least of. best: None where no cap that the GPU takes keeps the
    limits, or none is high enough. binds: whether the best changes anything against the GPU's own
    cap, or none at all where that is not known; helps: whether it does so for the better against
    the base, or the base keeps not the limits. default_w: the GPU's own cap by the device table,
    None where it is not known.
    """

    device: str
    objective: str
    limits: Limits
    at_base: Setting
    points: tuple[CapPoint, ...]
    best: CapPoint | None
    binds: bool
    helps: bool
    default_w: float | None
    warnings: tuple[str, ...]

    @property
    def saved(self) -> str:
        """What the saving of each cap is of: the objective, or energy where that is time."""
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

    cap_w [W]: by default from the GPU's lowest power limit, or where none was verified from what
    the run draws at the lowest clock, to its highest. objective: 'energy' (the default), 'edp',
    'ed2p', 'time' or 'power'; limits and static_power_w [W]: as for `advise`. CU count and memory
    clock are those of the base. Of equal caps the lowest is taken. surfaces: those of an `Advice`
    for these profiles, which need not be predicted again.

    Raises InputError without power, or with dynamic power alone; on the objective 'clock'; without
    caps on a GPU whose power limits are not known; of runs at one engine clock alone; and of a
    logged run with many pauses.

    Example:
        >>> caps = advise_caps(model, profiles, [200, 250, 300])  # doctest: +SKIP
        >>> caps.best.cap_w, caps.best.run.saving_percent  # doctest: +SKIP
        (250.0, 14.2)
    """
    added_w, _, no_energy = whole_power(model, profiles, static_power_w)
    if no_energy:
        raise InputError(f"a power cap needs the whole power: {no_energy}")
    objective, limits = objective or "energy", limits or Limits()
    require_objective(objective)
    _require_caps_tell(objective, profiles)
    device = known_device(model.device)
    surfaces = surfaces or absolute(model.predict(profiles, coverage_of_each(2)), added_w)
    _require_second_clock(surfaces["time"], profiles)
    caps = np.unique(np.array(cap_w, dtype=np.float64))
    if not len(caps):
        caps = cap_sweep(device, _drawn_at_lowest_clock_w(surfaces["power"]))
    default_w = supply_of(model.device, drawn_w(profiles) + added_w).default_w
    curves = _curves(surfaces, np.append(caps, default_w), profiles.weights)
    base, base_peak_w = _run_at_base(surfaces, profiles.weights)
    runs = _runs(curves, base, "energy" if objective == "time" else objective)
    points = tuple(
        _point(place, float(cap), runs[place], curves, _outside_limits(device, cap))
        for place, cap in enumerate(caps)
    )
    best = _best(curves[0], points, base.time_ms, objective, limits)
    binds = best is not None and _binds(curves[0], best)
    base_ms = np.array(base.time_ms)
    base_keeps_limits = feasible(limits, base_ms, np.array(base_peak_w), base_ms).all()
    best_run = None if best is None else runs[best]
    saves = best_run is not None and best_run.saving_percent > 0
    return CapAdvice(
        device=model.device,
        objective=objective,
        limits=limits,
        at_base=base,
        points=points,
        best=None if best is None else points[best],
        binds=binds,
        helps=binds and bool(saves or objective == "time" or not base_keeps_limits),
        default_w=device.default_power_w if device else None,
        warnings=_warnings(device, points, surfaces["time"]),
    )


def cap_sweep(device: Device | None, lowest_clock_w: float) -> Floats:
    """Caps from the lowest power limit of a GPU to its highest (P,) [W], 25 W or more apart.

    The highest is the default limit where the table knows no other. lowest_clock_w: what a run
    draws at the lowest clock [W], from which the caps start where no lowest limit was verified.
    Raises InputError where the highest limit is not known.
    """
    lowest, highest = _power_limits(device)
    if highest is None:
        raise InputError(
            f"the power limits of {device.key if device else 'this GPU'} are not known; name the "
            "caps with --power-cap W ..."
        )
    if lowest is None:
        lowest = min(math.ceil(lowest_clock_w / ROUND_W - SAME) * ROUND_W, highest)
    step = max(LEAST_STEP_W, (highest - lowest) / MOST_STEPS)
    return np.append(np.arange(lowest, highest - SAME, step), highest)


def _drawn_at_lowest_clock_w(power: Surfaces) -> float:
    """What the kernel of most power draws at the lowest clock tried [W], else 0."""
    c, _, m = power.grid.index(power.base)
    return float(np.fmax.reduce(power.values[:, c, 0, m], initial=0.0))


def _power_limits(device: Device | None) -> tuple[float | None, float | None]:
    """The lowest and the highest cap that a GPU takes [W], None where that is not known."""
    return (device.lowest_cap_w, device.most_power_w) if device else (None, None)


def _require_caps_tell(objective: str, profiles: Profiles) -> None:
    """Raise InputError on 'clock', and on a logged run with pauses, whose mean power has them."""
    if objective == "clock":
        raise InputError(
            "the objective 'clock' says nothing of power caps; 'power' finds the least power "
            "within a limit of time"
        )
    working_ms = sum(profiles.metadata.get("working_ms", {}).values())
    paused = 1 - working_ms / float(profiles.time_ms.sum())
    if working_ms and paused > MOST_IDLE:
        raise InputError(
            f"a power cap acts while the GPU works, and {paused:.0%} of the run's log are pauses, "
            "which its mean power holds too: log a run under a load that keeps the GPU busy"
        )


def _require_second_clock(times: Surfaces, profiles: Profiles) -> None:
    """Raise InputError where times are bounds: the clock under a cap would be a guess too."""
    if times.is_bounded:
        raise InputError(
            "a power cap needs a second run: one engine clock alone tells neither the clock under "
            f"a cap nor how time follows it; run it at about {second_clock_mhz(profiles)} MHz too, "
            "and give that with --also"
        )


def _curves(surfaces: dict[str, Surfaces], caps: Floats, launches: Floats) -> list[CapCurve]:
    """The run under each cap: as predicted and, with intervals, at their low and high ends."""
    time, power = surfaces["time"], surfaces["power"]
    c, _, m = time.grid.index(time.base)
    sides = [(time.values, power.values), (time.low, power.low), (time.high, power.high)]
    return [
        cap_curve(caps, time.grid.engine_mhz, time_ms[:, c, :, m], power_w[:, c, :, m], launches)
        for time_ms, power_w in sides
        if time_ms is not None and power_w is not None
    ]


def _run_at_base(surfaces: dict[str, Surfaces], launches: Floats) -> tuple[Setting, float]:
    """The run at the base, and the power of its most demanding kernel there [W]."""
    time, power = surfaces["time"], surfaces["power"]
    at = (slice(None), *time.grid.index(time.base))
    costs = run_in_sequence(time.values[at], power.values[at], launches)
    time_ms, power_w = (float(cost) for cost in costs)
    setting = Setting(time.base, time_ms, power_w, time_ms * power_w, 0.0, 0.0)
    return setting, float(power.values[at].max())


def _runs(curves: Sequence[CapCurve], base: Setting, saved: str) -> list[Setting | None]:
    """The run under each cap, None where it is not known; saved: what the saving is of."""
    curve = curves[0]
    time_ms = np.stack([one.run_time_ms for one in curves], axis=1)
    power_w = np.stack([one.run_power_w for one in curves], axis=1)
    is_open = (curves[-1].too_low > 0) & (curve.too_low == 0)  # at the high ends alone
    time_ms[is_open, -1] = power_w[is_open, -1] = math.inf
    at = Points(curve.run_engine_mhz, time_ms, power_w)
    at_base = [np.array([[cost]]) for cost in (base.time_ms, base.power_w)]
    count, cu_axis = len(time_ms), base.config.cu_axis
    columns = {
        "cu_count": np.full(count, base.config.cu_count),
        "engine_mhz": curve.run_engine_mhz,
        "memory_mhz": np.full(count, base.config.memory_mhz),
        "time_ms": curve.run_time_ms,
        "power_w": curve.run_power_w,
        "energy_mj": curve.run_energy_mj,
        **effects(saved, at, Points(np.array([base.config.engine_mhz]), *at_base)),
    }
    return [
        Setting.from_row({n: float(values[place]) for n, values in columns.items()}, cu_axis)
        if np.isfinite(curve.run_energy_mj[place])
        else None
        for place in range(count)
    ]


def _point(
    place: int, cap_w: float, run: Setting | None, curves: Sequence[CapCurve], refusal: str | None
) -> CapPoint:
    """One of the caps, by its place among them; refusal: why the GPU does not take it."""
    kernels, too_low = len(curves[0].power_w), int(curves[0].too_low[place])
    flags = [refusal] if refusal else []
    if too_low:
        share = f": {too_low} of {kernels} kernels" if kernels > 1 else ""
        flags.append(f"below the clocks tried{share}")
    elif run is None:
        flags.append("not predicted for every kernel")
    elif curves[-1].too_low[place]:
        flags.append(OPEN_INTERVAL)
    return CapPoint(cap_w, run, too_low, tuple(flags), refusal is None)


def _best(
    curve: CapCurve, points: Sequence[CapPoint], base_ms: float, objective: str, limits: Limits
) -> int | None:
    """The place of the best cap of those that can be set; None where none keeps the limits."""
    can_be_set = np.array([point.can_be_set for point in points])
    time_ms, power_w, peak_w = (
        values[None, : len(points), None]
        for values in (curve.run_time_ms, curve.run_power_w, curve.power_w.max(axis=0))
    )
    time_ms = np.where(can_be_set[None, :, None], time_ms, np.nan)
    if not feasible(limits, time_ms, peak_w, base_ms).any():
        return None
    return best_index(objective, time_ms, power_w, base_ms, limits, peak_power_w=peak_w)[1]


def _binds(curve: CapCurve, place: int) -> bool:
    """Whether a cap changes the run against the last, which is the GPU's own, or none."""
    costs = (curve.run_time_ms, curve.run_energy_mj)
    return not all(math.isclose(cost[place], cost[-1], rel_tol=SAME) for cost in costs)


def _outside_limits(device: Device | None, cap_w: float) -> str | None:
    """A flag of a cap that the GPU does not take; None of one that it takes."""
    lowest, highest = _power_limits(device)
    if lowest is not None and cap_w < lowest:
        return f"below the GPU's lowest power limit, {lowest:g} W"
    if highest is not None and cap_w > highest:
        return f"above the GPU's highest known power limit, {highest:g} W"
    return None


def _warnings(
    device: Device | None, points: Sequence[CapPoint], times: Surfaces
) -> tuple[str, ...]:
    """What a reader should know: of caps that cannot be set, and of clocks above those known."""
    warnings = []
    lowest, highest = _power_limits(device)
    refused = [f"{point.cap_w:g} W" for point in points if not point.can_be_set]
    if device and refused:
        ends = [] if lowest is None else [f"at least {lowest:g} W"]
        ends += [] if highest is None else [f"at most {highest:g} W"]
        warnings.append(
            f"{', '.join(refused)} cannot be set: {device.key} is known to take power caps of "
            f"{' and '.join(ends)}; others are predicted, and never advised"
        )
    tried_mhz, base_mhz = times.grid.engine_mhz[-1], times.base.engine_mhz
    reached = device.max_clock_mhz if device else None
    if device and device.engine_clock_range_mhz:
        reached = device.engine_clock_range_mhz[1]
    if device and reached is not None and reached > tried_mhz * CLOCK_TOLERANCE:
        warnings.append(
            f"under a power cap {device.key} is taken to run at {tried_mhz:g} MHz at most, the "
            f"highest clock tried, not at {reached:g} MHz"
        )
    told = [(point.cap_w, point.run) for point in points if point.run and point.can_be_set]
    if told:
        cap_w, run = told[-1]
        if run.config.engine_mhz > base_mhz * CLOCK_TOLERANCE:
            warnings.append(
                f"under {cap_w:g} W the engine clock is {run.config.engine_mhz:.0f} MHz, at the "
                f"base {base_mhz:g}: caps are predicted for a clock that is not locked; if it is "
                "locked there, unlock it first, or a cap changes only what draws more than it at "
                "that clock"
            )
    return tuple(warnings)
