"""The tidy table of one run: a row for each kernel and geometry, or for each launch.

And rows of a further run put below those of a table.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlscale.arrays import Floats, floats_of
from mlscale.counters.features import TABLE_2
from mlscale.data.grid import AXES
from mlscale.data.table import LEAST, MOST, Table
from mlscale.errors import InputError
from mlscale.profilers.configuration import RunConfiguration
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.mapping import FormulaScope, nvprof_counters
from mlscale.profilers.tools import nvprof


def run_table(
    source: str,
    counter_tool: str,
    records: Sequence[KernelRecord],
    run: RunConfiguration,
    application: str,
) -> Table:
    """The table of records with their features. Raises InputError on a time that cannot be."""
    rows = len(records)
    numbers = {
        "cu_count": np.full(rows, float(run.config.cu_count)),
        "engine_mhz": np.full(rows, run.config.engine_mhz),
        "memory_mhz": np.full(rows, run.config.memory_mhz),
        "time_ms": np.array([record.time_s * 1e3 for record in records]),
    }
    columns = {name: floats_of(r.features[name].value for r in records) for name in TABLE_2}
    for name in dict.fromkeys(name for record in records for name in record.shares):
        of_name = [record.shares.get(name) for record in records]
        columns[name] = floats_of(None if share is None else share.value for share in of_name)
    columns["workgroups"] = floats_of(record.workgroups for record in records)
    columns["workgroup_size"] = floats_of(record.workgroup_size for record in records)
    numbers |= {name: values for name, values in columns.items() if not np.isnan(values).all()}
    scopes = [
        FormulaScope.of(counter_tool, record.counters, record.cycles, {"warps": _warps(record)})
        for record in records
    ]
    of_nvprof = [nvprof_counters(counter_tool, scope) for scope in scopes]
    if (counter_tool == "nvprof" or any(of_nvprof)) and "workgroups" in numbers:
        numbers["warps"] = floats_of(_warps(record) for record in records)
    for name in dict.fromkeys(counter for record in records for counter in record.counters):
        if name not in TABLE_2 and name not in numbers:
            values = floats_of(record.counters.get(name) for record in records)
            numbers[name] = nvprof.in_file_units(values, run.units.get(name, ""))
    for name in dict.fromkeys(name for of_record in of_nvprof for name in of_record):
        numbers[name] = floats_of(of_record.get(name) for of_record in of_nvprof)
    text = {
        "device": [run.device] * rows,
        "application": [application] * rows,
        "kernel": _kernel_names(records),
    }
    numbers |= _of_run(text["kernel"], records)
    for name in ("time_ms", "total_time_ms"):
        _check_times(source, text["kernel"], numbers.get(name, np.empty(0)))
    return Table(source, text, numbers)


def _check_times(source: str, kernels: list[str], times_ms: Floats) -> None:
    """Raise InputError on a time that no kernel takes."""
    for row in np.flatnonzero((times_ms < LEAST) | (times_ms > MOST)):
        raise InputError(
            f"{source}: the kernel '{kernels[row]}' takes {times_ms[row]:g} ms; it must be from "
            f"{LEAST:g} to {MOST:g}: look for a damaged number in its rows"
        )


def _warps(record: KernelRecord) -> float | None:
    """Warps of a launch of NVIDIA's GPUs; None where its geometry is not known."""
    if record.workgroups is None or record.workgroup_size is None:
        return None
    return record.workgroups * math.ceil(record.workgroup_size / 32)


def _of_run(kernels: list[str], records: Sequence[KernelRecord]) -> dict[str, Floats]:
    """How much of the run each row's kernel is: its launches, and their time where traced [ms]."""
    launches: dict[str, float] = dict.fromkeys(kernels, 0.0)
    total_ms: dict[str, float] = dict.fromkeys(kernels, 0.0)
    for kernel, record in zip(kernels, records, strict=True):
        launches[kernel] += record.launches
        total_ms[kernel] += record.launches * record.time_s * 1e3
    columns = {"launches": np.array([launches[kernel] for kernel in kernels])}
    if any(record.is_traced for record in records):
        columns["total_time_ms"] = floats_of(
            total_ms[kernel] if record.is_traced else None
            for kernel, record in zip(kernels, records, strict=True)
        )
    return columns


