"""Micro-benchmarks' analysis: a simulated GPU is recovered from times made with it, with noise.

The GPU meets the classical bounds of Volkov's survey and Wang and Chu's Eq. (4); its kernels take
a launch on top, and every time is off by 1 % (normal). The probes are those that the command runs.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import Capture, refuse, succeed
from synthetic import tidy
from synthetic.tidy import refused

from mlscale.collect.device import DeviceInfo
from mlscale.collect.micro import (
    compute_unit,
    gpu_document,
    measured_cycles,
    page_walk,
    probes,
    wang_chu_entry,
)
from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers.gpu_file import read_gpu_file
from mlscale.papers.volkov import ComputeUnit, classical_bounds
from mlscale.papers.wang_chu import dram_delay_cycles, dram_latency_cycles
from mlscale.papers.wang_chu_gpus import GpuParameters, gpu_of_row, load_gpu

GPU = DeviceInfo("cuda", "NVIDIA GeForce GTX 980", "u", "d", 16, 2 << 20, 32, sensors="nvml")
CLOCKS = [(600.0, 2000.0), (1200.0, 2000.0), (600.0, 3500.0), (1200.0, 3500.0)]
TRUTH, LAUNCH_MS, NOISE = load_gpu("gtx980"), 0.004, 0.01


def true_cycles(engine: float, memory: float) -> dict[str, float]:
    slope, offset = TRUTH.dram_latency_slope, TRUTH.dram_latency_offset
    delay = (TRUTH.dram_delay_slope, TRUTH.dram_delay_offset)
    return {
        "dram_latency": float(dram_latency_cycles(engine, memory, slope, offset)),
        "dram_delay": float(dram_delay_cycles(engine, memory, *delay)),
        "l2_latency": 222.0,
        "l2_delay": 1.2,
        "shared_latency": 28.0,
        "shared_delay": 1.0,
    }


def true_unit(engine: float, memory: float) -> ComputeUnit:
    """B: 32 lanes x 4 bytes are four sectors, each of which waits for the DRAM delay."""
    cycles = true_cycles(engine, memory)
    return ComputeUnit(6, cycles["dram_latency"], 4, 4, 1 / (4 * cycles["dram_delay"]))


def simulated(engine: float, memory: float, seed: int) -> pd.DataFrame:
    """The samples of the command at a setting of the clocks."""
    random = np.random.default_rng(seed)
    cycles, unit = true_cycles(engine, memory), true_unit(engine, memory)
    rows = []
    for probe in probes(GPU):
        if probe.quantity == "volkov":
            needed = probe.work / float(classical_bounds(probe.warps, probe.intensity, unit))
        else:
            needed = probe.work * cycles[probe.quantity]
        exact = needed / engine / 1e3 + LAUNCH_MS
        time_ms = exact * (1 + NOISE * random.standard_normal())
        rows.append((probe.entry.name, time_ms, engine, memory))
    return pd.DataFrame(rows, columns=["kernel", "time_ms", "engine_mhz", "memory_mhz"])


SAMPLES = [simulated(*clocks, seed) for seed, clocks in enumerate(CLOCKS)]
CYCLES, _ = measured_cycles(pd.concat(SAMPLES), probes(GPU))


class TestRecovered:
    @pytest.mark.parametrize("place", range(len(CLOCKS)))
    def test_latencies_and_delays(self, place: int) -> None:
        for name, truth in true_cycles(*CLOCKS[place]).items():
            assert CYCLES.loc[CLOCKS[place], name] == pytest.approx(truth, rel=0.05), name

    @pytest.mark.parametrize("place", range(len(CLOCKS)))
    def test_the_unit_of_the_survey(self, place: int) -> None:
        """The service time of the memory too, which 32 warps of one CU do not show."""
        truth = true_unit(*CLOCKS[place])
        found = compute_unit(*measured_cycles(SAMPLES[place], probes(GPU)), GPU, 4)
        for name in ("arithmetic", "memory"):
            for what in (f"{name}_latency_cycles", f"{name}_per_cycle"):
                assert getattr(found, what) == pytest.approx(getattr(truth, what), rel=0.05), what

    def test_the_parameters_of_wang_and_chu(self) -> None:
        """By what they say at each setting; a slope alone is worth less than its line."""
        found = entry()
        for engine, memory in CLOCKS:
            truth = true_cycles(engine, memory)
            latency = dram_latency_cycles(
                engine, memory, found.dram_latency_slope, found.dram_latency_offset
            )
            delay = dram_delay_cycles(
                engine, memory, found.dram_delay_slope, found.dram_delay_offset
            )
            assert float(latency) == pytest.approx(truth["dram_latency"], rel=0.05)
            assert float(delay) == pytest.approx(truth["dram_delay"], rel=0.05)
        assert "Measured at 4 settings" in found.note

    def test_one_setting_gives_constants_that_hold_there(self) -> None:
        device = load_device("gtx980")
        row = wang_chu_entry(CYCLES[:1], device)
        assert row["dram_latency_offset"] == CYCLES["dram_latency"].iloc[0]
        assert "One ratio of clocks" in row["note"]
        assert "One memory clock" in row["note"]


def entry() -> GpuParameters:
    device = load_device("gtx980")
    return gpu_of_row(device, json.loads(json.dumps(wang_chu_entry(CYCLES, device))))


class TestProbes:
    def test_sets_follow_the_cache(self) -> None:
        """2 MiB of L2: a chase through 1 MiB stays in it, one through 16 MiB does not."""
        words = {p.quantity: p.entry.case().arguments[0].size * 4 for p in probes(GPU)[:6]}
        assert words["l2_latency"] == 1 << 20
        assert words["dram_latency"] == 16 << 20

    def test_memory_is_saturated(self) -> None:
        """64 warps on each of 16 CUs, and 8 loads of 16 bytes of each thread on their way."""
        volkov = [p for p in probes(GPU) if p.quantity == "volkov"]
        assert max(p.entry.threads for p in volkov) == 64 * 32 * 16
        reads = [p for p in probes(GPU) if p.quantity.endswith("_delay")][:2]
        assert {p.entry.threads for p in reads} == {64 * 32 * 16}

    def test_work_is_what_the_kernel_does(self) -> None:
        """Steps of a chase; a read's set in sectors of 32 bytes, by 16 CUs, as often as swept."""
        for probe in probes(GPU)[:10]:
            data, *_, length = probe.entry.case().arguments
            swept = data.nbytes / 32 / 16 * length
            assert probe.work == (length if probe.quantity.endswith("latency") else swept)

    def test_a_walk_stays_in_a_page_of_2_mib(self) -> None:
        """Every line once; the page changes only once for each page."""
        walk = page_walk(3 * 2**19)
        assert sorted(walk) == list(range(0, 3 * 2**19, 32))
        assert np.count_nonzero(np.diff(walk // 2**19)) == 2

    def test_a_longer_launch_that_is_no_slower(self) -> None:
        with pytest.raises(InputError, match="the longer of two launches was not the slower"):
            measured_cycles(SAMPLES[0].assign(time_ms=1.0), probes(GPU))

    def test_a_probe_without_a_time(self) -> None:
        with pytest.raises(InputError, match="micro-benchmarks failed: dram_latency"):
            measured_cycles(SAMPLES[0][20:], probes(GPU))


def test_what_is_written() -> None:
    """At one setting; then of a GPU that the device table lacks, then with a benchmark missing."""
    document = gpu_document(SAMPLES[1], GPU)
    assert document["device"] == "gtx980"
    assert document["wang_chu"]["l2_latency"] == pytest.approx(222, rel=0.05)
    assert len(document["volkov"]) == 35
    assert gpu_document(SAMPLES[1], replace(GPU, name="another"))["wang_chu"] is None
    few = SAMPLES[1].query("kernel != 'dram_delay_1'")
    with pytest.raises(InputError, match="micro-benchmarks failed: dram_delay_1"):
        gpu_document(few, GPU)


@pytest.fixture
def gpu_file(tmp_path: Path) -> Path:
    """gpu.json of the simulated GPU at all settings."""
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(gpu_document(pd.concat(SAMPLES), GPU)))
    return path


class TestGpuFile:
    def test_wang_chu_takes_it(self, gpu_file: Path) -> None:
        """The fit above, read again."""
        gpu = read_gpu_file(gpu_file)
        assert gpu.parameters is not None
        assert gpu.parameters.key == "gtx980"
        assert gpu.parameters.l2_latency == pytest.approx(222, rel=0.05)
        for name in ("dram_latency_slope", "dram_delay_offset", "shared_delay", "fp64_delay"):
            assert getattr(gpu.parameters, name) == pytest.approx(getattr(entry(), name))

    @pytest.mark.parametrize("number", ["1" * 400, '"x"', "-1", "NaN", "1e300", "1e-300"])
    def test_a_number_that_cannot_be_names_the_file(self, gpu_file: Path, number: str) -> None:
        document = json.loads(gpu_file.read_text())
        document["compute_unit"]["issue_per_cycle"] = "NUMBER"
        gpu_file.write_text(json.dumps(document).replace('"NUMBER"', number))
        with refused(f"^{gpu_file}: "):
            read_gpu_file(gpu_file)

    def test_the_survey_takes_it(self, gpu_file: Path, capsys: Capture, tmp_path: Path) -> None:
        """The simulated GPU meets the classical bounds: off by its noise and the fit's."""
        given = ("literature", "survey", "--gpu", gpu_file, "--json", "-o", tmp_path / "f")
        out, _ = succeed(capsys, *given)
        document = json.loads(out)
        errors = {row["model"]: row["mape"] for row in document["errors"]}
        assert errors["classical bounds"] < 5
        assert errors["Chen & Aamodt 1"] > 50  # one warp's throughput at any occupancy
        assert len(document["throughput"]) == 35
        assert len(list((tmp_path / "f").iterdir())) == 4
        out, _ = succeed(capsys, "literature", "survey", "--gpu", gpu_file)
        assert out.startswith("NVIDIA GeForce GTX 980, measured: arithmetic_latency_cycles 6.0")

    @pytest.mark.parametrize("content", ["{}", '{"device": "gtx980", "wang_chu": {}}', '{"a": 1}'])
    def test_another_file(self, capsys: Capture, tmp_path: Path, content: str) -> None:
        path = tmp_path / "other.json"
        path.write_text(content)
        message = refuse(capsys, tmp_path, "literature", "survey", "--gpu", path)
        assert "is not a gpu.json of 'mlscale collect --micro'" in message

    def test_a_gpu_that_the_device_table_lacks(
        self, gpu_file: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        document = json.loads(gpu_file.read_text())
        gpu_file.write_text(json.dumps({**document, "device": "mine", "wang_chu": None}))
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows())
        given = ("literature", "wang-chu", table, "--gpu", gpu_file)
        assert "has no parameters for wang-chu" in refuse(capsys, tmp_path, *given)
