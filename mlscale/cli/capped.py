"""Advice on a power cap from runs that were read under caps, of which no file has the clock."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.advice.answer import PlainAnswer, RunGoal, answer_by_caps
from mlscale.data.column_names import Columns
from mlscale.data.devices import find_device
from mlscale.data.points import warn_of_base
from mlscale.data.profiles import gpu_count_of, hottest_gpu_ratio_of
from mlscale.errors import InputError, UsageError
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.readers.source import Source
from mlscale.subject import Asked, rated_times_ms

if TYPE_CHECKING:
    from mlscale.advice.capped_runs import CappedReading

CAP_COLUMNS = ("power_cap_w", "cap_w")  # the first that a table has
_NO_USE = ("power", "time_ms", "static_power", "weights")


@dataclass(frozen=True)
class CappedRun:
    """Readings of one run under caps, with the GPU's names and what a log says of its GPUs."""

    readings: "tuple[CappedReading, ...]"
    devices: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The GPU, '' where no file says it and no option."""
        return "".join(self.devices)


def is_asked(asked: Asked, lever: str) -> bool:
    """Whether a cap is asked for, by files of which none tells an engine clock.

    Raises InputError of such files, several or with caps, where the answer is to be a clock.
    """
    files = files_of(asked)
    is_told = "engine_mhz" in asked.given.base or any(one.settings for one in files)
    if asked.model is not None or is_told or not files:
        return False
    if not all(_lacks_clock(file, asked.columns) for file in files):
        return False
    if lever != "cap":
        raise InputError(
            f"{files[0]}: no file has an engine clock; for runs under power caps, ask for the best "
            f"cap with {parameter('lever', 'cap')}; for others, give the clock with "
            f"{parameter('base', 'engine=…')}, and that of a further file as FILE@engine=…"
        )
    return True


def files_of(asked: Asked) -> list[Source]:
    """The files of all readings; none where one is data from Python."""
    also = [one for one in asked.also if isinstance(one, Source)]
    return [*asked.files, *also] if asked.files and len(also) == len(asked.also) else []


def _lacks_clock(file: Source, columns: Columns) -> bool:
    """Whether a file is a table or a log without an engine clock."""
    if not file.is_file:
        return False
    if _is_table(file, columns):
        return "engine_mhz" not in file.table_columns(columns)
    return file.is_log and not file.tells_engine_clock


def _is_table(file: Source, columns: Columns) -> bool:
    """Whether a file is a table, or lacks but the time or the power of a table of capped runs."""
    return file.is_table({"device": "device", "power_cap_w": "power_cap_w", **columns})


def answer(
    asked: Asked, goal: RunGoal, rates: Sequence[float], has_commands: bool
) -> tuple[PlainAnswer, list[Note]]:
    """The best cap, and notes on it; rates: work per second of each run. Raises InputError."""
    from mlscale.advice.capped_runs import advise_capped
    from mlscale.advice.commands import commands_for_cap
    from mlscale.data.supply import limiter_notes

    no_use = (asked.given.power, asked.given.time_ms, goal.static_power_w, asked.weights)
    for name, given in zip(_NO_USE, no_use, strict=True):
        if given is not None:
            told = "does not work with runs under caps at unknown clocks"
            raise UsageError(f"{parameter(name)} {told}")
    run = _read(asked, rates)
    caps = advise_capped(run.readings, run.device, goal.caps_w or (), goal.objective, goal.limits)
    commands = commands_for_cap(caps, run.metadata) if has_commands else None
    found = replace(answer_by_caps(caps), commands=commands, files=tuple(files_of(asked)))
    return found, limiter_notes(run.metadata, caps.runs.supply.cap_w)


def _read(asked: Asked, rates: Sequence[float]) -> CappedRun:
    """The readings of all files, each row of a table and each log one. Raises InputError."""
    from mlscale.advice.capped_runs import SAME_W

    devices, files = {*filter(None, [asked.given.device])}, files_of(asked)
    times_ms = rated_times_ms(rates, len(files)) if rates else [None] * len(files)
    found: dict[Path, CappedRun] = {}
    for file, time_ms in zip(files, times_ms, strict=True):
        if file.path in found:
            raise InputError(f"{file.path}: is given twice; each reading needs its own file")
        is_table = _is_table(file, asked.columns)
        run = (_read_rows if is_table else _read_log)(file, asked, time_ms)
        found[file.path] = run
        devices |= run.devices
    keys = {known.key if (known := find_device(name)) else name for name in devices}
    if len(keys) > 1:
        raise InputError(f"{files[0]}: the readings mix {' and '.join(sorted(keys))}")
    most_w = {path: max(one.power_w for one in run.readings) for path, run in found.items()}
    base = max(found, key=lambda path: most_w[path])
    if most_w[files[0].path] < (1 - SAME_W) * most_w[base]:
        warn_of_base(f"{base}, which draws the most", str(files[0].path))
    readings = tuple(one for run in found.values() for one in run.readings)
    return CappedRun(readings, frozenset(keys), found[base].metadata)


def _read_rows(file: Source, asked: Asked, time_ms: float | None) -> CappedRun:
    """A reading for each row of a table, and the GPUs that it names. Raises InputError."""
    from mlscale.advice.capped_runs import CappedReading

    path, table = file.path, file.table(asked.columns)
    if time_ms is not None:
        if len(table) > 1:
            told = f"the rate is of one run, and it has {len(table)} rows; give a file for each"
            raise InputError(f"{path}: {told}")
        table = replace(table, numbers=table.numbers | {"time_ms": np.full(1, time_ms)})
    table.require(["time_ms", "power_w"])
    for name in ("application", "kernel"):
        if len(runs := set(table.text.get(name, ()))) > 1:
            raise InputError(
                f"{path}: has several runs in column '{name}' ({', '.join(sorted(runs)[:3])}), and "
                "no engine_mhz; give the rows of one run, or its clock with "
                f"{parameter('base', 'engine=…')}"
            )
    times, watts = table.positive("time_ms"), table.positive("power_w")
    caps = np.full(len(table), math.nan)
    for name in CAP_COLUMNS:
        if name in table.numbers:
            caps = table.positive(name, optional=True)
            break
    rows = zip(times.tolist(), watts.tolist(), caps.tolist(), strict=True)
    gpus, ratio = gpu_count_of(table), hottest_gpu_ratio_of(table)
    readings = (
        CappedReading(*row, f"{path}: {table.row(place)}", gpus, ratio)
        for place, row in enumerate(rows)
    )
    return CappedRun(tuple(readings), frozenset(table.text.get("device", ())))


def _read_log(file: Source, asked: Asked, time_ms: float | None) -> CappedRun:
    """The mean of a log while its GPUs work. Raises InputError."""
    from mlscale.advice.capped_runs import CappedReading
    from mlscale.advice.caps import refuse_pauses, refuse_unlike_limits
    from mlscale.readers.busy_span import warn_of_pauses
    from mlscale.readers.log_table import logged_runs

    path = file.path
    run, *others = logged_runs(file.samples, asked.given)
    if others:
        kinds = " and ".join(one.log.name or "a GPU without a name" for one in (run, *others))
        gpu = parameter("gpu")
        raise InputError(f"{path}: is of GPUs of several kinds, {kinds}; name one with {gpu}")
    time_ms, power_w = time_ms or run.span.time_ms, run.power_w
    if time_ms is None or math.isnan(power_w):
        interval = parameter("interval_s", "SECONDS")
        lacking = "power" if time_ms else f"how long it took; give {interval}"
        raise InputError(f"{run.log}: does not say {lacking}")
    refuse_pauses(run.idle_share)
    for log, span in run.each:
        warn_of_pauses(log, span)
    names = frozenset({run.log.name} - {""})
    refuse_unlike_limits(run.log.source, run.unlike_caps)
    count, ratio = len(run.each), run.hottest_gpu_ratio
    reading = CappedReading(time_ms, power_w, run.lowest_cap_w, str(path), count, ratio)
    metadata = {"gpus": run.gpus, "power_limit_w": run.limit_to_put_back_w}
    return CappedRun((reading,), names, metadata)
