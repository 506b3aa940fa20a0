"""The examples in the docstrings of the papers' modules; each says where its number is from.

And the functions that docs/papers/equations.md names beside the equations are there.
"""

import doctest
import importlib
import inspect
import re
from pathlib import Path

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


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("heading", "modules"),
    [
        ("1.2", ["papers.wang_chu"]),
        ("2.2", ["papers.volkov"]),
        ("3.1", ["papers.nagasaka", "data.surfaces"]),
    ],
)
def test_functions_of_the_equations(heading: str, modules: list[str]) -> None:
    """Each row of a table of equations ends in the functions that compute it."""
    page = (DOCS / "papers" / "equations.md").read_text(encoding="utf-8")
    section = page.split(f"### {heading} ")[1].split("\n### ")[0]
    known = {n for module in modules for n in dir(importlib.import_module(f"mlscale.{module}"))}
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    for row in rows:
        functions = re.findall(r"`(\w+)`", row.rsplit("|", 2)[1])
        assert functions, row
        assert set(functions) <= known, row
