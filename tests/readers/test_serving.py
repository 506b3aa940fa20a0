"""Results of serving benchmarks: one made file of each tool by hand, and the real ones.

Real files: MLSCALE_DATA, servers/; their numbers are read off the files. Of trtllm-bench there is
no real one.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from mlscale.errors import InputError
from mlscale.readers.files import open_file
from mlscale.readers.serving import read, read_result

VLLM = {"backend": "vllm", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8,
        "duration": 50.0, "completed": 99, "total_input_tokens": 1000, "total_output_tokens": 5000,
        "output_throughput": 100.0, "median_ttft_ms": 20.0, "p99_ttft_ms": 40.0}  # fmt: skip
SGLANG = {"backend": "sglang", "random_range_ratio": 1.0, "request_rate": float("inf"),
          "max_concurrency": None, "completed": 10, "duration": 5.0, "output_throughput": 100.0,
          "median_itl_ms": 9.0, "p95_itl_ms": 12.0}  # fmt: skip
AIPERF = {"request_count": {"avg": 10}, "request_throughput": {"avg": 2},
          "time_to_first_token": {"avg": 190.0, "p50": 170.0, "p90": 250.0},
          "inter_token_latency": {"avg": 35.0}, "output_token_throughput": {"avg": 100.0},
          "input_config": {"loadgen": {"concurrency": 4}}}  # fmt: skip
TRTLLM = {"engine": {"model": "m", "backend": "Pytorch"}, "world_info": {"tp_size": 1},
          "request_info": {"num_requests": 10, "avg_input_length": 100},
          "performance": {"request_throughput_req_s": 2, "system_output_throughput_tok_s": 100},
          "streaming_metrics": {"ttft_percentiles": {"average": 2e8, "p90": 3e8},
                                "tpot_percentiles": {"average": 1e7}}}  # fmt: skip
REAL = {  # by file: how many results it has, and the ms of the first's median time to first token
    "aiperf-profile_export_aiperf.json": (1, 175.05),
    "example-bench-1320.json.gz": (1, 66.851),
    "example-bench-1980.json.gz": (1, 45.644),
    "sglang-deepseek_dp_mla_output.jsonl": (1, 10014.1),
    "sglang-llama_3_3_70b_offline_output.jsonl": (7, 91282.2),
    "sglang-llama_3_3_70b_online_output.jsonl": (7, 85.745),
    "sglang-llama_405b_online_output.jsonl": (6, 218.81),
    "vllm-llama3.2-3b-4xl40s-10-30-inf-qps.jsonl": (3, 52.999),
    "vllm-qwen2.5-vl-3b-ascend-1qps.json": (1, 98.944),
    "vllm-qwen3-vl-8b-ascend-1qps.json": (1, 95.700),
}


@pytest.mark.parametrize(
    ("told", "name", "ms", "facts"),
    [
        (VLLM, "ttft p50", 20.0, {"clients": 8, "failed": 1, "request_per_s": 99 / 50}),
        (SGLANG, "itl p95", 12.0, {"clients": None, "backend": "sglang"}),
        (AIPERF, "tpot mean", 35.0, {"clients": 4, "duration_s": 5.0, "output_per_s": 100.0}),
        (TRTLLM, "ttft p90", 300.0, {"model": "m", "input_tokens": 1000, "duration_s": 5.0}),
    ],
    ids=["vLLM", "SGLang", "AIPerf", "trtllm-bench"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_result_of_each_tool(
    tmp_path: Path, told: Any, name: str, ms: float, facts: Any, indent: int | None
) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(told, indent=indent), encoding="utf-8")
    found = read_result(path)
    assert found.latency_ms(name) == pytest.approx(ms)
    assert {fact: getattr(found, fact) for fact in facts} == facts
    with pytest.raises(InputError, match="has no ttft p95, but"):
        found.latency_ms("ttft p95")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps(VLLM) + "\n" + json.dumps(VLLM), "holds 2 results, of inf, inf requests/s"),
        (json.dumps(VLLM)[:-20], "is no whole result of vLLM's bench serve"),
        (json.dumps({"num_prompts": 3}), "'completed' is missing"),
        ('{"traceEvents": []}', "is no result of vllm bench serve"),
        ("time,power\n1,2\n", "is no result of vllm bench serve"),
    ],
)
def test_what_is_no_single_result_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_result(path)


def test_every_real_file_is_read(data_folder: Path) -> None:
    folder = data_folder / "servers"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    others = {"example-log-1320.csv.gz", "example-log-1980.csv.gz", "sglang-README.md"}
    assert names - others - {"simulated-development.jsonl.gz"} == set(REAL)
    for name, (count, ms) in REAL.items():
        sheet = open_file(folder / name)
        assert sheet is not None
        found = read(sheet)
        assert len(found) == count
        assert found[0].latency_ms("ttft p50") == pytest.approx(ms, rel=1e-4)
