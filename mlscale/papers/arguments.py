"""Arguments of the papers' functions: numbers or arrays, checked as they come in.

Each function takes its arguments by their names, which the error then names, and returns them as
arrays of floats in the same order. It raises InputError on the first value that cannot be.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats, Mask
from mlscale.errors import InputError


def from_0(**values: ArrayLike) -> tuple[Floats, ...]:
    """Finite numbers of at least 0."""
    return _checked(values, lambda x: x >= 0, "must be a finite number of at least 0")


def above_0(**values: ArrayLike) -> tuple[Floats, ...]:
    """Finite numbers above 0."""
    return _checked(values, lambda x: x > 0, "must be a finite number above 0")


def from_1(**values: ArrayLike) -> tuple[Floats, ...]:
    """Finite numbers of at least 1."""
    return _checked(values, lambda x: x >= 1, "must be a finite number of at least 1")


def shares(**values: ArrayLike) -> tuple[Floats, ...]:
    """Numbers from 0 to 1."""
    return _checked(values, lambda x: (x >= 0) & (x <= 1), "must be a share from 0 to 1")


def finite(**values: ArrayLike) -> tuple[Floats, ...]:
    """Finite numbers."""
    return _checked(values, np.isfinite, "must be a finite number")


def result(value: ArrayLike) -> Floats:
    """Return an array, or a float where all that made it were numbers."""
    array: Floats = np.asarray(value)[()]
    return array


def _checked(
    values: dict[str, ArrayLike], allowed: Callable[[Floats], Mask], must: str
) -> tuple[Floats, ...]:
    arrays = []
    for name, value in values.items():
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} {must}, not {value!r}") from None
        wrong = array[~(allowed(array) & (array < np.inf))]
        if wrong.size:
            raise InputError(f"{name} {must}, not {wrong[0]:g}")
        arrays.append(array)
    return tuple(arrays)
