"""Clocks and power limits are put back in every case, on a made GPU (`synthetic/nvml.py`).

Regression only: what was set is as before after the end, an error, a signal, and kill -9.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from synthetic import nvml
from synthetic.made_gpu import MadeGpu

from mlscale.cli.main import main
from mlscale.errors import DataWarning, InputError
from mlscale.readers.monitor import read_log
from mlscale.sensors import clocks
from mlscale.sensors.boards import GpuBoard, boards_at_hand
from mlscale.sensors.clocks import given_back, set_board
from mlscale.sensors.program import interrupted_once

TESTS = Path(__file__).parents[1]
PATIENCE_S = 120
# No program that the shell runs beside or after a signal decides: one may be late, or lose it. A
# redirection makes the file in the shell itself, and what waits goes on until there is `on`.
BEGUN = ": > $MADE_NVML/at"
UNTIL_ON = f"{BEGUN}; for i in $(seq 1200); do [ -e $MADE_NVML/on ] && break; sleep 0.05; done"

# Also Slurm's --signal, an alarm, and a limit of CPU time.
ENDING = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    *(signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU),
)


@pytest.fixture
def board(gpu: MadeGpu) -> GpuBoard:
    [found] = boards_at_hand()
    return found


@pytest.mark.parametrize("ends", [None, KeyboardInterrupt])
def test_the_marker_stands_while_the_board_may_be_set(
    board: GpuBoard, gpu: MadeGpu, ends: type[BaseException] | None
) -> None:
    """However the block ends, clocks and limit are as before."""
    with suppress(KeyboardInterrupt), given_back(board, sets_board=True):
        assert gpu.marker.read_text() == '{"power_limit_mw": 400000}'
        set_board(board, {"engine_mhz": 840, "cap_w": 300})
        assert (gpu.locked_mhz, board.settings()) == (840, {"power_limit_mw": 300_000})
        if ends:
            raise ends
    assert (gpu.locked_mhz, board.settings()) == (None, {"power_limit_mw": 400_000})
    assert not gpu.marker.exists()


def test_a_board_that_refuses_is_told_of_and_the_marker_stays(
    board: GpuBoard, gpu: MadeGpu
) -> None:
    """As of a GPU that was lost. One that cannot be reset at all is no error."""
    with (
        pytest.raises(InputError, match=r"clock not reset .* as root: nvidia-smi -i 0 -rgc"),
        given_back(board, sets_board=True),
    ):
        gpu.special(no_permission=True)
    assert gpu.marker.exists()
    gpu.special(without=["nvmlDeviceResetGpuLockedClocks"])
    with pytest.warns(DataWarning, match="was killed"), given_back(board, sets_board=True):
        pass
    assert not gpu.marker.exists()


def test_after_a_kill_the_next_start_puts_back(board: GpuBoard, gpu: MadeGpu) -> None:
    """Also one that sets nothing; one without rights goes on, and says what to type."""
    gpu.marker.parent.mkdir(parents=True)
    gpu.marker.write_text('{"power_limit_mw": 350000}')
    (gpu.folder / "locked").write_text("840")
    gpu.special(no_permission=True)
    with ExitStack() as stack:
        with pytest.warns(DataWarning, match="as root: nvidia-smi"):
            stack.enter_context(given_back(board, sets_board=False))
        assert gpu.locked_mhz == 840
    gpu.special()
    with ExitStack() as stack:
        with pytest.warns(DataWarning, match="they are reset first"):
            stack.enter_context(given_back(board, sets_board=False))
        assert (gpu.locked_mhz, board.settings()) == (None, {"power_limit_mw": 350_000})
        assert not gpu.marker.exists()


def test_two_runs_do_not_share_a_board(board: GpuBoard) -> None:
    with (
        given_back(board, sets_board=True),
        pytest.raises(
            InputError, match="GPU 0: another mlscale holds its clocks, here or in another process"
        ),
        given_back(board, sets_board=True),
    ):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU])
def test_a_collection_is_interrupted_once(
    board: GpuBoard, gpu: MadeGpu, number: signal.Signals
) -> None:
    """Of `collect`: what comes while the clock is put back does not end that."""
    put_back = board.put_back

    def signalled(before: dict[str, Any]) -> None:
        if gpu.locked_mhz:
            os.kill(os.getpid(), number)
        put_back(before)

    board.put_back = signalled  # type: ignore[method-assign, assignment]
    before = signal.getsignal(number)
    with suppress(KeyboardInterrupt), interrupted_once(), given_back(board, sets_board=True):
        set_board(board, {"engine_mhz": 840})
        os.kill(os.getpid(), number)
        pytest.fail("is not interrupted")
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)
    assert signal.getsignal(number) is before


# In processes of their own.


@pytest.fixture
def library(gpu: MadeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The made NVML as nvidia-ml-py, for other processes."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "pynvml.py").write_text("from synthetic.nvml import *\n")
    paths = [str(folder), str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@contextmanager
def measuring(*program: str) -> Iterator[subprocess.Popen[str]]:
    """A program measured at 840 MHz, in a process; it is killed in the end."""
    words = ("measure", "--at", "840", "--hz", "50", "--", *program)
    with subprocess.Popen(
        [sys.executable, "-m", "mlscale", *words],
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def await_file(path: Path) -> None:
    wait_until(path.exists)


def await_reads(count: int) -> None:
    wait_until(lambda: nvml.reads() >= count)


@pytest.mark.parametrize(
    ("number", "program", "status"),
    [
        *((number, f"{BEGUN}; exec sleep 60", 128 + number) for number in ENDING),
        (signal.SIGTERM, f"trap 'exit 7' TERM; {UNTIL_ON}", 7),  # it ends in its own way
        (signal.SIGTERM, f"trap '' TERM; {UNTIL_ON}; exit 5", 5),  # it goes on until it is done
        (signal.SIGINT, f"trap 'exit 0' INT; {UNTIL_ON}", 0),  # as a server that Ctrl-C ends
    ],
)
@pytest.mark.usefixtures("library")
def test_a_signal_ends_the_program_and_the_clocks_are_put_back(
    gpu: MadeGpu, number: int, program: str, status: int
) -> None:
    with measuring("sh", "-c", program) as process:
        await_file(gpu.folder / "at")
        assert gpu.locked_mhz == 840
        process.send_signal(number)
        if status == 5:
            (gpu.folder / "on").touch()
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    told = f"M02: sh-840.csv: the program ended with {status}: it may have done less work"
    assert (told in err) == bool(status)
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)
    assert [path.name for path in Path().glob("*.csv")] == ["sh-840.csv"]
    assert read_log(Path("sh-840.csv"))[0].facts["engine_mhz"] == 840


@pytest.mark.usefixtures("library")
def test_under_nohup_the_terminal_may_go(gpu: MadeGpu) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with measuring("sh", "-c", UNTIL_ON) as process:
            await_file(gpu.folder / "at")
            process.send_signal(signal.SIGHUP)
            (gpu.folder / "on").touch()
            process.communicate(timeout=PATIENCE_S)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0
    assert Path("sh-840.csv").exists()


def test_ctrl_c_while_the_clock_is_set(
    gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is not started."""
    monkeypatch.setattr(clocks, "SETTLE_S", 0.001)
    monkeypatch.setattr(clocks.time, "sleep", lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert main(["measure", "--at", "840", "--", "sh", "-c", "touch ran"]) == 130
    assert capsys.readouterr().err == "mlscale: interrupted; no log is written\n"
    assert (gpu.locked_mhz, gpu.marker.exists(), Path("ran").exists()) == (None, False, False)


def test_a_program_that_is_not_started_puts_the_clocks_back(gpu: MadeGpu, capsys: Capture) -> None:
    message = refuse(capsys, Path(), "measure", "--at", "840", "--", "no-such-program")
    assert message == "no-such-program: cannot be run: No such file or directory"
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)


