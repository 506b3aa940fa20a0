"""The suite: kernels at their sizes, each with its source, its launch and its known answer.

suite.csv has a line for each: suite "full" has sizes for a GPU, "small" one size of each that a
processor runs in some milliseconds.
"""

import csv
import fnmatch
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from mlscale.collect.cases import CASES, Case
from mlscale.errors import InputError
from mlscale.text import near_names

KERNELS = Path(__file__).parent / "kernels"
BACKENDS = ("cuda", "hip", "opencl")


@dataclass(frozen=True)
class Entry:
    """One kernel at one size: a row of the table.

    name: in the table, and of its function on the GPU, so that a profiler names it too.
    application: what it is a size of. source: the file in kernels/, without .cu, with its macros.
    threads: of the one-dimensional launch, rounded up to whole blocks. case: makes the arguments
    and what is expected, always the same. backends: that have what it needs.
    """

    name: str
    application: str
    source: str
    macros: dict[str, Any]
    threads: int
    block: int
    case: Callable[[], Case]
    backends: tuple[str, ...] = BACKENDS

    @property
    def text(self) -> str:
        """The source, with what makes it CUDA, HIP or OpenCL C before it."""
        files = (KERNELS / "languages.h", KERNELS / f"{self.source}.cu")
        return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def entries(suite: str) -> tuple[Entry, ...]:
    """The kernels of a suite, 'full' or 'small'."""
    with Path(__file__).with_name("suite.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_entry(row) for row in csv.DictReader(file) if row["suite"] == suite)


def _entry(row: dict[str, str]) -> Entry:
    return Entry(
        name=row["kernel"],
        application=row["application"],
        source=row["source"],
        macros=_pairs(row["macros"]),
        threads=int(row["threads"]),
        block=int(row["block"]),
        case=partial(CASES[row["case"]], **_pairs(row["arguments"])),
        backends=tuple(row["backends"].split()) or BACKENDS,
    )


def _pairs(text: str) -> dict[str, Any]:
    """The pairs of 'n=4096 real=float32'; numbers as such."""
    return {
        name: json.loads(value) if value[0].isdigit() else value
        for name, value in (pair.split("=") for pair in text.split())
    }


def select(suite: str, patterns: Sequence[str], backend: str) -> tuple[Entry, ...]:
    """The kernels of a suite that are asked for and that the backend can run; all without patterns.

    patterns: names of kernels or of applications, * for any characters. Raises InputError.
    """
    named = [name for entry in entries(suite) for name in (entry.name, entry.application)]
    for pattern in patterns:
        if not fnmatch.filter(named, pattern):
            near = "".join(f"; is '{name}' meant?" for name in near_names(pattern, named, most=1))
            raise InputError(
                f"there is no kernel or application '{pattern}' in the suite '{suite}'{near}"
            )
    wanted = {name for pattern in patterns or "*" for name in fnmatch.filter(named, pattern)}
    return tuple(
        entry
        for entry in entries(suite)
        if backend in entry.backends and wanted & {entry.name, entry.application}
    )
