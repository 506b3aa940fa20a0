"""What CONTRIBUTING.md asks of every file of the package: its length, and the names in it.

Regression only: the rules are the page's.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mlscale"
TEXTS = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
MOST_LINES = 700
PROSE = re.compile(r"_*(own(_\w+)?|of|of_\w+)")
# What is written anew: the predictors of whole boards, and the report.
UNRULED = re.compile(r"predictors/board|report/")


def names(text: str) -> Iterator[str]:
    """The names that a module gives: of functions, classes, arguments and variables."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_files_are_short() -> None:
    assert not {path for path, text in TEXTS.items() if text.count("\n") > MOST_LINES}


def test_names_are_nouns() -> None:
    """No words that mean something in their sentence alone: own, of, of_…"""
    ruled = {path: text for path, text in TEXTS.items() if not UNRULED.match(path)}
    found = {path: {n for n in names(text) if PROSE.fullmatch(n)} for path, text in ruled.items()}
    assert not {path: sorted(prose) for path, prose in found.items() if prose}
