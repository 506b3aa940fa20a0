"""Files written whole or not at all, and the errors of the file system in one line."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlscale.errors import InputError

ByteProgress = Callable[[int], object]  # is called with numbers of bytes as they are read


def no_progress(_count: int) -> None:
    """Show no progress."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` only when the block ends well.

    Raises InputError, naming the path, when the file system refuses.
    """
    temporary = None
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give the name of a file to write")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file; give the name of a file to write")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises InputError."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_bytes(path: Path) -> bytes:
    """Return the whole file. Raises InputError, naming it, when it cannot be read or is empty."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not content:
        raise InputError(f"{path}: is empty")
    return content


def parse_json_object(content: str | bytes, source: str) -> dict[str, Any]:
    """Parse a JSON object. Raises InputError, naming the source, on anything else."""
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: is not valid JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InputError(f"{source}: must hold a JSON object, not {type(parsed).__name__}")
    return parsed
