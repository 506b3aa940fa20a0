"""tools/prose.py finds a form in prose and messages, and none in code; all cases are by hand."""

from pathlib import Path

import pytest
from prose import FORBIDDEN, forms, found


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "Fine.\n\nTwo logs tell\nthe time.\n", 3),
        ("page.md", "A counter stands in for another.", 1),
        ("module.py", 'X = 1\nprint("two logs tell the time")\n', 2),
        ("module.py", '"""Fine.\n\nIn order to."""\n', 3),
        ("module.py", "X = 1  # a counter stands in for another\n", 1),
        ("book.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["In order to"]}]}', 1),
    ],
)
def test_finds_it_and_says_where(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (said,) = found(path)
    assert said.startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "`in order to`, [a link](in-order-to.md)\n\n```\nin order to\n```\n"),
        ("module.py", '"""Docstrings: `in order to`."""\nIN_ORDER = "order"\n'),
        ("book.ipynb", '{"cells": [{"cell_type": "code", "source": ["# In order to"]}]}'),
    ],
)
def test_passes_over_code(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert not list(found(path))


def test_each_form_says_what_is_better() -> None:
    assert all(better for _, better in forms(FORBIDDEN.read_text(encoding="utf-8")))
