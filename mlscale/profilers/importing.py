"""A profiler's files to a tidy table: one kernel a row, at one configuration, with Table II."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.counters.features import TABLE_2
from mlscale.data.devices import device_keys, load_device
from mlscale.data.tables import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers import codexl, ncu, nvprof, rocprof
from mlscale.profilers.configuration import Setting, setting_of
from mlscale.profilers.joining import Joined, join
from mlscale.profilers.lines import Export, Progress, open_export
from mlscale.profilers.mapping import Feature, amd_die, needed_counters, table_features
from mlscale.profilers.samples import Run, Sample

_Reader = Callable[[Export, Run, Collection[str]], Iterator[Sample]]
_READERS: dict[str, _Reader] = {
    "ncu-details": ncu.read_details,
    "ncu-raw": ncu.read_raw,
    "nvprof-metrics": nvprof.read_metrics,
    "nvprof-trace": nvprof.read_trace,
    "nvprof-summary": nvprof.read_summary,
    "rocprof": rocprof.read_wide,
    "rocprofv3-counters": rocprof.read_long,
    "rocprofv3-trace": rocprof.read_trace,
    "codexl": codexl.read_calls,
}


@dataclass(frozen=True)
class Imported:
    """The table, and what to tell of it: files by layout, kernels, launches, features."""

    table: Table
    tool: str
    titles: tuple[str, ...]
    kernels: int
    launches: int
    features: dict[str, Feature]


def import_exports(
    paths: Sequence[Path],
    tool: str | None = None,
    *,
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    application: str | None = None,
    each: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Read the files of one run of one tool into a tidy table.

    tool: 'ncu', 'nvprof', 'rocprof', 'rocprofv3', 'codexl', or None to know it by the files.
    device: key of the device table, or any name. base: cu_count, engine_mhz [MHz], memory_mhz
    [MHz], as far as the files do not say. each: a row for each launch, as repetitions, in place
    of the mean. progress: called with the bytes read. Raises InputError; warns of what was left
    out.
    """
    runs: list[Run] = []
    tools: list[str] = []
    titles: list[str] = []
    for path in paths:
        run, found, title = _read(path, tool, each, progress)
        if found not in tools and tools and {found, *tools} != {"rocprof", "rocprofv3"}:
            raise InputError(f"{path}: is of {found}, {paths[0]} of {tools[0]}; import one tool")
        runs.append(run)
        tools.append(found)
        titles.append(title)
    setting = setting_of(runs, device, base or {})
    joined = join(runs)
    found_features = [_features(tools[0], one, setting) for one in joined]
    status = _statuses(found_features)
    name = application or next((r.application for r in runs if r.application), paths[0].stem)
    table = _table(tools[0], joined, found_features, setting, name)
    metadata: dict[str, Any] = {
        "origin": "measured",
        "counter_tool": tools[0],
        "source": ", ".join(path.name for path in paths),
        "feature_status": {name: feature.status for name, feature in status.items()},
        "clocks": setting.clocks(),
        "launches": _launches(joined),
    }
    table.metadata.update(metadata)
    _warn(runs, joined)
    kernels = len(set(table.text["kernel"]))
    return Imported(
        table, tools[0], tuple(titles), kernels, sum(j.launches for j in joined), status
    )


def _read(
    path: Path, tool: str | None, each: bool, progress: Progress | None
) -> tuple[Run, str, str]:
    export, file = open_export(path, progress) if progress else open_export(path)
    with file:
        layout = export.layout
        if tool is not None and layout.tool != tool:
            raise InputError(
                f"{path}: is of {layout.title}; import it with 'import {layout.tool}' or 'auto'"
            )
        if each and layout.key in ("nvprof-metrics", "nvprof-summary"):
            raise InputError(f"{path}: {layout.title} sums launches up; --each cannot part them")
        run = Run(str(path), layout.gives)
        run.collect(_READERS[layout.key](export, run, needed_counters(layout.tool)), each)
        run.skipped = len(export.skipped)
    return run, layout.tool, layout.title


