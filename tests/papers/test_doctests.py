"""The examples in the docstrings of the papers' modules; each says where its number is from."""

import doctest
import inspect

import pytest

from mlscale import papers

# The whole grid is simulated for seconds.
_WITHOUT_EXAMPLE = {"nvprof_counters", "simulate_grid", "uses_texture_path"}


@pytest.mark.parametrize("name", papers.__all__)
def test_examples(name: str) -> None:
    failed, attempted = doctest.testmod(getattr(papers, name))
    assert failed == 0
    assert attempted > 0


@pytest.mark.parametrize("name", papers.__all__)
def test_every_public_function_has_an_example(name: str) -> None:
    """Of those that give something; the others refuse or warn."""
    module = getattr(papers, name)
    functions = {
        key: function
        for key, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not key.startswith("_")
    }
    lacking = {
        key
        for key, function in functions.items()
        if inspect.signature(function).return_annotation is not None
        and ">>>" not in (function.__doc__ or "")
    }
    assert lacking <= _WITHOUT_EXAMPLE
