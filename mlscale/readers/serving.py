"""Results of LLM serving benchmarks: vLLM, SGLang, AIPerf or GenAI-Perf, trtllm-bench.

Written by `vllm bench serve --save-result` (with `--save-detailed` every request and gap),
`python -m sglang.bench_serving --output-file`, `aiperf profile` (profile_export_aiperf.json) and
`trtllm-bench throughput --report_json`.

To watch for: several results in one file; percentiles under two names; AIPerf's inter-token latency
is a mean for each request, which the others call TPOT; `inf` for all requests at once.
"""

import gzip
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.files import read_bytes
from mlscale.readers.files import Sheet, open_file

METRICS = {"ttft": "time to first token", "itl": "inter-token latency", "tpot": "time per token"}
STATISTICS = ("mean", "p50", "p90", "p95", "p99")  # those that are kept where a file has them
_NANOSECONDS = 1e5  # a mean latency above it is in ns: trtllm-bench's percentiles have no unit
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Requests:
    """Every request of a run, R of them: start [s], time to first token [s], gaps after it [s]."""

    starts_s: Floats
    ttfts_s: Floats
    gaps_s: tuple[Floats, ...]

    def values_ms(self, metric: str) -> Floats:
        """All values of 'ttft', 'tpot' (of each request) or 'itl' (of each token) [ms]."""
        if metric == "ttft":
            return 1e3 * self.ttfts_s
        if metric == "itl":
            return 1e3 * np.concatenate(self.gaps_s)
        return 1e3 * np.array([gaps.mean() for gaps in self.gaps_s if gaps.size])


@dataclass(frozen=True, eq=False)
class ServingResult:
    """What a benchmark says of a server; None for what its file does not say.

    source: the file. latencies_ms: by metric and statistic, as ('ttft', 'p90') [ms]. rate_per_s:
    at which requests came, inf for all at once; clients: most requests at a time. output_per_s:
    output tokens a second. acceptance: tokens that speculation has accepted. requests: all of
    them, of a file with details.
    """

    source: str
    tool: str
    latencies_ms: Mapping[tuple[str, str], float]
    rate_per_s: float | None
    clients: float | None
    backend: str | None
    model: str | None
    completed: float
    failed: float
    duration_s: float
    input_tokens: float | None
    output_tokens: float | None
    request_per_s: float
    output_per_s: float
    acceptance: float | None = None
    requests: Requests | None = field(default=None, repr=False)

    @property
    def asked(self) -> float:
        """How many requests were sent."""
        return self.completed + self.failed

    def latency_ms(self, metric: str, statistic: str) -> float:
        """A latency [ms], as of 'ttft' and 'p90'. Raises InputError where the file lacks it."""
        if self.requests is not None:
            values = self.requests.values_ms(metric)
            is_mean = statistic == "mean"
            return float(values.mean() if is_mean else np.percentile(values, float(statistic[1:])))
        value = self.latencies_ms.get((metric, statistic))
        if value is None:
            known = ", ".join(f"{m}@{s}" for m, s in self.latencies_ms) or "none"
            raise InputError(
                f"{self.source}: has no {metric} {statistic}, only {known}; run vLLM with "
                f"--save-detailed, or --metric-percentiles {statistic.removeprefix('p')}"
            )
        return value

    def growth(self) -> float | None:
        """Mean time to first token of the last third of the requests over that of the first."""
        if self.requests is None or len(self.requests.ttfts_s) < 3:
            return None
        in_order = self.requests.ttfts_s[np.argsort(self.requests.starts_s, kind="stable")]
        third = len(in_order) // 3
        return float(in_order[-third:].mean() / in_order[:third].mean())


def read_result(path: Path) -> ServingResult:
    """The one result that a file holds. Raises InputError."""
    sheet = open_file(path)
    if sheet is None or not sheet.kind.is_benchmark:
        what = f"is of {sheet.kind.title}" if sheet else "is nothing that mlscale knows"
        raise InputError(
            f"{path}: {what}; give the result of a serving benchmark: vllm bench serve "
            "--save-result, sglang.bench_serving, aiperf or trtllm-bench"
        )
    results = read(sheet)
    if len(results) > 1:
        rates = ", ".join("?" if r.rate_per_s is None else f"{r.rate_per_s:g}" for r in results)
        raise InputError(
            f"{path}: holds {len(results)} results, of {rates} requests/s; put the one that you "
            "mean into a file of its own"
        )
    return results[0]


def read(sheet: Sheet) -> list[ServingResult]:
    """All results of a file. Raises InputError."""
    form = {"sglang": _vllm, "vllm": _vllm, "aiperf": _aiperf, "trtllm-bench": _trtllm}
    found = []
    for row in _objects(sheet.path):
        try:
            result = form[sheet.kind.tool](row, str(sheet.path), sheet.kind.tool)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(
                f"{sheet.path}: is no whole result of {sheet.kind.title} ({told}); save it again"
            ) from None
        found.append(_checked(result))
    return found


