"""Power caps: what a run does under each, and the cap to set.

Under a cap a GPU runs each kernel at the highest engine clock whose power is at most the cap.
Between two clocks of the grid it dithers: it runs a share of the time at the upper one and the
rest at the lower, so that the mean power is the cap. Power, mean clock and work done per
millisecond are therefore linear in that share.

How far a cap can be trusted is told by how steep the run is there: where 1 % of power is nearly as
much of time or far more of the clock, a small error of power is a large one of the run, and a
locked clock is the better lever.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlscale.advice.advise import absolute, whole_power
from mlscale.advice.objectives import (
    SAME,
    Limits,
    feasible,
    least_indices,
    objective_values,
    require_objective,
)
from mlscale.advice.recommendation import Choice, Points
from mlscale.advice.search import MENU_PERCENT, USUAL_SLOWDOWN_PERCENT, choice_of_base, choices
from mlscale.arrays import Floats, Indices, Mask, distinct
from mlscale.data.devices import Device, known_device
from mlscale.data.points import second_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.data.supply import NOT_KEPT, UNLIMITED, Supply, is_at_limit, supply_of_run
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note
from mlscale.parameters import parameter

MOST_IDLE = 0.1  # share of a log: beyond, its mean power is not the work's
STEP_W, WIDE_STEP_W, WIDE_FROM_W = 5.0, 10.0, 400.0  # between the caps of a sweep; from where wide
NUDGE = 0.02  # a cap moves so far up and down to tell how steep the run is
STEEP = 0.7  # time per power: above, a locked clock is the better lever
CLIFF = 0.35  # power per clock: below, it is too
HARDLY_MORE = 0.001  # a quicker cap may have so much more of the objective
OPEN_INTERVAL = "one end of each interval is not known: there it would be below the clocks tried"
BELOW_READINGS = "below what any reading drew"
CLOCK_TOLERANCE = 1.01  # clocks nearer than this are the same


@dataclass(frozen=True, eq=False)
class CapCurve:
    """K kernels, and the run of all their launches, under each of P power caps.

    power_w (K, P) [W]: of one launch of each kernel, NaN where even the lowest clock draws more
    than the cap, or time or power is not known. run_time_ms [ms], run_power_w [W], run_energy_mj
    [mJ], run_engine_mhz [MHz] (P,): of the run, power and clock as the mean over its time; NaN
    where any kernel's is. highest_mhz (P,): the mean clock of the kernel that has the highest.
    too_low (P,): how many kernels draw more than the cap at every clock.
    """

    power_w: Floats
    run_time_ms: Floats
    run_power_w: Floats
    run_energy_mj: Floats
    run_engine_mhz: Floats
    highest_mhz: Floats
    too_low: Indices

    def times_gpus(self, count: float) -> "CapCurve":
        """The same of so many GPUs side by side, if this is of the hottest."""
        names = ("power_w", "run_power_w", "run_energy_mj")
        return replace(self, **{name: getattr(self, name) * count for name in names})


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
    share = np.zeros(lower.shape)  # part of the time at the upper clock
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
        highest_mhz=clock.max(axis=0),
        too_low=(power_w[:, None, :] > caps[:, None] * (1 + SAME)).all(axis=2).sum(axis=0),
    )


def steepness(lower: CapCurve, at: CapCurve, upper: CapCurve) -> tuple[Floats, Floats]:
    """How steep a run is at each of P caps: -d ln time / d ln cap, d ln cap / d ln clock (P,) each.

    lower, upper: the run under caps a NUDGE below and above those of `at`. NaN where time or clock
    is not known, infinite where the clock does not change; below the clocks tried `at` stands for
    `lower`.
    """
    is_known = np.isfinite(lower.run_time_ms)
    power = math.log1p(NUDGE) - np.where(is_known, math.log1p(-NUDGE), 0.0)

    def rise(name: str) -> Floats:
        below = np.where(is_known, getattr(lower, name), getattr(at, name))
        return np.asarray(np.log(getattr(upper, name) / below))

    with np.errstate(divide="ignore"):
        return -rise("run_time_ms") / power, power / np.abs(rise("run_engine_mhz"))


def with_steepness(
    curves_under: Callable[[Floats], tuple[CapCurve, ...]], cap_w: Floats
) -> tuple[tuple[CapCurve, ...], tuple[Floats, Floats]]:
    """The curves under caps (P,) [W], and how steep the first is, see `steepness`."""
    curves = curves_under(cap_w)
    lower, upper = (curves_under(cap_w * factor)[0] for factor in (1 - NUDGE, 1 + NUDGE))
    return curves, steepness(lower, curves[0], upper)


@dataclass(frozen=True)
class CapPoint:
    """A power cap, and the run under it, None where that cannot be said, which a flag explains.

    Of the run the saving is of energy where the objective is time. Where at the high ends of power
    the cap is too low for the clocks tried, its longest time and least saving are infinite: not
    known. too_low: how many kernels draw more than the cap even at the lowest clock tried.
    can_be_set: whether the GPU takes it, as far as its limits are known. time_per_power: by how
    many % time falls where power rises by 1 %; power_per_clock: by how many % power rises where the
    clock does by 1 %; NaN where that is not known. unlocks: whether a kernel runs above the base's
    clock, so that a lock at that must go; not where a run of one kernel was held by its cap, whose
    clock was the cap's.
    """

    cap_w: float
    run: Choice | None
    too_low: int
    flags: tuple[str, ...]
    can_be_set: bool = True
    time_per_power: float = math.nan
    power_per_clock: float = math.nan
    unlocks: bool = False

    @property
    def steep(self) -> str:
        """Why a locked clock is better than this cap, in words; '' where it is not."""
        if self.power_per_clock < CLIFF:
            return f"a cliff: 1 % of power is {1 / self.power_per_clock:.1f} % of the clock"
        is_steep = self.time_per_power > STEEP
        return f"1 % of power is {self.time_per_power:.1f} % of time" if is_steep else ""


def cap_setting(cap_w: float, unlocks: bool) -> dict[str, float | None]:
    """What is set by name: the cap [W], and the engine clock, None, where a lock must go."""
    return {"power_cap_w": cap_w, **({"engine_mhz": None} if unlocks else {})}


@dataclass(frozen=True)
class CapAdvice:
    """A run under each power cap, in ascending order, and the best cap.

    A cap is of each GPU, power and energy are of all of them.

    objective: what `best` has least of. best: of the caps that keep a limit of time even at the
    longest time of their interval; None where no cap that the GPU takes does, or none is high
    enough. expected: of those whose predicted time keeps it, None where that is `best`. lock_mhz:
    the engine clock to lock in place of the best cap, None where the cap is as good. helps: whether
    the best has less of the objective than the base, or the base keeps not the limits.
    menu: the best under each limit of slowdown [%] that was asked for, None for no limit; its cap
    is None where none is better than the base. runs: what it was chosen from.
    """

    runs: "CapRuns"
    objective: str
    limits: Limits
    points: tuple[CapPoint, ...]
    best: CapPoint | None
    helps: bool
    warnings: tuple[Note, ...] = ()
    expected: CapPoint | None = None
    lock_mhz: float | None = None
    menu: tuple[tuple[float | None, CapPoint | None], ...] = ()


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
    the run draws at the lowest clock, to the limit that the run had, or where no file states that
    to the GPU's highest. objective: 'energy' (the default), 'edp',
    'ed2p', 'time' or 'power'; limits and static_power_w [W]: as for `advise`. CU count and memory
    clock are those of the base; `choose_cap` says which is best. surfaces: those of an `Advice`
    for these profiles, which need not be predicted again.

    Raises InputError without power, or with dynamic power alone; on the objective 'clock'; without
    caps on a GPU whose power limits are not known; of runs at one engine clock alone; and of a
    logged run with many pauses, or on GPUs with several power limits.

    Example:
        >>> caps = advise_caps(model, profiles, [200, 250, 300])  # doctest: +SKIP
        >>> caps.best.cap_w, caps.best.run.saving_percent  # doctest: +SKIP
        (250.0, 14.2)
    """
    added_w, _, no_energy = whole_power(model, profiles, static_power_w)
    if no_energy:
        raise InputError(f"a power cap needs the whole power: {no_energy}")
    objective, limits = objective or "energy", limits or Limits()
    require_cap_objective(objective)
    idle_ms = sum(profiles.metadata.get("idle_ms", {}).values())  # which its mean power has too
    refuse_pauses(idle_ms / float(profiles.time_ms.sum()))
    for told in profiles.metadata.get("unlike_power_limits", {}).values():
        refuse_unlike_limits(str(profiles.metadata.get("source", "the run")), told)
    device = known_device(model.device)
    surfaces = surfaces or absolute(model.predict(profiles, COVERAGE), added_w)
    if surfaces["time"].is_bounded:
        raise InputError(
            "a power cap needs a second run: one engine clock alone shows neither the clock "
            "under a cap nor how it changes the time; run it at about "
            f"{second_clock_mhz(profiles)} MHz too: {parameter('also', 'FILE')}"
        )
    caps = distinct(np.array(cap_w, dtype=np.float64))
    supply = supply_of_run(profiles, added_w)
    if not len(caps):
        power = surfaces["power"]
        c, _, m = power.grid.index(power.base)
        lowest_w = np.fmax.reduce(power.values[:, c, 0, m], initial=0.0) / supply.boards
        run_w = supply.most_w if math.isnan(supply.cap_w) else supply.cap_w
        caps = cap_sweep(device, lowest_w, run_w)
    curves, steep = with_steepness(
        lambda caps: _curves(surfaces, supply.under(caps), profiles.weights), caps
    )
    set_w = [profiles.power_cap_w, *(point.power_cap_w for point in profiles.points)]
    ran_w = supply.drawn_w if math.isnan(supply.cap_w) else math.nan
    base, base_peak_w = _run_at_base(surfaces, profiles.weights)
    runs = CapRuns(
        device=model.device,
        cap_w=caps,
        curves=curves,
        steepness=steep,
        base=base,
        base_peak_w=base_peak_w,
        tried_mhz=surfaces["time"].grid.engine_mhz,
        was_set_w=(float(np.fmin.reduce(set_w)), float(np.fmax.reduce([*set_w, ran_w]))),
        supply=supply,
        enforced_w=np.fmax.reduce(set_w) if profiles.metadata.get("power_limit_w") else math.inf,
    )
    advice = choose_cap(runs, objective, limits)
    warnings = [*refused_caps(runs, advice.points)]
    warnings += _clock_warnings(device, advice.points, surfaces["time"])
    return replace(advice, warnings=tuple(warnings))


