"""AMD's rocprof: CSV files of v1, v2 and v3, what rocprof-compute makes of them, and rocpd.

A file has a row for each dispatch, with a column for each counter (v1, v2, pmc_perf.csv), or a row
for each counter of a dispatch (v3), or none (v3's kernel trace); the names of columns differ.
rocpd is the database that ROCm 7 writes by default. Each process has tables of its own in it, whose
names end in its GUID; read is what versions 3.0.0 to 3.0.5 of the schema have in common
(ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd, commits 0c5fd9b,
ba070c3 and 2bb64a5).
"""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Iterator
from functools import partial
from itertools import groupby, repeat
from pathlib import PurePath
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.devices import devices_named, find_device
from mlscale.errors import InputError
from mlscale.readers.files import (
    Block,
    Form,
    Sheet,
    number,
    opened_database,
    product,
    tables_of,
    whole,
)
from mlscale.readers.launches import Facts, Launch, Launches, in_parts

_SUFFIX = re.compile(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$")
# By what it is, the names that a column has in v1, v2 and v3.
_NAMES = {
    "kernel": ("KernelName", "Kernel_Name"),
    "dispatch": ("Index", "Dispatch_ID", "Dispatch_Id"),
    "process": ("Process_Id",),
    "gpu": ("gpu-id", "GPU_ID", "Agent_Id"),
    "begin": ("BeginNs", "Start_Timestamp"),
    "end": ("EndNs", "End_Timestamp"),
    "kind": ("Kind",),
    "counter": ("Counter_Name",),
    "value": ("Counter_Value",),
}
_GRIDS = ("grd", "Grid_Size", "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z")
_SIZES = ("wgr", "Workgroup_Size", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z")


def read_dispatches(sheet: Sheet, _facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each dispatch, whatever rows it has. Raises InputError."""
    names = {what: found for what, among in _NAMES.items() if (found := sheet.find(*among))}
    grid_size, size_of_one = sheet.find(*_GRIDS[:2]), sheet.find(*_SIZES[:2])
    grids: tuple[str, ...] = _GRIDS[2:]
    sizes: tuple[str, ...] = _SIZES[2:]
    if grid_size and size_of_one:  # the products, which may stand beside those of each side
        grids, sizes = (grid_size,), (size_of_one,)
    columns = [name for name in sheet.header if name in needed]
    together = [names[what] for what in ("process", "dispatch", "kernel", "begin") if what in names]
    together = together if "counter" in names else []
    seen: dict[str, set[str]] = {}
    for block in sheet.blocks([*names.values(), *grids, *sizes, *columns], together):
        rows = block
        if "kind" in names:
            kinds = block.text(names["kind"])
            is_kernel = np.array([text == "KERNEL_DISPATCH" for text in kinds.texts], np.bool_)
            rows = block.take(np.flatnonzero(is_kernel[kinds.codes]))
        launches = rows
        counters = {name: rows.numbers(name) for name in columns}
        if together:
            first, runs = rows.first_of_runs(*together)
            launches = rows.take(first)
            counters = _counters(rows, names, runs, len(first), needed)
        is_numbered = bool(together) or "kind" not in names  # a trace may be of several processes
        is_new = _is_new(launches, names, seen) if is_numbered else np.ones(len(launches))
        if not (together or is_new.all()):
            row = int(np.argmin(is_new))
            raise InputError(
                f"{launches.where(row)}: dispatch {launches.text(names['dispatch']).cells()[row]} "
                "comes again; give one run's rows as rocprof writes them, further passes as files"
            )
        workgroups, size = np.ones(len(launches)), np.ones(len(launches))
        for grid, of_one in zip(grids, sizes, strict=True):  # the grid is given in work-items
            items = launches.numbers(of_one, product)
            workgroups *= np.ceil(launches.numbers(grid, product) / items)
            size *= items
        time_s = np.full(len(launches), np.nan)
        if "begin" in names and "end" in names:
            time_s = launches.durations_s(names["begin"], names["end"])
        yield Launches(
            launches.lines,
            launches.text(names["kernel"]).renamed(_kernel_name),
            time_s,
            workgroups,
            size,
            counters,
            gpus=launches.text(names["gpu"]).renamed(_agent) if "gpu" in names else None,
            ids=partial(_ids, launches, names, seen),
            is_new=is_new if together else None,
        )


def _kernel_name(text: str) -> str:
    """A kernel's name without what the compiler appends to it."""
    return _SUFFIX.sub("", text.strip())


def _agent(text: str) -> str:
    return text.removeprefix("Agent ")


def _counters(
    rows: Block, names: dict[str, str], runs: Indices, count: int, needed: Collection[str]
) -> dict[str, Floats]:
    """By name the needed counters of dispatches, whose rows `runs` tells. Raises InputError."""
    codes, texts = rows.text(names["counter"])
    counters: dict[str, Floats] = {}
    for code, name in enumerate(texts):
        if name in needed:
            at = np.flatnonzero(codes == code)
            counters[name] = np.full(count, np.nan)
            counters[name][runs[at]] = rows.take(at).numbers(names["value"])
    return counters


def _is_new(launches: Block, names: dict[str, str], seen: dict[str, set[str]]) -> Floats:
    """0 for a further pass of a launch that came before; by process those that did."""
    is_new = np.ones(len(launches))
    for row, (process, dispatch) in enumerate(_numbers_of_launches(launches, names)):
        before = seen.setdefault(process, set())
        is_new[row] = dispatch not in before
        before.add(dispatch)
    return is_new


def _ids(launches: Block, names: dict[str, str], seen: dict[str, set[str]]) -> list[str]:
    """The launches' numbers in the run; processes are numbered, as each run has others."""
    ranks = {process: f"{rank}:" if process else "" for rank, process in enumerate(seen)}
    return [ranks.get(p, "") + dispatch for p, dispatch in _numbers_of_launches(launches, names)]


def _numbers_of_launches(block: Block, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Process and number of each dispatch; '' where the file does not tell the process."""
    dispatches = block.text(names["dispatch"]).cells()
    processes = block.text(names["process"]).cells() if "process" in names else repeat("")
    return zip(processes, dispatches, strict=False)


def read_machine(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """What rocprof-compute's sysinfo.csv says of the GPU; no launch. Raises InputError."""
    facts.is_of_machine = True
    for block in sheet.blocks(["gpu_arch", "cu_per_gpu", "gpu_model", "max_mclk", "num_xcd"]):
        counts = block.numbers("cu_per_gpu", whole)
        models = block.text("gpu_model").cells() if "gpu_model" in block else [""] * len(block)
        for chip, count, model in zip(block.text("gpu_arch").cells(), counts, models, strict=True):
            name = _gpu_name(model.partition("_")[0], chip, float(count))  # MI300X_A1
            facts.seen["chip"][name] += 1
            facts.seen["cu_count"][float(count)] += 1
        for fact, column in (("memory_limit_mhz", "max_mclk"), ("xcd_count", "num_xcd")):
            for value in block.numbers(column, number) if column in block else ():
                facts.note_clock(fact, float(value))
    yield from ()


def read_agents(sheet: Sheet, facts: Facts, _needed: Collection[str]) -> Iterator[Launches]:
    """What rocprofv3's agent_info.csv says of each GPU; no launch. Raises InputError.

    Traces have a GPU's logical number, those of the first releases the node's.
    """
    facts.is_of_machine = True
    clock, dies = "Max_Engine_Clk_Fcompute", "Num_Xcc"
    columns = ("Agent_Type", "Cu_Count", "Name", "Product_Name", "Node_Id", "Logical_Node_Id")
    by_node: dict[str, dict[str, str | float]] = {}
    for block in sheet.blocks([*columns, clock, dies]):
        kinds = block.text("Agent_Type").cells()
        gpus = block.take(np.array([i for i, kind in enumerate(kinds) if kind == "GPU"], np.intp))
        counts = gpus.numbers("Cu_Count", whole)
        texts = {name: gpus.text(name).cells() for name in columns if name in gpus}
        limits = {
            fact: gpus.numbers(column, number)
            for fact, column in (("engine_limit_mhz", clock), ("xcd_count", dies))
            if column in gpus
        }
        for row, count in enumerate(counts.tolist()):
            name = _gpu_name(texts["Product_Name"][row], texts["Name"][row], count)
            said = {fact: float(values[row]) for fact, values in limits.items() if values[row] > 0}
            of_one: dict[str, str | float] = {"chip": name, "cu_count": count, **said}
            by_node[texts["Node_Id"][row]] = of_one
            facts.of_gpu[texts.get("Logical_Node_Id", texts["Node_Id"])[row]] = of_one
    facts.of_gpu = by_node | facts.of_gpu
    if not facts.of_gpu:
        raise InputError(f"{sheet.path}: lists no GPU")
    yield from ()


def _gpu_name(name: str, chip: str, cu_count: float | None) -> str:
    """A GPU's name, but its chip where the device table knows that better."""
    knows_chip = not find_device(name, cu_count) and devices_named(chip, cu_count)
    return chip if knows_chip or not name else name


_OF_DISPATCHES = re.compile(r"rocpd_kernel_dispatch((_[0-9A-Za-z]+)*)")
_NEEDED = {
    "rocpd_kernel_dispatch": {"dispatch_id", "agent_id", "kernel_id", "start", "end", "event_id"},
    "rocpd_info_kernel_symbol": {"display_name"},
    "rocpd_info_agent": {"logical_index", "name", "product_name", "extdata"},
    "rocpd_info_process": {"command"},
    "rocpd_info_pmc": {"name"},
    "rocpd_pmc_event": {"event_id", "pmc_id", "value"},
}
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
_OF_A_LAUNCH = 12  # the columns before those of a counter
_VIDEO_MEMORY = (1, 2)  # heap types of a memory bank: visible to the host, and not


def read_database(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each kernel dispatch, with its counters. Raises InputError."""
    with opened_database(sheet.path) as database:
        tables = tables_of(database)
        suffixes = [match[1] for name in tables if (match := _OF_DISPATCHES.fullmatch(name))]
        for suffix in suffixes:
            for table, columns in _NEEDED.items():
                if lacks := columns - tables.get(table + suffix, set()):
                    names = ", ".join(f"{table}.{name}" for name in sorted(lacks))
                    raise InputError(
                        f"{sheet.path}: is of rocprofv3 (rocpd), but lacks {names}; versions 3.0 "
                        "of its schema are read: profile with rocprofv3 --output-format csv"
                    )
        agents = {suffix: list(_query(database, suffix, _AGENTS)) for suffix in suffixes}
        hosts = {host for rows in agents.values() for *_, host in rows}
        launches = (
            launch
            for suffix, rows in agents.items()
            for launch in _of_process(
                database, sheet, suffix, "sample_id" in tables["rocpd_pmc_event" + suffix],
                _numbers(rows, len(hosts) > 1, facts), facts, needed,
            )
        )  # fmt: skip
        yield from in_parts(launches)


def _query(database: sqlite3.Connection, suffix: str, text: str) -> Iterator[Any]:
    """The rows of a query in which the tables have their names without the end."""
    return database.execute(re.sub(r"\brocpd_[a-z_]+\b", lambda name: f'"{name[0]}{suffix}"', text))


def _numbers(rows: list[Any], has_hosts: bool, facts: Facts) -> dict[int, str]:
    """The number of each GPU as rocprofv3's CSV files give it; what it is goes to the facts."""
    numbers: dict[int, str] = {}
    for agent, index, chip, name, extdata, host in rows:
        numbers[agent] = f"{host}:{index}" if has_hosts else str(index)
        facts.of_gpu[numbers[agent]] = _facts(str(chip or ""), str(name or ""), extdata)
    return numbers


def _of_process(
    database: sqlite3.Connection, sheet: Sheet, suffix: str, has_samples: bool,
    agents: dict[int, str], facts: Facts, needed: Collection[str],
) -> Iterator[Launch]:  # fmt: skip
    """The launches of one process, whose tables' names end in `suffix`. Raises InputError."""
    for (command,) in _query(database, suffix, "SELECT command FROM rocpd_info_process"):
        if not facts.application and isinstance(command, str) and command.strip():
            facts.application = PurePath(command.split()[0]).name
    text = _DISPATCHES
    if not has_samples:  # of counters that stream while a kernel runs, since 3.0.3
        text = text.replace("WHERE sample_id IS NULL", "")
    replayed: set[tuple[int, int]] = set()
    for launch, rows in groupby(_query(database, suffix, text), lambda row: row[:_OF_A_LAUNCH]):
        line, pid, dispatch, agent, name, time_s, *sizes = launch
        if name is None or time_s is None or agent not in agents or not all(sizes):
            raise InputError(
                f"{sheet.path}: row {line} of its kernel dispatches lacks its kernel's name, its "
                "GPU, its times or its size"
            )
        is_new = (pid, dispatch) not in replayed
        replayed.add((pid, dispatch))
        yield Launch(
            line,
            _kernel_name(name),
            time_s,
            math.prod(-(-items // size) for items, size in zip(sizes[:3], sizes[3:], strict=True)),
            math.prod(sizes[3:]),
            agents[agent],
            {n: total for *_, n, total in rows if n in needed and math.isfinite(total or 0.0)},
            f"{suffix}:{pid}:{dispatch}",
            is_new,
        )


def _facts(chip: str, name: str, extdata: object) -> dict[str, str | float]:
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
    return {"chip": _gpu_name(name.strip(), chip.strip(), numbers.get("cu_count")), **numbers}


_STATISTICS = (
    "are no row for each launch; give …_kernel_trace.csv of rocprofv3 --kernel-trace "
    "--output-format csv, or results.csv of rocprof --timestamp on"
)
FORMS = (
    Form(
        "rocprofv3", "rocprofv3 counter collection", read_dispatches,
        ("Kernel_Name", "Dispatch_Id|Dispatch_ID", "Grid_Size", "Workgroup_Size", "Counter_Name",
         "Counter_Value"),
    ),
    Form(
        "rocprofv3", "rocprofv3 kernel trace", read_dispatches,
        ("Kind", "Kernel_Name", "Dispatch_Id", "Start_Timestamp", "End_Timestamp", *_GRIDS[2:],
         *_SIZES[2:]),
    ),
    Form(
        "rocprof", "rocprof v1 or v2", read_dispatches,
        ("KernelName|Kernel_Name", "Index|Dispatch_ID", "grd|Grid_Size", "wgr|Workgroup_Size"),
        lacks=("Counter_Name", "Kind"),
    ),
    Form(
        "rocprof", "rocprof-compute's sysinfo.csv beside the counters", read_machine,
        ("gpu_arch", "cu_per_gpu"), lacks=("Kernel_Name",),
    ),
    Form(
        "rocprofv3", "rocprofv3's agent_info.csv beside the counters", read_agents,
        ("Agent_Type", "Cu_Count", "Name", "Product_Name", "Node_Id"),
    ),
    Form("rocprofv3", "rocprofv3, SQLite (rocpd)", read_database, tables="rocpd_"),
    Form(
        "rocprof", "statistics of rocprof", None,
        ("Name", "Calls", "TotalDurationNs", "AverageNs"), instead=_STATISTICS,
    ),
)  # fmt: skip
