"""Types of arrays, and checks of numbers that come from a file or a user."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

LARGEST = 1e30  # that can still be squared; counters are below 2^63


def floats_of(values: Iterable[float | None]) -> Floats:
    """Return numbers as an array, NaN for None."""
    return np.array([*values], np.float64)


def distinct(array: Floats) -> Floats:
    """Return the different values of an array in rising order."""
    return np.unique(array, return_index=True)[0]  # else it loads numpy.ma


def quantile(array: Floats, share: float) -> float:
    """Return that quantile of an array (N,) without NaN, linear between its values."""
    places = np.arange(len(array))  # np.quantile loads numpy.ma
    return float(np.interp(share * places[-1], places, np.sort(array)))


def positive(array: Floats, what: str) -> Floats:
    """Return the array if all is above 0, and can be squared and divided by; else ValueError.

    what: it is, for the message.
    """
    if not ((array > 1 / LARGEST) & (array < LARGEST)).all():
        raise ValueError(f"{what} is not positive and below {LARGEST:g}")
    return array
