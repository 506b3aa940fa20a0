"""Further measured points of profiled kernels, read from tables: what `--also` names."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.further_kernels import with_kernels_of
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import MeasuredPoint, Profiles, configurations, in_application
from mlscale.data.same_work import require_same_trace, require_same_work
from mlscale.data.sampled import is_sampled
from mlscale.data.table import Table
from mlscale.data.table_files import read_table
from mlscale.errors import InputError

Samples = defaultdict[tuple[HardwareConfig, str], list[float]]


def add_points(
    profiles: Profiles,
    tables: Sequence[tuple[Path | str | Table, HardwareConfig | None]],
    grid: ConfigGrid,
) -> Profiles:
    """Add the times and powers that some tables hold at other configurations to the profiles.

    tables: as they are or by their files, each with the one configuration that is meant, None for
    all that its rows name; a table without columns of configurations is taken to be of that one.
    Rows at the base are left out, repetitions aggregated by their median, counters not looked
    at. Raises InputError on a kernel that the profiles lack, another device, a configuration
    outside the grid's range, a table that has nothing at the configuration, and further runs that
    cannot have done the same work as the sampled ones, or as a trace without counters.
    """
    times_ms: Samples = defaultdict(list)
    powers_w: Samples = defaultdict(list)
    for source, config in tables:
        table = source if isinstance(source, Table) else read_table(source)
        table = with_kernels_of(profiles, table)
        further = _further_rows(table, config, profiles)
        time_ms = table.positive("time_ms")
        power_w = table.positive("power_w") if table.has_values("power_w") else None
        for row, cell in further.items():
            at, _ = cell
            if not grid.spans(at):
                raise InputError(
                    f"{table.source}: {table.row(row)}: {at} is outside the model's "
                    f"grid, {grid.bounds}; measure within it{_in_order(at, grid)}"
                )
            times_ms[cell].append(float(time_ms[row]))
            if power_w is not None:
                powers_w[cell].append(float(power_w[row]))
    points = tuple(
        MeasuredPoint(
            config,
            _medians(times_ms, config, profiles.kernels),
            _medians(powers_w, config, profiles.kernels) if powers_w else None,
        )
        for config in dict.fromkeys(config for config, _ in times_ms)
    )
    return replace(profiles, points=(*profiles.points, *points))


def _further_rows(
    table: Table, config: HardwareConfig | None, profiles: Profiles
) -> dict[int, tuple[HardwareConfig, str]]:
    """By row the configuration that is meant, and the kernel, of the same work as the profiles.

    Raises InputError.
    """
    kernels = _kernels(table, profiles)
    configs = configurations(table, config)
    wanted = set(configs) - {profiles.base} if config is None else {config} - {profiles.base}
    rows = [row for row, at in enumerate(configs) if at in wanted]
    runs = rows or list(range(len(table)))
    of_runs = table.select(runs), [kernels[k] for k in runs], [configs[k] for k in runs]
    if is_sampled(profiles.metadata):
        require_same_work(profiles, *of_runs)
    elif profiles.are_times_alone:
        require_same_trace(profiles, *of_runs)
    if not rows:
        raise InputError(f"{table.source}: {_why_no_point(configs, config, profiles.base)}")
    return {row: (configs[row], kernels[row]) for row in rows}


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


def _in_order(config: HardwareConfig, grid: ConfigGrid) -> str:
    """What may mend a point above all clocks of the grid."""
    is_above = config.engine_mhz > grid.engine_mhz[-1]
    return ", or give the run at the highest clock first" if is_above else ""


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
