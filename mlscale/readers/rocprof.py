"""AMD's rocprof: CSV files of v1, v2 and v3, what rocprof-compute makes of them, and rocpd.

Written by `rocprof -i counters.txt --timestamp on` (v1), `rocprofv2` and
`rocprofv3 --pmc ... --kernel-trace --output-format csv`. A file has a row for each dispatch, with a
column for each counter (v1, v2, pmc_perf.csv), or a row for each counter of a dispatch (v3), or
none (v3's kernel trace); or one for each kernel (v3's kernel_stats.csv, v1's results.stats.csv).
sysinfo.csv and agent_info.csv say what GPU it was, and have no launches.

To watch for: grids are in work-items, not in workgroups; time stamps are more than a float holds,
and fractions where they are means over passes; a dispatch may appear again with further counters.

rocpd is the SQLite database that rocprofv3 of ROCm 7 writes by default. Each process has tables of
its own in it, whose names end in its GUID; read is what versions 3.0.0 to 3.0.5 of the schema have
in common (ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd, commits
0c5fd9b, ba070c3 and 2bb64a5). A counter is the sum over its instances; a dispatch that was replayed
has several rows; since 3.0.3 counters that stream while a kernel runs stand in the same table.
"""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.devices import devices_named, find_device
from mlscale.errors import InputError, warn
from mlscale.readers.columns import Block, product
from mlscale.readers.files import Sheet, opened_database, tables_of
from mlscale.readers.launches import Facts, Launch, Launches, in_parts

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
_OF_A_CHANNEL = re.compile(r"(\w+)\[\d+\]")
_OF_NO_KERNEL = re.compile(r"(__)?hip[A-Z]\w*|hsa_\w+|roctx\w+|Copy\w*To\w+|[A-Z]+_[A-Z_]+")
_GRIDS = ("grd", "Grid_Size", "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
_SIZES = ("wgr", "Workgroup_Size", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")


def read(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each dispatch, whatever rows it has. Raises InputError."""
    if sheet.kind.tables:
        return _read_database(sheet, facts, needed)
    if "AverageNs" in sheet.header:
        return _read_statistics(sheet)
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
    _tell_channels(sheet, {*needed} - {*counters})
    kinds = {name: kind for name, kind in found.values() if name}
    kinds |= dict.fromkeys([*grids, *sizes], str) | dict.fromkeys(counters, float)
    identity = [names[what] for what in ("process", "dispatch", "kernel", "begin") if what in names]
    together = identity if "counter" in names else []
    seen: dict[str, set[str]] = {}
    came: set[Any] = set()
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
        if together:
            ids, is_new = _ids(launches, names, seen)
        else:
            ids, is_new = _new_ids(launches, names, came), None
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


def _tell_channels(sheet: Sheet, lacking: Collection[str]) -> None:
    """Warn of counters of single channels, of which a file may not list all."""
    sums = {f"{one[1]}_sum" for name in sheet.header if (one := _OF_A_CHANNEL.fullmatch(name))}
    if told := ", ".join(sorted(sums & {*lacking})):
        what = "counts of single channels are not used, as some channels may be missing"
        warn("T10", f"{sheet.path}: {what}; count {told} too")


def _read_statistics(sheet: Sheet) -> Iterator[Launches]:
    """All launches of a kernel as one row, by their mean time. Raises InputError on other calls."""
    for block in sheet.blocks({"Name": str, "Calls": float, "TotalDurationNs": float}):
        names, calls = block.text("Name"), block.numbers("Calls")
        if other := next(filter(_OF_NO_KERNEL.fullmatch, names.texts), None):
            told = f"'{other}' is not a kernel: are these statistics of API calls or of copies?"
            raise InputError(f"{sheet.path}: {told} Give …_kernel_stats.csv, or results.stats.csv")
        unknown = np.full(len(block), np.nan)
        time_s = block.numbers("TotalDurationNs") / np.where(calls > 0, calls, np.nan) / 1e9
        names = names.renamed(kernel_name)
        yield Launches(block.lines, names, time_s, unknown, unknown, weights=calls)


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


def _new_ids(launches: Block, names: Mapping[str, str], came: set[Any]) -> list[Any]:
    """The launches' numbers in the run.

    Raises InputError where a dispatch came before, of a trace one that began at the same time.
    came: those that did. A trace may be of several processes, each of which numbers its own.
    """
    dispatches: list[Any] = launches.whole_numbers(names["dispatch"])
    marks = dispatches
    if "kind" in names:
        begins = launches.cells(names["begin"])
        marks = [f"{dispatch} {begin}" for dispatch, begin in zip(dispatches, begins, strict=True)]
    if came.isdisjoint(marks) and len(set(marks)) == len(marks):
        came.update(marks)
        return dispatches
    for row, mark in enumerate(marks):
        if mark in came:
            raise InputError(
                f"{launches.where(row)}: dispatch {dispatches[row]} appears twice; give the rows "
                "of one run as rocprof writes them, and further passes as separate files"
            )
        came.add(mark)
    return dispatches


def _read_machine(sheet: Sheet, facts: Facts) -> Iterator[Launches]:
    """What rocprof-compute's sysinfo.csv says of the GPU; no launch."""
    facts.is_machine = True
    numbers = ("cu_per_gpu", "max_mclk", "max_sclk", "num_xcd")
    for block in sheet.blocks(dict.fromkeys(["gpu_arch", "gpu_model", *numbers], str)):
        counts = block.numbers("cu_per_gpu")
        models = block.cells("gpu_model") if "gpu_model" in block else [""] * len(block)
        for chip, count, model in zip(block.cells("gpu_arch"), counts, models, strict=True):
            facts.note("chip", [gpu_name(model.partition("_")[0], chip, float(count))])  # MI300X_A1
        facts_told = ("cu_count", "memory_limit_mhz", "engine_limit_mhz", "xcd_count")
        for fact, column in zip(facts_told, numbers, strict=True):
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


_DISPATCH_TABLE = re.compile(r"rocpd_kernel_dispatch((_[0-9A-Za-z]+)*)")
_AGENTS = """
    SELECT agent.id, agent.logical_index, agent.name, agent.product_name, agent.extdata,
        node.hostname
    FROM rocpd_info_agent AS agent LEFT JOIN rocpd_info_node AS node ON node.id = agent.nid
"""
# A row for each counter of a dispatch, which is the sum over its instances, as in the view
# counters_collection; a row without any for a dispatch that has none.
_DISPATCHES = """
    SELECT
        dispatch.id, dispatch.pid, dispatch.dispatch_id, dispatch.agent_id, symbol.display_name,
        (dispatch."end" - dispatch.start) / 1e9,
        dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z,
        dispatch.workgroup_size_x, dispatch.workgroup_size_y, dispatch.workgroup_size_z,
        counted.name, counted.total
    FROM rocpd_kernel_dispatch AS dispatch
    LEFT JOIN rocpd_info_kernel_symbol AS symbol ON symbol.id = dispatch.kernel_id
    LEFT JOIN (
        SELECT event.event_id, pmc.name,
            CASE WHEN count(*) = count(event.value) THEN total(event.value) END AS total
        FROM rocpd_pmc_event AS event JOIN rocpd_info_pmc AS pmc ON pmc.id = event.pmc_id
        WHERE sample_id IS NULL
        GROUP BY event.event_id, pmc.name
    ) AS counted ON counted.event_id = dispatch.event_id
    ORDER BY dispatch.id
"""
_LAUNCH_COLUMNS = 12  # those before a counter's
_VIDEO_MEMORY = (1, 2)  # heap types of a memory bank: visible to the host, and not


def _read_database(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each kernel dispatch of rocpd, with its counters."""
    with opened_database(sheet.path) as database:
        tables = tables_of(database)
        suffixes = [match[1] for name in tables if (match := _DISPATCH_TABLE.fullmatch(name))]
        agents = {suffix: list(_query(database, suffix, _AGENTS)) for suffix in suffixes}
        hosts = {host for rows in agents.values() for *_, host in rows}
        for suffix, rows in agents.items():
            gpus = _gpu_numbers(rows, len(hosts) > 1, facts)
            query = _DISPATCHES
            if "sample_id" not in tables.get("rocpd_pmc_event" + suffix, ()):
                query = query.replace("WHERE sample_id IS NULL", "")
            dispatches = _query(database, suffix, query)
            for (command,) in _query(database, suffix, "SELECT command FROM rocpd_info_process"):
                if not facts.application and isinstance(command, str) and command.strip():
                    facts.application = PurePath(command.split()[0]).name
            yield from in_parts(_launches(sheet, suffix, dispatches, gpus, needed))


def _query(database: sqlite3.Connection, suffix: str, text: str) -> Iterator[Any]:
    """The rows of a query in which the tables have their names without the end."""
    return database.execute(re.sub(r"\brocpd_[a-z_]+\b", lambda name: f'"{name[0]}{suffix}"', text))


def _gpu_numbers(rows: Sequence[Any], has_hosts: bool, facts: Facts) -> dict[int, str]:
    """The number of each GPU as rocprofv3's CSV files give it; what it is goes to the facts."""
    numbers: dict[int, str] = {}
    for agent, index, chip, name, extdata, host in rows:
        numbers[agent] = f"{host}:{index}" if has_hosts else str(index)
        facts.by_gpu[numbers[agent]] = _facts_of_gpu(str(chip or ""), str(name or ""), extdata)
    return numbers


def _launches(
    sheet: Sheet, suffix: str, dispatches: Iterator[Any], gpus: Mapping[int, str],
    needed: Collection[str],
) -> Iterator[Launch]:  # fmt: skip
    """The launches of one process, whose tables' names end in `suffix`."""
    replayed: set[tuple[int, int]] = set()
    for launch, rows in groupby(dispatches, lambda row: row[:_LAUNCH_COLUMNS]):
        line, pid, dispatch, agent, name, time_s, *sizes = launch
        if agent not in gpus or not all(sizes):
            raise InputError(
                f"{sheet.path}: row {line} of its kernel dispatches lacks its GPU or its size"
            )
        is_new = (pid, dispatch) not in replayed
        replayed.add((pid, dispatch))
        yield Launch(
            line,
            kernel_name(str(name or "")),
            time_s,
            math.prod(-(-items // size) for items, size in zip(sizes[:3], sizes[3:], strict=True)),
            math.prod(sizes[3:]),
            gpus[agent],
            {n: total for *_, n, total in rows if n in needed and math.isfinite(total or 0.0)},
            f"{suffix}:{pid}:{dispatch}",
            is_new,
        )


def _facts_of_gpu(chip: str, name: str, extdata: object) -> dict[str, str | float]:
    """Of an agent its chip, CUs, dies and highest clocks, as far as its document says them."""
    try:
        document = json.loads(extdata) if isinstance(extdata, str) else {}
    except (ValueError, RecursionError):
        document = {}
    if not isinstance(document, dict):
        document = {}
    banks = [bank for bank in document.get("mem_banks") or () if isinstance(bank, dict)]
    clocks = [bank.get("mem_clk_max") for bank in banks if bank.get("heap_type") in _VIDEO_MEMORY]
    facts: dict[str, Any] = {
        "cu_count": document.get("cu_count"),
        "xcd_count": document.get("num_xcc"),
        "engine_limit_mhz": document.get("max_engine_clk_fcompute"),
        "memory_limit_mhz": max((c for c in clocks if isinstance(c, int | float)), default=None),
    }
    numbers = {n: float(v) for n, v in facts.items() if isinstance(v, int | float) and v > 0}
    return {"chip": gpu_name(name.strip(), chip.strip(), numbers.get("cu_count")), **numbers}
