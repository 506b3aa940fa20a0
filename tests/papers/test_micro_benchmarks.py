"""Micro-benchmarks: a simulated GPU is recovered from times made with it, with noise; gpu.json.

Its latencies, delays and rates are those of `synthetic/micro_benchmarks.py`; 5 % is what the noise
of 1 % in a time leaves of a difference of two.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic.micro_benchmarks import CLOCKS, GPU, PROBES, SAMPLES, true_cycles, true_unit
from synthetic.tidy import refused
from synthetic.warps import dram

from mlscale.data.devices import load_device
from mlscale.papers import volkov
from mlscale.papers.gpu_file import (
    compute_unit,
    gpu_document,
    measured_cycles,
    read_gpu_file,
    read_gpu_parameters,
    wang_chu_row,
)
from mlscale.papers.wang_chu_inputs import gpu_of_row

ALL = pd.concat(SAMPLES)
CYCLES, _ = measured_cycles(ALL, PROBES)


def document_of(samples: pd.DataFrame, key: str = GPU.key) -> dict[str, Any]:
    return gpu_document(key, GPU.name, GPU.wave_size, samples, PROBES)


@pytest.fixture
def gpu_file(tmp_path: Path) -> Path:
    """gpu.json of the simulated GPU at all settings."""
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(document_of(ALL)))
    return path


class TestRecovered:
    @pytest.mark.parametrize("place", range(len(CLOCKS)))
    def test_latencies_delays_and_the_unit_of_the_survey(self, place: int) -> None:
        """The service time of the memory too, which 32 warps of one CU do not show."""
        for name, truth in true_cycles(*CLOCKS[place]).items():
            assert CYCLES.loc[CLOCKS[place], name] == pytest.approx(truth, rel=0.05), name
        unit = true_unit(*CLOCKS[place])
        found = compute_unit(*measured_cycles(SAMPLES[place], PROBES), GPU.wave_size, 4)
        for name in ("arithmetic", "memory"):
            for what in (f"{name}_latency_cycles", f"{name}_per_cycle"):
                assert getattr(found, what) == pytest.approx(getattr(unit, what), rel=0.05), what

    def test_the_parameters_of_wang_and_chu(self) -> None:
        """By what they say at each setting; a slope alone is worth less than its line."""
        device = load_device("gtx980")
        found = gpu_of_row(device, wang_chu_row(CYCLES, device))
        for engine, memory in CLOCKS:
            truth = true_cycles(engine, memory)
            expected = truth["dram_latency"], truth["dram_delay"]
            assert dram(found, engine, memory) == pytest.approx(expected, rel=0.05)
        assert "Measured at 4 settings" in found.note

    def test_one_setting_gives_constants_that_hold_there(self) -> None:
        row = wang_chu_row(CYCLES[:1], load_device("gtx980"))
        assert row["dram_latency_offset"] == CYCLES["dram_latency"].iloc[0]
        assert "One ratio of clocks" in row["note"]
        assert "One memory clock" in row["note"]


class TestGpuFile:
    def test_what_is_written(self) -> None:
        """At one setting; then of a GPU that the device table lacks."""
        document = document_of(SAMPLES[1])
        assert document["device"] == "gtx980"
        assert document["wang_chu"]["l2_latency"] == pytest.approx(222, rel=0.05)
        assert len(document["volkov"]) == 35
        assert document_of(SAMPLES[1], "another")["wang_chu"] is None

    def test_wang_chu_takes_it(self, gpu_file: Path) -> None:
        """The fit above, read again."""
        device = load_device("gtx980")
        fitted = gpu_of_row(device, wang_chu_row(CYCLES, device))
        found = read_gpu_parameters(gpu_file)
        assert found.key == "gtx980"
        for name in ("dram_latency_slope", "dram_delay_offset", "shared_delay", "fp64_delay"):
            assert getattr(found, name) == pytest.approx(getattr(fitted, name))

    def test_the_survey_takes_it(self, gpu_file: Path) -> None:
        """The simulated GPU meets the classical bounds: off by its noise and the fit's."""
        gpu = read_gpu_file(gpu_file)
        keys = ("warps", "intensity", "ipc")
        n, alpha, ipc = (np.array([point[key] for point in gpu.volkov]) for key in keys)
        off = {
            name: 100 * np.abs(volkov.MODELS[name](n, alpha, gpu.compute_unit) / ipc - 1).mean()
            for name in ("classical bounds", "Chen & Aamodt 1")
        }
        assert off["classical bounds"] < 5
        assert off["Chen & Aamodt 1"] > 50  # one warp's throughput at any occupancy

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"compute_unit": {"issue_per_cycle": -1}}, "is not a gpu.json"),
            ({"compute_unit": {"issue_per_cycle": 1e300}}, "issue_per_cycle is 1e.300"),
            ({"wang_chu": {}}, "is not a gpu.json of 'mlscale collect --micro'"),
            ({"device": "mine", "wang_chu": None}, "has no parameters for wang-chu"),
        ],
    )
    def test_another_file_is_refused_by_name(
        self, gpu_file: Path, changed: dict[str, Any], message: str
    ) -> None:
        document = {**json.loads(gpu_file.read_text()), **changed}
        gpu_file.write_text(json.dumps(document))
        with refused(f"^{gpu_file}: .*{message}"):
            read_gpu_parameters(gpu_file)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: measured_cycles(SAMPLES[0].assign(time_ms=1.0), PROBES),
            "the longer of two launches was not the slower",
        ),
        (lambda: measured_cycles(SAMPLES[0][20:], PROBES), "failed: dram_latency"),
        (
            lambda: document_of(SAMPLES[1].query("kernel != 'dram_delay_1'")),
            "micro-benchmarks failed: dram_delay_1",
        ),
    ],
)
def test_benchmarks_that_failed(call: Callable[[], object], message: str) -> None:
    with refused(message):
        call()
