"""mlscale collect killed and asked to end, in processes of its own: clocks restored, resumed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# mlscale on a played-back GPU that sends a signal to itself when so many samples are kept.
STOPPED = """
import os, signal, sys
import mlscale.cli.collect as command
from pathlib import Path
from mlscale.cli.main import main
from mlscale.records import Progress
from replayed import ReplayGpu

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
log, after, how, *given = sys.argv[1:]
command.open_gpu = lambda: ReplayGpu(log=Path(log))
add = Progress.add

def add_and_stop(self, number, result):
    add(self, number, result)
    if len(self.done) == int(after):
        os.kill(os.getpid(), int(how))

Progress.add = add_and_stop
sys.exit(main(given))
"""
COLLECT = (
    "collect", "--kernels", "few_threads", "--no-counters", "--power-seconds", "0",
    "--set-clocks", "--engine", "800,1200", "-o",
)  # fmt: skip


def run(folder: Path, after: int, how: int, *given: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
    }
    return subprocess.run(
        [sys.executable, "-c", STOPPED, str(folder / "log"), str(after), str(int(how)), *given],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )


def table(folder: Path) -> bytes:
    return (folder / "measurements.csv").read_bytes()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_end_it_restores_the_clocks(tmp_path: Path, how: int) -> None:
    folder = tmp_path / "out"
    done = run(tmp_path, 5, how, *COLLECT, str(folder))
    assert done.returncode == 130
    assert done.stderr == (
        f"mlscale: interrupted; 5 of 24 samples are kept in {folder}; go on with --resume\n"
    )
    assert (tmp_path / "log").read_text().split("\n")[-3:] == ["reset", "closed", ""]
    assert list((tmp_path / "state" / "mlscale").iterdir()) == []


def test_killed_the_next_run_restores_them_and_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    folder, log = tmp_path / "out", tmp_path / "log"
    killed = run(tmp_path, 8, signal.SIGKILL, *COLLECT, str(folder))
    assert killed.returncode == -signal.SIGKILL
    assert "reset" not in log.read_text()
    assert len(list((tmp_path / "state" / "mlscale").iterdir())) == 1

    log.write_text("")
    resumed = run(tmp_path, 0, 0, *COLLECT, str(folder), "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stderr == (
        "mlscale: warning: an earlier run was killed while it held the clocks; they have been "
        "reset\n"
    )
    assert log.read_text().startswith("reset\nlock")
    assert log.read_text().endswith("reset\nclosed\n")

    whole = run(tmp_path, 0, 0, *COLLECT, str(tmp_path / "whole"))
    assert whole.stderr == ""
    assert table(folder) == table(tmp_path / "whole")
