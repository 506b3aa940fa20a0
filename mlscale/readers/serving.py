"""Results of LLM serving benchmarks: vLLM, SGLang, AIPerf or GenAI-Perf, trtllm-bench.

Written by `vllm bench serve --save-result` (with `--save-detailed` every request and gap),
`python -m sglang.bench_serving --output-file`, `aiperf profile` and `trtllm-bench --report_json`.
AIPerf's inter-token latency is a mean for each request, which the others call TPOT.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError, warn
from mlscale.files import HeldFile
from mlscale.readers.files import Sheet, open_file
from mlscale.text import shortened

# By ours the name of a statistic, of vLLM and SGLang, and of AIPerf and trtllm-bench.
STATISTICS = {
    "mean": ("mean", "avg", "average"),
    "p50": ("p50", "median"),
    **{name: (name,) for name in ("p90", "p95", "p99")},
}
METRICS = ("itl", "tpot", "ttft")
_LEAST_GAP = 1e-3  # [ms] of tokens that came together
_LONGEST_S = 1e12  # longer times are damage
# Of the offered rate, below which it is not served. A finite run ends with answers to its last
# requests, so that less is served than is offered: 0.74 at least by 15 real runs that kept up (n
# requests within n / rate and the last answer), 0.69 by 63 simulated ones; 0.52 and less by real
# ones that did not, 0.27 to 0.44 where clients limited them.
SERVED = 0.65
# Of a summary: a run is short if requests come within so many mean ones; requests queue if TTFT is
# so much of the time from when the last one was due to the end.
FEW_REQUESTS, QUEUED = 2.0, 0.1
MOST_GROWTH = 1.6  # growth of the time to first token in a run: with more, requests queue
FULL = 0.8  # share of the clients that run side by side: with more they limit the rate
ROUNDED = 1.02  # by which two ways to one number may differ
AGREED = 1.15  # by which the mean or the median of lists may differ from a summary's
BLOCKS = 20  # each holds requests one after the other, which are alike
WHOLE = 0.8  # share of the run that the requests of its lists take at least
# What only another unit breaks: all of 37 real results keep these.
OTHER_UNIT = 10.0
SKEWED = 300.0  # a mean over its median: 200 where tokens come in bursts
BY_MEANS = 1.5  # over what can run side by side, since the mean of requests is not that of tokens
LEAST_MS = {"ttft": 0.5, "tpot": 0.1}  # a tenth of what the fastest servers need
ALIKE = (("ttft", "e2e", 0, ROUNDED), ("ttft", "tpot", 0.03, math.inf), ("itl", "tpot", 0.03, 30))
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
Row = Mapping[str, Any]
Latencies = dict[str, float]  # [ms] by name, as 'ttft p90'; e2e: from request to last token


@dataclass(frozen=True, eq=False)
class ServingResult:
    """What a benchmark says about a server; None for what its file lacks.

    source: the file. rate_per_s: at which requests came, inf for all at once; clients: most
    requests at a time. Of a file with details gaps_ms: between tokens, of all requests; growth:
    mean time to first token of the last third of the requests over the first third's;
    longest_s: the longest request; spread: standard deviation of the log of each latency, as other
    requests of the kind would have it. fields: what the file calls its latencies.
    """

    source: str
    latencies_ms: Latencies
    completed: float
    duration_s: float
    output_per_s: float
    input_tokens: float | None = None
    output_tokens: float | None = None
    rate_per_s: float | None = None
    clients: float | None = None
    failed: float = 0.0
    backend: str | None = None
    model: str | None = None
    gaps_ms: Floats | None = field(default=None, repr=False)
    growth: float | None = None
    longest_s: float = 0.0
    spread: Mapping[str, float] = field(default_factory=dict, repr=False)
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        numbers = {"completed": self.completed, "duration": self.duration_s}
        numbers |= {"output throughput": self.output_per_s, **self.latencies_ms}
        load = {"request_rate": self.rate_per_s, "concurrency": self.clients}
        numbers |= {name: value for name, value in load.items() if value == 0}
        for name, value in numbers.items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} cannot be {value:g}")

    @property
    def sent(self) -> float:
        """How many requests were sent."""
        return self.completed + self.failed

    @property
    def request_per_s(self) -> float:
        """Requests served per second."""
        return self.completed / self.duration_s

    @property
    def in_flight(self) -> float | None:
        """Mean number of requests in flight, by Little's law; None if unknown."""
        whole_ms = self.latencies_ms.get(self.middle("e2e")) or self.parts_ms
        return None if whole_ms is None else self.request_per_s * whole_ms / 1e3

    @property
    def parts_ms(self) -> float | None:
        """From a request to its last token by the first and the time for each other [ms].

        Of gap and time per token the smaller: the one is too long where a gap has several tokens,
        the other where short answers are slow.
        """
        first, *each = (self.middle(metric) for metric in ("ttft", "itl", "tpot"))
        if not first or self.output_tokens is None or not any(each):
            return None
        token_ms = min(self.latencies_ms[name] for name in each if name)
        return self.latencies_ms[first] + (self.output_tokens / self.completed - 1) * token_ms

    @property
    def load(self) -> str:
        """How requests come: open, closed, or overloaded where the server lags behind their rate.

        Clients that wait for answers make a closed load, whatever rate is asked for. Empty where
        the file says neither rate nor clients.
        """
        rate, clients = self.rate_per_s, self.clients
        if rate is None or (clients and rate == math.inf):
            return "closed" if clients else ""
        is_late = self.completed / rate + self._tail_s(rate) < SERVED * self.duration_s
        running = self.in_flight
        is_full = is_late if running is None else running >= FULL * (clients or math.inf)
        return "closed" if clients and is_full else "overloaded" if is_late else "open"

    def _tail_s(self, rate: float) -> float:
        """How long a server that keeps up answers after the last request [s], 0 if requests queue.

        That is the longest request; of a summary the 99th percentile, or a mean one if the run is
        short.
        """
        if self.growth is not None:
            return self.longest_s if self.growth <= MOST_GROWTH else 0.0
        sending_s, first = self.completed / rate, self.middle("ttft")
        late_ms = 1e3 * (self.duration_s - sending_s)
        if not first or self.latencies_ms[first] > QUEUED * late_ms:
            return 0.0
        mean_s = (self.parts_ms or 0.0) / 1e3
        mean_s = mean_s if FEW_REQUESTS * mean_s > sending_s else 0.0
        return self.latencies_ms.get("e2e p99", 1e3 * mean_s) / 1e3

    def middle(self, metric: str) -> str:
        """The name of a latency's mean, else of its median; '' without either."""
        names = (f"{metric} {statistic}" for statistic in ("mean", "p50"))
        return next(filter(self.latencies_ms.__contains__, names), "")

    def latency_ms(self, name: str) -> float:
        """A latency [ms], such as 'ttft p90'. Raises InputError if the file lacks it."""
        if name not in self.latencies_ms:
            known = [one for one in self.latencies_ms if one[:3] != "e2e"] or ["no latency"]
            raise InputError(
                f"{self.source}: has no {name}, but {', '.join(known)}; limit one of these, or run "
                "vLLM with --save-detailed, or with --metric-percentiles 50,90,99"
            )
        return self.latencies_ms[name]


