"""The suite: every kernel at every size that `mlscale collect` can run."""

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from mlscale.collect import suite_arithmetic, suite_irregular, suite_streams
from mlscale.collect.entries import Entry
from mlscale.errors import InputError

SUITE: tuple[Entry, ...] = (
    *suite_streams.ENTRIES,
    *suite_arithmetic.ENTRIES,
    *suite_irregular.ENTRIES,
)


def select(patterns: Sequence[str]) -> tuple[Entry, ...]:
    """The entries that are asked for, in the suite's order; all without patterns.

    patterns: names of kernels or of applications, * for any characters. Raises InputError.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        found = [
            entry.name
            for entry in SUITE
            if fnmatchcase(entry.name, pattern) or fnmatchcase(entry.application, pattern)
        ]
        if not found:
            known = [*(e.name for e in SUITE), *(e.application for e in SUITE)]
            close = difflib.get_close_matches(pattern, known, n=1)
            hint = f"; is '{close[0]}' meant?" if close else ""
            raise InputError(
                f"there is no kernel or application '{pattern}' in the suite{hint} "
                "'mlscale collect --list-kernels' lists them"
            )
        wanted.update(found)
    return tuple(entry for entry in SUITE if not patterns or entry.name in wanted)
