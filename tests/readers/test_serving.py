"""Results of serving benchmarks: one made file of each tool by hand, and the real ones.

Real files: MLSCALE_DATA, servers/; their numbers are read off the files. Of trtllm-bench there is
no real one.
"""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import llm_server
from synthetic.serving_results import WHOLE, WHOLE_AIPERF, WHOLE_SGLANG, WHOLE_TRTLLM, WHOLE_VLLM
from synthetic.tidy import refused

from mlscale.errors import DataWarning
from mlscale.readers.files import open_file
from mlscale.readers.serving import ServingResult, read, read_result

ALL_FAILED = WHOLE_VLLM | {
    "start_times": [0.0] * 100, "ttfts": [0.0] * 100, "itls": [[]] * 100, "output_lens": [0] * 100,
    "errors": ["refused"] * 100,
}  # fmt: skip
COUNTS = (
    "completed", "duration", "total_input_tokens", "total_output_tokens", "output_throughput",
)  # fmt: skip
DAMAGES = {"x1000": 1e3, "/1000": 1e-3, "negative": -1.0, "zero": 0.0}
OF_LOAD = ("request_rate", "concurrency")  # which are not 0; a latency of 0 was not measured
NOT_TOLD = {  # a field that nothing else tells, or that a larger one makes another load
    ("vLLM", "num_prompts", "x1000"), ("vLLM", "max_concurrency", "x1000"),
    ("SGLang", "max_concurrency", "x1000"), ("SGLang", "request_rate", "x1000"),
    ("SGLang", "random_range_ratio", "x1000"), ("SGLang", "random_range_ratio", "/1000"),
    ("SGLang", "random_range_ratio", "negative"),
    ("AIPerf", "input_config.loadgen.concurrency", "x1000"),
    ("trtllm-bench", "request_info.avg_input_length", "x1000"),
    ("trtllm-bench", "request_info.avg_input_length", "/1000"),
}  # fmt: skip


def fields(told: dict[str, Any], outer: str = "") -> list[str]:
    """The numbers of a result, with dots where one holds another."""
    found = []
    for name, value in told.items():
        if isinstance(value, dict):
            found += fields(value, f"{outer}{name}.")
        elif not isinstance(value, str):
            found.append(outer + name)
    return found


def damaged(told: Any, field: str, factor: float | None) -> Any:
    """A whole result with one field multiplied, or without it."""
    name, _, inner = field.partition(".")
    if inner:
        return told | {name: damaged(told[name], inner, factor)}
    return {
        key: value if key != name else value * (factor or 0)
        for key, value in told.items()
        if key != name or factor is not None
    }


CASES = [(tool, field, damage) for tool, told in WHOLE.items() for field in fields(told)
         for damage in DAMAGES if (tool, field, damage) not in NOT_TOLD
         and (damage != "zero" or field.endswith(OF_LOAD))]  # fmt: skip
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


def result_of(folder: Path, told: dict[str, Any], indent: int | None = None) -> ServingResult:
    """What is read of a result."""
    path = folder / "result.json"
    path.write_text(json.dumps(told, indent=indent), encoding="utf-8")
    return read_result(path)


OPEN_SGLANG = WHOLE_SGLANG | {"backend": "sglang", "max_concurrency": None}


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        (WHOLE_VLLM | {"num_prompts": 101}, {"clients": 8, "failed": 1}),
        (OPEN_SGLANG, {"clients": None, "backend": "sglang"}),
        (WHOLE_AIPERF, {"clients": 8, "duration_s": 50.0, "output_per_s": 392.0}),
        (WHOLE_TRTLLM, {"model": "m", "input_tokens": 10000, "duration_s": 50.0}),
    ],
    ids=[*WHOLE],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_result_of_each_tool(
    tmp_path: Path, told: Any, facts: dict[str, Any], indent: int | None
) -> None:
    """1.9 times a token's 20 ms at the 99th percentile; 1.3 times the first's 100 at the 90th."""
    found = result_of(tmp_path, told, indent)
    assert found.latency_ms("tpot p99") == pytest.approx(38)
    assert found.latency_ms("ttft p90") == pytest.approx(130)
    assert (found.request_per_s, found.in_flight) == pytest.approx((2, 8))
    assert {fact: getattr(found, fact) for fact in facts} == facts
    with refused("has no ttft p95, but"):
        found.latency_ms("ttft p95")


