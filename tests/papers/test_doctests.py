"""The examples in the docstrings of the papers' modules; each says where its number is from."""

import doctest
from importlib import import_module

import pytest

MODULES = (
    *("wang_chu", "wang_chu_gpus", "wang_chu_inputs", "wang_chu_readings", "wang_chu_tiles"),
    *("max_overlap", "volkov", "volkov_simulation", "nagasaka", "nagasaka_inputs"),
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, attempted = doctest.testmod(import_module(f"mlscale.papers.{name}"))
    assert failed == 0
    assert attempted > 0
