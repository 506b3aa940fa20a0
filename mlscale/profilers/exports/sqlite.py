"""SQLite files: whose they are, and how they are read without running what is in them.

A file is read, never written, and only its tables are: a view or a virtual table may compute
whatever its author wished.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mlscale.errors import InputError
from mlscale.profilers.exports.layouts import NSYS_SQLITE, ROCPD_SQLITE, ExportLayout
from mlscale.text import without_controls

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
_COLUMNS = "SELECT name FROM pragma_table_info(?)"
_BEGINS = (
    (ROCPD_SQLITE, ("rocpd_",)),
    (NSYS_SQLITE, ("CUPTI_", "TARGET_INFO_", "StringIds")),
)


@contextmanager
def opened(path: Path, mend: str) -> Iterator[sqlite3.Connection]:
    """A database to read from. Raises InputError where it is damaged; mend: what to do then."""
    try:
        with closing(open_read_only(path)) as database:
            yield database
    except sqlite3.Error as error:
        why = without_controls(str(error))[:200]
        raise InputError(f"{path}: cannot be read as SQLite: {why}; {mend}") from None
    except UnicodeDecodeError:  # SQLite's own message quotes a damaged name
        raise InputError(
            f"{path}: cannot be read as SQLite: its schema is damaged; {mend}"
        ) from None


def open_read_only(path: Path) -> sqlite3.Connection:
    """A database that is not written, and without the files that SQLite puts beside one."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.text_factory = lambda text: text.decode("utf-8", errors="replace")
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def tables(database: sqlite3.Connection) -> list[str]:
    """The names of all tables that hold rows of their own, in alphabetical order."""
    return sorted(str(name) for (name,) in database.execute(_TABLES))


def columns(database: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; none where it is not there, or holds no rows of its own."""
    if table not in tables(database):
        return set()
    return {str(name) for (name,) in database.execute(_COLUMNS, (table,))}


def layout_of_database(path: Path) -> ExportLayout:
    """Which profiler's tables a file has. Raises InputError where it is neither's or damaged."""
    with opened(path, "profile it again") as database:
        names = tables(database)
    for layout, begins in _BEGINS:
        if any(name.startswith(begins) for name in names):
            return layout
    raise InputError(
        f"{path}: is a SQLite database, but has tables neither of rocprofv3 nor of Nsight Systems; "
        "docs/profiling.md has the commands that write one"
    )
