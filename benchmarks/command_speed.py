"""One-shot prediction against `import numpy`: whole processes, in turn, median of 11 runs.

The aim is at most three times the wall time of `python -c "import numpy"`.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from table import Row

from mlscale.data.public import path

RUNS = 11
OURS, PEER = "mlscale predict, 48 configurations", 'python -c "import numpy"'
COMMANDS = {
    PEER: [sys.executable, "-c", "import numpy"],
    OURS: [
        *(sys.executable, "-m", "mlscale", "predict"),
        str(path("simulated-gcn3.mlscale")),
        str(path("simulated-gcn3-profile.csv")),
    ],
}
HEAVY = ("pandas", "sklearn", "torch", "pyarrow", "matplotlib", "scipy")


def seconds(command: list[str]) -> float:
    """Wall time of one run."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def rows() -> Iterator[Row]:
    """The medians, their ratio, and the heavy modules that were imported."""
    runs: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            runs[name].append(seconds(command))
    ours, theirs = (1e3 * statistics.median(runs[name]) for name in (OURS, PEER))
    yield Row(OURS, f"{ours:.0f} ms", f"{theirs:.0f} ms", f"{theirs / ours:.2f}", PEER)
    command = COMMANDS[OURS]
    timed = [command[0], "-X", "importtime", *command[1:]]
    log = subprocess.run(timed, check=True, capture_output=True, text=True).stderr
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in log.splitlines()}
    yield Row("its heavy modules", ", ".join(sorted(imported & set(HEAVY))) or "none")
