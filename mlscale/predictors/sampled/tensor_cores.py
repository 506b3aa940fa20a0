"""Kernels whose tensor cores work more than those of any training kernel, or may do so.

The model does not look at the tensor cores. A kernel that they bound follows the engine clock by
all, though its DRAM and power may be those of training kernels that do not.
"""

import math
from typing import Any

import numpy as np

from mlscale.arrays import Mask
from mlscale.data.device import LARGEST_SHARE
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles

COUNTER = "tensor_active"
MARGIN = 0.05  # of the time: what a library's small products take does not bound a run
FLAG = (
    "tensor cores are active {:.0%} of the time, those of training kernels at most {:.0%}: time "
    "may follow the engine clock by all, where the interval ends; a second log (--also) tells"
)
NOT_KNOWN = (
    "how long tensor cores are active is not known, those of training kernels are at most {:.0%} "
    "of the time: if longer, time may follow the engine clock by all, where the interval ends; "
    "DCGM's field 1004 or a second log (--also) tells"
)


def most_active(table: Measurements) -> float | None:
    """The largest share of the time that tensor cores were active; None where none is known."""
    if COUNTER not in table.counter_names:
        return None
    shares = table.counters[..., table.counter_names.index(COUNTER)]
    return None if np.isnan(shares).all() else float(np.nanmax(shares))


def unlike(profiles: Profiles, most: float | None) -> Mask:
    """Which kernels, (K,), use them more than any in training, or may, and have no further point.

    most: as `most_active` gives it; where it is None, none is.
    """
    if most is None:
        return np.zeros(len(profiles.kernels), dtype=bool)
    shares = profiles.optional_counter(COUNTER)
    is_unlike = np.isnan(shares) | (shares > most + MARGIN)
    return np.asarray(is_unlike & ~profiles.has_further_time)


def flags(profiles: Profiles, most: float | None) -> list[tuple[str, ...]]:
    """For each kernel what to say of its tensor cores, if anything."""
    if most is None:
        return [()] * len(profiles.kernels)
    flags: list[tuple[str, ...]] = []
    shares = profiles.optional_counter(COUNTER).tolist()
    for is_unlike, share in zip(unlike(profiles, most).tolist(), shares, strict=True):
        flag = NOT_KNOWN.format(most) if math.isnan(share) else FLAG.format(share, most)
        flags.append((flag,) if is_unlike else ())
    return flags


def restored(most: Any) -> float | None:
    """What a model file holds of `most_active`; nothing in files from before it was kept.

    Raises ValueError on what is no share.
    """
    if most is None:
        return None
    if (
        isinstance(most, bool)
        or not isinstance(most, int | float)
        or not 0 <= most <= LARGEST_SHARE
    ):
        raise ValueError(f"{most!r} is no share of the time")
    return float(most)
