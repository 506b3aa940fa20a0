"""AMD's rocprof: v1 and v2 (a row per dispatch), v3 (a row per dispatch and counter), traces."""

import math
import re
from collections.abc import Collection, Iterator

from mlscale.errors import InputError
from mlscale.profilers.lines import Export
from mlscale.profilers.samples import Numbers, Run, Sample
from mlscale.profilers.values import is_whole, parse_counter, parse_timestamp, quick_number

_SUFFIX = re.compile(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$")
_HELPER = re.compile(r"^__amd_rocclr_(copy|fill)Buffer")
_CHANNEL = re.compile(r"(?P<name>.+)\[\d+\]")


def _kernel(text: str) -> str:
    return _SUFFIX.sub("", text.strip())


def _counted(export: Export, line: int, row: list[str], column: int) -> float:
    quick = quick_number(row[column])
    if quick is not None:
        return quick
    return parse_counter(row[column], export.where(line, export.header[column]))


def _seconds(export: Export, line: int, row: list[str], columns: tuple[int, int]) -> float | None:
    """End minus begin; None where either is not given. Raises InputError."""
    stamps = [
        int(row[i])
        if is_whole(row[i])
        else parse_timestamp(row[i], export.where(line, export.header[i]))
        for i in columns
    ]
    if stamps[0] is None or stamps[1] is None:
        return None
    return (stamps[1] - stamps[0]) / 1e9


def _time_columns(export: Export) -> tuple[int, int] | None:
    begin, end = export.find("BeginNs", "Start_Timestamp"), export.find("EndNs", "End_Timestamp")
    return None if begin is None or end is None else (begin, end)


def _positive(export: Export, line: int, row: list[str], column: int) -> float:
    text = row[column].strip()
    if is_whole(text) and text != "0" * len(text):
        return float(text)
    if not re.fullmatch(r"[0-9]{1,18}(\.0+)?", text) or float(text) < 1:
        raise InputError(
            f"{export.where(line, export.header[column])}: '{text[:40]}' is not a size"
        )
    return float(text)


def _geometry(export: Export, line: int, row: list[str], columns: tuple[int, int]) -> list[float]:
    """Workgroups and work-items of one: the grid is given in work-items, flattened."""
    grid, size = (_positive(export, line, row, i) for i in columns)
    return [math.ceil(grid / size), size]


def _channels(export: Export, needed: Collection[str]) -> dict[str, list[int]]:
    """The columns NAME[0], NAME[1], … of each needed NAME."""
    channels: dict[str, list[int]] = {}
    for i, name in enumerate(export.header):
        match = _CHANNEL.fullmatch(name)
        if match and {f"{match['name']}_sum", f"{match['name']}_max"} & set(needed):
            channels.setdefault(match["name"], []).append(i)
    return channels


def read_wide(export: Export, run: Run, needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each row of v1 or v2; channels NAME[i] become NAME_sum and NAME_max."""
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
    wave_size = export.find("wave_size", "Wave_Size")
    run.asked.update(name for _, name in columns)
    run.asked.update(f"{base}{end}" for base in channels for end in ("_sum", "_max"))
    seen = Numbers()
    for line, row in export.rows():
        if _HELPER.match(row[kernel]):
            continue
        _check_dispatch(export, line, row, number)
        if not seen.add(int(row[number])):
            raise InputError(
                f"{export.where(line)}: dispatch {row[number][:40]} is there twice; has the file "
                "been joined from several?"
            )
        time_s = _seconds(export, line, row, times) if times else None
        negative = duration is not None and row[duration].strip().startswith("-")
        if negative or (time_s is not None and time_s <= 0):
            run.dropped += 1
            continue
        counters = {name: _counted(export, line, row, i) for i, name in columns}
        for base, found in channels.items():
            values = [_counted(export, line, row, i) for i in found]
            counters.setdefault(f"{base}_sum", math.fsum(values))
            counters.setdefault(f"{base}_max", max(values))
        if wave_size is not None and row[wave_size].strip():
            run.note("wave_size", _positive(export, line, row, wave_size))
        workgroups, items = _geometry(export, line, row, (grid, size))
        yield Sample(line, _kernel(row[kernel]), row[number], workgroups, items, time_s, counters)


def read_long(export: Export, run: Run, needed: Collection[str]) -> Iterator[Sample]:
    """A sample for each row of v3: one counter of one dispatch. Raises InputError."""
    kernel, counter, value, grid, size = export.columns(
        "Kernel_Name", "Counter_Name", "Counter_Value", "Grid_Size", "Workgroup_Size"
    )
    number = export.find("Dispatch_Id", "Dispatch_ID")
    assert number is not None  # noqa: S101  the layout has one of the two
    process = export.find("Process_Id")
    times = _time_columns(export)
    launches: dict[str, Numbers] = {}
    processes: dict[str, int] = {}
    last: tuple[str, ...] | None = None
    block: dict[str, float] = {}
    for line, row in export.rows():
        if _HELPER.match(row[kernel]):
            continue
        _check_dispatch(export, line, row, number)
        of_process = "" if process is None else row[process]
        rank = processes.setdefault(of_process, len(processes))
        time_s = _seconds(export, line, row, times) if times else None
        if time_s is not None and time_s <= 0:
            run.dropped += 1
            continue
        stamp = (of_process, row[number], *(row[i] for i in times or ()))
        new_launch = False
        if stamp != last:
            last, block = stamp, {}
            new_launch = launches.setdefault(of_process, Numbers()).add(int(row[number]))
        else:
            time_s = None
        name = row[counter].strip()
        found = _counted(export, line, row, value)
        if name in block:
            if block[name] != found and not (math.isnan(found) or math.isnan(block[name])):
                raise InputError(
                    f"{export.where(line)}: counter '{name}' of dispatch {row[number]} has two "
                    "values"
                )
            continue
        block[name] = found
        run.asked.add(name)
        workgroups, items = _geometry(export, line, row, (grid, size))
        yield Sample(
            line, _kernel(row[kernel]), f"{rank}:{row[number]}", workgroups, items, time_s,
            {name: found} if name in needed else {}, new_launch=new_launch,
        )  # fmt: skip


def read_trace(export: Export, run: Run, _needed: Collection[str]) -> Iterator[Sample]:
    """A launch for each kernel dispatch of a trace, in whatever order. Raises InputError."""
    kind, kernel, number = export.columns("Kind", "Kernel_Name", "Dispatch_Id")
    grid = export.columns("Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
    size = export.columns("Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")
    times = _time_columns(export)
    assert times is not None  # noqa: S101  the layout has both
    for line, row in export.rows():
        if row[kind] != "KERNEL_DISPATCH" or _HELPER.match(row[kernel]):
            continue
        time_s = _seconds(export, line, row, times)
        if time_s is None or time_s <= 0:
            run.dropped += 1
            continue
        pairs = [_geometry(export, line, row, axes) for axes in zip(grid, size, strict=True)]
        yield Sample(
            line, _kernel(row[kernel]), row[number],
            math.prod(pair[0] for pair in pairs), math.prod(pair[1] for pair in pairs),
            time_s, {},
        )  # fmt: skip


def _check_dispatch(export: Export, line: int, row: list[str], number: int) -> None:
    if not is_whole(row[number]):
        raise InputError(
            f"{export.where(line, export.header[number])}: '{row[number][:40]}' is not a "
            "dispatch's number"
        )
