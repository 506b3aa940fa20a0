"""The predicates of the checks: each looks at plain facts, and says what is wrong with them.

It returns the fields of its rule's sentence, see RULES in mlscale/data/checks.py, or None where
nothing is wrong. `kernels` among them are those that the sentence is about.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.cells import Rows, complete_part
from mlscale.data.column_names import source_meant
from mlscale.data.devices import LARGEST_SHARE, Device
from mlscale.data.grid import AXES, SHORT_NAMES, ConfigGrid, Index
from mlscale.data.table import NO_TIMES, OF_LAUNCH, Table
from mlscale.parameters import command, parameter
from mlscale.text import counted, listed, shortened

Fields = dict[str, Any] | None

# G: the GPU, its clocks and its power

ABOVE_HIGHEST = 1.15  # times a GPU's highest clock: no board is overclocked by more
_OF_ANY_GPU = {"engine_mhz": (10.0, 1e4), "memory_mhz": (10.0, 1e5), "power_w": (0.0, 5e3)}
_NOMINAL_MHZ = 1.0  # what `mlscale collect` writes for a clock that nothing observed
# Of the highest clock or power that is known of a GPU. An idle one has some hundredths of it.
_SHARES = {"MHz": (0.01, ABOVE_HIGHEST), "W": (0.002, 10.0), "cap": (0.0, 5.0)}
_OTHER_UNIT = 100.0  # times the highest clock: above, it is in kHz; below, it may be a data rate
_OF_LOWEST = 1 / 3  # clock that is known: what is below has another unit, or is mistyped
_PEAK = 1.2  # times the board's limit: a mean of few samples may exceed it
_LEAST_OF_IDLE = 0.5  # share of an idle board's power as it was seen: another may draw less


def impossible_value(
    device: Device | None, column: str, value: float, known_mhz: Sequence[float] = ()
) -> Fields:
    """A clock [MHz], power or cap [W], or share that the GPU cannot have; None: any GPU.

    known_mhz: where a user names a clock, those that are known; it is not far below them all.
    """
    if known_mhz:
        return _too_low(value, known_mhz)
    if column == "share":
        mend = "give it from 0 to 1, or in a percent column from 0 to 100"
        limit = "no share is above 1"
        fields = {"value": value, "unit": "of the whole", "limit": limit, "mend": mend}
        return fields if value > LARGEST_SHARE else None
    is_cap, unit = column == "power_cap_w", "W" if column.startswith("power") else "MHz"
    mend = f"give it in {unit}{', is it in mW?' if is_cap else ''}"
    if device is None or (is_cap and device.most_power_w is None):
        low, high = _OF_ANY_GPU["power_w" if is_cap else column]
        limit, other = f"no GPU has less than {low:g}", "GHz times 1000"
        if value > high:
            limit = f"no GPU has more than {high:g}"
            other = "mW divided by 1000" if unit == "W" else "kHz divided by 1000"
        mend += f" ({other})"
    else:
        most = device.most_power_w if unit == "W" else device.highest_mhz(column)
        if most is None:
            return None
        low, high = (share * most for share in _SHARES["cap" if is_cap else unit])
        limit = f"'{device.key}' has at most {most:g}"
        if unit == "MHz" and high < value < _OTHER_UNIT * most:
            name_it = f"name it with {parameter('device')}, in a table in column 'device'"
            mend = f"is it another GPU? {name_it}"
            if column == "memory_mhz" and device.memory_transfers_per_cycle > 1:
                mend = (
                    f"if it is the data rate, give 1/{device.memory_transfers_per_cycle} of it, "
                    f"the clock; if it is another GPU, {name_it}"
                )
    is_nominal = device is None and value == _NOMINAL_MHZ
    if low <= value <= high or value <= 0 or is_nominal or not math.isfinite(value):
        return None
    return {"value": value, "unit": unit, "limit": limit, "mend": mend}


def _too_low(mhz: float, known_mhz: Sequence[float]) -> Fields:
    """A clock far below all that are known; beside one alone, one that may be in GHz."""
    least, most = min(known_mhz), max(known_mhz)
    is_in_ghz = _OF_LOWEST * least <= 1e3 * mhz <= 2 * most
    if mhz >= _OF_LOWEST * least or not (is_in_ghz or least < most):
        return None
    mend = f"is {mhz:g}GHz meant?" if is_in_ghz else "give it in MHz"
    limit = f"the lowest clock known is {least:g} MHz"
    return {"value": mhz, "unit": "MHz", "limit": limit, "mend": mend}


def doubtful_power(device: Device | None, power_w: float, cap_w: float = math.nan) -> Fields:
    """A mean power that a board with that limit cannot draw, or only when idle."""
    if device is None:
        return None
    limit_w, idle_w = device.most_power_w, device.idle_w
    if limit_w is not None and power_w > max(_PEAK * limit_w, cap_w):
        why = f"is impossible: '{device.key}' has a limit of {limit_w:g} W"
        return {"power_w": power_w, "why": why}
    if idle_w is None or power_w >= idle_w:
        return None
    idle = f"the {idle_w:g} W that an idle '{device.key}' was seen to draw"
    if power_w < _LEAST_OF_IDLE * idle_w:
        return {"power_w": power_w, "why": f"is impossible: it is less than half of {idle}"}
    why = f"is below {idle}; is it the power of the run?"
    return {"power_w": power_w, "why": why, "severity": "warning"}


def part_of_a_gpu(device: Device | None, cus: float) -> Fields:
    """Fewer SMs than an NVIDIA GPU has, as with MIG; AMD's parts are separate devices."""
    if device is None or device.vendor != "NVIDIA" or not cus < device.cu_count:
        return None
    return {"cus": cus, "all_cus": device.cu_count, "device": device.key}


