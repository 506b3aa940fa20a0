"""mlscale collect stopped on a played-back GPU: what is kept, told, and gone on with.

The recordings are made, not measured; see tests/replayed.py.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from replayed import COLLECT, DEVICE, NAMES, Faults, ReplayGpu, files, use

from mlscale import InputError, read
from mlscale.cli.main import main
from mlscale.records import PROGRESS, Progress

__all__ = ["use"]


def no_room(table: object, path: Path) -> None:
    raise InputError(f"{path}: cannot be written: No space left on device")


def trained_on(capsys: Capture, folder: Path) -> None:
    """A model of the table that is there, whose unfinished kernel is dropped."""
    _, err = succeed(
        capsys, "train", folder / "measurements.csv", "--base", "mid", "--incomplete", "drop",
        "--predictor", "mean-surface", "-o", folder.parent / "m.mlscale",
    )  # fmt: skip
    assert "lack configurations" in err


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
            data = read(folder / "measurements.csv", "drop")
        assert data.kernels == NAMES[:2]
        trained_on(capsys, folder)
        again = use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", folder, "--resume")
        self.same(files(folder), undisturbed)
        assert len(again.measured) == 15 - 7

    @pytest.mark.parametrize("table_too", [False, True])
    def test_a_full_disk(
        self,
        capsys: Capture,
        tmp_path: Path,
        use: Any,
        undisturbed: dict[str, bytes],
        monkeypatch: pytest.MonkeyPatch,
        table_too: bool,
    ) -> None:
        """Full for the samples; and for the table as well, which then is written on --resume."""
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
            if table_too:
                patch.setattr("mlscale.collect.recording.write_table", no_room)
            assert main([*COLLECT, "-o", str(folder)]) == 2
        err = capsys.readouterr().err
        assert err == (
            f"mlscale: error: {folder / PROGRESS}: cannot be written: No space left on device; "
            f"4 of 15 samples are kept in {folder}; go on with --resume\n"
        )
        if table_too:
            assert not (folder / "measurements.csv").exists()
        else:
            trained_on(capsys, folder)
        self.same(self.resumed(capsys, folder, use), undisturbed)

    def test_a_disk_that_is_full_at_the_end(
        self,
        capsys: Capture,
        tmp_path: Path,
        use: Any,
        undisturbed: dict[str, bytes],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        use(ReplayGpu())
        with monkeypatch.context() as patch:
            patch.setattr("mlscale.collect.recording.write_table", no_room)
            assert main([*COLLECT, "-o", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.endswith("cannot be written: No space left on device\n")
        gpu = use(ReplayGpu())
        succeed(capsys, *COLLECT, "-o", tmp_path / "out", "--resume")
        assert gpu.measured == []
        self.same(files(tmp_path / "out"), undisturbed)

    def test_a_clock_that_is_refused_amid_the_run(
        self, capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second setting of the third kernel: two whole kernels and a part of one are kept."""
        gpu = use(ReplayGpu())
        folder = tmp_path / "out"
        given = ("--set-clocks", "--engine", "800,1200", "-o", folder)
        lock, asked = gpu.sensors.lock_clocks, []

        def sometimes(engine_mhz: int | None, memory_mhz: int | None) -> None:
            asked.append(engine_mhz)
            gpu.faults.refuse_clocks = len(asked) == 6
            lock(engine_mhz, memory_mhz)

        with monkeypatch.context() as patch:
            patch.setattr(gpu.sensors, "lock_clocks", sometimes)
            assert main([*map(str, (*COLLECT, *given))]) == 2
        assert capsys.readouterr().err == (
            "mlscale: error: the engine clock cannot be set to 1200 MHz: refused; 15 of 30 samples "
            f"are kept in {folder}; go on with --resume\n"
        )
        assert gpu.sensors.locked[-1] == "reset"
        trained_on(capsys, folder)
        use(ReplayGpu())
        succeed(capsys, *COLLECT, *given, "--resume")
        assert read(folder / "measurements.csv").kernels == NAMES

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
        use(ReplayGpu(info=replace(DEVICE, uuid="GPU-made-0002")))
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
