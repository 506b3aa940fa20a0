"""A profiler's files to a tidy table: one kernel a row, at one configuration, with Table II."""

import statistics
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import TABLE_2
from mlscale.counters.kernel_use import TRAFFIC_NEEDED
from mlscale.data.devices import facts_to_carry, find_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles, profiles_at
from mlscale.data.tables import Table
from mlscale.data.traffic import LARGEST_SHARE
from mlscale.errors import DataWarning, InputError
from mlscale.files import ByteProgress, no_progress
from mlscale.profilers import (
    codexl,
    ncu,
    ncu_text,
    nsys,
    nsys_sqlite,
    nvprof,
    rocprof,
    torch_averages,
    torch_trace,
)
from mlscale.profilers.configuration import RunConfiguration, run_configuration
from mlscale.profilers.joining import KernelRecord, join
from mlscale.profilers.launches import FileContent, LaunchRecord
from mlscale.profilers.layouts import COUNTING_TOOLS, ExportLayout
from mlscale.profilers.mapping import (
    Share,
    TableFeature,
    needed_counters,
    peak_shares,
    table_features,
)
from mlscale.profilers.reader import Export, open_export

_Reader = Callable[[Export, FileContent, Collection[str]], Iterator[LaunchRecord]]
_READERS: dict[str, _Reader] = {
    "ncu-details": ncu.read_details,
    "ncu-summary": ncu.read_summary,
    "ncu-raw": ncu.read_raw,
    "ncu-text": ncu_text.read_text,
    "nvprof-metrics": nvprof.read_metrics,
    "nvprof-trace": nvprof.read_trace,
    "nvprof-summary": nvprof.read_summary,
    "rocprof": rocprof.read_wide,
    "rocprofv3-counters": rocprof.read_long,
    "rocprofv3-trace": rocprof.read_trace,
    "rocprof-stats": rocprof.read_stats,
    "rocprofv3-stats": rocprof.read_stats,
    "codexl": codexl.read_calls,
    "nsys-sum": nsys.read_sum,
    "nsys-trace": nsys.read_trace,
    "nsys-sqlite": nsys_sqlite.read_sqlite,
    "torch-trace": torch_trace.read_trace,
    "torch-averages": torch_averages.read_averages,
}
_MACHINE_READERS: dict[str, Callable[[Export, FileContent], None]] = {
    "rocprof-machine": rocprof.read_machine,
    "rocprofv3-agents": rocprof.read_agents,
}
_SUMMED_BY_THE_TOOL = (
    *("nvprof-metrics", "nvprof-summary", "ncu-summary"),
    *("rocprof-stats", "rocprofv3-stats", "nsys-sum", "torch-averages"),
)


@dataclass(frozen=True)
class ImportedTable:
    """The tidy table of one run, and what there is to say of it.

    Attributes:
        table: a row for each kernel and geometry, or for each launch.
        tool: the profiler.
        titles: the layout of each file, in words.
        config: what the run was made at.
        kernels: how many there are.
        launches: how many the rows stand for.
        features: each feature of Table II with its least near status over the kernels.
        gpus: the numbers of the GPUs that a trace has launches on; none where no file says them.
    """

    table: Table
    tool: str
    titles: tuple[str, ...]
    config: HardwareConfig
    kernels: int
    launches: int
    features: dict[str, TableFeature]
    gpus: tuple[str, ...] = ()


def import_profile(
    files: str | Path | Sequence[str | Path],
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    tool: str | None = None,
    application: str | None = None,
    each: bool = False,
    gpu: str | None = None,
) -> Profiles:
    """Read a profiler's CSV exports of one run as profiles to predict from.

    files: one file, or several of the same run: further passes, and a trace for the times.
    device: a key of the device table, or any name; needed where the files do not say it.
    base: what the GPU was set to as far as the files do not say it: 'cu_count', 'engine_mhz'
    [MHz] and 'memory_mhz' [MHz]. tool: one of TOOLS, as 'ncu' or 'nsys'; None knows it by the
    files. application: of all kernels; None takes the program that was profiled.
    each: a kernel's profile is the median over its launches in place of their mean. gpu: whose
    launches to take of a trace of several GPUs, by its number there. Raises InputError where a
    file cannot be read or the files contradict each other.

    Example:
        profiles = mlscale.import_profile("run.csv", base={"engine_mhz": 1000, "memory_mhz": 900})
    """
    paths = [files] if isinstance(files, str | Path) else list(files)
    imported = import_exports(
        [Path(path) for path in paths],
        tool,
        device=device,
        base=base,
        application=application,
        each=each,
        gpu=gpu,
    )
    return profiles_at(imported.table, imported.config, imported.table.text["device"][0])


