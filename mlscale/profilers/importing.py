"""A profiler's files to a tidy table: one kernel a row, at one configuration, with Table II."""

import statistics
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from os import PathLike
from pathlib import Path

import numpy as np

from mlscale.data.device_table import facts_to_carry
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles, only_config, profiles_at
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError, require_type, warn
from mlscale.files import ByteProgress, no_progress, path_of
from mlscale.profilers.configuration import (
    names_of_gpu,
    run_configuration,
)
from mlscale.profilers.counted_clock import check_counted_clock
from mlscale.profilers.cycle_clock import cycle_rates
from mlscale.profilers.exports.layouts import ExportLayout
from mlscale.profilers.exports.reader import Export, NoTableError, open_export
from mlscale.profilers.joining import join
from mlscale.profilers.kernel_features import (
    check_traffic,
    features_of_run,
    lack_of_traffic,
    share_sources,
    with_features,
)
from mlscale.profilers.launch_batch import LaunchBatch, LaunchRecord
from mlscale.profilers.launches import FileContent, facts_of
from mlscale.profilers.left_out import covered_share, run_time_s, warn_of_left_out
from mlscale.profilers.mapping import TableFeature, needed_counters
from mlscale.profilers.run_table import launches_by_kernel, run_table
from mlscale.profilers.sampled import (
    RunFacts,
    gpu_of_log,
    join_power,
    log_format,
    logs_at_one_clock,
)
from mlscale.profilers.tools import ncu, nsys, pytorch, rocpd, rocprof
from mlscale.text import without_controls

