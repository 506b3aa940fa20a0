"""Further measured points of profiled kernels, read from tables: what `also` names.

A monitor's log, or a trace, of a further run must be of the same work as the profile's: times rise
by no more than the clock falls, and power falls with it. A trace's kernels are the profiled ones by
function, grid and block, as these stand in a kernel's name only where its own trace has several;
another grid is other work, whose time tells of no clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.cells import Rows, over_repetitions
from mlscale.data.checks import check, check_units
from mlscale.data.devices import find_device
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.logs import is_sampled
from mlscale.data.predicates import LEAST_STEP, Comparison
from mlscale.data.profiles import (
    MeasuredPoint,
    Profiles,
    configurations,
    gpu_count_of,
    height,
    hottest_gpu_ratio_of,
    in_application,
    launches_of_rows,
    log_time_sd,
    lowest_caps_w,
    warn_of_parts,
)
from mlscale.data.surfaces import Surfaces
from mlscale.data.table import Table, to_samples
from mlscale.data.table_files import read_table
from mlscale.errors import InputError, warn
from mlscale.parameters import command, parameter
from mlscale.text import counted, listed, share_in_percent, shortened

SECOND_CLOCK = 0.6  # share of the base's clock: a second run there tells most of the range
# A third run's share of the highest clock: below two that are above HIGH_SECOND, else between.
THIRD_BELOW, THIRD_BETWEEN, HIGH_SECOND = 0.5, 0.8, 0.7
LOW = 0.4  # share of a GPU's highest engine clock: training tables begin a little below
LEAST_MS = 2000.0  # shorter logged runs are in large part a rise of the power
COARSE = 0.03  # share of a run's time between samples: more hides what a clock does to it
_GEOMETRY = ("workgroups", "workgroup_size")
_TOLD = 0.01  # share of the run's time that a trace may lack untold


def add_points(
    profiles: Profiles, tables: Sequence[tuple[Path | str | Table, HardwareConfig | None]]
) -> Profiles:
    """Add the times and powers that some tables hold at other configurations to the profiles.

    tables: tables or their files, each with its one configuration, None for all that its rows
    name; a table without columns of configurations is assumed to be of that one,
    one with engine clocks alone to have the base's CUs and memory clock.
    Rows at the base are left out, those of one kernel are made one as in a profile, of several
    tables the median is taken, counters are not looked at. Raises InputError on a kernel that the
    profiles lack, another device, a table that has nothing at the configuration, and further runs
    that cannot have done the same work as logged ones, or as a trace without counters.
    """
    read: list[MeasuredPoint] = []
    sources: list[str] = []
    for source, config in tables:
        table = source if isinstance(source, Table) else read_table(source)
        further = _read_points(with_kernels_of(profiles, table), config, profiles)
        if any(_is_same(one, other) for one in further for other in read):
            raise InputError(f"{table.source}: is given twice; name each further run once")
        read += further
        sources += [table.source] * len(further)
    are_of_runs = is_sampled(profiles.metadata) or profiles.are_times_alone
    if are_of_runs:
        _require_another_clock(profiles, read, sources[0])
    configs = sorted({one.config for one in read}, key=height, reverse=True)
    points = [_median([one for one in read if one.config == config]) for config in configs]
    if all(np.isnan(one.power_w).all() for one in points if one.power_w is not None):
        points = [replace(one, power_w=None) for one in points]
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    _refuse_copies(base, points)
    if are_of_runs:
        files = {one.config: file for one, file in zip(read, sources, strict=True)}
        _check_pairs(profiles, base, points, files)
    every = [profiles.metadata, *(t.metadata for t, _ in tables if isinstance(t, Table))]
    sample_ms = [ms for one in every for ms in one.get("sample_ms", {}).values()]
    metadata = profiles.metadata
    if sample_ms:
        metadata = {**metadata, "sample_ms": dict.fromkeys(profiles.kernels, max(sample_ms))}
    return replace(profiles, points=(*profiles.points, *points), metadata=metadata)


def is_short(profiles: Profiles) -> bool:
    """Whether a run takes less than LEAST_MS, or one sample of a log is more than COARSE of it."""
    sample_ms = max(profiles.metadata.get("sample_ms", {}).values(), default=0.0)
    times = [profiles.time_ms, *(point.time_ms for point in profiles.points)]
    shortest_ms = min(float(np.nanmin(one, initial=np.inf)) for one in times)
    return shortest_ms < max(LEAST_MS, sample_ms / COARSE)


def warn_of_base(base: str, first: str, powerless: str = "") -> None:
    """Warn if the base is not the file given first, or not the highest, which lacks power."""
    other = f"{powerless}, which is higher but shows no power" if powerless else ""
    told = f"the base is {base}, not {other or f'{first}, which was given first'}"
    warn("R09", told, "warning" if other else "note")


def with_measured(surfaces: Surfaces, profiles: Profiles, quantity: str) -> Surfaces:
    """The surfaces with what was measured at further points, and then at the base, no interval."""
    at_base = [(profiles.base, np.ones(len(profiles.kernels)))] if profiles.points else []
    for config, factors in [*at_base, *profiles.measured_factors(quantity)]:
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


def second_clock_mhz(profiles: Profiles) -> int:
    """The engine clock at which a second run tells most [MHz]: below the base's, if it is not low.

    Low is what a model predicts at most a little below: see LOW. It is one that the GPU is known
    to offer, where its clocks are.
    """
    device, base_mhz = find_device(profiles.device), profiles.base.engine_mhz
    rated_mhz = device.datasheet.engine_mhz if device and device.datasheet else 0.0
    highest_mhz = max(base_mhz, rated_mhz)  # boards for displays do not reach all that they list
    is_low = SECOND_CLOCK * base_mhz < LOW * highest_mhz and not profiles.is_clock_doubted
    above_mhz = min(base_mhz / SECOND_CLOCK, highest_mhz)
    return _nearest_offered(profiles, above_mhz if is_low else SECOND_CLOCK * base_mhz)


def third_clock_mhz(profiles: Profiles, advised_mhz: float) -> tuple[int, str] | None:
    """The engine clock at which a further run tells most [MHz], and of what; None where none does.

    Of two runs THIRD_BELOW of the highest where the lower one is high, else THIRD_BETWEEN, or the
    advised one where it is below all that were run: so errors on GPUs left out are least.
    """
    configs = [profiles.base, *(point.config for point in profiles.points)]
    clocks = sorted({config.engine_mhz for config in configs})
    lowest_mhz, highest_mhz = clocks[0], clocks[-1]
    are_two = not any(LEAST_STEP * lowest_mhz <= mhz <= highest_mhz / LEAST_STEP for mhz in clocks)
    if are_two and lowest_mhz > HIGH_SECOND * highest_mhz:
        wanted_mhz, told = THIRD_BELOW * highest_mhz, "below these clocks"
    elif advised_mhz < lowest_mhz:
        wanted_mhz, told = advised_mhz, "about this answer"
    elif are_two:
        wanted_mhz, told = THIRD_BETWEEN * highest_mhz, "between these clocks"
    else:
        return None
    further_mhz = _nearest_offered(profiles, wanted_mhz)
    apart = min(max(further_mhz / mhz, mhz / further_mhz) for mhz in clocks)
    return (further_mhz, told) if apart >= LEAST_STEP else None


def _nearest_offered(profiles: Profiles, engine_mhz: float) -> int:
    """The nearest engine clock that the GPU offers [MHz], as far as these are known."""
    device = find_device(profiles.device)
    lowest_mhz, _ = (device and device.engine_clock_range_mhz) or (0.0, 0.0)
    offered = device.engine_clocks_mhz() if device else ()
    nearest: float = min(offered, key=lambda mhz: abs(mhz - engine_mhz), default=engine_mhz)
    return round(max(nearest, lowest_mhz))


def _read_points(
    table: Table, config: HardwareConfig | None, profiles: Profiles
) -> list[MeasuredPoint]:
    """What a table holds at the configurations that are meant. Raises InputError."""
    base = profiles.base
    kernels = _kernels(table, profiles)
    check_units(table, profiles.device)
    for clock in AXES[1:] if config else ():
        where = f"{table.source}: {clock} of {parameter('also')}"
        check("value", where, find_device(profiles.device), clock, getattr(config, clock))
    configs = configurations(table, config or (base if "engine_mhz" in table.numbers else None))
    wanted = (set(configs) if config is None else {config}) - {base}
    rows = [row for row, at in enumerate(configs) if at in wanted]
    points = _points(table, rows or range(len(table)), configs, kernels, profiles.kernels)
    over_clocks = [one for one in points if one.config.cu_count == base.cu_count]
    if is_sampled(profiles.metadata) and over_clocks:
        _check_logs(profiles, table, over_clocks)
    elif profiles.are_times_alone and over_clocks:
        _check_memory(profiles, table, over_clocks)
    if not rows and (is_sampled(profiles.metadata) or profiles.are_times_alone):
        _require_another_clock(profiles, points, table.source)
    if config == base:
        raise InputError(
            f"{table.source}: {config} is the base, which the profile has; give another "
            "configuration"
        )
    if not rows:
        distinct = list(dict.fromkeys(map(str, configs)))
        more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
        raise InputError(
            f"{table.source}: has no row at {config or 'a configuration other than the base'}; its "
            f"rows are at {', '.join(distinct[:3])}{more}"
        )
    return points


def _kernels(table: Table, profiles: Profiles) -> list[str]:
    """Which of the profiles' kernels each row is of. Raises InputError on any other."""
    table.require(("kernel", "time_ms"))
    for device in table.text.get("device", []):
        if device != profiles.device:
            raise InputError(
                f"{table.source}: is of device '{device}', the profile of '{profiles.device}'"
            )
    if (count := gpu_count_of(table)) != profiles.gpu_count:
        raise InputError(
            f"{table.source}: ran on {counted(count, 'GPU')}, the base on {profiles.gpu_count}; "
            f"give runs on as many, of logs the same one with {parameter('gpu')}"
        )
    kernels = table.text["kernel"]
    applications = table.text.get("application", kernels)
    names, known = [], set(profiles.kernels)
    for row, (application, kernel) in enumerate(zip(applications, kernels, strict=True)):
        with_application = in_application(application, kernel)
        name = with_application if with_application in known else kernel
        if name not in known:
            what = "kernel"
            mend = f"profile it at the base {profiles.base} too, or delete the row"
            if is_sampled(profiles.metadata):
                what = "run"
                mend = (
                    "import the logs of one run under one name: "
                    f"{command('import LOG', application='NAME', output='TABLE')}"
                )
            raise InputError(
                f"{table.source}: {table.row(row)}, column 'kernel': the profile has no {what} "
                f"'{kernel}'; {mend}"
            )
        names.append(name)
    return names


