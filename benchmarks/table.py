"""One row of the benchmark table, how it is printed, seconds, and a process' peak memory."""

import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEADINGS = ("benchmark", "what", "mlscale", "peer", "ratio", "the peer is")
WIDTHS = (15, 46, 12, 12, 7, 0)
RUNS = 5


@dataclass(frozen=True)
class Row:
    """Two figures with their unit, and what is better about ours; peer and ratio may lack."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    peer_is: str = ""


def line(benchmark: str, row: Row) -> str:
    """The row, aligned."""
    return _aligned((benchmark, row.what, row.ours, row.peer, row.ratio, row.peer_is))


def heading() -> str:
    """The names of the columns, and a rule below them."""
    return f"{_aligned(HEADINGS)}\n{_aligned(tuple('-' * len(name) for name in HEADINGS))}"


def seconds(work: Callable[[], object]) -> float:
    """Median wall time of RUNS calls."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def peak_mib() -> float:
    """Peak memory of this process since it began, as Linux counts it [MiB].

    Not getrusage's: a process starts there with the peak of the one that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1024


def _aligned(cells: tuple[str, ...]) -> str:
    left, what, *numbers, last = cells
    aligned = [f"{left:{WIDTHS[0]}s}", f"{what:{WIDTHS[1]}s}"]
    aligned += [f"{c:>{width}s}" for c, width in zip(numbers, WIDTHS[2:5], strict=True)]
    return "  ".join([*aligned, last]).rstrip()
