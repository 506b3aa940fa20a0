"""mlscale as a copy of a process that has loaded it already, so that a trial begins at once."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from threading import RLock
from typing import Any, NamedTuple

from tqdm import tqdm

from mlscale.__main__ import main

GUARD_BYTES = 6 << 30  # of address space, so that a trial that fails does not take the machine
# The process that is copied has no thread but its first.
_COPIES = multiprocessing.get_context("forkserver")
_COPIES.set_forkserver_preload(
    ["__main__", "mlscale.cli.study", "mlscale.studies.figures", "pandas", "tqdm",
     "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "scipy.stats"]
)  # fmt: skip
tqdm.set_lock(RLock())  # its own is a semaphore, which a killed process would leave behind


class End(NamedTuple):
    """How a process ended, and what it used."""

    status: int
    hangs: bool
    processor_s: float
    mebibytes: int


def begun_copy(words: Sequence[str], out: str, said: str, usage: Any = None) -> ForkServerProcess:
    """Begin a command, which writes to files of these names, in a session of its own.

    usage: is sent its processor's seconds and its MiB. A study has no worker processes.
    """
    process = _COPIES.Process(target=_run, args=(words, out, said, usage))
    process.start()
    return process


def ended_copy(words: Sequence[str], out: str, said: str, wall_s: float) -> End:
    """Run a command, and kill it and what it began after that time."""
    reader, writer = _COPIES.Pipe(duplex=False)
    process = begun_copy(words, out, said, writer)
    writer.close()
    process.join(wall_s)
    if hangs := process.exitcode is None:
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    try:
        used = reader.recv() if reader.poll(1) else (0.0, 0)
    except EOFError:  # it was killed
        used = 0.0, 0
    return End(process.exitcode or 0, hangs, *used)


def _run(words: Sequence[str], out: str, said: str, usage: Any) -> None:
    """In the copy."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (GUARD_BYTES,) * 2)
    for number, name in ((1, out), (2, said)):
        os.dup2(os.open(name, os.O_WRONLY), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    if words[0] == "study":
        os.cpu_count = lambda: 1
    sys.argv = ["mlscale", *words]
    try:
        status = main()
        sys.stdout.flush()
    finally:
        if usage is not None:
            of_all = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            used = [(of.ru_utime + of.ru_stime, of.ru_maxrss >> 10) for of in of_all]
            usage.send((sum(seconds for seconds, _ in used), max(size for _, size in used)))
    sys.exit(status)
