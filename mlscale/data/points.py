"""Further measured points of profiled kernels, read from tables: what `--also` names.

Where a kernel was measured, its surface is what was measured.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.further_kernels import with_kernels_of
from mlscale.data.grid import HardwareConfig
from mlscale.data.plausibility import warn_of_parts
from mlscale.data.profiles import (
    MeasuredPoint,
    Profiles,
    configurations,
    in_application,
    launches_of_rows,
)
from mlscale.data.repetitions import Rows
from mlscale.data.same_work import require_same_trace, require_same_work
from mlscale.data.sampled import is_sampled
from mlscale.data.surfaces import Surfaces
from mlscale.data.table import Table, to_samples
from mlscale.data.table_files import read_table
from mlscale.errors import InputError

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
