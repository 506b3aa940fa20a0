"""The command line as a process: closed streams, names that are not UTF-8, Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MLSCALE = [sys.executable, "-m", "mlscale"]
LIST = [*MLSCALE, "devices", "list"]
ROOT = Path(__file__).parents[1]

# A command that is interrupted where Python ignores it, as in a destructor, and then works on.
IN_A_DESTRUCTOR = """
import signal, sys, time
from mlscale import __main__
from mlscale.cli import main

class Fragile:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def work():
    Fragile()
    for _ in range(1000):
        time.sleep(0.01)
    return 0

signal.signal(signal.SIGINT, signal.default_int_handler)
main.main = work
sys.exit(__main__.main())
"""
AFTER_ALL = """
import atexit, signal, sys
from mlscale import __main__

atexit.register(signal.raise_signal, signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["mlscale", "devices", "list"]
sys.exit(__main__.main())
"""
# At each import of the command a copy of the process begins, which is interrupted there.
AT_EVERY_IMPORT = """
import os, signal, sys
from mlscale import __main__

statuses = []

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if os.fork():
            statuses.append(os.waitstatus_to_exitcode(os.wait()[1]))
        else:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["mlscale", "--version"]
if status := __main__.main():
    sys.exit(status)
print(statuses.count(130), len(statuses), file=sys.stderr)
"""


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=False, timeout=60, **options)


PREDICT = ("predict", "simulated-gcn3-profile.csv", "--model", "simulated-gcn3.mlscale", "-o")


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """What the command writes with all streams open, and its warnings."""
    table = tmp_path_factory.mktemp("predicted") / "t.csv"
    done = run([*MLSCALE, *PREDICT, table], capture_output=True)
    assert done.returncode == 0
    return table.read_bytes(), done.stderr


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", ">&- 2>&- <&-"])
def test_a_stream_that_is_closed(
    tmp_path: Path, predicted: tuple[bytes, bytes], closed: str
) -> None:
    """Nothing is told to nobody, and the file is the same as always: not its first lines."""
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *MLSCALE]
    table = tmp_path / "t.csv"
    done = run([*shell, *PREDICT, table], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"" if "2>" in closed else predicted[1])
    assert table.read_bytes() == predicted[0]


@pytest.mark.parametrize("words", [["devices", "list"], ["advise", "--help"], ["no-command"]])
def test_nobody_reads_what_is_said(words: list[str]) -> None:
    """As in `mlscale ... 2>&1 | true`: the end is quiet."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run([*MLSCALE, *words], stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == (2 if "no-command" in words else 0)


def test_the_first_line_is_enough() -> None:
    with subprocess.Popen(LIST, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        assert listing.stdout.readline()
        listing.stdout.close()
        assert listing.stderr.read() == b""


def test_a_name_that_is_not_utf8_is_refused_before_the_work(tmp_path: Path) -> None:
    done = run([*MLSCALE, "study", "errors", os.fsencode(tmp_path) + b"/t\xff.csv"],
               capture_output=True)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.endswith(b"t\\udcff.csv' is not UTF-8; rename the file\n")
    assert done.stderr.count(b"\n") == 1


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    done = run([sys.executable, "-c", IN_A_DESTRUCTOR], capture_output=True)
    assert done.stderr == b"mlscale: interrupted\n"
    assert done.returncode == 130


def test_an_interrupt_when_all_is_done_changes_nothing() -> None:
    done = run([sys.executable, "-c", AFTER_ALL], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == run(LIST, capture_output=True).stdout


def test_an_interrupt_while_mlscale_is_imported() -> None:
    """Each copy says one line and ends with 130."""
    done = run([sys.executable, "-c", AT_EVERY_IMPORT], capture_output=True)
    *said, last = done.stderr.decode().splitlines()
    interrupted, imports = map(int, last.split())
    assert imports > 20
    assert interrupted == imports
    assert said == ["mlscale: interrupted"] * imports


def test_nearly_nothing_is_imported_before_an_interrupt_is_answered() -> None:
    """Else Python speaks: these take longer to load than what of mlscale is loaded first."""
    code = "import sys; import mlscale.__main__; print(*sys.modules)"
    done = run([sys.executable, "-S", "-c", code], capture_output=True,
               env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert not {"typing", "re", "enum", "signal", "threading"} & set(done.stdout.decode().split())


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", range(50, 650, 50))
def test_an_interrupt_at_any_moment(milliseconds: int) -> None:
    """Before Python has started mlscale at all, it is Python that speaks."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "mlscale", "devices", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            running.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    _, _, since_it_began = err.partition(" mlscale.cli\n")
    said = [line for line in since_it_began.splitlines() if not line.startswith("import time:")]
    assert said in ([], ["mlscale: interrupted"])
