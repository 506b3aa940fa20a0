"""AMD's rocprof: v1 and v2 (a row per dispatch), v3 (a row per dispatch and counter), traces."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.device_table import devices_named, find_device
from mlscale.errors import InputError
from mlscale.profilers.exports.blocks import (
    Block,
    Timestamps,
    blocks,
    by_run,
    durations_s,
    runs_of,
    whole_runs,
)
from mlscale.profilers.exports.cells import Labels
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.launch_batch import LaunchBatch
from mlscale.profilers.launches import FileContent, NumberSet

_SUFFIX = re.compile(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$")
_CHANNEL = re.compile(r"(?P<name>.+)\[\d+\]")
_COUNTER = re.compile(r"(SQC?|GRBM|TCC|TCP|TA|TD|SPI|CP[CF]|GL[12]C)_")
_DISPATCH = "a dispatch's number"


def kernel_name(text: str) -> str:
    """A kernel's name without what the compiler appends to it."""
    return _SUFFIX.sub("", text.strip())


def _time_columns(export: Export) -> tuple[int, int] | None:
    begin, end = export.find("BeginNs", "Start_Timestamp"), export.find("EndNs", "End_Timestamp")
    return None if begin is None or end is None else (begin, end)


def _interval(block: Block, columns: tuple[int, int] | None) -> tuple[Timestamps | None, Floats]:
    """When launches began [ns], and end minus begin [s], NaN where not given. InputError."""
    if columns is None:
        return None, np.full(len(block), np.nan)
    begins, ends = (block.timestamps(column) for column in columns)
    return begins, durations_s(begins, ends)


def _geometry(block: Block, grid: int, size: int) -> tuple[Floats, Floats]:
    """Workgroups and work-items of one: the grid is given in work-items, flattened."""
    items = block.sizes(size)
    return np.ceil(block.sizes(grid) / items), items


def _kernels(block: Block, column: int) -> Labels:
    return block.labels(column).renamed(kernel_name)


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
) -> Iterator[LaunchBatch]:
    """A launch for each row of v1 or v2; channels NAME[i] become NAME_sum and NAME_max.

    Gaps between launches are the program's own only in a file without counters.
    """
    kernel, grid, size, number = export.columns(
        "KernelName|Kernel_Name", "grd|Grid_Size", "wgr|Workgroup_Size", "Index|Dispatch_ID"
    )
    columns = [(i, name) for i, name in enumerate(export.header) if name in needed]
    channels = _channels(export, needed)
    times, duration = _time_columns(export), export.find("DurationNs")
    gpu = export.find("gpu-id", "GPU_ID")
    counts = any(_COUNTER.match(name) for name in export.header)
    used = [kernel, grid, size, number, duration, gpu, *(i for i, _ in columns), *(times or ())]
    used += [i for of_channel in channels.values() for i in of_channel]
    seen = NumberSet()
    for block in blocks(export, used):
        dispatches = block.wholes(number, _DISPATCH)
        if (again := seen.add_all(dispatches)) is not None:
            raise InputError(
                f"{block.where(again)}: dispatch {dispatches[again]} is there twice; has the file "
                "been joined from several?"
            )
        begin_ns, time_s = _interval(block, times)
        if duration is not None:
            codes, texts = block.labels(duration)
            is_negative = np.array([text.strip().startswith("-") for text in texts])
            time_s = np.where(is_negative[codes], -np.inf, time_s)
        counters = {name: block.counters(i) for i, name in columns}
        for name, of_channel in channels.items():
            values = [block.counters(i) for i in of_channel]
            counters.setdefault(f"{name}_sum", np.sum(values, axis=0))
            counters.setdefault(f"{name}_max", np.max(values, axis=0))
        yield LaunchBatch(
            block.lines,
            _kernels(block, kernel),
            *_geometry(block, grid, size),
            time_s,
            counters,
            dispatches,
            gpus=_gpus(block, gpu),
            begin_ns=None if counts else begin_ns,
        )