# L: launches in a profiler's export

APART = 0.05  # share of a clock: launches further apart are not of one run, nor is what was set
_PINNED = 0.9  # share of a GPU's highest engine clock: below, ncu may have held it down


def no_launch(launches: Collection[Any], untimed: int, complaint: str) -> Fields:
    """No launch with a time; untimed: launches without; complaint: the tool's own message."""
    if launches:
        return None
    without = f" with a positive time ({untimed} without)" if untimed else ""
    said = f"the profiler says: {complaint[:300]}" if complaint else ""
    return {"untimed": without, "why": said or "profile and export the whole run"}


def impossible_traffic(
    kernels: Sequence[str], shares: Sequence[float], limit: float, device: str, memory_mhz: float,
    severity: str = "refused",
) -> Fields:  # fmt: skip
    """A kernel that moves more than `limit` times the DRAM bytes that can pass.

    shares: of these, of each kernel, NaN where not known. severity: 'warning' for who can do
    without them.
    """
    share, kernel = max(zip(np.nan_to_num(shares), kernels, strict=True), default=(0.0, ""))
    if not share > limit:
        return None
    fields = {"kernel": shortened(kernel), "share": share, "device": device}
    return {**fields, "memory_mhz": memory_mhz, "severity": severity}


def unlike_clocks(
    clocks: Mapping[str, Mapping[float, int]], given: Mapping[str, float], how: Mapping[str, str]
) -> Fields:
    """Clocks that differ between launches, or from what was given.

    clocks: by axis how often each was seen [MHz]; how: in words, how that is known.
    """
    what, means = [], []
    for axis, launches in clocks.items():
        mean = float(np.average([*launches], weights=[*launches.values()]))
        told = unlike_launches(launches)
        is_off = axis in given and abs(mean / given[axis] - 1) > APART
        if not (is_off or (told and axis not in given)):
            continue
        text = f"{axis}{how[axis]} is {told}" if told else ""
        text = text or f"{axis} was {mean:.0f} while profiling{how[axis]}"
        what.append(f"{text}, {parameter('base')} says {given[axis]:g}" if is_off else text)
        if told:
            means.append(f"{SHORT_NAMES[axis]}={mean:.0f}")
    if not what:
        return None
    meant = parameter("base", ",".join(means))
    mend = f", or let all count as their mean with {meant}" if means else ""
    return {"what": "; ".join(what), "mend": mend}


def unlike_launches(clocks: Collection[float]) -> str:
    """In words the lowest and highest clock of launches, if their clocks differ."""
    low, high = min(clocks, default=1.0), max(clocks, default=1.0)
    return f"{low:g} in one launch and {high:g} in another" if high > (1 + APART) * low else ""


