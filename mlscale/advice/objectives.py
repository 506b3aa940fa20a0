"""Objectives, limits, the best configuration and the Pareto front, as pure functions of arrays.

An array holds one value for each configuration, in the order of the grid. With time in ms and power
in W, energy = time x power is in mJ.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import Index
from mlscale.errors import InputError
from mlscale.parameters import parameter
from mlscale.text import rounded, time_in_words

COSTS = {"energy": "mJ", "edp": "mJ ms", "ed2p": "mJ ms^2", "time": "ms", "power": "W"}
OBJECTIVES = {**COSTS, "clock": "MHz"}
WITHOUT_POWER = ("time", "clock")  # the objectives that need no power
SAME = 1e-9  # two values closer than this, relatively, are equal

DELAYS = {"power": 0, "energy": 1, "edp": 2, "ed2p": 3}  # the power of time in an objective


def objective_name(objective: str) -> str:
    """An objective as it is written in a sentence: 'energy', 'EDP'."""
    return objective.upper() if objective.startswith("ed") else objective


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a configuration must keep; None for no limit. Raises InputError on a senseless one.

    max_power_w [W], max_time_ms [ms]; max_slowdown_percent: time at most that much longer than
    at the base [%].
    """

    max_power_w: float | None = None
    max_time_ms: float | None = None
    max_slowdown_percent: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            may_be_0 = name == "max_slowdown_percent"
            if value is not None and not (0 < value < np.inf or (value == 0 and may_be_0)):
                what = "at least 0" if may_be_0 else "positive"
                raise InputError(f"{name} must be finite and {what}, not {value:g}")

    @property
    def has_time(self) -> bool:
        """Whether there is a limit of time."""
        return self.max_time_ms is not None or self.max_slowdown_percent is not None

    def longest_ms(self, base_time_ms: float) -> float:
        """The longest time that is kept [ms], infinite without limits of time."""
        longest = [math.inf]
        if self.max_time_ms is not None:
            longest.append(self.max_time_ms)
        if self.max_slowdown_percent is not None:
            longest.append(base_time_ms * (1 + self.max_slowdown_percent / 100))
        return min(longest)

    def longest_percent(self, base_time_ms: float) -> float:
        """The longest time that is kept, over that at the base [%]: a slowdown."""
        return 100 * (self.longest_ms(base_time_ms) / base_time_ms - 1)

    def time_in_words(self) -> str:
        """The limits of time, briefly: '5 %'."""
        most_ms, percent = self.max_time_ms, self.max_slowdown_percent
        words = [] if most_ms is None else [time_in_words(most_ms, 10)]
        return " or ".join(words + ([] if percent is None else [f"{percent:g} %"]))

    def words(self) -> list[str]:
        """Each limit that is given: 'a power of at most 50 W'."""
        ms = self.max_time_ms
        forms = {
            "a power of at most {:.10g} W": self.max_power_w,
            "a time of at most {}": None if ms is None else time_in_words(ms, 10),
            "a slowdown of at most {:g} %": self.max_slowdown_percent,
        }
        return [form.format(limit) for form, limit in forms.items() if limit is not None]

    def under(self) -> str:
        """', under a power of at most 50 W and …', or nothing."""
        return f", under {' and '.join(self.words())}" if self.words() else ""


def objective_values(
    objective: str, time_ms: Floats, power_w: Floats | None, engine_mhz: Floats | None = None
) -> Floats:
    """What is minimised, of the shape of time_ms, in the unit of OBJECTIVES.

    energy = time x power, edp = energy x time, ed2p = energy x time^2. engine_mhz [MHz]: for the
    objective 'clock', of a shape that broadcasts to that of time_ms, such as (E, 1). Raises
    InputError without power on an objective that needs it.
    """
    if objective == "time":
        return time_ms
    if objective == "clock" and engine_mhz is not None:
        return np.broadcast_to(engine_mhz, np.shape(time_ms))
    if power_w is None:
        raise InputError(f"the objective '{objective}' needs power")
    return np.asarray(power_w * time_ms ** DELAYS[objective])


def require_objective(objective: str, known: Collection[str] = OBJECTIVES.keys()) -> None:
    """Raise InputError on an objective that is not known."""
    if objective not in known:
        raise InputError(f"there is no objective '{objective}'; one of {', '.join(known)}")


