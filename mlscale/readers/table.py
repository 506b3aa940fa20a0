"""The tidy table of a run, a row for each kernel and geometry or for each launch; tables joined."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, floats_of
from mlscale.counters.features import TABLE_2
from mlscale.data.checks import check, notes_on
from mlscale.data.devices import LARGEST_SHARE, facts_to_carry, find_device
from mlscale.data.grid import AXES
from mlscale.data.table import Table
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

_FROM_BEST = ("exact", "nearest", "missing")  # statuses of a feature
_BY_ROW = {
    "launches", "busy_spans", "sample_ms", "idle_ms", "working_ms", "open_ends",
    "utilisation_sources",
}  # fmt: skip
_LISTS = {"gpus", "profiled_gpus", "asked_clocks"}


@dataclass(frozen=True)
class RunFeatures:
    """What the tool's formulas make of each kernel's counters, by kernel in their order."""

    table_2: list[dict[str, Feature]]
    shares: list[dict[str, Share]]
    nvprof: list[dict[str, float]]

    def least_near(self) -> dict[str, Feature]:
        """Each feature of Table II: the least near of the kernels that have it."""
        rank = ("nearest", "exact", "missing")
        return {
            name: min((one[name] for one in self.table_2), key=lambda f: rank.index(f.status))
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
        "T10",
        f"{source}: FETCH_SIZE is 0 in all kernels, though they write: RDNA's counters fail so; it "
        "is taken as missing. Profile again after amd-smi set -g 0 --perf-level STABLE_STD",
    )
    return [
        replace(one, counters={n: v for n, v in one.counters.items() if n != "FETCH_SIZE"})
        for one in kernels
    ]


def features_of(tool: str, kernels: Sequence[Kernel], setup: Setup) -> RunFeatures:
    """Features of Table II, shares of peak and nvprof's counters at the run's configuration."""
    device = find_device(setup.device)
    run_facts: dict[str, float | None] = {
        "cu_count": setup.config.cu_count,
        "engine_hz": setup.config.engine_mhz * 1e6,
        "xcd_count": setup.dies,
    }
    if device is not None:
        peak = device.peak_bandwidth_gb_per_s(setup.config.memory_mhz) * 1e9
        run_facts |= {"peak_bytes_per_s": peak, "se_count": device.se_count}
    features = RunFeatures([], [], [])
    for kernel in kernels:
        facts = run_facts | {
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


def check_traffic(
    source: str, kernels: Sequence[Kernel], features: RunFeatures, setup: Setup
) -> None:
    """Raise InputError where more DRAM bytes are said to pass than can.

    AMD's L2 counts hits of the last cache too, so there they are warned of.
    """
    names = [kernel.name for kernel in kernels]
    used = [
        shares["dram_utilisation"].value if "dram_utilisation" in shares else 0.0
        for shares in features.shares
    ]
    facts = (names, used, LARGEST_SHARE, setup.device, setup.config.memory_mhz)
    device = find_device(setup.device)
    if device is None or device.vendor != "AMD":
        check("traffic", source, *facts)
        return
    for note in notes_on("traffic", *facts, source=source):
        warn(note.code, f"{note}; or hits of AMD's last-level cache are in it")


def table_of(
    source: str, tool: str, kernels: Sequence[Kernel], features: RunFeatures, setup: Setup,
    application: str,
) -> Table:  # fmt: skip
    """The tidy table: a row for each kernel and geometry, or launch. Raises InputError on times."""
    names, count = _row_names(kernels), len(kernels)
    numbers = {
        axis: np.full(count, float(setting)) for axis, setting in setup.config.as_dict().items()
    }
    numbers["time_ms"] = np.array([kernel.time_s * 1e3 for kernel in kernels])
    numbers |= _columns([{n: one.value for n, one in row.items()} for row in features.table_2])
    numbers |= _columns([{n: one.value for n, one in row.items()} for row in features.shares])
    numbers |= _columns(
        [
            {"workgroups": kernel.workgroups, "workgroup_size": kernel.workgroup_size}
            for kernel in kernels
        ]
    )
    if any(features.nvprof) and "workgroups" in numbers:
        numbers["warps"] = floats_of(map(_warps, kernels))
    counters = _columns([kernel.counters for kernel in kernels])
    taken = {*TABLE_2, *numbers}
    numbers |= {name: counters[name] for name in sorted(counters) if name not in taken}
    for name in dict.fromkeys(name for row in features.nvprof for name in row):
        numbers[name] = floats_of(row.get(name) for row in features.nvprof)
    launches = _sums_by_name(names, [kernel.launches for kernel in kernels])
    numbers["launches"] = np.array(launches)
    is_traced = [kernel.is_traced for kernel in kernels]
    if any(is_traced):
        total_ms = _sums_by_name(names, [kernel.run_s * 1e3 for kernel in kernels])
        numbers["total_time_ms"] = np.where(is_traced, total_ms, np.nan)
    metadata = {
        "origin": "measured",
        "counter_tool": tool,
        "feature_status": {name: one.status for name, one in features.least_near().items()},
        "utilisation_sources": features.sources(),
        "clocks": {"requested": setup.requested, "observed": setup.observed},
        "launches": {
            name: {
                "function": kernel.name,
                "workgroups": kernel.workgroups,
                "workgroup_size": kernel.workgroup_size,
                "launches": launches_of_name,
            }
            for name, kernel, launches_of_name in zip(names, kernels, launches, strict=True)
        },
        **facts_to_carry(setup.device),
    }
    text = {"device": [setup.device] * count, "application": [application] * count, "kernel": names}
    table = Table(source, text, numbers, metadata)
    table.positive("time_ms")
    return table


def _columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, Floats]:
    """Numbers by name of each row as columns, NaN where a row lacks one, if any row has it."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: floats_of(row.get(name) for row in rows) for name in names}
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _warps(kernel: Kernel) -> float | None:
    """Warps of a launch of NVIDIA's GPUs; None where its geometry is not known."""
    if kernel.workgroups is None or kernel.workgroup_size is None:
        return None
    return kernel.workgroups * math.ceil(kernel.workgroup_size / 32)


