"""From the files of one run to profiles, or to a tidy table that later commands read."""

import filecmp
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.profiles import Profiles, configurations, profiles_at
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError, warn
from mlscale.files import ByteProgress, no_progress, path_of
from mlscale.readers import monitor, ncu, nsys, power, rocprof, torch_trace
from mlscale.readers.files import Form, nearest_form, open_file
from mlscale.readers.given import Given
from mlscale.readers.join import join
from mlscale.readers.launches import Facts, SummedFile, summed
from mlscale.readers.mapping import Feature, needed_counters
from mlscale.readers.run import check_clock_of_counters, cycle_rates, names_of_gpu, seen_in, set_up
from mlscale.readers.table import (
    check_traffic,
    features_of,
    run_time_s,
    table_of,
    warn_of_left_out,
    without_failed_reads,
)
from mlscale.text import without_controls

PROFILERS: tuple[Form, ...] = (*ncu.FORMS, *nsys.FORMS, *rocprof.FORMS, *torch_trace.FORMS)
FORMS: tuple[Form, ...] = (*PROFILERS, *monitor.FORMS)
_OF_ROCM = {"rocprof", "rocprofv3"}
_VENDORS = {"ncu": "NVIDIA", "nsys": "NVIDIA", **dict.fromkeys(_OF_ROCM, "AMD")}
_FROM_BEST = ("exact", "nearest", "missing")  # statuses of a feature
_BY_KERNEL = ("launches", "busy_spans", "sample_ms", "working_ms", "open_ends")


@dataclass(frozen=True)
class Imported:
    """The tidy table of a run, and what there is to say of it.

    Attributes:
        table: a row for each kernel and geometry, or for each launch; of logs for each GPU.
        tool: whose counters, or whose times, it has.
        titles: the form of each file, in words.
        config: what the run was made at; None of logs at several.
        launches: how many the rows stand for; time_ms: the time of them all.
        covered: the share of it that kernels with counters take.
        features: each feature of Table II with its least near status over the kernels.
        gpus: the numbers of the GPUs that the files have launches on, where they say them.
    """

    table: Table
    tool: str
    titles: tuple[str, ...]
    config: HardwareConfig | None = None
    launches: int = 0
    time_ms: float = 0.0
    covered: float = 0.0
    features: dict[str, Feature] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()


def import_profile(  # noqa: PLR0913, what files may not say
    files: str | Path | Sequence[str | Path],
    *,
    device: str | None = None,
    base: Mapping[str, float] | None = None,
    gpu: str | None = None,
    application: str | None = None,
    power: float | str | Path | None = None,
    interval_s: float | None = None,
    time_ms: float | None = None,
    each: bool = False,
    skip_untimed: bool = False,
) -> Profiles:
    """Read a profiler's exports of one run, or a monitor's log of it, as profiles to predict from.

    files: one file, or several of the same run: further passes, and traces for times and launches.
    The others are what the files do not say; `mlscale.readers.given.Given` says what each means.
    Raises InputError where a file cannot be read, the files contradict each other or what is given,
    or lack something; warns of what was left out.

    Example:
        profiles = mlscale.import_profile("run.csv", base={"engine_mhz": 1000, "memory_mhz": 900})
    """
    several = files if isinstance(files, Iterable) and not isinstance(files, str) else [files]
    paths = [path_of(path, "files", "a file's path or a list of such") for path in several]
    at = {} if base is None else base
    known = Given(device, at, gpu, application, power, interval_s, time_ms, each, skip_untimed)
    return read(paths, known)


def read(paths: Sequence[Path], given: Given | None = None) -> Profiles:
    """Read the files of one run as profiles; see `import_profile`. Raises InputError."""
    given = given or Given()
    imported = read_table(paths, given)
    table = imported.table
    runs = dict.fromkeys(zip(table.text["device"], configurations(table), strict=True))
    if len(runs) > 1:
        names = ", ".join(f"{device} at {config}" for device, config in runs)
        raise InputError(
            f"{table.source}: is of several GPUs or clocks, {names}; name one GPU with --gpu, and "
            "give the log of another run with --also"
        )
    [(device, config)] = runs
    return profiles_at(table, imported.config or config, device)


