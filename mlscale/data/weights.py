"""How often kernels run, from a file that the user wrote: it overrides what the profile says."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from mlscale.data.profiles import Profiles
from mlscale.data.table_files import read_table
from mlscale.errors import InputError
from mlscale.text import near_names, shortened

LONGEST_NAME = 60
MOST_NAMED = 5


def with_weights(profiles: Profiles, path: Path | str) -> Profiles:
    """The profiles with the launches of a table, columns `kernel` and `launches`.

    Kernels that the table does not name keep theirs; a kernel of 0 launches does not run in the
    application, and is left out. Raises InputError on a kernel that the profile does not have,
    or that has two rows, on launches that are not given or negative, and where no kernel is left.
    """
    table = read_table(path)
    table.require(("kernel", "launches"))
    names, _ = table.numbered("kernel")
    if len(names) < len(table):
        twice = [name for name in names if table.text["kernel"].count(name) > 1]
        raise InputError(f"{path}: several rows for {_quoted(twice)}; give each kernel one")
    unknown = [name for name in names if name not in profiles.kernels]
    if unknown:
        near = near_names(unknown[0], profiles.kernels)
        hint = f"; near the first: {_quoted(near)}" if near else ""
        raise InputError(f"{path}: the profile has no kernel {_quoted(unknown)}{hint}")
    launches = profiles.weights.copy()
    positions = [profiles.kernels.index(name) for name in table.text["kernel"]]
    launches[positions] = table.positive("launches", or_zero=True)
    running = np.flatnonzero(launches)
    if not running.size:
        raise InputError(f"{path}: every kernel has 0 launches; at least one must run")
    weighted = replace(profiles, launches=launches)
    return weighted if running.size == len(launches) else weighted.select(running.tolist())


def _quoted(names: list[str]) -> str:
    """Some names, long ones without their end."""
    cut = [shortened(name, LONGEST_NAME) for name in names]
    more = f" and {len(cut) - MOST_NAMED} others" if len(cut) > MOST_NAMED else ""
    return ", ".join(f"'{name}'" for name in cut[:MOST_NAMED]) + more
