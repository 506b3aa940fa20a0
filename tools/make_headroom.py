"""Make the four tables datasets/headroom-*.csv from the sweeps that they are made of.

    python tools/make_headroom.py FOLDER

FOLDER holds the files that `mlscale datasets show headroom-rtx3060` and the like name, in whatever
sub-folders; each must have the checksum of the registry. Rows whose clock lock was not kept are
left out, and sweeps whose file names no workload; how many of these is said. datasets/README.md
says what the tables hold.
"""

import csv
import hashlib
import re
import sys
from pathlib import Path

import numpy as np

from mlscale.data.datasets import Dataset, all_datasets
from mlscale.data.devices import load_device
from mlscale.data.logs import PROFILE_KIND
from mlscale.data.table import Table
from mlscale.data.table_files import write_table

DATASETS = Path(__file__).parent.parent / "datasets"
WORKLOAD = re.compile(r"-suite-([a-z]+)(\d*)(?:-r\d)?_sweep\.csv$")
NUMBERS = {
    "engine_mhz": "target_frequency_mhz",
    "time_ms": "bench_seconds",
    "power_w": "power_avg_w",
    "engine_mhz_observed": "achieved_frequency_avg",
}


def main(folder: Path) -> None:
    """Write every table of the registry that is made of sweeps."""
    for dataset in all_datasets().values():
        if dataset.parts:
            write_table(table_of(dataset, folder), DATASETS / dataset.file)
            print(f"datasets/{dataset.file}")


def table_of(dataset: Dataset, folder: Path) -> Table:
    """The tidy table of one board: seconds to ms, the memory clock that was held under load."""
    named = {name: match for name in dataset.parts if (match := WORKLOAD.search(name))}
    if nameless := dataset.parts.keys() - named:
        print(f"{dataset.name}: left out {len(nameless)} sweeps whose file names no workload")
    sweeps = [
        (workload, row)
        for name, workload in named.items()
        for row in read_sweep(folder, name, dataset.parts[name])
    ]
    rows = [row for _, row in sweeps]
    numbers = {ours: np.array([float(row[of]) for row in rows]) for ours, of in NUMBERS.items()}
    numbers["time_ms"] = np.round(1000 * numbers["time_ms"], 3)
    memory_mhz = np.median([float(row["memory_clock_max_mhz"]) for row in rows])
    shared = {"cu_count": float(load_device(dataset.device).cu_count), "memory_mhz": memory_mhz}
    return Table(
        source=dataset.name,
        text={
            "device": [dataset.device] * len(rows),
            "application": [workload[1] for workload, _ in sweeps],
            "kernel": [workload[1] + workload[2] for workload, _ in sweeps],
        },
        numbers={**{name: np.full(len(rows), value) for name, value in shared.items()}, **numbers},
        metadata={
            "origin": "measured",
            "counter_tool": "nvidia-smi",
            "profile_kind": PROFILE_KIND,
            "power_kind": "board",
            "source": dataset.url_of_parts,
            "licence": dataset.licence,
        },
    )


def read_sweep(folder: Path, name: str, sha256: str) -> list[dict[str, str]]:
    """The rows of a sweep whose lock was kept."""
    for path in folder.rglob(Path(name).name):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == sha256:
            rows = csv.DictReader(content.decode("utf-8-sig").splitlines())
            return [row for row in rows if row["lock_miss_direction"] == "none"]
    sys.exit(f"{name} with the right checksum is not below {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
