"""Kernels of which counters do not tell how their time follows clocks.

Those without counters, known by their time alone, are predicted like the mean of the profiled.
Those that exchange data between GPUs wait for links and for the others: their time is kept, and
they are no part of that mean.
"""

from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import Profiles, is_exchange
from mlscale.data.surfaces import BOUNDS, Surfaces, scaling_bounds
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.text import listed, share_in_percent, shortened

AS_THE_MEAN = Note("T06", "no counters: assumed to scale as the profiled kernels do on average")
POWER_AS_THE_MEAN = Note("T06", "no counters: assumed to draw the profiled kernels' average power")
AS_KEPT = Note(
    "P07", "exchanges data between GPUs: time is assumed constant, at most to scale with a clock"
)
MOST_NAMED = 3  # kernels to profile
MOST_UNKNOWN = 0.9  # share of the time in kernels that only others tell of


def refuse_times_alone(profiles: Profiles) -> None:
    """Raise InputError where no kernel was counted, naming the kernels to profile first."""
    if profiles.are_times_alone:
        raise InputError(
            "no kernel has counters, which this model needs: leave out "
            f"{parameter('model')} to use one that needs times alone, or add a profile of the "
            f"kernels that take most time: {kernels_of_most(profiles, profiles.run_times_ms)}"
        )


def refuse_little_cover(profiles: Profiles) -> None:
    """Raise InputError where nearly all of a run would be taken to do as a few counted kernels.

    Names the kernels to profile. Those with times at a further clock count as known; those that
    exchange data between GPUs, which other kernels say nothing of, not at all.
    """
    unknown_ms = _unknown_ms(profiles)
    times_ms = np.where(exchanging(profiles), 0, profiles.run_times_ms)
    if not profiles.are_times_alone and unknown_ms.sum() > MOST_UNKNOWN * times_ms.sum():
        raise InputError(
            f"{share_in_percent(taken_for_the_mean(profiles))} % of the run's time is in "
            "kernels without counters, too much to treat as the mean of the others: profile "
            f"those of most time too: {kernels_of_most(profiles, unknown_ms)}; or leave out "
            f"those without counters ({parameter('profiled_only')})"
        )


def taken_for_the_mean(profiles: Profiles) -> float:
    """The share of a run's time in kernels that nothing but the others' mean tells of, 0 to 1."""
    return float(_unknown_ms(profiles).sum() / profiles.run_times_ms.sum())


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
        f"'{shortened(profiles.kernels[k])}' ({percent[k]:.0f} %)"
        for k in np.argsort(-times_ms, kind="stable")[:MOST_NAMED]
        if times_ms[k]
    )


def left_out(profiles: Profiles) -> tuple[Note, ...]:
    """A warning of the kernels without counters, where they are left out; none without such."""
    uncounted = ~profiles.has_counters
    if not uncounted.any():
        return ()
    positions = [k for k in np.argsort(-profiles.run_times_ms) if uncounted[k]]
    kernels = listed([f"'{shortened(profiles.kernels[k])}'" for k in positions])
    percent = share_in_percent(1 - profiles.counters_cover)
    told = f"left out, as without counters: {kernels}, {percent} % of the run's time"
    return (Note("T09", told, "warning"),)


def exchanging(profiles: Profiles) -> Mask:
    """Which kernels exchange data between GPUs, by their names, (K,); no run of a monitor's log."""
    if is_sampled(profiles.metadata):
        return np.zeros(len(profiles.kernels), dtype=bool)
    return np.array([is_exchange(name) for name in profiles.kernels], dtype=bool)


def complete(
    profiles: Profiles, predicted: dict[str, Surfaces]
) -> tuple[Profiles, dict[str, Surfaces]]:
    """Profiles and surfaces of all kernels, from the surfaces predicted for those with counters.

    predicted: by quantity, of the kernels of `profiles.has_counters`, in their order. A kernel
    without counters scales in time as all profiled ones together do, weighted by their time in the
    run, and in power as their energy at the base weighs. Its power at the base, where it was not
    measured, is the profiled kernels' mean over their time. Its interval spans all that the
    profiled kernels' values and intervals reach, and in time what `scaling_bounds` allow: the
    profiled ones may be few. There is none where the predictor gives none.
    """
    if not profiles.has_counters.all():
        profiles, predicted = _with_unprofiled(profiles, predicted)
    return profiles, predicted | {"time": with_exchanges_kept(profiles, predicted["time"])}


