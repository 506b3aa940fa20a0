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
from mlscale.advice.verdict import answer_lines

ROOT = Path(__file__).parents[1]
PAGE = shown((ROOT / "docs" / "howto" / "training-job.md").read_text(encoding="utf-8"))
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


def test_the_page_shows_the_answer(advice: Any) -> None:
    assert " ".join(answer_lines(advice)) in " ".join(ANSWER.split())


def test_the_row_of_the_whole_run_is_what_json_gives(advice: Any) -> None:
    """Percentages are shown with one decimal, ends from 10 % on without."""
    (line,) = (line for line in ANSWER.splitlines() if line.startswith("     whole run, "))
    line = line.partition("100 %")[2].replace(" to ", "  ")
    slowdown, energy = (advice["answer"][f"{name}_percent"] for name in ("slowdown", "energy"))
    assert numbers(line) == pytest.approx([*slowdown, energy[0]], abs=0.051)


def test_the_commands_set_the_best_clock(advice: Any) -> None:
    mhz = f"{advice['answer']['at']['engine_mhz']:g}"
    assert f"    nvidia-smi -i 0 -lgc {mhz},{mhz}" in ANSWER.splitlines()


def test_the_run_takes_its_kernels(advice: Any, kernels: list[dict[str, Any]]) -> None:
    busy_ms = sum(event["dur"] for event in kernels) / 1e3
    run = advice["run"]
    assert run["launches"] == len(kernels)
    assert run["time_ms"] == pytest.approx(busy_ms)


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
    said = " ".join(run.stdout.split())
    assert (
        "One run is enough with a profile of the kernels that take most time: 'ampere_bf16_s1"
        in said
    )
