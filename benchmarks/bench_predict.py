"""One-shot prediction against `import numpy`: whole processes, in turn, median of 11 runs.

    python benchmarks/bench_predict.py

The aim is at most three times the wall time of `python -c "import numpy"`.
"""

import statistics
import subprocess
import sys
import time

from mlscale.datasets import path

RUNS = 11
COMMANDS = {
    'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
    "mlscale predict (48 configurations)": [
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


def main() -> None:
    """Print the medians, their ratio, and the heavy modules that were imported."""
    runs: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            runs[name].append(seconds(command))
    medians = [statistics.median(times) for times in runs.values()]
    for name, median in zip(runs, medians, strict=True):
        print(f"{name:40s} {1e3 * median:7.1f} ms")
    print(f"{'ratio':40s} {medians[1] / medians[0]:7.2f}")
    command = COMMANDS["mlscale predict (48 configurations)"]
    timed = [command[0], "-X", "importtime", *command[1:]]
    log = subprocess.run(timed, check=True, capture_output=True, text=True).stderr
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in log.splitlines()}
    print(f"heavy modules imported: {', '.join(sorted(imported & set(HEAVY))) or 'none'}")


if __name__ == "__main__":
    main()
