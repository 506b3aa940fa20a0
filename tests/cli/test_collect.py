"""mlscale collect on a played-back GPU: what it writes, and what stops it.

The recordings are made, not measured; see tests/replayed.py.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refuse, succeed
from replayed import (
    COLLECT,
    DEVICE,
    ENGINE,
    KERNELS,
    MEMORY,
    NAMES,
    Faults,
    ReplayGpu,
    files,
    made_power_w,
    made_time_ms,
    use,
)  # fmt: skip

from mlscale import read
from mlscale.cli.main import main
from mlscale.collect.device import GpuError
from mlscale.data.tables import read_table

__all__ = ["use"]
Capture = pytest.CaptureFixture[str]


class TestTable:
    def test_holds_the_recorded_law(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        out, err = succeed(capsys, *COLLECT, "--repeat", "2", "-o", tmp_path / "out")
        assert err == ""
        assert "30 samples of 5 kernels of 2 applications on made-gpu, 3 CU counts" in out
        assert "'made-gpu' is not in the device table, so 'bottleneck' does not apply" in out
        assert sorted(files(tmp_path / "out")) == [
            "collect.json", "measurements.csv", "measurements.meta.json",
        ]  # fmt: skip
        data = read(tmp_path / "out" / "measurements.csv")
        assert data.kernels == NAMES
        assert data.grid.cu_count == (4, 8, 12)
        assert (data.grid.engine_mhz, data.grid.memory_mhz) == ((ENGINE,), (MEMORY,))
        assert data.time_samples.shape == (2, 5, 3, 1, 1)
        assert data.counter_names == ()
        for k, kernel in enumerate(NAMES):
            for c, cu_count in enumerate(data.grid.cu_count):
                expected = made_time_ms(kernel, cu_count, ENGINE)
                assert data.time_ms[k, c, 0, 0] == pytest.approx(expected, rel=1e-6)
                assert data.power_w is not None
                power = made_power_w(cu_count, ENGINE)
                assert data.power_w[k, c, 0, 0] == pytest.approx(power, rel=0.01)
        assert data.metadata["origin"] == "measured"
        assert data.metadata["power_sensor"] == "energy"

    def test_trains_a_model(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "out")
        table = tmp_path / "out" / "measurements.csv"
        succeed(
            capsys, "train", table, "--base", "mid", "--predictor", "mean-surface",
            "-o", tmp_path / "m.mlscale",
        )  # fmt: skip

    def test_clocks_are_three_columns(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        gpu = use(ReplayGpu())
        succeed(
            capsys, *COLLECT, "--set-clocks", "--engine", "900,1900", "-o", tmp_path / "out",
            "--power-seconds", "0",
        )  # fmt: skip
        table = read_table(tmp_path / "out" / "measurements.csv")
        triples = {
            tuple(table.numbers[f"engine_mhz_{kind}"][row] for kind in KINDS)
            for row in range(len(table))
        }
        assert triples == {(900, 800, 800), (1900, 2000, 2000)}
        assert np.isnan(table.numbers["memory_mhz_requested"]).all()
        assert gpu.sensors.locked[-1] == "reset"
        data = read(tmp_path / "out" / "measurements.csv")
        assert data.grid.engine_mhz == (800, 2000)
        assert data.power_w is None
        ratio = data.time_ms[:, 0, 0, 0] - 0.01  # the law's launch time
        assert ratio == pytest.approx(2.5 * (data.time_ms[:, 0, 1, 0] - 0.01))

    def test_a_clock_that_is_not_held_is_observed_and_flagged(
        self, capsys: Capture, tmp_path: Path, use: Any
    ) -> None:
        """Asked for 900, locked at 800, but the board stays at its 1600 MHz."""
        gpu = use(ReplayGpu(Faults(ignores_lock=True)))
        given = ("--set-clocks", "--engine", "900", "--sm-counts", "4", "-o", tmp_path / "out")
        _, err = succeed(capsys, *COLLECT, *given)
        assert "5 of 5 samples were taken while the clocks were held down" in err
        numbers = read_table(tmp_path / "out" / "measurements.csv").numbers
        found = {kind: set(numbers[f"engine_mhz_{kind}"]) for kind in KINDS}
        assert found == {"requested": {900}, "locked": {800}, "observed": {ENGINE}}
        assert set(numbers["throttled"]) == {1}
        assert gpu.sensors.locked == [(800, None), "reset"]

    def test_record(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        _, err = succeed(capsys, *COLLECT, "--sm-counts", "3,9", "-o", tmp_path / "out")
        assert "does not grant every SM count; the nearest is taken: 4 for 3, 8 for 9" in err
        record = json.loads((tmp_path / "out" / "collect.json").read_text())
        assert record["device"]["uuid"] == DEVICE.uuid
        assert record["device"]["memory_bus_bits"] == DEVICE.memory_bus_bits
        assert record["device"]["max_waves_per_cu"] == DEVICE.max_waves_per_cu
        assert record["device"]["highest_memory_mhz"] == DEVICE.memory_mhz
        assert record["versions"] == DEVICE.versions
        assert record["power_sensor"] == "energy"
        assert record["started"] <= record["finished"]
        assert record["cu_counts"] == [
            {"requested": 3, "granted": 4}, {"requested": 9, "granted": 8},
        ]  # fmt: skip


KINDS = ("requested", "locked", "observed")


class TestNothingIsMeasured:
    def test_dry_run(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        gpu = use(ReplayGpu())
        out, _ = succeed(capsys, *COLLECT, "--dry-run", "--sm-counts", "4,9", "--repeat", "3")
        assert "Made GPU, 12 multiprocessors" in out
        assert "4, 8 (for 9)" in out
        # 5 kernels x 2 counts x 3 rounds; 15 x (1 s + 2 x 3 s) = 105 s
        assert "samples:  30, about 2 min (an estimate)" in out
        assert (gpu.batches, gpu.sensors.locked, list(tmp_path.iterdir())) == (0, [], [])

    def test_dry_run_without_a_gpu(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none() -> ReplayGpu:
            raise GpuError("no NVIDIA GPU is visible")

        monkeypatch.setattr("mlscale.cli.collect.open_gpu", none)
        given = ("--set-clocks", "--engine", "900,1900", "--memory", "2000", "--sm-counts", "60,30")
        out, err = succeed(capsys, *COLLECT, "--dry-run", *given)
        assert err == (
            "mlscale: warning: no NVIDIA GPU is visible; so the plan takes CU counts and clocks as "
            "they are asked for and a GPU with an energy counter for granted\n"
        )
        # 5 kernels x 2 counts x 2 clocks; 5 x (1 s + 4 x 3.3 s) = 71 s
        assert out.splitlines() == [
            "device:   none at hand",
            "kernels:  5 of 2 applications",
            "CUs:      30, 60",
            "clocks:   engine=900, memory=2000; engine=1900, memory=2000 (MHz)",
            "power:    2 s a sample, sensor 'energy'",
            "counters: -",
            "samples:  20, about 1 min (an estimate)",
        ]
        out, err = succeed(capsys, "collect", *KERNELS, "--dry-run")
        assert "as they are asked for, Nsight Compute and a GPU" in err
        assert "CUs:      8 that the GPU grants\n" in out
        assert "samples:  40, about 6 min" in out  # 5 x (1 + 8 x 3) + 5 x 8 x 6 = 365 s
        assert "no NVIDIA GPU is visible" in refuse(capsys, tmp_path, *COLLECT, "-o", "nowhere")
        assert not Path("nowhere").exists()

    def test_list_of_kernels_needs_no_gpu(self, capsys: Capture) -> None:
        out, _ = succeed(capsys, "collect", "--list-kernels", "--kernels", "chase*")
        assert [line.split()[0] for line in out.splitlines()[2:]] == [
            "chase_16k", "chase_1m", "chase_128m", "chase_many_128m",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (["--engine", "800"], "--engine and --memory set clocks; allow it with --set-clocks"),
            (["--set-clocks"], "--set-clocks needs the clocks to set: give --engine or --memory"),
            (["--kernels", "matmull"], "no kernel or application 'matmull' in the suite; is"),
            (["--kernels", ""], "argument --kernels: invalid"),
            (["--kernels", "scan,"], "argument --kernels: invalid"),
            (["--sm-counts", "0"], "argument --sm-counts: invalid"),
            (["--sm-counts", "some"], "argument --sm-counts: invalid"),
            (["--repeat", "0"], "argument --repeat: '0' is not a whole number of at least 1"),
            (["--power-seconds", "-1"], "must be from 0 to 600 seconds"),
            (["--power-seconds", "nan"], "must be from 0 to 600 seconds"),
        ],
    )
    def test_bad_usage(
        self, capsys: Capture, tmp_path: Path, use: Any, given: list[str], message: str
    ) -> None:
        use(ReplayGpu())
        assert message in refuse(capsys, tmp_path, "collect", "-o", tmp_path / "out", *given)
        assert not (tmp_path / "out").exists()

    def test_no_folder(self, capsys: Capture, tmp_path: Path) -> None:
        assert "name a folder" in refuse(capsys, tmp_path, "collect")

    @pytest.mark.parametrize("faults", [Faults(no_right=True), Faults(refuse_clocks=True)])
    def test_clocks_that_cannot_be_set(
        self, capsys: Capture, tmp_path: Path, use: Any, faults: Faults
    ) -> None:
        use(ReplayGpu(faults))
        given = ("--set-clocks", "--engine", "800", "-o", tmp_path / "out")
        message = refuse(capsys, tmp_path / "out", *COLLECT, *given)
        assert "the engine clock" in message
        assert not (tmp_path / "out").exists()


class TestLeftOut:
    def test_wrong_results_and_kernels_that_do_not_run(
        self, capsys: Capture, tmp_path: Path, use: Any
    ) -> None:
        use(ReplayGpu(Faults(wrong=("few_threads_8",), refused=("chase_16k",))))
        _, err = succeed(capsys, *COLLECT, "-o", tmp_path / "out")
        assert "few_threads_8 is left out: kernel 'few_threads_8' gives a wrong result" in err
        assert "chase_16k is left out: kernel 'chase_16k' needs more memory" in err
        data = read(tmp_path / "out" / "measurements.csv")
        assert data.kernels == ("few_threads_1", "few_threads_32", "few_threads_128")
        assert set(data.metadata["faults"]) == {"few_threads_8", "chase_16k"}

    def test_a_gpu_without_tensor_cores(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu(info=replace(DEVICE, capability=61)))
        only = ("collect", "--no-counters", "--kernels", "tensor_512")
        assert main([*only, "-o", str(tmp_path / "out")]) == 2
        err = capsys.readouterr().err
        assert "tensor_512 is left out: kernel 'tensor_512' needs compute capability 7" in err
        assert "no kernel could be measured" in err

    def test_throttled_samples_are_flagged(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu(Faults(throttle={"few_threads_1": 99, "chase_16k": 1})))
        _, err = succeed(capsys, *COLLECT, "-o", tmp_path / "out")
        assert "3 of 15 samples were taken while the clocks were held down" in err
        table = read_table(tmp_path / "out" / "measurements.csv")
        rows = zip(table.text["kernel"], table.numbers["throttled"], strict=True)
        flagged = {kernel for kernel, throttled in rows if throttled}
        assert flagged == {"few_threads_1"}

    def test_too_short_a_window_is_said_and_is_no_power(
        self, capsys: Capture, tmp_path: Path, use: Any
    ) -> None:
        use(ReplayGpu())
        _, err = succeed(capsys, *COLLECT, "--power-seconds", "0.3", "-o", tmp_path / "out")
        assert "15 of 15 windows were too short for the sensor (energy)" in err
        assert read(tmp_path / "out" / "measurements.csv").power_w is None

    def test_an_old_driver_has_no_cu_axis(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu(offered=(12,), info=replace(DEVICE, versions={"cuda": "12.2"})))
        _, err = succeed(capsys, *COLLECT, "--sm-counts", "4,8", "-o", tmp_path / "out")
        assert "the driver (CUDA 12.2) cannot set multiprocessors apart" in err
        assert read(tmp_path / "out" / "measurements.csv").grid.cu_count == (12,)
