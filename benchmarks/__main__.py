"""Every benchmark, or the named ones, as one table.

    python benchmarks [NAME...]

Each measures mlscale and a peer in the same run, on this machine. Errors and sizes do not depend on
the machine; seconds do, so look at the ratios, and let nothing else run.
"""

import os
import platform
import sys

import command_speed
import fit_speed
import import_speed
import install_size
import predict_speed
import scaling
import survey_speed
import train_speed
import training_growth
from table import heading, line

BENCHMARKS = {
    "train_speed": train_speed.rows,
    "predict_speed": predict_speed.rows,
    "command_speed": command_speed.rows,
    "scaling": scaling.rows,
    "fit_speed": fit_speed.rows,
    "training_growth": training_growth.rows,
    "survey_speed": survey_speed.rows,
    "import_speed": import_speed.rows,
    "install_size": install_size.rows,
}


def main(names: list[str]) -> None:
    """Run the benchmarks in turn and print each row as it is known."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    print(heading(), flush=True)
    for name in names or BENCHMARKS:
        for row in BENCHMARKS[name]():
            print(line(name, row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
