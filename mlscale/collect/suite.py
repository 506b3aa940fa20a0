"""The suites: every kernel at every size that `mlscale collect` can run."""

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from mlscale.collect import suite_arithmetic, suite_irregular, suite_streams
from mlscale.collect.entries import Entry
from mlscale.errors import InputError

_PARTS = (suite_streams, suite_arithmetic, suite_irregular)
# full: sizes for a GPU; small: each kernel at one size that a processor runs in some milliseconds.
SUITES: dict[str, tuple[Entry, ...]] = {
    name: tuple(entry for part in _PARTS for entry in part.entries(name == "small"))
    for name in ("full", "small")
}


def select(suite: str, patterns: Sequence[str], backend: str | None = None) -> tuple[Entry, ...]:
    """The entries of a suite that are asked for, in its order; all without patterns.

    patterns: names of kernels or of applications, * for any characters. backend: what it cannot
    run is left out. Raises InputError.
    """
    entries = SUITES[suite]
    wanted: set[str] = set()
    for pattern in patterns:
        names = [
            entry.name
            for entry in entries
            if fnmatchcase(entry.name, pattern) or fnmatchcase(entry.application, pattern)
        ]
        if not names:
            known = [*(e.name for e in entries), *(e.application for e in entries)]
            close = difflib.get_close_matches(pattern, known, n=1)
            hint = f"; is '{close[0]}' meant?" if close else ";"
            raise InputError(
                f"there is no kernel or application '{pattern}' in the suite '{suite}'{hint} "
                "'mlscale collect --list-kernels' lists them"
            )
        wanted.update(names)
    return tuple(
        entry
        for entry in entries
        if (not patterns or entry.name in wanted) and backend in (None, *entry.backends)
    )
