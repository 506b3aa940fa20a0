"""Studies that are stopped, by Ctrl-C or killed, and taken up again: the files are the same."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Capture, interrupted, refuse, study_files, succeed
from synthetic import kernels as made

from mlscale import ConfigGrid
from mlscale.cli.main import main
from mlscale.progress import PROGRESS

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
STUDY = ("study", "errors", "--predictor", "nearest", "--quantity", "time", "--protocol", "k-fold")

# mlscale that sends a signal to itself and its workers, as a terminal does, when so many parts
# are kept.
STOPPED = """
import os, signal, sys
from mlscale.cli.main import main
from mlscale.progress import Progress

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
add = Progress.add

def add_and_stop(self, number, result):
    add(self, number, result)
    if len(self.done) == int(sys.argv[1]):
        os.killpg(0, int(sys.argv[2]))

Progress.add = add_and_stop
if __name__ == "__main__":
    sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    made.measurements(per_group=2, grid=GRID).write(path)
    return path


def stopped(parts: int, how: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run mlscale in processes of its own, on two of them, until that many parts are kept."""
    code = STOPPED.replace("import os,", "import os\nos.cpu_count = lambda: 2\nimport")
    return subprocess.run(
        [sys.executable, "-c", code, str(parts), str(int(how)), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=300,
    )


def kept(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of the record of what is done."""
    lines = (folder / PROGRESS).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_processes_that_are_stopped(
    capsys: Capture, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after 3 of 18 parts, SIGKILL after 6, then to the end: as if nothing had been."""
    alone = (*STUDY, "--seeds", "3", table)
    study = (*alone, "-o", tmp_path / "stopped")

    ended = stopped(3, signal.SIGINT, *study)
    assert ended.returncode == 130
    assert ended.stdout == ""
    assert ended.stderr == (
        f"mlscale: interrupted; 3 of 18 parts are kept in {tmp_path / 'stopped'}; continue "
        "with --resume\n"
    )
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == [PROGRESS]
    assert len(kept(tmp_path / "stopped")) == 1 + 3

    killed = stopped(6, signal.SIGKILL, *study, "--resume")
    assert killed.returncode == -signal.SIGKILL
    assert len(kept(tmp_path / "stopped")) == 1 + 6

    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    succeed(capsys, *study, "--resume")
    succeed(capsys, *alone, "-o", tmp_path / "whole")
    assert study_files(tmp_path / "stopped") == study_files(tmp_path / "whole")


@pytest.mark.usefixtures("one_process", "no_figures")
class TestInOneProcess:
    def test_goes_on_where_it_stopped(self, capsys: Capture, table: Path, tmp_path: Path) -> None:
        study = (*STUDY, "--seeds", "1", table)
        said = interrupted(capsys, *study, "-o", tmp_path / "stopped")
        assert "2 of 6 parts are kept" in said
        succeed(capsys, *study, "-o", tmp_path / "stopped", "--resume")
        succeed(capsys, *study, "-o", tmp_path / "whole")
        assert study_files(tmp_path / "stopped") == study_files(tmp_path / "whole")

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ([], "holds an unfinished study; continue with --resume, or name another folder"),
            (["--resume", "--seeds", "2"], "was made of other data, with other settings"),
            (["--resume", "--protocol", "holdout"], "was made of other data, with other settings"),
            (["--resume", "data"], "was made of other data, with other settings"),
        ],
    )
    def test_an_unfinished_study_is_not_mixed_with_another(
        self, capsys: Capture, table: Path, tmp_path: Path, options: list[str], problem: str
    ) -> None:
        copy = tmp_path / table.name
        copy.write_text(table.read_text())
        study = (*STUDY, copy, "-o", tmp_path)
        interrupted(capsys, *study)
        if "data" in options:
            options = ["--resume"]
            data = made.measurements(per_group=2, grid=GRID)
            replace(data, time_samples=1.5 * data.time_samples).write(copy)
        assert problem in refuse(capsys, tmp_path, *study, *options)

    def test_without_a_folder_nothing_is_kept(
        self, capsys: Capture, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("mlscale.studies.errors.part_errors", stop)
        assert main([*STUDY, str(table)]) == 130
        assert capsys.readouterr().err == "mlscale: interrupted\n"
