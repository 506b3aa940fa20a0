"""Board power for a table without it: a number of watts, or the busy span of a log."""

import math
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device_table import find_device
from mlscale.data.plausibility import check_unit
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.profilers.configuration import KEPT
from mlscale.profilers.sampled.busy import BusySpan, busy_span, warn_of_holes
from mlscale.profilers.sampled.formats import LogFormat, read_logs
from mlscale.profilers.sampled.log import SampledLog
from mlscale.profilers.sampled.same_gpu import check_same_gpu
from mlscale.text import plain_number

_HELD = 0.95  # of the higher of a log's and a profiler's clock, below which the other was held
_PEAK = 1.2  # of the board's limit, which a mean of few samples may exceed
_LEAST_OF_IDLE = 0.5  # of what an idle board was seen to draw; another may draw less than that one


def join_power(table: Table, power: float | str | Path, gpu: str | None = None) -> Table:
    """The table with one board power in all rows, and in its metadata where that is from.

    power: watts, or a monitor's log of the run, whose mean is taken while the GPU works; gpu: the
    index of one of several GPUs in the log. Raises InputError where the table has power already,
    where the log is of another GPU, and on more watts than the GPU can draw; warns where the log
    ran at other clocks than the table.
    """
    if table.has_values("power_w"):
        raise InputError(f"{table.source}: has power_w already; leave --power away")
    power_w, source = _watts(table, power, gpu)
    for key in dict.fromkeys(table.text.get("device", ())):
        check_board(table.source, key, power_w)
        _warn_of_a_part(table, key)
    numbers = dict(table.numbers)
    numbers.pop("power_w", None)
    position = list(numbers).index("time_ms") + 1
    items = list(numbers.items())
    items.insert(position, ("power_w", np.full(len(table), power_w)))
    metadata = {**table.metadata, "power_kind": "board", "power_source": source}
    return Table(table.source, table.text, dict(items), metadata, table.lines)


def _watts(table: Table, power: float | str | Path, gpu: str | None) -> tuple[float, str]:
    """Power [W], and in words where it is from. Raises InputError."""
    power_w = _given_watts(power)
    if power_w is not None:
        source = f"{power_w:g} W, as given"
    else:
        form, log, span = _busy_log(Path(str(power)), gpu)
        check_same_gpu(log, form, span, set(table.text.get("device", ())))
        _check_same_clocks(table, log, span)
        power_w = span.working_mean(log.columns["power_w"])
        source = f"mean of {log.title}, {Path(log.source).name}, GPU {log.gpu}, {span}"
        for key in dict.fromkeys(table.text.get("device", ())):
            warn_of_sensor(str(log), key)
    if not (power_w > 0 and math.isfinite(power_w)):
        raise InputError(f"a board power of {power_w:g} W cannot be; give watts, or a log")
    return power_w, source


def _given_watts(power: float | str | Path) -> float | None:
    """Power that is given as a number [W]; None for a log."""
    try:
        return plain_number(str(power))
    except ValueError:
        return None


def gpu_of_log(power: float | str | Path | None, gpu: str | None = None) -> str | None:
    """The name of the GPU that a log of power is of.

    None where it is watts, or a log that names no GPU, or several of which `gpu` chooses none.
    Raises InputError where the log cannot be read.
    """
    if power is None or _given_watts(power) is not None:
        return None
    names = {log.name for log in _logs(Path(str(power)))[1] if gpu in (None, log.gpu)}
    return names.pop() if len(names) == 1 else None


def check_board(where: str, key: str, power_w: float) -> None:
    """Raise InputError where a board cannot draw as much, or as little; short peaks can be.

    Warns where it draws less than at idle.
    """
    device = find_device(key)
    limit_w = device.most_power_w if device else None
    if limit_w is not None and power_w > _PEAK * limit_w:
        raise InputError(
            f"{where}: a board power of {power_w:g} W cannot be: '{key}' has a limit of "
            f"{limit_w:g} W"
        )
    if device is None or device.idle_w is None:
        check_unit(where, key, "power_w", power_w)
        return
    if power_w >= device.idle_w:
        return
    idle = f"the {device.idle_w:g} W that an idle '{key}' was seen to draw"
    if power_w < _LEAST_OF_IDLE * device.idle_w:
        raise InputError(
            f"{where}: a board power of {power_w:g} W cannot be: it is less than half of {idle}"
        )
    warn(f"{where}: a board power of {power_w:g} W is below {idle}; is it that of the run?")


