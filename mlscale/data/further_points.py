"""Further measured points of profiled kernels, read from tables: what `--also` names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.tables import Table, read_table
from mlscale.errors import InputError

Cell = tuple[HardwareConfig, str]


def with_further_points(
    profiles: Profiles,
    tables: Sequence[tuple[Path | str, HardwareConfig | None]],
    grid: ConfigGrid,
) -> Profiles:
    """The profiles with the times and powers that some tables hold at other configurations.

    tables: each with the one configuration that is meant, None for all that its rows name; a
    table without columns of configurations is taken to be of that one. Rows at the base are left
    out, repetitions aggregated by their median, counters not looked at. Raises InputError on a
    kernel that the profiles lack, another device, a configuration outside the grid's range, and
    a table that has nothing at the configuration.
    """
    times: dict[Cell, list[float]] = {}
    powers: dict[Cell, list[float]] = {}
    for path, config in tables:
        table = read_table(path)
        _check(table, profiles)
        found = _configs(table, config)
        kept = [row for row, at in enumerate(found) if at != profiles.base]
        if config is not None:
            kept = [row for row in kept if found[row] == config]
        if not kept:
            raise InputError(f"{table.source}: {_nothing(found, config, profiles.base)}")
        time_ms = table.positive("time_ms")
        power_w = table.numbers.get("power_w", np.full(len(table), np.nan))
        if not np.isnan(power_w).all():
            power_w = table.positive("power_w")
        for row in kept:
            _inside(grid, found[row], table, row)
            cell = (found[row], table.text["kernel"][row])
            times.setdefault(cell, []).append(float(time_ms[row]))
            if not np.isnan(power_w[row]):
                powers.setdefault(cell, []).append(float(power_w[row]))
    points = tuple(
        MeasuredPoint(
            config,
            _of_kernels(times, config, profiles.kernels),
            _of_kernels(powers, config, profiles.kernels) if powers else None,
        )
        for config in dict.fromkeys(config for config, _ in times)
    )
    return replace(profiles, also=(*profiles.also, *points))


def _check(table: Table, profiles: Profiles) -> None:
    table.require(("kernel", "time_ms"))
    for device in table.text.get("device", []):
        if device != profiles.device:
            raise InputError(
                f"{table.source}: is of device '{device}', the profile of '{profiles.device}'"
            )
    for row, kernel in enumerate(table.text["kernel"]):
        if kernel not in profiles.kernels:
            raise InputError(
                f"{table.source}: {table.row(row)}, column 'kernel': the profile has no kernel "
                f"'{kernel}'; profile it at the base {profiles.base} too, or take the row out"
            )


def _configs(table: Table, config: HardwareConfig | None) -> list[HardwareConfig]:
    """The configuration of every row; columns that are not there are those of `config`."""
    if config is None:
        table.require(AXES)
    columns = [
        table.positive(axis)
        if axis in table.numbers
        else np.full(len(table), getattr(config, axis))
        for axis in AXES
    ]
    cu_count = columns[0]
    if (cu_count % 1).any():
        row = int(np.flatnonzero(cu_count % 1)[0])
        raise InputError(
            f"{table.source}: {table.row(row)}, column 'cu_count': {cu_count[row]:g} is not a "
            "whole number of compute units"
        )
    return [
        HardwareConfig(int(cu), float(engine), float(memory))
        for cu, engine, memory in zip(*columns, strict=True)
    ]


def _nothing(
    found: list[HardwareConfig], config: HardwareConfig | None, base: HardwareConfig
) -> str:
    """Why a table gives no point."""
    if config == base:
        return f"{config} is the base, which the profile has; give another configuration"
    if config is None:
        return f"has rows at the base {base} alone; a further point is at another configuration"
    there = list(dict.fromkeys(map(str, found)))
    more = f" and {len(there) - 3} more" if len(there) > 3 else ""
    return f"has no row at {config}; its rows are at {', '.join(there[:3])}{more}"


def _inside(grid: ConfigGrid, config: HardwareConfig, table: Table, row: int) -> None:
    if not grid.spans(config):
        raise InputError(
            f"{table.source}: {table.row(row)}: {config} is outside the model's grid; "
            "measure within it"
        )


def _of_kernels(
    cells: dict[Cell, list[float]], config: HardwareConfig, kernels: tuple[str, ...]
) -> Floats:
    """The medians (K,) at a configuration, NaN where there is none."""
    return np.array([np.median(cells.get((config, kernel), [np.nan])) for kernel in kernels])