@dataclass(frozen=True, eq=False)
class CapRuns:
    """A run under P caps, before one is chosen.

    cap_w (P,) [W], of each GPU, ascending; the rest is of all of them. curves: as predicted and,
    with intervals, at the low and the high ends. steepness: at each cap, see `steepness`. base,
    base_peak_w [W]: the run at the base, and its most demanding kernel there. tried_mhz: the engine
    clocks that may be locked in place of a cap. was_set_w: the lowest and the highest cap that a
    reading was under [W], which the GPU takes whatever the device table says, NaN where none is
    known; the highest may be what was drawn under an unknown one. supply: under the base's own cap.
    enforced_w: the highest limit that a reading had [W], where another limiter than the one that is
    set keeps it so low; infinite where none does.
    """

    device: str
    cap_w: Floats
    curves: tuple[CapCurve, ...]
    steepness: tuple[Floats, Floats]
    base: Choice
    base_peak_w: float
    tried_mhz: tuple[float, ...] = ()
    was_set_w: tuple[float, float] = (math.nan, math.nan)
    supply: Supply = UNLIMITED
    enforced_w: float = math.inf

    @property
    def now_w(self) -> float | None:
        """The cap that is set now [W]: the run's, else the device table's that it kept, if any."""
        if not math.isnan(self.supply.cap_w):
            return self.supply.cap_w
        device = known_device(self.device)
        most_w = (device and device.default_power_w) or 0.0
        return most_w if self.base_peak_w / self.supply.boards <= NOT_KEPT * most_w else None


