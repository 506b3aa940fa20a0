"""Every benchmark, or the named ones, as one table.

    python benchmarks [--renew] [NAME...]

Each measures mlscale and a peer in the same run, on this machine. Errors and sizes do not depend on
the machine; seconds do, so look at the ratios, and let nothing else run. What the last version had
stands beside each, from last_version.csv; --renew writes what is measured there, at a release.
"""

import os
import platform
import sys
from importlib import import_module
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # before NumPy is imported, here and in what is started

from table import LastVersion, Row, heading, line  # noqa: E402 (after the threads are set)

sys.path.append(str(Path(__file__).parents[1] / "reproduction"))  # for make_hd7970

BENCHMARKS = (
    *("predict_speed", "command_speed", "scaling", "training_growth", "import_speed"),
    *("install_size", "sampling"),
)


def main(names: list[str]) -> None:
    """Run the benchmarks in turn and print each row as it is known."""
    renews = "--renew" in names
    names = [name for name in names if name != "--renew"]
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    last = LastVersion.read()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    print(heading(), flush=True)
    for name in names or BENCHMARKS:
        rows: list[Row] = []
        for row in import_module(name).rows():
            rows.append(row)
            print(line(name, row, last.of(name, rows)), flush=True)
        if renews:
            last.renew(name, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
