"""Nsight Compute: the long details page and the wide raw page, in every header variant."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache

from mlscale.errors import InputError
from mlscale.profilers.lines import Export
from mlscale.profilers.samples import Numbers, Run, Sample
from mlscale.profilers.values import (
    is_whole,
    nvidia_unit,
    parse_counter,
    parse_triple,
    quick_number,
)

TIME = "gpu__time_duration.sum"
ENGINE = "sm__cycles_elapsed.avg.per_second"
MEMORY = "dram__cycles_elapsed.avg.per_second"
_NAME = "device__attribute_display_name"
_SM_COUNT = ("device__attribute_multiprocessor_count", "launch__sm_count")

# Names that sections show, the dimension that tells them from namesakes, and the raw name.
_SHOWN = {
    "Duration": ("s", TIME),
    "SM Frequency": ("hz", ENGINE),
    "DRAM Frequency": ("hz", MEMORY),
    "# SMs": ("1", "launch__sm_count"),
    "Theoretical Occupancy": ("%", "sm__maximum_warps_per_active_cycle_pct"),
    "L2 Hit Rate": ("%", "lts__t_sector_hit_rate.pct"),
    "DRAM Throughput": ("%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    "SOL DRAM": ("%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    "Grid Size": ("1", "launch__grid_size"),
    "Block Size": ("1", "launch__block_size"),
}
_ALWAYS = (TIME, ENGINE, MEMORY, *_SM_COUNT, "launch__grid_size", "launch__block_size")


def _dimension(name: str) -> str | None:
    """The dimension that a metric must have, None where any count will do."""
    if "time_duration" in name:
        return "s"
    if name.endswith(".per_second") and "cycles" in name:
        return "hz"
    if "bytes" in name and name.endswith(".sum"):
        return "byte"
    return "%" if "pct" in name else None


def _value(export: Export, line: int, name: str, unit: str, text: str) -> float:
    """A metric in seconds, bytes, hertz, percent or counts. Raises InputError."""
    scale = _scale(name, unit)
    quick = quick_number(text)
    if quick is not None and scale is not None:
        return quick * scale
    where = f"{export.where(line)}, metric '{name}'"
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


@cache
def _scale(name: str, unit: str) -> float | None:
    """What brings a metric to its base unit; None for a unit that it cannot have."""
    found, expected = nvidia_unit(unit), _dimension(name)
    if found is None or (expected is not None and found[0] != expected):
        return None
    return found[1]


def _sample(
    export: Export, run: Run, line: int, identity: tuple[str, str, str], metrics: dict[str, float]
) -> Sample | None:
    launch, kernel, geometry = identity
    workgroups = workgroup_size = None
    if geometry:
        grid, block = geometry.split("|")
        workgroups = float(math.prod(parse_triple(grid, export.where(line, "Grid Size"))))
        workgroup_size = float(math.prod(parse_triple(block, export.where(line, "Block Size"))))
    workgroups = workgroups or metrics.get("launch__grid_size")
    workgroup_size = workgroup_size or metrics.get("launch__block_size")
    for fact, name in (("engine_mhz", ENGINE), ("memory_mhz", MEMORY)):
        if metrics.get(name, 0) > 0:
            run.note(fact, round(metrics[name] / 1e6, 3))
    for name in _SM_COUNT:
        if metrics.get(name, 0) > 0:
            run.note("cu_count", metrics[name])
            break
    time_s = metrics.pop(TIME, math.nan)
    if time_s <= 0:
        run.dropped += 1
        return None
    return Sample(
        line, kernel, launch, workgroups, workgroup_size,
        None if math.isnan(time_s) else time_s, metrics,
    )  # fmt: skip


def _identity_columns(export: Export) -> tuple[int, int, int, int | None, int | None, int]:
    number, process, kernel = export.columns("ID", "Process ID", "Kernel Name")
    name = export.find("Process Name")
    return (
        number,
        process,
        kernel,
        export.find("Grid Size"),
        export.find("Block Size"),
        (kernel if name is None else name),
    )


@dataclass
class _Launch:
    """The rows of one launch on the long page, as far as they are read."""

    key: tuple[str, str]
    kernel: str
    geometry: str
    line: int
    raw: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)

    def finish(self, export: Export, run: Run) -> Iterator[Sample]:
        """The launch, unless it has no positive time."""
        identity = (":".join(self.key), self.kernel, self.geometry)
        done = _sample(export, run, self.line, identity, {**self.shown, **self.raw})
        if done:
            yield done

    def take(self, export: Export, line: int, metric: tuple[str, str, str], known: bool) -> str:
        """Take a metric (name, unit, text), by its raw name or the shown one; what it is called.

        Raises InputError where a raw name has two values.
        """
        name, unit, text = metric
        if known:
            found = _value(export, line, name, unit, text)
            before = self.raw.setdefault(name, found)
            if before != found and not (math.isnan(before) and math.isnan(found)):
                raise InputError(
                    f"{export.where(line)}: metric '{name}' of launch {self.key[1]} has two values"
                )
            return name
        dimension, raw_name = _SHOWN.get(name, ("", ""))
        if (nvidia_unit(unit) or ("",))[0] != dimension:
            return ""
        self.shown.setdefault(raw_name, _value(export, line, raw_name, unit, text))
        return raw_name


def read_details(export: Export, run: Run, needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each ID of the long page, whose rows stand together. Raises InputError."""
    number, process, kernel, grid, block, program = _identity_columns(export)
    metric, unit, value = export.columns("Metric Name", "Metric Unit", "Metric Value")
    wanted = {*needed, *_ALWAYS}
    current: _Launch | None = None
    seen: dict[str, Numbers] = {}
    for line, row in export.rows(shortest=value + 1):
        key = (row[process], row[number])
        geometry = f"{row[grid]}|{row[block]}" if grid is not None and block is not None else ""
        if current is None or key != current.key:
            if current is not None:
                yield from current.finish(export, run)
            _check_launch(export, line, key, seen)
            current = _Launch(key, row[kernel], geometry, line)
            run.application = run.application or row[program]
        elif (row[kernel], geometry) != (current.kernel, current.geometry):
            raise InputError(
                f"{export.where(line)}: launch {row[number]} is of '{row[kernel][:60]}' here and "
                f"of '{current.kernel[:60]}' above"
            )
        name = row[metric]
        if name in wanted or name in _SHOWN:
            found = (name, row[unit], row[value])
            run.asked.add(current.take(export, line, found, name in wanted))
        elif name == _NAME and row[value]:
            run.note("device_name", row[value])
    if current is not None:
        yield from current.finish(export, run)