def warn_of_sensor(where: str, key: str) -> None:
    """Warn where the sensor of a GPU measures more than it: AMD's, of a module or a socket."""
    device = find_device(key)
    more = ""
    if device and device.is_half_a_module:
        more = f"of the module, of which '{key}' is one of two dies: what the other one draws"
    elif device and (device.form_factor or "").startswith("APU"):
        more = f"of the socket with '{key}': what the processor's cores draw"
    if more:
        warn(f"{where}: power is that {more} is in it, and in the energy")


def _warn_of_a_part(table: Table, key: str) -> None:
    """Warn where the run had a part of an NVIDIA GPU (MIG), whose power no sensor tells."""
    device, counts = find_device(key), table.numbers.get("cu_count", np.empty(0))
    if device and device.vendor == "NVIDIA" and (counts < device.cu_count).any():
        warn(
            f"{table.source}: ran on {counts.min():g} of the {device.cu_count} SMs of '{key}', and "
            "a board's power is that of all: energy is right where nothing ran on the others"
        )


def _check_same_clocks(table: Table, log: SampledLog, span: BusySpan) -> None:
    """Warn where a log's clocks are not the table's.

    Raises InputError where it ran far from a clock that only the profiler observed.
    """
    observed = table.metadata.get("clocks", {})
    is_said = not observed or "engine_mhz" in observed.get("requested", {})
    for clock in ("engine_mhz", "memory_mhz"):
        if not (log.has(clock) and table.has_values(clock)):
            continue
        log_mhz, table_mhz = span.working_mean(log.columns[clock]), np.unique(table.numbers[clock])
        if clock == "engine_mhz" and not is_said:
            _check_against_observed(log, float(log_mhz), table_mhz)
        if len(table_mhz) == 1 and abs(log_mhz / table_mhz[0] - 1) > KEPT:
            warn(
                f"{log}: {clock} is {log_mhz:.0f} on average, {table_mhz[0]:.0f} in the profile; "
                "is the power of the same run? A board at its power limit lowers its clock, and "
                "what is predicted is relative to the profile's"
            )


def _check_against_observed(log: SampledLog, log_mhz: float, observed_mhz: Floats) -> None:
    """Raise InputError where a log's mean clock is far from what the profiler observed [MHz]."""
    lowest, highest = observed_mhz.min(), observed_mhz.max()
    means = f"{log}: engine_mhz is {log_mhz:.0f} on average"
    if log_mhz < _HELD * lowest:
        raise InputError(
            f"{means}, {lowest:.0f} in the profile: a power limit or heat may have held the run "
            "below a clock that replayed kernels reach, and its power is of another clock. Lock "
            "both at a clock that the board holds; or, if that is not so, say --base "
            f"engine={lowest:.0f}"
        )
    if highest < _HELD * log_mhz:
        raise InputError(
            f"{means}, {highest:.0f} in the profile: ncu sets its own clock unless --clock-control "
            "none is given, and the power is of the higher clock. Profile again with it; or, if "
            f"that is not so, say --base engine={highest:.0f}"
        )


def _busy_log(path: Path, gpu: str | None) -> tuple[LogFormat, SampledLog, BusySpan]:
    """The format of a log, the log of one GPU, and its busy span. Raises InputError."""
    form, logs = _logs(path)
    log = one_gpu(logs, path, gpu)
    if not log.has("power_w"):
        raise InputError(f"{log}: has no power")
    span = busy_span(log)
    if math.isnan(span.working_mean(log.columns["power_w"])):
        raise InputError(f"{log}: has no power in the busy span")
    warn_of_holes(log, span)
    return form, log, span


def _logs(path: Path) -> tuple[LogFormat, list[SampledLog]]:
    """The format of a log, and the log of each GPU. Raises InputError."""
    try:
        return read_logs(path)
    except InputError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise InputError(f"{error}; give watts, or a monitor's log") from error


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
