"""Columns under other names: what --map says of them, their units, and the usual names."""

import re
from collections.abc import Collection, Mapping

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.titles import Title, read_title
from mlscale.errors import InputError

Columns = Mapping[str, str | float]  # by our name what a file calls a column, see `table.mapped`
NO_COLUMNS: Columns = {}
RATE = "1/s"  # how often in a second: its reciprocal is a time
RATED_UNITS = 1e6  # of work, such as tokens: times and energies of rates are of so many
# By the unit at the end of a column's name, how many of each unit are one of it.
_UNITS = {
    "_ms": {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6, RATE: 1e3},
    "_mhz": {"Hz": 1e6, "kHz": 1e3, "MHz": 1.0, "GHz": 1e-3},
    "_w": {"W": 1.0, "mW": 1e3, "kW": 1e-3},
}
# What others call those of our columns that no unit tells, in small letters without marks.
_USUAL = {
    "device": "gpu gpuname devicename",
    "application": "app appname benchmark program workload",
    "kernel": "kernelname",
    "cu_count": "numsms numsm sms smcount numcus cus cu",
}
# And titles of these, as they are read; a clock that was set stands for one that is not told.
_TITLES = {
    "engine_mhz": ("engine_mhz", "engine_mhz_requested"),
    "memory_mhz": ("memory_mhz",),
    "time_ms": ("time_ms", "time"),
    "power_w": ("power_w",),
    "power_cap_w": ("power_cap_w",),
}
# What a column is of that says what may be, and not what was.
_OF_LIMITS = re.compile(r"limit|cap(?![a-z])|max|peak|tdp")


def source_meant(name: str, present: Collection[str]) -> str | None:
    """What --map may say of a missing column, COLUMN or COLUMN:UNIT: a usual name, or a near one.

    UNIT stands for that of a time which does not say it. A limit is meant by nothing.
    """
    from difflib import get_close_matches

    if name in _TITLES:
        said = [title for column in present if (title := read_title(column))]
        for what in _TITLES[name]:
            if near := sorted((t.rank, n) for n, t in enumerate(said) if t.what == what):
                is_one = len(near) == 1 or near[0][0] < near[1][0]
                return _with_unit(name, said[near[0][1]]) if is_one else None
    present = [column for column in present if not is_of_limits(column)]
    for column in present:
        if _folded(column) in _USUAL.get(name, "").split():
            return column
    left = [c for c in present if name not in _TITLES or not read_title(c)]
    by_folded = {_folded(column): column for column in left}
    close = get_close_matches(_folded(name), by_folded, n=1, cutoff=0.8)
    return by_folded[close[0]] if close else None


def column_meant(name: str, present: Collection[str]) -> str | None:
    """The column that may be meant by a missing one."""
    source = source_meant(name, present)
    return source if source is None or source in present else source.rpartition(":")[0]


def _with_unit(name: str, title: Title) -> str:
    """COLUMN, or COLUMN:UNIT where the unit is another than ours; of a time without one 'UNIT'."""
    unit = title.unit or ("UNIT" if name == "time_ms" else "")
    return title.text if not unit or _units(name).get(unit) == 1 else f"{title.text}:{unit}"


def is_of_limits(column: str) -> bool:
    """Whether a column tells by its name of what may be, such as a power cap."""
    return bool(_OF_LIMITS.search(column.casefold()))


def is_usual(name: str, column: str) -> bool:
    """Whether a column says by its name that it is ours of that name."""
    return column == name or source_meant(name, [column]) is not None


def split_source(name: str, source: str, present: Collection[str]) -> tuple[str, str]:
    """The column and the unit of COLUMN[:UNIT], which else the column's name may say.

    A column whose name is the whole comes first.

    Raises InputError on a unit that a column of this name cannot have.
    """
    column, colon, unit = source.rpartition(":")
    if not colon or source in present:
        title = read_title(source)
        return source, title.unit if title and title.unit in _units(name) else ""
    if unit not in (units := _units(name)):
        having = f"be one of {', '.join(units)}" if units else "be left out there"
        raise InputError(f"the mapping {name}={source}: the unit '{unit}' must {having}")
    return column, unit


def converted(name: str, values: Floats, unit: str) -> Floats:
    """Values of a unit in that of the column they become; clocks to the hertz."""
    per_unit = _units(name).get(unit, 1.0)
    with np.errstate(divide="ignore"):
        values = per_unit / values if unit == RATE else values / per_unit
    return np.round(values, 6) if name.endswith("_mhz") else values


def _units(name: str) -> Mapping[str, float]:
    return next((units for end, units in _UNITS.items() if name.endswith(end)), {})


def _folded(name: str) -> str:
    return re.sub(r"\W|_", "", name.casefold())
