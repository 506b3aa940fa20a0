"""The command line as a process: a closed pipe, a name that is not UTF-8, Ctrl-C."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MLSCALE = [sys.executable, "-m", "mlscale"]

# The command is interrupted while it imports its libraries.
IN_AN_IMPORT = """
import signal, sys
from mlscale import __main__

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "argparse":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.exit(__main__.main())
"""


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=False, timeout=60, **options)


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


def test_a_name_that_is_not_utf8_is_refused_before_the_work(tmp_path: Path) -> None:
    done = run([*MLSCALE, "study", "errors", os.fsencode(tmp_path) + b"/t\xff.csv"],
               capture_output=True)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.endswith(b"t\\udcff.csv' is not UTF-8; rename the file\n")
    assert done.stderr.count(b"\n") == 1


def test_an_interrupt_while_mlscale_is_imported() -> None:
    done = run([sys.executable, "-c", IN_AN_IMPORT], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"mlscale: interrupted\n")
