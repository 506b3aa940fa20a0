"""From the files of one run to profiles, or to a tidy table that later commands read."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles, configurations, profiles_at
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.files import ByteProgress, no_progress
from mlscale.readers.files import open_file
from mlscale.readers.given import Given
from mlscale.readers.join import join
from mlscale.readers.launches import Facts, SummedFile, summed
from mlscale.readers.mapping import Feature, needed_counters
from mlscale.readers.run import check_clock_of_counters, cycle_rates, seen_in, set_up
from mlscale.readers.table import (
    check_traffic,
    features_of,
    run_time_s,
    table_of,
    warn_of_left_out,
    without_failed_reads,
)
from mlscale.text import without_controls

_ROCM = {"rocprof", "rocprofv3"}
_VENDORS = {"ncu": "NVIDIA", "nsys": "NVIDIA", **dict.fromkeys(_ROCM, "AMD")}


@dataclass(frozen=True)
class Imported:
    """The tidy table of a run, and what there is to say of it.

    Attributes:
        table: a row for each kernel and geometry, or for each launch; of logs for each GPU.
        tool: whose counters, or whose times, it has.
        titles: what each file is, in words.
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
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    at = {} if base is None else base
    return read(
        paths, Given(device, at, gpu, application, power, interval_s, time_ms, each, skip_untimed)
    )


def read(paths: Sequence[Path], given: Given | None = None) -> Profiles:
    """Read the files of one run as profiles; see `import_profile`. Raises InputError."""
    return profiles_of(read_table(paths, given))


def profiles_of(imported: Imported) -> Profiles:
    """The profiles that a run's table holds. Raises InputError on one of several GPUs or clocks."""
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
        from mlscale.readers.log_table import samples_to_table
        from mlscale.readers.monitor import read_log

        table = samples_to_table([one for path in paths for one in read_log(path)], given)
        imported = Imported(table, str(table.metadata["counter_tool"]), ())
    else:
        imported = _read_exports(paths, given, progress)
    if given.power is None:
        return imported
    from mlscale.readers.power import with_power

    return replace(imported, table=with_power(imported.table, given.power, given.gpu))


def is_log(path: Path) -> bool:
    """Whether a file is a monitor's log. Raises InputError where it cannot be read."""
    sheet = open_file(path)
    return sheet is not None and sheet.kind.is_log


def _read_exports(paths: Sequence[Path], given: Given, progress: ByteProgress) -> Imported:
    """The table of profilers' files."""
    runs = [sum_up(path, given, progress) for path in paths]
    _refuse_copies([run for run in runs if run.groups])
    tool = _tool_of_counters(runs)
    kernels = join(runs, given.skip_untimed)
    first = next(run.source for run in runs if run.groups)
    seen = {**seen_in(runs), "cycles_per_us": cycle_rates(kernels)}
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
    table.metadata.update(_gpu_metadata(runs, given.gpu))
    warn_of_left_out(runs, kernels)
    time_s = run_time_s(kernels)
    return Imported(
        table,
        tool,
        tuple(run.kind.title for run in runs),
        setup.config,
        round(sum(kernel.launches for kernel in kernels)),
        time_s * 1e3,
        run_time_s([kernel for kernel in kernels if kernel.counters]) / time_s,
        features.least_near(),
        tuple(sorted({gpu for run in runs for gpu in run.gpus})),
    )


def sum_up(path: Path, given: Given, progress: ByteProgress = no_progress) -> SummedFile:
    """The launches of a profiler's file, summed up. Raises InputError."""
    sheet = open_file(path, progress)
    if sheet is None:
        from mlscale.readers.headers import why_no_log

        raise InputError(f"{path}: {why_no_log(path)}")
    if sheet.kind.is_benchmark:
        raise InputError(
            f"{path}: is a result of {sheet.kind.title}; give it with the log of power and clocks "
            "of its run, and both of a run at a second clock: mlscale advise RESULT LOG --also "
            "RESULT LOG"
        )
    if sheet.kind.is_log:
        raise InputError(
            f"{path}: is a log of {sheet.kind.title}, no profiler's export; give it alone, or as "
            "the power of an export (--power)"
        )
    facts = Facts()
    launches = sheet.kind.reader()(sheet, facts, needed_counters(sheet.kind.tool))
    return summed(launches, str(path), sheet.kind, facts, given.each, given.gpu)


def _refuse_copies(runs: Sequence[SummedFile]) -> None:
    """Raise InputError where two files hold the same launches: neither a pass nor a run of its own.

    Times and counters of two runs are never the same to the last digit.
    """
    for n, run in enumerate(runs):
        for other in runs[:n]:
            if run.groups == other.groups:
                raise InputError(
                    f"{run.source}: holds the same as {other.source}; a file is no further pass or "
                    "run of itself"
                )


def _tool_of_counters(runs: Sequence[SummedFile]) -> str:
    """The tool whose counters these are, or whose times. Raises InputError on unlike files."""
    first = next((run for run in runs if run.has_counters), runs[0])
    tool = first.kind.tool
    for run in runs:
        other = run.kind.tool
        is_one_tool = other == tool or {other, tool} == _ROCM
        makers = {_VENDORS.get(other), _VENDORS.get(tool)} - {None}
        if not is_one_tool and (run.has_counters or len(makers) > 1):
            raise InputError(
                f"{run.source}: is of {other}, {first.source} of {tool}; a table has counters of "
                "one tool, beside them traces of the same maker's GPUs"
            )
    return tool


def _gpu_metadata(runs: Sequence[SummedFile], gpu: str | None) -> dict[str, list[str]]:
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
        runs = {path: sum_up(path, Given(gpu=gpu)) for path in paths}
        further = sum_up(trace, Given(gpu=gpu))
        _refuse_copies([*(run for run in runs.values() if run.groups), further])
        counting = [path for path, run in runs.items() if run.has_counters]
        files, base = [*counting, trace], first.base
        if further.has_counters:
            if len(counting) < sum(bool(run.groups) for run in runs.values()):
                raise InputError(
                    f"{trace}: has counters, beside which times are others than a trace's; give a "
                    "trace of the further run too"
                )
            files, base = [trace], at
        given = Given(first.device, base.as_dict(), gpu)
        table = _read_exports(files, given, no_progress).table
    settings = {axis: np.full(len(table), value) for axis, value in at.as_dict().items()}
    return replace(table, numbers=table.numbers | settings)
