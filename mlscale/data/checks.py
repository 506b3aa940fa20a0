"""What a table of measurements may hold by mistake: another unit, another launch, another run.

Which kernels of a table were measured at every configuration, and what the others lack.
"""

import re
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.devices import Device, find_device
from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.repetitions import Rows
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.text import counted, listed

ABOVE_HIGHEST = 1.15  # times a GPU's highest clock: no board is overclocked by more
_OTHER_UNIT = 100.0  # times the highest clock: above, it is in kHz; below, it may be a data rate
# No GPU has more; data rates of memories, which some tools call clocks, included.
_HIGHEST = {"engine_mhz": 1e4, "memory_mhz": 1e5, "power_w": 5e3}
_LOWEST_MHZ = 10.0  # no GPU that works has a clock below it
_NOMINAL_MHZ = 1.0  # what `mlscale collect` writes for a clock that nothing observed
# Of the highest clock that is known: an idle GPU's is some hundredths.
_CLOCK_SHARES = (0.01, ABOVE_HIGHEST)
# Of the limit: an idle board draws some hundredths, kW are a thousandth, mW a thousandfold.
_POWER_SHARES = (0.002, 10.0)
_PEAK = 1.2  # of the board's limit, which a mean of few samples may exceed
_LEAST_OF_IDLE = 0.5  # of what an idle board was seen to draw; another may draw less than that one
_SPREAD = 1.1  # of repetitions; what a locked clock leaves is a few percent
_GEOMETRY = ("workgroups", "workgroup_size")
_JUMP = 1.5  # of time, beyond what a step of a clock can do; noise and caches stay below
_COURSE = 3  # steps of a clock; of two, either time may be the wrong one
# Columns that sweeps have beside the counters: which row it is, other results, their settings.
_BESIDE = re.compile(
    r"rep(etition)?s?|run|iter(ation)?|trial|time_?stamp|date|seed|(.*_)?(id|index)|level_\d+"
    r"|energy.*|edp|speed_?up|slow_?down|.*_([mg]hz|ms|m?w|m?j)"
    r"|(.*_)?(temp(erature)?|power|volt(age)?|freq(uency)?|clock)(_.*)?",
    re.IGNORECASE,
)

# What tables may call the shares of a peak that predictors read, and counters that tell as much.
_CALLED = {
    "dram_utilisation": re.compile(r"(dram|mem(ory)?)_?util(i[sz]ation)?", re.IGNORECASE),
    "core_utilisation": re.compile(r"(core|compute|sm|cu)_?util(i[sz]ation)?", re.IGNORECASE),
}
_INSTEAD = {"dram_read_transactions", "ReadBandwidth", "inst_executed", "VALUInsts"}


def check_units(table: Table, key: str) -> None:
    """Raise InputError where clocks or powers are none of the GPU's: they have another unit."""
    for name in _HIGHEST:
        values = table.numbers.get(name, np.empty(0))
        known = np.flatnonzero(np.isfinite(values))
        for row in known[[values[known].argmax(), values[known].argmin()]] if known.size else ():
            check_unit(f"{table.source}: {table.row(row)}, column '{name}'", key, name, values[row])


def check_unit(where: str, key: str, name: str, value: float) -> None:
    """Raise InputError where a clock [MHz] or power_w [W] is far from what the GPU can have.

    Of a GPU that is not known, where no GPU has so much, or so slow a clock.
    """
    device = find_device(key)
    unit, smaller = ("W", "mW") if name == "power_w" else ("MHz", "kHz")
    if device is None and value > _HIGHEST[name]:
        raise InputError(
            f"{where}: {value:g} {unit} cannot be, no GPU has more than {_HIGHEST[name]:g}; give "
            f"it in {unit} ({smaller} divided by 1000)"
        )
    is_low = 0 < value < _LOWEST_MHZ and value != _NOMINAL_MHZ
    if device is None and unit == "MHz" and is_low:
        raise InputError(
            f"{where}: {value:g} MHz cannot be, no GPU has less than {_LOWEST_MHZ:g}; give it in "
            "MHz (GHz times 1000)"
        )
    if device is None or not np.isfinite(value):
        return
    most = device.most_power_w if name == "power_w" else device.highest_mhz(name)
    low, high = _POWER_SHARES if name == "power_w" else _CLOCK_SHARES
    is_none = name == "power_w" and value == 0  # which is another mistake than a unit
    if most is None or is_none or low * most <= value <= high * most:
        return
    is_clock = unit == "MHz" and most < value < _OTHER_UNIT * most
    mend = _mend_of_clock(device, name) if is_clock else f"give it in {unit}"
    raise InputError(f"{where}: {value:g} {unit} cannot be, '{key}' has at most {most:g}; {mend}")


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
    elif power_w < device.idle_w:
        idle = f"the {device.idle_w:g} W that an idle '{key}' was seen to draw"
        if power_w < _LEAST_OF_IDLE * device.idle_w:
            raise InputError(
                f"{where}: a board power of {power_w:g} W cannot be: it is less than half of {idle}"
            )
        warn(f"{where}: a board power of {power_w:g} W is below {idle}; is it that of the run?")