def _check_launch(
    export: Export, line: int, key: tuple[str, str], seen: dict[str, Numbers]
) -> None:
    """Raise InputError unless a launch has a number that has not come before."""
    if not is_whole(key[1]):
        raise InputError(f"{export.where(line, 'ID')}: '{key[1][:40]}' is not a launch's number")
    if not seen.setdefault(key[0], Numbers()).add(int(key[1])):
        raise InputError(
            f"{export.where(line)}: launch {key[1]} of process {key[0]} comes again; has the file "
            "been joined from several?"
        )


def read_raw(export: Export, run: Run, needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each row of the wide page, scaled by its units row. Raises InputError."""
    number, process, kernel, grid, block, program = _identity_columns(export)
    wanted = {*needed, *_ALWAYS}
    columns = [(i, name) for i, name in enumerate(export.header) if name in wanted]
    device = export.find(_NAME)
    run.asked.update(name for _, name in columns)
    units: list[str] | None = None
    seen: dict[str, Numbers] = {}
    for line, row in export.rows():
        if not row[number].strip() and not row[kernel].strip():
            if units is not None and units != row:
                raise InputError(f"{export.where(line)}: a second row of units, unlike the first")
            if units is None and seen:
                raise InputError(
                    f"{export.where(line)}: the row of units stands below launches; it must "
                    "follow the header"
                )
            units = row
            continue
        if units is None:
            raise InputError(
                f"{export.where(line)}: the row of units is missing below the header; use the "
                "file as ncu --page raw --csv writes it"
            )
        _check_launch(export, line, (row[process], row[number]), seen)
        run.application = run.application or row[program]
        if device is not None and row[device]:
            run.note("device_name", row[device])
        metrics = {name: _value(export, line, name, units[i], row[i]) for i, name in columns}
        geometry = f"{row[grid]}|{row[block]}" if grid is not None and block is not None else ""
        identity = (f"{row[process]}:{row[number]}", row[kernel], geometry)
        done = _sample(export, run, line, identity, metrics)
        if done:
            yield done
