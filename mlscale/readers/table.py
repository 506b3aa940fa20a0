"""The tidy table of a run: a row for each kernel and geometry, or for each launch."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, floats_of
from mlscale.counters.features import TABLE_2
from mlscale.data.devices import LARGEST_SHARE, facts_to_carry, find_device
from mlscale.data.table import LEAST, MOST, Table
from mlscale.errors import InputError, warn
from mlscale.readers.join import Kernel
from mlscale.readers.launches import SummedFile
from mlscale.readers.mapping import (
    Feature,
    Scope,
    Share,
    nvprof_counters,
    peak_shares,
    table_features,
)
from mlscale.readers.run import Setup
from mlscale.text import listed, share_in_percent, shortened


@dataclass(frozen=True)
class RunFeatures:
    """What the tool's formulas make of each kernel's counters, by kernel in their order."""

    table_2: list[dict[str, Feature]]
    shares: list[dict[str, Share]]
    nvprof: list[dict[str, float]]

    def of_run(self) -> dict[str, Feature]:
        """Each feature of Table II: the least near of the kernels that have it."""
        rank = ("nearest", "exact", "missing")
        return {
            name: min((of[name] for of in self.table_2), key=lambda f: rank.index(f.status))
            for name in TABLE_2
        }

    def sources(self) -> dict[str, str]:
        """By column from what its shares were computed, where kernels differ all of it."""
        sources: dict[str, dict[str, None]] = {}
        for shares in self.shares:
            for name, share in shares.items():
                sources.setdefault(name, {})[share.source] = None
        return {name: "; ".join(texts) for name, texts in sources.items()}


def without_failed_reads(source: str, kernels: list[Kernel], setup: Setup) -> list[Kernel]:
    """The kernels without FETCH_SIZE where RDNA counted no byte that any of them read.

    Sources: AMD's "Using rocprofv3", setting the performance level; ROCm/rocm-systems, pull request
    8022 (gfx12). Warns of it.
    """
    device = find_device(setup.device)
    reads, written = (
        [kernel.counters[name] for kernel in kernels if name in kernel.counters]
        for name in ("FETCH_SIZE", "WRITE_SIZE")
    )
    is_rdna = device is not None and device.architecture.startswith("RDNA")
    if not (is_rdna and reads and not any(reads) and any(written)):
        return kernels
    warn(
        f"{source}: FETCH_SIZE is 0 in all kernels, though they write: RDNA's counters fail so; "
        "it is taken as missing. Profile again after amd-smi set -g 0 --perf-level STABLE_STD, on "
        "RDNA 4 with a rocprofv3 of July 2026 or later"
    )
    counted = [{n: v for n, v in one.counters.items() if n != "FETCH_SIZE"} for one in kernels]
    return [replace(one, counters=own) for one, own in zip(kernels, counted, strict=True)]


def features_of(tool: str, kernels: Sequence[Kernel], setup: Setup) -> RunFeatures:
    """Features of Table II, shares of peak and nvprof's counters at the run's configuration."""
    device = find_device(setup.device)
    of_run: dict[str, float | None] = {
        "cu_count": setup.config.cu_count,
        "engine_hz": setup.config.engine_mhz * 1e6,
        "xcd_count": setup.dies,
    }
    if device is not None:
        of_run["peak_bytes_per_s"] = device.peak_bandwidth_gb_per_s(setup.config.memory_mhz) * 1e9
        of_run["se_count"] = device.se_count
    features = RunFeatures([], [], [])
    for kernel in kernels:
        facts = of_run | {
            "time_s": kernel.counted_time_s or kernel.time_s,
            "workgroups": kernel.workgroups,
            "warps": _warps(kernel),
        }
        table_2 = table_features(Scope(tool, kernel.counters, kernel.cycles, facts))
        facts |= {name: feature.value for name, feature in table_2.items()}
        scope = Scope(tool, kernel.counters, kernel.cycles, facts)
        features.table_2.append(table_2)
        features.shares.append(peak_shares(scope))
        features.nvprof.append(nvprof_counters(scope))
    return features


def check_traffic(source: str, kernels: Sequence[Kernel], of: RunFeatures, setup: Setup) -> None:
    """Raise InputError where more DRAM bytes are said to pass than can.

    AMD's L2 counts hits of the last cache too, so there they are warned of.
    """
    above = [
        (shares["dram_utilisation"].value, kernel.name)
        for kernel, shares in zip(kernels, of.shares, strict=True)
        if "dram_utilisation" in shares and shares["dram_utilisation"].value > LARGEST_SHARE
    ]
    if not above:
        return
    most, name = max(above)
    which = "" if len(above) == 1 else f"{len(above)} kernels, most of all "
    text = (
        f"{source}: {which}'{shortened(name)}': its DRAM traffic is {most:.2f} times what "
        f"{setup.device} passes at memory={setup.config.memory_mhz:g}"
    )
    device = find_device(setup.device)
    if device is None or device.vendor != "AMD":
        raise InputError(f"{text}; give the clock and the GPU that it ran on")
    warn(f"{text}; hits of a last-level cache are in it")


def table_of(
    source: str,
    tool: str,
    kernels: Sequence[Kernel],
    of: RunFeatures,
    setup: Setup,
    application: str,
) -> Table:
    """The tidy table: a row for each kernel and geometry, or launch. Raises InputError on times."""
    names = _row_names(kernels)
    text = {"device": [setup.device], "application": [application]}
    text = {name: cells * len(kernels) for name, cells in text.items()} | {"kernel": names}
    numbers = {
        axis: np.full(len(kernels), float(setting))
        for axis, setting in setup.config.as_dict().items()
    }
    numbers["time_ms"] = np.array([kernel.time_s * 1e3 for kernel in kernels])
    numbers |= _uses(kernels, of)
    numbers |= _counters(kernels, of, numbers)
    launches = _sums_by_name(names, [kernel.launches for kernel in kernels])
    numbers["launches"] = np.array(launches)
    is_traced = [kernel.is_traced for kernel in kernels]
    if any(is_traced):
        total_ms = _sums_by_name(names, [kernel.run_s * 1e3 for kernel in kernels])
        numbers["total_time_ms"] = np.where(is_traced, total_ms, np.nan)
    for name in {"time_ms", "total_time_ms"} & numbers.keys():
        for row in np.flatnonzero((numbers[name] < LEAST) | (numbers[name] > MOST)):
            raise InputError(
                f"{source}: the kernel '{names[row]}' takes {numbers[name][row]:g} ms; it must be "
                f"from {LEAST:g} to {MOST:g}: look for a damaged number in its rows"
            )
    metadata = {
        "origin": "measured",
        "counter_tool": tool,
        "feature_status": {name: feature.status for name, feature in of.of_run().items()},
        "utilisation_sources": of.sources(),
        "clocks": {"requested": setup.requested, "observed": setup.observed},
        "launches": _launches(names, kernels, launches),
        **facts_to_carry(setup.device),
    }
    return Table(source, text, numbers, metadata)


def _launches(
    names: Sequence[str], kernels: Sequence[Kernel], launches: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """By row's name: the function, its geometry, and how many launches it stands for."""
    return {
        name: {
            "function": kernel.name,
            "workgroups": kernel.workgroups,
            "workgroup_size": kernel.workgroup_size,
            "launches": count,
        }
        for name, kernel, count in zip(names, kernels, launches, strict=True)
    }