def _features(tool: str, one: Joined, setting: Setting) -> dict[str, Feature]:
    key = setting.device
    peak = None
    if key in device_keys():
        peak = load_device(key).peak_bandwidth_gb_per_s(setting.config.memory_mhz) * 1e9
    die = amd_die(key)
    facts: dict[str, float | None] = {
        "time_s": one.time_s,
        "workgroups": one.workgroups,
        "cu_count": setting.config.cu_count,
        "engine_hz": setting.config.engine_mhz * 1e6,
        "peak_bytes_per_s": peak,
        "xcd_count": die.get("xcd_count"),
        "se_count": die.get("se_count"),
    }
    return table_features(tool, one.counters, one.cycles, facts)


def _statuses(kernels: list[dict[str, Feature]]) -> dict[str, Feature]:
    """Each feature's least near status over the kernels that have it, with its formula."""
    order = {"nearest": 0, "exact": 1, "missing": 2}
    return {
        name: min((features[name] for features in kernels), key=lambda f: order[f.status])
        for name in TABLE_2
    }


def kernel_names(joined: Sequence[Joined]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries: dict[str, set[tuple[float | None, float | None]]] = {}
    for one in joined:
        geometries.setdefault(one.kernel, set()).add((one.workgroups, one.workgroup_size))
    return [
        one.kernel
        if len(geometries[one.kernel]) == 1
        else f"{one.kernel} [grid {one.workgroups or 0:g}, block {one.workgroup_size or 0:g}]"
        for one in joined
    ]


def _table(
    tool: str,
    joined: list[Joined],
    features: list[dict[str, Feature]],
    setting: Setting,
    application: str,
) -> Table:
    rows = len(joined)
    numbers = {
        "cu_count": np.full(rows, float(setting.config.cu_count)),
        "engine_mhz": np.full(rows, setting.config.engine_mhz),
        "memory_mhz": np.full(rows, setting.config.memory_mhz),
        "time_ms": np.array([one.time_s * 1e3 for one in joined]),
    }
    for name in TABLE_2:
        values = [of_kernel[name].value for of_kernel in features]
        if any(value is not None for value in values):
            numbers[name] = np.array([np.nan if v is None else v for v in values])
    for name, given in (
        ("workgroups", [one.workgroups for one in joined]),
        ("workgroup_size", [one.workgroup_size for one in joined]),
    ):
        if any(value is not None for value in given):
            numbers[name] = np.array([np.nan if v is None else v for v in given])
    if tool == "nvprof" and "workgroups" in numbers:
        numbers["warps"] = numbers["workgroups"] * np.ceil(numbers["workgroup_size"] / 32)
    for name in dict.fromkeys(counter for one in joined for counter in one.counters):
        if name not in TABLE_2 and name not in numbers:
            unit = setting.units.get(name, "")
            counted = [one.counters.get(name, np.nan) for one in joined]
            numbers[name] = np.array([nvprof.in_file_units(v, unit) for v in counted])
    text = {
        "device": [setting.device] * rows,
        "application": [application] * rows,
        "kernel": kernel_names(joined),
    }
    return Table("import", text, numbers)


def _launches(joined: list[Joined]) -> dict[str, dict[str, Any]]:
    """By kernel: the function's name, its geometry, and how many launches the row stands for."""
    launches: dict[str, dict[str, Any]] = {}
    for name, one in zip(kernel_names(joined), joined, strict=True):
        entry = launches.setdefault(
            name,
            {
                "function": one.kernel,
                "workgroups": one.workgroups,
                "workgroup_size": one.workgroup_size,
                "launches": 0,
            },
        )
        entry["launches"] += one.launches
    return launches


def _warn(runs: list[Run], joined: list[Joined]) -> None:
    for run in runs:
        if run.dropped:
            warnings.warn(
                f"{run.source}: {run.dropped} rows without a positive time were left out",
                DataWarning,
                stacklevel=3,
            )
        if run.skipped:
            warnings.warn(
                f"{run.source}: {run.skipped} lines inside the table were the program's or the "
                "tool's output and were passed over",
                DataWarning,
                stacklevel=3,
            )
    if not any(one.counters for one in joined):
        warnings.warn(
            f"{runs[0].source}: times without counters: no features", DataWarning, stacklevel=3
        )