def _with_unprofiled(
    profiles: Profiles, predicted: dict[str, Surfaces]
) -> tuple[Profiles, dict[str, Surfaces]]:
    has_counters, exchanges = profiles.has_counters, exchanging(profiles)
    counts = ~exchanges[has_counters]
    counts |= not counts.any()  # those that exchange data are the mean where there is no other
    times_ms = np.where(counts, profiles.run_times_ms[has_counters], 0)
    time = predicted["time"]
    bounds = scaling_bounds(time.grid, time.base)
    flags = [AS_THE_MEAN] * len(exchanges)
    surfaces = {"time": _with_mean(time, has_counters, times_ms, flags, bounds)}
    base_w = profiles.power_w
    if "power" in predicted and base_w is not None:
        profiled_w = base_w[has_counters]
        mean_w = float(np.average(profiled_w, weights=times_ms))
        base_w = np.where(has_counters | np.isfinite(base_w), base_w, mean_w)
        flags = [POWER_AS_THE_MEAN if is_kept else AS_THE_MEAN for is_kept in exchanges]
        energies = times_ms * profiled_w
        surfaces["power"] = _with_mean(predicted["power"], has_counters, energies, flags)
    return replace(profiles, power_w=base_w), surfaces


def _with_mean(
    profiled: Surfaces,
    has_counters: Mask,
    weights: Floats,
    flags: list[Note],
    bounds: tuple[Floats, ...] = (),
) -> Surfaces:
    """Surfaces of all K kernels: each profiled one as it is, the others the weighted mean of them.

    weights (profiled kernels,): 0 for those that do not count. flags (K,): of the others. bounds
    (C, E, M): what the others' intervals span besides.
    """

    def with_others(values: Floats, others: Floats) -> Floats:
        filled = np.broadcast_to(others, (len(has_counters), *others.shape)).copy()
        filled[has_counters] = values
        return filled

    counts = weights > 0
    values, low, high = profiled.values, profiled.low, profiled.high
    if low is not None and high is not None:
        reached = [values[counts], low[counts], high[counts], *(bound[None] for bound in bounds)]
        spanned = np.concatenate(reached)
        low, high = with_others(low, spanned.min(axis=0)), with_others(high, spanned.max(axis=0))
    known = iter(profiled.flags)
    each = zip(has_counters, flags, strict=True)
    return replace(
        profiled,
        values=with_others(values, np.average(values, axis=0, weights=weights)),
        flags=tuple(next(known) if counted else (flag,) for counted, flag in each),
        low=low,
        high=high,
    )


def with_exchanges_kept(profiles: Profiles, times: Surfaces) -> Surfaces:
    """Surfaces of time where no clock changes kernels that exchange data between GPUs.

    Their interval spans what a kernel may reach that is bound by the CUs alone, by the memory
    alone, or by neither. Those with a time at a further clock, or with bounds alone, are left.
    """
    kept = exchanging(profiles) & ~profiles.has_further_time
    kept &= [BOUNDS.isdisjoint(flags) for flags in times.flags]
    if not kept.any():
        return times
    bounds = scaling_bounds(times.grid, times.base)
    rows = kept[:, None, None, None]
    low, high = (
        None if end is None else np.where(rows, bound, end)
        for end, bound in zip((times.low, times.high), bounds, strict=True)
    )
    flags = zip(kept, times.flags, strict=True)
    return replace(
        times,
        values=np.where(rows, 1.0, times.values),
        flags=tuple((AS_KEPT,) if is_kept else known for is_kept, known in flags),
        low=low,
        high=high,
    )