def choose_cap(runs: CapRuns, objective: str, limits: Limits) -> CapAdvice:
    """The run under each cap, and the cap that serves it best.

    A limit of time holds for the longest time of the interval, as far as there are intervals: an
    open end does not keep it. Of caps HARDLY_MORE than the least, and better than the base, the
    quickest is taken, of equal ones the one that is set now, else the lowest. Least energy is
    looked for within USUAL_SLOWDOWN_PERCENT where no limit of time is given, and the menu has other
    limits; where no cap keeps it, the widest that one keeps holds.
    """
    device, curve, base = known_device(runs.device), runs.curves[0], runs.base
    time_ms, power_w = _with_ends(runs.curves)
    saved = "energy" if objective == "time" else objective
    points = _points(runs, _choices(curve, time_ms, power_w, base, saved), device)
    can_be_set = np.array([point.can_be_set for point in points])
    base_ms, peak_w = np.array(base.time_ms), curve.power_w.max(axis=0)
    values = objective_values(objective, time_ms[:, 0], power_w[:, 0])
    to_beat = objective_values(objective, base_ms, np.array(base.power_w or math.nan))
    is_better = values < (1 - SAME) * to_beat
    if not feasible(limits, base_ms, np.array(runs.base_peak_w), base_ms).all():
        is_better[:] = True
    is_other = runs.cap_w != runs.now_w
    keys = [time_ms[:, 0], values, power_w[:, 0], is_other.astype(float)]

    def best_of(allowed: Mask) -> int | None:
        allowed = allowed & is_better if (allowed & is_better).any() else allowed
        if not allowed.any():
            return None
        near = allowed & (values <= (1 + HARDLY_MORE) * values[allowed].min())
        return int(least_indices([key[None] for key in keys], near[None])[0])

    def best_under(under: Limits) -> tuple[int | None, int | None]:
        keeps = feasible(under, time_ms[:, 0], peak_w, base_ms) & can_be_set
        surely = feasible(under, time_ms.max(axis=1), peak_w, base_ms) & keeps
        expected = best_of(keeps)
        return best_of(surely) if under.has_time else expected, expected

    every: dict[float | None, Limits] = {}
    if objective == "energy" and not limits.has_time:
        every = {most: replace(limits, max_slowdown_percent=most) for most in MENU_PERCENT}
        limits = every[USUAL_SLOWDOWN_PERCENT]
    menu = {most: place for most, one in every.items() if (place := best_under(one)[0]) is not None}
    if menu and limits.max_slowdown_percent not in menu:
        limits = every[[*menu][-1]]
    best, expected = best_under(limits)
    if expected == best or (best is not None and not is_better[expected]):
        expected = None
    return CapAdvice(
        runs=runs,
        objective=objective,
        limits=limits,
        points=points,
        best=None if best is None else points[best],
        helps=best is not None and bool(is_better[best]),
        expected=None if expected is None else points[expected],
        lock_mhz=None if best is None else _lock_mhz(points[best], runs.tried_mhz),
        menu=tuple(
            (most, points[place] if is_better[place] else None) for most, place in menu.items()
        ),
    )


