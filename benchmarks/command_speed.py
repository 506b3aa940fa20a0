"""Predictions as whole processes: one kernel beside `import numpy`, and many kernels to a file.

One-shot prediction is to take at most twice the processor's seconds of `python -c "import numpy"`,
medians of 30 runs in turn; 20 000 kernels at 48 configurations at most 3 s of the clock on two
idle cores to CSV, 1 s to Parquet, best of 3, beside which the processor's seconds stand. `advise`
and `report` of 10 000 kernels are to take at most 1.5 s, of 100 000 at most 15 s.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from table import Row
from timing import by_command

from mlscale.data.datasets import path
from mlscale.data.grid import AXES
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table
from mlscale.model.model import load

RUNS = 30
KERNELS, KERNEL_RUNS = 20_000, 3
ADVISED = (10_000, 100_000)
OURS, PEER = "mlscale predict, 48 configurations", 'python -c "import numpy"'
COMMANDS = {
    PEER: [sys.executable, "-c", "import numpy"],
    OURS: [
        *(sys.executable, "-m", "mlscale", "predict"),
        str(path("simulated-gcn3.mlscale")),
        str(path("simulated-gcn3-profile.csv")),
    ],
}
PEER_IS = f"{PEER}; processor time, medians of {RUNS}"
HEAVY = ("pandas", "sklearn", "torch", "pyarrow", "matplotlib", "scipy")


def write_many_kernels(profile: Path, count: int = KERNELS) -> None:
    """The simulated kernels at the shipped model's base, again and again under new names."""
    base = load(path("simulated-gcn3.mlscale")).base
    table = read_table(path("simulated-gcn3.parquet"))
    at_base = np.all([table.numbers[axis] == getattr(base, axis) for axis in AXES], axis=0)
    rows = np.resize(np.flatnonzero(at_base), count)
    text = {name: [cells[row] for row in rows] for name, cells in table.text.items()}
    text["kernel"] = [f"{kernel}-{number}" for number, kernel in enumerate(text["kernel"])]
    numbers = {name: values[rows] for name, values in table.numbers.items()}
    write_table(Table("many", text, numbers, table.metadata), profile)


def best_of(what: str, command: Sequence[str | Path]) -> Iterator[Row]:
    """The least seconds of KERNEL_RUNS, of the clock and of the processor."""
    runs = [by_command(*command) for _ in range(KERNEL_RUNS)]
    best, processor = map(min, zip(*runs, strict=True))
    yield Row(what, f"{best:.1f} s")
    yield Row("  processor seconds", f"{processor:.1f} s")


def rows() -> Iterator[Row]:
    """The medians, their ratio, and the heavy modules that were imported."""
    runs: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        by_command(*command)
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            runs[name].append(by_command(*command).processor_s)
    ours, theirs = (1e3 * statistics.median(runs[name]) for name in (OURS, PEER))
    yield Row.beside(OURS, ours, theirs, "{:.0f} ms", PEER_IS)
    command = COMMANDS[OURS]
    timed = [command[0], "-X", "importtime", *command[1:]]
    log = subprocess.run(timed, check=True, capture_output=True, text=True).stderr
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in log.splitlines()}
    yield Row("its heavy modules", ", ".join(sorted(imported & set(HEAVY))) or "none")
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "many.csv"
        write_many_kernels(profile)
        for name in ("many.csv", "many.parquet"):
            output = str(Path(folder) / f"predicted-{name}")
            command = [*COMMANDS[OURS][:-1], str(profile), "-o", output]
            what = f"{KERNELS} kernels, 48 configurations, to {Path(name).suffix}"
            yield from best_of(what, command)
        for count in ADVISED:
            write_many_kernels(profile, count)
            for words in (("advise",), ("report", "-o", Path(folder) / "page.html")):
                command = [sys.executable, "-m", "mlscale", *words, profile]
                yield from best_of(f"mlscale {words[0]}, {count} kernels", command)
