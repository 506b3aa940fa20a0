"""Nsight Compute: the long details page and the wide raw page, in every header variant."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, LaunchRecord, NumberSet
from mlscale.profilers.reader import Export
from mlscale.profilers.values import parse_counter, parse_triple, quick_number

TIME = "gpu__time_duration.sum"
ENGINE = "sm__cycles_elapsed.avg.per_second"
MEMORY = "dram__cycles_elapsed.avg.per_second"
_NAME = "device__attribute_display_name"
_SM_COUNT = ("device__attribute_multiprocessor_count", "launch__sm_count")

_ELAPSED, _ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
# Raw names by the names that sections show, old and new, and the dimension of their unit.
_SHOWN = {
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
_SHOWN_NAMES = {name for name, _ in _SHOWN}
_ALWAYS = (TIME, ENGINE, MEMORY, *_SM_COUNT, "launch__grid_size", "launch__block_size")

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


def _value(export: Export, line: int, metric: str, unit: str, text: str) -> float:
    """A metric in seconds, bytes, hertz, percent or counts. Raises InputError."""
    scale = _scale_of(metric, unit)
    quick = quick_number(text)
    if quick is not None and scale is not None and (unit != "%" or quick < 1000):
        return quick * scale
    where = f"{export.where(line)}, metric '{metric}'"
    head = text.partition(" (")[0]  # 'value (a; b; c)': the instances follow in brackets
    value = parse_counter(head, where)
    if math.isnan(value):
        return value
    if scale is None:
        raise InputError(
            f"{where}: the unit '{unit}' is not one that mlscale knows for it; "
            "export with --print-units base"
        )
    if unit == "%" and value >= 1000 and "," in head:
        raise InputError(f"{where}: '{text}' is ambiguous: export with LC_ALL=C")
    return value * scale


class _Identity(NamedTuple):
    """What the columns of both pages say of the launch that a row is of."""

    process: str
    number: str
    kernel: str
    grid: str | None
    block: str | None


@dataclass
class _Launch:
    """A launch as far as it is read: metrics by raw name, and by a name that sections show."""

    identity: _Identity
    line: int
    raw: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)


class _Page:
    """A page, and which launches were read of it."""

    def __init__(self, export: Export, content: FileContent, needed: Collection[str]) -> None:
        self.export, self.content = export, content
        self.metrics = {*needed, *_ALWAYS}
        process, number, kernel = export.columns("Process ID", "ID", "Kernel Name")
        self._columns = (process, number, kernel)
        self._program = export.find("Process Name")
        self._sizes = (export.find("Grid Size"), export.find("Block Size"))
        self._seen: dict[str, NumberSet] = {}

    def identity(self, row: list[str]) -> _Identity:
        """Which launch a row is of."""
        process, number, kernel = self._columns
        grid, block = self._sizes
        if grid is None or block is None:
            return _Identity(row[process], row[number], row[kernel], None, None)
        return _Identity(row[process], row[number], row[kernel], row[grid], row[block])

    def begin(self, line: int, row: list[str], identity: _Identity) -> _Launch:
        """A launch that has not come before. Raises InputError."""
        number = self.export.whole(line, row, self._columns[1], "a launch's number")
        if not self._seen.setdefault(identity.process, NumberSet()).add(number):
            raise InputError(
                f"{self.export.where(line)}: launch {identity.number} of process "
                f"{identity.process} comes again; has the file been joined from several?"
            )
        program = identity.kernel if self._program is None else row[self._program]
        self.content.application = self.content.application or program
        return _Launch(identity, line)

    def take(self, launch: _Launch, line: int, metric: str, unit: str, text: str) -> None:
        """Take a metric by its raw name, or the one that sections show.

        Raises InputError where a raw name has two values.
        """
        if metric in self.metrics:
            value = _value(self.export, line, metric, unit, text)
            before = launch.raw.setdefault(metric, value)
            if before != value and not (math.isnan(before) and math.isnan(value)):
                raise InputError(
                    f"{self.export.where(line)}: metric '{metric}' of launch "
                    f"{launch.identity.number} has two values"
                )
        elif metric in _SHOWN_NAMES:
            dimension, _ = parse_unit(unit) or ("", 1.0)
            if (raw_name := _SHOWN.get((metric, dimension))) is not None:
                value = _value(self.export, line, raw_name, unit, text)
                launch.shown.setdefault(raw_name, value)
        elif metric == _NAME and text:
            self.content.facts["device_name"][text] += 1

    def finish(self, launch: _Launch) -> LaunchRecord:
        """What is read of a launch. Raises InputError."""
        identity, metrics = launch.identity, {**launch.shown, **launch.raw}
        workgroups = workgroup_size = None
        if identity.grid is not None and identity.block is not None:
            where = self.export.where
            grid = parse_triple(identity.grid, where(launch.line, "Grid Size"))
            block = parse_triple(identity.block, where(launch.line, "Block Size"))
            workgroups, workgroup_size = float(math.prod(grid)), float(math.prod(block))
        for fact, metric in (("engine_mhz", ENGINE), ("memory_mhz", MEMORY)):
            if metrics.get(metric, 0) > 0:
                self.content.facts[fact][round(metrics[metric] / 1e6, 3)] += 1
        counts = [metrics[metric] for metric in _SM_COUNT if metrics.get(metric, 0) > 0]
        if counts:
            self.content.facts["cu_count"][counts[0]] += 1
        time_s = metrics.pop(TIME, math.nan)
        return LaunchRecord(
            line=launch.line,
            kernel=identity.kernel,
            launch=f"{identity.process}:{identity.number}",
            workgroups=workgroups or metrics.get("launch__grid_size"),
            workgroup_size=workgroup_size or metrics.get("launch__block_size"),
            time_s=None if math.isnan(time_s) else time_s,
            counters=metrics,
        )


def read_details(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each ID of the long page, whose rows stand together. Raises InputError."""
    page = _Page(export, content, needed)
    metric, unit, value = export.columns("Metric Name", "Metric Unit", "Metric Value")
    launch: _Launch | None = None
    for line, row in export.rows(shortest=value + 1):
        identity = page.identity(row)
        if launch is None or identity != launch.identity:
            if launch is not None:
                if identity[:2] == launch.identity[:2]:
                    raise InputError(
                        f"{export.where(line)}: launch {identity.number} is of "
                        f"'{identity.kernel[:60]}' here and of "
                        f"'{launch.identity.kernel[:60]}' above"
                    )
                yield page.finish(launch)
            launch = page.begin(line, row, identity)
        page.take(launch, line, row[metric], row[unit], row[value])
    if launch is not None:
        yield page.finish(launch)


def read_raw(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row of the wide page, scaled by its units row. Raises InputError."""
    page = _Page(export, content, needed)
    number, kernel = export.columns("ID", "Kernel Name")
    columns = [(i, name) for i, name in enumerate(export.header) if name in page.metrics]
    device = export.find(_NAME)
    units: list[str] | None = None
    for line, row in export.rows():
        if not row[number].strip() and not row[kernel].strip():
            if units is not None and units != row:
                raise InputError(f"{export.where(line)}: a second row of units, unlike the first")
            units = row
            continue
        if units is None:
            raise InputError(
                f"{export.where(line)}: the row of units is missing below the header; use the "
                "file as ncu --page raw --csv writes it"
            )
        launch = page.begin(line, row, page.identity(row))
        launch.raw = {name: _value(export, line, name, units[i], row[i]) for i, name in columns}
        if device is not None and row[device]:
            content.facts["device_name"][row[device]] += 1
        yield page.finish(launch)