def cap_sweep(device: Device | None, lowest_clock_w: float, run_cap_w: float = math.nan) -> Floats:
    """Caps from the lowest power limit of a GPU to its highest, or to the run's (P,) [W].

    They are 5 W apart below 400 W, and 10 W from there on. The highest is the default limit where
    the table knows no other. lowest_clock_w: what a run draws at the lowest clock [W], from which
    the caps start where no lowest limit was verified. Raises InputError where the highest limit is
    not known.
    """
    lowest, highest = _power_limits(device)
    highest = run_cap_w if math.isfinite(run_cap_w) else highest
    if highest is None:
        raise InputError(
            f"the power limits of {device.key if device else 'this GPU'} are not known; name the "
            f"caps with {parameter('caps', 'W ...')}"
        )
    if lowest is None:
        lowest = min(math.ceil(lowest_clock_w / STEP_W - SAME) * STEP_W, highest)
    return cap_steps(min(lowest, highest), highest)


def cap_steps(lowest: float, highest: float) -> Floats:
    """Caps from one to another (P,) [W], 5 W apart below 400 W and 10 W from there on.

    Example:
        >>> cap_steps(382, 425).tolist()
        [382.0, 385.0, 390.0, 395.0, 400.0, 410.0, 420.0, 425.0]
    """
    fine = np.arange(math.ceil(lowest / STEP_W) * STEP_W, min(highest, WIDE_FROM_W), STEP_W)
    first_wide = max(math.ceil(lowest / WIDE_STEP_W) * WIDE_STEP_W, WIDE_FROM_W)
    wide = np.arange(first_wide, highest, WIDE_STEP_W)
    return distinct(np.concatenate([[lowest], fine, wide, [highest]]))