def _points(
    table: Table,
    rows: Sequence[int],
    configs: Sequence[HardwareConfig],
    kernels: Sequence[str],
    known: Sequence[str],
) -> list[MeasuredPoint]:
    """The rows of each configuration made one for each of the known kernels, NaN where none is."""
    chosen = table.select(rows)
    first_rows: dict[HardwareConfig, int] = {}
    for row in rows:
        first_rows.setdefault(configs[row], row)
    place = {config: p for p, config in enumerate(first_rows)}
    position = {kernel: k for k, kernel in enumerate(known)}
    cells = (
        np.array([position[kernels[row]] for row in rows]),
        np.array([place[configs[row]] for row in rows]),
    )

    def samples(values: Floats) -> Floats:
        return to_samples(values, cells, (len(known), len(place)))

    launches = launches_of_rows(chosen)
    times = samples(chosen.positive("time_ms"))
    made = Rows(times, None if launches is None else samples(launches))
    warn_of_parts(table.source, known, made)
    power_w = np.full(made.time_ms.shape, np.nan)
    if chosen.has_values("power_w"):
        power_w = made.power_w(samples(chosen.positive("power_w")))
    sd, caps_w = log_time_sd(chosen, samples), np.fmin.reduce(lowest_caps_w(chosen, samples))
    ratio = hottest_gpu_ratio_of(chosen)
    return [
        MeasuredPoint(
            config,
            made.time_ms[:, p],
            power_w[:, p],
            f"{table.source}: {table.row(row)}",
            sd[:, p],
            float(caps_w[p]),
            ratio,
        )
        for p, (config, row) in enumerate(first_rows.items())
    ]


