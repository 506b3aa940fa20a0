"""Files written whole or not at all, and the errors of the file system in one line.

What kind of file a reader was given in place of its own, and which command reads that kind.
"""

import json
import math
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from mlscale.errors import InputError, require_type

try:
    import fcntl
except ImportError:  # Windows: no folder is held, and nothing of killed processes taken away
    fcntl = None  # type: ignore[assignment]

_PART = ".mlscale-part"  # ends the names of files that are being written

ByteProgress = Callable[[int], object]  # is called with numbers of bytes as they are read


def no_progress(_count: int) -> None:
    """Show no progress."""


def path_of(value: Any, argument: str = "path", what: str = "a file's path") -> Path:
    """An argument of the Python interface as a path. Raises InputError where it is none."""
    require_type(argument, value, str | os.PathLike, what)
    return Path(value)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` only when the block ends well.

    Of a link the file that it leads to is replaced; a stream, such as /dev/stdout or a pipe, is
    written to. Raises InputError, naming the path, when the file system refuses.
    """
    import tempfile

    temporary = None
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give the name of a file to write")
        is_stream = _is_stream(path)
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(_PART, ".", None if is_stream else target.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        if is_stream:
            with temporary.open("rb") as content, path.open("ab") as stream:
                shutil.copyfileobj(content, stream)
            return
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a pipe, or leads to an open file, as /dev/stdout does."""
    if path.exists() and not path.is_file():
        return True
    while not str(path.absolute()).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        if not path.is_symlink() or not path.exists():
            return False
        path = path.parent / path.readlink()
    return True


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other process that asks for it too writes there.

    The system lets go of it when the process ends, however that is. What a killed one had begun
    to write is taken away. Raises InputError when another process holds it.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # of a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{folder}: another mlscale writes there; wait for it, or name another folder"
                ) from None
            for part in folder.glob(f".*{_PART}"):
                part.unlink()
        yield
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises InputError."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_bytes(path: Path) -> bytes:
    """Return the whole file. Raises InputError, naming it, when it cannot be read or is empty."""
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            raise InputError(f"{path}: is a device, not a file")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not content:
        raise InputError(f"{path}: is empty")
    return content


def shipped_json(module: str, name: str) -> Any:
    """Return what the JSON file of that name beside a module holds. module: its __file__."""
    path = Path(module).with_name(name)
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: Any, source: str, parse: Callable[[Any], Any] = json.loads) -> Any:
    """What JSON says. Raises InputError, naming the source, where it is none or nested too deeply.

    All JSON that is read comes by here. parse: a parser with settings of its own.
    """
    try:
        return parse(content)
    except RecursionError:
        raise InputError(
            f"{source}: is no JSON that a tool writes: its brackets are nested too deeply; make "
            "the file anew"
        ) from None
    except ValueError as error:
        raise InputError(f"{source}: is not valid JSON: {error}") from None


def parse_json_object(
    content: str | bytes, source: str, only_finite: bool = False
) -> dict[str, Any]:
    """Parse a JSON object. Raises InputError, naming the source, on anything else.

    only_finite: also on NaN, infinity, and numbers too large for a float.
    """
    number = _finite if only_finite else float
    parse = partial(json.loads, parse_float=number, parse_constant=number)
    parsed = parse_json(content, source, parse)
    if not isinstance(parsed, dict):
        raise InputError(f"{source}: must hold a JSON object, not {type(parsed).__name__}")
    return parsed


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is not finite")
    return value


MODEL, GPU = "mlscale model", "gpu.json"
_OWN = {
    MODEL: "a whole mlscale model file",
    GPU: "a gpu.json of 'mlscale collect --micro'",
}
_READERS = {
    MODEL: "a model file, for --model of 'mlscale predict' and 'mlscale advise'",
    GPU: "a gpu.json, which mlscale.papers.gpu_file reads",
    "device": "a device file, for --device",
    "table": "a Parquet table, for 'mlscale train' and 'mlscale predict FILE'",
    "text": "text, as a table or a profiler's export is, for 'mlscale predict FILE'",
}

_STARTS = {b"PK\x03\x04": MODEL, b"PAR1": "table"}


def require_kind(content: bytes, path: Path, own: str) -> None:
    """Raise InputError, saying what it is, where a content is known to be of another kind.

    own: the kind wanted, MODEL or GPU. What is of no kind that is known passes.
    """
    kind = _kind(content, path)
    if kind not in (None, own):
        raise InputError(f"{path}: is not {_OWN[own]}: it is {_READERS[kind]}")


def _kind(content: bytes, path: Path) -> str | None:
    """Return the key of _READERS that a file's content has; None where it is not known."""
    for start, kind in _STARTS.items():
        if content.startswith(start):
            return kind
    try:
        text = content.decode()
        if not text.lstrip("\ufeff \n\r\t").startswith(("{", "[")):
            return None if "\0" in text else "text"
        document = parse_json(text, str(path))
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    keys = {"compute_unit": GPU, "key": "device"}
    return next((kind for key, kind in keys.items() if key in document), None)
