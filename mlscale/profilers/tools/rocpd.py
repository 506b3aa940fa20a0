"""rocprofv3's database (rocpd), which ROCm 7 writes by default: dispatches, counters and GPUs.

Each process has tables of its own, whose names end in its GUID; `rocpd merge` puts those of several
into one file. Read is what versions 3.0.0 to 3.0.5 of the schema have in common (ROCm/rocm-systems,
projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd: the tables of 3.0.1 at commit 0c5fd9b
and of 3.0.3 at ba070c3, the changes of all versions at 2bb64a5).
As in the view counters_collection, a counter of a dispatch is the sum over its instances.
"""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any

from mlscale.errors import InputError, warn
from mlscale.files import parse_json
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.sqlite import columns, opened, tables
from mlscale.profilers.exports.values import parse_counter
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent, NumberSet
from mlscale.profilers.tools.rocprof import gpu_name, kernel_name
from mlscale.text import counted

_OF_DISPATCHES = re.compile(r"rocpd_kernel_dispatch((_[0-9A-Za-z]+)*)")
_NAME = re.compile(r"\brocpd_[a-z_]+\b")
_SIZES = tuple(f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in "xyz")
_COLUMNS = {
    "rocpd_kernel_dispatch": (
        *("id", "pid", "agent_id", "kernel_id", "dispatch_id", "start", "end", "event_id"),
        *_SIZES,
    ),
    "rocpd_info_kernel_symbol": ("id", "display_name"),
    "rocpd_info_agent": ("id", "nid", "logical_index", "name", "product_name", "extdata"),
    "rocpd_info_node": ("id", "machine_id", "hostname"),
    "rocpd_info_process": ("id", "command"),
    "rocpd_info_pmc": ("id", "name"),
    "rocpd_pmc_event": ("event_id", "pmc_id", "value"),
}
_HAS_DISPATCHES = "SELECT EXISTS (SELECT 1 FROM rocpd_kernel_dispatch)"
_HAS_COUNTERS = """
    SELECT EXISTS (
        SELECT 1 FROM rocpd_pmc_event AS event
        JOIN rocpd_kernel_dispatch AS dispatch ON dispatch.event_id = event.event_id
    )
"""
_AGENTS = """
    SELECT
        agent.id, agent.logical_index, agent.name, agent.product_name, agent.extdata,
        node.machine_id, node.hostname
    FROM rocpd_info_agent AS agent LEFT JOIN rocpd_info_node AS node ON node.id = agent.nid
"""
_COMMANDS = "SELECT command FROM rocpd_info_process ORDER BY id"
# A row for each counter of a dispatch, one without any for a dispatch that has none. What a
# database of an older version lacks is put as NULL: whose pass a replayed dispatch is, and the
# sample of a counter that streams while a kernel runs.
_LAUNCHES = """
    SELECT
        dispatch.id, dispatch.pid, dispatch.dispatch_id, dispatch.replay_pass, dispatch.agent_id,
        symbol.display_name, dispatch.start, dispatch."end",
        dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z,
        dispatch.workgroup_size_x, dispatch.workgroup_size_y, dispatch.workgroup_size_z,
        counted.name, counted.total, counted.is_whole, counted.text
    FROM rocpd_kernel_dispatch AS dispatch
    LEFT JOIN rocpd_info_kernel_symbol AS symbol ON symbol.id = dispatch.kernel_id
    LEFT JOIN (
        SELECT
            event.event_id, pmc.name,
            CASE WHEN min(event.value) < 0 THEN min(event.value) ELSE total(event.value) END
            AS total,
            min(typeof(event.value) IN ('integer', 'real')) AS is_whole,
            max(CASE WHEN typeof(event.value) IN ('text', 'blob') THEN quote(event.value) END)
            AS text
        FROM rocpd_pmc_event AS event JOIN rocpd_info_pmc AS pmc ON pmc.id = event.pmc_id
        WHERE event.sample_id IS NULL
        GROUP BY event.event_id, pmc.name
    ) AS counted ON counted.event_id = dispatch.event_id
    ORDER BY dispatch.id
"""
_LATER = (("rocpd_kernel_dispatch", "dispatch.replay_pass"), ("rocpd_pmc_event", "event.sample_id"))
_OF_A_LAUNCH = 14  # the columns before those of a counter
_VIDEO_MEMORY = (1, 2)  # heap types of a memory bank: visible to the host, and not
_MOST = 1e6  # no GPU has so many CUs or MHz


