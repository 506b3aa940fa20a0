"""The page "Which clock for my training job?": its numbers, and its made files."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from refresh_docs import output, shown

import mlscale
from mlscale import Profiles

ROOT = Path(__file__).parents[1]
PAGE = shown((ROOT / "docs" / "training-job.md").read_text(encoding="utf-8"))
COMMAND, ANSWER = PAGE[0]
COUNTERS, TRACE, POWER = (
    ROOT / "datasets" / name
    for name in ("training-step-ncu.csv", "training-step-trace.json.gz", "training-step-power.csv")
)


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the page's command answers as JSON."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "datasets").symlink_to(ROOT / "datasets")
    command = COMMAND.replace("mlscale", f"'{sys.executable}' -m mlscale", 1)
    command = command.replace("--commands", "--format json 2> /dev/null")
    return json.loads(output(command, folder))


@pytest.fixture(scope="module")
def kernels() -> list[dict[str, Any]]:
    """The kernels of the trace, read without mlscale."""
    events = json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"]
    return [event for event in events if event["cat"] == "kernel"]


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    clocks = {"engine_mhz": 1410, "memory_mhz": 1593}
    with pytest.warns(mlscale.DataWarning, match="without counters: 10 kernels"):
        return mlscale.import_profile([COUNTERS, TRACE], base=clocks, power=POWER)


def numbers(line: str) -> list[float]:
    return [float(text) for text in re.findall(r"[-+]?\d+(?:\.\d+)?", line)]


def test_the_page_shows_the_verdict(advice: Any) -> None:
    assert f"\n{advice['verdict']}\n" in ANSWER


def test_the_row_of_the_whole_run_is_what_json_gives(advice: Any) -> None:
    """Times and clocks are shown with four digits, percentages with one decimal."""
    run, best = advice["whole_run"], advice["whole_run"]["best"]
    (line,) = (line for line in ANSWER.splitlines() if line.startswith("whole run "))
    line = re.sub(r"(\d) (\d{3})\b", r"\1\2", line.replace(" to ", "  "))
    percent, cu_count, engine_mhz, memory_mhz, time_ms, power_w, energy_mj, *rest = numbers(line)
    assert (percent, cu_count) == (100.0, best["cu_count"])
    assert (engine_mhz, memory_mhz) == (best["engine_mhz"], best["memory_mhz"])
    assert time_ms == pytest.approx(best["time_ms"], rel=1e-3)
    assert power_w == pytest.approx(best["power_w"], rel=1e-3)
    assert energy_mj == pytest.approx(best["energy_mj"], rel=1e-3)
    keys = [f"{what}_{end}" for what in ("slowdown", "saving")
            for end in ("percent", "low_percent", "high_percent")]  # fmt: skip
    assert rest == pytest.approx([run[key] for key in keys], abs=0.051)


def test_the_commands_set_the_best_clock(advice: Any) -> None:
    mhz = f"{advice['whole_run']['best']['engine_mhz']:g}"
    assert f"  nvidia-smi -i 0 -lgc {mhz},{mhz}" in ANSWER.splitlines()


def test_the_run_takes_its_kernels(advice: Any, kernels: list[dict[str, Any]]) -> None:
    busy_ms = sum(event["dur"] for event in kernels) / 1e3
    run = advice["whole_run"]
    assert run["launches"] == len(kernels)
    assert run["at_base"]["time_ms"] == pytest.approx(busy_ms)


def test_names_of_both_tools_are_of_one_kernel(
    profiles: Profiles, kernels: list[dict[str, Any]]
) -> None:
    """28 kernels by name, grid and block; tools/make_training_step.py says ncu nothing of 10.

    Seven are `unprofiled` there, and three products of matrices come after the last profiled one.
    """
    covered = {
        name for name, has in zip(profiles.kernels, profiles.has_counters, strict=True) if has
    }
    assert len(covered) == 18
    for part in (
        "softmax_warp_forward",
        "layer_norm_kernel",
        "GeluCUDAKernelImpl",
        "CUDAFunctor_add",
    ):
        assert sum(part in name for name in covered) == 1, part
    assert len(profiles.kernels) == 28


def test_the_trace_alone_says_what_to_profile(tmp_path: Path) -> None:
    """The kernel that the page's table names first takes most of the time."""
    command = [sys.executable, "-m", "mlscale", "advise", str(TRACE), "--base"]
    run = subprocess.run(
        [*command, "engine=1410,memory=1593"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "a profile of the kernels of most time too" in run.stdout
    assert "'ampere_bf16_s16816gemm_bf16_256x128_" in run.stdout
