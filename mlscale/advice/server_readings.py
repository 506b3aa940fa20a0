"""Readings of an LLM server: a benchmark's result and the log beside it, at two clocks or more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isnan, log, nan
from pathlib import Path

import numpy as np

from mlscale.advice.caps import refuse_unlike_limits
from mlscale.data.devices import find_device
from mlscale.data.grid import HardwareConfig, parse_settings
from mlscale.data.logs import SAME_CLOCK
from mlscale.data.points import warn_of_base
from mlscale.data.profiles import Profiles
from mlscale.data.supply import is_at_limit, supply_of_run
from mlscale.errors import InputError
from mlscale.parameters import parameter
from mlscale.readers.busy_span import BusySpan, busy_span, limit_w, mean_of
from mlscale.readers.given import Given
from mlscale.readers.log_table import logged_run
from mlscale.readers.monitor import Samples
from mlscale.readers.reading import read as read_run
from mlscale.readers.serving import BLOCKS, MOST_GROWTH, ServingResult, read_result
from mlscale.readers.source import Source

STEADY = 1.03  # highest over lowest clock, in four of five samples, that counts as one
APART = 0.05  # least difference of two clocks
MOST_FAILED = 0.01  # share of requests
SAME_OUTPUT = 0.01  # by which output tokens may differ
SAME_RATE = 0.05  # by which the rate of requests may fall, where no file says that one was held
# Where requests at a rate pile up, the slow reading serves fewer, and more run side by side in it,
# so that a step takes longer than by the clock: 13 of 28 simulated servers, and 1 of 63 others.
SERVED_LESS = 0.05
MOST_EXPONENT = 2.5  # how the time to first token may follow the clock
# Over the benchmark's duration that of the log's busy span, but for WARM_UP_S before it, and the
# other way round where the log begins and ends idle; and the least of a log amid the benchmark.
OTHER_RUN, WARM_UP_S, LEAST_AMID = 1.5, 30.0, 0.1
LEAST_RUNNING = 0.5  # requests side by side, over the share of the time that the GPU is busy
# What takes less at the lower clock has the log of another run: of 2862 pairs of a V100's clocks no
# time for a token did, and of fixed clients one for a request. First tokens and high percentiles
# are of too few requests to tell, unless there is nothing else.
FASTER, _TOKENS = 0.97, ("itl mean", "itl p50", "tpot mean", "tpot p50")
_ALIKE = {"rate_per_s": "rate of requests", "clients": "number of clients",
          "sent": "number of requests", "backend": "backend", "model": "model",
          "input_tokens": "number of input tokens"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ServerReading:
    """A server at one clock: the benchmark's result, and the log of its GPUs, as one.

    power_noise: as its samples show it.
    """

    result: ServingResult
    log: Profiles
    power_noise: float = 0.0

    @property
    def engine_mhz(self) -> float:
        """Its clock [MHz]; NaN of a cap."""
        return self.log.base.engine_mhz

    @property
    def is_of_cap(self) -> bool:
        """Whether it was read under a power cap, whatever the clock."""
        return isnan(self.engine_mhz)

    @property
    def setting(self) -> float:
        """Its clock [MHz], or its cap [W]."""
        return self.log.power_cap_w if self.is_of_cap else self.engine_mhz

    @property
    def at(self) -> str:
        """That in words: '1980 MHz'."""
        return f"{self.setting:g} {'W' if self.is_of_cap else 'MHz'}"

    @property
    def power_w(self) -> float:
        """What all its GPUs draw [W]."""
        return nan if self.log.power_w is None else float(self.log.power_w.sum())

    @property
    def is_capped(self) -> bool:
        """Whether its power limit set the clock."""
        return supply_of_run(self.log).holds


def read_readings(
    files: Sequence[Source], given: Given, is_of_caps: bool = False
) -> list[ServerReading]:
    """The readings of a result, its log, and so on, as they are given.

    A log without clocks has them in its settings; is_of_caps: none is needed. Raises InputError.
    """
    if len(files) % 2 or not files:
        further = parameter("also", "RESULT LOG")
        raise InputError(f"give each result its log, in pairs: RESULT LOG {further}")
    results, logs = files[::2], files[1::2]
    for result, file in zip(results, logs, strict=True):
        if file.is_benchmark:
            told = f"is a benchmark's result, not the log of {result}"
            raise InputError(f"{file}: {told}; give each result its log: RESULT LOG")
    readings, read = [], _capped_reading if is_of_caps else _reading
    for result, file in zip(results, logs, strict=True):
        base = dict(given.base)
        if file.tells_engine_clock:
            base.pop("engine_mhz", None)  # it names one of the readings, perhaps another
        base |= parse_settings(file.settings) if file.settings else {}
        found = read_result(result.file)
        _require_usable(found)
        readings.append(read(found, file, replace(given, base=base)))
    return readings


def in_order(given: Sequence[ServerReading]) -> list[ServerReading]:
    """Readings that can be compared, that of the highest clock first. Raises InputError."""
    first = given[0].result.source
    readings = sorted(given, key=lambda reading: -reading.setting)
    if len(readings) < 2:
        what, at = ("power cap", "under") if readings[0].is_of_cap else ("clock", "at")
        raise InputError(
            f"{first}: one {what} does not show how latencies change with it; run the same {at} "
            f"about two thirds of the {what} too: {parameter('also', 'RESULT LOG')}"
        )
    for upper, lower in pairwise(readings):
        _require_same_load(upper, lower)
        if upper.setting < (1 + APART) * lower.setting:
            raise InputError(
                f"{lower.result.source}: ran at {lower.at}, {upper.result.source} at {upper.at}: "
                "too close; run one at two thirds of the other"
            )
        _require_alike(upper, lower)
    return readings


def base_of(
    readings: Sequence[ServerReading], first: Path, said: Mapping[str, float]
) -> ServerReading:
    """The reading that is the base: that of the highest clock, or the one that `said` names.

    first: the result that was given first. Raises InputError where no reading ran at that clock.
    """
    if readings[0].is_of_cap and "engine_mhz" in said:
        named = parameter("base", f"engine={said['engine_mhz']:g}")
        raise InputError(f"{named}: a power cap is advised without any clock; omit it")
    asked_mhz = said.get("engine_mhz", readings[0].setting)
    base = min(readings, key=lambda reading: abs(log(reading.setting / asked_mhz)))
    if abs(asked_mhz / base.setting - 1) > SAME_CLOCK:
        raise InputError(
            f"{parameter('base', f'engine={asked_mhz:g}')}: no reading is at that clock; the "
            f"nearest is {base.result.source}, at {base.at}"
        )
    if base.result.source != str(first):
        warn_of_base(f"{base.result.source}, at {base.at}", str(first))
    return base


def _require_usable(result: ServingResult) -> None:
    """Raise InputError of a result that cannot be compared with another."""
    if result.failed > MOST_FAILED * result.sent:
        told = f"{result.failed:g} of {result.sent:g} requests failed; run it where none fail"
        raise InputError(f"{result.source}: {told}")
    if result.rate_per_s == inf and result.clients is None:
        raise InputError(
            f"{result.source}: all requests came at once (rate inf), so latencies are those of "
            "the queue; run with --request-rate or --max-concurrency, and give this as "
            f"{parameter('capacity')}"
        )


def _capped_reading(result: ServingResult, file: Source, given: Given) -> ServerReading:
    """A result with its log, which must have power and its limit. Raises InputError."""
    run = logged_run(file.path, file.samples, given)
    for samples, span in run.each:
        _require_same_run(result, samples, span)
    refuse_unlike_limits(run.log.source, run.unlike_caps)
    if isnan(run.power_w) or isnan(run.lowest_cap_w):
        lacking = "the board's power" if isnan(run.power_w) else "its power limit (power.limit)"
        raise InputError(f"{file}: does not show {lacking}; log that too")
    name = given.device or run.log.name
    metadata = {"gpus": run.gpus, "power_limit_w": run.limit_to_put_back_w}
    log = Profiles(
        known.key if (known := find_device(name)) else name, HardwareConfig(0, nan, nan),
        ("server",), ("server",), np.array([1e3 * result.duration_s]), np.array([run.power_w]),
        (), np.empty((1, 0)), metadata, power_cap_w=run.lowest_cap_w,
        gpu_count=len(run.each), hottest_gpu_ratio=run.hottest_gpu_ratio,
    )  # fmt: skip
    return ServerReading(result, log)


def _reading(result: ServingResult, file: Source, given: Given) -> ServerReading:
    """A result with its log, which must have a steady clock and power. Raises InputError."""
    noises = [0.0]
    for samples in file.samples:
        if given.gpu not in (None, samples.gpu):
            continue
        try:
            span = busy_span(samples)
        except InputError:
            continue  # an idle one of several; where all are, `read_run` says it
        if "engine_mhz" in samples.columns:
            _require_steady(samples, span)
        _require_same_run(result, samples, span)
        noises.append(power_noise(samples, span))
    if not file.tells_engine_clock and "engine_mhz" not in given.base:
        told = f"log that too (clocks.sm), or give what was set, {file.name}@engine=MHZ"
        caps = f"for runs under two power caps: {parameter('lever', 'cap')}"
        raise InputError(f"{file}: does not show the engine clock; {told}; {caps}")
    profiles = read_run([file], replace(given, time_ms=1e3 * result.duration_s))
    if profiles.power_w is None or np.isnan(profiles.power_w).any():
        raise InputError(f"{file}: does not show the board's power; log that too")
    return ServerReading(result, profiles, max(noises))


def power_noise(samples: Samples, span: BusySpan) -> float:
    """Standard deviation of the log of a span's mean power, as blocks of its samples show it.

    0 of an energy counter, which misses nothing.
    """
    if "power_w" not in samples.columns or "energy_j" in samples.columns:
        return 0.0
    watts = samples.columns["power_w"][span.inside]
    blocks = np.array_split(watts[~np.isnan(watts)], BLOCKS)
    logs = [np.log(block.mean()) for block in blocks if block.size]
    return float(np.std(logs) / np.sqrt(len(logs) - 1)) if len(logs) > 1 else 0.0


def _require_steady(samples: Samples, span: BusySpan) -> None:
    """Raise InputError where the clock swings, although no power limit is drawn."""
    low, high = np.nanquantile(samples.columns["engine_mhz"][span.working], [0.1, 0.9])
    unknown = np.full(len(samples), np.nan)
    watts = mean_of(samples.columns.get("power_w", unknown)[span.working])
    if high > STEADY * low and not is_at_limit(watts, limit_w(samples, span)):
        raise InputError(
            f"{samples}: the clock swings from {low:.0f} to {high:.0f} MHz within the run; "
            "lock it, and run again"
        )


def _require_same_run(result: ServingResult, samples: Samples, span: BusySpan) -> None:
    """Raise InputError where a log is not of the benchmark, or a GPU is too busy for its result."""
    run_s, busy_s = result.duration_s, (span.time_ms or 1e3 * result.duration_s) / 1e3
    least_by_ends = ((run_s - WARM_UP_S) / OTHER_RUN, LEAST_AMID * run_s, 0.0)
    least_s = least_by_ends[len(span.open_ends)]
    if not least_s <= busy_s + 2 * span.period_s <= OTHER_RUN * run_s + WARM_UP_S:
        mend = "give each result the log of its own run"
        if span.open_ends and busy_s < run_s:
            mend = (
                "the log is too short to be compared: log the whole benchmark, or begin and end "
                f"within it, {LEAST_AMID * run_s:.0f} s apart or more"
            )
        raise InputError(
            f"{samples}: the GPU is busy for {busy_s:.0f} s, but the benchmark of {result.source} "
            f"took {run_s:.0f} s (duration); {mend}"
        )
    activity = samples.columns.get("gpu_utilisation", np.zeros(len(samples)))
    busy = mean_of(activity[span.inside])
    if result.in_flight is not None and result.in_flight < LEAST_RUNNING * busy:
        raise InputError(
            f"{result.source}: its latencies imply {result.in_flight:.2g} requests side by side, "
            f"but {samples} has the GPU busy for {100 * busy:.0f} % of the time; latencies are in "
            "ms, and each result needs the log of its own run"
        )


def _require_same_load(first: ServerReading, other: ServerReading) -> None:
    """Raise InputError where two readings are of other servers or loads, or one."""
    one, two = first.result, other.result
    if (one.latencies_ms, one.duration_s) == (two.latencies_ms, two.duration_s):
        raise InputError(f"{two.source}: is a copy of {one.source}; give the file of the other run")
    facts = [
        {words: getattr(at.result, name) for name, words in _ALIKE.items()}
        | {"number of GPUs": at.log.gpu_count, "GPU": at.log.device}
        for at in (first, other)
    ]
    for name, ours in facts[0].items():
        if ours != (theirs := facts[1][name]):
            its, our = (
                f"{x:.9g}" if isinstance(x, float) else x or "not given" for x in (theirs, ours)
            )
            raise InputError(
                f"{two.source}: its {name} is {its}, that of {one.source} {our}; run the same "
                "command, with one seed, at both clocks"
            )


def _require_alike(first: ServerReading, other: ServerReading) -> None:
    """Raise InputError where two readings are swapped, or of other requests."""
    one, two = first.result, other.result
    both = one.latencies_ms.keys() & two.latencies_ms.keys()
    ratios = [two.latencies_ms[name] / one.latencies_ms[name] for name in both]
    ratio = min(_ratios_of_middles(one, two), default=max(ratios, default=1.0))
    if one.load == two.load == "closed":
        ratio = min(ratio, one.request_per_s / two.request_per_s)
    if ratio < FASTER:
        raise InputError(
            f"{two.source}: takes {ratio:.2f} times as long as {one.source}, though the logs say "
            f"{other.at} and {first.at}; give each result the log of its "
            "own run"
        )
    outputs = one.output_tokens or 1, two.output_tokens or 1
    if abs(outputs[1] / outputs[0] - 1) > SAME_OUTPUT:
        raise InputError(
            f"{two.source}: has {outputs[1]:g} output tokens, {one.source} {outputs[0]:g}; give "
            "both runs the same requests: one seed, and --ignore-eos"
        )


def require_same_server(groups: Sequence[Sequence[ServerReading]]) -> None:
    """Raise InputError unless readings of several numbers of clients are of one server."""
    first = groups[0][0]
    for other in (group[0] for group in groups[1:]):
        ours, theirs = ((at.log.device, at.log.gpu_count, at.result.model) for at in (first, other))
        if ours != theirs:
            raise InputError(
                f"{other.result.source}: is of another GPU, number of GPUs or model than "
                f"{first.result.source}; give results of one server"
            )


def _ratios_of_middles(one: ServingResult, two: ServingResult) -> list[float]:
    """How many times as long two takes for a token, by each middle that both have."""
    both = one.latencies_ms.keys() & two.latencies_ms.keys()
    return [two.latencies_ms[name] / one.latencies_ms[name] for name in _TOKENS if name in both]


def is_open(readings: Sequence[ServerReading]) -> bool:
    """Whether requests came at a rate; where no file says it, whether the rate hardly fell."""
    loads = {reading.result.load for reading in readings}
    fall = 1 - readings[-1].result.request_per_s / readings[0].result.request_per_s
    return loads != {"closed"} and (loads != {""} or fall < SAME_RATE)


def why_saturated(first: ServerReading, slow: ServerReading) -> str:
    """Why a reading under a rate of requests seems saturated; '' where it does not."""
    for reading in (first, slow):
        result, growth = reading.result, reading.result.growth or 1.0
        if result.load == "closed":
            (other,) = {first, slow} - {reading}
            told = f"{result.clients:g} clients limit the rate at {reading.engine_mhz:g} MHz"
            if other.result.load != "closed":
                told += f" and not at {other.engine_mhz:g}"
            return f"{told}: raise --max-concurrency, or lower it to limit both"
        if result.load == "overloaded":
            return (
                f"overloaded at {reading.engine_mhz:g} MHz, where it serves "
                f"{result.request_per_s:.3g} of the {result.rate_per_s:g} requests/s that arrive"
            )
        if growth > MOST_GROWTH:
            return (
                f"at {reading.engine_mhz:g} MHz the last third of the requests waits {growth:.1f} "
                "times as long for the first token as the first third"
            )
    served = slow.result.request_per_s / first.result.request_per_s
    longer = min(_ratios_of_middles(first.result, slow.result), default=0.0)
    if served < 1 - SERVED_LESS and longer > first.engine_mhz / slow.engine_mhz:
        return (
            f"at {slow.engine_mhz:g} MHz {100 * (1 - served):.0f} % fewer requests/s are served, "
            f"and a token takes {longer:.2f} times as long, more than the clock alone explains"
        )
    if not all("ttft p50" in one.result.latencies_ms for one in (first, slow)):
        return ""
    fast_ms, slow_ms = (one.result.latencies_ms["ttft p50"] for one in (first, slow))
    exponent = log(slow_ms / fast_ms) / log(first.engine_mhz / slow.engine_mhz)
    told = f"the first token takes {slow_ms / fast_ms:.1f} times as long at {slow.engine_mhz:g} MHz"
    return told if exponent > MOST_EXPONENT else ""
