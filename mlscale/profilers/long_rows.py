"""Tables with a row for each counter of a launch: which rows are of one, and their counters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.profilers.blocks import Block


def runs_of(*columns: NDArray[Any]) -> Indices:
    """Where in columns (n,) of equal length rows begin that differ from the one above."""
    differs = np.zeros(len(columns[0]), np.bool_)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def whole_runs(block: Block, first: Indices) -> tuple[Indices, Indices]:
    """The runs that certainly end in the block: their first rows, and the run of each row.

    first: where all runs of the block begin; the block holds the last one if rows may follow.
    """
    end = len(block)
    if not block.is_last:
        end, first = int(first[-1]), first[:-1]
        block.hold(end)
    return first, np.repeat(np.arange(len(first)), np.diff([*first, end]))


def by_run(runs: Indices, count: int, values: Floats) -> tuple[Floats, int | None]:
    """The value of each of `count` runs (count,), NaN without any, from values (n,) of their rows.

    Also the first row that says another value than one above it of the same run; None without.
    """
    of_run = np.full(count, np.nan)
    given = np.flatnonzero(~np.isnan(values))
    of_run[runs[given[::-1]]] = values[given[::-1]]  # of several rows the first counts
    other = given[of_run[runs[given]] != values[given]]
    return of_run, int(other[0]) if len(other) else None