def _power_limits(
    device: Device | None, was_set_w: tuple[float, float] = (math.nan, math.nan)
) -> tuple[float | None, float | None]:
    """The lowest and the highest cap that a GPU takes [W], None where that is not known.

    Those that were set, see `CapRuns`, it takes too.
    """
    known = (device.lowest_cap_w, device.most_power_w) if device else (None, None)
    both = zip(known, was_set_w, (np.fmin, np.fmax), strict=True)
    lowest, highest = (
        None if end is None else float(widest(end, was_set)) for end, was_set, widest in both
    )
    return lowest, highest


def require_cap_objective(objective: str) -> None:
    """Raise InputError on an objective that is not known, or says nothing of caps."""
    require_objective(objective)
    if objective == "clock":
        raise InputError(
            "the objective 'clock' is not for power caps; for the least power within a limit "
            f"of time: {parameter('minimize', 'power')}"
        )


def refuse_pauses(paused: float) -> None:
    """Raise InputError where such a share of a run's log is pauses."""
    if paused > MOST_IDLE:
        raise InputError(
            f"a power cap acts only while the GPU works, and {100 * paused:.0f} % of the log is "
            "pauses, which lower its mean power: log a run that keeps the GPU busy"
        )


def refuse_unlike_limits(source: str, told: str) -> None:
    """Raise InputError of GPUs side by side whose power limits differ, if they are told."""
    if told:
        one = parameter("gpu", "N")
        raise InputError(f"{source}: {told}, so that no power cap suits all; name one with {one}")


def require_other_clock(profiles: Profiles) -> None:
    """Raise InputError where the further readings are at other CU counts alone."""
    configs = [point.config for point in profiles.points]
    base = profiles.base
    if configs and all(c.engine_mhz == base.engine_mhz for c in configs):
        raise InputError(
            "a power cap acts on the engine clock, and all readings are at "
            f"{base.engine_mhz:g} MHz; run it at about {second_clock_mhz(profiles)} MHz too: "
            f"{parameter('also', 'FILE')}"
        )


def _curves(surfaces: dict[str, Surfaces], caps: Floats, launches: Floats) -> tuple[CapCurve, ...]:
    """The run under each cap: as predicted and, with intervals, at the low and the high ends.

    An end moves by the ends of time and of power, each with the other as predicted: as the two err
    apart, the squares of both moves add up.
    """
    time, power = surfaces["time"], surfaces["power"]
    c, _, m = time.grid.index(time.base)

    def curve(time_ms: Floats, power_w: Floats) -> CapCurve:
        at_base = time_ms[:, c, :, m], power_w[:, c, :, m]
        return cap_curve(caps, time.grid.engine_mhz, *at_base, launches)

    value = curve(time.values, power.values)
    ends = [(time.low, power.low, -1), (time.high, power.high, 1)]
    return (
        value,
        *(
            _moved(value, curve(time_end, power.values), curve(time.values, power_end), sign)
            for time_end, power_end, sign in ends
            if time_end is not None and power_end is not None
        ),
    )