def import_exports(  # noqa: PLR0913 - what the files do not say, each by its name
    paths: Sequence[Path],
    tool: str | None = None,
    *,
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    application: str | None = None,
    each: bool = False,
    gpu: str | None = None,
    progress: ByteProgress = no_progress,
) -> ImportedTable:
    """Read the files of one run of one tool into a tidy table.

    each: a row for each launch, as repetitions, in place of the mean. progress: is called with
    the number of bytes read. The rest is as in import_profile. Raises InputError; warns of what
    was left out.
    """
    contents: list[FileContent] = []
    layouts: list[ExportLayout] = []
    for path in paths:
        content, layout = _read(path, tool, each, gpu, progress)
        tools = {layout.tool, *(other.tool for other in layouts)}
        if len(tools) > 1 and tools != {"rocprof", "rocprofv3"}:
            raise InputError(
                f"{path}: is of {layout.tool}, {paths[0]} of {layouts[0].tool}; import one tool"
            )
        contents.append(content)
        layouts.append(layout)
    records = join(contents)
    first_tool = layouts[0].tool
    run = run_configuration(contents, device, base or {}, _lack_of_traffic(first_tool, records))
    of_records = [_features_and_shares(first_tool, record, run) for record in records]
    features = [of_record[0] for of_record in of_records]
    shares = [of_record[1] for of_record in of_records]
    _check_traffic(paths[0], records, shares, run)
    of_run = {name: _least_near([of_kernel[name] for of_kernel in features]) for name in TABLE_2}
    programs = [content.application for content in contents if content.application]
    name = application or next(iter(programs), paths[0].stem)
    table = _table(first_tool, records, features, shares, run, name)
    table.metadata.update(
        origin="measured",
        counter_tool=first_tool,
        source=", ".join(path.name for path in paths),
        feature_status={name: feature.status for name, feature in of_run.items()},
        utilisation_sources=_sources(shares),
        clocks={"requested": run.requested, "observed": run.observed},
        launches=_launches(records),
        **facts_to_carry(run.device),
        **_idle(contents),
    )
    _warn(contents, records)
    return ImportedTable(
        table=table,
        tool=first_tool,
        titles=tuple(layout.title for layout in layouts),
        config=run.config,
        kernels=len(set(table.text["kernel"])),
        launches=sum(record.launches for record in records),
        features=of_run,
        gpus=tuple(sorted({gpu for content in contents for gpu in content.gpus})),
    )


def append(table: Table, new: Table, source: str) -> Table:
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
    old, tool = table.metadata, new.metadata["counter_tool"]
    if old.get("counter_tool") != tool:
        raise InputError(
            f"{source}: its counters are of {old.get('counter_tool') or 'an unknown tool'}, the "
            f"new ones of {tool}; one table has counters of one tool"
        )
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    rank = ("exact", "nearest", "missing")
    statuses, sources = old.get("feature_status", {}), old.get("utilisation_sources", {})
    sources = {name: text.split("; ") for name, text in sources.items()}
    for name, text in new.metadata["utilisation_sources"].items():
        sources[name] = [*sources.get(name, []), *text.split("; ")]
    metadata = {
        **old,
        **{name: value for name, value in new.metadata.items() if name != "clocks"},
        "source": "; ".join(dict.fromkeys([old.get("source", ""), new.metadata["source"]])),
        "utilisation_sources": {n: "; ".join(dict.fromkeys(t)) for n, t in sources.items()},
        "launches": {**old.get("launches", {}), **new.metadata["launches"]},
        "busy_spans": {**old.get("busy_spans", {}), **new.metadata.get("busy_spans", {})},
        "feature_status": {
            name: max(status, statuses.get(name, status), key=rank.index)
            for name, status in new.metadata["feature_status"].items()
        },
    }
    idle_ms = [of["idle_ms"] for of in (old, new.metadata) if "idle_ms" in of]
    if idle_ms:  # a constant of each application, whatever its clocks
        is_further = not set(new.text["application"]) <= set(table.text["application"])
        metadata["idle_ms"] = sum(idle_ms) if is_further else idle_ms[0]
    if not metadata["busy_spans"]:  # a profiler's export has none
        del metadata["busy_spans"]
    text = {name: [*table.text[name], *new.text[name]] for name in new.text}
    return Table(source, text, numbers, metadata)