def _uses(kernels: Sequence[Kernel], of: RunFeatures) -> dict[str, Floats]:
    """Features of Table II, shares of peak and launch geometry, as far as any kernel has them."""
    columns = {name: floats_of(own[name].value for own in of.table_2) for name in TABLE_2}
    for name in dict.fromkeys(name for own in of.shares for name in own):
        shares = [own.get(name) for own in of.shares]
        columns[name] = floats_of(None if share is None else share.value for share in shares)
    columns["workgroups"] = floats_of(kernel.workgroups for kernel in kernels)
    columns["workgroup_size"] = floats_of(kernel.workgroup_size for kernel in kernels)
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _counters(
    kernels: Sequence[Kernel], of: RunFeatures, known: Collection[str]
) -> dict[str, Floats]:
    """The counters as the tool names them and, where they give those, as nvprof would.

    known: columns that no counter replaces.
    """
    columns: dict[str, Floats] = {}
    if any(of.nvprof) and "workgroups" in known:
        columns["warps"] = floats_of(map(_warps, kernels))
    taken = {*TABLE_2, *known, *columns}
    for name in sorted({name for kernel in kernels for name in kernel.counters}):
        if name not in taken:
            columns[name] = floats_of(kernel.counters.get(name) for kernel in kernels)
    for name in dict.fromkeys(name for own in of.nvprof for name in own):
        columns[name] = floats_of(own.get(name) for own in of.nvprof)
    return columns


def _warps(kernel: Kernel) -> float | None:
    """Warps of a launch of NVIDIA's GPUs; None where its geometry is not known."""
    if kernel.workgroups is None or kernel.workgroup_size is None:
        return None
    return kernel.workgroups * math.ceil(kernel.workgroup_size / 32)


def _sums_by_name(names: Sequence[str], values: Sequence[float]) -> list[float]:
    """For each row the sum over all rows of its name, such as launches that stand apart."""
    sums: Counter[str] = Counter()
    for name, value in zip(names, values, strict=True):
        sums[name] += value  # type: ignore[assignment]
    return [float(sums[name]) for name in names]


def _row_names(kernels: Sequence[Kernel]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries: dict[str, set[tuple[float | None, float | None]]] = {}
    for kernel in kernels:
        geometry = (kernel.workgroups, kernel.workgroup_size)
        geometries.setdefault(kernel.name, set()).add(geometry)
    return [
        kernel.name
        if len(geometries[kernel.name]) == 1
        else f"{kernel.name} [grid {kernel.workgroups or 0:.0f}, "
        f"block {kernel.workgroup_size or 0:.0f}]"
        for kernel in kernels
    ]


def warn_of_left_out(runs: Sequence[SummedFile], kernels: Sequence[Kernel]) -> None:
    """Warn of what the files have and the table lacks: launches without a time, uncounted kernels.

    And of times alone, from which one profile does not tell how they scale.
    """
    for run in runs:
        if run.dropped:
            lost = sorted(run.untimed - {key.kernel for key in run.groups})
            names = [f"'{shortened(name)}'" for name in lost]
            more = f", and with them all of {listed(names)}" if names else ""
            warn(f"{run.source}: {run.dropped} rows without a positive time are left out{more}")
        if run.skipped:
            warn(
                f"{run.source}: {run.skipped} lines inside the table are passed over, output of "
                "the program or the tool"
            )
    uncounted = [kernel for kernel in kernels if not kernel.counters]
    if len(uncounted) == len(kernels):
        return
    if uncounted:
        source = next((run.source for run in runs if run.groups and not run.has_counters), "")
        longest = sorted(uncounted, key=lambda kernel: -kernel.run_s)
        names = [f"'{shortened(name)}'" for name in dict.fromkeys(k.name for k in longest)]
        percent = share_in_percent(run_time_s(uncounted) / run_time_s(kernels))
        warn(
            f"{source or runs[0].source}: without counters: {listed(names)}, {percent} % of the "
            "run's time"
        )


def run_time_s(kernels: Iterable[Kernel]) -> float:
    """The time of all launches of all kernels [s]."""
    return math.fsum(kernel.run_s for kernel in kernels)
