"""Types of arrays, and checks of numbers that come from a file or a user."""

import math
from collections.abc import Iterable
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


def floats_of(values: Iterable[float | None]) -> Floats:
    """Return numbers as an array, NaN for None."""
    return np.array([*values], np.float64)


def is_finite(value: object) -> bool:
    """Return whether a value is a number, and a finite one."""
    return isinstance(value, Real) and math.isfinite(value)


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
    """Return the array if all of it is above 0; raises ValueError, naming `what`, if not."""
    if not (array > 0).all():
        raise ValueError(f"{what} is not positive")
    return array


def require_rising(low: Floats, *higher: Floats) -> None:
    """Raise ValueError unless no number of an array is above its fellow in the next."""
    for one, other in pairwise((low, *higher)):
        if (one > other).any():
            raise ValueError("a range ends below where it begins")
