"""The rule by which fields become a document, and back; all expected by hand."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mlscale import ConfigGrid, HardwareConfig
from mlscale.arrays import Floats, Indices, positive
from mlscale.predictors.state import INLINE, restored, state_of


@dataclass(frozen=True, eq=False)
class Inner:
    weights: Annotated[Floats, "K 2"]
    rows: Annotated[Indices, "K"]


@dataclass(frozen=True, eq=False)
class Outer:
    names: Annotated[tuple[str, ...], "K"]
    grid: ConfigGrid
    base: HardwareConfig
    inner: Annotated[Inner, INLINE]
    surface: Annotated[Floats, "E M"]
    drift: Annotated[float, positive]
    limits: dict[str, float]
    other: Inner | None
    parts: tuple[Inner, ...]


GRID = ConfigGrid((4,), (400.0, 800.0), (500.0,))


def inner(count: int) -> Inner:
    return Inner(np.ones((count, 2)), np.arange(count))


def document() -> dict[str, Any]:
    parts = (inner(1), inner(3))
    limits = {"v100": 250.0}
    surface = np.ones((2, 1))
    base = GRID.highest
    return dict(
        state_of(Outer(("a", "b"), GRID, base, inner(2), surface, 0.5, limits, None, parts))
    )


def test_what_is_described() -> None:
    state = document()
    assert list(state) == [
        *("names", "cu_count", "engine_mhz", "memory_mhz", "base", "weights", "rows", "surface"),
        *("drift", "limits", "other", "parts"),
    ]
    assert (state["names"], state["base"], state["other"]) == (["a", "b"], [0, 1, 0], None)
    again = restored(Outer, state)
    assert (again.names, again.grid, again.base, again.drift) == (
        ("a", "b"), GRID, HardwareConfig(4, 800.0, 500.0), 0.5,
    )  # fmt: skip
    assert again.inner.rows.tolist() == [0, 1]
    assert [len(part.weights) for part in again.parts] == [1, 3]