def test_a_log_without_a_place_is_kept_in_the_temporary_folder(
    gpu: MadeGpu, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk; the clocks are put back."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Path("logs").mkdir()
    program = ("sh", "-c", "rm -r logs; sh job.sh")
    words = ("measure", "--at", "840", "-o", "logs/log.csv", "--", *program)
    message, _, kept = refuse(capsys, Path(), *words).partition("; the log is in ")
    assert message == "logs/log.csv: cannot be written: No such file or directory"
    assert len(read_log(Path(kept))) == 1
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)


def test_a_log_is_there_though_the_clocks_cannot_be_put_back(gpu: MadeGpu, capsys: Capture) -> None:
    """The right to set them goes while the program runs."""
    (gpu.folder / "later.json").write_text('{"no_permission": true}')
    with Path("job.sh").open("a") as job:
        job.write("mv later.json made.json\n")
    assert main(["measure", "--at", "840", "-o", "log.csv", "--", "sh", "job.sh"]) == 2
    err = capsys.readouterr().err
    assert "840 MHz (set), 151 W mean, " in err
    assert "GPU 0: clock not reset (Insufficient Permissions); as root: nvidia-smi" in err
    assert len(read_log(Path("log.csv"))) == 1


def test_without_a_place_for_the_marker_no_clock_is_set(gpu: MadeGpu, capsys: Capture) -> None:
    (gpu.folder / "state").touch()
    message = refuse(capsys, Path(), "measure", "--at", "840", "--", "true")
    assert "clocks-made-0: cannot be made: Not a directory; no clock is set" in message
    assert gpu.locked_mhz is None


