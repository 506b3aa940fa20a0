"""Sampled profiles: averages over a whole run, as DCGM and the like take them, and their faults.

A table of them says `"profile_kind": "sampled"` in its metadata. Its counters are shares of time
or of a peak, 0 to 1; its power is that of the board.

Further runs at other engine clocks: which clock tells most, and whether they did the same work.

The times of the same work rise by no more than the clock falls, and its power falls with it; runs
of which this is not so are refused.

Which kernels of a further trace are the profiled ones: by function, grid and block.

Grid and block stand in a kernel's name only where its own trace has several of them. Another grid
is other work, as of another batch of a language model's server: its time tells of no clock.

Further measured points of profiled kernels, read from tables: what `--also` names.

Where a kernel was measured, its surface is what was measured.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.checks import warn_of_parts
from mlscale.data.devices import find_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import (
    MeasuredPoint,
    Profiles,
    configurations,
    in_application,
    launches_of_rows,
)
from mlscale.data.repetitions import Rows
from mlscale.data.surfaces import Surfaces
from mlscale.data.table import Table, to_samples
from mlscale.data.table_files import read_table
from mlscale.errors import InputError, warn
from mlscale.text import counted, listed, share_in_percent, shortened

PROFILE_KIND = "sampled"
# DCGM's own names, and those of nvidia-smi.
SHARES = (
    *("gr_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"),
    *("fp64_active", "fp32_active", "fp16_active", "gpu_utilisation", "memory_copy_utilisation"),
)
LARGEST_FALL = 0.15  # of power, from one clock to the next higher
UNEXPLAINED = 1.1  # of times that the clock explains


def is_sampled(metadata: Mapping[str, Any]) -> bool:
    """Whether a table's metadata say that its profiles are averages of whole runs."""
    return metadata.get("profile_kind") == PROFILE_KIND


def is_engine_sweep(measurements: Measurements) -> bool:
    """Whether a table is of sampled profiles at one CU count and one memory clock."""
    cus, _, memories = measurements.grid.shape
    return is_sampled(measurements.metadata) and cus == memories == 1


def require_engine_sweep(name: str, table: Measurements, least: int) -> None:
    """Raise InputError where a predictor of that name cannot learn from a table.

    least: engine clocks, at one CU count and one memory clock.
    """
    cus, engines, memories = table.grid.shape
    if cus > 1 or memories > 1 or engines < least or not table.kernels:
        raise InputError(
            f"'{name}' learns from kernels at one CU count, one memory clock and {least} engine "
            f"clocks or more; the table of '{table.device}' has "
            f"{counted(len(table.kernels), 'kernel')}, {counted(cus, 'CU count')}, "
            f"{counted(engines, 'engine clock')} and {counted(memories, 'memory clock')}"
        )


def without_power_faults(table: Measurements) -> Measurements:
    """The kernels whose power does not fall at a higher clock."""
    faults = power_faults(table)
    return table.select([k for k, name in enumerate(table.kernels) if name not in faults])


def power_faults(measurements: Measurements) -> dict[str, str]:
    """What is wrong with a kernel's power, by kernel: it falls where the engine clock rises.

    Power cannot fall by more than noise when the same work runs at a higher clock, so a fall of
    more than 15 % is a fault of the measurement.
    """
    if measurements.power_w is None:
        return {}
    steps = measurements.power_w[:, :, 1:] / measurements.power_w[:, :, :-1]
    faults = {}
    for kernel, ratios in zip(measurements.kernels, steps, strict=True):
        if ratios.size and ratios.min() < 1 - LARGEST_FALL:
            at = int(np.unravel_index(ratios.argmin(), ratios.shape)[1])
            low, high = measurements.grid.engine_mhz[at : at + 2]
            faults[kernel] = (
                f"its power falls by {1 - ratios.min():.0%} from {low:g} to {high:g} MHz, "
                "a higher clock: a fault of the measurement"
            )
    return faults