_Reader = Callable[
    [Export, FileContent, Collection[str]], Iterator[LaunchRecord] | Iterator[LaunchBatch]
]
_READERS: dict[str, _Reader] = {
    "ncu-details": ncu.read_rows,
    "ncu-raw": ncu.read_raw,
    "ncu-text": ncu.read_text,
    "rocprof": rocprof.read_wide,
    "rocprofv3-counters": rocprof.read_long,
    "rocprofv3-trace": rocprof.read_trace,
    "rocprofv3-sqlite": rocpd.read_database,
    "nsys-sum": nsys.read_sum,
    "nsys-trace": nsys.read_trace,
    "nsys-sqlite": nsys.read_sqlite,
    "torch-trace": pytorch.read_trace,
}
_MACHINE_READERS: dict[str, Callable[[Export, FileContent], None]] = {
    "rocprof-machine": rocprof.read_machine,
    "rocprofv3-agents": rocprof.read_agents,
}
_SUMMED_BY_THE_TOOL = ("nsys-sum",)
_OF_ROCM = {"rocprof", "rocprofv3"}
_BESIDE_OF_ROCM = (
    "rocprofv3's …_agent_info.csv, or rocprof-compute's sysinfo.csv, given beside it says the GPU"
)
_VENDORS = {  # a tool of several makers' GPUs is not here
    **dict.fromkeys(("ncu", "nsys"), "NVIDIA"),
    **dict.fromkeys(_OF_ROCM, "AMD"),
}


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
        time_ms: the time of them all.
        covered: the share of it that kernels with counters take.
        features: each feature of Table II with its least near status over the kernels.
    """

    table: Table
    tool: str
    titles: tuple[str, ...]
    config: HardwareConfig
    kernels: int
    launches: int
    time_ms: float
    covered: float
    features: dict[str, TableFeature]


def import_profile(  # noqa: PLR0913 - what the files do not say, each by its name
    files: str | Path | Sequence[str | Path],
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    tool: str | None = None,
    application: str | None = None,
    each: bool = False,
    *,
    gpu: str | None = None,
    skip_untimed: bool = False,
    power: float | str | Path | None = None,
    interval_s: float | None = None,
    time_ms: float | None = None,
) -> Profiles:
    """Read a profiler's exports of one run, or a monitor's log of it, as profiles to predict from.

    files: one file, or several of the same run: further passes, and traces for times and launches.
    device: a key of the device table, or any name; needed where the files do not say it.
    base: what the GPU was set to as far as the files do not say it: 'cu_count', 'engine_mhz'
    [MHz] and 'memory_mhz' [MHz]. tool: one of TOOLS, as 'ncu' or 'nsys'; None knows it by the
    files. application: of all kernels; None takes the program that was profiled.
    each: a kernel's profile is the median over its launches in place of their mean. gpu: whose
    launches to take of a trace of several GPUs, by its number there. skip_untimed: kernels without
    a time are left out. power: board power of the run [W], or a monitor's log of it, whose mean
    while the GPU works is taken. interval_s: between two samples [s] of a log without times.
    time_ms: the true time of a log's run [ms]; None takes that of its busy span. Raises InputError
    where a file cannot be read, the files contradict each other, or an argument is of no use to
    them.

    Example:
        profiles = mlscale.import_profile("run.csv", base={"engine_mhz": 1000, "memory_mhz": 900})
    """
    given = {"device": device, "tool": tool, "application": application}
    for argument, text in given.items():
        require_type(argument, text, str | None, "text")
    require_type("gpu", gpu, str | None, "text, such as '0'")
    require_type("power", power, Real | str | PathLike | None, "watts or the path of a log")
    several = files if isinstance(files, Iterable) and not isinstance(files, str) else [files]
    paths = [path_of(path, "files", "a file's path or a list of such") for path in several]
    if paths and log_format(paths[0]) is not None:
        if each or skip_untimed:
            raise InputError(f"{paths[0]}: is a log of runs; each and skip_untimed are of launches")
        facts = RunFacts(device, base or {}, application, gpu, interval_s, time_ms)
        log = logs_at_one_clock(paths, tool, facts)
        log = log if power is None else join_power(log, power, gpu)
        return profiles_at(log, only_config(log), log.text["device"][0])
    if paths and (interval_s is not None or time_ms is not None):
        raise InputError(f"{paths[0]}: is no monitor's log; interval_s and time_ms are of logs")
    imported = import_exports(
        paths,
        tool,
        device=device,
        base=base,
        application=application,
        each=each,
        gpu=gpu,
        skip_untimed=skip_untimed,
        power=power,
    )
    table = imported.table if power is None else join_power(imported.table, power, gpu)
    return profiles_at(table, imported.config, table.text["device"][0])


def import_exports(  # noqa: PLR0913 - what the files do not say, each by its name
    paths: Sequence[Path],
    tool: str | None = None,
    *,
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    application: str | None = None,
    each: bool = False,
    gpu: str | None = None,
    skip_untimed: bool = False,
    power: float | str | Path | None = None,
    needs_peaks: bool = False,
    progress: ByteProgress = no_progress,
) -> ImportedTable:
    """Read the files of one run, counters of one tool and traces of any, into a tidy table.

    each: a row for each launch, as repetitions, in place of the mean. power: as in import_profile,
    but not joined to the table: its log names the GPU where nothing else does. needs_peaks:
    refuse a GPU whose peaks are not known, if any kernel has counters. progress: is called with
    the number of bytes read. The rest is as in import_profile. Raises InputError; warns of what was
    left out.
    """
    if not paths:
        raise InputError("no file is given to import")
    contents: list[FileContent] = []
    layouts: list[ExportLayout] = []
    for path in paths:
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise InputError(f"{path}: is given twice; a file is no further pass of itself")
        try:
            content, layout = _read(path, each, gpu, progress)
        except NoTableError:
            if (form := log_format(path)) is None:
                raise
            raise InputError(
                f"{path}: is a log of {form.title}, no profiler's export; give it alone, or as the "
                "power of an export (--power)"
            ) from None
        contents.append(content)
        layouts.append(layout)
    counter_tool = _counter_tool(contents, layouts, tool)
    records = join(contents, skip_untimed)
    first = Path(next(content.source for content in contents if content.groups))
    lacks = lack_of_traffic(counter_tool, records)
    facts = facts_of(contents) | {"cycles_per_us": cycle_rates(records)}
    if device is None and not names_of_gpu(facts) and (name := gpu_of_log(power, gpu)):
        warn(f"{first}: does not say the GPU; it is '{name}' by {power}")
        facts["device_name"] = Counter([name])
    if device is None and not names_of_gpu(facts) and counter_tool in _OF_ROCM:
        lacks = "; ".join(filter(None, (_BESIDE_OF_ROCM, lacks)))
    needs_peaks = needs_peaks and any(record.counters for record in records)
    run = run_configuration(str(first), facts, device, base or {}, lacks, needs_peaks)
    check_counted_clock(contents, records, run)
    records = with_features(counter_tool, records, run)
    check_traffic(first, records, run)
    of_run = features_of_run(records)
    programs = [content.application for content in contents if content.application]
    name = without_controls(application or next(iter(programs), first.stem))
    table = run_table(str(first), counter_tool, records, run, name)
    table.metadata.update(
        origin="measured",
        counter_tool=counter_tool,
        source=", ".join(path.name for path in paths),
        feature_status={name: feature.status for name, feature in of_run.items()},
        utilisation_sources=share_sources(records),
        clocks={"requested": run.requested, "observed": run.observed},
        launches=launches_by_kernel(records),
        **facts_to_carry(run.device),
        **_beside_each_other(contents),
    )
    table.metadata.update(_which_gpu(contents, gpu))
    warn_of_left_out(contents, records)
    return ImportedTable(
        table=table,
        tool=counter_tool,
        titles=tuple(layout.title for layout in layouts),
        config=run.config,
        kernels=len(set(table.text["kernel"])),
        launches=round(sum(record.launches for record in records)),
        time_ms=run_time_s(records) * 1e3,
        covered=covered_share(records),
        features=of_run,
    )


def _which_gpu(contents: Sequence[FileContent], gpu: str | None) -> dict[str, list[str]]:
    """The GPU as metadata name it: by the traces' numbers, or by one that no trace has.

    Such a gpu is of a monitor's log, or of the machine where CUDA_VISIBLE_DEVICES renumbers.
    """
    traced = list(dict.fromkeys(content.gpu for content in contents if content.gpu))
    if gpu is not None and gpu not in traced:
        return {"gpus": [gpu]}
    return {"profiled_gpus": traced} if traced else {}


def import_again(
    paths: Sequence[Path],
    trace: Path,
    device: str,
    base: HardwareConfig,
    at: HardwareConfig,
    gpu: str | None = None,
) -> Table:
    """Read the trace of a further run of an application, under the names that its counters have.

    paths: the files that the first run, at `base`, was imported from; only their counters are
    used. trace: the file of the further run; it may also be counters, if the times of the
    first run are of its counters too. at: what the GPU was set to in the further run. Where
    `trace` has no counters, the table has those of the first run. gpu: as in import_profile.
    Raises InputError.
    """
    first = {path: _read(path, False, gpu, no_progress)[0] for path in paths}
    counting = [path for path, content in first.items() if content.has_counters]
    files, clocks = [*counting, trace], base
    if _read(trace, False, gpu, no_progress)[0].has_counters:
        of_kernels = [path for path, content in first.items() if content.groups]
        if traced := [path for path in of_kernels if path not in counting]:
            raise InputError(
                f"{trace}: has counters, beside which times are others than those of {traced[0]}; "
                "give a trace of the further run too"
            )
        files, clocks = [trace], at
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the import of the first run told them
        table = import_exports(files, device=device, base=clocks.as_dict(), gpu=gpu).table
    settings = {axis: np.full(len(table), value) for axis, value in at.as_dict().items()}
    return replace(table, numbers=table.numbers | settings)


def _read(
    path: Path, each: bool, gpu: str | None, progress: ByteProgress
) -> tuple[FileContent, ExportLayout]:
    with open_export(path, progress) as export:
        layout = export.layout
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


def _counter_tool(
    contents: list[FileContent], layouts: list[ExportLayout], tool: str | None
) -> str:
    """The tool whose counters these are, or whose times where there are none.

    tool: the one that the user named. Raises InputError where the files do not go together.
    """
    files = list(zip(contents, layouts, strict=True))
    counting = [file for file in files if file[0].has_counters] or files
    first, layout = counting[0]
    if tool is not None and tool not in (of_file.tool for _, of_file in counting):
        raise InputError(
            f"{first.source}: is of {layout.title}; import it with 'import {layout.tool}' or 'auto'"
        )
    for content, other in files:
        one_tool = other.tool == layout.tool or {other.tool, layout.tool} == _OF_ROCM
        vendors = {_VENDORS.get(other.tool), _VENDORS.get(layout.tool)} - {None}
        if not one_tool and (content.has_counters or len(vendors) > 1):
            raise InputError(
                f"{content.source}: is of {other.tool}, {first.source} of {layout.tool}; a table "
                "has counters of one tool, beside them traces of the same maker's GPUs"
            )
    return layout.tool


def _beside_each_other(contents: list[FileContent]) -> dict[str, float]:
    """What traces say of when kernels ran, the mean over them; nothing where none says it.

    idle_ms: in which no kernel ran; hidden_exchange_ms: see FileContent, where there is any.
    """
    idle_s, hidden_s = [], []
    for content in contents:
        if content.span_s is not None and content.busy_s is not None:
            idle_s.append(content.span_s - content.busy_s)
            hidden_s.append(content.hidden_exchange_s)
    if not idle_s:
        return {}
    hidden = {"hidden_exchange_ms": statistics.fmean(hidden_s) * 1e3} if any(hidden_s) else {}
    return {"idle_ms": statistics.fmean(idle_s) * 1e3, **hidden}