def pareto_front(time_ms: Floats, energy_mj: Floats) -> Mask:
    """Which points no other point beats: none is as good in time and energy and better in one.

    Both arrays have the same shape, and so has the answer. Equal points are on the front
    together; a point with NaN or infinity never is.
    """
    finite = np.flatnonzero(np.isfinite(time_ms) & np.isfinite(energy_mj))
    time, energy = (_without_rounding(np.ravel(values)[finite]) for values in (time_ms, energy_mj))
    in_order = np.lexsort((energy, time))
    order, time, energy = finite[in_order], time[in_order], energy[in_order]
    same_time = np.searchsorted(time, time, side="left")  # the first, and best, of equal time
    faster = np.concatenate([[np.inf], np.minimum.accumulate(energy)])[same_time]
    front = np.zeros(np.size(time_ms), dtype=bool)
    front[order[(energy == energy[same_time]) & (energy < faster)]] = True
    return front.reshape(np.shape(time_ms))


def _without_rounding(values: Floats) -> Floats:
    """Values (n,), those that differ from the next smaller by rounding only made equal to it."""
    order = np.argsort(values)
    rising = values[order]
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = rising[1:] > rising[:-1] * (1 + SAME)
    distinct = np.empty_like(values)
    distinct[order] = rising[is_new][np.cumsum(is_new) - 1]
    return distinct


def limit_ratio(
    limits: Limits, time_ms: Floats, power_w: Floats | None, base_time_ms: Floats | float
) -> Floats:
    """The largest ratio of a value to its limit, of the shape of time_ms; 0 without limits.

    base_time_ms: the time at the base [ms], one that broadcasts for several kernels.
    A configuration keeps the limits where it is at most 1; NaN where time, or what is limited, is
    missing.
    """
    largest = np.zeros(np.shape(time_ms))
    for limited in _limited(limits, time_ms, power_w, base_time_ms):
        largest = np.maximum(largest, limited.ratio)
    return np.where(np.isfinite(time_ms), largest, np.nan)


def feasible(
    limits: Limits, time_ms: Floats, power_w: Floats | None, base_time_ms: Floats | float
) -> Mask:
    """Where all limits are kept, of the shape of time_ms; never where a value is missing."""
    return np.asarray(limit_ratio(limits, time_ms, power_w, base_time_ms) <= 1 + SAME)


def best_index(
    objective: str,
    time_ms: Floats,
    power_w: Floats | None,
    base_time_ms: float,
    limits: Limits | None = None,
    engine_mhz: Sequence[float] | None = None,
    peak_power_w: Floats | None = None,
) -> Index:
    """Where on the grid the objective is least among what keeps the limits.

    time_ms [ms], power_w [W] (C, E, M), of a kernel or of a run; engine_mhz (E,) [MHz], for the
    objective 'clock'; peak_power_w (C, E, M) [W]: what a limit of power holds for, by default
    power_w; of a run the power of its most demanding kernel. Of equal objectives the one of
    shorter time is taken, of these the one of lower power, of these the first in the order of
    the grid: fewest CUs, then lowest engine clock, then lowest memory clock. Raises InputError,
    saying what is nearest, where nothing keeps the limits.
    """
    limits = limits or Limits()
    clocks = None if engine_mhz is None else np.array(engine_mhz)[:, None]
    values = objective_values(objective, time_ms, power_w, clocks)
    limited_w = power_w if peak_power_w is None else peak_power_w
    allowed = feasible(limits, time_ms, limited_w, base_time_ms)
    if not allowed.any():
        raise InputError(_nearest(limits, time_ms, limited_w, base_time_ms))
    keys = [None if key is None else key[None] for key in (values, time_ms, power_w)]
    c, e, m = np.unravel_index(least_indices(keys, allowed[None])[0], np.shape(time_ms))
    return int(c), int(e), int(m)


