"""A plan carried out: each kernel at each number of CUs in a process of its own.

PoCL's threads and AMD's CU mask belong to a process, and a kernel that ends its process takes no
other along. The processes are forked from one that has imported kernel_tuner.
"""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.errors import InputError
from mlscale.profilers.kernel_tuner import read_document

_LONGEST = 300


def cache_file(folder: Path, kernel: str, cu_count: int) -> Path:
    """kernel_tuner's cache of a kernel at a number of CUs."""
    return folder / "cache" / f"{kernel}-{cu_count}.json"


def carry_out(
    plan: Plan, info: DeviceInfo, folder: Path, progress: Callable[[int], object]
) -> dict[str, str]:
    """Take every sample that the folder's cache does not have; the kernels that failed, and why.

    progress: is called with the number of samples of each process that is through.
    """
    folder = folder.resolve()
    (folder / "cache").mkdir(exist_ok=True)
    failed: dict[str, str] = {}
    for entry in plan.entries:
        for cu_count in plan.cu_counts:
            cache = cache_file(folder, entry.name, cu_count)
            _delete_if_torn(cache)
            if entry.name not in failed:
                given = (entry, plan, info, cu_count, cache)
                why = _in_own_process(folder / "cache" / "process.log", *given)
                failed |= {entry.name: why} if why else {}
            progress(plan.samples // len(plan.entries) // len(plan.cu_counts))
    return failed


def _delete_if_torn(cache: Path) -> None:
    """Delete a cache whose last line a kill cut off: kernel_tuner could not go on with it."""
    try:
        if cache.exists():
            read_document(cache)
    except InputError:
        cache.unlink()


def _in_own_process(log: Path, *given: Any) -> str | None:
    """Measure in a new process; why it failed, None if it did not."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["mlscale.collect.measuring"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(sender, log, *given), daemon=True)
    process.start()
    sender.close()
    try:
        return str(receiver.recv())
    except EOFError:
        process.join()
        code = process.exitcode or 0
        what = signal.Signals(-code).name if code < 0 else f"status {code}"
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        return f"it ended its process ({what}){': ' if last else ''}{''.join(last)}"[:_LONGEST]
    finally:
        process.kill()


def _measure(sender: Connection, log: Path, *given: Any) -> None:
    """In the new process: measure, and send why it failed, or nothing."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with log.open("w") as file:  # kernel_tuner and compilers print
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    _, _, info, cu_count, _ = given
    os.environ.update(info.environment(cu_count))
    from mlscale.collect.measuring import measure

    os.chdir(log.parent)  # kernel_tuner leaves the source of what does not compile
    try:
        measure(*given)
        sender.send("")
    except Exception as error:  # of one kernel; the others go on
        sender.send(" ".join(str(error).split())[:_LONGEST] or type(error).__name__)


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)
