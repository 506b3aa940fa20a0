"""Files of every kind that mlscale reads, damaged, and whether it bears them.

A damaged file is refused in one line, with exit status 2, or read; what has checksums gives the
very same numbers then. For tests/test_mutations.py and tools/reliability.py.
"""

import bz2
import csv
import gzip
import io
import lzma
import os
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from random import Random
from threading import Thread
from unittest.mock import patch

from readers import Reader

from mlscale import files
from mlscale.cli.main import main

JUNK = (b"", b",", b'"', b"\n", b"\r", b"\0", b"-", b"1e999", b"\xff\xfe", b"n/a", b"[" * 5000)
NUMBERS = ("-1", "0", "nan", "inf", "1e308", "1e-320", "1_0", "9" * 400, "0x10", "1,5", "")
LONGEST_CUT = 40

Rows = dict[str, list[dict[str, str]]]


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


def _header_alone(content: bytes, random: Random) -> bytes:
    """As of a monitor that was killed at once: the first lines and nothing below."""
    lines = content.splitlines(keepends=True)
    return b"".join(lines[: min(len(lines) - 1, random.randint(1, 3))])


def _list_emptied(content: bytes, random: Random) -> bytes:
    """A list or an object of JSON that holds nothing."""
    start, depth = random.choice([i for i, one in enumerate(content) if one in b"[{"]), 0
    ends = {ord("["): ord("]"), ord("{"): ord("}")}
    for end in range(start, len(content)):
        depth += (content[end] == content[start]) - (content[end] == ends[content[start]])
        if not depth:
            return content[: start + 1] + content[end:]
    return content[: start + 1]


def _key_twice(content: bytes, random: Random) -> bytes:
    """A field of JSON is there again, with another value."""
    field = random.choice([*re.finditer(rb'"[^"]*":\s*(-?[\d.e+-]+|"[^"]*"|null)', content)])
    again = field[0].removesuffix(field[1]) + random.choice((b"1", b'"x"', b"null"))
    return content[: field.end()] + b", " + again + content[field.end() :]


def _lines_changed(
    content: bytes, random: Random, pattern: bytes, change: Callable[[re.Match[bytes]], bytes]
) -> bytes:
    """What the pattern matches is another thing from some line on, and not in the one above."""
    lines = content.splitlines(keepends=True)
    begin = random.choice([n for n, line in enumerate(lines) if re.search(pattern, line)][1:])
    return b"".join([*lines[:begin], *(re.sub(pattern, change, line) for line in lines[begin:])])


def _hour_back(content: bytes, random: Random) -> bytes:
    """As a machine's clock is set back, within a log."""

    def earlier(stamp: re.Match[bytes]) -> bytes:
        said = stamp[0].decode()
        form = f"%Y{said[4]}%m{said[7]}%d{said[10]}%H:%M:%S"
        moment = datetime.strptime(said, form) - timedelta(hours=1)
        return moment.strftime(form).encode()

    stamp = rb"\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d"
    return _lines_changed(content, random, stamp, earlier)


def _other_gpu(content: bytes, random: Random) -> bytes:
    """Two logs in one: a GPU of another name has the same index."""
    return _lines_changed(content, random, rb"NVIDIA [\w -]+", lambda _: b"NVIDIA L40S")


def _all_failed(content: bytes, random: Random) -> bytes:
    """A server that answered no request."""
    count = rb'("(?:completed|num_requests)":\s*|"request_count":\s*\{\s*"avg":\s*)\d+'
    if not re.search(count, content):
        raise IndexError
    failed = re.sub(rb'"errors":\s*\[[^]]*\]', lambda m: m[0].replace(b'""', b'"no"'), content)
    none = re.sub(count, rb"\g<1>0", content)
    return random.choice([none, *([failed] if failed != content else [])])


