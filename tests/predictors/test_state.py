"""The rule by which fields become a document, and back; all expected by hand."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": np.ones((3, 2))}, r"weights has the shape \(3, 2\), not \(K, 2\)"),
        ({"weights": np.ones((2, 3))}, "weights has the shape"),
        ({"surface": np.ones((1, 2))}, "surface has the shape"),
        ({"surface": [["x"], ["y"]]}, "surface is not an array of float64"),
        ({"surface": np.ones((2, 1), np.float32)}, "surface is not an array of float64"),
        ({"rows": np.ones(2)}, "rows is not an array of int64"),
        ({"names": ["a", 1]}, "names cannot be '1'"),
        ({"names": "ab"}, "names cannot be 'ab'"),
        ({"drift": -1.0}, "drift is not positive"),
        ({"drift": True}, "drift cannot be 'True'"),
        ({"limits": [1.0]}, "limits cannot be"),
        ({"base": [0, 2, 0]}, "it has no index"),
    ],
)
def test_another_kind_or_shape_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        restored(Outer, document() | changes)
