"""Made runs on MI300X GPUs, as rocprofv3's database (rocpd) and as its CSV files.

The tables and columns are those of the schema's versions 3.0.0 to 3.0.5 (ROCm/rocm-systems,
projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd, commits 0c5fd9b and ba070c3) as far as
a run of kernels fills them; the agents' `extdata` has the members that the SDK's serialization of
an agent writes (ROCm/rocprofiler-sdk, cxx/serialization/save.hpp, commit 121aa28). No real database
was at hand.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthetic.exports import V3_COUNTERS, V3_TRACE

GUID = "00000dbe-6d37-7d4f-9c8b-3b7d2d1a4f10"
_ID = "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL DEFAULT 'GUID'"
_ABOUT = "nid INTEGER NOT NULL, pid INTEGER NOT NULL"
_XYZ = ", ".join(
    f"{what}_size_{axis} INTEGER NOT NULL" for what in ("workgroup", "grid") for axis in "xyz"
)
TABLES = {
    "rocpd_info_node": f"{_ID}, hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, "
    "hostname TEXT",
    "rocpd_info_process": f"{_ID}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, command TEXT",
    "rocpd_info_agent": f"{_ID}, {_ABOUT}, type TEXT CHECK (type IN ('CPU', 'GPU', 'NIC')), "
    "absolute_index INTEGER, logical_index INTEGER, name TEXT, product_name TEXT, "
    "extdata JSONB NOT NULL DEFAULT '{}'",
    "rocpd_info_pmc": f"{_ID}, {_ABOUT}, name TEXT NOT NULL, symbol TEXT NOT NULL",
    "rocpd_info_kernel_symbol": f"{_ID}, {_ABOUT}, code_object_id INTEGER NOT NULL, "
    "kernel_name TEXT, display_name TEXT",
    "rocpd_event": _ID,
    "rocpd_pmc_event": f"{_ID}, event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL DEFAULT 0.0",
    "rocpd_kernel_dispatch": f"{_ID}, {_ABOUT}, tid INTEGER, agent_id INTEGER NOT NULL, "
    "kernel_id INTEGER NOT NULL, dispatch_id INTEGER NOT NULL, queue_id INTEGER NOT NULL, "
    'stream_id INTEGER NOT NULL, start BIGINT NOT NULL, "end" BIGINT NOT NULL, '
    f"{_XYZ}, event_id INTEGER",
}
EXTDATA = {
    "cu_count": 304, "max_engine_clk_fcompute": 2100, "max_engine_clk_ccompute": 3700,
    "name": "gfx942", "product_name": "AMD Instinct MI300X", "num_xcc": 8,
    "mem_banks": [
        {"heap_type": 0, "flags": 0, "width": 64, "mem_clk_max": 4800, "size_in_bytes": 1},
        {"heap_type": 1, "flags": 0, "width": 8192, "mem_clk_max": 1300, "size_in_bytes": 2},
        {"heap_type": 2, "flags": 0, "width": 8192, "mem_clk_max": 900, "size_in_bytes": 2},
    ],
}  # fmt: skip
CPU, MI300X = ("CPU", "A CPU", "A CPU"), ("GPU", "gfx942", "AMD Instinct MI300X")
# By its id the number that CSV files give an agent, and what it is.
AGENTS = {0: (0, *CPU), 6: (4, *MI300X), 7: (5, *MI300X)}


@dataclass(frozen=True)
class Dispatch:
    """One kernel dispatch; grid in work-items; counters: by name the value of each instance."""

    number: int
    kernel: str = "f(int, int)"
    begin: int = 1000
    end: int = 3000
    grid: tuple[int, int, int] = (64, 10, 1)
    size: tuple[int, int, int] = (64, 1, 1)
    agent: int = 6
    counters: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def write_database(
    path: Path,
    dispatches: Sequence[Dispatch],
    *,
    guid: str = GUID,
    host: str = "node0",
    extdata: object = EXTDATA,
) -> Path:
    """Put the tables of a process, and their rows, into a file, which may have those of others."""
    end = "_" + guid.replace("-", "_")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE `{table}{end}` ({columns.replace('GUID', guid)})")
            database.execute(f"CREATE VIEW IF NOT EXISTS `{table}` AS SELECT * FROM `{table}{end}`")

        def put(table: str, **row: Any) -> None:
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join("?" * len(row))
            database.execute(
                f"INSERT INTO {table}{end} ({names}) VALUES ({marks})", tuple(row.values())
            )

        put("rocpd_info_node", id=9, hash=99, machine_id=f"machine of {host}", hostname=host)
        put("rocpd_info_process", id=70, nid=9, pid=70, command="/opt/app/vcopy -n 4")
        for number, (index, kind, name, product) in AGENTS.items():
            said = json.dumps(extdata) if kind == "GPU" else "{}"
            put("rocpd_info_agent", id=number, nid=9, pid=70, type=kind, absolute_index=number,
                logical_index=index, name=name, product_name=product, extdata=said)  # fmt: skip
        names = dict.fromkeys(name for one in dispatches for name in one.counters)
        counters = {name: 800 + i for i, name in enumerate(names)}
        for name, number in counters.items():
            put("rocpd_info_pmc", id=number, nid=9, pid=70, name=name, symbol=name)
        kernels = {
            name: 30 + i for i, name in enumerate(dict.fromkeys(d.kernel for d in dispatches))
        }
        for name, number in kernels.items():
            put("rocpd_info_kernel_symbol", id=number, nid=9, pid=70, code_object_id=1,
                kernel_name="_Z1fii.kd", display_name=name)  # fmt: skip
        for row, one in enumerate(dispatches, 1):
            event = 10**6 - row  # neither a row's number nor in the order of the rows
            put("rocpd_event", id=event)
            geometry = {f"grid_size_{axis}": n for axis, n in zip("xyz", one.grid, strict=True)}
            geometry |= {
                f"workgroup_size_{axis}": n for axis, n in zip("xyz", one.size, strict=True)
            }
            put("rocpd_kernel_dispatch", id=row, nid=9, pid=70, tid=71, agent_id=one.agent,
                kernel_id=kernels[one.kernel], dispatch_id=one.number, queue_id=1, stream_id=0,
                start=one.begin, end=one.end, event_id=event, **geometry)  # fmt: skip
            for name, values in one.counters.items():
                for value in values:
                    put("rocpd_pmc_event", event_id=event, pmc_id=counters[name], value=value)
        database.commit()
    return path


def counters_csv(dispatches: Sequence[Dispatch]) -> str:
    """The same run as counter_collection.csv, the sum over the instances of each counter."""
    return V3_COUNTERS + "".join(
        f'{d.number},{d.number},"Agent {AGENTS[d.agent][0]}",1,70,71,'
        f'{d.grid[0] * d.grid[1] * d.grid[2]},3,"{d.kernel}",{d.size[0] * d.size[1] * d.size[2]},'
        f'0,0,8,0,16,"{name}",{sum(values)},{d.begin},{d.end}\n'
        for d in dispatches
        for name, values in d.counters.items()
    )


def trace_csv(dispatches: Sequence[Dispatch]) -> str:
    """The same run as kernel_trace.csv."""
    return V3_TRACE.partition("\n")[0] + "\n" + "".join(
        f'"KERNEL_DISPATCH","Agent {AGENTS[d.agent][0]}",1,71,{d.number},3,"{d.kernel}",1,'
        f"{d.begin},{d.end},{','.join(map(str, (*d.size, *d.grid)))}\n"
        for d in dispatches
    )  # fmt: skip