ALONE = ("request_count", "request_throughput", "time_to_first_token", "output_token_throughput")
LEAST = {  # counts and the time to the first token; trtllm-bench's in ns
    "vLLM": {name: WHOLE_VLLM[name] for name in (*COUNTS, "num_prompts", "mean_ttft_ms")},
    "AIPerf": {name: WHOLE_AIPERF[name] for name in ALONE},
    "trtllm-bench": {
        "request_info": {"num_requests": 100},
        "performance": {"request_throughput_req_s": 2, "system_output_throughput_tok_s": 392},
        "streaming_metrics": {"ttft_percentiles": {"average": 1e8}},
    },
}


@pytest.mark.parametrize("tool", LEAST)
def test_a_result_may_lack_what_is_no_count(tmp_path: Path, tool: str) -> None:
    found = result_of(tmp_path, LEAST[tool])
    assert (found.duration_s, found.output_per_s) == pytest.approx((50, 392))
    assert found.latencies_ms["ttft mean"] == pytest.approx(100)
    assert found.in_flight is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            json.dumps(WHOLE_VLLM) + "\n" + json.dumps(WHOLE_VLLM),
            "2 results, of inf, inf requests/s",
        ),
        (json.dumps(WHOLE_VLLM)[:-20], "is not a complete result of vLLM's bench serve"),
        (json.dumps({"num_prompts": 3}), "'completed' is missing"),
        (json.dumps(ALL_FAILED), "all requests failed, see errors; save it again"),
        (json.dumps(WHOLE_VLLM)[:-1] + ', "completed": 98}', "'completed' appears twice"),
        (json.dumps(WHOLE_VLLM | {"completed": 10**400}), "int too large to convert to float"),
        ('{"traceEvents": []}', "is not a result of vllm bench serve"),
        ("time,power\n1,2\n", "is not a result of vllm bench serve"),
    ],
)
def test_what_is_no_single_result_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text, encoding="utf-8")
    with refused(told):
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


@pytest.mark.parametrize(("tool", "field", "damage"), CASES)
def test_a_damaged_field_is_refused_by_name(
    tmp_path: Path, tool: str, field: str, damage: str
) -> None:
    with refused(".") as caught:
        result_of(tmp_path, damaged(WHOLE[tool], field, DAMAGES[damage]))
    told = str(caught.value)
    *outer, last = field.removeprefix("max_").split(".")
    assert last in told or outer[-1] in told
    units = "latencies in ms", "durations in s"
    assert told.endswith(("save it again", " wrote", *units))
    if any(part in field for part in ("throughput", "concurrency", "completed", "tokens")):
        assert not told.endswith(units)


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        *product(("vLLM", "SGLang"), COUNTS),
        ("AIPerf", "request_count.avg"),
        ("AIPerf", "request_throughput.avg"),
        ("trtllm-bench", "request_info.num_requests"),
    ],
)
def test_a_count_that_is_missing_is_named(tmp_path: Path, tool: str, field: str) -> None:
    with refused(f"'{field}' is missing"):
        result_of(tmp_path, damaged(WHOLE[tool], field, None))


