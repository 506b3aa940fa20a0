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

LARGEST = 1e30  # of what a model file holds; counters are below 2^63


def floats_of(values: Iterable[float | None]) -> Floats:
    """Return numbers as an array, NaN for None."""
    return np.array([*values], np.float64)


def is_finite(value: object) -> bool:
    """Return whether a value is a number, which a yes or no is not, and a finite one."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def positions_of(argument: str, chosen: Any, count: int) -> list[int]:
    """The positions that an argument chooses out of so many: by number, or by a mask (count,).

    Raises InputError, naming the argument, on anything else, and where there is no such position.
    """
    try:
        given = np.asarray(chosen)
    except ValueError:  # a ragged list
        given = np.empty((0, 0))
    if given.dtype == bool and given.shape == (count,):
        given = np.flatnonzero(given)
    if given.shape == (0,):
        return []
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(f"{argument} must be a list of positions, or a mask of {count}")
    if beyond := [at for at in given.tolist() if not -count <= at < count]:
        raise InputError(f"{argument}: there is no position {beyond[0]}, there are {count}")
    return [int(at) for at in given]


def shaped(array: Any, *shape: int | None) -> Floats:
    """Return the array if it has that shape, where None stands for any length.

    Raises ValueError on another shape and on values that are not numbers.
    """
    checked = np.asarray(array)
    fits = len(checked.shape) == len(shape) and all(
        want in (None, length) for want, length in zip(shape, checked.shape, strict=True)
    )
    if not fits or checked.dtype.kind not in "fib":
        raise ValueError(f"an array has the shape {checked.shape}, not {shape}")
    return checked


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