def _moved(value: CapCurve, by_time: CapCurve, by_power: CapCurve, sign: int) -> CapCurve:
    """The run at an end, up or down by sign: from what it is at the ends of time and of power."""

    def moved(name: str) -> Floats:
        middle = getattr(value, name)
        moves = (np.log(getattr(curve, name) / middle) for curve in (by_time, by_power))
        return np.asarray(middle * np.exp(sign * np.hypot(*moves)))

    time_ms, power_w = moved("run_time_ms"), moved("run_power_w")
    return replace(by_power, run_time_ms=time_ms, run_power_w=power_w)


def _run_at_base(surfaces: dict[str, Surfaces], launches: Floats) -> tuple[Choice, float]:
    """The run at the base, and the power of its most demanding kernel there [W]."""
    time, power = surfaces["time"], surfaces["power"]
    at = (slice(None), *time.grid.index(time.base))
    costs = run_in_sequence(time.values[at], power.values[at], launches)
    time_ms, power_w = (float(cost) for cost in costs)
    return choice_of_base(time.base, time_ms, power_w), float(power.values[at].max())


def _with_ends(curves: Sequence[CapCurve]) -> tuple[Floats, Floats]:
    """Time and power of the run under each cap, (P, S) each: the value, and the ends where known.

    A cap too low for the clocks tried at the high ends of power alone makes them infinite there.
    """
    time_ms = np.stack([one.run_time_ms for one in curves], axis=1)
    power_w = np.stack([one.run_power_w for one in curves], axis=1)
    is_open = (curves[-1].too_low > 0) & (curves[0].too_low == 0)
    time_ms[is_open, -1] = power_w[is_open, -1] = math.inf
    return time_ms, power_w


def _choices(
    curve: CapCurve, time_ms: Floats, power_w: Floats, base: Choice, saved: str
) -> list[Choice | None]:
    """The run under each cap, None where it is not known; saved: what the saving is of."""
    configs = [replace(base.config, engine_mhz=mhz) for mhz in curve.run_engine_mhz.tolist()]
    at = Points(curve.run_engine_mhz, time_ms, power_w)
    at_base = Points.single(base.engine_mhz, base.time_ms, base.power_w)
    found = choices(saved, configs, at, base.config, at_base, time_ms * power_w, power_w)
    is_known = np.isfinite(curve.run_energy_mj)
    return [one if known else None for one, known in zip(found, is_known, strict=True)]


def _points(
    runs: CapRuns, each: Sequence[Choice | None], device: Device | None
) -> tuple[CapPoint, ...]:
    """Each cap with what is to be said of it."""
    curve, high, supply = runs.curves[0], runs.curves[-1], runs.supply
    kernels = len(curve.power_w)
    is_free = kernels > 1 or not is_at_limit(runs.base_peak_w / supply.boards, supply.cap_w)
    has_clock = not math.isnan(runs.base.config.engine_mhz)
    unknown = "not predicted for every kernel" if has_clock else "above the highest reading"
    points: list[CapPoint] = []
    plateau_w = math.nan  # the lowest cap under which the run is the same
    for place, cap_w in enumerate(runs.cap_w.tolist()):
        refusal = _outside_limits(_power_limits(device, runs.was_set_w), cap_w)
        if cap_w > runs.enforced_w:
            refusal = f"above {runs.enforced_w:g} W, which another limiter holds"
        flags = [refusal] if refusal else []
        too_low = int(curve.too_low[place])
        if too_low:
            share = f": {too_low} of {kernels} kernels" if kernels > 1 else ""
            bottom = "the clocks tried" if has_clock else "the lowest reading"
            flags.append(f"below {bottom}{share}")
        elif each[place] is None:
            flags.append(unknown)
        elif high.too_low[place]:
            flags.append(OPEN_INTERVAL)
        costs = (curve.run_time_ms, curve.run_energy_mj)
        if place and all(math.isclose(*c[place - 1 : place + 1], rel_tol=SAME) for c in costs):
            flags.append(f"as under {plateau_w:g} W")
        else:
            plateau_w = cap_w
        time, power = (float(values[place]) for values in runs.steepness)
        is_above = curve.highest_mhz[place] > runs.base.config.engine_mhz * (1 + SAME)
        unlocks = is_free and bool(is_above)
        run = each[place]
        if run:
            run = replace(run, set=cap_setting(cap_w, unlocks))
        point = CapPoint(cap_w, run, too_low, (), refusal is None, time, power, unlocks)
        flags += [BELOW_READINGS] if point.run and cap_w < (1 - NUDGE) * supply.least_w else []
        flags += [point.steep] if point.steep and point.run else []
        points.append(replace(point, flags=tuple(flags)))
    return tuple(points)


