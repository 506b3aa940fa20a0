"""The lines of an export, bounded and counted: one at a time as text, or a block as bytes."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from mlscale.errors import InputError
from mlscale.files import ByteProgress
from mlscale.profilers.exports.unread import ROCPROFV3_MEND

LONGEST_LINE = 4 << 20  # bytes
BLOCK = 4 << 20  # bytes
_EXPORTED_BY = {  # what the tools keep of a run, by its suffix
    ".ncu-rep": "export the report: ncu --import REPORT --page raw --csv > run.csv",
    ".nsys-rep": "export the report: nsys export --type sqlite -o run.sqlite REPORT",
    **dict.fromkeys((".pftrace", ".otf2"), ROCPROFV3_MEND),
}


class TextLines(Iterator[tuple[int, str]]):
    """Lines without their end and with their numbers, from 1.

    file: one opened to replace what is no character. progress: is called with the number of bytes
    read since the last call. Reading raises InputError on a line that no tool writes.
    """

    def __init__(self, path: Path, file: TextIO, progress: ByteProgress) -> None:
        self._path, self._file, self._progress = path, file, progress
        self._position = self._at = 0
        self._data = b""  # what was read last, and in it the place up to which it was given
        self.number = 0  # of the last line that was given

    def __next__(self) -> tuple[int, str]:
        if self._at == len(self._data):
            self._data, self._at = self._read(), 0
        if not self._data:
            raise StopIteration
        begin, end = self._at, self._data.index(b"\n", self._at)
        self._at = end + 1
        self.number += 1
        return self.number, self._data[begin:end].decode()

    def ahead(self) -> bytes:
        """What is at hand of the lines that follow, at most a block."""
        return self._data[self._at :]

    def block(self) -> bytes:
        """Whole lines in UTF-8, some BLOCK bytes of them, with their ends; b'' at the end."""
        data = self._data[self._at :] or self._read()
        self._data, self._at = b"", 0
        self.number += int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
        return data

    def _read(self) -> bytes:
        binary = self._file.buffer
        try:
            if self._file.encoding == "utf-8":  # left to the block as a whole
                data = binary.read(BLOCK) + binary.readline(LONGEST_LINE + 1)
            else:
                data = (self._file.read(BLOCK) + self._file.readline(LONGEST_LINE + 1)).encode()
            position = binary.tell()
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror or error}") from error
        if not self._position:
            data = data.removeprefix(BOM_UTF8)
        self._progress(position - self._position)
        self._position = position
        if data and not data.endswith(b"\n"):
            data += b"\n"
        last = data.rfind(b"\n", 0, -1) + 1
        if len(data) - last > LONGEST_LINE + 1:
            raise self._error(
                data, last, f"longer than {LONGEST_LINE >> 20} MiB; this is no profiler's export"
            )
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if (at := data.find(b"\0")) >= 0:
            how = _EXPORTED_BY.get(self._path.suffix, "export the profiler's report as CSV")
            raise self._error(data, at, f"not text; {how}")
        return data if data.isascii() else data.decode(errors="replace").encode()

    def _error(self, data: bytes, at: int, what: str) -> InputError:
        number = self.number + data.count(b"\n", 0, at) + 1
        return InputError(f"{self._path}: row {number}: is {what}")
