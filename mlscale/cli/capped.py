"""Advice on a power cap from runs that were read under caps, of which no file has the clock."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.cli import options
from mlscale.data.devices import find_device
from mlscale.data.points import warn_of_base
from mlscale.data.profiles import gpu_count_of, hottest_gpu_ratio_of
from mlscale.errors import InputError, UsageError
from mlscale.readers.source import Source
from mlscale.subject import is_model_name, rated_times_ms

if TYPE_CHECKING:
    from mlscale.advice.capped_runs import CappedReading

CAP_COLUMNS = ("power_cap_w", "cap_w")  # the first that a table has
_NO_USE = ("power", "time", "static_power", "weights")  # options


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


def is_asked(arguments: argparse.Namespace) -> bool:
    """Whether a cap is asked for, by files of which none tells an engine clock.

    Raises InputError of such files, several or with caps, where the answer is to be a clock.
    """
    files: list[Source] = [*arguments.file, *arguments.also]
    is_told = "engine_mhz" in (arguments.base or {}) or any(one.settings for one in files)
    is_cap = arguments.lever == "cap"
    if arguments.model or is_model_name(files[0].name) or is_told:
        return False
    if not all(_lacks_clock(file, arguments) for file in files):
        return False
    if not is_cap:
        raise InputError(
            f"{files[0]}: no file has an engine clock; for runs under power caps, ask for the best "
            "cap with --lever cap; for others, give the clock with --base engine=…, and that of a "
            "further file as FILE@engine=…"
        )
    return True


def _lacks_clock(file: Source, arguments: argparse.Namespace) -> bool:
    """Whether a file is a table or a log without an engine clock."""
    if not file.is_file:
        return False
    if _is_table(file, arguments):
        return "engine_mhz" not in file.table_columns(arguments.map)
    return file.is_log and not file.tells_engine_clock


def _is_table(file: Source, arguments: argparse.Namespace) -> bool:
    """Whether a file is a table, or lacks but the time or the power of a table of capped runs."""
    return file.is_table({"device": "device", "power_cap_w": "power_cap_w", **arguments.map})


def read(arguments: argparse.Namespace) -> CappedRun:
    """The readings of all files, each row of a table and each log one. Raises InputError."""
    from mlscale.advice.capped_runs import SAME_W

    for option in _NO_USE:
        if getattr(arguments, option, None) is not None:
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} does not work with runs under caps at unknown clocks")
    devices = {arguments.device} - {None}
    files: list[Source] = [*arguments.file, *arguments.also]
    found: dict[Path, CappedRun] = {}
    for file in files:
        if file.path in found:
            raise InputError(f"{file.path}: is given twice; each reading needs its own file")
        run = (_read_rows if _is_table(file, arguments) else _read_log)(file, arguments)
        found[file.path] = run
        devices |= run.devices
    keys = {known.key if (known := find_device(name)) else name for name in devices}
    if len(keys) > 1:
        raise InputError(f"{arguments.file[0]}: the readings mix {' and '.join(sorted(keys))}")
    most_w = {path: max(one.power_w for one in run.readings) for path, run in found.items()}
    base = max(found, key=lambda path: most_w[path])
    if most_w[files[0].path] < (1 - SAME_W) * most_w[base]:
        warn_of_base(f"{base}, which draws the most", str(files[0].path))
    readings = tuple(one for run in found.values() for one in run.readings)
    return CappedRun(readings, frozenset(keys), found[base].metadata)


def _rated_ms(file: Source, arguments: argparse.Namespace) -> float | None:
    """The time of a file's run by --rate [ms]; None without. Raises InputError."""
    files, rates = [*arguments.file, *arguments.also], arguments.rate
    return rated_times_ms(rates, len(files))[files.index(file)] if rates else None


def _read_rows(file: Source, arguments: argparse.Namespace) -> CappedRun:
    """A reading for each row of a table, and the GPUs that it names. Raises InputError."""
    from mlscale.advice.capped_runs import CappedReading

    path, table = file.path, file.table(arguments.map)
    if (time_ms := _rated_ms(file, arguments)) is not None:
        if len(table) > 1:
            told = f"the rate is of one run, and it has {len(table)} rows; give a file for each"
            raise InputError(f"{path}: {told}")
        table = replace(table, numbers=table.numbers | {"time_ms": np.full(1, time_ms)})
    table.require(["time_ms", "power_w"])
    for name in ("application", "kernel"):
        if len(runs := set(table.text.get(name, ()))) > 1:
            raise InputError(
                f"{path}: has several runs in column '{name}' ({', '.join(sorted(runs)[:3])}), and "
                "no engine_mhz; give the rows of one run, or its clock with --base engine=…"
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


def _read_log(file: Source, arguments: argparse.Namespace) -> CappedRun:
    """The mean of a log while its GPUs work. Raises InputError."""
    from mlscale.advice.capped_runs import CappedReading
    from mlscale.advice.caps import refuse_pauses, refuse_unlike_limits
    from mlscale.readers.busy_span import warn_of_pauses
    from mlscale.readers.log_table import logged_runs

    path = file.path
    run, *others = logged_runs(file.samples, options.given(arguments))
    if others:
        kinds = " and ".join(one.log.name or "a GPU without a name" for one in (run, *others))
        raise InputError(f"{path}: is of GPUs of several kinds, {kinds}; name one with --gpu")
    time_ms, power_w = _rated_ms(file, arguments) or run.span.time_ms, run.power_w
    if time_ms is None or math.isnan(power_w):
        lacking = "power" if time_ms else "how long it took; give --interval SECONDS"
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