def read_long(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """Launches of v3, which has a row for each counter of a dispatch. Raises InputError."""
    kernel, counter, value = export.columns("Kernel_Name", "Counter_Name", "Counter_Value")
    grid, size, number = export.columns("Grid_Size", "Workgroup_Size", "Dispatch_Id|Dispatch_ID")
    process, times = export.find("Process_Id"), _time_columns(export)
    agent = export.find("Agent_Id", "GPU_ID")
    used = [kernel, counter, value, grid, size, number, process, agent, *(times or ())]
    seen: dict[str, NumberSet] = {}
    for block in blocks(export, used):
        dispatches = block.wholes(number, _DISPATCH)
        stamps: list[NDArray[Any]] = [dispatches, block.labels(kernel).codes]
        stamps += [] if process is None else [block.labels(process).codes]
        stamps += [block.timestamps(column) for column in times or ()]
        first, runs = whole_runs(block, runs_of(*stamps))
        firsts, rows = block.take(first), block.head(len(runs))
        _, time_s = _interval(firsts, times)
        content.dropped += int((time_s[runs] <= 0).sum() - (time_s <= 0).sum())  # further rows
        of_process = [""] * len(first) if process is None else firsts.cells[process].texts
        launches = zip(of_process, dispatches[first].tolist(), strict=True)
        is_new = [seen.setdefault(of, NumberSet()).add(dispatch) for of, dispatch in launches]
        rank = {of: str(i) for i, of in enumerate(seen)}
        yield LaunchBatch(
            firsts.lines,
            _kernels(firsts, kernel),
            *_geometry(firsts, grid, size),
            time_s,
            _counters(rows, counter, value, runs, len(first), needed),
            dispatches[first],
            processes=firsts.renamed(process, rank.__getitem__),
            is_new=np.array(is_new, np.bool_),
            gpus=_gpus(firsts, agent),
        )


def _counters(
    block: Block, counter: int, value: int, runs: Indices, count: int, needed: Collection[str]
) -> dict[str, Floats]:
    """By name the needed counters of dispatches, whose rows `runs` tells. Raises InputError."""
    values, counters = block.counters(value), {}
    codes, texts = block.labels(counter)
    names = [text.strip() for text in texts]
    for name in dict.fromkeys(names):
        rows = np.flatnonzero(np.array([other == name for other in names])[codes])
        counters[name], other = by_run(runs[rows], count, values[rows])
        if other is not None:
            raise InputError(
                f"{block.where(int(rows[other]))}: counter '{name}' of its dispatch has two values"
            )
    return {name: of_launches for name, of_launches in counters.items() if name in needed}


def read_trace(
    export: Export, _content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each kernel dispatch of a trace, in whatever order. Raises InputError."""
    kind, kernel, number = export.columns("Kind", "Kernel_Name", "Dispatch_Id")
    grid = export.columns("Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
    size = export.columns("Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")
    times, agent = _time_columns(export), export.find("Agent_Id")
    for block in blocks(export, [kind, kernel, number, *grid, *size, *(times or ()), agent]):
        launches = block.where_label(kind, lambda text: text == "KERNEL_DISPATCH")
        begin_ns, time_s = _interval(launches, times)
        axes = [_geometry(launches, *pair) for pair in zip(grid, size, strict=True)]
        yield LaunchBatch(
            launches.lines,
            _kernels(launches, kernel),
            np.prod([workgroups for workgroups, _ in axes], axis=0),
            np.prod([items for _, items in axes], axis=0),
            np.nan_to_num(time_s),
            numbers=launches.wholes(number, _DISPATCH),
            gpus=_gpus(launches, agent),
            begin_ns=begin_ns,
        )


def _gpus(launches: Block, agent: int | None) -> Labels | None:
    """The number of each launch's agent, where the file says it."""
    return launches.renamed(agent, lambda text: text.strip().removeprefix("Agent "))


def read_machine(export: Export, content: FileContent) -> None:
    """What rocprof-compute's sysinfo.csv says of the GPU. Raises InputError."""
    chip, count = export.columns("gpu_arch", "cu_per_gpu")
    model, memory, dies = map(export.find, ("gpu_model", "max_mclk", "num_xcd"))
    for line, row in export.rows():
        cu_count = float(export.whole(line, row, count, "a count", least=1))
        name = "" if model is None else row[model].partition("_")[0]  # MI300X_A1
        content.facts["chip"][gpu_name(name.strip(), row[chip].strip(), cu_count)] += 1
        content.facts["cu_count"][cu_count] += 1
        if dies is not None and (count_of_dies := export.counter(line, row, dies)) >= 1:
            content.facts["xcd_count"][count_of_dies] += 1
        if memory is not None:
            content.note_clock("memory_limit_mhz", export.counter(line, row, memory))


def read_agents(export: Export, content: FileContent) -> None:
    """What rocprofv3's agent_info.csv says of each GPU, by the number that traces have of it.

    Raises InputError without a GPU.
    """
    kind, count, chip, name = export.columns("Agent_Type", "Cu_Count", "Name", "Product_Name")
    node, logical = export.columns("Node_Id", "Logical_Node_Id|Node_Id")
    clock, dies = export.find("Max_Engine_Clk_Fcompute"), export.find("Num_Xcc")
    by_node: dict[str, dict[str, str | float]] = {}
    for line, row in export.rows():
        if row[kind].strip() != "GPU":
            continue
        cu_count = float(export.whole(line, row, count, "a count", least=1))
        facts: dict[str, str | float] = {
            "chip": gpu_name(row[name].strip(), row[chip].strip(), cu_count),
            "cu_count": cu_count,
        }
        for fact, column in (("engine_limit_mhz", clock), ("xcd_count", dies)):
            if column is not None and (value := export.counter(line, row, column)) > 0:
                facts[fact] = value
        content.gpu_facts[row[logical].strip()] = by_node[row[node].strip()] = facts
    # Traces have the logical number, those of the first releases the node's.
    content.gpu_facts = by_node | content.gpu_facts
    if not content.gpu_facts:
        raise InputError(f"{export.path}: lists no GPU")


def gpu_name(name: str, chip: str, cu_count: float | None) -> str:
    """A GPU's name, but its chip where the device table knows that better."""
    knows_chip = not find_device(name, cu_count) and devices_named(chip, cu_count)
    return chip if knows_chip or not name else name