def read_result(file: Path | HeldFile) -> ServingResult:
    """The only result in a file. Raises InputError."""
    sheet = open_file(file)
    if sheet is None or not sheet.kind.is_benchmark:
        told = "is not a result of vllm bench serve, sglang.bench_serving, aiperf or trtllm-bench"
        raise InputError(f"{file}: {told}")
    results = read(sheet)
    if len(results) > 1:
        rates = ", ".join("?" if r.rate_per_s is None else f"{r.rate_per_s:g}" for r in results)
        raise InputError(
            f"{file}: holds {len(results)} results, of {rates} requests/s; put the one that you "
            "mean into a separate file"
        )
    return results[0]


def read(sheet: Sheet) -> list[ServingResult]:
    """All results of a file. Raises InputError."""
    decoder, found, at = json.JSONDecoder(object_pairs_hook=_once), list[ServingResult](), 0
    form = {"aiperf": _aiperf, "trtllm-bench": _trtllm}.get(sheet.kind.tool, _vllm)
    try:
        text = sheet.file.content().decode("utf-8-sig").rstrip()
        while at < len(text):
            while text[at].isspace():
                at += 1
            row, at = decoder.raw_decode(text, at)
            found.append(form(row, str(sheet.path)))
            _require_sound(found[-1])
    except _FieldError as error:
        told = f"{error}; give what {sheet.kind.title} wrote{error.unit}"
        raise InputError(f"{sheet.path}: {told}") from None
    except _DAMAGE as error:
        lacks = f"{error} is missing" if isinstance(error, KeyError) else shortened(str(error), 120)
        raise InputError(
            f"{sheet.path}: is not a complete result of {sheet.kind.title}: {lacks}; save it again"
        ) from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if a name appears twice."""
    if len(row := dict(pairs)) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"'{twice}' appears twice")
    return row


class _FieldError(ValueError):
    """A field, '' for a list, that does not fit another."""

    def __init__(self, field: str, told: str) -> None:
        """Note which, and in words why."""
        super().__init__(told)
        self.field = field

    @property
    def unit(self) -> str:
        """Which unit the field is in, where it is a time."""
        times = ("ttft", "tpot", "itl", "e2e", "latency", "time_to")
        is_latency = any(part in self.field for part in times)
        is_duration = self.field == "duration"
        return ": durations in s" if is_duration else ": latencies in ms" if is_latency else ""


def _require_sound(result: ServingResult) -> None:
    """Raise _FieldError where latencies do not fit each other, the run or the load."""
    ms, run_ms, rate = result.latencies_ms, 1e3 * result.duration_s, result.rate_per_s
    said = {name: result.fields.get(name, name) for name in ms}
    for name, value in ms.items():
        _require(said[name], value, "the run's duration in ms", run_ms, 0, 1.05)
        _require(said[name], value, "any server's least", LEAST_MS.get(name[:4], 1e-6), 1, math.inf)
    for metric in (*METRICS, "e2e"):
        mean, *every = (f"{metric} {statistic}" for statistic in STATISTICS)
        every = [name for name in every if name in ms]
        for low, high in pairwise(every):
            _require(said[high], ms[high], said[low], ms[low], 0.999, math.inf)
        for name in every if mean in ms else ():  # above p90 lies a tenth, which adds to the mean
            most = SKEWED if name.endswith("p50") else math.inf
            least = 0.9 * (1 - 0.01 * int(name[-2:]))
            _require(said[mean], ms[mean], said[name], ms[name], least, most)
    for metric, other, least, most in ALIKE:
        if (one := result.middle(metric)) and (two := result.middle(other)):
            _require(said[one], ms[one], said[two], ms[two], least, most)
    if (name := result.middle("e2e")) and (parts_ms := result.parts_ms):
        told = "that of all tokens"
        _require(said[name], ms[name], told, parts_ms, 1 / OTHER_UNIT, OTHER_UNIT)
    if rate and rate < math.inf:
        _require("completed / duration", result.request_per_s, "request_rate", rate, 0, 2)
    if running := result.in_flight:
        least = 1 / OTHER_UNIT if result.clients and rate in (None, math.inf) else 0
        most, field = min(
            (result.completed, "completed"), (result.clients or math.inf, "concurrency")
        )
        told = "by latencies the mean number of requests side by side"
        _require(told, running, field, most, least, BY_MEANS)


def _require(name: str, number: float, other: str, value: float, least: float, most: float) -> None:
    """Raise _FieldError unless a number is within `least` and `most` times another."""
    if not least * value <= number <= most * value:
        raise _FieldError(name, f"{name} is {number:.6g}, but {other} {value:.6g}")


def _hold(row: Row, name: str, by: str, value: float) -> None:
    """Raise _FieldError where a field is there, and is not what others make of it."""
    if (number := _number(row, name)) is not None:
        _require(name, number, by, value, 1 / ROUNDED, ROUNDED)


def _vllm(row: Row, source: str) -> ServingResult:
    """Of vLLM, and of SGLang, whose names are the same but for e2e."""
    completed, run_s = _needed(row, "completed"), _needed(row, "duration")
    inputs, outputs = (_needed(row, f"total_{side}_tokens") for side in ("input", "output"))
    _hold(row, "request_throughput", "completed / duration", completed / run_s)
    _hold(row, "output_throughput", "total_output_tokens / duration", outputs / run_s)
    _hold(row, "input_throughput", "total_input_tokens / duration", inputs / run_s)
    both = "total_input_tokens and total_output_tokens / duration"
    _hold(row, "total_token_throughput", both, (inputs + outputs) / run_s)
    asked = _number(row, "num_prompts")
    if asked is not None:
        _require("completed", completed, "num_prompts", asked, 0, 1)
    failed = _number(row, "failed") or (asked or completed) - completed
    _require_whole_lists(row, completed, failed)
    forms = [(metric, f"{{}}_{metric}_ms") for metric in METRICS]
    forms += [("e2e", "{}_e2el_ms"), ("e2e", "{}_e2e_latency_ms")]
    told, fields = _latencies(row, forms)
    lists = _details(row)
    computed = _agreeing(source, told, lists, fields)
    name = "total_output_tokens"
    if lists.tokens is not None:
        _require(name, outputs, "the sum of output_lens", lists.tokens, 1 / ROUNDED, ROUNDED)
    elif lists.least_tokens:
        by = "by the lengths of itls"
        _require(name, outputs, by, lists.least_tokens, 1 / AGREED, OTHER_UNIT)
    if lists.span_s is not None:
        most = 1 / WHOLE if lists.is_whole else math.inf  # one that failed may take longest
        by = "by start_times, ttfts and itls"
        _require("duration", run_s, by, lists.span_s, 1 / ROUNDED, most)
    return ServingResult(
        source, told | computed, completed, run_s, _needed(row, "output_throughput"),
        inputs, outputs, _number(row, "request_rate"), _number(row, "max_concurrency"),
        failed, _named(row, "backend"), _named(row, "model_id"),
        lists.gaps_ms, lists.growth, lists.longest_s,
        {name: lists.spread[name] for name in computed},
        fields | {name: f"{name} of the lists" for name in computed},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Lists:
    """What lists say of the requests that did not fail; span_s: from first start to last token.

    tokens: how many they made, where the file has output_lens; is_whole: none failed.
    """

    latencies: Latencies = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    gaps_ms: Floats | None = None
    growth: float | None = None
    longest_s: float = 0.0
    span_s: float | None = None
    tokens: float | None = None
    least_tokens: float = 0.0
    is_whole: bool = True


def _details(row: Row) -> _Lists:
    """What the lists of a file say, where it has them of all requests.

    Files of 2024 have no start_times, so that their growth is not known.
    """
    starts, ttfts, gaps = (row.get(name) or [] for name in ("start_times", "ttfts", "itls"))
    errors = row.get("errors") or [""] * len(ttfts)
    tokens = row.get("output_lens") or [0] * len(ttfts)
    begins = _seconds("start_times", starts) if starts else range(len(ttfts))
    lists = begins, ttfts, gaps, tokens, errors
    if not ttfts or len({len(one) for one in lists}) > 1:
        return _Lists()
    done = sorted(one[:4] for one in zip(*lists, strict=True) if not one[4])
    if not done:
        raise ValueError("all requests failed, see errors")
    ttft = 1e3 * _seconds("ttfts", [first for _, first, _, _ in done])
    every = [1e3 * _seconds("itls", gaps) for _, _, gaps, _ in done]
    every = [np.where(each == 0, _LEAST_GAP, each) for each in every]
    counts = [tokens - 1 if tokens else len(gaps) for _, _, gaps, tokens in done]  # as vLLM has it
    tpot = [
        np.array([each.sum() / count] if count > 0 and each.size else [])
        for each, count in zip(every, counts, strict=True)
    ]
    if not ttft.all():
        raise ValueError("ttfts: the requests' times are not all positive numbers")
    latencies, spread = Latencies(), Latencies()
    at_once = min(int(_number(row, "max_concurrency") or 0), len(done) // 2)
    for metric, lists_ms in (("ttft", list(ttft[:, None])), ("itl", every), ("tpot", tpot)):
        values = np.concatenate(lists_ms)
        if values.size:
            names = [f"{metric} {at}" for at in STATISTICS]
            latencies |= dict(zip(names, map(float, _statistics(values)), strict=True))
            kept = at_once if metric == "ttft" else 0
            spread |= dict(zip(names, map(float, _spread(lists_ms, kept)), strict=True))
    third = max(1, len(ttft) // 3)
    growth = float(ttft[-third:].mean() / ttft[:third].mean()) if starts else None
    whole_s = (ttft + [each.sum() for each in every]) / 1e3
    span_s = None
    if starts:
        first_s = np.array([start for start, *_ in done])
        span_s = float((first_s + whole_s).max() - first_s.min())
    made = sum(tokens for *_, tokens in done) if row.get("output_lens") else None
    gaps_ms = np.concatenate(every)
    least = sum(counts) + len(done) if gaps_ms.size else 0  # a gap may have several tokens
    return _Lists(
        latencies, spread, gaps_ms if gaps_ms.size else None, growth, float(whole_s.max()), span_s,
        made, least, len(done) == len(ttfts),
    )  # fmt: skip


def _statistics(values: Floats) -> Floats:
    """What a file has of its latencies, in the order of STATISTICS."""
    return np.append(
        values.mean(), np.percentile(values, [int(at[1:]) for at in [*STATISTICS][1:]])
    )


def _spread(lists: Sequence[Floats], kept: int) -> Floats:
    """Standard deviations of the logs of statistics, by leaving each block of requests out.

    J. Shao and C. Wu, Annals of Statistics 17 (3), 1989. lists: of each request, in their order.
    kept: how many of the first are never left out, as each run begins with them, all at once.
    """
    blocks = np.array_split(np.arange(kept, len(lists)), BLOCKS)
    parts = [np.concatenate([np.empty(0), *lists[b[0] : b[-1] + 1]]) for b in blocks if b.size]
    first = [np.empty(0), *lists[:kept]]
    others = [np.concatenate(first + parts[:n] + parts[n + 1 :]) for n in range(len(parts))]
    logs = [np.log(_statistics(values)) for values in others if values.size]
    return np.asarray(
        np.sqrt(max(len(logs) - 1, 0)) * np.std(logs or [np.zeros(len(STATISTICS))], axis=0)
    )


def _require_whole_lists(row: Row, completed: float, failed: float) -> None:
    """Raise _FieldError unless each list is of all requests, or of all that did not fail."""
    for name in ("start_times", "ttfts", "itls", "output_lens", "errors"):
        if (count := len(row.get(name) or ())) not in (0, completed, completed + failed):
            told = f"{name} lists {count} requests, but completed is {completed:g}"
            raise _FieldError("", told)


def _agreeing(source: str, told: Latencies, lists: _Lists, fields: Mapping[str, str]) -> Latencies:
    """What lists say, without what the summary contradicts. Raises _FieldError.

    Start times show that lists are of this run. Without them a time to first token, which may be
    measured in two ways, is the summary's, with a warning.
    """
    computed = kept = lists.latencies
    for metric in METRICS:
        names = [f"{metric} {at}" for at in ("mean", "p50")]
        names = [name for name in names if name in told and name in computed]
        off = {name: abs(math.log(told[name] / computed[name])) for name in names}
        if not off or min(off.values()) <= math.log(AGREED):
            continue
        name = min(off, key=off.__getitem__)
        says = f"{fields[name]} is {told[name]:.6g}, but its lists give {computed[name]:.6g}"
        if metric != "ttft" or lists.span_s is not None or off[name] > math.log(OTHER_UNIT):
            raise _FieldError(name, says)
        warn("V02", f"{source}: {says}; {metric} is taken from the file's summary")
        kept = {name: ms for name, ms in kept.items() if not name.startswith(metric)}
    for name in filter(kept.__contains__, told):
        most = OTHER_UNIT
        _require(fields[name], told[name], "by the lists", kept[name], 1 / most, most)
    return kept


def _seconds(name: str, values: Any) -> Floats:
    """A list of times, none of them negative. Raises ValueError."""
    try:
        times = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    if times.ndim != 1 or not ((times >= 0) & (times < _LONGEST_S)).all():
        raise ValueError(f"{name}: the requests' times are not all positive numbers")
    return times


def _aiperf(row: Row, source: str) -> ServingResult:
    """Of AIPerf and GenAI-Perf; a mean of each request's gaps is TPOT."""
    completed, rate = _needed(row, "request_count.avg"), _needed(row, "request_throughput.avg")
    inputs, outputs = (_number(row, f"{side}_sequence_length.sum") for side in ("input", "output"))
    if run_s := _number(row, "benchmark_duration.avg"):
        by = "request_count / benchmark_duration"
        _hold(row, "request_throughput.avg", by, completed / run_s)
    if outputs is not None:
        by = "output_sequence_length.sum * request_throughput / request_count"
        _hold(row, "output_token_throughput.avg", by, outputs * rate / completed)
    forms = ("time_to_first_token.{}", "inter_token_latency.{}", "request_latency.{}")
    told, fields = _latencies(row, zip(("ttft", "tpot", "e2e"), forms, strict=True))
    return ServingResult(
        source, told, completed, completed / rate, _needed(row, "output_token_throughput.avg"),
        inputs, outputs, _number(row, "input_config.loadgen.request_rate"),
        _number(row, "input_config.loadgen.concurrency"),
        _number(row, "error_request_count.avg") or 0.0, fields=fields,
    )  # fmt: skip