def _read(
    path: Path, tool: str | None, each: bool, gpu: str | None, progress: ByteProgress
) -> tuple[FileContent, ExportLayout]:
    with open_export(path, progress) as export:
        layout = export.layout
        if tool is not None and layout.tool != tool:
            raise InputError(
                f"{path}: is of {layout.title}; import it with 'import {layout.tool}' or 'auto'"
            )
        if each and layout.key in _SUMMED_BY_THE_TOOL:
            raise InputError(f"{path}: {layout.title} sums launches up; --each cannot part them")
        content = FileContent(str(path), complaint=export.complaint)
        if layout.key in _MACHINE_READERS:
            _MACHINE_READERS[layout.key](export, content)
            return content, layout
        records = _READERS[layout.key](export, content, needed_counters(layout.tool))
        content.collect(records, each, gpu)
        content.skipped = export.skipped
    return content, layout


def _features_and_shares(
    tool: str, record: KernelRecord, run: RunConfiguration
) -> tuple[dict[str, TableFeature], dict[str, Share]]:
    peak = None
    device = find_device(run.device)
    if device is not None:
        peak = device.peak_bandwidth_gb_per_s(run.config.memory_mhz) * 1e9
    facts: dict[str, float | None] = {
        "time_s": record.time_s,
        "workgroups": record.workgroups,
        "cu_count": run.config.cu_count,
        "engine_hz": run.config.engine_mhz * 1e6,
        "peak_bytes_per_s": peak,
        "xcd_count": device.xcd_count if device else None,
        "se_count": device.se_count if device else None,
    }
    features = table_features(tool, record.counters, record.cycles, facts)
    facts |= {name: feature.value for name, feature in features.items()}
    return features, peak_shares(tool, record.counters, record.cycles, facts)


def _lack_of_traffic(tool: str, records: list[KernelRecord]) -> str:
    """What to say where no kernel has a measure of DRAM use, whatever the GPU; else nothing."""
    for record in records:
        facts = {"time_s": record.time_s, "peak_bytes_per_s": 1.0}
        if "dram_utilisation" in peak_shares(tool, record.counters, record.cycles, facts):
            return ""
    if tool not in COUNTING_TOOLS:
        return (
            "it has times and no counters: to predict, profile its kernels too, as with ncu "
            "--section SpeedOfLight (docs/profiling.md), and give both files"
        )
    return f"to predict from it, 'bottleneck' also needs {TRAFFIC_NEEDED}"


def _check_traffic(
    path: Path,
    records: list[KernelRecord],
    shares: list[dict[str, Share]],
    run: RunConfiguration,
) -> None:
    """Raise InputError where more bytes are said to pass than can; AMD's L2 counts cache hits."""
    for record, of_kernel in zip(records, shares, strict=True):
        share = of_kernel.get("dram_utilisation")
        if share is None or share.value <= LARGEST_SHARE:
            continue
        text = (
            f"{path}: '{record.kernel[:60]}': its DRAM traffic is {share.value:.2f} times what "
            f"{run.device} passes at memory={run.config.memory_mhz:g}"
        )
        device = find_device(run.device)
        if device is not None and device.vendor == "AMD":
            warnings.warn(
                f"{text}; hits of a last-level cache are in it", DataWarning, stacklevel=3
            )
        else:
            raise InputError(f"{text}; give the clock and the GPU that it ran on")


def _sources(shares: list[dict[str, Share]]) -> dict[str, str]:
    """By column from what its shares were computed, where kernels differ all of it."""
    sources: dict[str, dict[str, None]] = {}
    for of_kernel in shares:
        for name, share in of_kernel.items():
            sources.setdefault(name, {})[share.source] = None
    return {name: "; ".join(texts) for name, texts in sources.items()}


def _least_near(features: list[TableFeature]) -> TableFeature:
    """One feature over all kernels: the least near of those that have it."""
    return min(features, key=lambda feature: ("nearest", "exact", "missing").index(feature.status))


