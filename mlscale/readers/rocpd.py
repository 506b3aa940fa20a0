"""rocpd: the SQLite database that rocprofv3 of ROCm 7 writes by default.

Written by `rocprofv3 --pmc ... --kernel-trace -- PROGRAM` (--output-format rocpd). Each process has
tables of its own in it, whose names end in its GUID; read is what versions 3.0.0 to 3.0.5 of the
schema have in common (ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/
rocprofiler-sdk-rocpd, commits 0c5fd9b, ba070c3 and 2bb64a5).

To watch for: a counter is the sum over its instances; a dispatch that was replayed has several
rows; since 3.0.3 counters that stream while a kernel runs stand in the same table.
"""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

from mlscale.errors import InputError
from mlscale.readers.database import opened_database, tables_of
from mlscale.readers.files import Sheet
from mlscale.readers.launches import Facts, Launch, Launches, in_parts
from mlscale.readers.rocprof import gpu_name, kernel_name

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


def read(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each kernel dispatch, with its counters. Raises InputError."""
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
