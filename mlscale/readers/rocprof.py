"""AMD's rocprof: CSV files of v1, v2 and v3, and what rocprof-compute makes of them.

Written by `rocprof -i counters.txt --timestamp on` (v1), `rocprofv2` and
`rocprofv3 --pmc ... --kernel-trace --output-format csv`. A file has a row for each dispatch, with a
column for each counter (v1, v2, pmc_perf.csv), or a row for each counter of a dispatch (v3), or
none (v3's kernel trace). sysinfo.csv and agent_info.csv say what GPU it was, and have no launches.

To watch for: grids are in work-items, not in workgroups; time stamps are more than a float holds,
and fractions where they are means over passes; a dispatch may come again with further counters.
"""

import re
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.devices import devices_named, find_device
from mlscale.errors import InputError
from mlscale.readers.columns import Block, product
from mlscale.readers.files import Sheet
from mlscale.readers.launches import Facts, Launches

_SUFFIX = re.compile(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$")
# By what it is, the names that a column has in v1, v2 and v3, and what it holds.
_NAMES = {
    "kernel": (("KernelName", "Kernel_Name"), str),
    "dispatch": (("Index", "Dispatch_ID", "Dispatch_Id"), int),
    "process": (("Process_Id",), str),
    "gpu": (("gpu-id", "GPU_ID", "Agent_Id"), str),
    "begin": (("BeginNs", "Start_Timestamp"), int),
    "end": (("EndNs", "End_Timestamp"), int),
    "kind": (("Kind",), str),
    "counter": (("Counter_Name",), str),
    "value": (("Counter_Value",), float),
}
_GRIDS = ("grd", "Grid_Size", "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
_SIZES = ("wgr", "Workgroup_Size", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")


def read(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each dispatch, whatever rows it has. Raises InputError."""
    if "cu_per_gpu" in sheet.header:
        return _read_machine(sheet, facts)
    if "Agent_Type" in sheet.header:
        return _read_agents(sheet, facts)
    return _read_dispatches(sheet, needed)


def _read_dispatches(sheet: Sheet, needed: Collection[str]) -> Iterator[Launches]:
    found = {what: (sheet.find(*among), kind) for what, (among, kind) in _NAMES.items()}
    names = {what: name for what, (name, _) in found.items() if name}
    grids, sizes = _geometry_columns(sheet)
    counters = [name for name in sheet.header if name in needed]
    kinds = {name: kind for name, kind in found.values() if name}
    kinds |= dict.fromkeys([*grids, *sizes], str) | dict.fromkeys(counters, float)
    identity = [names[what] for what in ("process", "dispatch", "kernel", "begin") if what in names]
    together = identity if "counter" in names else []
    seen: dict[str, set[str]] = {}
    came: set[str] = set()
    for block in sheet.blocks(kinds, together):
        rows = block
        if "kind" in names:
            texts = block.text(names["kind"])
            is_kernel = np.array([text == "KERNEL_DISPATCH" for text in texts.texts], np.bool_)
            rows = block.take(np.flatnonzero(is_kernel[texts.codes]))
        launches, values = rows, {name: rows.numbers(name) for name in counters}
        if together:
            first, runs = rows.first_of_runs(*together)
            launches = rows.take(first)
            values = _counters(rows, names, runs, len(first), needed)
        ids, is_new = launches.cells(names["dispatch"]), None
        if together:
            ids, is_new = _ids(launches, names, seen)
        else:
            _check_new(launches, names, came)
        workgroups, size = _geometry(launches, grids, sizes)
        time_s = np.full(len(launches), np.nan)
        if "begin" in names and "end" in names:
            time_s = launches.durations_s(names["begin"], names["end"])
        yield Launches(
            launches.lines,
            launches.text(names["kernel"]).renamed(kernel_name),
            time_s,
            workgroups,
            size,
            values,
            gpus=launches.text(names["gpu"]).renamed(_agent) if "gpu" in names else None,
            ids=ids,
            is_new=is_new,
        )


def _geometry_columns(sheet: Sheet) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the grid and of a workgroup: the products, else those of each side."""
    grid, size = sheet.find(*_GRIDS[:2]), sheet.find(*_SIZES[:2])
    if grid and size:
        return (grid,), (size,)
    sheet.require(*_GRIDS[2:], *_SIZES[2:])
    return _GRIDS[2:], _SIZES[2:]


def _geometry(launches: Block, grids: Collection[str], sizes: Collection[str]) -> list[Floats]:
    """The workgroups of each launch and the work-items of one; the grid is in work-items."""
    workgroups, size = np.ones(len(launches)), np.ones(len(launches))
    for grid, size_column in zip(grids, sizes, strict=True):
        items = launches.parsed(size_column, product)
        workgroups *= np.ceil(launches.parsed(grid, product) / items)
        size *= items
    return [workgroups, size]


def kernel_name(text: str) -> str:
    """A kernel's name without what the compiler appends to it."""
    return _SUFFIX.sub("", text.strip())


def _agent(text: str) -> str:
    return text.removeprefix("Agent ")


def _counters(
    rows: Block, names: Mapping[str, str], runs: Indices, count: int, needed: Collection[str]
) -> dict[str, Floats]:
    """By name the needed counters of dispatches, whose rows `runs` tells."""
    codes, texts = rows.text(names["counter"])
    counters: dict[str, Floats] = {}
    for code, name in enumerate(texts):
        if name in needed:
            at = np.flatnonzero(codes == code)
            counters[name] = np.full(count, np.nan)
            counters[name][runs[at]] = rows.take(at).numbers(names["value"])
    return counters


def _ids(
    launches: Block, names: Mapping[str, str], seen: dict[str, set[str]]
) -> tuple[list[str], Floats]:
    """The launches' numbers in the run, and 0 for a further pass of one that came before.

    seen: by process, as far as the file tells it, the dispatches that did. Processes are numbered,
    as each run has others.
    """
    dispatches = launches.cells(names["dispatch"])
    processes = [""] * len(launches)
    if "process" in names:
        processes = launches.cells(names["process"])
    ids, is_new = [], np.ones(len(launches))
    ranks: dict[str, str] = {}
    for row, (process, dispatch) in enumerate(zip(processes, dispatches, strict=True)):
        before = seen.setdefault(process, set())
        if process not in ranks:
            ranks[process] = f"{[*seen].index(process)}:" if process else ""
        is_new[row] = dispatch not in before
        before.add(dispatch)
        ids.append(ranks[process] + dispatch)
    return ids, is_new


def _check_new(launches: Block, names: Mapping[str, str], came: set[str]) -> None:
    """Raise InputError where a dispatch came before, of a trace one that began at the same time.

    came: those that did. A trace may be of several processes, each of which numbers its own.
    """
    marks = dispatches = launches.cells(names["dispatch"])
    if "kind" in names:
        begins = launches.cells(names["begin"])
        marks = [f"{dispatch} {begin}" for dispatch, begin in zip(dispatches, begins, strict=True)]
    if came.isdisjoint(marks) and len(set(marks)) == len(marks):
        came.update(marks)
        return
    for row, mark in enumerate(marks):
        if mark in came:
            raise InputError(
                f"{launches.where(row)}: dispatch {dispatches[row]} comes again; give one run's "
                "rows as rocprof writes them, and further passes as files of their own"
            )
        came.add(mark)


def _read_machine(sheet: Sheet, facts: Facts) -> Iterator[Launches]:
    """What rocprof-compute's sysinfo.csv says of the GPU; no launch."""
    facts.is_machine = True
    numbers = ("cu_per_gpu", "max_mclk", "num_xcd")
    for block in sheet.blocks(dict.fromkeys(["gpu_arch", "gpu_model", *numbers], str)):
        counts = block.numbers("cu_per_gpu")
        models = block.cells("gpu_model") if "gpu_model" in block else [""] * len(block)
        for chip, count, model in zip(block.cells("gpu_arch"), counts, models, strict=True):
            facts.note("chip", [gpu_name(model.partition("_")[0], chip, float(count))])  # MI300X_A1
        for fact, column in zip(
            ("cu_count", "memory_limit_mhz", "xcd_count"), numbers, strict=True
        ):
            if column in block:
                facts.note(fact, block.numbers(column))
    yield from ()


def _read_agents(sheet: Sheet, facts: Facts) -> Iterator[Launches]:
    """What rocprofv3's agent_info.csv says of each GPU; no launch.

    Traces have a GPU's logical number, those of the first releases the node's.
    """
    facts.is_machine = True
    texts = ("Agent_Type", "Name", "Product_Name", "Node_Id", "Logical_Node_Id")
    columns = {
        "cu_count": "Cu_Count",
        "xcd_count": "Num_Xcc",
        "engine_limit_mhz": "Max_Engine_Clk_Fcompute",
    }
    by_node: dict[str, dict[str, str | float]] = {}
    for block in sheet.blocks(dict.fromkeys([*texts, *columns.values()], str)):
        kinds = np.array(block.cells("Agent_Type"))
        gpus = block.take(np.flatnonzero(kinds == "GPU"))
        cells = {name: gpus.cells(name) for name in texts if name in gpus}
        limits = {fact: gpus.numbers(name) for fact, name in columns.items() if name in gpus}
        for row in range(len(gpus)):
            said: dict[str, str | float] = {
                fact: float(values[row]) for fact, values in limits.items() if values[row] > 0
            }
            name = gpu_name(cells["Product_Name"][row], cells["Name"][row], limits["cu_count"][row])
            node = cells["Node_Id"][row]
            by_node[node] = {"chip": name, **said}
            facts.by_gpu[cells.get("Logical_Node_Id", cells["Node_Id"])[row]] = by_node[node]
    facts.by_gpu = by_node | facts.by_gpu
    if not facts.by_gpu:
        raise InputError(f"{sheet.path}: lists no GPU")
    yield from ()


def gpu_name(name: str, chip: str, cu_count: float | None) -> str:
    """A GPU's name, but its chip where the device table knows that better."""
    knows_chip = not find_device(name, cu_count) and devices_named(chip, cu_count)
    return chip if knows_chip or not name else name