def _is_same(one: MeasuredPoint, other: MeasuredPoint) -> bool:
    """Whether both are of the same rows of one file."""
    are_at_one = (one.source, one.config) == (other.source, other.config)
    return are_at_one and np.array_equal(one.time_ms, other.time_ms, equal_nan=True)


def _median(points: Sequence[MeasuredPoint]) -> MeasuredPoint:
    """One point of several at a configuration, each kernel's median."""

    def median(name: str) -> Floats:
        return over_repetitions(np.stack([getattr(one, name) for one in points]), "median")

    cap_w = float(np.fmin.reduce([one.power_cap_w for one in points]))
    ratio = max(one.hottest_gpu_ratio for one in points)
    return MeasuredPoint(
        points[0].config,
        median("time_ms"),
        median("power_w"),
        points[0].source,
        median("log_time_sd"),
        cap_w,
        ratio,
    )


def _check_logs(profiles: Profiles, table: Table, points: Sequence[MeasuredPoint]) -> None:
    """Raise InputError unless these can be the logged runs at other engine clocks."""
    logs = (profiles, table)
    ends = [log.metadata.get("open_ends", {}) for log in logs]
    base_mhz = profiles.base.engine_mhz
    check("ends of logs", table.source, base_mhz, *ends, len(profiles.kernels) * profiles.gpu_count)
    _check_memory(profiles, table, points)
    sample_ms = [ms for log in logs for ms in log.metadata.get("sample_ms", {}).values()]
    times_ms = np.array([one.time_ms for one in points])
    shortest_ms = np.nanmin(np.minimum(times_ms, profiles.time_ms))
    resolution = float(max(sample_ms, default=0.0) / shortest_ms)
    if resolution > COARSE:
        warn(
            "P05",
            f"{table.source}: times are known to within one sample, {max(sample_ms):.4g} ms, "
            f"{100 * resolution:.0f} % of the shortest run, so the intervals are too narrow; "
            "let the runs take longer, or sample more often",
        )
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    runs = [
        _compared(one, base, np.eye(len(profiles.kernels))[k], f"'{profiles.kernels[k]}'")
        for one in points
        for k in np.flatnonzero(np.isfinite(one.time_ms))
    ]
    for run in runs:
        check("further run", table.source, run)
    base_working_ms, working_ms = (sum(log.metadata.get("working_ms", {}).values()) for log in logs)
    clocks = dict.fromkeys(run.mhz for run in runs)
    is_worked_known = base_working_ms and working_ms and len(clocks) == 1
    worked = working_ms / base_working_ms if is_worked_known else np.nan
    for mhz in clocks:
        time = float(np.median([run.time for run in runs if run.mhz == mhz]))
        run = Comparison("the run", base_mhz, mhz, time, np.nan, worked, resolution)
        check("scaling", table.source, run)