def _kernel_names(records: Sequence[KernelRecord]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries: dict[str, set[tuple[float | None, float | None]]] = {}
    for record in records:
        geometry = (record.workgroups, record.workgroup_size)
        geometries.setdefault(record.kernel, set()).add(geometry)
    return [
        record.kernel
        if len(geometries[record.kernel]) == 1
        else f"{record.kernel} [grid {record.workgroups or 0:.0f}, "
        f"block {record.workgroup_size or 0:.0f}]"
        for record in records
    ]


def launches_by_kernel(records: Sequence[KernelRecord]) -> dict[str, dict[str, Any]]:
    """By kernel: the function's name, its geometry, and how many launches the row stands for."""
    launches: dict[str, dict[str, Any]] = {}
    for name, record in zip(_kernel_names(records), records, strict=True):
        before = launches[name]["launches"] if name in launches else 0
        launches[name] = {
            "function": record.kernel,
            "workgroups": record.workgroups,
            "workgroup_size": record.workgroup_size,
            "launches": before + record.launches,
        }
    return launches


def append(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    source: what messages call the table. Raises InputError where the tables are of different
    devices or profilers.
    """
    for name, cells in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it is no imported table")
        if name == "device" and set(cells) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{cells[0]}'"
            )
    old, tool = table.metadata, new.metadata["counter_tool"]
    if old.get("counter_tool") != tool:
        raise InputError(
            f"{source}: its counters are of {old.get('counter_tool') or 'an unknown tool'}, the "
            f"new ones of {tool}; one table has counters of one tool"
        )
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    rank = ("exact", "nearest", "missing")
    statuses, sources = old.get("feature_status", {}), old.get("utilisation_sources", {})
    sources = {name: text.split("; ") for name, text in sources.items()}
    for name, text in new.metadata["utilisation_sources"].items():
        sources[name] = [*sources.get(name, []), *text.split("; ")]
    metadata = {
        **old,
        **{name: value for name, value in new.metadata.items() if name != "clocks"},
        "source": "; ".join(dict.fromkeys([old.get("source", ""), new.metadata["source"]])),
        "utilisation_sources": {n: "; ".join(dict.fromkeys(t)) for n, t in sources.items()},
        "launches": {**old.get("launches", {}), **new.metadata["launches"]},
        "feature_status": {
            name: max(status, statuses.get(name, status), key=rank.index)
            for name, status in new.metadata["feature_status"].items()
        },
    }
    is_further = not set(new.text["application"]) <= set(table.text["application"])
    for name in ("idle_ms", "hidden_exchange_ms"):  # constants of each application
        if said := [of[name] for of in (old, new.metadata) if name in of]:
            metadata[name] = sum(said) if is_further else said[0]
    for name in ("busy_spans", "sample_ms", "working_ms", "open_ends"):  # of logs alone
        if of_kernels := {**old.get(name, {}), **new.metadata.get(name, {})}:
            metadata[name] = of_kernels
    of_gpus = {n: [*old.get(n, []), *new.metadata.get(n, [])] for n in ("gpus", "profiled_gpus")}
    metadata |= {name: list(dict.fromkeys(gpus)) for name, gpus in of_gpus.items() if gpus}
    text = {name: [*table.text[name], *new.text[name]] for name in new.text}
    return Table(source, text, numbers, metadata)


def repeated_rows(table: Table, new: Table) -> int:
    """How many of the new rows are of a kernel and configuration that the table has already."""
    known = set(_keys(table))
    return sum(key in known for key in _keys(new))


def _keys(table: Table) -> list[tuple[str | float, ...]]:
    """What each row is of: application, kernel and configuration."""
    settings = [table.numbers[axis].tolist() for axis in AXES]
    return [*zip(table.text["application"], table.text["kernel"], *settings, strict=True)]