@pytest.mark.parametrize("tool", WHOLE)
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_all_latencies_in_another_unit_are_refused(
    tmp_path: Path, tool: str, factor: float
) -> None:
    told, times = WHOLE[tool], ("_ms", "_latency.", "_token.", "tiles")
    for field in fields(told):
        if any(part in field for part in times) and "total_latency_ms" not in field:
            told = damaged(told, field, factor)
    with refused("latencies in ms"):
        result_of(tmp_path, told)


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({}, "closed"),
        ({"request_rate": 100}, "closed"),  # whatever rate is asked for, 8 clients wait
        ({"request_rate": 2.1, "max_concurrency": 200}, "open"),
        ({"request_rate": 100, "max_concurrency": None}, "overloaded"),
        ({"request_rate": 100, "max_concurrency": 200}, "overloaded"),  # 200 were never reached
        # By hand: 0.65 of 50 s are 32.5 s, 7.6 s of them for the 99th percentile of the requests,
        # so that 100 requests must come within 24.9 s: at 4.016 requests/s.
        ({"request_rate": 3.97, "max_concurrency": None}, "open"),
        ({"request_rate": 4.06, "max_concurrency": None}, "overloaded"),
        ({"request_rate": None, "max_concurrency": None}, ""),
    ],
)
def test_what_is_served_tells_the_load(tmp_path: Path, changes: dict[str, Any], load: str) -> None:
    assert result_of(tmp_path, WHOLE_VLLM | changes).load == load
    names = {"request_rate": "request_rate", "max_concurrency": "concurrency"}
    asked = {"concurrency": 8} | {names[name]: value for name, value in changes.items()}
    told = WHOLE_AIPERF | {"input_config": {"loadgen": asked}}
    assert result_of(tmp_path, told).load == load


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({}, "open"),  # by hand: 0.65 of 50 s are 32.5 s; 20 s of requests, 14 s of one at the end
        ({"request_rate": 3.3}, "overloaded"),  # 30.3 s are more than two requests: no tail
        ({"mean_ttft_ms": 3100.0}, "overloaded"),  # over a tenth of the 30 s after the last one
    ],
)
def test_a_summary_tells_a_tail_of_long_answers(
    tmp_path: Path, changes: dict[str, Any], load: str
) -> None:
    names = [name for name in WHOLE_VLLM if name[-3:] == "_ms" and name[:5] != "mean_"]
    told = {name: value for name, value in WHOLE_VLLM.items() if name not in names}
    told |= {"request_rate": 5.0, "max_concurrency": None, "mean_itl_ms": 70.0}
    del told["mean_e2el_ms"], told["mean_tpot_ms"]
    assert result_of(tmp_path, told | changes).load == load


# 100 requests by hand, one each 0.46 s: 0.1 s to the first of 196 tokens, 20 ms for each other.
LISTS = {"start_times": [0.46 * at for at in range(100)], "ttfts": [0.1] * 100,
         "itls": [[0.02] * 195] * 100, "output_lens": [196] * 100}  # fmt: skip
SHORTER = {"duration": 35.0, "request_throughput": 100 / 35, "output_throughput": 560.0,
           "total_token_throughput": 29600 / 35}  # fmt: skip
DOUBLED = {"total_output_tokens": 39200, "output_throughput": 784.0,
           "total_token_throughput": 984.0}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({name: values[:50] for name, values in LISTS.items()},
         "start_times lists 50 requests, but completed is 100"),
        ({"itls": [[0.004] * 195] * 100}, "itl_ms is 19, but its lists give 4"),
        ({"ttfts": [0.2] * 100}, "ttft_ms is 100, but its lists give 200"),
        (DOUBLED, "total_output_tokens is 39200, but the sum of output_lens 19600"),
        (SHORTER, "duration is 35, but by start_times, ttfts and itls 49.54"),
        ({"start_times": [1e3 * at for at in LISTS["start_times"]]}, "by start_times, ttfts and"),
        ({"start_times": [-at for at in LISTS["start_times"]]}, "start_times: the requests' times"),
        ({"start_times": ["soon"] * 100}, "start_times: could not convert"),
        ({"start_times": [None] * 100}, "start_times: the requests' times"),
        ({"itls": [[1e308] * 195] * 100}, "itls: the requests' times"),
    ],
)  # fmt: skip
def test_lists_that_contradict_their_file_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    """By hand: the last of 100 requests starts at 45.54 s and takes 4 s, of 50."""
    assert result_of(tmp_path, WHOLE_VLLM | LISTS).longest_s == pytest.approx(4)
    with refused(told):
        result_of(tmp_path, WHOLE_VLLM | LISTS | changes)


def test_without_start_times_another_ttft_is_the_summarys(tmp_path: Path) -> None:
    told = WHOLE_VLLM | LISTS | {"start_times": [], "ttfts": [0.03] * 100}
    with pytest.warns(DataWarning, match="ttft is taken from the file's summary") as caught:
        found = result_of(tmp_path, told)
    assert caught[0].message.note.code == "V02"  # type: ignore[union-attr]
    assert found.latency_ms("ttft p90") == 130.0
    assert found.latency_ms("tpot p90") == pytest.approx(20)


