"""The made files of the tutorial "A training job": trace, counters and power of one run."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mlscale
from mlscale import Profiles

ROOT = Path(__file__).parents[1]
COUNTERS, TRACE, POWER = (
    ROOT / "datasets" / name
    for name in ("training-step-ncu.csv", "training-step-trace.json.gz", "training-step-power.csv")
)


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


def test_the_run_takes_its_kernels(profiles: Profiles, kernels: list[dict[str, Any]]) -> None:
    run = mlscale.advise(profiles, max_slowdown=5).document()["run"]
    assert run["launches"] == len(kernels)
    assert run["time_ms"] == pytest.approx(sum(event["dur"] for event in kernels) / 1e3)


def test_names_of_both_tools_are_of_one_kernel(
    profiles: Profiles, kernels: list[dict[str, Any]]
) -> None:
    """28 kernels by name, grid and block, of which ncu was told nothing of 10 where they were made.

    Seven it did not select, and three products of matrices come after the last profiled one.
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
    """It names the kernel that takes most of the time."""
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
