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
    ENGINE,
    FACTS,
    MEMORY,
    Faults,
    ReplayGpu,
    made_power_w,
    made_time_ms,
    use,
)  # fmt: skip

from mlscale import InputError, read_measurements
from mlscale.cli.main import main
from mlscale.collect.device import GpuError
from mlscale.progress import PROGRESS, Progress
from mlscale.tables import read_table

__all__ = ["use"]
Capture = pytest.CaptureFixture[str]
KERNELS = ("--kernels", "few_threads,chase_16k")
NAMES = ("chase_16k", "few_threads_1", "few_threads_8", "few_threads_32", "few_threads_128")
COLLECT = ("collect", *KERNELS, "--no-counters")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class TestTable:
    def test_holds_the_recorded_law(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        out, err = succeed(capsys, *COLLECT, "--repeat", "2", "-o", tmp_path / "out")
        assert err == ""
        assert "30 samples of 5 kernels of 2 applications on made-gpu, 3 CU counts" in out
        assert sorted(files(tmp_path / "out")) == [
            "collect.json", "measurements.csv", "measurements.meta.json",
        ]  # fmt: skip
        data = read_measurements(tmp_path / "out" / "measurements.csv")
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
        data = read_measurements(tmp_path / "out" / "measurements.csv")
        assert data.grid.engine_mhz == (800, 2000)
        assert data.power_w is None
        ratio = data.time_ms[:, 0, 0, 0] - 0.01  # the law's launch time
        assert ratio == pytest.approx(2.5 * (data.time_ms[:, 0, 1, 0] - 0.01))

    def test_record(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        _, err = succeed(capsys, *COLLECT, "--sm-counts", "3,9", "-o", tmp_path / "out")
        assert "does not grant every SM count; the nearest is taken: 4 for 3, 8 for 9" in err
        record = json.loads((tmp_path / "out" / "collect.json").read_text())
        assert record["device"]["uuid"] == FACTS.uuid
        assert record["versions"] == FACTS.versions
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

        monkeypatch.setattr("mlscale.cli.collect_command.open_gpu", none)
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
            (["--repeat", "0"], "argument --repeat: invalid"),
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
        data = read_measurements(tmp_path / "out" / "measurements.csv")
        assert data.kernels == ("few_threads_1", "few_threads_32", "few_threads_128")
        assert set(data.metadata["faults"]) == {"few_threads_8", "chase_16k"}

    def test_a_gpu_without_tensor_cores(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu(facts=replace(FACTS, capability=61)))
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
        assert read_measurements(tmp_path / "out" / "measurements.csv").power_w is None

    def test_an_old_driver_has_no_cu_axis(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu(offered=(12,), facts=replace(FACTS, versions={"cuda": "12.2"})))
        _, err = succeed(capsys, *COLLECT, "--sm-counts", "4,8", "-o", tmp_path / "out")
        assert "the driver (CUDA 12.2) cannot set multiprocessors apart" in err
        assert read_measurements(tmp_path / "out" / "measurements.csv").grid.cu_count == (12,)


class TestStopped:
    @pytest.fixture
    def undisturbed(self, capsys: Capture, tmp_path: Path, use: Any) -> dict[str, bytes]:
        use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "whole")
        return files(tmp_path / "whole")

    def resumed(self, capsys: Capture, folder: Path, use: Any) -> dict[str, bytes]:
        use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", folder, "--resume")
        return files(folder)

    def same(self, found: dict[str, bytes], whole: dict[str, bytes]) -> None:
        assert found.keys() == whole.keys()
        assert found["measurements.csv"] == whole["measurements.csv"]
        assert found["measurements.meta.json"] == whole["measurements.meta.json"]

    @pytest.mark.parametrize(
        ("faults", "status", "line"),
        [
            (Faults(lost_at=8), 2, "mlscale: error: the GPU was lost: GPU is lost; 7 of 15"),
            (
                Faults(stopped_at=(8, KeyboardInterrupt())),
                130,
                "mlscale: interrupted; 7 of 15",
            ),
        ],
    )
    def test_what_is_there_is_usable_and_resumed(
        self,
        capsys: Capture,
        tmp_path: Path,
        use: Any,
        undisturbed: dict[str, bytes],
        faults: Faults,
        status: int,
        line: str,
    ) -> None:
        gpu = use(ReplayGpu(faults))
        folder = tmp_path / "out"
        assert main([*COLLECT, "-o", str(folder)]) == status
        err = capsys.readouterr().err
        assert err == f"{line} samples are kept in {folder}; go on with --resume\n"
        assert gpu.open == []
        with pytest.warns(match="lack configurations"):
            data = read_measurements(folder / "measurements.csv", "drop")
        assert data.kernels == NAMES[:2]
        again = use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", folder, "--resume")
        self.same(files(folder), undisturbed)
        assert len(again.measured) == 15 - 7

    def test_a_full_disk(
        self,
        capsys: Capture,
        tmp_path: Path,
        use: Any,
        undisturbed: dict[str, bytes],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        use(ReplayGpu())
        folder = tmp_path / "out"
        with monkeypatch.context() as patch:
            add = Progress.add

            def full(self: Progress, number: int, result: Any) -> None:
                if number == 4:
                    self._file.close()
                    self._file = Path("/dev/full").open("a")  # noqa: SIM115
                add(self, number, result)

            patch.setattr(Progress, "add", full)
            assert main([*COLLECT, "-o", str(folder)]) == 2
        err = capsys.readouterr().err
        assert err == (
            f"mlscale: error: {folder / PROGRESS}: cannot be written: No space left on device; "
            f"4 of 15 samples are kept in {folder}; go on with --resume\n"
        )
        self.same(self.resumed(capsys, folder, use), undisturbed)

    def test_a_disk_that_is_full_at_the_end(
        self,
        capsys: Capture,
        tmp_path: Path,
        use: Any,
        undisturbed: dict[str, bytes],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full(table: object, path: Path) -> None:
            raise InputError(f"{path}: cannot be written: No space left on device")

        use(ReplayGpu())
        with monkeypatch.context() as patch:
            patch.setattr("mlscale.collect.recording.write_table", full)
            assert main([*COLLECT, "-o", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.endswith("cannot be written: No space left on device\n")
        gpu = use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "out", "--resume")
        assert gpu.measured == []
        self.same(files(tmp_path / "out"), undisturbed)

    def test_clocks_are_restored_on_an_interrupt(self, tmp_path: Path, use: Any) -> None:
        gpu = use(ReplayGpu(Faults(stopped_at=(3, KeyboardInterrupt()))))
        given = ("--set-clocks", "--engine", "800,1200", "-o", str(tmp_path / "out"))
        assert main([*COLLECT, *given]) == 130
        assert gpu.sensors.locked[-1] == "reset"

    def test_unfinished_is_not_begun_again_unasked(
        self, capsys: Capture, tmp_path: Path, use: Any
    ) -> None:
        use(ReplayGpu(Faults(lost_at=8)))
        assert main([*COLLECT, "-o", str(tmp_path)]) == 2
        use(ReplayGpu())
        capsys.readouterr()
        message = refuse(capsys, tmp_path, *COLLECT, "-o", tmp_path)
        assert "holds an unfinished collection; go on with --resume" in message
        message = refuse(capsys, tmp_path, *COLLECT, "--repeat", "2", "-o", tmp_path, "--resume")
        assert "was collected with other settings, another driver or another version" in message

    def test_another_devices_folder(self, capsys: Capture, tmp_path: Path, use: Any) -> None:
        use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "out")
        use(ReplayGpu(facts=replace(FACTS, uuid="GPU-made-0002")))
        message = refuse(capsys, tmp_path, *COLLECT, "-o", tmp_path / "out", "--resume")
        assert "holds measurements of another device (Made GPU, GPU-made-0001)" in message

    def test_finished_is_not_measured_again(
        self, capsys: Capture, tmp_path: Path, use: Any
    ) -> None:
        use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "out")
        gpu = use(ReplayGpu())
        out, _ = succeed(capsys, *COLLECT, "-o", tmp_path / "out", "--resume")
        assert "nothing is left to measure" in out
        assert "holds a finished collection" in refuse(
            capsys, tmp_path, *COLLECT, "-o", tmp_path / "out"
        )
        assert gpu.batches == 0