def _check_pairs(
    profiles: Profiles,
    base: MeasuredPoint,
    points: Sequence[MeasuredPoint],
    files: Mapping[HardwareConfig, str],
) -> None:
    """Raise InputError unless each reading can be of the same work as that of the next clock.

    Of a trace also as the base, which `_check_logs` has of a log. At each clock the sum of the
    times of all kernels counts, each as often as the profiles' launches say, and their mean power.
    """
    is_log, launches = is_sampled(profiles.metadata), profiles.weights
    what = "the run" if is_log else "its kernels"
    over_clocks = [one for one in points if one.config.cu_count == base.config.cu_count]
    over_clocks.sort(key=lambda one: one.config.engine_mhz)
    for one in () if is_log else over_clocks:
        run = _compared(one, base, launches, what, is_log)
        check("further run", files[one.config], run)
        check("scaling", files[one.config], run)
    for lower, higher in pairwise(over_clocks):
        if np.isfinite(lower.time_ms * higher.time_ms).any():
            run = _compared(lower, higher, launches, what, is_log)
            check("further run", files[lower.config], run)


def _compared(
    one: MeasuredPoint, other: MeasuredPoint, weights: Floats, what: str, is_log: bool = True
) -> Comparison:
    """The kernels that both have, of the one over the other; weights (K,): launches."""
    known = np.isfinite(one.time_ms * other.time_ms) & (weights > 0)
    times_ms, watts = [], []
    for at in (one, other):
        each_ms = (weights * at.time_ms)[known]
        times_ms.append(float(each_ms.sum()))
        energies = np.nan if at.power_w is None else each_ms * at.power_w[known]
        watts.append(float(np.sum(energies)) / times_ms[-1])
    return Comparison(
        what,
        other.config.engine_mhz,
        one.config.engine_mhz,
        times_ms[0] / times_ms[1],
        watts[0] / watts[1],
        is_log=is_log,
    )


