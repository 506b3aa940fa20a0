"""The clock for an LLM server under limits of its latencies, from readings at two clocks or more.

Between readings latencies follow `server_law`, tokens per second and power the laws of a run.
Nothing is advised outside them, above 85 % of a measured capacity, or near saturation.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from mlscale.advice.recommendation import Choice, Interval, Points
from mlscale.advice.search import choices
from mlscale.advice.server_readings import ServerReading, is_open, why_saturated
from mlscale.arrays import Floats
from mlscale.data.column_names import RATED_UNITS
from mlscale.data.profiles import MeasuredPoint
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.shipped import model_for
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.predictors.runs import Runs
from mlscale.predictors.server_law import (
    BUSY,
    CAPPED,
    OF_BLOCKS,
    ONE_KIND_WIDTH,
    POWER_NOISE,
    POWER_WIDTH,
    RATE_NOISE,
    RATE_WIDTH,
    SESSION,
    TOKENS_WIDTH,
    Between,
    Kinds,
    sampled_noise,
    split,
    width,
)
from mlscale.quantities import quantity
from mlscale.readers.serving import METRICS, STATISTICS, ServingResult

MOST_OF_CAPACITY, SATURATED = 0.85, 0.95  # rate over that of all requests at once
POOLS = {None: METRICS, "prefill": ("ttft",), "decode": ("itl", "tpot")}
LEAST_SHARE = 0.5  # the next reading's clock over the last's: below, times between are too short
LEAST_REQUESTS = {"p90": 200, "p95": 200, "p99": 1000}
_FORM = re.compile(
    rf"\s*({'|'.join(METRICS)})\s*=\s*(.+?)(x?)\s*@\s*({'|'.join(STATISTICS)})\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Slo:
    """A limit of a latency [ms], or so many times what it is at the highest clock that was run."""

    metric: str
    statistic: str
    limit_ms: float | None = None
    times: float = 1.0

    @property
    def name(self) -> str:
        """Such as 'ttft p90'."""
        return f"{self.metric} {self.statistic}"

    @property
    def percentile(self) -> float:
        """Such as 90; of a mean 50."""
        return 50.0 if self.statistic == "mean" else float(self.statistic[1:])

    @property
    def is_of_long_gaps(self) -> bool:
        """Whether gaps that are longer than most decide it."""
        return self.metric == "itl" and self.percentile > 50

    def most_ms(self, highest_ms: float) -> float:
        """The limit [ms], where the latency at the highest clock is highest_ms."""
        return self.times * highest_ms if self.limit_ms is None else self.limit_ms


def read_slos(said: str | Mapping[str, str]) -> tuple[Slo, ...]:
    """The limits that a text or {'ttft': '500ms@p90'} says. Raises InputError.

    Example:
        >>> read_slos("tpot=1.1x@p90")
        (Slo(metric='tpot', statistic='p90', limit_ms=None, times=1.1),)
    """
    if isinstance(said, Mapping):
        said = ",".join(f"{metric}={limit}" for metric, limit in said.items())
    found = []
    for text in filter(str.strip, str(said).split(",")):
        if (parts := _FORM.fullmatch(text)) is None:
            raise InputError(
                f"'{text}' is not a limit; write ttft=500ms@p90, itl=50ms@p50 or tpot=1.1x@p90, of "
                f"{', '.join(STATISTICS)}"
            )
        metric, limit, is_times, statistic = parts.groups()
        number = quantity(limit, "" if is_times else "ms")
        if not 0 < number < float("inf"):
            raise InputError(f"'{text}': a limit is a positive number")
        given = {"times": number} if is_times else {"limit_ms": number}
        found.append(Slo(metric.lower(), statistic.lower(), **given))
    return tuple(found)


SHOWN = (Slo("itl", "p50"), Slo("tpot", "p90"), Slo("ttft", "p90"))  # where the files have them


class Estimate(NamedTuple):
    """A value with the ends of its 90 % interval, None where it was measured."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> Interval:
        """Both ends; None where it was measured."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class ServerClock:
    """The server at one engine clock [MHz]: latencies by name [ms], power of all its GPUs [W].

    capacity_share: the rate of requests over the capacity, None where that is not known. breaks:
    the limits that are expected to be broken there, by name. cap_w: the power cap [W] of each GPU,
    where that is set in place of a clock, which then is NaN.
    """

    engine_mhz: float
    is_measured: bool
    latency_ms: Mapping[str, Estimate]
    power_w: Estimate
    output_per_s: Estimate
    tokens_per_joule: Estimate
    capacity_share: float | None
    breaks: tuple[str, ...] = ()
    cap_w: float | None = None

    @property
    def setting(self) -> float:
        """What is set here: the clock [MHz], or the cap [W]."""
        return self.engine_mhz if self.cap_w is None else self.cap_w

    def broken(self, limits: Iterable[tuple[Slo, float]], is_sure: bool = False) -> tuple[str, ...]:
        """The limits [ms] that are broken here; is_sure: by the upper ends of the intervals."""
        ends = {
            name: (is_sure and latency.high) or latency.value
            for name, latency in self.latency_ms.items()
        }
        names = [slo.name for slo, ms in limits if ends[slo.name] > ms * (1 + 1e-9)]
        return (*names, *["capacity"] * ((self.capacity_share or 0) > MOST_OF_CAPACITY))


@dataclass(frozen=True)
class LoadCell:
    """A server with so many clients at one engine clock [MHz], power of all its GPUs [W]."""

    clients: float
    engine_mhz: float
    is_measured: bool
    output_per_s: Estimate
    power_w: Estimate
    tokens_per_joule: Estimate


@dataclass(frozen=True, eq=False)
class ServerAdvice:
    """The server at N clocks, the highest first, between the `readings` that were used.

    base: the reading of now. limits: each with its ms. withheld: why no clock is advised though the
    limits may be kept. loads: what other numbers of clients bring, where such were run too.
    """

    readings: tuple[ServerReading, ...]
    base: ServerReading
    is_open: bool
    pool: str | None
    limits: tuple[tuple[Slo, float], ...]
    clocks: tuple[ServerClock, ...]
    withheld: str
    notes: tuple[Note, ...]
    loads: tuple[LoadCell, ...] = ()

    def best(self, is_sure: bool = False) -> ServerClock | None:
        """The clock of most tokens per joule that keeps the limits; None where none does.

        is_sure: by the upper ends of their intervals.
        """
        keeping = [clock for clock in self.clocks if not clock.broken(self.limits, is_sure)]
        if self.withheld or not keeping:
            return None
        return max(keeping, key=lambda clock: clock.tokens_per_joule.value)

    @property
    def is_of_caps(self) -> bool:
        """Whether power caps are set, not clocks."""
        return self.base.is_of_cap

    def at(self, setting: float) -> ServerClock:
        """The server at one of its clocks [MHz], or under one of its caps [W]."""
        return next(one for one in self.clocks if one.setting == setting)

    def chosen(self, choice: Choice) -> ServerClock:
        """The server at what is chosen."""
        cap_w = choice.set.get("power_cap_w") or self.base.setting
        return self.at(cap_w if self.is_of_caps else choice.engine_mhz)

    @property
    def further_mhz(self) -> int | None:
        """The clock for a reading between two that are far apart [MHz]; None where none are."""
        apart = (pair for pair in pairwise(self.readings) if _is_far(*pair))
        return next((_amid(*pair) for pair in apart), None)

    @property
    def a_limit(self) -> str:
        """A limit of a latency that all files have, 'ttft=500ms@p90'; '' where they share none."""
        told = [one.result.latencies_ms for one in self.readings]
        for metric in sorted(POOLS[self.pool], reverse=True):  # TTFT first
            for statistic in ("p90", "p95", "p99", "p50", "mean"):
                if all(f"{metric} {statistic}" in one for one in told):
                    return f"{metric}={500 if metric == 'ttft' else 50}ms@{statistic}"
        return ""

    @property
    def now(self) -> ServerClock:
        """The server at the base's clock."""
        return self.at(self.base.setting)

    @property
    def rate_per_s(self) -> float | None:
        """The rate of requests that was asked for; None where all came at once, or none was."""
        rate = self.base.result.rate_per_s if self.is_open else None
        return rate if rate is not None and np.isfinite(rate) else None

    def choice(self, clock: ServerClock) -> Choice:
        """A clock with time, power and energy of RATED_UNITS output tokens."""
        now, work, log_base = self.now, 1e3 * RATED_UNITS, self.base.log.base
        time_ms, tokens, power = (
            work / clock.output_per_s.value,
            clock.tokens_per_joule,
            clock.power_w,
        )
        energies_mj, ends_w = [time_ms * power.value], None
        if tokens.ends and power.ends:
            energies_mj += [work / end for end in tokens.ends]
            ends_w = np.array([power.ends])
        [choice] = choices(
            "energy",
            [replace(log_base, engine_mhz=clock.engine_mhz)],
            Points.single(clock.engine_mhz, time_ms, power.value),
            replace(log_base, engine_mhz=now.engine_mhz),
            Points.single(now.engine_mhz, work / now.output_per_s.value, now.power_w.value),
            np.array([energies_mj]),
            ends_w,
        )
        cap = {"power_cap_w": clock.cap_w} if clock.setting != now.setting else {}
        return replace(choice, set=cap) if self.is_of_caps else choice


