"""Board power for a table without it: a number of watts, or the busy span of a log."""

import math
from pathlib import Path

import numpy as np

from mlscale.data.tables import Table
from mlscale.errors import InputError
from mlscale.profilers.sampled.busy import BusySpan, busy_span
from mlscale.profilers.sampled.formats import read_logs
from mlscale.profilers.sampled.log import SampledLog
from mlscale.text import plain_number


def join_power(table: Table, power: float | str | Path, gpu: str | None = None) -> Table:
    """The table with one board power in all rows, and in its metadata where that is from.

    power: watts, or a monitor's log of the run, whose mean over the busy span is taken; gpu: the
    index of one of several GPUs in the log. Raises InputError where the table has power already.
    """
    if table.has_values("power_w"):
        raise InputError(f"{table.source}: has power_w already; leave --power away")
    power_w, source = _watts(power, gpu)
    numbers = dict(table.numbers)
    numbers.pop("power_w", None)
    position = list(numbers).index("time_ms") + 1
    items = list(numbers.items())
    items.insert(position, ("power_w", np.full(len(table), power_w)))
    metadata = {**table.metadata, "power_kind": "board", "power_source": source}
    return Table(table.source, table.text, dict(items), metadata, table.lines)


def _watts(power: float | str | Path, gpu: str | None) -> tuple[float, str]:
    """Board power [W], and in words where it is from. Raises InputError."""
    try:
        power_w = plain_number(str(power))
    except ValueError:
        log, span = _busy_log(Path(str(power)), gpu)
        power_w = span.mean(log.columns["power_w"])
        source = f"mean of {log.title}, {Path(log.source).name}, GPU {log.gpu}, {span}"
    else:
        source = f"{power_w:g} W, as given"
    if not (power_w > 0 and math.isfinite(power_w)):
        raise InputError(f"a board power of {power_w:g} W cannot be; give watts, or a log")
    return power_w, source


def _busy_log(path: Path, gpu: str | None) -> tuple[SampledLog, BusySpan]:
    try:
        _, logs = read_logs(path)
    except InputError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise InputError(f"{error}; give watts, or a monitor's log") from error
    log = one_gpu(logs, path, gpu)
    if not log.has("power_w"):
        raise InputError(f"{log}: has no power")
    span = busy_span(log)
    if math.isnan(span.mean(log.columns["power_w"])):
        raise InputError(f"{log}: has no power in the busy span")
    return log, span


def one_gpu(logs: list[SampledLog], path: Path, gpu: str | None) -> SampledLog:
    """The log of a GPU, or the only one there is. Raises InputError."""
    indices = ", ".join(log.gpu for log in logs)
    if gpu is None:
        if len(logs) > 1:
            raise InputError(f"{path}: is of the GPUs {indices}; name one with --gpu")
        return logs[0]
    for log in logs:
        if log.gpu == gpu:
            return log
    raise InputError(f"{path}: has no GPU {gpu}; it has {indices}")