def clocks_not_reached(measurements: Measurements) -> dict[float, float]:
    """Engine clocks [MHz] that were set but not kept, each with how much too long times are.

    No kernel slows down by more than the clock. Where the slowest tenth of kernels does, by more
    than 10 %, relative to the highest clock, the GPU ran at a lower clock than the one that was
    set; their 90th percentile of time x clock is the second number.
    """
    cycles = measurements.time_ms * np.array(measurements.grid.engine_mhz)[:, None]
    excess = np.quantile(cycles / cycles[:, :, -1:], 0.9, axis=0).max(axis=(0, 2))
    clocks = zip(measurements.grid.engine_mhz, excess.tolist(), strict=True)
    return {clock: over for clock, over in clocks if over > UNEXPLAINED}


LEAST_STEP = 1.05  # between the engine clocks of two runs that tell how a run scales
SECOND_CLOCK = 2 / 3  # of the base's, for a second run that tells most of the range
LOW = 0.4  # of a GPU's highest engine clock: training tables begin a little below
COARSE = 0.03  # of a run's time, between two samples: what two times tell of a clock is lost
NEAR = 1.03  # between two clocks: up to here time may stay the same within its noise
SAME_TIME = 1.01  # at the lower clock over the higher: more tell that the clock matters
HIDDEN = 1.05  # of what work slows by, over what its run does, where pauses hide it
POWER_NOISE = 1.05  # of board power between two runs of the same work
_GIVE_TIMES = (
    "import each log with the time that the same work takes (mlscale import LOG --time MS "
    "--application NAME) and give the tables; of a million tokens it is 1e9 / (tokens per second)"
)


def second_clock_mhz(profiles: Profiles) -> int:
    """The engine clock at which a second run tells most [MHz]: below the base's, if it is not low.

    Low is what a model predicts at most a little below: see LOW. It is one that the GPU is known
    to offer, where its clocks are.
    """
    device, base_mhz = find_device(profiles.device), profiles.base.engine_mhz
    offered = device.engine_clocks_mhz() if device else ()
    sheet_mhz = device.datasheet.engine_mhz if device and device.datasheet else 0.0
    highest = max(base_mhz, sheet_mhz, *offered)
    below = SECOND_CLOCK * base_mhz
    best = below if below >= LOW * highest else base_mhz / SECOND_CLOCK
    nearest: float = min(offered, key=lambda mhz: abs(mhz - best), default=best)
    return round(nearest)


def require_same_work(
    profiles: Profiles, table: Table, kernels: Sequence[str], configs: Sequence[HardwareConfig]
) -> None:
    """Raise InputError unless a table's rows can be the profiled runs at other engine clocks.

    kernels and configs: of each row. Times rise by no more than the clock falls, and power falls
    with it. Warns where a time is known too coarsely, where a run may be longer than its log, and
    where the lower clock costs no time.
    """
    base = profiles.base
    _require_whole_runs(profiles, table)
    clocks = _clock_ratios(profiles, table, configs)
    positions = {name: k for k, name in enumerate(profiles.kernels)}
    known = [positions[kernel] for kernel in kernels]
    times = table.positive("time_ms") / profiles.time_ms[known]
    powers = np.full(len(table), np.nan)
    if table.has_values("power_w") and profiles.power_w is not None:
        powers = table.positive("power_w") / profiles.power_w[known]
    sample_ms = max(
        (ms for one in (profiles, table) for ms in one.metadata.get("sample_ms", {}).values()),
        default=0.0,
    )
    shortest_ms = float(min(profiles.time_ms[known].min(), table.positive("time_ms").min()))
    if sample_ms > COARSE * shortest_ms:
        warn(
            f"{table.source}: times are known to one sample, {sample_ms:.4g} ms, "
            f"{sample_ms / shortest_ms:.0%} of the shortest run, so the intervals are too narrow; "
            "let the runs take longer, or sample more often"
        )
    for row, (clock, time, power) in enumerate(zip(clocks, times, powers, strict=True)):
        where = f"{table.source}: '{kernels[row]}' at {configs[row].engine_mhz:g} MHz"
        at_base = f"at {base.engine_mhz:g} MHz"
        _require_explained(f"{where} takes", at_base, clock, time, "logs")
        if (power if clock < 1 else 1 / power) > POWER_NOISE:
            raise InputError(
                f"{where} draws {power:.2f} times as much power as {at_base}, the same work draws "
                "more at the higher clock; give logs of runs that do the same work, under no "
                "power or thermal limit"
            )
    if not _warn_of_hidden_work(profiles, table, float(np.median(clocks)), float(np.median(times))):
        _warn_of_no_slowdown(table, profiles, clocks, times, sample_ms / shortest_ms)


