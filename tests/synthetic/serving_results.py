"""Whole results of serving benchmarks by hand, one of each tool.

8 clients, 2 requests/s of 4 s each: 0.1 s to the first of 196 tokens, and 20 ms for each other;
percentiles around these means.
"""

import re
from typing import Any

SPREAD = {"mean": 1.0, "median": 0.95, "p90": 1.3, "p99": 1.9}
MEANS = {"ttft": 100.0, "tpot": 20.0, "itl": 20.0, "e2el": 4000.0}
WHOLE_VLLM = {"backend": "vllm", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8,
              "duration": 50.0, "completed": 100, "total_input_tokens": 10000,
              "total_output_tokens": 19600, "request_throughput": 2.0, "output_throughput": 392.0,
              "total_token_throughput": 592.0}  # fmt: skip
WHOLE_VLLM |= {f"{at}_{m}_ms": x * v for m, v in MEANS.items() for at, x in SPREAD.items()}
WHOLE_SGLANG = {name.replace("e2el", "e2e_latency"): value for name, value in WHOLE_VLLM.items()
                if name not in ("num_prompts", "total_token_throughput")}  # fmt: skip
WHOLE_SGLANG |= {"random_range_ratio": 1.0, "request_rate": 2.1, "input_throughput": 200.0}


def spread(mean: float, at_mean: str, at_median: str = "p50") -> dict[str, float]:
    """Statistics around a mean, by the names of a tool."""
    names = {"mean": at_mean, "median": at_median}
    return {names.get(at, at): x * mean for at, x in SPREAD.items()}


WHOLE_AIPERF = {
    "request_count": {"avg": 100}, "request_throughput": {"avg": 2.0},
    "benchmark_duration": {"avg": 50.0}, "output_sequence_length": {"sum": 19600},
    "time_to_first_token": spread(100, "avg"), "inter_token_latency": spread(20, "avg"),
    "request_latency": spread(4000, "avg"), "output_token_throughput": {"avg": 392.0},
    "input_config": {"loadgen": {"concurrency": 8}},
}  # fmt: skip
WHOLE_TRTLLM = {
    "engine": {"model": "m", "backend": "Pytorch"},
    "request_info": {"num_requests": 100, "avg_input_length": 100, "avg_output_length": 196},
    "performance": {"request_throughput_req_s": 2.0, "system_output_throughput_tok_s": 392.0,
                    "total_latency_ms": 50000.0},
    "streaming_metrics": {"avg_ttft_ms": 100.0, "ttft_percentiles": spread(100, "average"),
                          "tpot_percentiles": spread(20, "average")},
}  # fmt: skip
WHOLE = {"vLLM": WHOLE_VLLM, "SGLang": WHOLE_SGLANG, "AIPerf": WHOLE_AIPERF,
         "trtllm-bench": WHOLE_TRTLLM}  # fmt: skip
_TIMES = re.compile(r".*(duration|latency|_ms$|time_to|percentiles)")
_RATES = re.compile(r".*throughput")  # that which is asked for stays


def slower(told: Any, factor: float, name: str = "") -> Any:
    """The same result of a server whose times are all so many times as long."""
    if isinstance(told, dict):
        return {k: slower(v, factor, f"{name}.{k}") for k, v in told.items()}
    if isinstance(told, str):
        return told
    return told * factor if _TIMES.match(name) else told / factor if _RATES.match(name) else told
