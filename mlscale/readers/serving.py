"""Results of LLM serving benchmarks: vLLM, SGLang, AIPerf or GenAI-Perf, trtllm-bench.

Written by `vllm bench serve --save-result` (with `--save-detailed` every request and gap),
`python -m sglang.bench_serving --output-file`, `aiperf profile` and `trtllm-bench --report_json`.
AIPerf's inter-token latency is a mean for each request, which the others call TPOT.
"""

import gzip
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.files import read_bytes
from mlscale.readers.files import Sheet, open_file

# By ours the name of a statistic, of vLLM and SGLang, and of AIPerf and trtllm-bench.
_STATISTICS = {
    "mean": ("mean", "avg", "average"),
    "p50": ("p50", "median"),
    **{name: (name,) for name in ("p25", "p75", "p90", "p95", "p99")},
}
_LEAST_GAP = 1e-6  # [s] of tokens that came together
_DAMAGE = (AttributeError, EOFError, LookupError, OSError, RecursionError, TypeError, ValueError,
           zlib.error)  # fmt: skip
_COLD = 3.0  # times the 90th percentile, of the first request of a server that was not warm
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Requests:
    """Of each request its start, time to first token, and mean time of others; all gaps [s]."""

    starts: Floats
    ttft: Floats
    tpot: Floats
    itl: Floats

    def __post_init__(self) -> None:
        for values in (self.ttft, self.tpot, self.itl):
            if not (values.size and np.isfinite(values).all() and values.min() > 0):
                raise ValueError("the requests' times are not all positive numbers")


@dataclass(frozen=True, eq=False)
class ServingResult:
    """What a benchmark says of a server; None for what its file does not say.

    source: the file. latencies_ms: by metric and statistic, as ('ttft', 'p90') [ms]. rate_per_s:
    at which requests came, inf for all at once; clients: most requests at a time. acceptance:
    tokens that speculation accepts. requests: of a file with details.
    """

    source: str
    latencies_ms: Mapping[tuple[str, str], float]
    completed: float
    duration_s: float
    output_per_s: float
    input_tokens: float | None
    output_tokens: float | None
    rate_per_s: float | None = None
    clients: float | None = None
    failed: float = 0.0
    backend: str | None = None
    model: str | None = None
    acceptance: float | None = None
    requests: Requests | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        numbers = {"completed": self.completed, "duration": self.duration_s}
        numbers |= {"output throughput": self.output_per_s, "input tokens": self.input_tokens or 1}
        numbers |= {"output tokens": 1 if self.output_tokens is None else self.output_tokens}
        numbers |= {" ".join(key): value for key, value in self.latencies_ms.items()}
        for name, value in numbers.items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} cannot be {value:g}")

    @property
    def sent(self) -> float:
        """How many requests were sent."""
        return self.completed + self.failed

    @property
    def request_per_s(self) -> float:
        """Requests that were served a second."""
        return self.completed / self.duration_s

    @property
    def is_cold(self) -> bool:
        """Whether the first request waited far longer for its token than others."""
        waits = None if self.requests is None else self.requests.ttft
        return waits is not None and bool(waits[0] > _COLD * np.percentile(waits, 90))

    def has(self, metric: str, statistic: str) -> bool:
        """Whether `latency_ms` tells it."""
        return self.requests is not None or (metric, statistic) in self.latencies_ms

    def latency_ms(self, metric: str, statistic: str) -> float:
        """A latency [ms], as of 'ttft' and 'p90'. Raises InputError where the file lacks it."""
        if self.requests is not None:
            values = 1e3 * getattr(self.requests, metric)
            at = statistic[1:]
            return float(values.mean() if statistic == "mean" else np.percentile(values, float(at)))
        if (metric, statistic) not in self.latencies_ms:
            known = ", ".join(map(" ".join, self.latencies_ms)) or "no latency"
            raise InputError(
                f"{self.source}: has no {metric} {statistic}, but {known}; run vLLM with "
                "--save-detailed, or with --metric-percentiles 50,90,99"
            )
        return self.latencies_ms[metric, statistic]

    def growth(self) -> float:
        """Mean time to first token of the last third of the requests over the first's; or 1."""
        if self.requests is None or (third := len(self.requests.ttft) // 3) == 0:
            return 1.0
        in_order = self.requests.ttft[np.argsort(self.requests.starts, kind="stable")]
        return float(in_order[-third:].mean() / in_order[:third].mean())


def read_result(path: Path) -> ServingResult:
    """The one result that a file holds. Raises InputError."""
    sheet = open_file(path)
    if sheet is None or not sheet.kind.is_benchmark:
        told = "is no result of vllm bench serve, sglang.bench_serving, aiperf or trtllm-bench"
        raise InputError(f"{path}: {told}")
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
    data, decoder, found = read_bytes(sheet.path), json.JSONDecoder(), []
    form = {"aiperf": _aiperf, "trtllm-bench": _trtllm}.get(sheet.kind.tool, _vllm)
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
        while text := text.lstrip():
            row, end = decoder.raw_decode(text)
            found.append(form(row, str(sheet.path)))
            text = text[end:]
    except _DAMAGE as error:
        lacks = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{sheet.path}: is no whole result of {sheet.kind.title}: {lacks}; save it again"
        ) from None
    return found


