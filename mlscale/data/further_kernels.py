"""Which kernels of a further trace are the profiled ones: by function, grid and block.

Grid and block stand in a kernel's name only where its own trace has several of them. Another grid
is other work, as of another batch of a language model's server: its time tells of no clock.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.text import listed, share_in_percent, shortened

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