def read_table(
    paths: Sequence[Path], given: Given | None = None, progress: ByteProgress = no_progress
) -> Imported:
    """Read the files of one run into a tidy table: counters of one tool and traces of any.

    progress: is called with numbers of bytes as they are read. The rest is as of `read`; logs may
    be of several GPUs, and of several runs.
    """
    given = given or Given()
    if not paths:
        raise InputError("no file is given to read")
    if is_log(paths[0]):
        samples = [one for path in paths for one in monitor.read_log(path)]
        table = monitor.samples_to_table(samples, given)
        imported = Imported(table, str(table.metadata["counter_tool"]), ())
    else:
        imported = _of_profilers(paths, given, progress)
    if given.power is None:
        return imported
    return replace(imported, table=power.with_power(imported.table, given.power, given.gpu))


def is_log(path: Path) -> bool:
    """Whether a file is a monitor's log. Raises InputError where it cannot be read."""
    sheet = open_file(path, FORMS)
    return sheet is not None and sheet.form in monitor.FORMS


def _of_profilers(paths: Sequence[Path], given: Given, progress: ByteProgress) -> Imported:
    runs = [_run(path, given, progress) for path in paths]
    _refuse_copies([path for path, run in zip(paths, runs, strict=True) if run.groups])
    tool = _tool_of_counters(runs)
    kernels = join(runs, given.skip_untimed)
    first = next(run.source for run in runs if run.groups)
    seen = {**seen_in(runs), "cycles_per_us": cycle_rates(kernels)}
    is_named = given.device is not None or names_of_gpu(seen)
    if not is_named and (name := power.gpu_of_log(given.power, given.gpu)):
        warn(f"{first}: does not say the GPU; it is '{name}' by {given.power}")
        seen["device_name"] = Counter([name])
    setup = set_up(first, seen, given)
    if traces := [run.source for run in runs if run.groups and not run.has_counters]:
        check_clock_of_counters(traces[0], kernels, setup)
    kernels = without_failed_reads(first, kernels, setup)
    features = features_of(tool, kernels, setup)
    check_traffic(first, kernels, features, setup)
    programs = [run.facts.application for run in runs if run.facts.application]
    application = without_controls(given.application or (*programs, Path(first).stem)[0])
    table = table_of(first, tool, kernels, features, setup, application)
    table.metadata["source"] = ", ".join(path.name for path in paths)
    table.metadata.update(_which_gpu(runs, given.gpu))
    warn_of_left_out(runs, kernels)
    time_s = run_time_s(kernels)
    return Imported(
        table,
        tool,
        tuple(run.title for run in runs),
        setup.config,
        round(sum(kernel.launches for kernel in kernels)),
        time_s * 1e3,
        run_time_s([kernel for kernel in kernels if kernel.counters]) / time_s,
        features.of_run(),
        tuple(sorted({gpu for run in runs for gpu in run.gpus})),
    )


def _refuse_copies(paths: Sequence[Path]) -> None:
    """Raise InputError where two files hold the same: neither a pass nor a run of its own."""
    for n, path in enumerate(paths):
        for other in paths[:n]:
            if filecmp.cmp(path, other, shallow=False):
                raise InputError(
                    f"{path}: holds the same as {other}; a file is no further pass or run of itself"
                )


def _run(path: Path, given: Given, progress: ByteProgress = no_progress) -> SummedFile:
    """One file of a profiler, summed up. Raises InputError."""
    sheet = open_file(path, FORMS, progress)
    if sheet is None or sheet.form.read is None:
        near = nearest_form(path, PROFILERS)
        nearest = f" ({near})" if near else ""
        raise InputError(
            f"{path}: is nothing that mlscale knows{nearest}; docs/profiling.md has the commands "
            "that write a profile, docs/sampled-logs.md those of monitors' logs"
        )
    if sheet.form in monitor.FORMS:
        raise InputError(
            f"{path}: is a log of {sheet.form.title}, no profiler's export; give it alone, or as "
            "the power of an export (--power)"
        )
    facts = Facts()
    launches = sheet.form.read(sheet, facts, needed_counters(sheet.form.tool))
    run = summed(
        launches, str(path), sheet.form.tool, sheet.form.title, facts, given.each, given.gpu
    )
    return replace(run, skipped=sheet.skipped)


