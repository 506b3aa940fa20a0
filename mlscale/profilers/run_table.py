"""The tidy table of one run: a row for each kernel and geometry, or for each launch."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mlscale.arrays import Floats, floats_of
from mlscale.counters.features import TABLE_2
from mlscale.data.table import LEAST, MOST, Table
from mlscale.errors import InputError
from mlscale.profilers.configuration import RunConfiguration
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.mapping import FormulaScope, nvprof_counters


def run_table(
    source: str,
    counter_tool: str,
    records: Sequence[KernelRecord],
    run: RunConfiguration,
    application: str,
) -> Table:
    """The table of records with their features. Raises InputError on a time that cannot be."""
    kernels = _kernel_names(records)
    text = {
        "device": [run.device] * len(records),
        "application": [application] * len(records),
        "kernel": kernels,
    }
    numbers = {
        axis: np.full(len(records), float(setting))
        for axis, setting in run.config.as_dict().items()
    }
    numbers["time_ms"] = np.array([record.time_s * 1e3 for record in records])
    numbers |= _uses(records)
    numbers |= _counters(counter_tool, records, numbers)
    numbers |= _of_run(kernels, records)
    for name in ("time_ms", "total_time_ms"):
        _check_times(source, kernels, numbers.get(name, np.empty(0)))
    return Table(source, text, numbers)


def _uses(records: Sequence[KernelRecord]) -> dict[str, Floats]:
    """Features of Table II, shares of peak and launch geometry, as far as any record has them."""
    columns = {name: floats_of(r.features[name].value for r in records) for name in TABLE_2}
    for name in dict.fromkeys(name for record in records for name in record.shares):
        of_name = [record.shares.get(name) for record in records]
        columns[name] = floats_of(None if share is None else share.value for share in of_name)
    columns["workgroups"] = floats_of(record.workgroups for record in records)
    columns["workgroup_size"] = floats_of(record.workgroup_size for record in records)
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _counters(
    counter_tool: str,
    records: Sequence[KernelRecord],
    known: Collection[str],
) -> dict[str, Floats]:
    """The counters as the tool names them and, where they give those, as nvprof would.

    known: columns that no counter replaces.
    """
    columns: dict[str, Floats] = {}
    warps = [_warps(record) for record in records]
    of_nvprof = [
        nvprof_counters(
            counter_tool,
            FormulaScope.of(counter_tool, record.counters, record.cycles, {"warps": of_record}),
        )
        for record, of_record in zip(records, warps, strict=True)
    ]
    if any(of_nvprof) and "workgroups" in known:
        columns["warps"] = floats_of(warps)
    taken = {*TABLE_2, *known, *columns}
    for name in dict.fromkeys(counter for record in records for counter in record.counters):
        if name not in taken:
            values = floats_of(record.counters.get(name) for record in records)
            columns[name] = values
    for name in dict.fromkeys(name for of_record in of_nvprof for name in of_record):
        columns[name] = floats_of(of_record.get(name) for of_record in of_nvprof)
    return columns


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
