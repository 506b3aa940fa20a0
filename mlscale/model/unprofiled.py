"""Kernels of which counters do not tell how their time follows clocks.

Those without counters, known by their time alone, are predicted like the mean of the profiled.
Those that exchange data between GPUs wait for links and for the others: their time is kept, and
they are no part of that mean.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import Profiles, is_exchange
from mlscale.data.surfaces import BOUNDED, Surfaces, scaling_bounds
from mlscale.errors import InputError
from mlscale.text import listed, share_in_percent, shortened

AS_THE_MEAN = "no counters: as the mean of the profiled kernels"
POWER_AS_THE_MEAN = "no counters: its power as the mean of the profiled kernels'"
AS_KEPT = (
    "exchanges data between GPUs: its time is taken to stay at every clock, and the interval "
    "reaches from there to full scaling with a clock"
)
MOST_NAMED = 3  # kernels to profile
MOST_UNKNOWN = 0.9  # of the time of the kernels that others tell of, where nothing else does
LONGEST_NAME = 60

Predicted = dict[str, Surfaces]  # by quantity


def refuse_times_alone(profiles: Profiles) -> None:
    """Raise InputError where no kernel was counted, naming the kernels to profile first."""
    if profiles.are_times_alone:
        raise InputError(
            "no kernel has counters, and this model needs some: name none, for the one that takes "
            "times, or profile the kernels of most time and give that file too "
            f"(docs/profiling.md): {kernels_of_most(profiles, profiles.run_times_ms)}"
        )


def refuse_little_cover(profiles: Profiles) -> None:
    """Raise InputError where nearly all of a run would be taken to do as a few counted kernels.

    Names the kernels to profile. Those with times at a further clock count as known; those that
    exchange data between GPUs, of which other kernels tell nothing, not at all.
    """
    unknown_ms = _unknown_ms(profiles)
    times_ms = np.where(exchanging(profiles), 0, profiles.run_times_ms)
    share = unknown_ms.sum() / profiles.run_times_ms.sum()
    if not profiles.are_times_alone and unknown_ms.sum() > MOST_UNKNOWN * times_ms.sum():
        raise InputError(
            f"{share_in_percent(share)} % of the run's time is in kernels without counters, too "
            "much to take them for the mean of the others: profile the kernels of most time too "
            f"(docs/profiling.md): {kernels_of_most(profiles, unknown_ms)}; or leave out those "
            "without counters (--profiled-only)"
        )


def taken_for_the_mean(profiles: Profiles) -> float:
    """The share of a run's time in kernels that nothing but the others' mean tells of, 0 to 1."""
    unknown_ms = _unknown_ms(profiles)
    return float(unknown_ms.sum() / profiles.run_times_ms.sum()) if unknown_ms.any() else 0.0


def _unknown_ms(profiles: Profiles) -> Floats:
    """Times in the run, (K,) [ms], of kernels without counters and without a further clock.

    0 for all others, and for those that exchange data between GPUs.
    """
    known = profiles.has_counters | exchanging(profiles) | profiles.has_further_time
    return np.where(known, 0, profiles.run_times_ms)


def kernels_of_most(profiles: Profiles, times_ms: Floats) -> str:
    """The kernels of most of these times (K,), with their shares of the whole run's."""
    percent = 100 * profiles.run_times_ms / profiles.run_times_ms.sum()
    return ", ".join(
        f"'{shortened(profiles.kernels[k], LONGEST_NAME)}' ({percent[k]:.0f} %)"
        for k in np.argsort(-times_ms, kind="stable")[:MOST_NAMED]
        if times_ms[k]
    )


def left_out(profiles: Profiles) -> tuple[str, ...]:
    """A warning of the kernels without counters, where they are left out; none without such."""
    uncounted = ~profiles.has_counters
    if not uncounted.any():
        return ()
    positions = [k for k in np.argsort(-profiles.run_times_ms) if uncounted[k]]
    kernels = listed([f"'{shortened(profiles.kernels[k])}'" for k in positions])
    percent = share_in_percent(1 - profiles.counters_cover)
    return (f"left out, as without counters: {kernels}, {percent} % of the run's time",)


