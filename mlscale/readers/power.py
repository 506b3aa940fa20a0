"""Board power for a profile without it: a number of watts, or the busy span of a monitor's log."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlscale.data.checks import check
from mlscale.data.datasets import input_file
from mlscale.data.devices import devices_named, find_device
from mlscale.data.grid import AXES
from mlscale.data.logs import SHARES
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.parameters import command, parameter
from mlscale.quantities import quantity
from mlscale.readers.run import KEPT

if TYPE_CHECKING:
    from mlscale.readers.busy_span import BusySpan
    from mlscale.readers.monitor import Samples

_HELD = 0.95  # lower over higher of a log's and a profiler's clock: less, and one was held


def with_power(table: Table, power: float | str | Path, gpu: str | None = None) -> Table:
    """The table with one board power in all rows, and in its metadata where that is from.

    A log's power limit goes with it.

    power: watts, or a monitor's log of the run, whose mean is taken while the GPU works; gpu: the
    index of one of several GPUs in the log. Raises InputError where the table has power already,
    or runs at several settings, where the log is of another GPU, and on more watts than the GPU can
    draw; warns where the log ran at other clocks than the table.
    """
    if table.has_values("power_w"):
        told = f"already has power_w; omit {parameter('power')}, or give first a file without power"
        raise InputError(f"{table.source}: {told}")
    settings = {*zip(*(table.numbers[axis] for axis in AXES if axis in table.numbers), strict=True)}
    if len(settings) > 1 and table.numbers.keys() <= {*NOT_COUNTERS, *SHARES}:
        raise power_of_which(table.source, f"has runs at {len(settings)} settings")
    power_w, cap_w = _watts(power), math.nan
    if power_w is not None:
        source = f"{power_w:g} W, as given"
    else:
        from mlscale.readers.busy_span import busy_span, limit_w, one_gpu, warn_of_pauses
        from mlscale.readers.monitor import read_log

        log = one_gpu(read_log(input_file(str(power))), gpu)
        span = busy_span(log)
        warn_of_pauses(log, span)
        _check_same_gpu(table, log)
        _check_same_clocks(table, log, span)
        power_w, cap_w = _mean_at_work(log, span, "power_w"), limit_w(log, span)
        source = f"mean of {log.kind.title}, {Path(log.source).name}, GPU {log.gpu}, {span}"
    if not (power_w > 0 and math.isfinite(power_w)):
        raise InputError(
            f"{power}: a board power of {power_w:g} W is impossible; give watts, or a log"
        )
    for key in dict.fromkeys(table.text.get("device", ())):
        device = find_device(key)
        check("board power", table.source, device, power_w, cap_w)
        check("value", table.source, device, "power_w", power_w)
        if table.has_values("cu_count"):
            check("partition", table.source, device, np.nanmin(table.numbers["cu_count"]))
    added = {"power_w": power_w} | ({} if math.isnan(cap_w) else {"power_cap_w": cap_w})
    columns = [(name, values) for name, values in table.numbers.items() if name not in added]
    position = [name for name, _ in columns].index("time_ms") + 1
    columns[position:position] = [(name, np.full(len(table), w)) for name, w in added.items()]
    metadata = {**table.metadata, "power_kind": "board", "power_source": source}
    return Table(table.source, table.text, dict(columns), metadata, table.lines)


def power_of_which(source: str, told: str) -> InputError:
    """What to raise where the power may be of either of two runs, one of them in that file."""
    return InputError(
        f"{source}: {told}, and {parameter('power')} is for one run; omit it, or import each "
        f"log with its power ({command('import LOG', power='W')}) and give the tables (in a "
        "table: a column power_w)"
    )


def _watts(power: float | str | Path) -> float | None:
    """Power that is given as a number [W]; None for a log."""
    try:
        return quantity(str(power), "W")
    except InputError:
        return None


def _mean_at_work(log: "Samples", span: "BusySpan", column: str) -> float:
    """The mean of a column while the GPU works; NaN where none is there."""
    from mlscale.readers.busy_span import mean_of

    return mean_of(log.columns.get(column, np.full(len(log), np.nan))[span.working])


def _check_same_gpu(table: Table, log: "Samples") -> None:
    """Raise InputError where a log is of another GPU than the table; warn where that is open."""
    keys, possible = sorted(set(table.text.get("device", ()))), devices_named(log.name)
    profile = f"the profile of '{', '.join(keys)}'"
    if keys and possible and not set(keys) & set(possible):
        raise InputError(f"{log}: is of '{log.name}', {profile}")
    if log.name and not possible and any(map(find_device, keys)):
        warn(
            "G02",
            f"{log}: is of '{log.name}', which is not in the device table, {profile}; was the "
            "power measured on the same GPU?",
        )


def _check_same_clocks(table: Table, log: "Samples", span: "BusySpan") -> None:
    """Raise InputError where a log ran far from the clock that a profiler observed.

    Warns where its clocks are not the table's. A clock that the user gave is not questioned.
    """
    observed = table.metadata.get("clocks", {})
    is_given = not observed or "engine_mhz" in observed.get("requested", {})
    for clock in AXES[1:]:
        log_mhz = _mean_at_work(log, span, clock)
        if math.isnan(log_mhz) or not table.has_values(clock):
            continue
        for key in sorted(set(table.text.get("device", ()))):
            check("value", f"{log}: {clock}", find_device(key), clock, log_mhz)
        table_mhz = table.numbers[clock]
        ratio = log_mhz / table_mhz[0]
        means = f"{log}: {clock} is {log_mhz:.0f} on average, {table_mhz[0]:.0f} in the profile"
        if clock == "engine_mhz" and not is_given and not _HELD <= ratio <= 1 / _HELD:
            raise InputError(
                f"{means}: a power or thermal limit lowers the clock of a run, not of kernels that "
                "a profiler replays, and ncu sets its own unless --clock-control none is given. "
                "Lock both at a clock that the board can hold; or, if neither applies, give "
                f"{parameter('base', f'engine={table_mhz[0]:.0f}')}"
            )
        if abs(ratio - 1) > KEPT and len(np.unique(table_mhz)) == 1:
            warn(
                "G02",
                f"{means}; was the power measured in the same run? A board at its power limit "
                "lowers its clock",
            )
