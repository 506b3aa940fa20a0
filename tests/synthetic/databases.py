"""SQLite files, as profilers write them, changed by statements."""

import sqlite3
from contextlib import closing
from pathlib import Path


def changed(path: Path, *statements: str) -> Path:
    """The database after these statements."""
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path