def with_unprofiled(
    profiles: Profiles, predicted: Predicted, are_kept: bool = True
) -> tuple[Profiles, Predicted]:
    """Profiles and surfaces of all kernels, from the surfaces predicted for those with counters.

    predicted: surfaces of the kernels of `profiles.has_counters`, in their order. A kernel without
    counters scales in time as all profiled ones together do, weighted by their time in the run,
    and in power as their energy at the base weighs. Its power at the base, where it was
    not measured, is the profiled kernels' mean over their time. are_kept: the time of those that
    exchange data between GPUs is kept, so that they count only where no other kernel is profiled.

    Its interval spans all that the profiled kernels' values and intervals reach, and in time
    what a kernel may reach that is bound by the CUs alone, by the memory alone, or by neither:
    the profiled ones may be few. There is none where the predictor gives none.
    """
    rows = np.flatnonzero(profiles.has_counters)
    counts = ~exchanging(profiles)[rows] if are_kept else np.ones(len(rows), dtype=bool)
    counts |= not counts.any()
    times = (profiles.weights * profiles.time_ms)[rows]
    base_w = profiles.power_w
    if "power" in predicted and base_w is not None:
        mean_w = float(np.average(base_w[rows][counts], weights=times[counts]))
        base_w = np.where(profiles.has_counters | np.isfinite(base_w), base_w, mean_w)
    surfaces = {}
    for quantity, of_profiled in predicted.items():
        if quantity == "power" and base_w is not None:
            joined = _joined(profiles, of_profiled, counts, times * base_w[rows], ())
            surfaces[quantity] = _of_power_alone(profiles, joined) if are_kept else joined
        else:
            bounds = scaling_bounds(of_profiled.grid, of_profiled.base)
            surfaces[quantity] = _joined(profiles, of_profiled, counts, times, bounds)
    return replace(profiles, power_w=base_w), surfaces


def exchanging(profiles: Profiles) -> Mask:
    """Which kernels exchange data between GPUs, by their names, (K,); no run that was sampled."""
    if is_sampled(profiles.metadata):
        return np.zeros(len(profiles.kernels), dtype=bool)
    return np.array([is_exchange(name) for name in profiles.kernels], dtype=bool)


def with_exchanges_kept(profiles: Profiles, times: Surfaces) -> Surfaces:
    """Surfaces of time where no clock changes kernels that exchange data between GPUs.

    Their interval spans what a kernel may reach that is bound by the CUs alone, by the memory
    alone, or by neither. Those with a time at a further clock, or with bounds alone, are left.
    """
    kept = exchanging(profiles) & ~profiles.has_further_time
    kept &= [BOUNDED not in flags for flags in times.flags]
    if not kept.any():
        return times
    bounds = scaling_bounds(times.grid, times.base)
    rows = kept[:, None, None, None]
    low, high = (
        None if own is None else np.where(rows, bound, own)
        for own, bound in zip((times.low, times.high), bounds, strict=True)
    )
    flags = zip(kept, times.flags, strict=True)
    return replace(
        times,
        values=np.where(rows, 1.0, times.values),
        flags=tuple((AS_KEPT,) if is_kept else own for is_kept, own in flags),
        low=low,
        high=high,
    )


def _joined(
    profiles: Profiles,
    of_profiled: Surfaces,
    counts: Mask,
    weights: Floats,
    bounds: Sequence[Floats],
) -> Surfaces:
    """Surfaces of all kernels: each profiled one's own, and for the others the weighted mean.

    counts, weights (profiled kernels,): which make up the mean, and how much each; bounds
    (C, E, M): what the others' intervals span besides.
    """
    has_counters = profiles.has_counters
    values, low, high = of_profiled.values, of_profiled.low, of_profiled.high
    own = values[counts]
    ends: list[Floats | None] = [None, None]
    if low is not None and high is not None:
        least, most = low[counts].min(axis=0), high[counts].max(axis=0)
        lowest = np.min([least, own.min(axis=0), *bounds], axis=0)
        highest = np.max([most, own.max(axis=0), *bounds], axis=0)
        ends = [_filled(low, lowest, has_counters), _filled(high, highest, has_counters)]
    flags = iter(of_profiled.flags)
    return replace(
        of_profiled,
        values=_filled(values, np.average(own, axis=0, weights=weights[counts]), has_counters),
        flags=tuple(next(flags) if counted else (AS_THE_MEAN,) for counted in has_counters),
        low=ends[0],
        high=ends[1],
    )


def _of_power_alone(profiles: Profiles, power: Surfaces) -> Surfaces:
    """Surfaces of power whose flags say nothing of a time that is kept."""
    kept = exchanging(profiles) & ~profiles.has_counters
    flags = zip(kept, power.flags, strict=True)
    said = tuple((POWER_AS_THE_MEAN,) if is_kept else own for is_kept, own in flags)
    return replace(power, flags=said)


def _filled(own: Floats, others: Floats, has_counters: Mask) -> Floats:
    """Values (K, C, E, M): those of profiled kernels, and one surface for each of the others."""
    filled = np.broadcast_to(others, (len(has_counters), *others.shape)).copy()
    filled[has_counters] = own
    return filled
