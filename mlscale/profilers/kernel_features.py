"""Features and shares of peak of a run's kernels, and whether their DRAM traffic can be."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mlscale.counters.features import TABLE_2
from mlscale.counters.kernel_use import traffic_needed
from mlscale.data.device import LARGEST_SHARE
from mlscale.data.device_table import find_device
from mlscale.errors import InputError, warn
from mlscale.profilers.configuration import RunConfiguration
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.mapping import FormulaScope, TableFeature, peak_shares, table_features
from mlscale.text import shortened

_READ = {"FETCH_SIZE", "FetchSize"}  # rocprof's counter of what L2 reads, by its two names


def with_features(
    tool: str, records: Sequence[KernelRecord], run: RunConfiguration
) -> list[KernelRecord]:
    """The records with what their counters give at the run's configuration."""
    device = find_device(run.device)
    of_run: dict[str, float | None] = {
        "cu_count": run.config.cu_count,
        "engine_hz": run.config.engine_mhz * 1e6,
        "xcd_count": run.dies,
    }
    if device is not None:
        of_run["peak_bytes_per_s"] = device.peak_bandwidth_gb_per_s(run.config.memory_mhz) * 1e9
        of_run["se_count"] = device.se_count
    records_with: list[KernelRecord] = []
    for record in records:
        facts = of_run | {
            "time_s": record.counted_time_s or record.time_s,
            "workgroups": record.workgroups,
        }
        scope = FormulaScope.of(tool, record.counters, record.cycles, facts)
        features = table_features(tool, scope)
        known = facts | {name: feature.value for name, feature in features.items()}
        scope = FormulaScope.of(tool, record.counters, record.cycles, known)
        shares = peak_shares(tool, scope)
        records_with.append(replace(record, features=features, shares=shares))
    return records_with


def lack_of_traffic(tool: str, records: Sequence[KernelRecord]) -> str:
    """What to say where no counted kernel has a measure of DRAM use, whatever the GPU."""
    if tool != "ncu" and not any(record.counters for record in records):  # which counts always
        return ""
    for record in records:
        facts = {"time_s": record.counted_time_s or record.time_s, "peak_bytes_per_s": 1.0}
        scope = FormulaScope.of(tool, record.counters, record.cycles, facts)
        if "dram_utilisation" in peak_shares(tool, scope):
            return ""
    return f"to predict from it, 'bottleneck' also needs {traffic_needed(tool)}"


def check_traffic(path: Path, records: Sequence[KernelRecord], run: RunConfiguration) -> None:
    """Raise InputError where no bytes are said to pass, or more than can.

    AMD's L2 counts hits of the last cache too, so there more bytes are warned of.
    """
    _check_fetched(path, records, run)
    above = [
        (share.value, record.kernel)
        for record in records
        if (share := record.shares.get("dram_utilisation")) and share.value > LARGEST_SHARE
    ]
    if not above:
        return
    most, kernel = max(above)
    which = "" if len(above) == 1 else f"{len(above)} kernels, most of all "
    text = (
        f"{path}: {which}'{shortened(kernel)}': its DRAM traffic is {most:.2f} times what "
        f"{run.device} passes at memory={run.config.memory_mhz:g}"
    )
    device = find_device(run.device)
    if device is None or device.vendor != "AMD":
        raise InputError(f"{text}; give the clock and the GPU that it ran on")
    warn(f"{text}; hits of a last-level cache are in it")


def _check_fetched(path: Path, records: Sequence[KernelRecord], run: RunConfiguration) -> None:
    """Raise InputError where rocprof counted no byte that any kernel read: it fails so on RDNA.

    Sources: AMD's "Using rocprofv3", setting the performance level; ROCm/rocm-systems, pull
    requests 8022 (gfx12) and 3100 (gfx115x, of which half the channels were counted).
    """
    reads = [record.counters[name] for record in records for name in _READ & set(record.counters)]
    if reads and not any(reads):
        raise InputError(
            f"{path}: FETCH_SIZE is 0 in all its kernels, which is a failure of the profiler that "
            "RDNA 3 and 4 are known for: profile again after amd-smi set -g 0 --perf-level "
            "STABLE_STD, and on RDNA 4 with a rocprofv3 of July 2026 or later; else leave it out "
            "and give times at a second engine clock (--also)"
        )
    device = find_device(run.device)
    if reads and device is not None and device.architecture.startswith("RDNA 3.5"):
        warn(
            f"{path}: a rocprofv3 of before February 2026 counts half of what {run.device} reads "
            "(FETCH_SIZE): compare it with a kernel of which you know what it reads"
        )


def share_sources(records: Sequence[KernelRecord]) -> dict[str, str]:
    """By column from what its shares were computed, where kernels differ all of it."""
    sources: dict[str, dict[str, None]] = {}
    for record in records:
        for name, share in record.shares.items():
            sources.setdefault(name, {})[share.source] = None
    return {name: "; ".join(texts) for name, texts in sources.items()}


def features_of_run(records: Sequence[KernelRecord]) -> dict[str, TableFeature]:
    """Each feature of Table II over all kernels: the least near of those that have it."""
    rank = ("nearest", "exact", "missing")
    return {
        name: min((record.features[name] for record in records), key=lambda f: rank.index(f.status))
        for name in TABLE_2
    }
