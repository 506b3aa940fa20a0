"""Monitors' logs to a profile table: a row for each GPU and log, averaged over its busy span."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import is_finite
from mlscale.data.device_table import devices_named, facts_to_carry, find_device
from mlscale.data.grid import AXES, SHORT_NAMES
from mlscale.data.plausibility import check_unit
from mlscale.data.profiles import configurations
from mlscale.data.sampled import SHARES
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.profilers.configuration import (
    require_settings,
    run_configuration,
    usual_memory,
)
from mlscale.profilers.sampled.busy import BusySpan, busy_span, warn_of_holes
from mlscale.profilers.sampled.formats import read_logs
from mlscale.profilers.sampled.log import SampledLog
from mlscale.profilers.sampled.power import check_board, one_gpu, warn_of_sensor
from mlscale.profilers.sampled.same_gpu import check_tool

_SAME_CLOCK = 0.01  # by which the sampled clock may differ from the one that was set
_NAME_ONE = "name one with --gpu, and ask for each"
_STEADY = 1.05  # of the highest over the lowest clock in four of five samples


@dataclass(frozen=True)
class SampledTable:
    """A profile table of sampled runs, and how each row came about.

    rows: of the table, each with the log and the GPU in words; spans: the busy span of each.
    """

    table: Table
    tool: str
    rows: tuple[str, ...]
    spans: tuple[BusySpan, ...]


@dataclass(frozen=True)
class RunFacts:
    """What the user says of the runs, as far as the logs do not; InputError on what cannot be.

    Attributes:
        device: a key of the device table, or any name.
        base: 'cu_count', 'engine_mhz' and 'memory_mhz' [MHz], as they were set.
        application: the name of all rows; None takes each file's stem.
        gpu: the index of one GPU; None takes every GPU that is not idle throughout.
        interval_s: between two samples of a log without time stamps [s].
        time_ms: the run's true time [ms]; None takes the busy span's.
    """

    device: str | None = None
    base: Mapping[str, float] = field(default_factory=dict)
    application: str | None = None
    gpu: str | None = None
    interval_s: float | None = None
    time_ms: float | None = None

    def __post_init__(self) -> None:
        require_settings(self.base)
        for name in ("interval_s", "time_ms"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, not {value}")


def import_logs(
    paths: Sequence[Path], tool: str | None = None, facts: RunFacts | None = None
) -> SampledTable:
    """Read monitors' logs, each of one run, as profiles.

    tool: one of TOOLS, such as 'dcgm' or 'nvidia-smi'; None knows it by the files. GPUs of a log
    that ran side by side at nearly one engine clock are at their mean. Raises InputError; warns of
    idle GPUs, of clocks that differ from those that were set, and of gaps.
    """
    facts = facts or RunFacts()
    logs: list[SampledLog] = []
    tools: dict[str, Path] = {}
    for path in paths:
        form, of_file = read_logs(path, tool)
        check_tool(str(path), form, facts.device or "")
        tools.setdefault(form.tool, path)
        logs += [one_gpu(of_file, path, facts.gpu)] if facts.gpu else of_file
    if len(tools) > 1:
        first, second = list(tools)[:2]
        raise InputError(f"{tools[second]}: is of {second}, {tools[first]} of {first}; import one")
    logs = _busy_ones(logs)
    several = Counter(log.source for log in logs)
    rows = _side_by_side(
        [_row(_with_times(log, facts.interval_s), facts, several[log.source] > 1) for log in logs]
    )
    columns = dict.fromkeys(column for row in rows for column in row.numbers)
    table = Table(
        source=str(paths[0]),
        text={
            "device": [row.device for row in rows],
            "application": [row.application for row in rows],
            "kernel": [row.kernel for row in rows],
        },
        numbers={
            column: np.array([row.numbers.get(column, math.nan) for row in rows])
            for column in columns
        },
        metadata=_metadata(next(iter(tools)), rows, facts),
    )
    return SampledTable(
        table=table,
        tool=next(iter(tools)),
        rows=tuple(str(row.log) for row in rows),
        spans=tuple(row.span for row in rows),
    )


def logs_at_one_clock(
    paths: Sequence[Path], tool: str | None = None, facts: RunFacts | None = None
) -> Table:
    """The profiles of logs at one configuration, to predict from; the rest is as of `import_logs`.

    Raises InputError where GPUs of a log are of several kinds, where some have no power, and on
    logs or GPUs at several clocks.
    """
    table = import_logs(paths, tool, facts).table
    if len(paths) == 1:
        _refuse_power_of_some(table)
        _refuse_several_gpus(table)
    elif len(set(configurations(table))) > 1:
        raise InputError(
            f"{paths[0]} and {paths[1]}: are logs at different clocks; give one, and the other "
            "with --also"
        )
    return table


def _refuse_power_of_some(table: Table) -> None:
    """Raise InputError where GPUs of a log have a power and others none, as dies of an MI250."""
    powers = table.numbers.get("power_w", np.zeros(len(table)))
    gpus = np.array(table.metadata["gpus"])
    if (without := gpus[np.isnan(powers)]).size:
        raise InputError(
            f"{table.source}: says no power of GPU {', '.join(without)}, but of "
            f"{', '.join(gpus[~np.isnan(powers)])}; {_NAME_ONE} (of an MI250 or MI250X the first "
            "die has the power of both)"
        )


def _refuse_several_gpus(table: Table) -> None:
    """Raise InputError where the GPUs of a log are of several kinds, or ran at several clocks."""
    if len(keys := sorted(set(table.text["device"]))) > 1:
        raise InputError(
            f"{table.source}: is of several kinds of GPU, {', '.join(keys)}; {_NAME_ONE}"
        )
    low, high = (end(table.numbers["engine_mhz"]) for end in (np.min, np.max))
    if high > low:
        raise InputError(
            f"{table.source}: its GPUs ran at engine clocks from {low:g} to {high:g} MHz; "
            f"{_NAME_ONE}"
        )


@dataclass(frozen=True)
class _Row:
    log: SampledLog
    span: BusySpan
    device: str
    application: str
    kernel: str
    numbers: dict[str, float]


def _side_by_side(rows: list[_Row]) -> list[_Row]:
    """Rows of GPUs of one kind and log at engine clocks that are nearly one: at their mean."""
    clocks: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        clocks.setdefault((row.log.source, row.device), []).append(row.numbers["engine_mhz"])
    common = {
        log: float(round(sum(own) / len(own)))
        for log, own in clocks.items()
        if min(own) < max(own) <= (1 + _SAME_CLOCK) * min(own)
    }
    return [
        replace(row, numbers={**row.numbers, "engine_mhz": common[log]}) if log in common else row
        for row in rows
        for log in [(row.log.source, row.device)]
    ]


def _busy_ones(logs: list[SampledLog]) -> list[SampledLog]:
    """Those with a busy span; the others are told. Raises InputError where none has one."""
    busy = []
    idle = []
    for log in logs:
        try:
            busy_span(log)
        except InputError as error:
            idle.append(str(error))
        else:
            busy.append(log)
    if not busy:
        raise InputError(idle[0])
    for reason in idle:
        warn(f"{reason}; it gets no row")
    return busy


def _with_times(log: SampledLog, interval_s: float | None) -> SampledLog:
    if interval_s is None:
        return log
    if log.seconds is not None:
        raise InputError(f"{log.source}: has time stamps; leave --interval away")
    return replace(log, seconds=interval_s * np.arange(len(log), dtype=np.float64))


def _row(log: SampledLog, facts: RunFacts, of_several: bool) -> _Row:
    span = busy_span(log)
    device = find_device(log.name or "") or find_device(facts.device or "")
    for axis in AXES[1:]:
        if log.has(axis):
            key = device.key if device else ""
            check_unit(f"{log}: {axis}", key, axis, _mean_clock(log, span, axis))
    clocks = {axis: _clock(log, span, axis, facts.base.get(axis)) for axis in AXES[1:]}
    settings = {**facts.base, **{axis: mhz for axis, mhz in clocks.items() if mhz is not None}}
    if "memory_mhz" not in settings and device and (mhz := device.working_memory_mhz):
        settings["memory_mhz"] = mhz
        only = "only one that" if len(device.memory_clocks_mhz()) == 1 else "highest that"
        warn(f"{log}: does not say memory_mhz; {mhz:g} is the {only} '{device.key}' offers")
    time_ms = facts.time_ms or span.time_ms
    flags = _lacking_flags(log, facts.device, settings, needs_time=time_ms is None)
    if flags or time_ms is None:
        raise InputError(f"{log.source}: does not say all that is needed; give {' '.join(flags)}")
    warn_of_holes(log, span)
    names = Counter[str | float]([log.name] if log.name else [])
    run = run_configuration(log.source, {"device_name": names}, facts.device, settings)
    numbers = {**run.config.as_dict(), "time_ms": time_ms}
    for name in ("power_w", *SHARES):
        if name in log.columns and not math.isnan(mean := span.mean(log.columns[name])):
            numbers[name] = mean
    if "power_w" in numbers:
        check_board(str(log), run.device, numbers["power_w"])
        warn_of_sensor(str(log), run.device)
    application = facts.application or Path(log.source).stem
    kernel = f"{application} [GPU {log.gpu}]" if of_several else application
    return _Row(log, span, run.device, application, kernel, numbers)


def _clock(log: SampledLog, span: BusySpan, axis: str, requested: float | None) -> float | None:
    """The mean clock [MHz] while the GPU worked, or the one that was set where both are one."""
    mean = _mean_clock(log, span, axis) if axis in log.columns else math.nan
    if math.isnan(mean):
        return requested
    given = requested
    if given is None and f"{axis}_requested" in log.columns:
        requested = span.working_mean(log.columns[f"{axis}_requested"])
    if requested is not None and abs(mean / requested - 1) > _SAME_CLOCK:
        working = log.columns[axis][span.working]
        warn(
            f"{log}: {axis} was set to {requested:g}, but ran at {mean:.0f} on average "
            f"({np.nanmin(working):g} to {np.nanmax(working):g}); the row is at {mean:.0f}"
        )
        return float(round(mean))
    low, high = span.working_middle(log.columns[axis])
    if high > _STEADY * low:
        warn(
            f"{log}: {axis} wanders, from {low:g} to {high:g} in four of five samples: a power or "
            f"thermal limit, short pauses, or runs at several clocks, each of which needs a log; "
            f"the row is at {mean:.0f}; a locked clock tells more"
        )
    return float(round(mean)) if given is None else given


def _mean_clock(log: SampledLog, span: BusySpan, axis: str) -> float:
    """The mean clock [MHz] while the GPU worked.

    Of the memory clock it is the median: a memory has few clocks, and none between two of them.
    """
    how = span.working_median if axis == "memory_mhz" else span.working_mean
    return how(log.columns[axis])


def _lacking_flags(
    log: SampledLog, device: str | None, settings: Mapping[str, float], needs_time: bool
) -> list[str]:
    """The flags that give all that neither the log nor the user has said."""
    name = device or log.name
    lacking = [axis for axis in AXES if axis not in settings]
    if "cu_count" in lacking and (name is None or find_device(name)):
        lacking.remove("cu_count")
    flags = [] if name else ["--device NAME (and --base cu=… if the device table lacks it)"]
    if lacking:
        flags.append("--base " + ",".join(f"{SHORT_NAMES[axis]}=…" for axis in lacking))
        flags[-1] += usual_memory(name) if "memory_mhz" in lacking else ""
    if "cu_count" in lacking:
        possible = " or ".join(devices_named(name or "")) or "a GPU of 'mlscale devices list'"
        flags.append(
            f"(cu: its SMs or compute units, as '{name}' is not in the device table; if "
            f"it is {possible}, --device instead)"
        )
    if needs_time and len(log) == 1:
        flags.append("--time MS (of the whole run: this log is one sample)")
    elif needs_time:
        flags.append("--interval SECONDS (between two samples)")
    return flags


def _metadata(tool: str, rows: Sequence[_Row], facts: RunFacts) -> dict[str, Any]:
    titles = dict.fromkeys(row.log.title for row in rows)
    shares = [name for name in SHARES if any(name in row.numbers for row in rows)]
    has_power = any("power_w" in row.numbers for row in rows)
    timed_by_log = rows if facts.time_ms is None else ()
    periods_ms = [(row, 1e3 * s) for row in timed_by_log if (s := row.span.period_s) is not None]
    return {
        **facts_to_carry(rows[0].device),
        "origin": "measured",
        "profile_kind": "sampled",
        "counter_tool": tool,
        "power_kind": "board" if has_power else None,
        "gpus": [row.log.gpu for row in rows],
        "source": ", ".join(dict.fromkeys(Path(row.log.source).name for row in rows)),
        "utilisation_sources": {name: f"mean of {', '.join(titles)}" for name in shares},
        "busy_spans": {row.kernel: f"{Path(row.log.source).name}: {row.span}" for row in rows},
        "sample_ms": {row.kernel: round(ms, 3) for row, ms in periods_ms},
        "working_ms": {row.kernel: round(ms * row.span.working.size, 3) for row, ms in periods_ms},
        "open_ends": {
            row.kernel: list(row.span.open_ends) for row in timed_by_log if row.span.open_ends
        },
        "feature_status": {},
        "launches": {},
    }
