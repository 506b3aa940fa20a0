"""Columns under other names: what --map says of them, their units, and the usual names."""

import re
from collections.abc import Collection, Mapping

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError

Columns = Mapping[str, str | float]  # by our name what a file calls a column, see `table.mapped`
NO_COLUMNS: Columns = {}
RATE = "1/s"  # how often in a second: its reciprocal is a time
# By the unit at the end of a column's name, how many of each unit are one of it.
_UNITS = {
    "_ms": {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6, RATE: 1e3},
    "_mhz": {"Hz": 1e6, "kHz": 1e3, "MHz": 1.0, "GHz": 1e-3},
    "_w": {"W": 1.0, "mW": 1e3, "kW": 1e-3},
}
# What others call our columns, in small letters without marks; a unit may stand behind.
_USUAL = {
    "device": "gpu gpuname devicename",
    "application": "app appname benchmark program workload",
    "kernel": "kernelname",
    "cu_count": "numsms numsm sms smcount numcus cus cu",
    "engine_mhz": "engine core coreclock corefreq corefrequency coref smclock smfreq gpuclock "
    "gpufreq freq frequency clock",
    "memory_mhz": "memory memclock memfreq memoryclock memoryfreq memoryfrequency memf",
    "time_ms": "time runtime duration elapsed elapsedtime latency",
    "power_w": "power avgpower averagepower",
}
# What a column is of that says what may be, and not what was.
_OF_LIMITS = re.compile(r"limit|cap(?![a-z])|max|peak|tdp")


def source_meant(name: str, present: Collection[str]) -> str | None:
    """What --map may say of a missing column, COLUMN or COLUMN:UNIT: a usual name, or a near one.

    UNIT stands for that of a time which does not say it. A limit is meant by nothing.
    """
    from difflib import get_close_matches

    present = [column for column in present if not is_of_limits(column)]
    for column in present:
        if (source := _usual_source(name, column)) is not None:
            return source
    by_folded = {_folded(column): column for column in present}
    close = get_close_matches(_folded(name), by_folded, n=1, cutoff=0.8)
    return by_folded[close[0]] if close else None


def column_meant(name: str, present: Collection[str]) -> str | None:
    """The column that may be meant by a missing one."""
    source = source_meant(name, present)
    return source if source is None or source in present else source.rpartition(":")[0]


def _usual_source(name: str, column: str) -> str | None:
    """COLUMN or COLUMN:UNIT, if the column has a usual name."""
    units = _units(name)
    by_end = {"": "UNIT" if name == "time_ms" else "", **{unit.casefold(): unit for unit in units}}
    for usual in _USUAL.get(name, "").split():
        end = _folded(column).removeprefix(usual)
        if end != _folded(column) and end in by_end:
            unit = by_end[end]
            return column if not unit or units.get(unit) == 1 else f"{column}:{unit}"
    return None


def is_of_limits(column: str) -> bool:
    """Whether a column tells by its name of what may be, such as a power cap."""
    return bool(_OF_LIMITS.search(column.casefold()))


def is_usual(name: str, column: str) -> bool:
    """Whether a column says by its name that it is ours of that name."""
    return column == name or _usual_source(name, column) is not None


def split_source(name: str, source: str, present: Collection[str]) -> tuple[str, str]:
    """The column and the unit of COLUMN[:UNIT], which else the column's name may say.

    A column whose name is the whole comes first.

    Raises InputError on a unit that a column of this name cannot have.
    """
    column, colon, unit = source.rpartition(":")
    if not colon or source in present:
        said = (_usual_source(name, source) or "").removeprefix(source).removeprefix(":")
        return source, said if said in _units(name) else ""
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
