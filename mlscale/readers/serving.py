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
STATISTICS = {
    "mean": ("mean", "avg", "average"),
    "p50": ("p50", "median"),
    **{name: (name,) for name in ("p90", "p95", "p99")},
}
METRICS = ("itl", "tpot", "ttft")
_LEAST_GAP = 1e-3  # [ms] of tokens that came together
_DAMAGE = (AttributeError, EOFError, LookupError, OSError, RecursionError, TypeError, ValueError,
           zlib.error)  # fmt: skip
Row = Mapping[str, Any]
Latencies = dict[str, float]  # [ms] by name, as 'ttft p90'


@dataclass(frozen=True, eq=False)
class ServingResult:
    """What a benchmark says of a server; None for what its file does not say.

    source: the file. rate_per_s: at which requests came, inf for all at once; clients: most
    requests at a time. Of a file with details gaps_ms: between tokens, of all requests; growth:
    mean time to first token of the last third of the requests over the first third's.
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
    growth: float = 1.0

    def __post_init__(self) -> None:
        numbers = {"completed": self.completed, "duration": self.duration_s}
        numbers |= {"output throughput": self.output_per_s, **self.latencies_ms}
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

    def latency_ms(self, name: str) -> float:
        """A latency [ms], as 'ttft p90'. Raises InputError where the file lacks it."""
        if name not in self.latencies_ms:
            known = ", ".join(self.latencies_ms) or "no latency"
            raise InputError(
                f"{self.source}: has no {name}, but {known}; run vLLM with --save-detailed, or "
                "with --metric-percentiles 50,90,99"
            )
        return self.latencies_ms[name]


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
    names = [name for each in STATISTICS.values() for name in each]
    tables = {
        metric: {name: row.get(f"{name}_{metric}_ms") for name in names} for metric in METRICS
    }
    completed = float(row["completed"])
    computed, gaps_ms, growth = _details(row)
    return ServingResult(
        source,
        computed | _latencies(tables),
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
        gaps_ms,
        growth,
    )


def _details(row: Row) -> tuple[Latencies, Floats | None, float]:
    """Latencies, gaps and growth by the requests that did not fail, where the file has them all."""
    starts, ttfts, gaps = (row.get(name) or [] for name in ("start_times", "ttfts", "itls"))
    errors = row.get("errors") or [""] * len(ttfts)
    tokens = row.get("output_lens") or [0] * len(ttfts)
    lists = starts, ttfts, gaps, tokens, errors
    if not ttfts or len({len(one) for one in lists}) > 1:
        return {}, None, 1.0
    done = sorted(one[:4] for one in zip(*lists, strict=True) if not one[4])
    ttft = 1e3 * np.array([first for _, first, _, _ in done], np.float64)
    every = [1e3 * np.array(gaps, np.float64) for _, _, gaps, _ in done]
    every = [np.where(each == 0, _LEAST_GAP, each) for each in every]
    counts = [max(tokens - 1, len(gaps)) for _, _, gaps, tokens in done]
    tpot = [each.sum() / count for each, count in zip(every, counts, strict=True) if each.size]
    values = {"ttft": ttft, "itl": np.concatenate(every), "tpot": np.array(tpot)}
    values = {metric: one for metric, one in values.items() if one.size}
    if not all(np.isfinite(one).all() and one.min() > 0 for one in values.values()):
        raise ValueError("the requests' times are not all positive numbers")
    latencies = {
        f"{metric} {at}": float(one.mean() if at == "mean" else np.percentile(one, int(at[1:])))
        for metric, one in values.items()
        for at in STATISTICS
    }
    third = max(1, len(ttft) // 3)
    return latencies, values.get("itl"), float(ttft[-third:].mean() / ttft[:third].mean())


def _aiperf(row: Row, source: str) -> ServingResult:
    """Of AIPerf and GenAI-Perf; a mean of each request's gaps is TPOT."""
    load = (row.get("input_config") or {}).get("loadgen") or {}
    lengths = [row.get(f"{side}_sequence_length") or {} for side in ("input", "output")]
    completed = float(row["request_count"]["avg"])
    return ServingResult(
        source,
        _latencies(
            {"ttft": row.get("time_to_first_token"), "tpot": row.get("inter_token_latency")}
        ),
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
    tables = {metric: row["streaming_metrics"].get(f"{metric}_percentiles") for metric in METRICS}
    return ServingResult(
        source,
        _latencies(tables, 1e-6),
        completed,
        completed / float(speed["request_throughput_req_s"]),
        float(speed["system_output_throughput_tok_s"]),
        lengths[0] and lengths[0] * completed,
        lengths[1] and lengths[1] * completed,
        backend=engine.get("backend"),
        model=engine.get("model"),
    )


def _latencies(tables: Mapping[str, Row | None], ms: float = 1.0) -> Latencies:
    """The latencies [ms] that tables such as {'avg': 1, 'p90': 2} have, by metric; ms: of 1."""
    return {
        f"{metric} {ours}": ms * float(value)
        for metric, table in tables.items()
        for ours, names in STATISTICS.items()
        if (value := next(filter(None, map((table or {}).get, names)), None))
    }


def _number(value: Any) -> float | None:
    """A number, also one that is written as a text such as 'inf'; None for none."""
    return None if value is None else float(value)