def advise_server(
    model: Model,
    readings: Sequence[ServerReading],
    slos: Sequence[Slo] = (),
    pool: str | None = None,
    capacity: Sequence[ServingResult] = (),
    base: ServerReading | None = None,
) -> ServerAdvice:
    """The clock of most tokens per joule that keeps the limits, between the readings.

    model: the shipped one of runs. readings: two or more, highest clock first. pool: 'prefill' or
    'decode', of a server that does that alone. capacity: results of all requests at once, at the
    highest and the lowest clock read. base: which reading is the one of now, by default the first.
    Raises InputError.
    """
    if pool not in POOLS:
        raise InputError(f"a pool is 'prefill' or 'decode', not {pool!r}")
    is_rate, top, base = is_open(readings), readings[0], base or readings[0]
    used, withheld, notes = _unsaturated(readings) if is_rate else (tuple(readings), "", [])
    if base not in used:
        raise InputError(
            f"{parameter('base', f'engine={base.engine_mhz:g}')}: that reading is not used: "
            f"{why_saturated(top, base)}; leave engine out of {parameter('base')}"
        )
    shown = shown_latencies(readings, slos, pool)
    clocks, output_per_s = _run(model, used)
    power_w = np.zeros(len(clocks))
    law = cast("Runs", model.lead).laws_["time"]
    has_kinds = is_rate and pool is None
    kinds = _kinds(used) if has_kinds else []
    one_kind = {slo for slo in shown if slo.is_of_long_gaps and has_kinds and not kinds}
    run_widths = (RATE_WIDTH[is_rate], POWER_WIDTH, TOKENS_WIDTH)
    logs, wide = (np.zeros((len(shown), len(clocks))) for _ in range(2))
    run_wide = np.zeros((len(run_widths), len(clocks)))
    for place, pair in enumerate(pairwise(used)):
        fast, slow = (one.engine_mhz for one in pair)
        inside = (clocks <= fast) & (clocks >= slow)
        between = Between.at(law, clocks[inside], fast, slow)
        drawn_w = np.array([one.power_w for one in pair])
        rates = np.array([one.result.output_per_s for one in pair])
        power_w[inside] = between.watts(drawn_w, rates, output_per_s[inside])
        for row, slo in enumerate(shown):
            values = np.log([one.result.latency_ms(slo.name) for one in pair])
            logs[row, inside] = _latency(between, slo, values, is_rate, kinds[place : place + 2])
            midway = width(slo.metric, slo.percentile, is_rate)
            midway = ONE_KIND_WIDTH if slo in one_kind else midway
            wide[row, inside] = between.half_width(midway, noise_of(pair, slo, is_rate))
        noises = RATE_NOISE[is_rate], _power_noise(pair, is_rate)
        run_noises = (*noises, np.hypot(*noises))
        for row, (midway, noise) in enumerate(zip(run_widths, run_noises, strict=True)):
            run_wide[row, inside] = between.half_width(midway, noise)
    is_measured = np.isin(clocks, [one.engine_mhz for one in used])
    wide[:, is_measured] = run_wide[:, is_measured] = 0
    whole = Between.at(law, clocks, top.engine_mhz, readings[-1].engine_mhz)
    shares = _shares(whole, readings, capacity) if capacity else [None] * len(clocks)
    limits = tuple((slo, slo.most_ms(base.result.latency_ms(slo.name))) for slo in slos)
    names, at_clocks = [slo.name for slo in shown], []
    tokens_per_joule = output_per_s / power_w
    for at, mhz in enumerate(clocks):
        latencies = map(_estimate, np.exp(logs[:, at]), wide[:, at])
        run = (output_per_s[at], power_w[at], tokens_per_joule[at])
        rate, watts, tokens = map(_estimate, run, run_wide[:, at])
        by_name = dict(zip(names, latencies, strict=True))
        clock = ServerClock(
            float(mhz), bool(is_measured[at]), by_name, watts, rate, tokens, shares[at]
        )
        at_clocks.append(clock)
    told = tuple(replace(clock, breaks=clock.broken(limits)) for clock in at_clocks)
    notes += notes_of(readings, slos, one_kind)
    notes += [_unknown_capacity(readings)] if is_rate and not capacity else []
    return ServerAdvice(used, base, is_rate, pool, limits, told, withheld, tuple(notes))


