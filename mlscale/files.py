"""Files written whole or not at all, and the errors of the file system in one line."""

import io
import json
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from mlscale.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: no folder is held, and nothing of killed processes taken away
    fcntl = None  # type: ignore[assignment]

_PACKERS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "lzma"}  # by what files begin with
# Of what they packed. Real traces unpack to 10 to 30 times their size.
MOST_UNPACKED, MOST_TIMES = 2 << 30, 200
PIECE = 1 << 20  # bytes
HELD = 4 << 20  # bytes of a file that are read at once and held
_PART = ".mlscale-part"  # ends the names of files that are being written

ByteProgress = Callable[[int], object]  # is called with numbers of bytes as they are read


def no_progress(_count: int) -> None:
    """Show no progress."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` only when the block ends well.

    If the path is a link, the file it points to is replaced; a stream, such as /dev/stdout or
    a pipe, is appended to. Raises InputError, naming the path, when the file system refuses.
    """
    import tempfile

    temporary = None
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give the name of a file to write")
        is_added = is_stream(path)
        target = path.resolve()
        handle, name = tempfile.mkstemp(_PART, ".", None if is_added else target.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        if is_added:
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


def is_stream(path: Path) -> bool:
    """Whether it is a device, a pipe or an open file, as /dev/stdout is."""
    is_open_file = str(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return is_open_file or (os.path.exists(path) and not os.path.isfile(path))  # noqa: PTH110, PTH113


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other process that uses this lock writes there.

    The system releases the lock when the process ends, however it ends. Partial files of
    killed processes are deleted, of workers too. Raises InputError when another process holds it.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{folder}: another mlscale is writing there; wait, or name another folder"
                ) from None
            _delete_partial(folder)
        yield
        _delete_partial(folder)
    finally:
        with suppress(OSError):  # for workers too that were forked meanwhile and live on
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _delete_partial(folder: Path) -> None:
    for part in folder.glob(f".*{_PART}"):
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises InputError."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest, self._done = pieces, memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._done

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._pieces, b""))
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        self._done += len(taken)
        return len(taken)


@dataclass(frozen=True)
class HeldFile:
    """A file opened once, and its beginning, which is all of a short file.

    Attributes:
        path: the file.
        stored: its first HELD bytes, perhaps compressed.
        size_bytes: of the whole file.
    """

    path: Path
    stored: bytes = field(repr=False, compare=False)
    size_bytes: int = field(compare=False)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def packer(self) -> str | None:
        """The module that unpacks it; None if it is not compressed, or in an unknown format."""
        return next((m for mark, m in _PACKERS.items() if self.stored.startswith(mark)), None)

    @cached_property
    def head(self) -> bytes:
        """The first HELD bytes of its content. Raises InputError if they cannot be unpacked."""
        return b"".join(islice(self.pieces(), HELD // PIECE)) if self.packer else self.stored

    @property
    def encoding(self) -> str:
        """Of a text: UTF-16 where its byte-order mark says so, else UTF-8, perhaps with a mark."""
        return "utf-16" if self.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"

    @property
    def first_line(self) -> str:
        """The first line of a text that is not blank, or its beginning."""
        text = io.TextIOWrapper(io.BytesIO(self.head), self.encoding, errors="replace")
        return next(filter(str.strip, text), "")

    def open(self) -> BinaryIO:
        """All its content, unpacked; a file longer than `head` is opened again."""
        if len(self.head) < HELD:
            return io.BytesIO(self.head)
        return io.BufferedReader(_Pieces(self.pieces())) if self.packer else self.path.open("rb")

    def pieces(self, progress: ByteProgress = no_progress) -> Iterator[bytes]:
        """Its content in pieces, unpacked if gzip, bzip2 or xz packed it. Raises InputError.

        progress: is called with numbers of bytes as they are read.
        """
        most = max(MOST_UNPACKED, MOST_TIMES * self.size_bytes) if self.packer else math.inf
        module = import_module(self.packer) if self.packer else None
        is_whole = len(self.stored) < HELD
        done = position = 0
        try:
            with io.BytesIO(self.stored) if is_whole else self.path.open("rb") as binary:
                content: Any = module.open(binary) if module else binary
                while done <= most and (piece := content.read(PIECE)):
                    done += len(piece)
                    yield piece
                    progress(binary.tell() - position)
                    position = binary.tell()
        except (EOFError, OSError, zlib.error, getattr(module, "LZMAError", OSError)) as error:
            what = "unpacked" if module else "read"
            raise InputError(f"{self.path}: cannot be {what}: {error}; is it cut off?") from None
        if done > most:
            told = f"{self.path}: unpacks to more than {most / (1 << 30):.3g} GiB"
            raise InputError(
                f"{told}, the limit for a compressed file of its size; unpack it first"
            )

    def content(self) -> bytes:
        """All of it, unpacked if necessary. Raises InputError, also on an empty file."""
        if content := b"".join(self.pieces()):
            return content
        raise InputError(f"{self.path}: is empty")


def hold(file: Path | HeldFile) -> HeldFile:
    """Open a file, unless it is open. Raises InputError if it cannot be read."""
    if isinstance(file, HeldFile):
        return file
    try:
        with file.open("rb") as binary:
            return HeldFile(file, binary.read(HELD), os.fstat(binary.fileno()).st_size)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def read_bytes(path: Path) -> bytes:
    """The whole file, unpacked if necessary. Raises InputError, also on an empty one."""
    return hold(path).content()


def shipped_json(module: str, name: str) -> Any:
    """Return the content of the JSON file of that name next to a module. module: its __file__."""
    path = Path(module).with_name(name)
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: str | bytes, source: str) -> Any:
    """Parse JSON. Raises InputError, naming the source, if it is not valid."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # the latter of brackets nested too deeply
        raise InputError(f"{source}: is not valid JSON: {error}") from None


def parse_json_object(content: str | bytes, source: str) -> dict[str, Any]:
    """Parse a JSON object. Raises InputError, naming the source, on anything else."""
    parsed = parse_json(content, source)
    if not isinstance(parsed, dict):
        raise InputError(f"{source}: must hold a JSON object, not {type(parsed).__name__}")
    return parsed