def held_clock(device: Device | None, observed_mhz: float | None) -> Fields:
    """An engine clock that ncu may have lowered, well below the highest of an NVIDIA GPU."""
    if device is None or device.vendor != "NVIDIA" or observed_mhz is None:
        return None
    highest_mhz = device.highest_mhz("engine_mhz")
    if highest_mhz is None or observed_mhz >= _PINNED * highest_mhz:
        return None
    return {"device": device.key, "highest_mhz": highest_mhz, "observed_mhz": observed_mhz}


# M: monitors' logs, and files of several GPUs

_LONG = 10  # periods, beyond which a gap inside the span is told, or all pauses together
_PAUSES = 0.1  # share of the span: fewer pauses are not told
_MANY = 1 / 3  # the same share in a short span


def no_gpu_chosen(gpus: Mapping[str, str], chosen: str | None) -> Fields:
    """None of several GPUs is chosen, or a missing one; gpus: what there is of each."""
    if chosen in gpus or (chosen is None and len(gpus) == 1):
        return None
    each = [f"{gpu or 'without a number'} ({what})" for gpu, what in gpus.items()]
    lacks = "" if chosen is None else f"has nothing about GPU {chosen}; "
    return {"what": f"{lacks}has GPUs {', '.join(each)}; name one with {parameter('gpu')}"}


def long_pauses(samples: int, idle: int, gap_s: float, period_s: float, rule: str) -> Fields:
    """A busy span without samples, or idle, for so long that its time may mislead.

    idle: how many of its samples are below the threshold, which `rule` says; gap_s: the longest
    time without a sample [s]; period_s: the usual one.
    """
    if gap_s > _LONG * period_s > 0:
        return {"pause": f"has no sample for {gap_s:.4g} s of the busy span", "mend": ""}
    if idle <= max(min(_LONG, _MANY * samples), _PAUSES * samples):
        return None
    pause = f"{idle} of {samples} samples of the busy span are idle (busy: {rule})"
    mend = (
        "; if these are two runs, give a log of each; if one run waits for requests or the CPU, "
        "the work between the pauses slows by more than the whole: a log under a load that keeps "
        "the GPU busy shows by how much"
    )
    return {"pause": pause, "mend": mend}


# T: tables of measurements, and profiles

_SPREAD = 1.1  # between repetitions: a locked clock leaves a few percent
_JUMP = 1.5  # times what a step of a clock can do: noise and caches stay below
_COURSE = 3  # steps of a clock; of two, either time may be the wrong one
_JITTER_MHZ = 10.0  # between observed clocks: a GPU's are further apart, or all kernels have them
_ONE_CLOCK = 1.02  # times another clock: below, they may be one that was measured
# Columns that sweeps have beside the counters: which row it is, other results, their settings.
_BESIDE = re.compile(
    r"rep(etition)?s?|run|(num_)?iter(ation)?s?|trial|time_?stamp|date|seed|(.*_)?(id|index)"
    r"|level_\d+|(.*_)?(energy|ed2?p|speed_?up|slow_?down|(run|exec|kernel)_?time)(_.*)?"
    r"|.*_([mg]hz|ms|m?w|m?j)|(.*_)?(temp(erature)?|power|volt(age)?|freq(uency)?|clock)(_.*)?",
    re.IGNORECASE,
)
# What tables may call the shares of a peak that predictors read, and counters that tell as much.
_CALLED = {
    "dram_utilisation": re.compile(r"(dram|mem(ory)?)_?util(i[sz]ation)?", re.IGNORECASE),
    "core_utilisation": re.compile(r"(core|compute|sm|cu)_?util(i[sz]ation)?", re.IGNORECASE),
}
_MEDIAN = "predictors use the training median for missing values"
_MOST_CELLS = 0.8  # share of a table's cells with each step: then it is an axis
_AS_COUNTER = "treated as a counter like any other"
# Counters that a kernel has not which does nothing of the kind.
PER_ACCESS = re.compile(r"(Fetch|Write)Per.*|.*_(per_request|hit_rate)|(g..|shared)_efficiency")
_INSTEAD = {"dram_read_transactions", "ReadBandwidth", "inst_executed", "VALUInsts"}