def read_database(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each kernel dispatch, with its counters. Raises InputError without any.

    A counter that has no number in one of its instances is missing, with a warning where it is
    infinite there. Gaps between launches are the program's own only in a file without counters.
    """
    with opened(export.path, "profile it again with rocprofv3") as database:
        yield from _launches(database, export.path, content, needed)


class _Process:
    """The tables of one process, whose names end alike."""

    def __init__(self, database: sqlite3.Connection, suffix: str) -> None:
        self._database, self._suffix = database, suffix

    def query(self, text: str) -> sqlite3.Cursor:
        """Run a query in which the tables have their names without the end."""
        return self._database.execute(_NAME.sub(lambda name: f'"{name[0]}{self._suffix}"', text))

    def says(self, question: str) -> bool:
        """The answer to a query of EXISTS."""
        [answer] = self.query(question).fetchone()
        return bool(answer)

    def columns(self, table: str) -> set[str]:
        """The columns of a table; none where it is not there."""
        return columns(self._database, table + self._suffix)

    def launches(self) -> sqlite3.Cursor:
        """The rows of `_LAUNCHES`."""
        text = _LAUNCHES
        for table, column in _LATER:
            if column.partition(".")[2] not in self.columns(table):
                text = text.replace(column, "NULL")
        return self.query(text)


def _launches(
    database: sqlite3.Connection, path: Path, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    found = [match for name in tables(database) if (match := _OF_DISPATCHES.fullmatch(name))]
    processes = [_Process(database, match[1]) for match in found]
    _check_tables(path, processes)
    processes = [process for process in processes if process.says(_HAS_DISPATCHES)]
    if not processes:
        raise InputError(
            f"{path}: has no kernel dispatch; profile with rocprofv3 --kernel-trace, beside --pmc "
            "where counters are wanted"
        )
    gpus = _note_gpus(processes, content)
    content.application = _program(processes)
    counts = any(process.says(_HAS_COUNTERS) for process in processes)
    ranks: dict[tuple[int, int], int] = {}
    unnamed = 0
    infinite: Counter[str] = Counter()
    for number, process in enumerate(processes):
        replayed: dict[int, NumberSet] = {}
        for launch, rows in groupby(process.launches(), lambda row: row[:_OF_A_LAUNCH]):
            line, pid, dispatch, replay, agent, name, begin, end, *sizes = launch
            if name is None:
                unnamed += 1
                continue
            where = f"{path}: row {line} of its kernel dispatches"
            numbers = (line, pid, dispatch, begin, end, *sizes)
            is_whole = isinstance(name, str) and all(isinstance(one, int) for one in numbers)
            if not is_whole or agent not in gpus[number]:
                raise InputError(f"{where} lacks its kernel's name, its GPU, its times or its size")
            if min(sizes) < 1:
                raise InputError(f"{where}, of '{name[:60]}', has a size of 0")
            rank = ranks.setdefault((number, pid), len(ranks))
            yield LaunchRecord(
                line=line,
                kernel=kernel_name(name),
                launch=f"{rank}:{dispatch}",
                workgroups=_workgroups(sizes[:3], sizes[3:]),
                workgroup_size=float(math.prod(sizes[3:])),
                time_s=(end - begin) / 1e9,
                counters=_counters(rows, where, needed, infinite),
                is_new=replay is None or replayed.setdefault(pid, NumberSet()).add(dispatch),
                gpu=gpus[number][agent],
                begin_ns=None if counts else begin,
            )
    if unnamed:
        warn(
            f"{path}: {counted(unnamed, 'launch')} of kernels that it does not name "
            f"{'is' if unnamed == 1 else 'are'} left out"
        )
    if infinite:
        launches = ", ".join(f"{name} ({counted(n, 'launch')})" for name, n in infinite.items())
        warn(f"{path}: counters are infinite and taken as missing there: {launches}")


def _check_tables(path: Path, processes: Sequence[_Process]) -> None:
    """Raise InputError where what is read is not there, with all of it."""
    lacks: dict[str, None] = {} if processes else {"rocpd_kernel_dispatch": None}
    for process in processes:
        for table, needed in _COLUMNS.items():
            there = process.columns(table)
            missing = [f"{table}.{name}" for name in needed if name not in there]
            lacks.update(dict.fromkeys(missing if there else [table]))
    if lacks:
        raise InputError(
            f"{path}: is of rocprofv3 (rocpd), but lacks {', '.join(lacks)}; versions 3.0 of its "
            f"schema are read: convert it by 'rocpd convert -i {path.name} --output-format csv', "
            "or profile again with rocprofv3 --output-format csv"
        )


def _workgroups(grid: Sequence[int], size: Sequence[int]) -> float:
    """How many there are; the grid is given in work-items along each axis."""
    return float(math.prod(-(-items // of_one) for items, of_one in zip(grid, size, strict=True)))


def _counters(
    rows: Iterator[Any], where: str, needed: Collection[str], infinite: Counter[str]
) -> dict[str, float]:
    """The needed counters of one dispatch; those that are infinite are counted, and missing.

    Raises InputError where an instance is negative, or a text.
    """
    counters: dict[str, float] = {}
    for *_, name, value, is_whole, text in rows:
        if name not in needed:
            continue
        place = f"{where}, counter '{name}'"
        if text is not None:
            raise InputError(f"{place}: {text[:40]} is not a number")
        if is_whole and math.isinf(value):
            infinite[name] += 1
        elif is_whole:
            counters[name] = parse_counter(repr(value), place)
    return counters


def _note_gpus(processes: Sequence[_Process], content: FileContent) -> list[dict[int, str]]:
    """By process the number of each agent, which bears its host's name where there are several.

    The number is the one that rocprofv3's CSV files give by default. What is said of the GPUs goes
    to the content.
    """
    agents = [process.query(_AGENTS).fetchall() for process in processes]
    hosts = {machine: host for rows in agents for *_, machine, host in rows}
    are_told_apart = len(set(hosts.values())) == len(hosts)
    numbers: list[dict[int, str]] = []
    for rows in agents:
        numbers.append({})
        for agent, index, chip, name, extdata, machine, host in rows:
            node = f"{host if are_told_apart else machine}:" if len(hosts) > 1 else ""
            number = f"{node}{agent if index is None else index}"
            numbers[-1][agent] = number
            content.gpu_facts[number] = _facts(str(chip or ""), str(name or ""), _document(extdata))
    return numbers


def _document(extdata: object) -> dict[str, Any]:
    """What is said of an agent, as JSON; nothing where it is none."""
    try:
        document = parse_json(extdata, "extdata") if isinstance(extdata, str) else None
    except InputError:
        return {}
    return document if isinstance(document, dict) else {}


def _facts(chip: str, name: str, document: dict[str, Any]) -> dict[str, str | float]:
    """Of an agent its chip, CUs, dies and highest clocks; what is no positive number is not."""
    banks = document.get("mem_banks")
    clocks = [
        _positive(bank.get("mem_clk_max"))
        for bank in (banks if isinstance(banks, list) else ())
        if isinstance(bank, dict) and bank.get("heap_type") in _VIDEO_MEMORY
    ]
    cu_count = _positive(document.get("cu_count"))
    facts: dict[str, str | float] = {
        "chip": gpu_name(name.strip(), chip.strip(), cu_count or None),
        "cu_count": cu_count,
        "xcd_count": _positive(document.get("num_xcc")),
        "engine_limit_mhz": _positive(document.get("max_engine_clk_fcompute")),
        "memory_limit_mhz": max(clocks, default=0.0),
    }
    return {fact: value for fact, value in facts.items() if value}


def _positive(value: Any) -> float:
    """The number; 0 where it is none, or none that a GPU has."""
    return float(value) if type(value) in (int, float) and 0 < value < _MOST else 0.0


def _program(processes: Sequence[_Process]) -> str | None:
    """The name of the first program that was profiled."""
    commands = [command for process in processes for (command,) in process.query(_COMMANDS)]
    words = [command.split() for command in commands if isinstance(command, str)]
    return next((PurePath(of_one[0]).name for of_one in words if of_one), None)
