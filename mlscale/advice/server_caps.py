"""The power cap for an LLM server that was read under two caps or more; no clock is needed.

With a fixed number of clients every time of a server follows the watts as a run's does under caps,
`capped_runs`. Of a rate of requests that was not tried: it is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, exp, nan

import numpy as np

from mlscale.advice.capped_runs import (
    SAME_W,
    SECOND,
    CappedReading,
    drawn_under,
    plateau_notes,
    times_under,
)
from mlscale.advice.caps import STEP_W, cap_steps
from mlscale.advice.server import (
    Estimate,
    ServerAdvice,
    ServerClock,
    Slo,
    noise_of,
    notes_of,
    shown_latencies,
)
from mlscale.advice.server_readings import ServerReading, is_open
from mlscale.arrays import Floats
from mlscale.data.supply import is_at_limit, supply_of_run
from mlscale.errors import InputError
from mlscale.predictors.server_law import POWER_NOISE, RATE_NOISE, Z90


def advise_server_caps(
    readings: Sequence[ServerReading], slos: Sequence[Slo] = (), pool: str | None = None
) -> ServerAdvice:
    """The cap of most tokens per joule that keeps the limits, between the readings.

    readings: two or more, highest cap first. Raises InputError.
    """
    top = readings[0]
    if is_open(readings):
        raise InputError(
            f"{top.result.source}: requests come at a rate, and power alone does not show "
            "how long they take; log the clock too (clocks.sm)"
        )
    shown = shown_latencies(readings, slos, pool)
    boards = supply_of_run(top.log).boards
    drew = [
        CappedReading(1.0, one.power_w / boards, one.log.power_cap_w, one.result.source)
        for one in readings
    ]
    first, last = drew[0], drew[-1]
    for upper, lower in pairwise(drew):
        if lower.power_w > (1 - SAME_W) * upper.power_w:
            raise InputError(
                f"{lower.source}: drew {lower.power_w:.0f} W, {upper.source} {upper.power_w:.0f} "
                "W: the lower cap hardly changes anything; run it under about "
                f"{SECOND * first.power_w:.0f} W"
            )
    highest_w = first.cap_w
    if not is_at_limit(first.power_w, highest_w):  # above what it draws caps are alike
        highest_w = min(highest_w, ceil(first.power_w / STEP_W) * STEP_W)
    caps = np.union1d(cap_steps(last.cap_w, highest_w), [one.cap_w for one in drew])[::-1]
    watts = drawn_under(caps, drew)
    is_read = np.isin(caps, [one.cap_w for one in drew])
    place = np.interp(-watts, [-one.power_w for one in drew], np.arange(len(drew))) % 1
    runs = np.sqrt(1 + place**2 + (1 - place) ** 2)  # noise of a further run and two readings

    def under(values: Sequence[float], noise: float) -> Floats:
        """Values under the caps, and half of their intervals' logs down and up (3, P)."""
        each = [replace(one, time_ms=value) for one, value in zip(drew, values, strict=True)]
        middle, *ends = times_under(watts, each).T
        wide = [np.hypot(np.log(end / middle), Z90 * noise * runs) for end in ends]
        return np.array([middle, *np.where(is_read, 0.0, wide)])

    times = under([1 / one.result.output_per_s for one in readings], RATE_NOISE[False])
    power_wide = np.where(is_read, 0, Z90 * POWER_NOISE * runs)
    power = np.array([watts * boards, power_wide, power_wide])
    rate = np.array([1 / times[0], times[2], times[1]])
    tokens = np.array([rate[0] / power[0], *np.hypot(rate[1:], power[1:])])
    latencies = {
        slo.name: under(
            [one.result.latency_ms(slo.name) for one in readings],
            noise_of(readings, slo, is_rate=False),
        )
        for slo in shown
    }
    limits = tuple((slo, slo.most_ms(top.result.latency_ms(slo.name))) for slo in slos)
    clocks = []
    for at, cap_w in enumerate(caps.tolist()):
        by_name = {name: _estimate(told[:, at]) for name, told in latencies.items()}
        drawn, served, per_joule = (_estimate(told[:, at]) for told in (power, rate, tokens))
        clock = ServerClock(
            nan, bool(is_read[at]), by_name, drawn, served, per_joule, None, cap_w=cap_w
        )
        clocks.append(replace(clock, breaks=clock.broken(limits)))
    notes = (*notes_of(readings, slos, set()), *plateau_notes(drew))
    return ServerAdvice(tuple(readings), top, False, pool, limits, tuple(clocks), "", notes)


def _estimate(told: Floats) -> Estimate:
    """A value with its interval, none where it was read; told: value, and logs down and up."""
    value, down, up = told.tolist()
    return Estimate(value, value * exp(-down), value * exp(up)) if up else Estimate(value)
