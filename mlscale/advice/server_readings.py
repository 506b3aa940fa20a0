"""Readings of an LLM server: a benchmark's result and the log beside it, at two clocks or more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log
from pathlib import Path

import numpy as np

from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.readers.busy_span import busy_span
from mlscale.readers.given import Given
from mlscale.readers.monitor import read_log
from mlscale.readers.reading import read as read_run
from mlscale.readers.serving import ServingResult, read_result

STEADY = 1.03  # highest over lowest clock, in four of five samples, that counts as one
APART = 0.05  # least difference of two clocks
MOST_FAILED = 0.01  # of the requests
SAME_OUTPUT = 0.01  # by which output tokens may differ
SAME_RATE = 0.05  # by which the rate of requests may fall, where no file says that one was held
MOST_GROWTH, MOST_EXPONENT = 1.6, 2.5  # of the time to first token, in a run and over the clock
OTHER_RUN = 2.0  # times as long as the log, or the log as the run


@dataclass(frozen=True, eq=False)
class ServerReading:
    """A server at one clock: the benchmark's result, and its GPUs' log, a row for each GPU."""

    result: ServingResult
    log: Profiles

    @property
    def engine_mhz(self) -> float:
        """Its clock [MHz]."""
        return self.log.base.engine_mhz

    @property
    def power_w(self) -> float:
        """What all its GPUs draw [W]."""
        return float(self.log.base_power_w.sum())


def read_readings(pairs: Sequence[tuple[Path, Path]], given: Given) -> list[ServerReading]:
    """The readings of (result, log), that of the highest clock first. Raises InputError."""
    readings = [_reading(read_result(result), path, given) for result, path in pairs]
    readings.sort(key=lambda reading: -reading.engine_mhz)
    require_same_work(readings)
    return readings


def _reading(result: ServingResult, path: Path, given: Given) -> ServerReading:
    """A result with its log, which must have a steady clock and power. Raises InputError."""
    for samples in read_log(path):
        if given.gpu not in (None, samples.gpu) or "engine_mhz" not in samples.columns:
            continue
        try:
            span = busy_span(samples)
        except InputError:
            continue  # an idle GPU of several; where all are, the next step says so
        clocks = samples.columns["engine_mhz"][span.working]
        low, high = np.nanquantile(clocks, [0.1, 0.9])
        if high > STEADY * low:
            raise InputError(
                f"{samples}: the clock swings from {low:.0f} to {high:.0f} MHz within the run; "
                "lock it (nvidia-smi -lgc MHZ,MHZ), and run again"
            )
        times = 1e-3 * (span.time_ms or 1e3 * result.duration_s) / result.duration_s
        if not 1 / OTHER_RUN < times < OTHER_RUN:
            raise InputError(
                f"{samples}: the GPU is busy for {times * result.duration_s:.0f} s, and "
                f"{result.source} took {result.duration_s:.0f} s; give the log of that run"
            )
    told = replace(given, time_ms=1e3 * result.duration_s)
    profiles = read_run([path], told)
    if profiles.power_w is None or np.isnan(profiles.base_power_w).any():
        raise InputError(f"{path}: has no power; log power.draw too")
    return ServerReading(result, profiles)


def require_same_work(readings: Sequence[ServerReading]) -> None:
    """Raise InputError unless the readings are of one server and load, at clocks apart."""
    first = readings[0]
    if len(readings) < 2:
        raise InputError(
            f"{first.result.source}: one clock does not tell how latencies follow it; run the same "
            "benchmark at about two thirds of the clock too, and give it: --also RESULT LOG"
        )
    for reading in readings:
        result = reading.result
        if result.failed > MOST_FAILED * result.asked:
            raise InputError(
                f"{result.source}: {result.failed:g} of {result.asked:g} requests failed; run it "
                "again where none does"
            )
        if result.rate_per_s == inf and result.clients is None:
            raise InputError(
                f"{result.source}: all requests came at once (rate inf), which tells of no latency; "
                "give --request-rate, or --max-concurrency, and this run as --capacity"
            )
    for upper, lower in pairwise(readings):
        if upper.engine_mhz < (1 + APART) * lower.engine_mhz:
            raise InputError(
                f"{lower.result.source}: ran at {lower.engine_mhz:g} MHz, {upper.result.source} at "
                f"{upper.engine_mhz:g}; take a clock at least {100 * APART:g} % lower, best two "
                "thirds"
            )
    for other in readings[1:]:
        _require_alike(first, other)


def _require_alike(first: ServerReading, other: ServerReading) -> None:
    """Raise InputError where two readings are of other servers, loads or requests."""
    one, two = first.result, other.result
    facts = {
        "request rate": (one.rate_per_s, two.rate_per_s),
        "limit of clients": (one.clients, two.clients),
        "number of requests": (one.asked, two.asked),
        "backend": (one.backend, two.backend),
        "model": (one.model, two.model),
        "GPU": (first.log.device, other.log.device),
        "number of GPUs": (len(first.log.kernels), len(other.log.kernels)),
        "number of input tokens": (one.input_tokens, two.input_tokens),
    }
    for name, (ours, theirs) in facts.items():
        if ours != theirs:
            texts = [f"{v:.15g}" if isinstance(v, float) else v for v in (ours, theirs)]
            raise InputError(
                f"{two.source}: its {name} is {texts[1]}, that of {one.source} {texts[0]}; run the "
                "same command, with one --seed, at both clocks"
            )
    outputs = one.output_tokens, two.output_tokens
    if all(outputs) and abs(log(outputs[1] / outputs[0])) > SAME_OUTPUT:  # type: ignore[operator]
        raise InputError(
            f"{two.source}: has {outputs[1]:g} output tokens, {one.source} {outputs[0]:g}; give "
            "both runs the same requests, by one --seed and --ignore-eos"
        )


def is_open(readings: Sequence[ServerReading]) -> bool:
    """Whether requests came at a rate; where no file says it, whether the rate hardly fell."""
    result = readings[0].result
    if result.rate_per_s is not None:
        return result.rate_per_s != inf
    fall = 1 - readings[-1].result.request_per_s / result.request_per_s
    return result.clients is None and fall < SAME_RATE


def why_saturated(first: ServerReading, slow: ServerReading) -> str:
    """Why a reading under a rate of requests seems saturated; '' where it does not."""
    for reading in (first, slow):
        growth = reading.result.growth()
        if growth is not None and growth > MOST_GROWTH:
            return (
                f"at {reading.engine_mhz:g} MHz the last third of the requests waited {growth:.1f} "
                "times as long for the first token as the first"
            )
    try:
        fast_ms, slow_ms = (one.result.latency_ms("ttft", "p50") for one in (first, slow))
    except InputError:
        return ""
    exponent = log(slow_ms / fast_ms) / log(first.engine_mhz / slow.engine_mhz)
    if exponent <= MOST_EXPONENT:
        return ""
    return (
        f"at {slow.engine_mhz:g} MHz the first token takes {slow_ms / fast_ms:.1f} times as long as "
        f"at {first.engine_mhz:g}"
    )