def lacking_configurations(
    table: Table, kernels: Sequence[str], grid: ConfigGrid, counts: Indices
) -> Fields:
    """Kernels that lack what others were measured at; counts: rows of each (K, C, E, M)."""
    measured = counts > 0
    lacks = measured.any(axis=0) & ~measured
    configs, lacking = list(grid), {}
    for k, kernel in enumerate(kernels):
        if (missing := np.flatnonzero(lacks[k])).size:
            more = f" and {missing.size - 1} more" if missing.size > 1 else ""
            lacking[kernel] = f"'{kernel}' lacks {configs[missing[0]]}{more}"
    if not lacking:
        return None
    mend = _one_mistake(table, kernels, grid, measured) or "measure them"
    more = f", and {len(lacking) - 3} more kernels" if len(lacking) > 3 else ""
    left, *steps = complete_part(measured)
    configurations = int(np.asarray(measured.any(axis=0))[np.ix_(*steps)].sum())
    settings = f"{counted(len(left), 'kernel')} x {counted(configurations, 'configuration')}"
    drop, keep = parameter("incomplete", "drop"), parameter("incomplete", "keep")
    mend += f"; or {drop} leaves {counted(len(kernels) - len(lacking), 'kernel')}, "
    mend += f"{parameter('incomplete', 'drop-settings')} {settings}, {keep} those at the base"
    return {
        "count": len(lacking),
        "total": len(kernels),
        "lacking": ", ".join([*lacking.values()][:3]) + more,
        "mend": mend,
        "settings": settings,
        "kernels": tuple(lacking),
    }


def _one_mistake(
    table: Table, kernels: Sequence[str], grid: ConfigGrid, present: Mask
) -> str | None:
    """What explains in one stroke that kernels lack configurations, with its mend."""
    if jittering := _jitter(grid):
        return jittering
    for axis, others in zip(AXES, ((2, 3), (1, 3), (1, 2)), strict=True):
        has_step, steps = np.asarray(present.any(axis=others)), getattr(grid, axis)
        for step, (low, high) in enumerate(pairwise(steps)):
            is_near = axis != "cu_count" and high < _ONE_CLOCK * low
            if is_near and not has_step[:, step : step + 2].all(axis=1).any():
                return (
                    f"no kernel has both {axis} {low:g} and {high:g}: if these are one clock, as "
                    "it was set and as it ran, give all its rows one number"
                )
        share = has_step.mean(axis=0)
        if share.max() > 0.5 > share.min():
            step = int(share.argmin())
            kernel = kernels[int(has_step[:, step].argmax())]
            row = int(np.flatnonzero(table.numbers[axis] == steps[step])[0])
            return (
                f"only {int(has_step[:, step].sum())} of {len(kernels)} kernels were at {axis} "
                f"{steps[step]:g}, such as '{kernel}' in {table.row(row)}: if a clock was not kept "
                "there, measure again, or leave these rows out"
            )
    return None


def _jitter(grid: ConfigGrid) -> str | None:
    """That clocks are observed ones, many within a few MHz of each other."""
    for name, steps in (("engine", grid.engine_mhz), ("memory", grid.memory_mhz)):
        groups = np.split(steps, np.flatnonzero(np.diff(steps) > _JITTER_MHZ) + 1)
        widest_mhz = max(np.ptp(group) for group in groups)
        if widest_mhz <= _JITTER_MHZ and len(steps) >= 2 * len(groups):
            return (
                f"{len(steps)} {name} clocks lie in {counted(len(groups), 'group')} of "
                f"+-{widest_mhz / 2:g} MHz: observed clocks? give the requested ones, or "
                f"{parameter('snap_clocks', f'{_JITTER_MHZ:g}')}"
            )
    return None


def unlike_repetitions(
    table: Table, kernels: Sequence[str], cells: tuple[Indices, ...], rows: Rows
) -> Fields:
    """Rows of one kernel at one configuration that take unlike times, but for parts of a run.

    cells: kernel, and in a sweep the place on each axis, of each row of the table.
    """
    if len(rows.time_samples) < 2:
        return None
    times = np.where(rows.has_parts, np.nan, rows.time_samples)
    low, high = np.fmin.reduce(times), np.fmax.reduce(times)
    unlike = np.argwhere(high > _SPREAD * low)
    if not len(unlike):
        return None
    worst = max(unlike, key=lambda cell: high[tuple(cell)] / low[tuple(cell)])
    is_worst = np.all([place == at for place, at in zip(cells, worst, strict=True)], axis=0)
    worst_rows, times_ms = np.flatnonzero(is_worst), table.numbers["time_ms"]
    first, *_, last = sorted(worst_rows.tolist(), key=lambda row: float(times_ms[row]))
    ends = (
        f"{times_ms[first]:.4g} ms in {table.row(first)}, {times_ms[last]:.4g} in {table.row(last)}"
    )
    names = tuple(dict.fromkeys(kernels[cell[0]] for cell in unlike))
    cases = counted(len(unlike), "case")
    return {"cases": cases, "kernel": shortened(kernels[worst[0]]), "ends": ends, "kernels": names}