def _run(model: Model, used: Sequence[ServerReading]) -> tuple[Floats, Floats]:
    """Clocks between the readings, and tokens per second; raises InputError.

    Both (N,) [MHz], [1/s]; of the clocks those that the GPU offers, the highest first.
    """
    first, times_ms = used[0].log, [1e3 / one.result.output_per_s for one in used]
    points = []
    for one, time_ms in zip(used[1:], times_ms[1:], strict=True):
        config = replace(one.log.base, memory_mhz=first.base.memory_mhz)
        longer_ms = np.array([max(times_ms[0], time_ms)])
        points.append(MeasuredPoint(config, longer_ms, one.log.power_w))
    profiles = replace(first, time_ms=np.array(times_ms[:1]), points=tuple(points))
    found = model_for(model, profiles).predict(profiles)
    clocks = np.array(found.grid.engine_mhz)[::-1]
    kept = (clocks >= used[-1].engine_mhz) & (clocks <= used[0].engine_mhz)
    slower = found["time"].values[0, 0, ::-1, 0][kept]
    return clocks[kept], 1e3 / (times_ms[0] * slower)


def _kinds(used: Sequence[ServerReading]) -> list[Kinds]:
    """Of each reading the short gaps and the long ones; none where not all files tell them."""
    kinds = [split(one.result.gaps_ms) for one in used if one.result.gaps_ms is not None]
    known = [each for each in kinds if each]
    return known if len(known) == len(used) else []


