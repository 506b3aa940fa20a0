"""Public measurements, read once in a process: names, files, mid-grids; sampled ones too."""

import functools
import warnings
from pathlib import Path

from mlscale import DataWarning, HardwareConfig, Measurements
from mlscale.data.nv_dvfs import read_nv_dvfs

GTX980_49 = "gtx980-49"  # Wang and Chu's own table, of other kernels
FILE_49 = "wang-chu-gtx980/gtx980-DVFS-Performance.csv"
FILES = {
    "gtx980-low": "dvfs/gtx980-low-dvfs-real-small-workload-Performance-Power.csv",
    "gtx980-high": "dvfs/gtx980-high-dvfs-real-small-workload-Performance-Power.csv",
    "gtx1080ti": "dvfs/gtx1080ti-dvfs-real-Performance-Power.csv",
    "p100": "dvfs/p100-dvfs-real-Performance-Power.csv",
}
SAMPLED = {
    "a100": "sampled/a100-spec-accel-dcgm.csv",
    "rtx8000": "sampled/rtx8000-microbenchmark-dcgm.csv",
    "v100": "sampled/v100-microbenchmark-dcgm.csv",
}
BASES = {
    GTX980_49: HardwareConfig(16, 700, 700),
    "gtx980-low": HardwareConfig(16, 700, 700),
    "gtx980-high": HardwareConfig(16, 1100, 3100),
    "gtx1080ti": HardwareConfig(28, 1800, 5000),
    "p100": HardwareConfig(56, 1012, 715),
}


@functools.cache
def measured(folder: Path, name: str) -> Measurements:
    """The table of that name in the folder of public data; what is known of its faults is quiet."""
    file = {GTX980_49: FILE_49, **FILES, **SAMPLED}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_nv_dvfs(folder / file, None)


def of_all_gpus(folder: Path) -> dict[str, Measurements]:
    """The tables of FILES by name."""
    return {name: measured(folder, name) for name in FILES}