def _trtllm(row: Row, source: str) -> ServingResult:
    """Of trtllm-bench, without gaps of single tokens; percentiles of old versions are in ns.

    Its issue_rate is 1e9 times the ns from one request to the next.
    """
    engine, completed = row.get("engine") or {}, _needed(row, "request_info.num_requests")
    rate = _needed(row, "performance.request_throughput_req_s")
    lengths = [_number(row, f"request_info.avg_{side}_length") for side in ("input", "output")]
    inputs, outputs = (length and length * completed for length in lengths)
    if run_ms := _number(row, "performance.total_latency_ms"):
        by = "num_requests / total_latency_ms * 1000"
        _hold(row, "performance.request_throughput_req_s", by, 1e3 * completed / run_ms)
    if outputs is not None:
        by = "avg_output_length * request_throughput_req_s"
        _hold(row, "performance.system_output_throughput_tok_s", by, outputs * rate / completed)
    forms, ms = [(one, f"streaming_metrics.{one}_percentiles.{{}}") for one in METRICS], 1e-6
    if mean := _number(row, "streaming_metrics.ttft_percentiles.average"):
        if mean < 1e4 * (_number(row, "streaming_metrics.avg_ttft_ms") or 0.0):
            ms = 1.0
        _hold(row, "streaming_metrics.avg_ttft_ms", "the average of ttft_percentiles", ms * mean)
    told, fields = _latencies(row, forms, ms)
    apart = _number(row, "world_info.issue_rate")
    return ServingResult(
        source, told, completed, completed / rate,
        _needed(row, "performance.system_output_throughput_tok_s"), inputs, outputs,
        math.inf if apart and rate * apart < SERVED * 1e18 else None,
        backend=_named(engine, "backend"), model=_named(engine, "model"), fields=fields,
    )  # fmt: skip


