"""JSON larger than memory: a trace's text in pieces, and the events in it one after the other."""

import gzip
import io
import json
import mmap
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from mlscale.errors import InputError
from mlscale.files import ByteProgress, parse_json

MOST_CHARACTERS = 8 << 30  # unpacked; a compressed file may promise any number
LONGEST_VALUE = 64 << 20  # characters of one event, or of one value beside the events
_CHUNK = 1 << 20
_EVENTS_BEGIN_IN = 16 << 20  # bytes
_GZIP = b"\x1f\x8b"
_EVENTS = "traceEvents"
_BLANKS = " \t\r\n"


def is_json_trace(path: Path) -> bool:
    """Whether a file is compressed, or a JSON object with events as Chrome's traces have them."""
    with path.open("rb") as file:
        head = file.read(64)
        if head.startswith(_GZIP):
            return True
        if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(f'"{_EVENTS}"'.encode(), 0, _EVENTS_BEGIN_IN) >= 0


@contextmanager
def text_chunks(path: Path, progress: ByteProgress) -> Iterator[Iterator[tuple[int, str]]]:
    """The text of a file that may be compressed by gzip, in numbered pieces. Raises InputError."""
    with path.open("rb") as binary:
        is_gzip = binary.read(len(_GZIP)) == _GZIP
        binary.seek(0)
        unpacked = gzip.GzipFile(fileobj=binary) if is_gzip else binary
        with io.TextIOWrapper(unpacked, encoding="utf-8-sig", errors="replace") as text:
            yield _chunks(path, text, binary, progress, is_gzip)


def _chunks(
    path: Path, text: io.TextIOWrapper, binary: BinaryIO, progress: ByteProgress, is_gzip: bool
) -> Iterator[tuple[int, str]]:
    characters = position = number = 0
    try:
        while chunk := text.read(_CHUNK):
            number += 1
            if number == 1 and is_gzip and not chunk.lstrip().startswith("{"):
                raise InputError(
                    f"{path}: is compressed, and not PyTorch's trace, which alone is read so; "
                    f"unpack it first: gunzip {path.name}"
                )
            characters += len(chunk)
            if characters > MOST_CHARACTERS:
                raise InputError(
                    f"{path}: unpacks to more than {MOST_CHARACTERS >> 30} GiB; trace fewer steps"
                )
            yield number, chunk
            progress(binary.tell() - position)
            position = binary.tell()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}; is the file cut off?") from None


class JsonValues:
    """The values of a JSON object whose text comes in pieces."""

    def __init__(self, source: str, chunks: Iterator[tuple[int, str]]) -> None:
        self._source = source
        self._chunks = chunks
        # Numbers with decimals stay text, as a float would round times since 1970.
        self._decoder = json.JSONDecoder(strict=False, parse_float=str, parse_constant=str)
        self._text = ""
        self._at = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The name and value of each member, and each event by itself. Raises InputError."""
        self._take("{")
        for _ in self._each_until("}"):
            name = self._value()
            self._take(":")
            if name == _EVENTS and self._look() == "[":
                self._take("[")
                for _ in self._each_until("]"):
                    yield _EVENTS, self._value()
            else:
                yield str(name), self._value()

    def _each_until(self, closing: str) -> Iterator[None]:
        """Once at the beginning of each item that a comma parts, up to the closing bracket."""
        if self._look() != closing:
            yield
            while self._look() != closing:
                self._take(",")
                yield
        self._take(closing)

    def _more(self) -> bool:
        """Read on, as much again as is not used up; False at the end of the file."""
        pieces = [self._text[self._at :]]
        wanted = len(pieces[0])
        if wanted > LONGEST_VALUE:
            raise InputError(
                f"{self._source}: has a value longer than {LONGEST_VALUE >> 20} MiB, or is no "
                "valid JSON"
            )
        length = 0
        for _, chunk in self._chunks:
            pieces.append(chunk)
            length += len(chunk)
            if length >= wanted:
                break
        self._text, self._at = "".join(pieces), 0
        return length > 0

    def _look(self) -> str:
        """The next character that is no blank; '' at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANKS:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _take(self, character: str) -> None:
        if self._look() != character:
            raise self._damage()
        self._at += 1

    def _value(self) -> Any:
        self._look()
        while True:
            try:
                value, end = parse_json(self._text, self._source, self._decode_here)
            except InputError:
                if not self._more():
                    raise self._damage() from None
                continue
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value

    def _decode_here(self, text: str) -> tuple[Any, int]:
        return self._decoder.raw_decode(text, self._at)

    def _damage(self) -> InputError:
        text = self._text[self._at : self._at + 40].replace("\n", " ").strip()
        place = f"at '{text}'" if text else "at its end"
        return InputError(f"{self._source}: is no valid JSON {place}; is the file cut off?")
