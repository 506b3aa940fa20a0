"""The command line as a process: a closed pipe, a full disk, Ctrl-C. Expected: as shells count."""

import os
import subprocess
import sys
from pathlib import Path

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


def test_nobody_reads_what_is_said() -> None:
    """As in `mlscale ... | true`: the end is quiet."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*MLSCALE, "devices", "list"], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk() -> None:
    """One line, if it can be written, and the command's own status."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*MLSCALE, "devices", "list"], stdout=full, stderr=subprocess.PIPE, check=False
        )
        refused = subprocess.run([*MLSCALE, "devices", "show", "none"], stderr=full, check=False)
    said = b"mlscale: error: standard output: cannot be read or written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert refused.returncode == 2


def test_an_interrupt_while_mlscale_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", IN_AN_IMPORT], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"mlscale: interrupted\n")