def _kernel_names(records: Sequence[KernelRecord]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries: dict[str, set[tuple[float | None, float | None]]] = {}
    for record in records:
        geometry = (record.workgroups, record.workgroup_size)
        geometries.setdefault(record.kernel, set()).add(geometry)
    return [
        record.kernel
        if len(geometries[record.kernel]) == 1
        else f"{record.kernel} [grid {record.workgroups or 0:g}, "
        f"block {record.workgroup_size or 0:g}]"
        for record in records
    ]


def _table(
    tool: str,
    records: list[KernelRecord],
    features: list[dict[str, TableFeature]],
    shares: list[dict[str, Share]],
    run: RunConfiguration,
    application: str,
) -> Table:
    rows = len(records)
    numbers = {
        "cu_count": np.full(rows, float(run.config.cu_count)),
        "engine_mhz": np.full(rows, run.config.engine_mhz),
        "memory_mhz": np.full(rows, run.config.memory_mhz),
        "time_ms": np.array([record.time_s * 1e3 for record in records]),
    }
    columns = {name: _column([of_kernel[name].value for of_kernel in features]) for name in TABLE_2}
    for name in dict.fromkeys(name for of_kernel in shares for name in of_kernel):
        of_name = [of_kernel.get(name) for of_kernel in shares]
        columns[name] = _column([None if share is None else share.value for share in of_name])
    columns["workgroups"] = _column([record.workgroups for record in records])
    columns["workgroup_size"] = _column([record.workgroup_size for record in records])
    numbers |= {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if tool == "nvprof" and "workgroups" in numbers:
        numbers["warps"] = numbers["workgroups"] * np.ceil(numbers["workgroup_size"] / 32)
    for name in dict.fromkeys(counter for record in records for counter in record.counters):
        if name not in TABLE_2 and name not in numbers:
            values = _column([record.counters.get(name) for record in records])
            numbers[name] = nvprof.in_file_units(values, run.units.get(name, ""))
    text = {
        "device": [run.device] * rows,
        "application": [application] * rows,
        "kernel": _kernel_names(records),
    }
    numbers |= _of_run(text["kernel"], records)
    return Table("import", text, numbers)


def _of_run(kernels: list[str], records: list[KernelRecord]) -> dict[str, Floats]:
    """How much of the run each row's kernel is: its launches, and their time where traced [ms]."""
    launches: dict[str, float] = dict.fromkeys(kernels, 0.0)
    total_ms: dict[str, float] = dict.fromkeys(kernels, 0.0)
    for kernel, record in zip(kernels, records, strict=True):
        launches[kernel] += record.launches
        total_ms[kernel] += record.launches * record.time_s * 1e3
    columns = {"launches": np.array([launches[kernel] for kernel in kernels])}
    if any(record.is_traced for record in records):
        columns["total_time_ms"] = _column(
            [
                total_ms[kernel] if record.is_traced else None
                for kernel, record in zip(kernels, records, strict=True)
            ]
        )
    return columns


def _idle(contents: list[FileContent]) -> dict[str, float]:
    """The GPU's idle time inside the traced run [ms], where traces give it: their mean."""
    idle_ms = [
        (content.span_s - content.busy_s) * 1e3
        for content in contents
        if content.span_s is not None and content.busy_s is not None
    ]
    return {"idle_ms": statistics.fmean(idle_ms)} if idle_ms else {}


def _column(values: Sequence[float | None]) -> Floats:
    """A column of the table, NaN where there is no value."""
    return np.array([np.nan if value is None else value for value in values])


def _launches(records: list[KernelRecord]) -> dict[str, dict[str, Any]]:
    """By kernel: the function's name, its geometry, and how many launches the row stands for."""
    launches: dict[str, dict[str, Any]] = {}
    for name, record in zip(_kernel_names(records), records, strict=True):
        before = launches[name]["launches"] if name in launches else 0
        launches[name] = {
            "function": record.kernel,
            "workgroups": record.workgroups,
            "workgroup_size": record.workgroup_size,
            "launches": before + record.launches,
        }
    return launches


def _warn(contents: list[FileContent], records: list[KernelRecord]) -> None:
    messages = []
    for content in contents:
        if content.dropped:
            messages.append(
                f"{content.source}: {content.dropped} rows without a positive time were left out"
            )
        if content.skipped:
            messages.append(
                f"{content.source}: {content.skipped} lines inside the table were the program's "
                "or the tool's output and were passed over"
            )
    if not any(record.counters for record in records):
        messages.append(
            f"{contents[0].source}: times without counters: no features; to predict, profile its "
            "kernels too (docs/profiling.md) and give both files"
        )
    for message in messages:
        warnings.warn(message, DataWarning, stacklevel=3)
