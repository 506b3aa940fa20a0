"""What `board` learnt, as a model file holds it, of the shipped model: no number is expected."""

import copy
from typing import Any

import pytest

import mlscale
from mlscale.data import datasets
from mlscale.predictors.board import Board

SHIPPED = mlscale.load(datasets.path("runs.mlscale")).predictors


def board(quantity: str) -> Board:
    predictor = SHIPPED[quantity]
    assert isinstance(predictor, Board)
    return predictor


@pytest.mark.parametrize("quantity", ["time", "power"])
def test_it_comes_back_as_it_was(quantity: str) -> None:
    state = board(quantity).state()
    held = Board(quantity).restore(state).held_
    assert {type(counts) for counts in held.values()} == {tuple}
    assert {type(count) for counts in held.values() for count in counts} == {int}
    assert held == board(quantity).held_


@pytest.mark.parametrize(
    "damage",
    [
        {"held": {"two": [3]}},
        {"held": {"two": [9, 2]}},
        {"held": {"two": ["x", 2]}},
        {"held": {"two": 2}},
        {"trained": []},
        {"laws": {}},
    ],
)
def test_a_damaged_state_is_refused(damage: dict[str, Any]) -> None:
    state = copy.deepcopy(board("power").state())
    with pytest.raises((KeyError, TypeError, ValueError)):
        Board("power").restore({**state, **damage})


def test_the_law_of_another_quantity_is_refused() -> None:
    state = board("power").state()
    laws = {"time": state["laws"]["power"], "power": state["laws"]["power"]}
    with pytest.raises(ValueError, match="the law of time has other unknowns"):
        Board("power").restore({**state, "laws": laws})
