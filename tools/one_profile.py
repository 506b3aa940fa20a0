"""How far off times and powers are on a GPU that no model learnt from, by one ncu profile each.

    python tools/one_profile.py DEVICE CSV [ENGINE_MHZ MEMORY_MHZ]

CSV is results/master/ml_dataset_ptx_launch_runtime_normalized.csv of
https://github.com/apAdomas/GPU-FREQUENCY-DVFS: rows of kernels at engine and memory clocks, with
time and power there, and each kernel's ncu metrics. Its metrics, and time and power at one pair of
clocks (by default 1470 and 9501 MHz), are given to the shipped model `nvidia-time` as a raw page of
ncu's is, and all other pairs are predicted. The metrics are taken as if they were of these clocks;
ncu observed 1649 and 9240 MHz. Kernels whose launches wait for the host are left out.
"""

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from two_clocks import capped_from_w

import mlscale
from mlscale.arrays import Floats
from mlscale.cli.text import columns
from mlscale.counters.kernel_use import kernel_use
from mlscale.counters.roofline import roofline
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.predictions import COVERAGE
from mlscale.predictors.bottleneck.latency import waits
from mlscale.readers.reading import import_profile
from mlscale.shipped import model_for

MODEL = Path(__file__).parent.parent / "models" / "nvidia-time.mlscale"
BASE = (1470.0, 9501.0)  # [MHz]: below the clocks at which the power limit may hold
BUSY = 0.8  # of the busiest unit's peak, at least
HEADERS = (
    *("memory MHz", "engine MHz", "kernels", "time", "flat", "in 90 %", "waiting", "flat", "busy"),
    *("power", "flat", "in 90 %"),
)
LEAST_KERNELS = 10  # that a mean is over
METRICS = (
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
)
LAUNCH = ("launch__grid_size", "launch__block_size")
DURATION = "gpu__time_duration.sum"  # [ns]
SAME_TIME = 1.25  # a launch that takes longer than ncu says waits for the host, and not for a clock
Clocks = tuple[float, float]  # engine, memory [MHz]
Kernel = dict[Clocks, tuple[float, float]]  # time [ms], power [W]


def column_of(metric: str) -> str:
    """The column of a metric of ncu's, as that table names it."""
    return "ncu_" + re.sub("[^A-Za-z0-9]+", "_", metric)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Fields of any length in csv while the block runs; the limit is of the whole process."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_table(path: Path) -> tuple[dict[str, Kernel], dict[str, dict[str, str]]]:
    """Time and power of each kernel by clocks, and its metrics."""
    measured: dict[str, Kernel] = {}
    metrics: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as file, _long_fields():
        for row in csv.DictReader(file):
            name = f"{row['workload']}.{row['kernel']}"
            own = {metric: row[column_of(metric)] for metric in (*METRICS, *LAUNCH, DURATION)}
            if all(own.values()):
                metrics.setdefault(name, own)
            if row["is_auto_baseline"] == "0":
                at = float(row["effective_core_clock"]), float(row["effective_mem_clock"])
                time_ms, power_w = (
                    float(row[column]) for column in ("time_per_launch_mean_ms", "avg_power_mean_W")
                )
                measured.setdefault(name, {})[at] = time_ms, power_w
    return measured, metrics


def profiled(
    measured: dict[str, Kernel], metrics: dict[str, dict[str, str]], device: str, base: Clocks
) -> Profiles:
    """The kernels that have both, as they are imported from a raw page of ncu's."""
    names = [
        name
        for name, of in measured.items()
        if name in metrics and base in of and is_of_gpu(of, float(metrics[name][DURATION]) / 1e6)
    ]
    fields = (DURATION, *METRICS, *LAUNCH)
    units = ("ns", *("%" for _ in METRICS), "", "")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "raw.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            page = csv.writer(file, quoting=csv.QUOTE_ALL)
            page.writerow(["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", *fields])
            page.writerow(["", "", "", "", "", *units])
            for number, name in enumerate(names):
                duration_ns = 1e6 * measured[name][base][0]
                own = [metrics[name][metric] for metric in (*METRICS, *LAUNCH)]
                page.writerow([number, 1, "app", "host", name, f"{duration_ns:.6f}", *own])
        clocks = {"engine_mhz": base[0], "memory_mhz": base[1]}
        profiles = import_profile(path, device=device, base=clocks)
    watts = np.array([measured[name][base][1] for name in profiles.kernels])
    return replace(profiles, power_w=watts)


def is_of_gpu(kernel: Kernel, profiled_ms: float) -> bool:
    """Whether a kernel's shortest time is that of the GPU, as ncu saw it, and not of its host."""
    return min(time_ms for time_ms, _ in kernel.values()) <= SAME_TIME * profiled_ms


def main(device: str, table: str, *clocks: str) -> None:
    """Print errors by clocks."""
    base = (float(clocks[0]), float(clocks[1])) if clocks else BASE
    measured, metrics = read_table(Path(table))
    profiles = profiled(measured, metrics, device, base)
    pairs = sorted({at for kernel in measured.values() for at in kernel} - {base})
    cu_count = profiles.base.cu_count
    targets = [HardwareConfig(cu_count, engine, memory) for engine, memory in pairs]
    model = model_for(mlscale.load(MODEL), profiles, targets, extrapolate=True)
    surfaces = model.predict(profiles, COVERAGE).surfaces
    waiting = waits(profiles, kernel_use(profiles))
    busy = np.array([max(place.dram, place.core) >= BUSY for place in roofline(profiles)])
    rows = []
    for engine, memory in sorted(pairs, key=lambda pair: (-pair[1], pair[0])):
        truth = ratios(measured, profiles, (engine, memory))
        known = np.isfinite(truth[0])
        if known.sum() < LEAST_KERNELS:
            continue
        at = (slice(None), *model.grid.index(HardwareConfig(cu_count, engine, memory)))
        row = [f"{memory:g}", f"{engine:g}", str(known.sum())]
        for quantity, actual in zip(("time", "power"), truth, strict=True):
            of = surfaces[quantity]
            off, flat = (100 * np.abs(by / actual - 1) for by in (of.values[at], 1.0))
            held = (of.low[at] <= actual) & (actual <= of.high[at])
            row += [mean_of(off[known]), mean_of(flat[known]), f"{100 * held[known].mean():.0f}"]
            if quantity == "time":
                groups = (off[known & waiting], flat[known & waiting], off[known & busy])
                row += [mean_of(of_group) for of_group in groups]
        rows.append(row)
    print(
        f"{len(profiles.kernels)} kernels, {waiting.sum()} waiting, {busy.sum()} busy, from "
        f"{profiles.base}; errors [%]:"
    )
    print(columns(HEADERS, rows))


def ratios(measured: dict[str, Kernel], profiles: Profiles, at: Clocks) -> Floats:
    """Time and power at those clocks over those at the base, NaN where not measured, (2, K)."""
    limit_w = capped_from_w(profiles.device)
    base = profiles.base.engine_mhz, profiles.base.memory_mhz
    values = np.full((2, len(profiles.kernels)), np.nan)
    for k, name in enumerate(profiles.kernels):
        there = measured[name].get(at)
        if there is not None and there[1] < limit_w:
            values[:, k] = np.divide(there, measured[name][base])
    return values


def mean_of(errors: Floats) -> str:
    """Their mean, a dash for that of none."""
    return f"{errors.mean():.1f}" if len(errors) else "-"


if __name__ == "__main__":
    main(*sys.argv[1:])
