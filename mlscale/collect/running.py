"""A plan carried out: kernel after kernel, in processes of their own.

Each number of PoCL's threads and each CU mask has its own, and on a GPU each kernel (why:
docs/decisions/0010-collecting.md). A kernel that fails or ends its process is left out, and a new
process goes on.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import product
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mlscale.collect.plan import Plan
from mlscale.errors import InputError
from mlscale.readers.kernel_tuner import read_document

_LONGEST = 300


def cache_file(folder: Path, kernel: str, cu_count: int) -> Path:
    """kernel_tuner's cache of a kernel at a number of CUs."""
    return folder / "cache" / f"{kernel}-{cu_count}.json"


def carry_out(plan: Plan, folder: Path, progress: Callable[[], object]) -> dict[str, str]:
    """Take every sample that the folder's cache does not have; the kernels that failed, and why.

    What failed in an earlier run is tried again. progress: is called when a kernel is through at a
    number of CUs.
    """
    folder = folder.resolve()
    (folder / "cache").mkdir(exist_ok=True)
    failed: dict[str, str] = {}
    share = plan.device.backend == "opencl"
    for entries in [plan.entries] if share else [(entry,) for entry in plan.entries]:
        workers: dict[str, _Worker] = {}
        with ExitStack() as stack:
            for entry, cu_count in product(entries, plan.cu_counts):
                if entry.name not in failed:
                    cache = cache_file(folder, entry.name, cu_count)
                    _delete_if_not_whole(cache)
                    environment = plan.device.environment(cu_count)
                    key = str(environment)
                    if key not in workers:
                        workers[key] = _Worker(folder / "cache" / "process.log", environment)
                        stack.callback(workers[key].end)
                    if why := workers[key].measure(entry, plan, cu_count, cache):
                        failed[entry.name] = why
                        workers.pop(key).end()
                progress()
    return failed


def _delete_if_not_whole(cache: Path) -> None:
    """Delete a cache that a kill cut off, or with a failure, which kernel_tuner would not retry."""
    with suppress(InputError):
        if not any("__error__" in sample for sample in read_document(cache)["cache"].values()):
            return
    cache.unlink(missing_ok=True)


class _Worker:
    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(["mlscale.collect.measuring", __name__, "pyopencl"])
        self._log = log
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, log, environment), daemon=True)
        self._process.start()
        theirs.close()

    def measure(self, *given: Any) -> str:
        """Call `measuring.measure` there; why it failed, empty if it did not."""
        try:
            self._connection.send(given)
            return str(self._connection.recv())
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            what = signal.Signals(-code).name if code < 0 else f"status {code}"
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            return ": ".join([f"it ended its process ({what})", *last])[:_LONGEST]

    def end(self) -> None:
        """End it, also in the middle of a kernel."""
        self._process.kill()
        self._process.join()


def _work(connection: Connection, log: Path, environment: dict[str, str]) -> None:
    """In the new process: measure what comes, and send why it failed, or nothing."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with log.open("w") as file:  # kernel_tuner and compilers print
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    from mlscale.collect.measuring import measure

    os.chdir(log.parent)  # kernel_tuner leaves the source of what does not compile
    while True:
        given = connection.recv()
        try:
            measure(*given)
            connection.send("")
        except Exception as error:  # the other kernels go on
            connection.send(" ".join(str(error).split())[:_LONGEST] or type(error).__name__)


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)
