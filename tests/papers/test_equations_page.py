"""The functions that docs/papers/equations.md names beside the equations are there."""

import importlib
import re
from pathlib import Path

import pytest

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