def _refuse_copies(base: MeasuredPoint, points: Sequence[MeasuredPoint]) -> None:
    """Raise InputError where two configurations have the same times and powers to the last digit.

    Those of two runs never are, unless there is one number alone.
    """
    nothing = np.full(len(base.time_ms), np.nan)
    for one, other in combinations((base, *points), 2):
        mine, its = (
            np.hstack([at.time_ms, nothing if at.power_w is None else at.power_w])
            for at in (one, other)
        )
        known = np.isfinite(its)
        if known.sum() > 1 and np.array_equal(mine[known], its[known]):
            raise InputError(
                f"{other.source}: holds the same numbers at {other.config} as the run at "
                f"{one.config}: one measurement is given twice"
            )


def _check_memory(profiles: Profiles, table: Table, points: Sequence[MeasuredPoint]) -> None:
    """Raise InputError where a memory clock differs from the base's."""
    base = profiles.base
    memories = {one.config.memory_mhz for one in points} - {base.memory_mhz}
    if memories:
        raise InputError(
            f"{table.source}: ran at the memory clock {min(memories):g} MHz, the base is at "
            f"{base.memory_mhz:g}; both runs must be at the same one"
        )


def _require_another_clock(
    profiles: Profiles, points: Sequence[MeasuredPoint], source: str
) -> None:
    """Raise InputError where all points of as many CUs are at about the base's engine clock."""
    base_mhz, cus = profiles.base.engine_mhz, profiles.base.cu_count
    clocks = np.array([one.config.engine_mhz for one in points if one.config.cu_count == cus])
    if clocks.size and np.abs(np.log(clocks / base_mhz)).max() < np.log(LEAST_STEP):
        raise InputError(
            f"{source}: ran at {clocks[0]:g} MHz, as the base at {base_mhz:g} or "
            "nearly so: that does not show how times scale; run the same work at about "
            f"{second_clock_mhz(profiles)} MHz, locked or by a low power cap"
        )


def with_kernels_of(profiles: Profiles, table: Table) -> Table:
    """The rows of a further trace that are of the profiles' kernels, under their names.

    A table is as it was if it or the profiles come from no profiler's files. Where the profiles
    have no counters, warns of kernels that it lacks. Raises InputError where it has none.
    """
    at_base, further = (_imported_launches(one.metadata) for one in (profiles, table))
    if not (at_base and further):
        return table
    by_launch = {_launch_key(at_base[name]): name for name in profiles.kernels if name in at_base}
    found: dict[int, str] = {}
    known = set(profiles.kernels)
    for row, name in enumerate(table.text["kernel"]):
        launch = {**further.get(name, {}), **_geometry(table, row)}
        same = by_launch.get(_launch_key(launch) or ())
        if same is None and not _differ(launch, at_base.get(name, {})):
            same = name
        if same in known:
            found[row] = same
    if not found:
        raise InputError(
            f"{table.source}: has none of the profile's kernels, at the same grid and block; give "
            "a trace of the same program and inputs"
        )
    if profiles.are_times_alone:
        _warn_of_lacking(profiles, table, list(found.values()))
    chosen = table.select(list(found))
    return replace(chosen, text={**chosen.text, "kernel": list(found.values())})


def _warn_of_lacking(profiles: Profiles, table: Table, found: Sequence[str]) -> None:
    """Warn of kernels of much time that a further trace has not."""
    lacks = ~np.isin(profiles.kernels, found)
    times_ms = np.where(lacks, profiles.run_times_ms, 0)
    share = float(times_ms.sum() / profiles.run_times_ms.sum())
    if share >= _TOLD:
        largest = np.argsort(-times_ms, kind="stable")[: lacks.sum()]
        names = listed([f"'{shortened(profiles.kernels[k])}'" for k in largest])
        warn(
            "T06",
            f"{table.source}: has no launch of {names} at the grid and block that they have at the "
            f"base, {share_in_percent(share)} % of the run's time: they are assumed to scale as "
            "training runs do; trace both under the same load",
        )


def _imported_launches(metadata: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
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


def _launch_key(launch: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Function, grid and block; None where one of them is not known."""
    key = (launch.get("function"), *(launch.get(name) for name in _GEOMETRY))
    return None if None in key else key


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two launches are known to have other grids or blocks."""
    pairs = [(one.get(name), other.get(name)) for name in _GEOMETRY]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)