def _latencies(
    row: Row, forms: Iterable[tuple[str, str]], ms: float = 1.0
) -> tuple[Latencies, dict[str, str]]:
    """The latencies of a file [ms] by our names, and its own; forms: by metric, {} for 'avg'."""
    told: Latencies = {}
    fields: dict[str, str] = {}
    for metric, form in forms:
        for ours, names in STATISTICS.items():
            for written in map(form.format, names):
                if value := _number(row, written):
                    name = f"{metric} {ours}"
                    first = fields.setdefault(name, written), told.setdefault(name, ms * value)
                    _require(written, ms * value, *first, 1 / ROUNDED, ROUNDED)
    return told, fields


def _needed(row: Row, name: str) -> float:
    """A number that is never missing, nor 0."""
    if not (number := _number(row, name)):
        raise ValueError(f"'{name}' is missing" if number is None else f"{name} cannot be 0")
    return number


def _named(row: Row, name: str) -> str | None:
    """A name, of a length that can be printed; None of none."""
    return shortened(str(row[name])) if row.get(name) is not None else None


def _number(row: Row, name: str) -> float | None:
    """A number, not negative, also as a text such as 'inf'; None for none; name: 'outer.inner'."""
    value: Any = row
    for part in name.split("."):
        value = (value or {}).get(part)
    if value is not None and not float(value) >= 0:
        raise ValueError(f"{name} cannot be {float(value):g}")
    return None if value is None else float(value)