def require_same_trace(
    profiles: Profiles, table: Table, kernels: Sequence[str], configs: Sequence[HardwareConfig]
) -> None:
    """Raise InputError unless a table's rows can be the profiled kernels at other engine clocks.

    kernels and configs: of each row. At each clock the sum of their times, each as often as the
    profiles' launches say, rises by no more than the clock falls. Warns where it does not rise.
    """
    clocks = _clock_ratios(profiles, table, configs)
    positions = {name: k for k, name in enumerate(profiles.kernels)}
    known = np.array([positions[kernel] for kernel in kernels])
    times = profiles.weights[known] * table.positive("time_ms")
    for clock in np.unique(clocks):
        rows = clocks == clock
        ratio = float(times[rows].sum() / profiles.run_times_ms[known[rows]].sum())
        where = f"{table.source}: at {clock * profiles.base.engine_mhz:g} MHz"
        at_base = f"at {profiles.base.engine_mhz:g} MHz"
        _require_explained(f"{where} its kernels take", at_base, float(clock), ratio, "traces")
        if (ratio if clock < 1 else 1 / ratio) < SAME_TIME and max(clock, 1 / clock) > NEAR:
            warn(
                f"{where} its kernels take {ratio:.2f} times as long as {at_base}, so that no "
                "clock seems to matter: did the GPU run at that clock? A trace does not tell; a "
                "log of nvidia-smi does"
            )


def _clock_ratios(profiles: Profiles, table: Table, configs: Sequence[HardwareConfig]) -> Floats:
    """Engine clocks over the base's, of each row. Raises InputError where they tell nothing."""
    base = profiles.base
    if memories := sorted({at.memory_mhz for at in configs} - {base.memory_mhz}):
        raise InputError(
            f"{table.source}: ran at the memory clock {memories[0]:g} MHz, the base is at "
            f"{base.memory_mhz:g}; both runs must be at the same one"
        )
    clocks = np.array([at.engine_mhz for at in configs]) / base.engine_mhz
    if np.abs(np.log(clocks)).max() < np.log(LEAST_STEP):
        raise InputError(
            f"{table.source}: ran at {configs[0].engine_mhz:g} MHz, as the base at "
            f"{base.engine_mhz:g} or nearly so, which does not tell how times scale; run the same "
            f"work at about {second_clock_mhz(profiles)} MHz, locked or by a low power cap"
        )
    return clocks


def _require_explained(what: str, at_base: str, clock: float, time: float, files: str) -> None:
    """Raise InputError on a ratio of times that a ratio of clocks does not explain."""
    least, most = sorted((1.0, 1 / clock))
    if not least / UNEXPLAINED <= time <= most * UNEXPLAINED:
        raise InputError(
            f"{what} {time:.2f} times as long as {at_base}, the same work {least:.2f} to "
            f"{most:.2f} times; give {files} of runs that do the same work"
        )


def _warn_of_no_slowdown(
    table: Table, profiles: Profiles, clocks: Floats, times: Floats, sample: float
) -> None:
    """Warn where runs take no longer at the lower clock, as runs of a set length do.

    clocks and times: of each row over the base's, of which half are such; sample: to which a time
    is known, as a part of it. Two runs of one length may differ by it.
    """
    for clock in np.unique(clocks):
        time = float(np.median(times[clocks == clock]))
        least = max(SAME_TIME, 1 + 1.5 * sample)
        if (time if clock < 1 else 1 / time) < least and max(clock, 1 / clock) > NEAR:
            warn(
                f"{table.source}: at {clock * profiles.base.engine_mhz:g} MHz the run takes "
                f"{time:.2f} times as long as at {profiles.base.engine_mhz:g} MHz, so that no "
                "clock seems to matter. If its length was set and not its work, as of a load of a "
                f"minute, this is wrong: {_GIVE_TIMES}"
            )