def _lock_mhz(point: CapPoint, tried_mhz: Sequence[float]) -> float | None:
    """The clock to lock in place of a cap: the nearest of those tried; None where it is as good."""
    if point.run is None or not point.steep:
        return None
    mean_mhz = point.run.config.engine_mhz
    return min(tried_mhz, key=lambda mhz: abs(mhz - mean_mhz), default=None)


def _outside_limits(limits: tuple[float | None, float | None], cap_w: float) -> str | None:
    """A flag of a cap that a GPU of such limits does not take; None of one that it takes."""
    lowest, highest = limits
    if lowest is not None and cap_w < lowest:
        return f"below the GPU's lowest power limit, {lowest:g} W"
    if highest is not None and cap_w > highest:
        return f"above the GPU's highest known power limit, {highest:g} W"
    return None


def refused_caps(runs: CapRuns, points: Sequence[CapPoint]) -> list[Note]:
    """A warning of the caps that cannot be set; nothing without any."""
    device = known_device(runs.device)
    lowest, highest = _power_limits(device, runs.was_set_w)
    refused = [f"{at.cap_w:g} W" for at in points if _outside_limits((lowest, highest), at.cap_w)]
    if not device or not refused:
        return []
    ends = [] if lowest is None else [f"at least {lowest:g} W"]
    ends += [] if highest is None else [f"at most {highest:g} W"]
    warning = (
        f"{', '.join(refused)} cannot be set: {device.key} accepts power caps of "
        f"{' and '.join(ends)}; others are predicted, but never advised"
    )
    return [Note("P03", warning)]


def _clock_warnings(
    device: Device | None, points: Sequence[CapPoint], times: Surfaces
) -> list[Note]:
    """What a reader should know of clocks above those tried, and above the base's."""
    warnings = []
    tried_mhz, base_mhz = times.grid.engine_mhz[-1], times.base.engine_mhz
    reached = device.max_clock_mhz if device else None
    if device and device.engine_clock_range_mhz:
        reached = device.engine_clock_range_mhz[1]
    if device and reached is not None and reached > tried_mhz * CLOCK_TOLERANCE:
        told = (
            f"assumed: under a power cap {device.key} runs at {tried_mhz:g} MHz at most, the "
            f"highest clock tried, not at {reached:g} MHz"
        )
        warnings.append(Note("P03", told))
    known = [(point.cap_w, point.run) for point in points if point.run and point.can_be_set]
    if known:
        cap_w, run = known[-1]
        if run.config.engine_mhz > base_mhz * CLOCK_TOLERANCE:
            warning = (
                f"under {cap_w:g} W the engine clock is {run.config.engine_mhz:.0f} MHz, above "
                f"the base's {base_mhz:g}: caps are predicted for an unlocked clock; if yours "
                "is locked at the base, unlock it first"
            )
            warnings.append(Note("P03", warning, "warning"))
    return warnings