def _tool_of_counters(runs: Sequence[SummedFile]) -> str:
    """The tool whose counters these are, or whose times. Raises InputError on unlike files."""
    first = next((run for run in runs if run.has_counters), runs[0])
    for run in runs:
        is_one_tool = run.tool == first.tool or {run.tool, first.tool} == _OF_ROCM
        makers = {_VENDORS.get(run.tool), _VENDORS.get(first.tool)} - {None}
        if not is_one_tool and (run.has_counters or len(makers) > 1):
            raise InputError(
                f"{run.source}: is of {run.tool}, {first.source} of {first.tool}; a table has "
                "counters of one tool, beside them traces of the same maker's GPUs"
            )
    return first.tool


def _which_gpu(runs: Sequence[SummedFile], gpu: str | None) -> dict[str, list[str]]:
    """The GPU as metadata name it: by the traces' numbers, or by one that no trace has.

    Such a one is of a log, or of the machine where CUDA_VISIBLE_DEVICES renumbers.
    """
    traced = list(dict.fromkeys(run.gpu for run in runs if run.gpu))
    if gpu is not None and gpu not in traced:
        return {"gpus": [gpu]}
    return {"profiled_gpus": traced} if traced else {}


def read_again(
    paths: Sequence[Path], trace: Path, first: Profiles, at: HardwareConfig, gpu: str | None = None
) -> Table:
    """Read the trace of a further run of an application, under the names that its counters have.

    paths: the files of the first run, of which only the counters are used. trace: of the further
    run; it may also be counters, if the times of the first run are of its counters too. at: what
    the GPU was set to then. Raises InputError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the first reading told them
        runs = {path: _run(path, Given(gpu=gpu)) for path in paths}
        _refuse_copies([*(path for path, run in runs.items() if run.groups), trace])
        counting = [path for path, run in runs.items() if run.has_counters]
        files, base = [*counting, trace], first.base
        if _run(trace, Given(gpu=gpu)).has_counters:
            if len(counting) < sum(bool(run.groups) for run in runs.values()):
                raise InputError(
                    f"{trace}: has counters, beside which times are others than a trace's; give a "
                    "trace of the further run too"
                )
            files, base = [trace], at
        table = _of_profilers(files, Given(first.device, base.as_dict(), gpu), no_progress).table
    settings = {axis: np.full(len(table), value) for axis, value in at.as_dict().items()}
    return replace(table, numbers=table.numbers | settings)


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
    metadata["source"] = _each_once([old.get("source", ""), new["source"]])
    sources = [old.get("utilisation_sources", {}), new["utilisation_sources"]]
    metadata["utilisation_sources"] = {
        name: _each_once(
            text for said in sources if name in said for text in said[name].split("; ")
        )
        for name in {**sources[0], **sources[1]}
    }
    statuses = old.get("feature_status", {})
    metadata["feature_status"] = {
        name: max(status, statuses.get(name, status), key=_FROM_BEST.index)
        for name, status in new["feature_status"].items()
    }
    for name in _BY_KERNEL:
        if of_kernels := {**old.get(name, {}), **new.get(name, {})}:
            metadata[name] = of_kernels
    for name in ("gpus", "profiled_gpus"):
        if gpus := [*old.get(name, []), *new.get(name, [])]:
            metadata[name] = list(dict.fromkeys(gpus))
    return metadata


def _each_once(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def repeated_rows(table: Table, new: Table) -> int:
    """How many of the new rows are of a kernel and configuration that the table has already."""
    known, keys = (
        list(
            zip(
                of.text["application"], of.text["kernel"],
                *(of.numbers[axis].tolist() for axis in AXES), strict=True,
            )
        )
        for of in (table, new)
    )  # fmt: skip
    return sum(key in set(known) for key in keys)