def _latency(
    between: Between, slo: Slo, values: Floats, is_rate: bool, kinds: Sequence[Kinds]
) -> Floats:
    """The log of a latency at clocks between two readings (N,), through its values (2,) there."""
    if kinds and slo.is_of_long_gaps:
        return between.mixed(kinds, values, slo.percentile)
    ratio = values[1:] - values[:1]
    if is_rate and not slo.is_of_long_gaps:
        return np.asarray(values[0] + between.queued(ratio, BUSY[slo.metric])[0])
    return np.asarray(values[0] + between.followed(ratio)[0])


def noise_of(pair: Sequence[ServerReading], slo: Slo, is_rate: bool) -> float:
    """Standard deviation of the log of a latency between runs at one clock.

    Other requests add to it, but for a rate, at which all runs have the same ones.
    """
    spreads = [one.result.spread.get(slo.name, np.nan) for one in pair]
    sampled = OF_BLOCKS * float(np.sqrt(np.mean(np.square(spreads))))
    if np.isnan(sampled):
        sampled = sampled_noise(slo.metric, slo.percentile)
    capped = CAPPED if any(one.is_capped and not one.is_of_cap for one in pair) else 0.0
    return float(np.linalg.norm([SESSION[slo.metric], 0.0 if is_rate else sampled, capped]))


def _power_noise(pair: Sequence[ServerReading], is_rate: bool) -> float:
    """Standard deviation of the log of power between runs; samples of short logs add to it."""
    sampled = 0.0 if is_rate else np.sqrt(np.mean([one.power_noise**2 for one in pair]))
    return float(np.hypot(POWER_NOISE, sampled))


def _estimate(value: float, width: float) -> Estimate:
    """A value with its interval; width: half of it [%], 0 for none."""
    if not width:
        return Estimate(float(value))
    low, high = (float(value * np.exp(sign * width / 100)) for sign in (-1, 1))
    return Estimate(float(value), low, high)


def shown_latencies(
    readings: Sequence[ServerReading], slos: Sequence[Slo], pool: str | None
) -> list[Slo]:
    """The limits, and the usual latencies of other kinds. Raises InputError on what files lack."""
    for slo in slos:
        if slo.metric not in POOLS[pool]:
            raise InputError(f"a {pool} pool does not show {slo.metric}; omit that limit")
        for reading in readings:
            reading.result.latency_ms(slo.name)
    others = {*POOLS[pool]} - {slo.metric for slo in slos}
    usual = [slo for slo in SHOWN if slo.metric in others]
    usual = [slo for slo in usual if all(slo.name in one.result.latencies_ms for one in readings)]
    named = {slo.name: slo for slo in (*usual, *slos)}
    return sorted(named.values(), key=lambda slo: METRICS.index(slo.metric))


