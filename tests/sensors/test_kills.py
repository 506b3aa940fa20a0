"""`measure` killed at every line, on a made GPU: its clock is put back, and its log is there.

Regression only: after each kill the next start puts back, and what was sampled is read.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from command import Line, traced
from synthetic import nvml
from synthetic.made_gpu import MadeGpu

from mlscale.cli import measure
from mlscale.cli.main import main
from mlscale.readers.monitor import read_log
from mlscale.sensors import clocks, log, program, recorder
from mlscale.sensors.boards import boards_at_hand
from mlscale.sensors.clocks import given_back

TRACED = {module.__file__ for module in (measure, clocks, log, program, recorder)}
PROGRAM = """\
cd "$MADE_NVML"; : > begun
until [ -e stop ] || [ "$(wc -c < reads)" -ge 8 ]; do sleep 0.01; done
"""  # for a shell
WORDS = ("measure", "--at", "840", "--", "sh", "-c", PROGRAM)


def measured(at: Callable[[Line], object]) -> int:
    """Measure in a process of its own, and call at each line; how it ended."""
    with warnings.catch_warnings(action="ignore"):
        child = os.fork()
    if not child:
        with suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            threading.settrace(traced(TRACED, at))
            sys.settrace(traced(TRACED, at))
            main(WORDS)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_killed_at_every_line(gpu: MadeGpu, tmp_path: Path, number: signal.Signals) -> None:
    lines, held, kept = tmp_path / "lines", 0, 0
    with lines.open("w", buffering=1) as file:
        assert measured(lambda line: file.write(f"{line[0]}:{line[1]}\n")) == 0
    every = [*dict.fromkeys(lines.read_text().splitlines())]
    assert len(every) > 200
    for path in Path().glob("*.csv"):
        path.unlink()
    [board] = boards_at_hand()
    for where in every:

        def kill(line: Line, where: str = where, met: list[int] = []) -> None:  # noqa: B006
            if f"{line[0]}:{line[1]}" == where and not met:
                met.append(1)
                os.kill(os.getpid(), number)

        (gpu.folder / "reads").write_bytes(b"")
        for name in ("stop", "begun"):
            (gpu.folder / name).unlink(missing_ok=True)
        measured(kill)
        (gpu.folder / "stop").touch()
        held += gpu.locked_mhz is not None
        if number != signal.SIGKILL:
            assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False), where
        with warnings.catch_warnings(action="ignore"), given_back(board, sets_board=False):
            assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False), where
        logs = [path for path in Path().glob("*.csv") if path.stat().st_size]
        is_begun = number == signal.SIGKILL or (gpu.folder / "begun").exists()
        if nvml.reads() > 3 and is_begun:  # at least two samples are whole and written
            assert [len(one) > 1 for path in logs for one in read_log(path)], where
            kept += 1
        for path in Path().glob("*.csv"):
            path.unlink()
    print(f"{number.name} at {len(every)} lines: held at {held}, with a log at {kept}")