def _mend_of_clock(device: Device, clock: str) -> str:
    """What may be wrong about a clock that is above what the device can have."""
    transfers = device.memory_transfers_per_cycle
    if clock != "memory_mhz" or transfers == 1:
        return "is it another GPU? name it with --device"
    part = {2: "half", 4: "a quarter"}.get(transfers, f"1/{transfers}")
    return (
        f"if it is the data rate, give the clock, {part} of it; if it is another GPU, name it "
        "with --device"
    )


def warn_of_repetitions(
    table: Table,
    kernels: Sequence[str],
    grid: ConfigGrid,
    where: tuple[Indices, ...],
    time_samples: Floats,
) -> None:
    """Warn where repetitions of a kernel at one configuration take unlike times.

    where: the cell (K, C, E, M) of each row; time_samples: (R, K, C, E, M) [ms].
    """
    if len(time_samples) < 2:
        return
    low, high = np.fmin.reduce(time_samples), np.fmax.reduce(time_samples)
    cells = np.argwhere(high > _SPREAD * low)
    if not len(cells):
        return
    worst = cells[np.argmax([high[tuple(cell)] / low[tuple(cell)] for cell in cells])]
    rows = np.flatnonzero(np.all([of == at for of, at in zip(where, worst, strict=True)], axis=0))
    times = table.numbers["time_ms"][rows]
    least, most = (table.row(int(rows[at])) for at in (times.argmin(), times.argmax()))
    kernel, c, e, m = worst.tolist()
    warn(
        f"{table.source}: repetitions differ by more than {100 * (_SPREAD - 1):.0f} % in "
        f"{counted(len(cells), 'case')}, most those of '{kernels[kernel]}' at "
        f"{grid.config((c, e, m))}: {times.min():.4g} ms in {least}, {times.max():.4g} in {most}; "
        "if these are not the same work at the same clocks, take the wrong ones out"
    )


def warn_of_unlike_rows(
    source: str, kernels: Sequence[str], of_row: Indices, time_ms: Floats
) -> None:
    """Warn where rows of a profile that count as repetitions of one launch take unlike times.

    of_row: the kernel of each row; time_ms: of each row [ms].
    """
    low, high = np.full(len(kernels), np.inf), np.zeros(len(kernels))
    np.fmin.at(low, of_row, time_ms)
    np.fmax.at(high, of_row, time_ms)
    worst = int((high / low).argmax())
    if high[worst] > _SPREAD * low[worst]:
        warn(
            f"{source}: rows of one kernel count as repetitions of one launch, and become their "
            f"median: those of '{kernels[worst]}' take {low[worst]:.4g} to {high[worst]:.4g} ms; "
            "if they are launches of a run, give each kind a name, a row with the mean of its "
            "times, and how many they are in a column 'launches'"
        )


def warn_of_parts(source: str, kernels: Sequence[str], rows: Rows) -> None:
    """Warn where rows of one kernel count as parts of a run, as their launches are unlike.

    rows: of cells (K, ...).
    """
    cells = np.argwhere(rows.has_parts)
    if rows.launches is not None and len(cells):
        first = tuple(cells[0])
        warn(
            f"{source}: rows of one kernel with unlike launches are added up as parts of one run, "
            f"in {counted(len(cells), 'case')}: those of '{kernels[first[0]]}' to "
            f"{rows.launches[first]:g} launches of {rows.time_ms[first]:.4g} ms on average; if "
            "each is a whole run, keep the rows of one, or import the files of all together"
        )


def warn_of_totals(source: str, kernels: Sequence[str], rows: Rows, total_samples: Floats) -> None:
    """Warn where launches and time of kernels (K,) contradict their total time.

    total_samples (R, K): as the rows say it [ms], NaN where they do not.
    """
    known = ~(np.isnan(total_samples) & ~np.isnan(rows.time_samples)).any(axis=0)
    if rows.launches is None:
        return
    run_ms, total_ms = rows.launches * rows.time_ms, rows.total(total_samples)
    off = np.where(known, np.exp(np.abs(np.log(total_ms / run_ms))), 1.0)
    if off.max() > _SPREAD:
        k = int(off.argmax())
        warn(
            f"{source}: 'total_time_ms' contradicts 'launches' and 'time_ms' of "
            f"{counted(int((off > _SPREAD).sum()), 'kernel')}, most of '{kernels[k]}': "
            f"{total_ms[k]:.4g} ms, not {rows.launches[k]:g} x {rows.time_ms[k]:.4g} ms; launches "
            "and time_ms are used: correct what is wrong, or leave total_time_ms out"
        )