def _unsaturated(
    readings: Sequence[ServerReading],
) -> tuple[tuple[ServerReading, ...], str, list[Note]]:
    """The readings that do not seem saturated, why nothing is said, and notes on the others."""
    why = {slow: why_saturated(readings[0], slow) for slow in readings[1:]}
    used = (readings[0], *(slow for slow in readings[1:] if not why[slow]))
    if len(used) == 1:
        return tuple(readings), next(iter(why.values())), []
    told = [f"{slow.result.source}: {text}: it is not used" for slow, text in why.items() if text]
    return used, "", [Note("V01", text, "warning") for text in told]


def _shares(
    between: Between, readings: Sequence[ServerReading], capacity: Sequence[ServingResult]
) -> list[float]:
    """The rate of requests over the capacity at each clock. Raises InputError."""
    first = readings[0].result
    asked = [(one.rate_per_s, one.model) for one in capacity]
    if asked != [(np.inf, first.model)] * 2 or not is_open(readings):
        raise InputError(
            f"{parameter('capacity')} is for runs at a rate: give two results of the same model "
            "with --request-rate inf, at the highest and the lowest clock of those runs"
        )
    most = sorted((one.request_per_s for one in capacity), reverse=True)
    logs = np.log((first.rate_per_s or first.request_per_s) / np.array(most))
    shares = np.exp(logs[0] + between.followed(logs[1:] - logs[:1])[0])
    if shares[-1] > SATURATED:
        raise InputError(
            f"{readings[-1].result.source}: runs at {100 * shares[-1]:.0f} % of the capacity; "
            "lower the rate, or run the slow reading at 0.75 to 0.8 of the highest clock"
        )
    return [float(share) for share in shares]


def notes_of(
    readings: Sequence[ServerReading], slos: Sequence[Slo], one_kind: set[Slo]
) -> list[Note]:
    """What to know of the readings."""
    notes, count = [], readings[0].result.completed
    if capped := [one for one in readings if one.is_capped and not one.is_of_cap]:
        at = " and ".join(f"{one.engine_mhz:g}" for one in capped)
        text = (
            f"a power limit sets the clock at {at} MHz, a mean that steps of all GPUs lag behind: "
            "intervals are wider; lock a clock below it: mlscale explain P03"
        )
        notes.append(Note("P03", text, "warning"))
    for fast, slow in pairwise(readings):
        if _is_far(fast, slow):
            share = slow.engine_mhz / fast.engine_mhz
            text = (
                f"{slow.result.source}: ran at {share:.2f} of the clock of {fast.result.source}; "
                f"times between may be too short, so run it at about {_amid(fast, slow)} MHz too"
            )
            notes.append(Note("P02", text, "warning"))
    needed = {slo.name: LEAST_REQUESTS.get(slo.statistic, 0) for slo in slos}
    if names := [name for name, least in needed.items() if count < least]:
        text = f"{count:g} requests are too few for {', '.join(names)}; send {max(needed.values())}"
        notes.append(Note("V02", f"{text}: until then its interval is not reliable"))
    if names := [slo.name for slo in slos if slo in one_kind]:
        lacking = [one.result.source for one in readings if one.result.gaps_ms is None]
        why, mend = "no file lists the gaps between tokens", "run vLLM with --save-detailed"
        if len(lacking) < len(readings):
            why = f"the gaps between tokens are not listed in {', '.join(lacking)}"
        if not lacking:
            why, mend = "the files list too few gaps between tokens", "send more requests"
        text = (
            f"{why}, so the interval of {', '.join(names)} is wide; {mend}, or limit tpot instead"
        )
        notes.append(Note("V02", text, "warning"))
    return notes


def _is_far(fast: ServerReading, slow: ServerReading) -> bool:
    """Whether two readings need another one between them."""
    return slow.engine_mhz < LEAST_SHARE * fast.engine_mhz


def _amid(fast: ServerReading, slow: ServerReading) -> int:
    """The clock for a reading between two, as far from either [MHz]."""
    return round(float(np.sqrt(fast.engine_mhz * slow.engine_mhz)))


def _unknown_capacity(readings: Sequence[ServerReading]) -> Note:
    """That nobody knows how near saturation the server is."""
    told = "the server's capacity is not known"
    if names := [one.result.source for one in readings if one.result.growth is None]:
        told += f", nor whether waits keep growing: no start_times in {', '.join(names)}"
    both = parameter("capacity", "FILE,FILE")
    told += f"; run at both clocks with --request-rate inf too: {both}"
    return Note("V01", told, "warning")
