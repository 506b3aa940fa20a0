"""What is done of long work in units, kept in a folder line by line, so that it can be resumed.

FOLDER/progress.jsonl: a first line with the fingerprint of what the work depends on, then a line
for each unit that is done. A line that was cut off, and what
follows it, is not counted.
"""

import json
from pathlib import Path
from typing import Any, Self

from mlscale.errors import InputError
from mlscale.files import parse_json, read_bytes, write_text
from mlscale.parameters import parameter

PROGRESS = "progress.jsonl"


class Progress:
    """The results that are there, by number of the unit, in a folder; a context manager."""

    def __init__(self, folder: Path, mark: str, resume: bool, what: str = "study") -> None:
        """Begin a new record, or with `resume` take up the one that is there.

        what: the work, as messages call it. Raises InputError when the folder holds unfinished
        work and `resume` is off, or one of another fingerprint.
        """
        self._path = folder / PROGRESS
        self.done: dict[int, Any] = {}
        if self.is_in(folder):
            if not resume:
                raise InputError(
                    f"{folder}: holds an unfinished {what}; continue with "
                    f"{parameter('resume')}, or name another folder"
                )
            self._read(mark)
        lines = [_head(mark), *(_line(number, result) for number, result in self.done.items())]
        write_text(self._path, "".join(lines))
        self._file = self._path.open("a", encoding="utf-8")

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Return whether a folder holds unfinished work."""
        return (folder / PROGRESS).exists()

    def _read(self, mark: str) -> None:
        """Take over the whole lines of a record of that fingerprint."""
        head, *units = read_bytes(self._path).decode("utf-8", "replace").splitlines()
        if head != _head(mark).rstrip():
            raise InputError(
                f"{self._path}: was made of other data, with other settings or by another "
                "version; repeat the same command, or name another folder"
            )
        for line in units:
            try:
                unit = parse_json(line, str(self._path))
                self.done[unit["unit"]] = unit["result"]
            except (InputError, KeyError, TypeError):
                return

    def add(self, number: int, result: Any) -> None:
        """Keep the result of one unit. Raises InputError when the disk does not take it."""
        try:
            self._file.write(_line(number, result))
            self._file.flush()
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from error
        self.done[number] = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError:  # a full disk again, which was told when the line was written
            return

    def remove(self) -> None:
        """Forget the record, once the results are written."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _head(mark: str) -> str:
    return json.dumps({"fingerprint": mark}) + "\n"


def _line(number: int, result: Any) -> str:
    return json.dumps({"unit": number, "result": result}) + "\n"