def _vllm(row: Row, source: str) -> ServingResult:
    """Of vLLM, and of SGLang, whose names are the same."""
    latencies = {
        (metric, ours): float(value)
        for metric in ("ttft", "itl", "tpot")
        for ours, names in _STATISTICS.items()
        if (value := next(filter(None, (row.get(f"{n}_{metric}_ms") for n in names)), None))
    }
    completed = float(row["completed"])
    return ServingResult(
        source,
        latencies,
        completed,
        float(row["duration"]),
        float(row["output_throughput"]),
        _number(row.get("total_input_tokens")),
        _number(row.get("total_output_tokens")),
        _number(row.get("request_rate")),
        _number(row.get("max_concurrency")),
        float(row.get("failed") or float(row.get("num_prompts") or completed) - completed),
        row.get("backend"),
        row.get("model_id"),
        _number(row.get("accept_length")),
        _requests(row),
    )


def _requests(row: Row) -> Requests | None:
    """Every request that did not fail, where the file has the details."""
    lists = [row.get(name) or [] for name in ("start_times", "ttfts", "itls")]
    count = len(lists[1])
    lists += [row.get("output_lens") or [0] * count, row.get("errors") or [""] * count]
    if len({len(one) for one in lists}) > 1:
        return None
    done = [one for one in zip(*lists, strict=True) if not one[-1]]
    gaps = [np.array(one[2], np.float64) for one in done]
    gaps = [np.where(each == 0, _LEAST_GAP, each) for each in gaps]
    if not any(each.size for each in gaps):
        return None
    tokens = [max(one[3] - 1, len(each)) for each, one in zip(gaps, done, strict=True)]
    tpot = [each.sum() / count for each, count in zip(gaps, tokens, strict=True) if each.size]
    starts, ttft = (np.array([one[place] for one in done], np.float64) for place in (0, 1))
    return Requests(starts, ttft, np.array(tpot), np.concatenate(gaps))


def _aiperf(row: Row, source: str) -> ServingResult:
    """Of AIPerf and GenAI-Perf; a mean of each request's gaps is TPOT."""
    load = (row.get("input_config") or {}).get("loadgen") or {}
    lengths = [row.get(f"{side}_sequence_length") or {} for side in ("input", "output")]
    completed = float(row["request_count"]["avg"])
    names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency"}
    return ServingResult(
        source,
        _percentiles(row, names, 1.0),
        completed,
        completed / float(row["request_throughput"]["avg"]),
        float(row["output_token_throughput"]["avg"]),
        _number(lengths[0].get("sum")),
        _number(lengths[1].get("sum")),
        _number(load.get("request_rate")),
        _number(load.get("concurrency")),
        float((row.get("error_request_count") or {}).get("avg") or 0.0),
    )


def _trtllm(row: Row, source: str) -> ServingResult:
    """Of trtllm-bench, whose percentiles are in ns, without gaps of single tokens."""
    asked, speed, engine = row["request_info"], row["performance"], row.get("engine") or {}
    completed = float(asked["num_requests"])
    lengths = [_number(asked.get(f"avg_{side}_length")) for side in ("input", "output")]
    names = {"ttft": "ttft_percentiles", "tpot": "tpot_percentiles"}
    return ServingResult(
        source,
        _percentiles(row["streaming_metrics"], names, 1e-6),
        completed,
        completed / float(speed["request_throughput_req_s"]),
        float(speed["system_output_throughput_tok_s"]),
        lengths[0] and lengths[0] * completed,
        lengths[1] and lengths[1] * completed,
        backend=engine.get("backend"),
        model=engine.get("model"),
    )


def _percentiles(row: Row, metrics: Mapping[str, str], ms: float) -> dict[tuple[str, str], float]:
    """By metric and statistic the latencies [ms] of tables such as {'avg': 1, 'p90': 2}."""
    return {
        (metric, ours): ms * float(value)
        for metric, name in metrics.items()
        for ours, names in _STATISTICS.items()
        if (value := next(filter(None, map((row.get(name) or {}).get, names)), None))
    }


def _number(value: Any) -> float | None:
    """A number, also one that is written as a text such as 'inf'; None for none."""
    return None if value is None else float(value)
