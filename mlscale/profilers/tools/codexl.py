"""CodeXL, rcprof, APP Profiler and their ancestors: one row per call, kernels and copies."""

import math
import re
from collections.abc import Collection, Iterator

import numpy as np

from mlscale.errors import InputError, warn
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.values import parse_number, parse_triple
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent

_DEVICE_SUFFIX = re.compile(r"(?P<kernel>.*__k\d+)_(?P<device>[A-Za-z]+)\d+")


def read_calls(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row with a work size; data transfers are passed over. Time is in ms."""
    method, order, work, size = export.columns(
        "Method", "ExecutionOrder", "GlobalWorkSize", "WorkGroupSize|GroupWorkSize"
    )
    time = export.find("Time", "KernelTime")
    names = [name.removesuffix("(%)").rstrip() for name in export.header]
    columns = [(i, name) for i, name in enumerate(names) if name in needed]
    if "ALUPacking" in export.header:
        columns = []
        warn(
            f"{export.path}: its counters are of AMD's GPUs before GCN and are not Table II's; "
            "only times and sizes are taken"
        )
    content.application = export.command
    seen: set[str] = set()
    for line, row in export.rows():
        cells = [cell.strip() for cell in row]
        if not cells[work] or cells[work] in ("NULL", "NA"):
            continue
        if cells[order] in seen:
            raise InputError(f"{export.where(line, order)}: {cells[order]} comes twice")
        seen.add(cells[order])
        time_s = None
        if time is not None:
            where = export.where(line, time)
            time_ms = parse_number(cells[time], where)
            time_s = float(np.nan_to_num(time_ms)) / 1e3
        items = parse_triple(cells[work], export.where(line, work))
        workgroup = parse_triple(cells[size], export.where(line, size))
        kernel = cells[method]
        if match := _DEVICE_SUFFIX.fullmatch(kernel):
            kernel = match["kernel"]
            content.facts["chip"][match["device"]] += 1
        pairs = zip(items, workgroup, strict=True)
        yield LaunchRecord(
            line=line,
            kernel=kernel,
            launch=cells[order],
            workgroups=float(math.prod(math.ceil(total / each) for total, each in pairs)),
            workgroup_size=float(math.prod(workgroup)),
            time_s=time_s,
            counters={name: export.counter(line, cells, i) for i, name in columns},
        )
