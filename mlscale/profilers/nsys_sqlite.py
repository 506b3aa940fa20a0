"""Nsight Systems' SQLite export: the kernels, by name, grid, block and GPU.

The file is read, never written, and only tables are read: a view or a virtual table may compute
whatever its author wished.
"""

import math
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from mlscale.errors import InputError, warn
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.reader import Export

_KERNELS, _GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPUS = "TARGET_INFO_GPU"
_COLUMNS = (
    *("start", "end", "deviceId", "demangledName"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
)
_COUNTS = {
    _KERNELS: "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL",
    _GRAPHS: "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}
_SELECT_KERNELS = """
    SELECT name.value, start, end, deviceId, gridX, gridY, gridZ, blockX, blockY, blockZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds AS name ON name.id = demangledName
    ORDER BY start
"""


def read_sqlite(
    export: Export, content: FileContent, _needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each kernel that was traced by itself. Raises InputError without any."""
    try:
        with closing(open_read_only(export.path)) as database:
            yield from _kernels(database, export.path, content)
    except sqlite3.Error as error:
        raise InputError(
            f"{export.path}: cannot be read as SQLite: {error}; export it again with "
            "nsys export --type sqlite"
        ) from None


def open_read_only(path: Path) -> sqlite3.Connection:
    """A database that is not written, and without the files that SQLite puts beside one."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.text_factory = lambda text: text.decode("utf-8", errors="replace")
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _kernels(
    database: sqlite3.Connection, path: Path, content: FileContent
) -> Iterator[LaunchRecord]:
    graphs = _count(database, _GRAPHS)
    of_graphs = f"{graphs} launches of CUDA graphs were traced whole, and their kernels are not in"
    mend = "profile with nsys profile --cuda-graph-trace=node"
    if not _count(database, _KERNELS):
        why = f"; {of_graphs} it: {mend}" if graphs else ""
        raise InputError(f"{path}: no kernels were traced{why}")
    if graphs:
        warn(f"{path}: {of_graphs} the times; {mend}")
    lacks = [name for name in _COLUMNS if name not in _columns(database, _KERNELS)]
    if lacks:
        raise InputError(f"{path}: its table {_KERNELS} has no column {', '.join(lacks)}")
    if not {"id", "value"} <= _columns(database, "StringIds"):
        raise InputError(f"{path}: has no table StringIds, which names the kernels")
    content.gpu_facts.update(_gpus(database))
    rows = database.execute(_SELECT_KERNELS)
    for number, (name, begin, end, gpu, *sizes) in enumerate(rows, 1):
        if not isinstance(name, str) or not all(
            isinstance(value, int) for value in (begin, end, gpu, *sizes)
        ):
            raise InputError(f"{path}: kernel {number} lacks its name, its times or its size")
        if min(sizes) < 1:
            raise InputError(f"{path}: kernel {number}, '{name[:60]}', has a size of 0")
        yield LaunchRecord(
            line=number,
            kernel=name,
            launch=str(number),
            workgroups=float(math.prod(sizes[:3])),
            workgroup_size=float(math.prod(sizes[3:])),
            time_s=(end - begin) / 1e9,
            gpu=str(gpu),
            begin_ns=begin,
        )


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; none where it is not there, or is no table of its own."""
    kind = database.execute(
        "SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%'",
        (table,),
    ).fetchone()
    rows = database.execute(f"PRAGMA table_info({table})").fetchall() if kind else []
    return {str(row[1]) for row in rows}


def _count(database: sqlite3.Connection, table: str) -> int:
    if not _columns(database, table):
        return 0
    [count] = database.execute(_COUNTS[table]).fetchone()
    return int(count)


def _gpus(database: sqlite3.Connection) -> dict[str, dict[str, str | float]]:
    """By number what the file says of each GPU; nothing where it has no table of them."""
    if not {"id", "name", "smCount"} <= _columns(database, _GPUS):
        return {}
    rows = database.execute("SELECT id, name, smCount FROM TARGET_INFO_GPU")
    return {
        str(number): {"device_name": str(name), "cu_count": float(count)}
        for number, name, count in rows
        if name and count
    }