def warn_of_launches(
    table: Table, kernels: Sequence[str], where: tuple[Indices, ...], shape: tuple[int, ...]
) -> None:
    """Warn where a kernel's grid or block changes with the clocks: it is not one launch, then.

    With the CU count both may change, since programs make as many workgroups as there are CUs.
    """
    of_cell = np.ravel_multi_index(where[:2], shape[:2])
    for name in _GEOMETRY:
        if not table.has_values(name):
            continue
        values = table.numbers[name]
        low, high = np.full(of_cell.max() + 1, np.inf), np.zeros(of_cell.max() + 1)
        np.fmin.at(low, of_cell, values)
        np.fmax.at(high, of_cell, values)
        cells = np.flatnonzero(high > low)
        if cells.size:
            of_kernels = dict.fromkeys((cells // shape[1]).tolist())
            first = cells[0]
            row = int(np.flatnonzero((of_cell == first) & (values == high[first]))[0])
            warn(
                f"{table.source}: '{name}' of {counted(len(of_kernels), 'kernel')} is not the "
                f"same at all clocks; that of '{kernels[first // shape[1]]}' is {low[first]:g} "
                f"and, in {table.row(row)}, {high[first]:g}: rows of two workloads count as one "
                "kernel, unless the application or the kernel names them apart"
            )
            return


def warn_of_times(source: str, kernels: Sequence[str], grid: ConfigGrid, times: Floats) -> None:
    """Warn where time rises with a clock, or falls by far more than the clock rises.

    times: (K, C, E, M) [ms].
    """
    least, worst, found = np.log(_JUMP), "", set()
    for axis, name in enumerate(AXES[1:], start=2):
        if len(getattr(grid, name)) < _COURSE:
            continue
        rise = np.diff(np.log(getattr(grid, name))).reshape(
            [-1 if a == axis else 1 for a in range(4)]
        )
        step = np.diff(np.log(times), axis=axis)
        beyond = np.maximum(step, -step - rise)
        found.update(np.nonzero(beyond > np.log(_JUMP))[0].tolist())
        if beyond.size and beyond.max() > least:
            least = beyond.max()
            k, *at = map(int, np.unravel_index(beyond.argmax(), beyond.shape))
            ends = (tuple(at), tuple(n + (a == axis - 1) for a, n in enumerate(at)))
            of_ends = (f"{times[k, *end]:.4g} ms at {grid.config(end)}" for end in ends)
            worst = f"'{kernels[k]}' takes {' and '.join(of_ends)}"
    if found:
        warn(
            f"{source}: the times of {counted(len(found), 'kernel')} change by far more than a "
            f"clock does: {worst}; one of the two may be of other work, or of another clock than "
            "is said: measure it again"
        )


def warn_of_names(table: Table) -> None:
    """Warn of columns named nearly as the shares of a peak that predictors know by name.

    nvprof has such names for levels from 0 to 10, beside the counts that are read.
    """
    if not _INSTEAD.isdisjoint(table.numbers):
        return
    for name, called in _CALLED.items():
        near = [f"'{column}'" for column in table.numbers if called.fullmatch(column)]
        if near and name not in table.numbers:
            warn(
                f"{table.source}: {', '.join(near)}: taken for a counter like any other; call it "
                f"'{name}' if it is a share of the peak, from 0 to 1"
            )


def warn_of_counters(table: Table, names: Sequence[str], kernels: Sequence[str]) -> None:
    """Warn of columns that look like no counters, and of kernels that were not counted.

    names: the columns that are taken for counters.
    """
    warn_of_names(table)
    if columns := [f"'{name}'" for name in names if _BESIDE.fullmatch(name)]:
        verb = "looks" if len(columns) == 1 else "look"
        warn(
            f"{table.source}: {', '.join(columns)} {verb} like no counter, but every column that "
            "is not of the format counts as one: take out what predictors shall not learn from"
        )
    _warn_of_zeros(table, names)
    given = {name: np.flatnonzero(~np.isnan(table.numbers[name])) for name in names}
    of_kernel = table.text["kernel"]
    having = {name: {of_kernel[row] for row in rows} for name, rows in given.items() if rows.size}
    if not having or any(of.issuperset(kernels) for of in having.values()):
        return
    without = [kernel for kernel in kernels if not any(kernel in of for of in having.values())]
    common = max(having, key=lambda name: len(having[name]))
    what = f"{listed(without)} of {len(kernels)} without counters; " if without else ""
    most = counted(len(having[common]), "kernel")
    warn(
        f"{table.source}: {what}no counter is given for more than {most} ('{common}'): predictors "
        "take a median for what is missing; profile these kernels too, or leave them out"
    )


def _warn_of_zeros(table: Table, names: Sequence[str]) -> None:
    """Warn of kernels whose counters are all 0, which of several no kernel that runs has."""
    if len(names) < 2:
        return
    most = np.max([np.nan_to_num(table.numbers[name]) for name in names], axis=0, initial=0)
    some = np.any([table.numbers[name] == 0 for name in names], axis=0)
    rows = np.flatnonzero((most == 0) & some)
    if rows.size:
        kernels = [*dict.fromkeys(table.text["kernel"][row] for row in rows)]
        warn(
            f"{table.source}: every counter is 0 of {listed(kernels)}, first in "
            f"{table.row(int(rows[0]))}: 0 is taken for a count; leave the cell empty where a "
            "counter was not measured"
        )


_ONE_CLOCK = 1.02  # times another clock: below, they may be one that was measured
_LOOKED_AT = 50  # kernels that may be one under two names, so that time stays short


def complete_kernels(
    table: Table, kernels: Sequence[str], grid: ConfigGrid, counts: Indices, drop: bool
) -> list[int]:
    """The positions of the kernels that have every configuration.

    counts: how many rows each kernel and configuration has, (K, C, E, M). Raises InputError where
    a kernel lacks one, or, with drop, where all do; with drop it warns.
    """
    configs = list(grid)
    lacking = {
        kernel: [configs[cell] for cell in np.flatnonzero(counts[k] == 0)]
        for k, kernel in enumerate(kernels)
    }
    lacking = {kernel: missing for kernel, missing in lacking.items() if missing}
    if not lacking:
        return list(range(len(kernels)))
    worst = ", ".join(
        f"'{kernel}' lacks {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        for kernel, missing in list(lacking.items())[:3]
    )
    more = f", and {len(lacking) - 3} more kernels" if len(lacking) > 3 else ""
    what = f"{table.source}: {len(lacking)} of {len(kernels)} kernels lack configurations: "
    what += worst + more
    why = _why(table, kernels, grid, counts)
    if not drop:
        mend = "measure them or use --incomplete drop (in Python incomplete='drop')"
        raise InputError(f"{what}; {why or mend}")
    complete = [k for k, kernel in enumerate(kernels) if kernel not in lacking]
    if not complete:
        raise InputError(f"{what}; no kernel is complete{why and f'; {why}'}")
    warn(f"{what}; dropped{why and f'; {why}'}")
    return complete


def _why(table: Table, kernels: Sequence[str], grid: ConfigGrid, counts: Indices) -> str:
    """What explains it in one stroke, with the mend; empty where nothing does."""
    present = counts > 0
    for a, axis in enumerate(AXES):
        others = tuple(other for other in range(1, 4) if other != a + 1)
        has_step = np.asarray(present.any(axis=others))
        steps = getattr(grid, axis)
        for step, (low, high) in enumerate(pairwise(steps)):
            is_near = axis != "cu_count" and high < _ONE_CLOCK * low
            if is_near and not has_step[:, step : step + 2].all(axis=1).any():
                return (
                    f"no kernel has both {axis} {low:g} and {high:g}: if these are one clock, as "
                    "it was set and as it ran, or as it ran twice, give all its rows one number "
                    "('mlscale import' takes it as --base)"
                )
        share = has_step.mean(axis=0)
        if share.max() > 0.5 > share.min():
            step = int(share.argmin())
            owner = kernels[int(has_step[:, step].argmax())]
            value, count = steps[step], int(has_step[:, step].sum())
            row = int(np.flatnonzero(table.numbers[axis] == value)[0])
            return (
                f"{count} of {len(kernels)} kernels {'has' if count == 1 else 'have'} a row at "
                f"{axis} {value:g}, such as '{owner}' in {table.row(row)}: if a clock was not kept "
                "there, measure again, or leave these rows out"
            )
    nowhere = np.flatnonzero(~np.asarray(present.any(axis=0)))
    if nowhere.size:
        first = list(grid)[int(nowhere[0])]
        return f"no kernel has {first}: measure it, or leave out all rows of one of its settings"
    of_kernel = dict(zip(table.text["kernel"], table.text["application"], strict=True))
    partial = [k for k in range(len(kernels)) if not present[k].all()]
    for one, other in combinations(partial[:_LOOKED_AT], 2):
        is_one = of_kernel[kernels[one]] == of_kernel[kernels[other]]
        if is_one and (present[one] ^ present[other]).all():
            return (
                f"'{kernels[other]}' has just what '{kernels[one]}' lacks: if they are one "
                "kernel under two names, give it one"
            )
    return ""
