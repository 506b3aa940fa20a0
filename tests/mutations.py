"""Files of every kind that mlscale reads, damaged, and whether it bears them.

A damaged file is refused in one line, with exit status 2, or read; what has checksums gives the
very same numbers then. For tests/test_mutations.py and tools/reliability.py.
"""

import csv
import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from readers import Reader

from mlscale.cli.main import main

JUNK = (b"", b",", b'"', b"\n", b"\r", b"\0", b"-", b"1e999", b"\xff\xfe", b"n/a", b"[" * 5000)
NUMBERS = ("-1", "0", "nan", "inf", "1e308", "1e-320", "1_0", "9" * 400, "0x10", "1,5", "")
LONGEST_CUT = 40

Rows = dict[str, list[dict[str, str]]]


def damaged(content: bytes, random: Random) -> bytes:
    """The content with one fault: of the disk, of an editor, or put there on purpose."""
    return random.choice(FAULTS)(content, random)


def _flipped(content: bytes, random: Random) -> bytes:
    place = random.randrange(len(content))
    changed = bytearray(content)
    changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def _replaced(content: bytes, random: Random) -> bytes:
    start = random.randrange(len(content))
    return content[:start] + random.choice(JUNK) + content[start + random.randrange(LONGEST_CUT) :]


def _truncated(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content))]


def _lines_moved(content: bytes, random: Random) -> bytes:
    """A line is left out, there twice, or changes its place."""
    lines = content.splitlines(keepends=True)
    line = lines.pop(random.randrange(len(lines)))
    for _ in range(random.randrange(3)):
        lines.insert(random.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _number_replaced(content: bytes, random: Random) -> bytes:
    """One number in the text is another, or is none."""
    starts = [i for i in range(1, len(content)) if content[i : i + 1].isdigit()
              and not content[i - 1 : i].isalnum()]  # fmt: skip
    if not starts:
        return _flipped(content, random)
    start = end = random.choice(starts)
    while content[end : end + 1].isdigit() or content[end : end + 1] == b".":
        end += 1
    return content[:start] + random.choice(NUMBERS).encode() + content[end:]


FAULTS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flipped, _replaced, _truncated, _lines_moved, _number_replaced,
)  # fmt: skip


class Trial:
    """A reader with what comes of its whole file; gives damaged ones to the command."""

    status: int  # how the last command ended

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader, self._folder = reader, folder
        problem, self.whole = self._run(reader.content)
        if problem or (not self.whole and "{out}" in reader.command):
            raise AssertionError(
                f"{reader.name}: the whole file is not read: {problem or self.said}"
            )

    def problem(self, random: Random) -> str | None:
        """What is wrong with how the command bears one fault; None where nothing is."""
        return self.problem_of(self.damaged(random))

    def damaged(self, random: Random) -> bytes:
        """The content with one fault."""
        return damaged(self.reader.content, random)

    def problem_of(self, content: bytes) -> str | None:
        """What is wrong with how the command bears this content."""
        problem, rows = self._run(content)
        if problem is None and rows and self.reader.keeps == "all" and rows != self.whole:
            return "other numbers"
        return problem

    def _run(self, content: bytes) -> tuple[str | None, Rows]:
        path, out = self._folder / f"damaged{self.reader.suffix}", self._folder / "out.csv"
        path.write_bytes(content)
        for old in (out, out.with_suffix(".meta.json")):
            old.unlink(missing_ok=True)
        given = {"{}": str(path), "{out}": str(out)}
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            try:
                self.status = main([given.get(word, word) for word in self.reader.command])
            except SystemExit as end:
                self.status = int(end.code or 0)
            except Exception as error:  # a traceback, for a user
                return f"{type(error).__name__}: {str(error)[:200]}", {}
        self.said = said.getvalue()
        if self.status not in (0, 2):
            return f"exit status {self.status}", {}
        if raw := [line for line in self.said.splitlines() if not line.startswith("mlscale: ")]:
            return f"says {raw[0][:200]!a}", {}
        if self.status == 2:
            return ("leaves a file" if out.exists() else None), {}
        return _written(out) if "{out}" in self.reader.command else (None, {})


def _written(table: Path) -> tuple[str | None, Rows]:
    """What is wrong with the CSV that a command wrote, and its rows by kernel."""
    rows: Rows = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if {"nan", "inf", "-inf"} & {str(cell).lower() for cell in row.values()}:
                return "writes a number that is none", {}
            for quantity in ("time_ms", "power_w"):
                ends = [row.get(f"{quantity}{end}") for end in ("_low", "", "_high")]
                given = [float(end) for end in ends if end]
                if given != sorted(given):
                    return f"{quantity} lies outside its interval", {}
            rows.setdefault(row["kernel"], []).append(row)
    return None, rows
