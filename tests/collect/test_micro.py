"""Micro-benchmarks' analysis: a known machine is recovered from timings made with it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from replayed import DEVICE, ReplayGpu, ReplayLaunch, made_time_ms

from mlscale.collect.micro import MemorySample
from mlscale.collect.micro_fit import (
    device_entry,
    fit_compute_unit,
    survey_errors,
    survey_rows,
)
from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers.volkov import GTX_980, classical_bounds
from mlscale.papers.wang_chu import dram_delay_cycles, dram_latency_cycles
from mlscale.papers.wang_chu_gpus import _from_row, load_gpu

CLOCKS = [(800.0, 2000.0), (1200.0, 2000.0), (800.0, 3500.0), (1200.0, 3500.0)]


def made_samples(key: str, clocks: list[tuple[float, float]]) -> list[MemorySample]:
    """What a machine with the parameters of that GPU would show, Eq. (4) and Table III."""
    gpu = load_gpu(key)
    return [
        MemorySample(
            engine_mhz=engine,
            memory_mhz=memory,
            dram_latency=float(
                dram_latency_cycles(engine, memory, gpu.dram_latency_slope, gpu.dram_latency_offset)
            ),
            l2_latency=gpu.l2_latency,
            shared_latency=gpu.shared_latency,
            dram_delay=float(
                dram_delay_cycles(engine, memory, gpu.dram_delay_slope, gpu.dram_delay_offset)
            ),
            l2_delay=gpu.l2_delay,
            shared_delay=gpu.shared_delay,
        )
        for engine, memory in clocks
    ]


class TestDeviceEntry:
    def test_recovers_the_gtx_980_from_timings_made_with_it(self) -> None:
        device, gpu = load_device("gtx980"), load_gpu("gtx980")
        row = json.loads(json.dumps(device_entry(made_samples("gtx980", CLOCKS), device, "made")))
        found = _from_row(device, row)  # as wang-chu reads a row of its table
        for name in (
            "dram_latency_slope", "dram_latency_offset", "dram_delay_slope", "dram_delay_offset",
            "l2_latency", "l2_delay", "shared_latency", "shared_delay", "instruction_delay",
            "fp64_delay",
        ):  # fmt: skip
            assert getattr(found, name) == pytest.approx(getattr(gpu, name)), name
        assert "Measured at 4 settings" in found.note

    def test_one_setting_gives_constants_that_hold_there(self) -> None:
        device, (sample,) = load_device("gtx980"), made_samples("gtx980", CLOCKS[:1])
        found = _from_row(device, device_entry([sample], device, "made"))
        latency = dram_latency_cycles(
            800.0, 2000.0, found.dram_latency_slope, found.dram_latency_offset
        )
        delay = dram_delay_cycles(800.0, 2000.0, found.dram_delay_slope, found.dram_delay_offset)
        assert latency == pytest.approx(sample.dram_latency)
        assert delay == pytest.approx(sample.dram_delay)
        assert "One ratio of clocks" in found.note
        assert "One memory clock" in found.note

    def test_none(self) -> None:
        with pytest.raises(InputError, match="needs micro-benchmarks at one setting"):
            device_entry([], load_device("gtx980"), "made")


def made_rows(warps: tuple[int, ...] = (1, 4, 16, 32, 64)) -> list[dict[str, Any]]:
    """Throughputs of a CU that meets the classical bounds exactly."""
    return [
        {"warps": n, "intensity": a, "ipc": float(classical_bounds(n, a))}
        for n in warps
        for a in (1, 4, 32, 256, 1024)
    ]


class TestVolkov:
    def test_recovers_the_compute_unit_that_the_timings_were_made_with(self) -> None:
        """Arithmetic saturates: 64 warps x 1025 / (1024 x 6 + 368) IPC are above T (1 + 1/a)."""
        found = fit_compute_unit(made_rows(), GTX_980.issue_per_cycle)
        assert found.arithmetic_latency_cycles == pytest.approx(6)
        assert found.memory_latency_cycles == pytest.approx(368)
        assert found.memory_per_cycle == pytest.approx(0.08)
        assert found.arithmetic_per_cycle == pytest.approx(4, rel=0.005)  # of the issue limit

    def test_the_model_that_made_them_has_no_error_and_others_have(self) -> None:
        rows = survey_rows(made_rows(), GTX_980)
        errors = {error["model"]: error for error in survey_errors(rows)}
        assert errors["classical bounds"]["worst"] == pytest.approx(0, abs=1e-9)
        # Chen & Aamodt 1 is one warp's throughput at any occupancy: 1/64 of 64 unhindered warps.
        assert errors["Chen & Aamodt 1"]["worst"] == pytest.approx(100 * 63 / 64, rel=0.02)
        assert errors["Hong & Kim"]["mape"] > 10

    def test_latencies_need_a_warp_alone(self) -> None:
        with pytest.raises(InputError, match="one warp alone at two intensities"):
            fit_compute_unit(made_rows((4, 8)), 4)


class TestCommand:
    @pytest.fixture
    def _small(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Small sets, and kernels' clocks as a GTX 980 that meets the classical bounds has them."""
        from mlscale.collect import micro_kernels as kernels

        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        chases = {"DRAM_CHASE": 8192, "L2_CHASE": 4096}
        for name, words in chases.items():
            monkeypatch.setattr(kernels, name, kernels.chase(words))
        monkeypatch.setattr(kernels, "DRAM_READ", kernels.streaming_read(2048, 1, 4))
        monkeypatch.setattr(kernels, "L2_READ", kernels.streaming_read(1024, 2, 2))
        volkov = kernels.volkov
        monkeypatch.setattr(kernels, "volkov", lambda n, a, c: volkov(n, a, c, words=2**14))
        cycles = {
            "chase_words_8192": 500 * kernels.CHASE_STEPS,
            "chase_words_4096": 222 * kernels.CHASE_STEPS,
            "chase_shared": 28 * kernels.CHASE_STEPS,
            "shared_reads": 1.5 * 512 * kernels.SHARED_ROUNDS,
        }
        outputs = ReplayLaunch.outputs

        def with_cycles(self: ReplayLaunch, arguments: tuple[int, ...]) -> dict[int, Any]:
            expected = tuple(n for n in arguments if n in self.case.expected)
            found = outputs(self, expected)
            name = self.entry.name
            if name in cycles and 2 in arguments:
                found[2] = np.array([cycles[name]])
            elif name.startswith("volkov") and 3 in arguments:
                n, a = map(int, name.split("_")[1:])
                instructions = n * kernels.VOLKOV_ROUNDS * (a + 1)
                found[2] = np.full(n, 100.0)
                found[3] = found[2] + instructions / float(classical_bounds(n, a))
            return found

        monkeypatch.setattr(ReplayLaunch, "outputs", with_cycles)

    @pytest.mark.usefixtures("_small")
    def test_writes_an_entry_and_the_survey(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gpu = ReplayGpu(info=replace(DEVICE, name="NVIDIA GeForce GTX 980"))
        monkeypatch.setattr("mlscale.cli.collect.open_gpu", lambda: gpu)
        folder = tmp_path / "out"
        out, _ = succeed(capsys, "collect", "--micro-benchmarks", "-o", folder)
        assert sorted(path.name for path in folder.iterdir()) == [
            "micro.json", "volkov.csv", "wang_chu_gpus.json",
        ]  # fmt: skip
        row = json.loads((folder / "wang_chu_gpus.json").read_text())["gpus"]["gtx980"]
        # The cycles that were put in, per step or read.
        assert (row["dram_latency_offset"], row["l2_latency"]) == (500, 222)
        assert (row["shared_latency"], row["shared_delay"]) == (28, 1.5)
        record = json.loads((folder / "micro.json").read_text())
        # Time x 1600 MHz x 12 CUs over 2048 words in sectors of 8 (and 1024 words twice).
        (memory,) = record["memory"]
        for delay, name in (("dram_delay", "read_words_2048"), ("l2_delay", "read_words_1024")):
            cycles = made_time_ms(name, 12, 1600.0) * 1600e3
            assert memory[delay] == pytest.approx(cycles * 12 / 256, rel=1e-6)
        # Every counted launch of what must miss the L2 cache comes after one that fills it.
        submitted = gpu.submitted
        first = {name: submitted.index(name) for name in submitted}
        for place, name in enumerate(submitted):
            if name.startswith(("chase_words_8192", "volkov")) and place != first[name]:
                assert submitted[place - 1] == "read_words_2048"
        assert record["compute_unit"]["memory_latency_cycles"] == pytest.approx(368)
        assert len(record["volkov"]) == 7 * 8
        assert "classical bounds" in out
        assert gpu.open == []

    @pytest.mark.parametrize("option", ["--dry-run", "--resume"])
    def test_options_that_do_not_go_together(
        self, capsys: Capture, tmp_path: Path, option: str
    ) -> None:
        given = ("--micro-benchmarks", option, "-o", tmp_path / "out")
        message = refuse(capsys, tmp_path, "collect", *given)
        assert f"argument {option}: not allowed with argument --micro-benchmarks" in message