def test_trtllm_bench_tells_in_ns_or_ms_and_whether_all_came_at_once(tmp_path: Path) -> None:
    old: Any = WHOLE_TRTLLM
    for field in fields(old):
        old = damaged(old, field, 1e6) if "percentiles" in field else old
    new = result_of(tmp_path, WHOLE_TRTLLM)
    assert result_of(tmp_path, old).latencies_ms == pytest.approx(new.latencies_ms)
    assert new.rate_per_s is None
    # 1.05e15 is what it printed for 100 requests at once: 1.05 ms apart, 950 requests/s.
    at_once = WHOLE_TRTLLM | {"world_info": {"issue_rate": 1.0526e15}}
    assert result_of(tmp_path, at_once).load == "overloaded"
    apart = WHOLE_TRTLLM | {"world_info": {"issue_rate": 1e9 * 4.9e8}}
    assert result_of(tmp_path, apart).rate_per_s is None


def test_real_loads(data_folder: Path) -> None:
    """Counts of climatik's README; of SGLang's files those whose TPOT or queue grew without end."""
    paths = sorted((data_folder / "servers-real" / "climatik").glob("vllm-*.json.gz"))
    found = [read_result(path) for path in paths]
    assert [one.load for one in found] == ["closed"] * 10
    assert all(43 < (one.in_flight or 0) <= 50 for one in found)
    late = []
    for name in REAL:
        sheet = open_file(data_folder / "servers" / name)
        assert sheet is not None
        late += [(name, one.rate_per_s) for one in read(sheet) if one.load == "overloaded"]
    late = [(name, rate) for name, rate in late if rate != float("inf")]
    assert late == [
        ("sglang-llama_3_3_70b_online_output.jsonl", 16.0),
        ("sglang-llama_405b_online_output.jsonl", 8.0),
    ]


def test_the_spread_of_a_mean_is_its_standard_error(tmp_path: Path) -> None:
    """Closed form: leaving out one of 20 requests at a time gives s / sqrt(n), over the mean."""
    ttfts = [0.1 + 0.001 * (7 * n % 20) for n in range(20)]
    told = WHOLE_VLLM | {"num_prompts": 20, "completed": 20, "duration": 10.0, "ttfts": ttfts}
    told |= {"total_output_tokens": 20 * 196, "total_input_tokens": 2000}
    told |= {"itls": [[0.02] * 195] * 20, "output_lens": [196] * 20}
    told |= {"mean_ttft_ms": 109.5, "median_ttft_ms": 109.5, "max_concurrency": None}
    for at in ("p90", "p99"):
        told[f"{at}_ttft_ms"] = 118.0
    file = tmp_path / "result.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    found = read_result(file)
    error = np.std(ttfts, ddof=1) / np.sqrt(20) / np.mean(ttfts)
    assert found.spread["ttft mean"] == pytest.approx(error, rel=0.01)
    assert found.spread["itl p50"] == pytest.approx(0, abs=1e-12)


def test_the_first_of_all_clients_are_in_each_run(tmp_path: Path) -> None:
    """By hand: 4 of 44 come at once and wait 1 s, the others 0.1 s: no further run differs."""
    run = llm_server.serve(llm_server.Server(), 1980.0, np.inf, 44, 4)
    spreads = []
    for clients in (4, None):
        told = llm_server.result(replace(run, ttfts=np.array([1.0] * 4 + [0.1] * 40)))
        told["max_concurrency"] = clients
        file = tmp_path / f"{clients}.json"
        file.write_text(json.dumps(told), encoding="utf-8")
        spreads.append(read_result(file).spread)
    assert spreads[0]["ttft mean"] == pytest.approx(0, abs=1e-12)
    assert spreads[1]["ttft mean"] > 0.3
    assert spreads[0]["itl p99"] == spreads[1]["itl p99"]


def test_tpot_is_counted_as_vllm_does(tmp_path: Path) -> None:
    """By hand: 10 gaps of 20 ms for 6 tokens of the tokenizer are 200 / 5 ms; one has none."""
    told = WHOLE_VLLM | {
        "num_prompts": 2,
        "completed": 2,
        "duration": 1.0,
        "total_input_tokens": 200,
    }
    told |= {"total_output_tokens": 7, "ttfts": [0.1, 0.1], "output_lens": [6, 1]}
    told |= {"itls": [[0.02] * 10, [0.02]], "request_throughput": 2.0, "output_throughput": 7.0}
    told |= {"total_token_throughput": 207.0, "mean_tpot_ms": 40.0, "median_tpot_ms": 40.0}
    told = {name: value for name, value in told.items() if "e2el" not in name and name[0] != "p"}
    file = tmp_path / "result.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    assert read_result(file).latencies_ms["tpot mean"] == pytest.approx(40)