@pytest.mark.usefixtures("library")
def test_after_kill_9_the_next_start_puts_back_and_names_what_was_sampled(
    gpu: MadeGpu, capsys: Capture
) -> None:
    with measuring("sh", "-c", UNTIL_ON) as process:
        await_file(gpu.folder / "at")
        await_reads(3)
        taken = nvml.reads()
        process.kill()
    (gpu.folder / "on").touch()
    assert (gpu.locked_mhz, gpu.marker.exists()) == (840, True)
    [partial] = Path().glob("*.csv")
    [log] = read_log(partial)
    assert len(log) >= taken - 1  # the last one may be incomplete
    assert log.facts["engine_mhz"] == 840
    _, err = succeed(capsys, "measure", "--", "sh", "job.sh")
    assert "an earlier run was killed while it held the clocks; they are reset first" in err
    assert f"M02: {partial}: is from a run that was killed; rename or delete it" in err
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)


@pytest.mark.parametrize("content", ["", '{"power_limit_mw": "all"}', "[]"])
def test_a_damaged_marker_says_how_to_clear_it(gpu: MadeGpu, capsys: Capture, content: str) -> None:
    gpu.marker.parent.mkdir(parents=True)
    gpu.marker.write_text(content)
    message = refuse(capsys, Path(), "measure", "--at", "840", "--", "sh", "job.sh")
    assert message.startswith(f"GPU 0: clock not reset ({gpu.marker}: ")
    assert message.endswith(f"); as root: nvidia-smi -i 0 -rgc && rm {gpu.marker}")


@pytest.mark.parametrize("from_keys", [True, False], ids=["Ctrl-C", "kill -INT"])
@pytest.mark.usefixtures("library")
def test_on_a_terminal_the_program_has_each_interrupt_once(gpu: MadeGpu, from_keys: bool) -> None:
    """Keys of a terminal reach the program themselves, a kill of mlscale does not."""
    keys, terminal = os.openpty()
    program = f"trap 'echo >> $MADE_NVML/heard; : > $MADE_NVML/on' INT; {UNTIL_ON}"
    words = [sys.executable, "-m", "mlscale", "measure", "-o", "log.csv", "--", "sh", "-c", program]
    start = f"exec {shlex.join(words)} < {os.ttyname(terminal)}"  # a session's first is its own
    with subprocess.Popen(["sh", "-c", start], start_new_session=True) as process:
        await_file(gpu.folder / "at")
        await_reads(nvml.reads() + 3)  # mlscale has taken note of the program
        if from_keys:
            os.write(keys, b"\x03")
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert (gpu.folder / "heard").read_text() == "\n"
    for one in (keys, terminal):
        os.close(one)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
@pytest.mark.usefixtures("library")
def test_a_closed_stream_costs_no_log(gpu: MadeGpu, closed: str) -> None:
    job = shlex.join([sys.executable, "-m", "mlscale", "measure", "-o", "log.csv", "--", "true"])
    subprocess.check_call(["sh", "-c", f"{job} {closed}"])
    assert len(read_log(Path("log.csv"))) == 1
