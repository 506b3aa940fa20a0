"""The lines of an export: decoded, bounded, counted, one at a time or a block of them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from mlscale.errors import InputError
from mlscale.files import ByteProgress

LONGEST_LINE = 4 << 20
BLOCK = 4 << 20  # characters
_PROGRESS_LINES = 10_000


class TextLines(Iterator[tuple[int, str]]):
    """Lines without their end and with their numbers, from 1.

    progress: is called with the number of bytes read since the last call. Reading raises
    InputError on a line that no tool writes.
    """

    def __init__(self, path: Path, file: TextIO, progress: ByteProgress) -> None:
        self._path, self._file, self._progress = path, file, progress
        self._position = 0
        self.number = 0  # of the last line that was read

    def __next__(self) -> tuple[int, str]:
        line = self._read(self._file.readline, LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._check(self.number, line, len(line))
        if self.number % _PROGRESS_LINES == 0:
            self._tell()
        return self.number, line.rstrip("\n")

    def block(self) -> str:
        """Whole lines, some BLOCK characters of them, with their ends; '' at the end."""
        text = self._read(self._file.read, BLOCK)
        if not text.endswith("\n"):
            text += self._read(self._file.readline, LONGEST_LINE + 1)
        if text and not text.endswith("\n"):
            text += "\n"
        before, self.number = self.number, self.number + text.count("\n")
        last = len(text) - 1 - text.rfind("\n", 0, -1)
        if "\0" in text or last > LONGEST_LINE:
            for number, line in enumerate(text.split("\n"), before + 1):
                self._check(number, line, len(line) + 1)
        self._tell()
        return text

    def _read(self, read: Callable[[int], str], length: int) -> str:
        try:
            return read(length)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror or error}") from error
        except UnicodeError as error:
            raise InputError(
                f"{self._path}: row {self.number + 1}: is damaged text: {error}"
            ) from None

    def _check(self, number: int, line: str, length: int) -> None:
        if length > LONGEST_LINE:
            raise InputError(
                f"{self._path}: row {number}: is longer than {LONGEST_LINE >> 20} MiB; "
                "this is no profiler's export"
            )
        if "\0" in line:
            raise InputError(
                f"{self._path}: row {number}: is not text; export the profiler's report as CSV"
            )

    def _tell(self) -> None:
        position = self._file.buffer.tell()
        self._progress(position - self._position)
        self._position = position