def least_indices(keys: Sequence[Floats | None], allowed: Mask) -> Indices:
    """Where on the grid the first key is least for each of K kernels, flat (K,); -1 for nowhere.

    keys, allowed (K, ...); NaN is more than any number. Of equal places the one where the next key
    is least is taken, of these the first.
    """
    left = allowed.reshape(len(allowed), -1).copy()
    for key in keys:
        if key is not None:
            flat = np.where(np.isnan(key), np.inf, key).reshape(left.shape)
            least = np.where(left, flat, np.inf).min(axis=1, keepdims=True)
            left &= flat <= least * (1 + SAME)
    return np.where(left.any(axis=1), left.argmax(axis=1), -1)


def saving_percent(value: Floats | float, at_base: Floats | float) -> Floats:
    """100 (1 - value / value at the base) [%]; negative where there is nothing saved but lost."""
    return np.asarray(100.0 * (1.0 - np.divide(value, at_base)))


def slowdown_percent(time_ms: Floats | float, base_time_ms: Floats | float) -> Floats:
    """100 (time / time at the base - 1) [%]; negative where the kernel is quicker."""
    return np.asarray(100.0 * (np.divide(time_ms, base_time_ms) - 1.0))


def interval_ends(values: Iterable[float]) -> tuple[float, float]:
    """The least and the greatest of a value and its ends, which need not be in order.

    A mean power need not rise with the times that it is the mean over.
    """
    low, *_, high = sorted(values)
    return low, high


def static_power(kind: str | None, given_w: float | None) -> float | None:
    """What to add to power [W] so that time x power is energy; None where that is not known.

    kind: the table's `power_kind`; board power, and power of unknown kind, is taken as whole;
    dynamic power needs the static power beside it. Raises InputError on static power beside
    board power, and on a negative one.
    """
    if given_w is None:
        return None if kind == "dynamic" else 0.0
    if kind == "board":
        given = parameter("static_power")
        raise InputError(f"power_w is board power, static power included: omit {given}")
    if not 0 <= given_w < math.inf:
        raise InputError(f"static power must be finite and at least 0 W, not {given_w}")
    return given_w


class _Limited(NamedTuple):
    """What one limit is of: value / limit everywhere, and the value with its name and unit."""

    ratio: Floats
    name: str
    value: Floats
    unit: str


def _limited(
    limits: Limits, time_ms: Floats, power_w: Floats | None, base_time_ms: Floats | float
) -> list[_Limited]:
    """For every limit that is given."""
    limited = []
    if limits.max_power_w is not None:
        if power_w is None:
            raise InputError("a limit of power needs power")
        limited.append(_Limited(power_w / limits.max_power_w, "power", power_w, "W"))
    if limits.max_time_ms is not None:
        limited.append(_Limited(time_ms / limits.max_time_ms, "time", time_ms, "ms"))
    if limits.max_slowdown_percent is not None:
        ratio = time_ms / (base_time_ms * (1 + limits.max_slowdown_percent / 100))
        slowdown = slowdown_percent(time_ms, base_time_ms)
        limited.append(_Limited(ratio, "slowdown", slowdown, "%"))
    return limited


def _if_in_seconds(most_ms: float, least_ms: float) -> str:
    """What to ask where a limit of time would be kept if its number were of seconds."""
    if not 1000 * most_ms >= least_ms >= 1000 > most_ms:
        return ""
    meant = parameter("max_time", f"{1000 * most_ms:.10g}")
    return f" (limits are in ms; are seconds meant? give {meant})"


def _nearest(limits: Limits, time_ms: Floats, power_w: Floats | None, base_time_ms: float) -> str:
    """Why nothing keeps the limits, and for each the least that can be had beside the others."""
    limited = _limited(limits, time_ms, power_w, base_time_ms)
    known = np.isfinite(limit_ratio(limits, time_ms, power_w, base_time_ms))
    least = []
    for one in limited:
        kept = known.copy()
        for other in limited:
            if other is not one:
                kept &= other.ratio <= 1 + SAME
        said = " with the other limits kept" if len(limited) > 1 and kept.any() else ""
        value = float(one.value[kept if kept.any() else known].min())
        shown = time_in_words(value) if one.unit == "ms" else f"{rounded(value)} {one.unit}"
        least.append(f"{one.name} {shown}{said}")
        if one.unit == "ms":
            least[-1] += _if_in_seconds(limits.max_time_ms or 0, value)
    return f"no configuration keeps {' and '.join(limits.words())}; the least is " + ", or ".join(
        least
    )