def _rate_of_nought(content: bytes, random: Random) -> bytes:
    """A rate or a time of a result is 0."""
    at = rb'("\w*(?:rate|throughput|latency|duration)\w*":\s*(?:\{\s*"avg":\s*)?)[\d.]+'
    found = random.choice([*re.finditer(at, content)])
    return content[: found.start()] + found[1] + b"0" + content[found.end() :]


def _packed(content: bytes, random: Random) -> bytes:
    """Whole, or cut off."""
    packed = random.choice((gzip.compress, bz2.compress, lzma.compress))(content)
    return packed[: random.randint(len(packed) // 2, len(packed))]


@cache
def _blanks() -> bytes:
    return gzip.compress(b" " * (2 * MOST_UNPACKED))


def _bomb(content: bytes, _: Random) -> bytes:
    """Packed, with so many blanks in it that unpacking must end."""
    at = content.find(b"[") + 1
    return gzip.compress(content[:at]) + _blanks() + gzip.compress(content[at:])


MOST_UNPACKED = 16 << 20  # for bombs that do not take seconds; tools/reliability.py has a whole one
FAULTS: dict[str, Callable[[bytes, Random], bytes]] = {
    "a bit is flipped": _flipped,
    "bytes are junk": _replaced,
    "cut off": _truncated,
    "lines moved": _lines_moved,
    "a number is another": _number_replaced,
    "a header alone": _header_alone,
    "an empty list": _list_emptied,
    "a field twice": _key_twice,
    "set back by an hour": _hour_back,
    "two GPUs under one index": _other_gpu,
    "all requests failed": _all_failed,
    "a rate of 0": _rate_of_nought,
    "packed": _packed,
    "a packed bomb": _bomb,
}
BINARY = (_flipped, _replaced, _truncated, _lines_moved, _number_replaced, _packed, _bomb)


class Trial:
    """A reader with what comes of its whole file; gives damaged ones to the command."""

    status: int  # how the last command ended

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader, self._folder = reader, folder
        problem, self.whole = self._run(reader.content)
        if problem or self.status or (not self.whole and "{out}" in reader.command):
            raise AssertionError(
                f"{reader.name}: the whole file is not read: {problem or self.said}"
            )

    @cached_property
    def faults(self) -> list[str]:
        """The names of those that this content can have."""
        content, found = self.reader.content, []
        for name, fault in FAULTS.items():
            with suppress(IndexError, UnicodeDecodeError):
                if fault in BINARY or b"\0" not in content:
                    found += [name] if fault(content, Random(0)) != content else []
        return found

    def problem(self, random: Random, fault: str) -> str | None:
        """What is wrong with how the command bears one fault; None where nothing is."""
        problem = self.problem_of(FAULTS[fault](self.reader.content, random))
        if not problem and fault in self.reader.refuses and self.status != 2:
            return "is taken"
        return problem

    def problem_of(self, content: bytes) -> str | None:
        """What is wrong with how the command bears this content."""
        with patch.object(files, "MOST_UNPACKED", MOST_UNPACKED, create=True):
            problem, rows = self._run(content)
        if problem is None and rows and self.reader.keeps == "all" and rows != self.whole:
            return "other numbers"
        return problem

    def problem_of_pipe(self) -> str | None:
        """What is wrong with how the command reads the whole file from a pipe."""
        if self.reader.suffix in (".parquet", ".mlscale"):  # known by their names
            return None
        pipe = self._folder / "pipe"
        os.mkfifo(pipe)
        writing = Thread(target=lambda: pipe.write_bytes(self.reader.content), daemon=True)
        writing.start()
        problem, _ = self._run(None, pipe)
        pipe.unlink()
        return problem or (f"exit status {self.status}" if self.status else None)

    def _run(self, content: bytes | None, pipe: Path | None = None) -> tuple[str | None, Rows]:
        path = pipe or self._folder / f"damaged{self.reader.suffix}"
        out = self._folder / "out.csv"
        if content is not None:
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