def _warn_of_hidden_work(profiles: Profiles, table: Table, clock: float, time: float) -> bool:
    """Warn where the GPU worked longer at the lower clock by more than the whole run took.

    clock and time: of the further run over the base's. Pauses then hide what the work loses.
    Returns whether it warned.
    """
    base_ms, other_ms = (
        sum(one.metadata.get("working_ms", {}).values()) for one in (profiles, table)
    )
    if not (base_ms and other_ms):
        return False
    worked = other_ms / base_ms
    if (worked / time if clock < 1 else time / worked) <= HIDDEN:
        return False
    lower_mhz = min(clock, 1.0) * profiles.base.engine_mhz
    warn(
        f"{table.source}: its GPU worked for {other_ms / 1e3:.4g} s, that at "
        f"{profiles.base.engine_mhz:g} MHz for {base_ms / 1e3:.4g} s: {worked:.2f} times as "
        f"long, the whole run {time:.2f} times. Slowdowns are of the whole run; what runs "
        "between its pauses, such as the answer to a request, slows by more, and so does the "
        f"whole where the pauses end, which may be below {lower_mhz:.0f} MHz"
    )
    return True


def _require_whole_runs(profiles: Profiles, table: Table) -> None:
    """Raise InputError where a log begins and ends amid a run, whose time it does not say."""
    of_logs = [one.metadata.get("open_ends", {}) for one in (profiles, table)]
    which = f"{table.source}: this log, or that of the run at {profiles.base.engine_mhz:g} MHz,"
    parts = max(sum(len(ends) > 1 for ends in log.values()) for log in of_logs)
    if parts:
        of_others = "; if some GPUs are of other jobs, name yours with --gpu"
        raise InputError(
            f"{which} begins and ends while the GPU works: parts of runs do not tell how their "
            f"times scale; log from before a run to after it, or {_GIVE_TIMES}"
            + (of_others if parts < len(profiles.kernels) else "")
        )
    if any(of_logs):
        warn(
            f"{which} begins or ends while the GPU works; if the run was longer than its log, what "
            "is predicted is wrong"
        )


_GEOMETRY = ("workgroups", "workgroup_size")
_TOLD = 0.01  # of the run's time, from which on it is told that a trace lacks kernels


def with_kernels_of(profiles: Profiles, table: Table) -> Table:
    """The rows of a further trace that are of the profiles' kernels, under their names.

    A table is as it was if it or the profiles come from no profiler's files. Where the profiles
    have no counters, warns of kernels that it lacks. Raises InputError where it has none.
    """
    of_base, own = (_launches(one.metadata) for one in (profiles, table))
    if not (of_base and own):
        return table
    by_launch = {_key(of_base[name]): name for name in profiles.kernels if name in of_base}
    names: list[str | None] = []
    for row, name in enumerate(table.text["kernel"]):
        launch = {**own.get(name, {}), **_geometry(table, row)}
        is_other = _differ(launch, of_base.get(name, {}))
        names.append(by_launch.get(_key(launch) or ()) or (None if is_other else name))
    kernels = set(profiles.kernels)
    known = [row for row, name in enumerate(names) if name in kernels]
    if not known:
        raise InputError(
            f"{table.source}: has none of the profile's kernels, at the same grid and block; give "
            "a trace of the same program and inputs"
        )
    found = [str(names[row]) for row in known]
    if profiles.are_times_alone:
        _warn_of_lacking(profiles, table, found)
    chosen = table.select(known)
    return replace(chosen, text={**chosen.text, "kernel": found})