def _sums_by_name(names: Sequence[str], values: Sequence[float]) -> list[float]:
    """For each row the sum over all rows of its name, such as launches that stand apart."""
    sums = dict.fromkeys(names, 0.0)
    for name, value in zip(names, values, strict=True):
        sums[name] += value
    return [sums[name] for name in names]


def _row_names(kernels: Sequence[Kernel]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries = Counter(
        name for name, *_ in {(one.name, one.workgroups, one.workgroup_size) for one in kernels}
    )
    return [
        kernel.name
        if geometries[kernel.name] == 1
        else f"{kernel.name} [grid {kernel.workgroups or 0:.0f}, "
        f"block {kernel.workgroup_size or 0:.0f}]"
        for kernel in kernels
    ]


def warn_of_left_out(runs: Sequence[SummedFile], kernels: Sequence[Kernel]) -> None:
    """Warn of what the files have and the table lacks: launches without a time, uncounted kernels.

    Of times alone nothing is said: nothing was counted.
    """
    for run in runs:
        if run.dropped:
            lost = sorted(run.untimed - {key.kernel for key in run.groups})
            names = [f"'{shortened(name)}'" for name in lost]
            more = f", and with them all of {listed(names)}" if names else ""
            warn(
                "T09",
                f"{run.source}: {run.dropped} rows without a positive time are left out{more}",
            )
    uncounted = [kernel for kernel in kernels if not kernel.counters]
    if uncounted and len(uncounted) < len(kernels):
        source = next((run.source for run in runs if run.groups and not run.has_counters), "")
        longest = sorted(uncounted, key=lambda kernel: -kernel.run_s)
        names = [f"'{shortened(name)}'" for name in dict.fromkeys(k.name for k in longest)]
        percent = share_in_percent(run_time_s(uncounted) / run_time_s(kernels))
        warn(
            "T06",
            f"{source or runs[0].source}: without counters: {listed(names)}, {percent} % of the "
            "run's time",
        )


def run_time_s(kernels: Iterable[Kernel]) -> float:
    """The time of all launches of all kernels [s]."""
    return math.fsum(kernel.run_s for kernel in kernels)


def appended(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    source: what messages call the table. Raises InputError where the tables are of different
    devices or profilers.
    """
    for name, cells in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it is no imported table")
        if name == "device" and set(cells) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{cells[0]}'"
            )
    before, tool = table.metadata.get("counter_tool"), new.metadata["counter_tool"]
    if before != tool:
        raise InputError(
            f"{source}: its counters are of {before or 'an unknown tool'}, the new ones of {tool}; "
            "one table has counters of one tool"
        )
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    text = {name: [*table.text[name], *cells] for name, cells in new.text.items()}
    return Table(source, text, numbers, _metadata(table.metadata, new.metadata))


def _metadata(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What is said of both tables' rows: the new table's word, joined to the old one's."""
    metadata = {**old, **{name: value for name, value in new.items() if name != "clocks"}}
    for name in _BY_ROW & old.keys() & new.keys():
        metadata[name] = {**old[name], **new[name]}
    for name in _LISTS & old.keys() & new.keys():
        metadata[name] = list(dict.fromkeys([*old[name], *new[name]]))
    metadata["source"] = _each_once([old.get("source", ""), new["source"]])
    for name, text in old.get("utilisation_sources", {}).items():
        both = [text, new["utilisation_sources"].get(name, "")]
        metadata["utilisation_sources"][name] = _each_once(both)
    statuses = old.get("feature_status", {})
    metadata["feature_status"] = {
        name: max(status, statuses.get(name, status), key=_FROM_BEST.index)
        for name, status in new["feature_status"].items()
    }
    return metadata


def _each_once(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for text in texts for part in text.split("; ") if part))


def repeated_rows(table: Table, new: Table) -> int:
    """How many of the new rows are of a kernel and configuration that the table has already."""

    def keys(one: Table) -> list[tuple[Any, ...]]:
        settings = (one.numbers[axis].tolist() for axis in AXES)
        return list(zip(one.text["application"], one.text["kernel"], *settings, strict=True))

    known = set(keys(table))
    return sum(key in known for key in keys(new))
