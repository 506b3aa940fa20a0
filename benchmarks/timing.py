"""One way of timing: a call in this process, a command, and a function in a process of its own."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

RUNS = 5
T = TypeVar("T")
IN_OWN_PROCESS = """
import json, sys
sys.path[:0] = [{folder!r}, {folder!r} + "/../reproduction"]
from {module} import {name} as work
print(json.dumps(work(*json.loads(sys.argv[1]))))
"""


class Spent(NamedTuple):
    """Seconds of the clock, and of the processors on all cores together."""

    wall_s: float
    processor_s: float


def timed(work: Callable[[], T]) -> tuple[T, Spent]:
    """What a call gives, and what it takes."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, Spent(time.perf_counter() - wall, time.process_time() - processor)


def runs(work: Callable[[], object], count: int) -> list[Spent]:
    """What each of so many calls takes."""
    return [timed(work)[1] for _ in range(count)]


def seconds(work: Callable[[], object]) -> float:
    """Median wall time of RUNS calls."""
    return statistics.median(spent.wall_s for spent in runs(work, RUNS))


def by_command(*words: str | Path) -> Spent:
    """What a command takes, with compiled files; ends the program where it fails."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    quiet, started = subprocess.DEVNULL, time.perf_counter()
    process = subprocess.Popen(
        [*map(str, words)], stdout=quiet, stderr=quiet, env=environment, cwd=tempfile.gettempdir()
    )
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"ended with {process.returncode}: {' '.join(map(str, words))}")
    return Spent(wall_s, used.ru_utime + used.ru_stime)


def in_own_process(work: Callable[..., dict[str, float]], *asked: Any) -> dict[str, float]:
    """What a function of a benchmark gives for JSON values, where nothing else used memory."""
    folder = str(Path(__file__).parent)
    code = IN_OWN_PROCESS.format(folder=folder, module=work.__module__, name=work.__name__)
    return dict(json.loads(output_of(code, json.dumps(asked))))


def output_of(code: str, *arguments: str) -> str:
    """What Python code prints in a process of its own."""
    words = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def peak_mib() -> float:
    """Peak memory of this process since it began, as Linux counts it [MiB].

    Not getrusage's: a process starts there with the peak of the one that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1024
