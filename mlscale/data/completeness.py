"""Which kernels of a table were measured at every configuration, and what the others lack."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from mlscale.arrays import Indices
from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.table import Table
from mlscale.errors import InputError, warn

_ONE_CLOCK = 1.02  # times another clock: below, they may be one that was measured
_LOOKED_AT = 50  # kernels that may be one under two names, so that time stays short


def complete_kernels(
    table: Table, kernels: Sequence[str], grid: ConfigGrid, counts: Indices, drop: bool
) -> list[int]:
    """The positions of the kernels that have every configuration.

    counts: how many rows each kernel and configuration has, (K, C, E, M). Raises InputError where
    a kernel lacks one, or, with drop, where all do; with drop it warns.
    """
    configs = list(grid)
    lacking = {
        kernel: [configs[cell] for cell in np.flatnonzero(counts[k] == 0)]
        for k, kernel in enumerate(kernels)
    }
    lacking = {kernel: missing for kernel, missing in lacking.items() if missing}
    if not lacking:
        return list(range(len(kernels)))
    worst = ", ".join(
        f"'{kernel}' lacks {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        for kernel, missing in list(lacking.items())[:3]
    )
    more = f", and {len(lacking) - 3} more kernels" if len(lacking) > 3 else ""
    what = f"{table.source}: {len(lacking)} of {len(kernels)} kernels lack configurations: "
    what += worst + more
    why = _why(table, kernels, grid, counts)
    if not drop:
        mend = "measure them or use --incomplete drop (in Python incomplete='drop')"
        raise InputError(f"{what}; {why or mend}")
    complete = [k for k, kernel in enumerate(kernels) if kernel not in lacking]
    if not complete:
        raise InputError(f"{what}; no kernel is complete{why and f'; {why}'}")
    warn(f"{what}; dropped{why and f'; {why}'}")
    return complete


def _why(table: Table, kernels: Sequence[str], grid: ConfigGrid, counts: Indices) -> str:
    """What explains it in one stroke, with the mend; empty where nothing does."""
    present = counts > 0
    for a, axis in enumerate(AXES):
        others = tuple(other for other in range(1, 4) if other != a + 1)
        has_step = np.asarray(present.any(axis=others))
        steps = getattr(grid, axis)
        for step, (low, high) in enumerate(pairwise(steps)):
            is_near = axis != "cu_count" and high < _ONE_CLOCK * low
            if is_near and not has_step[:, step : step + 2].all(axis=1).any():
                return (
                    f"no kernel has both {axis} {low:g} and {high:g}: if these are one clock, as "
                    "it was set and as it ran, or as it ran twice, give all its rows one number "
                    "('mlscale import' takes it as --base)"
                )
        share = has_step.mean(axis=0)
        if share.max() > 0.5 > share.min():
            step = int(share.argmin())
            owner = kernels[int(has_step[:, step].argmax())]
            value, count = steps[step], int(has_step[:, step].sum())
            row = int(np.flatnonzero(table.numbers[axis] == value)[0])
            return (
                f"{count} of {len(kernels)} kernels {'has' if count == 1 else 'have'} a row at "
                f"{axis} {value:g}, such as '{owner}' in {table.row(row)}: if a clock was not kept "
                "there, measure again, or leave these rows out"
            )
    nowhere = np.flatnonzero(~np.asarray(present.any(axis=0)))
    if nowhere.size:
        first = list(grid)[int(nowhere[0])]
        return f"no kernel has {first}: measure it, or leave out all rows of one of its settings"
    of_kernel = dict(zip(table.text["kernel"], table.text["application"], strict=True))
    partial = [k for k in range(len(kernels)) if not present[k].all()]
    for one, other in combinations(partial[:_LOOKED_AT], 2):
        is_one = of_kernel[kernels[one]] == of_kernel[kernels[other]]
        if is_one and (present[one] ^ present[other]).all():
            return (
                f"'{kernels[other]}' has just what '{kernels[one]}' lacks: if they are one "
                "kernel under two names, give it one"
            )
    return ""