def changing_launch(table: Table, kernels: Sequence[str], cells: tuple[Indices, ...]) -> Fields:
    """A kernel whose grid or block changes with the clocks: it is not one launch, then.

    With the CU count both may change, since programs make as many workgroups as there are CUs.
    """
    shape = tuple(int(place.max()) + 1 for place in cells[:2])
    cell_of_row = np.ravel_multi_index(cells[:2], shape)
    for column in ("workgroups", "workgroup_size"):
        if not table.has_values(column):
            continue
        values = table.numbers[column]
        low, high = np.full(np.prod(shape), np.inf), np.zeros(np.prod(shape))
        np.fmin.at(low, cell_of_row, values)
        np.fmax.at(high, cell_of_row, values)
        changing = np.flatnonzero(high > low)
        if changing.size:
            first = changing[0]
            row = np.flatnonzero((cell_of_row == first) & (values == high[first]))[0]
            ends = f"{low[first]:g} and, in {table.row(int(row))}, {high[first]:g}"
            names = tuple(dict.fromkeys(kernels[k] for k in (changing // shape[1]).tolist()))
            count = counted(len(names), "kernel")
            return {"column": column, "count": count, "ends": ends, "kernels": names}
    return None


def jumping_times(kernels: Sequence[str], grid: ConfigGrid, time_ms: Floats) -> Fields:
    """Times (K, C, E, M) that rise with a clock, or fall by far more than the clock rises.

    NaN where a kernel was not measured.
    """
    largest, fields, jumping = np.log(_JUMP), {}, set()
    for axis, name in enumerate(AXES[1:], start=2):
        if len(getattr(grid, name)) < _COURSE:
            continue
        rise = np.diff(np.log(getattr(grid, name)))
        step = np.diff(np.log(time_ms), axis=axis)
        rise_along = np.expand_dims(rise, [a for a in range(4) if a != axis])
        beyond = np.nan_to_num(np.maximum(step, -step - rise_along))
        jumping.update(np.nonzero(beyond > np.log(_JUMP))[0].tolist())
        if beyond.max(initial=0) > largest:
            largest = beyond.max()
            k, *low = map(int, np.unravel_index(beyond.argmax(), beyond.shape))
            high = [place + (a == axis) for a, place in enumerate(low, start=1)]
            ends = (tuple(low), tuple(high))
            at_ends = [f"{time_ms[k, *end]:.4g} ms at {grid.config(end)}" for end in ends]
            fields = {"kernel": kernels[k], "times": " and ".join(at_ends)}
    if not jumping:
        return None
    names = tuple(kernels[k] for k in sorted(jumping))
    return {**fields, "count": counted(len(names), "kernel"), "kernels": names}


def doubtful_columns(
    columns: Collection[str], table: Table | None = None, cells: tuple[Indices, ...] = ()
) -> Fields:
    """Columns that count as counters, though their names or values say something else.

    nvprof has names of shares for levels from 0 to 10 too, beside the counts that are read. table,
    cells: to train on, its kernel and place on each axis by row; of a profile, which has none, only
    the counters that the model learnt count, so the others do no harm.
    """
    told = []
    for name, called in _CALLED.items() if _INSTEAD.isdisjoint(columns) else ():
        near = [f"'{column}'" for column in columns if called.fullmatch(column)]
        if near and name not in columns:
            mend = f"call it '{name}' if it is a share of the peak, from 0 to 1"
            told.append(f"{', '.join(near)}: {_AS_COUNTER}; {mend}")
    beside = [one for one in columns if _BESIDE.fullmatch(re.sub(r"[^\w.]+", "_", one).strip("_"))]
    if table is None:
        return {"what": "; ".join(told)} if told else None
    if beside:
        mend = f"results are of the base; {parameter('columns', {beside[0]: ''})} leaves one out"
        if "power_w" not in table.numbers and (power := source_meant("power_w", beside)):
            mend = f"power is not learnt; {parameter('columns', {'power_w': power})} learns it"
        told.append(f"{', '.join(map(repr, beside))}: {_AS_COUNTER}; {mend}")
    for column in columns:
        steps = _steps_of_every_cell(table.numbers[column], cells)
        if steps and column not in beside:
            mend = f"make a table of each, or {parameter('columns', {'cu_count': column})}"
            what = f"the rows of one configuration differ in '{column}', always in {steps}"
            told.append(f"{what}: an axis, not repetitions; {mend}")
    return {"what": "; ".join(told)} if told else None


def _steps_of_every_cell(values: Floats, cells: tuple[Indices, ...]) -> str:
    """The two values or more, in words, that a column has in most cells of two kernels or more.

    Repetitions of counters differ from cell to cell.
    """
    known = np.flatnonzero(~np.isnan(values))
    if not cells[0][known].any():
        return ""
    steps, step_of_row = np.unique(values[known], return_inverse=True)
    places = np.stack(cells)[:, known]
    cell_of_row = np.unique(places, axis=1, return_inverse=True)[1].ravel()
    most = _MOST_CELLS * len(steps) * (int(cell_of_row.max()) + 1)
    if len(steps) < 2 or len(known) < most:
        return ""
    pairs = np.unique(cell_of_row * len(steps) + step_of_row)
    return " and ".join(f"{step:g}" for step in steps) if len(pairs) >= most else ""


def uncounted_kernels(table: Table, columns: Sequence[str], kernels: Sequence[str]) -> Fields:
    """Kernels without counters, or with only zeros; or no counter that all have."""
    if not columns:
        return None
    kernel_of_row = np.array(table.text["kernel"], dtype=object)
    values = np.array([table.numbers[name] for name in columns])
    told = []
    is_zero = (np.nan_to_num(values) == 0).all(axis=0) & (values == 0).any(axis=0)
    zeros = np.flatnonzero(is_zero) if len(columns) > 1 else np.array([], np.intp)  # one may be 0
    if zeros.size:
        those = [*dict.fromkeys(kernel_of_row[zeros])]
        told.append(
            f"every counter of {listed(those)} is 0, first in {table.row(int(zeros[0]))}: leave "
            "the cell empty where nothing was counted"
        )
    having = {
        name: set(kernel_of_row[~np.isnan(row)].tolist())
        for name, row in zip(columns, values, strict=True)
    }
    common = max(having, key=lambda name: len(having[name]))
    with_some = set().union(*having.values())
    without = [kernel for kernel in kernels if kernel not in with_some]
    if with_some and len(having[common]) < len(kernels):
        what = f"{listed(without)} of {len(kernels)} without counters; " if without else ""
        but_time = "" if table.metadata.get(NO_TIMES) else " but log_time_ms"
        told.append(
            f"{what}no counter is given for more than {counted(len(having[common]), 'kernel')} "
            f"('{common}'), so that no feature{but_time} is common to all: {_MEDIAN}; "
            "profile these kernels too, or leave them out"
        )
    elif with_some:
        lacked, without = _lacked_counters(having, kernels)
        told += [f"{lacked}: {_MEDIAN}; profile it, or leave these kernels out"] if lacked else []
    about = tuple(dict.fromkeys([*kernel_of_row[zeros], *without]))
    return {"what": "; ".join(told), "kernels": about} if told else None


def _lacked_counters(
    having: Mapping[str, Collection[str]], kernels: Sequence[str]
) -> tuple[str, list[str]]:
    """In words which counters some kernels lack, and these; having: the kernels of each counter."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for name, those in having.items():
        others = tuple(kernel for kernel in kernels if kernel not in those)
        if those and others and not PER_ACCESS.fullmatch(name):
            lacking.setdefault(others, []).append(f"'{name}'")
    texts = []
    for others, names in lacking.items():
        more = f" and {len(names) - 3} other counters" if len(names) > 3 else ""
        texts.append(f"{listed(others)} without {', '.join(names[:3])}{more}")
    return "; ".join(texts[:3]), [*dict.fromkeys(kernel for those in lacking for kernel in those)]


def counters_elsewhere(
    kernels: Sequence[str], names: Sequence[str], counters: Floats, grid: ConfigGrid, base: Index
) -> Fields:
    """Kernels that have a counter at other configurations than the base; counters (K, C, E, M, F).

    Refused where all counters of a kernel are, or all values of a counter. base: its index.
    """
    known = ~np.isnan(counters)
    at_base = known[:, *base]
    only_elsewhere = known.any(axis=(1, 2, 3)) & ~at_base
    counted_work = [name not in OF_LAUNCH for name in names]
    is_kernel_out = ~at_base[:, counted_work].any(axis=1, keepdims=True)
    is_count = np.array([not PER_ACCESS.fullmatch(name) for name in names], dtype=bool)
    is_counter_out = ~at_base.any(axis=0) & is_count
    is_refused = only_elsewhere & (is_kernel_out | is_counter_out)
    told = {"severity": "note", "mend": _MEDIAN}
    if is_refused.any():
        only_elsewhere, mend = is_refused, "choose a base where all kernels have their counters"
        told = {"mend": f"{mend}, or leave these kernels out"}
    lacking = np.flatnonzero(only_elsewhere.any(axis=1)).tolist()
    if not lacking:
        return None
    counter = int(only_elsewhere[lacking].sum(axis=0).argmax())
    at = known[only_elsewhere[:, counter], ..., counter].sum(axis=0)
    where = grid.config(np.unravel_index(at.argmax(), at.shape))
    those = tuple(kernels[k] for k in lacking)
    fields = {"lacking": listed(those), "total": len(kernels), "counter": names[counter]}
    return {**fields, **told, "base": grid.config(base), "where": where, "kernels": those}


def shared_times(kernels: Sequence[str], applications: Sequence[str], time_ms: Floats) -> Fields:
    """Applications of several kernels that all have the same times (K, C, E, M), not one alone.

    NaN where a kernel was not measured.
    """
    shared = {}
    for application in dict.fromkeys(applications):
        those = [k for k, name in enumerate(applications) if name == application]
        times = time_ms[those]
        is_shared = np.isfinite(times).sum(axis=0) > 1
        low, high = np.fmin.reduce(times)[is_shared], np.fmax.reduce(times)[is_shared]
        if (low == high).all() and len(np.unique(low)) > 1:
            shared[f"'{application}'"] = [kernels[k] for k in those]
    if not shared:
        return None
    names, more = [*shared][:3], f" and {len(shared) - 3} others" if len(shared) > 3 else ""
    return {"applications": ", ".join(names) + more, "kernels": tuple(chain(*shared.values()))}


# R: readings of one run at several clocks

LEAST_STEP = 1.05  # between two clocks that tell how a run scales; below, noise may hide it
UNEXPLAINED = 1.1  # times what the clock explains
_SAME_TIME = 1.01  # at the lower clock over the higher: more tell that the clock matters
_HIDDEN = 1.05  # slowdown of the work over that of its run: pauses hide it
_POWER_NOISE = 1.05  # between the powers of two runs of the same work
GIVE_TIMES = (
    "import each log with the time that the same work takes "
    f"({command('import LOG', time_ms='MS', application='NAME')}) and give the tables; of a "
    "million tokens it is 1e9 / (tokens per second)"
)


@dataclass(frozen=True)
class Comparison:
    """A run of the same work at another engine clock; its numbers are over those of the base's run.

    what: it is called. power, worked (how long the GPU worked): NaN where not known. resolution: to
    which part of itself a time is known. is_log: else it is a trace.
    """

    what: str
    base_mhz: float
    mhz: float
    time: float
    power: float = math.nan
    worked: float = math.nan
    resolution: float = 0.0
    is_log: bool = True

    @property
    def clock(self) -> float:
        """The clock over the base's."""
        return self.mhz / self.base_mhz

    def at_lower_clock(self, ratio: float) -> float:
        """A ratio turned such that it is of the run at the lower clock over the other."""
        return ratio if self.clock < 1 else 1 / ratio

    def fields(self, **others: str) -> dict[str, Any]:
        """The fields that its sentences name."""
        takes = f"{self.what} {'takes' if self.is_log else 'take'} {self.time:.2f} times as long as"
        return {"takes": takes, "mhz": self.mhz, "base_mhz": self.base_mhz, **others}


def other_work(run: Comparison) -> Fields:
    """Times that no clock explains, or power that falls as the clock rises."""
    files = "logs" if run.is_log else "traces"
    least, most = sorted((1.0, 1 / run.clock))
    if not least / UNEXPLAINED <= run.time <= most * UNEXPLAINED:
        return run.fields(usual=f"{least:.2f} to {most:.2f} times", files=files)
    if run.at_lower_clock(run.power) > _POWER_NOISE:
        draw = "draws" if run.is_log else "draw"
        draws = f"{run.what} {draw} {run.power:.2f} times as much power as"
        return run.fields(files=files) | {"takes": draws, "usual": "draws more at the higher clock"}
    return None


def hidden_slowdown(run: Comparison) -> Fields:
    """The GPU worked longer at the lower clock by more than the whole run took: pauses hide it."""
    if not run.at_lower_clock(run.worked / run.time) > _HIDDEN:
        return None
    lower_mhz = min(run.mhz, run.base_mhz)
    return run.fields() | {"worked": run.worked, "lower_mhz": lower_mhz}


def no_clock_matters(run: Comparison) -> Fields:
    """Runs that take no longer at the lower clock: as one run given twice, or of a set length.

    Two runs of one length may differ by what a time is known to.
    """
    least = max(_SAME_TIME, 1 + 1.5 * run.resolution)
    is_near = max(run.clock, 1 / run.clock) < LEAST_STEP
    if is_near or run.at_lower_clock(run.time) >= least or hidden_slowdown(run):
        return None
    doubt = "Did the GPU run at that clock? A trace does not show it; a log of nvidia-smi does"
    if run.is_log:
        doubt = "If its duration was set, not its work, as in a one-minute load, this is wrong: "
        doubt += GIVE_TIMES
    return run.fields(doubt=doubt)


def open_ends(
    base_mhz: float, base_ends: Mapping[str, Any], ends: Mapping[str, Any], gpus: int
) -> Fields:
    """Logs that begin or end while a GPU works; by GPU the ends at which it does.

    One that does both is part of a run.
    """
    if not base_ends and not ends:
        return None
    parts = max(sum(len(gpu_ends) > 1 for gpu_ends in log.values()) for log in (base_ends, ends))
    if not parts:
        what = (
            "begins or ends while the GPU works; if the run was longer than its log, the "
            "prediction is wrong"
        )
        return {"base_mhz": base_mhz, "what": what, "severity": "warning"}
    yours = f"; if some GPUs ran other jobs, name yours with {parameter('gpu')}"
    what = (
        "begins and ends while the GPU works: parts of runs do not show how times scale; start "
        f"the log before the run and end it after, or {GIVE_TIMES}{yours * (parts < gpus)}"
    )
    return {"base_mhz": base_mhz, "what": what}


def beyond_training(axis: str, asked: float, low: float, high: float, wider: bool) -> Fields:
    """A setting beyond those from low to high, which training speaks for; it is predicted too.

    wider: whether intervals are, there.
    """
    if low <= asked <= high:
        return None
    side, end, most = ("below", low, "lowest") if asked < low else ("above", high, "highest")
    how = f"{side} {end:g}, the {most} in training: extrapolated"
    return {"axis": axis, "asked": asked, "how": how + ", with a wider interval" * wider}


# P: what a model predicts


def simulated_for_real(origin: str | None, trained: Sequence[str], device: str) -> Fields:
    """A model trained on made or simulated data that is to predict another device."""
    if origin not in ("made", "simulated") or device in trained:
        return None
    return {"origin": origin, "trained": trained[0], "device": device, "force": parameter("force")}


def feature_outside(
    name: str, value: float, low: float, high: float, shown: Callable[[str, float], str]
) -> Fields:
    """A feature outside its training range; shown: a value of that name for a reader."""
    if low <= value <= high:
        return None
    side, end, most = ("below", low, "lowest") if value < low else ("above", high, "highest")
    return {"name": name, "how": f"{shown(name, value)} is {side} {shown(name, end)}, the {most}"}


def more_than_supplied(power_w: Floats, configs: int, supplied: str) -> Fields:
    """Configurations where a kernel would draw more than the board can supply [W]."""
    if not power_w.size:
        return None
    count = f"{power_w.size} of {configs}"
    return {"count": count, "supplied": supplied, "most_w": power_w.max()}
