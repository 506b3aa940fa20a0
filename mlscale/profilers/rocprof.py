"""AMD's rocprof: v1 and v2 (a row per dispatch), v3 (a row per dispatch and counter), traces."""

import math
import re
from collections.abc import Collection, Iterator
from fractions import Fraction

from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, LaunchRecord, NumberSet
from mlscale.profilers.mapping import device_key
from mlscale.profilers.reader import Export
from mlscale.profilers.values import is_whole, parse_timestamp

_SUFFIX = re.compile(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$")
_API_CALL = re.compile(r"_*(hip|hsa|roctx)[A-Z_]")
_CHANNEL = re.compile(r"(?P<name>.+)\[\d+\]")
_COUNTER = re.compile(r"(SQC?|GRBM|TCC|TCP|TA|TD|SPI|CP[CF]|GL[12]C)_")
_DISPATCH = "a dispatch's number"


def _kernel(text: str) -> str:
    return _SUFFIX.sub("", text.strip())


def _time_columns(export: Export) -> tuple[int, int] | None:
    begin, end = export.find("BeginNs", "Start_Timestamp"), export.find("EndNs", "End_Timestamp")
    return None if begin is None or end is None else (begin, end)


def _interval(
    export: Export, line: int, row: list[str], columns: tuple[int, int] | None
) -> tuple[int | Fraction | None, float | None]:
    """When it began [ns], and end minus begin [s]; None where not given. Raises InputError."""
    if columns is None:
        return None, None
    begin = _timestamp(export, line, row, columns[0])
    end = _timestamp(export, line, row, columns[1])
    return begin, None if begin is None or end is None else float(end - begin) / 1e9


def _timestamp(export: Export, line: int, row: list[str], column: int) -> int | Fraction | None:
    text = row[column]
    return int(text) if is_whole(text) else parse_timestamp(text, export.where(line, column))


def _geometry(
    export: Export, line: int, row: list[str], columns: tuple[int, int]
) -> tuple[int, float]:
    """Workgroups and work-items of one: the grid is given in work-items, flattened."""
    size = export.size(line, row, columns[1])
    return math.ceil(export.size(line, row, columns[0]) / size), size


def _channels(export: Export, needed: Collection[str]) -> dict[str, list[int]]:
    """The columns NAME[0], NAME[1], … of each needed NAME."""
    channels: dict[str, list[int]] = {}
    for i, name in enumerate(export.header):
        match = _CHANNEL.fullmatch(name)
        if match and {f"{match['name']}_sum", f"{match['name']}_max"} & set(needed):
            channels.setdefault(match["name"], []).append(i)
    return channels


def read_wide(
    export: Export, _content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row of v1 or v2; channels NAME[i] become NAME_sum and NAME_max.

    Gaps between launches are the program's own only in a file without counters.
    """
    kernel = export.find("KernelName", "Kernel_Name")
    grid, size = export.find("grd", "Grid_Size"), export.find("wgr", "Workgroup_Size")
    number = export.find("Index", "Dispatch_ID")
    if kernel is None or grid is None or size is None or number is None:
        raise InputError(
            f"{export.where(export.header_line)}: there is no column 'Index' or 'Dispatch_ID'"
        )
    columns = [(i, name) for i, name in enumerate(export.header) if name in needed]
    channels = _channels(export, needed)
    times, duration = _time_columns(export), export.find("DurationNs")
    counts = any(_COUNTER.match(name) for name in export.header)
    seen = NumberSet()
    for line, row in export.rows():
        if not seen.add(export.whole(line, row, number, _DISPATCH)):
            raise InputError(
                f"{export.where(line)}: dispatch {row[number][:40]} is there twice; has the file "
                "been joined from several?"
            )
        begin_ns, time_s = _interval(export, line, row, times)
        if duration is not None and row[duration].strip().startswith("-"):
            time_s = -math.inf
        counters = {name: export.counter(line, row, i) for i, name in columns}
        for name, of_channel in channels.items():
            values = [export.counter(line, row, i) for i in of_channel]
            counters.setdefault(f"{name}_sum", math.fsum(values))
            counters.setdefault(f"{name}_max", max(values))
        workgroups, items = _geometry(export, line, row, (grid, size))
        yield LaunchRecord(
            line, _kernel(row[kernel]), row[number], workgroups, items, time_s, counters,
            begin_ns=None if counts else begin_ns,
        )  # fmt: skip


def read_long(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A record for each row of v3: one counter of one dispatch. Raises InputError."""
    kernel, counter, value, grid, size = export.columns(
        "Kernel_Name", "Counter_Name", "Counter_Value", "Grid_Size", "Workgroup_Size"
    )
    [number] = export.columns("Dispatch_Id" if "Dispatch_Id" in export.header else "Dispatch_ID")
    process = export.find("Process_Id")
    times = _time_columns(export)
    launches: dict[str, NumberSet] = {}
    processes: dict[str, int] = {}
    last: tuple[str, ...] | None = None
    values: dict[str, float] = {}  # of the dispatch that the row before was of
    for line, row in export.rows():
        dispatch = export.whole(line, row, number, _DISPATCH)
        of_process = "" if process is None else row[process]
        rank = processes.setdefault(of_process, len(processes))
        _, time_s = _interval(export, line, row, times)
        if time_s is not None and time_s <= 0:
            content.dropped += 1
            continue
        stamp = (of_process, row[number], *(row[i] for i in times or ()))
        is_new = False
        if stamp != last:
            last, values = stamp, {}
            is_new = launches.setdefault(of_process, NumberSet()).add(dispatch)
        else:
            time_s = None
        name = row[counter].strip()
        count = export.counter(line, row, value)
        if name in values:
            if values[name] != count and not (math.isnan(count) or math.isnan(values[name])):
                raise InputError(
                    f"{export.where(line)}: counter '{name}' of dispatch {row[number]} has two "
                    "values"
                )
            continue
        values[name] = count
        workgroups, items = _geometry(export, line, row, (grid, size))
        yield LaunchRecord(
            line=line,
            kernel=_kernel(row[kernel]),
            launch=f"{rank}:{row[number]}",
            workgroups=workgroups,
            workgroup_size=items,
            time_s=time_s,
            counters={name: count} if name in needed else {},
            is_new=is_new,
        )


def read_trace(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each kernel dispatch of a trace, in whatever order. Raises InputError."""
    kind, kernel, number = export.columns("Kind", "Kernel_Name", "Dispatch_Id")
    grid = export.columns("Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
    size = export.columns("Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")
    times, agent = _time_columns(export), export.find("Agent_Id")
    for line, row in export.rows():
        if row[kind] != "KERNEL_DISPATCH":
            continue
        begin_ns, time_s = _interval(export, line, row, times)
        axes = [_geometry(export, line, row, pair) for pair in zip(grid, size, strict=True)]
        yield LaunchRecord(
            line=line,
            kernel=_kernel(row[kernel]),
            launch=row[number],
            workgroups=math.prod(workgroups for workgroups, _ in axes),
            workgroup_size=math.prod(items for _, items in axes),
            time_s=math.nan if time_s is None else time_s,
            counters={},
            gpu="" if agent is None else row[agent].strip().removeprefix("Agent "),
            begin_ns=begin_ns,
        )


def read_stats(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """All launches of a kernel as one, by their total time. InputError on an API's calls."""
    kernel, calls, total = export.columns("Name", "Calls", "TotalDurationNs")
    for line, row in export.rows():
        if _API_CALL.match(row[kernel]):
            raise InputError(
                f"{export.where(line, kernel)}: '{row[kernel][:40]}' is a call of the host's, no "
                "kernel; give the kernels' statistics (kernel_stats)"
            )
        count = export.whole(line, row, calls, "a number of launches", least=1)
        yield LaunchRecord(
            line=line,
            kernel=_kernel(row[kernel]),
            launch=str(line),
            workgroups=None,
            workgroup_size=None,
            time_s=export.counter(line, row, total) / count / 1e9,
            counters={},
            weight=count,
        )


def read_machine(export: Export, content: FileContent) -> None:
    """What rocprof-compute's sysinfo.csv says of the GPU. Raises InputError."""
    chip, count = export.columns("gpu_arch", "cu_per_gpu")
    model, memory = export.find("gpu_model"), export.find("max_mclk")
    for line, row in export.rows():
        cu_count = float(export.whole(line, row, count, "a count", least=1))
        name = "" if model is None else row[model].partition("_")[0]  # MI300X_A1
        _note_gpu(content, name.strip(), row[chip].strip(), cu_count)
        if memory is not None and row[memory].strip():
            content.facts["memory_limit_mhz"][export.counter(line, row, memory)] += 1


def read_agents(export: Export, content: FileContent) -> None:
    """What rocprofv3's agent_info.csv says of the GPU. Raises InputError on unlike GPUs."""
    kind, count, chip, name = export.columns("Agent_Type", "Cu_Count", "Name", "Product_Name")
    clock = export.find("Max_Engine_Clk_Fcompute")
    for line, row in export.rows():
        if row[kind].strip() != "GPU":
            continue
        cu_count = float(export.whole(line, row, count, "a count", least=1))
        _note_gpu(content, row[name].strip(), row[chip].strip(), cu_count)
        if clock is not None:
            content.facts["engine_limit_mhz"][export.counter(line, row, clock)] += 1
    if any(len(values) > 1 for values in content.facts.values()):
        names = ", ".join(map(str, content.facts["chip"]))
        raise InputError(f"{export.path}: lists unlike GPUs ({names}); keep the row of one of them")
    if not content.facts:
        raise InputError(f"{export.path}: lists no GPU")


def _note_gpu(content: FileContent, name: str, chip: str, cu_count: float) -> None:
    """Note a GPU by the name that the device table knows, else by its chip."""
    content.facts["chip"][name if device_key(name, cu_count) else chip] += 1
    content.facts["cu_count"][cu_count] += 1
