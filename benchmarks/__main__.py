"""Every benchmark, or the named ones, as one table.

    python benchmarks [NAME...]

Each measures mlscale and a peer in the same run, on this machine. Errors and sizes do not depend on
the machine; seconds do, so look at the ratios, and let nothing else run.
"""

import os
import platform
import sys
from importlib import import_module
from pathlib import Path

from table import heading, line

sys.path.append(str(Path(__file__).parents[1] / "reproduction"))  # for make_hd7970

BENCHMARKS = (
    *("predict_speed", "command_speed", "scaling", "training_growth", "import_speed"),
    *("install_size", "sampling"),
)


def main(names: list[str]) -> None:
    """Run the benchmarks in turn and print each row as it is known."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    print(heading(), flush=True)
    for name in names or BENCHMARKS:
        for row in import_module(name).rows():
            print(line(name, row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
