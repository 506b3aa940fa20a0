"""CodeXL, rcprof, APP Profiler and their ancestors: one row per call, kernels and copies."""

import math
import re
import warnings
from collections.abc import Collection, Iterator

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.lines import Export
from mlscale.profilers.samples import Run, Sample
from mlscale.profilers.values import parse_counter, parse_number, parse_triple

_DEVICE_SUFFIX = re.compile(r"__k\d+_(?P<device>[A-Za-z]+)\d+$")


def read_calls(export: Export, run: Run, needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each row with a work size; data transfers are passed over. Time is in ms."""
    method, order, work = export.columns("Method", "ExecutionOrder", "GlobalWorkSize")
    size = export.find("WorkGroupSize", "GroupWorkSize")
    time = export.find("Time", "KernelTime")
    before_gcn = "ALUPacking" in export.header
    names = [name.removesuffix("(%)").rstrip() for name in export.header]
    columns = [(i, name) for i, name in enumerate(names) if name in needed and not before_gcn]
    if before_gcn:
        warnings.warn(
            f"{export.path}: its counters are of AMD's GPUs before GCN and are not Table II's; "
            "only times and sizes are taken",
            DataWarning,
            stacklevel=2,
        )
    if size is None:
        raise InputError(f"{export.where(export.header_line)}: there is no column 'WorkGroupSize'")
    semicolons = export.delimiter == ";"
    run.application = export.command
    run.asked.update(name for _, name in columns)
    seen: set[str] = set()
    for line, row in export.rows():
        cells = [cell.strip() for cell in row]
        if not cells[work] or cells[work] in ("NULL", "NA"):
            continue
        if cells[order] in seen:
            raise InputError(f"{export.where(line, 'ExecutionOrder')}: {cells[order]} comes twice")
        seen.add(cells[order])
        time_s = None
        if time is not None:
            time_s = parse_number(cells[time], export.where(line, export.header[time]), semicolons)
            time_s /= 1e3
            if math.isnan(time_s) or time_s <= 0:
                run.dropped += 1
                continue
        items = parse_triple(cells[work], export.where(line, "GlobalWorkSize"))
        workgroup = parse_triple(cells[size], export.where(line, export.header[size]))
        if match := _DEVICE_SUFFIX.search(cells[method]):
            run.note("chip", match["device"])
        pairs = zip(items, workgroup, strict=True)
        yield Sample(
            line, re.sub(r"_[A-Za-z]+\d+$", "", cells[method]) if match else cells[method],
            cells[order],
            float(math.prod(math.ceil(n / w) for n, w in pairs)), float(math.prod(workgroup)),
            time_s,
            {n: parse_counter(cells[i], export.where(line, n), semicolons) for i, n in columns},
        )  # fmt: skip