def _objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one after the other. Raises InputError."""
    data = read_bytes(path)
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
        decoder, place, found = json.JSONDecoder(), 0, []
        text = text.strip()
        while place < len(text):
            one, place = decoder.raw_decode(text, place)
            place += len(text[place:]) - len(text[place:].lstrip())
            found.append(one)
    except (EOFError, OSError, RecursionError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: is not valid JSON: {error}; is it cut off?") from None
    if not found or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: must hold JSON objects, each a result")
    return found


def _checked(result: ServingResult) -> ServingResult:
    """The result. Raises InputError on numbers that cannot be, or where nothing was served."""
    if not result.completed:
        raise InputError(f"{result.source}: no request was completed")
    numbers = {"duration": result.duration_s, "output tokens/s": result.output_per_s}
    numbers |= {" ".join(name): value for name, value in result.latencies_ms.items()}
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise InputError(f"{result.source}: {name} cannot be {value:g}")
    return result


def _vllm(row: Row, source: str, tool: str) -> ServingResult:
    """Of vLLM, and of SGLang, whose names are the same."""
    names = {"mean": "mean", "p50": "median", **{s: s for s in STATISTICS[2:]}}
    latencies = {}
    for metric in METRICS:
        for statistic, name in names.items():
            value = row.get(f"{name}_{metric}_ms", row.get(f"{statistic}_{metric}_ms"))
            if value:
                latencies[metric, statistic] = float(value)
    completed, duration_s = float(row["completed"]), float(row["duration"])
    prompts = float(row.get("num_prompts") or completed)
    return ServingResult(
        source,
        tool,
        latencies,
        rate_per_s=_number(row.get("request_rate")),
        clients=_number(row.get("max_concurrency")),
        backend=row.get("backend") or row.get("endpoint_type"),
        model=row.get("model_id"),
        completed=completed,
        failed=float(row.get("failed") or max(prompts - completed, 0)),
        duration_s=duration_s,
        input_tokens=_number(row.get("total_input_tokens")),
        output_tokens=_number(row.get("total_output_tokens")),
        request_per_s=completed / duration_s,
        output_per_s=float(row["output_throughput"]),
        acceptance=_number(row.get("accept_length")),
        requests=_requests(row),
    )


def _requests(row: Row) -> Requests | None:
    """Every request that did not fail, where the file has the details."""
    names = ("start_times", "ttfts", "itls")
    if not all(row.get(name) for name in names) or len({len(row[name]) for name in names}) > 1:
        return None
    errors = row.get("errors") or [""] * len(row["ttfts"])
    done = [not error for error in errors]
    starts, ttfts = (np.array(row[name], np.float64)[done] for name in names[:2])
    gaps = [np.array(one, np.float64) for one, is_done in zip(row["itls"], done, strict=True) if is_done]
    return Requests(starts, ttfts, tuple(gaps)) if any(one.size for one in gaps) else None


def _aiperf(row: Row, source: str, tool: str) -> ServingResult:
    """Of AIPerf and GenAI-Perf; a mean of each request's gaps is TPOT."""
    latencies = {}
    for metric, name in (("ttft", "time_to_first_token"), ("tpot", "inter_token_latency")):
        known = row.get(name) or {}
        scale = 1e3 if known.get("unit") in ("s", "sec") else 1.0
        for statistic in STATISTICS:
            value = known.get("avg" if statistic == "mean" else statistic)
            if value:
                latencies[metric, statistic] = scale * float(value)
    load = (row.get("input_config") or {}).get("loadgen") or {}

    def total(name: str) -> float | None:
        return _number((row.get(name) or {}).get("sum"))

    completed = float(row["request_count"]["avg"])
    request_per_s = float(row["request_throughput"]["avg"])
    duration = row.get("benchmark_duration") or {}
    return ServingResult(
        source,
        tool,
        latencies,
        rate_per_s=_number(load.get("request_rate")),
        clients=_number(load.get("concurrency")),
        backend=None,
        model=None,
        completed=completed,
        failed=float((row.get("error_request_count") or {}).get("avg") or 0.0),
        duration_s=float(duration.get("avg") or completed / request_per_s),
        input_tokens=total("input_sequence_length"),
        output_tokens=total("output_sequence_length"),
        request_per_s=request_per_s,
        output_per_s=float(row["output_token_throughput"]["avg"]),
    )


def _trtllm(row: Row, source: str, tool: str) -> ServingResult:
    """Of trtllm-bench, which has no gaps of single tokens."""
    latencies, request, speed = {}, row["request_info"], row["performance"]
    for metric in ("ttft", "tpot"):
        known = (row.get("streaming_metrics") or {}).get(f"{metric}_percentiles") or {}
        scale = 1e-6 if float(known.get("average") or known.get("p50") or 0) > _NANOSECONDS else 1.0
        for statistic in STATISTICS:
            value = known.get("average" if statistic == "mean" else statistic)
            if value:
                latencies[metric, statistic] = scale * float(value)
    completed, request_per_s = float(request["num_requests"]), float(speed["request_throughput_req_s"])
    lengths = (_number(request.get(f"avg_{side}_length")) for side in ("input", "output"))
    tokens = [None if length is None else length * completed for length in lengths]
    return ServingResult(
        source,
        tool,
        latencies,
        rate_per_s=_number((row.get("world_info") or {}).get("issue_rate")),
        clients=None,
        backend=(row.get("engine") or {}).get("backend"),
        model=(row.get("engine") or {}).get("model"),
        completed=completed,
        failed=0.0,
        duration_s=completed / request_per_s,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        request_per_s=request_per_s,
        output_per_s=float(speed["system_output_throughput_tok_s"]),
    )


def _number(value: Any) -> float | None:
    """A number, also one that is written as a text such as 'inf'; None for none."""
    return None if value is None or value == "" else float(value)