def _warn_of_lacking(profiles: Profiles, table: Table, found: list[str]) -> None:
    """Warn of kernels of much time that a further trace has not."""
    lacks = ~np.isin(profiles.kernels, found)
    times_ms = np.where(lacks, profiles.run_times_ms, 0)
    share = float(times_ms.sum() / profiles.run_times_ms.sum())
    if share >= _TOLD:
        largest = np.argsort(-times_ms, kind="stable")[: lacks.sum()]
        names = listed([f"'{shortened(profiles.kernels[k])}'" for k in largest])
        warn(
            f"{table.source}: has no launch of {names} at the grid and block that they have at the "
            f"base, {share_in_percent(share)} % of the run's time: they are taken to scale as "
            "training runs do on average, with a wide interval; trace both runs under the same load"
        )


def _launches(metadata: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """By kernel its launch, as an import writes it; nothing where no import did."""
    launches = metadata.get("launches")
    if not isinstance(launches, Mapping):
        return {}
    is_imported = all(isinstance(one, Mapping) and "function" in one for one in launches.values())
    return launches if is_imported else {}


def _geometry(table: Table, row: int) -> dict[str, float]:
    """Grid and block of a row, as far as it says them: a table of several runs may have several."""
    values = {name: table.numbers[name][row] for name in _GEOMETRY if name in table.numbers}
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def _key(launch: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Function, grid and block; None where one of them is not known."""
    key = (launch.get("function"), *(launch.get(name) for name in _GEOMETRY))
    return None if None in key else key


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two launches are known to have other grids or blocks."""
    pairs = [(one.get(name), other.get(name)) for name in _GEOMETRY]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


Samples = defaultdict[tuple[HardwareConfig, str], list[float]]


def add_points(
    profiles: Profiles, tables: Sequence[tuple[Path | str | Table, HardwareConfig | None]]
) -> Profiles:
    """Add the times and powers that some tables hold at other configurations to the profiles.

    tables: as they are or by their files, each with the one configuration that is meant, None for
    all that its rows name; a table without columns of configurations is taken to be of that one,
    one with engine clocks alone to have the base's CUs and memory clock.
    Rows at the base are left out, those of one kernel are made one as in a profile, of several
    tables the median is taken, counters are not looked at. Raises InputError on a kernel that the
    profiles lack, another device, a table that has nothing at the configuration, and further runs
    that cannot have done the same work as the sampled ones, or as a trace without counters.
    """
    times_ms: Samples = defaultdict(list)
    powers_w: Samples = defaultdict(list)
    sources: dict[HardwareConfig, str] = {}
    for source, config in tables:
        table = source if isinstance(source, Table) else read_table(source)
        table = with_kernels_of(profiles, table)
        of_runs, kernels, configs, own = _further_rows(table, config, profiles)
        sources = own | sources
        for row, cell in enumerate(zip(configs, kernels, strict=True)):
            times_ms[cell].append(float(of_runs.numbers["time_ms"][row]))
            if "power_w" in of_runs.numbers:
                powers_w[cell].append(float(of_runs.numbers["power_w"][row]))
    points = tuple(
        MeasuredPoint(
            config,
            _medians(times_ms, config, profiles.kernels),
            _medians(powers_w, config, profiles.kernels) if powers_w else None,
            sources[config],
        )
        for config in dict.fromkeys(config for config, _ in times_ms)
    )
    return replace(profiles, points=(*profiles.points, *points))


def with_measured(surfaces: Surfaces, profiles: Profiles, quantity: str) -> Surfaces:
    """The surfaces with what was measured at further points of their grid, without interval."""
    for config, factors in profiles.measured_factors(quantity):
        if config not in surfaces.grid:
            continue
        at = (slice(None), *surfaces.grid.index(config))
        sides = {}
        for name in ("values", "low", "high"):
            if (side := getattr(surfaces, name)) is not None:
                sides[name] = side.copy()
                sides[name][at] = np.where(np.isnan(factors), side[at], factors)
        surfaces = replace(surfaces, **sides)
    return surfaces


def _further_rows(
    table: Table, config: HardwareConfig | None, profiles: Profiles
) -> tuple[Table, list[str], list[HardwareConfig], dict[HardwareConfig, str]]:
    """The time and power of each kernel at each configuration that is meant, a row for each.

    With the kernel and the configuration of each row, which are of the same work as the profiles,
    and the first row of each configuration, in words. Raises InputError.
    """
    kernels = _kernels(table, profiles)
    as_at_base = profiles.base if "engine_mhz" in table.numbers else None
    configs = configurations(table, config or as_at_base)
    wanted = set(configs) - {profiles.base} if config is None else {config} - {profiles.base}
    rows = [row for row, at in enumerate(configs) if at in wanted]
    runs = rows or list(range(len(table)))
    of_runs = _made_one(table.select(runs), [(configs[k], kernels[k]) for k in runs])
    if is_sampled(profiles.metadata):
        require_same_work(profiles, *of_runs)
    elif profiles.are_times_alone:
        require_same_trace(profiles, *of_runs)
    if not rows:
        raise InputError(f"{table.source}: {_why_no_point(configs, config, profiles.base)}")
    return *of_runs, {configs[row]: f"{table.source}: {table.row(row)}" for row in rows[::-1]}


def _made_one(
    table: Table, cells: list[tuple[HardwareConfig, str]]
) -> tuple[Table, list[str], list[HardwareConfig]]:
    """Time and power of a table, one row for the rows of each cell, with its kernel and config."""
    distinct = list(dict.fromkeys(cells))
    positions = {cell: place for place, cell in enumerate(distinct)}
    of_row = np.array([positions[cell] for cell in cells])

    def samples(values: Floats) -> Floats:
        return to_samples(values, (of_row,), (len(distinct),))

    launches = launches_of_rows(table)
    rows = Rows(samples(table.positive("time_ms")), None if launches is None else samples(launches))
    configs, kernels = [at for at, _ in distinct], [kernel for _, kernel in distinct]
    warn_of_parts(table.source, kernels, rows)
    numbers = {"time_ms": rows.time_ms}
    if table.has_values("power_w"):
        numbers["power_w"] = rows.power_w(samples(table.positive("power_w")))
    return replace(table, text={}, numbers=numbers, lines=()), kernels, configs


def _kernels(table: Table, profiles: Profiles) -> list[str]:
    """Which of the profiles' kernels each row is of. Raises InputError on any other."""
    table.require(("kernel", "time_ms"))
    for device in table.text.get("device", []):
        if device != profiles.device:
            raise InputError(
                f"{table.source}: is of device '{device}', the profile of '{profiles.device}'"
            )
    kernels = table.text["kernel"]
    applications = table.text.get("application", kernels)
    names, known = [], set(profiles.kernels)
    for row, (application, kernel) in enumerate(zip(applications, kernels, strict=True)):
        own = in_application(application, kernel)
        names.append(own if own in known else kernel)
        if names[row] not in known:
            of_a_run = is_sampled(profiles.metadata)
            mend = (
                "import the logs of one run under one name, with --application"
                if of_a_run
                else f"profile it at the base {profiles.base} too, or take the row out"
            )
            raise InputError(
                f"{table.source}: {table.row(row)}, column 'kernel': the profile has no "
                f"{'run' if of_a_run else 'kernel'} '{kernel}'; {mend}"
            )
    return names


def _why_no_point(
    configs: list[HardwareConfig], config: HardwareConfig | None, base: HardwareConfig
) -> str:
    if config == base:
        return f"{config} is the base, which the profile has; give another configuration"
    if config is None:
        return f"has rows at the base {base} alone; a further point is at another configuration"
    distinct = list(dict.fromkeys(map(str, configs)))
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return f"has no row at {config}; its rows are at {', '.join(distinct[:3])}{more}"


def _medians(samples: Samples, config: HardwareConfig, kernels: tuple[str, ...]) -> Floats:
    """The medians (K,) at a configuration, NaN where there is none."""
    return np.array([np.median(samples.get((config, kernel), [np.nan])) for kernel in kernels])
