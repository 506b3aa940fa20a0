"""Types of arrays, and checks of numbers that come from a file or a user."""

import math
from collections.abc import Iterable
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

LARGEST = 1e30  # that can still be squared; counters are below 2^63


def floats_of(values: Iterable[float | None]) -> Floats:
    """Return numbers as an array, NaN for None."""
    return np.array([*values], np.float64)


def is_finite(value: object) -> bool:
    """Return whether a value is a number, which a yes or no is not, and a finite one."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def positions_of(argument: str, chosen: Iterable[Any], count: int) -> list[int]:
    """The positions that an argument chooses out of so many: by number, or by a mask (count,).

    Raises InputError, naming the argument, where there is no such position.
    """
    try:
        positions: list[int] = np.arange(count)[list(chosen)].tolist()
    except IndexError:
        raise InputError(
            f"{argument} must be a list of positions below {count}, or a mask of {count}"
        ) from None
    return positions


def positive(array: Floats, what: str) -> Floats:
    """Return the array if all is above 0, and can be squared and divided by; else ValueError.

    what: it is, for the message.
    """
    if not ((array > 1 / LARGEST) & (array < LARGEST)).all():
        raise ValueError(f"{what} is not positive and below {LARGEST:g}")
    return array


def require_rising(low: Floats, *higher: Floats) -> None:
    """Raise ValueError unless no number of an array is above its fellow in the next."""
    for one, other in pairwise((low, *higher)):
        if (one > other).any():
            raise ValueError("a range ends below where it begins")
