"""Nsight Compute's metrics: the names that its sections show, units, values in base units."""

import math
import re
from functools import cache

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.profilers.exports.blocks import Block
from mlscale.profilers.exports.values import MEND, parse_counter

TIME = "gpu__time_duration.sum"
ENGINE = "sm__cycles_elapsed.avg.per_second"
# SpeedOfLight's "SM Frequency" has other raw names in other versions.
ENGINES = (ENGINE, "gpc__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second")
MEMORY = "dram__cycles_elapsed.avg.per_second"
NAME = "device__attribute_display_name"
SM_COUNT = ("device__attribute_multiprocessor_count", "launch__sm_count")

_ELAPSED, _ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
# Raw names by the names that sections show, old and new, and the dimension of their unit.
SHOWN = {
    ("Duration", "s"): TIME,
    ("SM Frequency", "hz"): ENGINE,
    ("DRAM Frequency", "hz"): MEMORY,
    ("# SMs", "1"): "launch__sm_count",
    ("Grid Size", "1"): "launch__grid_size",
    ("Block Size", "1"): "launch__block_size",
    ("Elapsed Cycles", "1"): "gpc__cycles_elapsed.max",
    ("SM Active Cycles", "1"): "sm__cycles_active.avg",
    ("Total SM Elapsed Cycles", "1"): "sm__cycles_elapsed.sum",
    ("DRAM Throughput", "%"): f"gpu__dram_throughput{_ELAPSED}",
    ("SOL DRAM", "%"): f"gpu__dram_throughput{_ELAPSED}",
    ("Memory Throughput", "byte/s"): "dram__bytes.sum.per_second",
    ("Memory Throughput", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Memory [%]", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Compute (SM) Throughput", "%"): f"sm__throughput{_ELAPSED}",
    ("Compute (SM) [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("SM [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("L1/TEX Cache Throughput", "%"): f"l1tex__throughput{_ACTIVE}",
    ("SOL L1/TEX Cache", "%"): f"l1tex__throughput{_ACTIVE}",
    ("L2 Cache Throughput", "%"): f"lts__throughput{_ELAPSED}",
    ("SOL L2 Cache", "%"): f"lts__throughput{_ELAPSED}",
    ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
    ("Executed Ipc Elapsed", "1"): "sm__inst_executed.avg.per_cycle_elapsed",
    ("Executed Ipc Active", "1"): "sm__inst_executed.avg.per_cycle_active",
    ("Issued Ipc Active", "1"): "sm__inst_issued.avg.per_cycle_active",
    ("Issue Slots Busy", "%"): f"sm__inst_issued{_ACTIVE}",
    ("Issued Warp Per Scheduler", "1"): "smsp__issue_active.avg.per_cycle_active",
    ("Eligible Warps Per Scheduler", "1"): "smsp__warps_eligible.avg.per_cycle_active",
    ("Theoretical Occupancy", "%"): "sm__maximum_warps_per_active_cycle_pct",
    ("Achieved Occupancy", "%"): f"sm__warps_active{_ACTIVE}",
}
MEMORY_LIMIT = (  # kHz
    "device__attribute_memory_clock_rate",
    "device__attribute_max_mem_frequency_khz",
)
CYCLES = ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max", "sm__cycles_elapsed.avg")
ALWAYS = (
    *(TIME, *ENGINES, MEMORY, *MEMORY_LIMIT, *CYCLES, *SM_COUNT),
    *("launch__grid_size", "launch__block_size"),
)

_MOST_PERCENT = 1000  # from here on a percentage with a comma may have a decimal one
# Three digits behind a point: none of the tool's two decimals, nor surely thousands.
_AMBIGUOUS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_WHOLE = ("ns", "nsecond", "byte")  # of which there is no part
_COUNTS = {
    *("", "inst", "cycle", "sector", "warp", "block", "sm", "thread", "request", "pass"),
    *("inst/cycle", "warp/cycle", "cluster", "register", "ratio", "thread/inst", "inst/warp"),
    *("cycle/instruction", "sector/request", "inst/block", "wave", "register/thread"),
}
_UNITS: dict[str, tuple[str, float]] = {"%": ("%", 1.0)}
for _prefix, _scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
    # Prefixes are decimal: ncu shows 393216 bytes as 393.22 Kbyte.
    _UNITS[f"{_prefix}byte"] = ("byte", _scale)
    _UNITS[f"{_prefix}byte/second"] = _UNITS[f"{_prefix}byte/s"] = ("byte/s", _scale)
    _UNITS[f"{_prefix}hz"] = _UNITS[f"{_prefix}cycle/second"] = ("hz", _scale)
for _names, _scale in (
    (("ns", "nsecond"), 1e-9), (("us", "usecond"), 1e-6),
    (("ms", "msecond"), 1e-3), (("s", "second", "sec"), 1.0),
):  # fmt: skip
    for _name in _names:
        _UNITS[_name] = ("s", _scale)
        _UNITS[f"cycle/{_name}"] = ("hz", 1 / _scale)
_UNITS_FOLDED = {unit.casefold(): entry for unit, entry in _UNITS.items()}


def parse_unit(unit: str) -> tuple[str, float] | None:
    """Dimension ('s', 'byte', 'byte/s', 'hz', '%', '1') and scale of a unit.

    None for a scaled unit that is not known, so that nothing is read at a wrong scale.
    """
    name = unit.strip()
    known = _UNITS.get(name) or _UNITS_FOLDED.get(name.casefold())
    if known is None and (name.startswith(("byte/", "register/")) or name.casefold() in _COUNTS):
        return "1", 1.0
    return known


def _dimension(metric: str) -> str | None:
    """The dimension that a metric must have, None where any count will do."""
    if "time_duration" in metric:
        return "s"
    if metric.endswith(".per_second") and "cycles" in metric:
        return "hz"
    if "bytes" in metric and metric.endswith((".sum", ".per_second")):
        return "byte" if metric.endswith(".sum") else "byte/s"
    return "%" if "pct" in metric else None


@cache
def _scale_of(metric: str, unit: str) -> float | None:
    """What brings a metric to its base unit; None for a unit that it cannot have."""
    parsed, expected = parse_unit(unit), _dimension(metric)
    if parsed is None or (expected is not None and parsed[0] != expected):
        return None
    return parsed[1]


def metric_values(block: Block, column: int, metric: str, unit: str) -> Floats:
    """A column that holds a metric in one unit: in seconds, bytes, hertz, percent or counts.

    NaN where it is missing. Raises InputError.
    """
    scale = _scale_of(metric, unit)
    values = np.full(len(block), math.nan)
    if scale is not None:
        numbers = block.cells[column].numbers()
        values = numbers * scale
        if unit == "%":
            values[values >= _MOST_PERCENT] = math.nan
        elif _is_whole(metric, unit):
            values[numbers % 1 != 0] = math.nan
    return block.filled(
        column, values, lambda text, where: _metric_value(where, metric, unit, text)
    )


def _is_whole(metric: str, unit: str) -> bool:
    """Whether a value has no part, but as a mean of launches: ncu sums whole events."""
    return unit in _WHOLE or (metric.endswith(".sum") and unit in _COUNTS)


def _metric_value(where: str, metric: str, unit: str, text: str) -> float:
    """One value, however it is written. Raises InputError, see `where`."""
    scale = _scale_of(metric, unit)
    where = where if f"'{metric}'" in where else f"{where}, metric '{metric}'"
    # '(!) nan' of a failed launch; 'value (a; b; c)': the instances follow in brackets.
    head = text.removeprefix("(!)").strip().partition(" (")[0]
    if _is_whole(metric, unit) and _AMBIGUOUS.fullmatch(head):
        raise InputError(f"{where}: '{text}' is ambiguous, it may be of thousands: {MEND}")
    value = parse_counter(head, where)
    if math.isnan(value):
        return value
    if scale is None:
        raise InputError(
            f"{where}: the unit '{unit}' is not one that mlscale knows for it; "
            "export with --print-units base"
        )
    if unit == "%" and value >= _MOST_PERCENT and "," in head:
        raise InputError(f"{where}: '{text}' is ambiguous: {MEND}")
    return value * scale
