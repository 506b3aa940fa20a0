"""PyTorch's profiler: the table that key_averages().table() prints.

Its rows are operators, and where the table was not cut short also the kernels. A kernel takes no
time on the CPU. An operator's own time on the GPU is that of its kernels, so either counts alone.
"""

import re
from collections.abc import Collection, Iterator
from itertools import islice

from mlscale.errors import InputError, warn
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.reader import Export

_TIME = re.compile(r"(?P<number>[0-9]{1,18}\.[0-9]{1,9})(?P<unit>us|ms|s)")
_TOTAL = re.compile(r"Self (CUDA|XPU) time total: (?P<time>\S+)\s*")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NO_KERNEL = re.compile(r"Mem(cpy|set) |Copy(Host|Device)To(Host|Device)|FillBuffer|ProfilerStep")
_CUT_OFF = "..."
_TOLERANCE = 0.01
_FOOTER_LINES = 100
_MEND = 'export the Chrome trace: prof.export_chrome_trace("trace.json")'


def read_averages(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """All launches of each kernel as one. Raises InputError on a table without kernels.

    Also where what the rows add up to is more than the total below the table, since then some are
    no kernels, and where there are several tables.
    """
    path = export.path
    gpu_time = export.find("Self CUDA", "Self XPU")
    if gpu_time is None:
        raise InputError(
            f"{export.where(export.header_line)}: has no time of the GPU (column 'Self CUDA'); "
            "profile with ProfilerActivity.CUDA among the activities"
        )
    name, cpu_time, calls = export.columns("Name", "Self CPU", "# of Calls")
    sum_s, kernels, cut_off = 0.0, 0, 0
    for line, row in export.rows():
        time_s = _seconds(export, line, row, gpu_time)
        if _seconds(export, line, row, cpu_time) > 0 or not time_s > 0:
            continue
        sum_s += time_s
        if _NO_KERNEL.match(row[name]):
            continue
        kernels += 1
        cut_off += row[name].endswith(_CUT_OFF)
        count = export.whole(line, row, calls, "a number of calls", least=1)
        yield LaunchRecord(line, row[name], str(line), time_s=time_s / count, weight=count)
    if not kernels:
        raise InputError(f"{path}: has operators and no kernels among its rows; {_MEND}")
    _check_total(export, sum_s)
    if further := export.further_tables():
        raise InputError(
            f"{path}: has tables in rows {export.header_line}, {', '.join(map(str, further))}; "
            "keep one in the file"
        )
    if cut_off:
        warn(
            f"{path}: {cut_off} names of kernels are cut off, so that several may count as one; "
            "print the table with max_name_column_width=None"
        )


def _seconds(export: Export, line: int, row: list[str], column: int) -> float:
    """A time with its unit, as 12.979us. Raises InputError."""
    match = _TIME.fullmatch(row[column])
    if match is None:
        raise InputError(f"{export.where(line, column)}: '{row[column][:40]}' is not a time")
    return float(match["number"]) * _SECONDS[match["unit"]]


def _check_total(export: Export, sum_s: float) -> None:
    """Compare with the total below the table: more are no kernels alone, less are not all."""
    for line, text in islice(export.lines, _FOOTER_LINES):
        match = _TOTAL.fullmatch(text)
        if match is None:
            continue
        total_s = _seconds(export, line, [match["time"]], 0)
        if sum_s > (1 + _TOLERANCE) * total_s:
            raise InputError(
                f"{export.path}: row {line}: its kernels take {sum_s / total_s:.2f} times "
                f"the total below the table, so that some of them are annotations; {_MEND}"
            )
        if sum_s < (1 - _TOLERANCE) * total_s:
            warn(
                f"{export.path}: the table was cut short: its kernels and copies are "
                f"{100 * sum_s / total_s:.0f} % of the GPU's time; print it with row_limit=-1"
            )
        return
