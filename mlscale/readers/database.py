"""SQLite files of profilers, from which is read what is data, and no code is run."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mlscale.errors import InputError
from mlscale.text import without_controls


@contextmanager
def opened_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A SQLite file to read from, which is not written, and of which no code runs. InputError."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", errors="replace")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        why = without_controls(str(error))[:200] if isinstance(error, sqlite3.Error) else "schema"
        raise InputError(f"{path}: cannot be read as SQLite ({why}); export it again") from None


def tables_of(database: sqlite3.Connection) -> dict[str, set[str]]:
    """By name the columns of all tables that hold rows of their own; views and others are not."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    query = "SELECT name FROM pragma_table_info(?)"
    return {
        str(name): {str(column) for (column,) in database.execute(query, (name,))}
        for (name,) in sorted(names)
    }
