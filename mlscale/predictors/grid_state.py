"""What the states of fitted predictors have in common: grid, base, and arrays of known shape."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.data.grid import ConfigGrid, HardwareConfig


def grid_state(grid: ConfigGrid, base: HardwareConfig) -> dict[str, Any]:
    """The three axes, and the index of the base."""
    return {
        "cu_count": list(grid.cu_count),
        "engine_mhz": list(grid.engine_mhz),
        "memory_mhz": list(grid.memory_mhz),
        "base": list(grid.index(base)),
    }


def restore_grid(state: dict[str, Any]) -> tuple[ConfigGrid, HardwareConfig]:
    """Grid and base that `grid_state` described; a damaged one raises KeyError or ValueError."""
    grid = ConfigGrid(
        tuple(int(step) for step in state["cu_count"]),
        tuple(float(step) for step in state["engine_mhz"]),
        tuple(float(step) for step in state["memory_mhz"]),
    )
    c, e, m = (int(index) for index in state["base"])
    return grid, grid.config((c, e, m))


def shaped(array: Any, *shape: int | None) -> NDArray[np.float64]:
    """The array, if it has that shape (None: any length); raises ValueError or TypeError."""
    given = np.asarray(array)
    fits = len(given.shape) == len(shape) and all(
        want in (None, length) for want, length in zip(shape, given.shape, strict=True)
    )
    if not fits or given.dtype.kind not in "fib":
        raise ValueError(f"an array has the shape {given.shape}, not {shape}")
    return given


def positive(array: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    """The array, if all of it is above 0; raises ValueError."""
    if not (array > 0).all():
        raise ValueError(f"{what} is not positive")
    return array
