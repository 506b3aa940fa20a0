"""What CONTRIBUTING.md asks of every file of the package: its length, and the names in it.

Regression only: the rules are the page's.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from command import options_of

from mlscale.cli.main import COMMANDS

PACKAGE = Path(__file__).parents[1] / "mlscale"
TEXTS = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
MOST_LINES = 700
PROSE = re.compile(r"_*(own(_\w+)?|of|of_\w+)")
# What pip does not install: paths of the repository. The advice has three that are yet to go.
PATH = re.compile(r"(?<![\w/.-])(docs|reproduction|tests|tools|benchmarks)/\w|\w\.(md|cff)\b")


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
    found = {path: {n for n in names(text) if PROSE.fullmatch(n)} for path, text in TEXTS.items()}
    assert not {path: sorted(prose) for path, prose in found.items() if prose}


def messages(text: str) -> Iterator[str]:
    """The texts of a module that are no docstrings."""
    tree = ast.parse(text)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_no_message_points_to_what_is_not_installed() -> None:
    found = {path: [m for m in messages(text) if PATH.search(m)] for path, text in TEXTS.items()}
    assert not {path: texts for path, texts in found.items() if texts}


def test_no_option_is_spelled_outside_the_command() -> None:
    """A message names a parameter, which parameters.py spells; other tools' options may stand."""
    ours = {"-o"}.union(*map(options_of, COMMANDS))
    others = re.compile(r"\b(amd-smi|nsys|nvidia-smi) [^`'\"]*")
    option = re.compile(r"(?<![\w-])(?:--[a-z][a-z-]*[a-z]|-o(?= [A-Z]{2}))")
    spells = ("cli/", "parameters.py", "advice/commands.py")  # the last: commands of other tools
    found = {
        path: ours & {*option.findall(others.sub("", text))}
        for path, text in TEXTS.items()
        if not path.startswith(spells)
    }
    assert not {path: sorted(options) for path, options in found.items() if options}


def test_nothing_uses_private_parts_of_argparse() -> None:
    private = re.compile(r"argparse\._|\._(actions|option_string_actions|subparsers|registries)\b")
    assert not {path for path, text in TEXTS.items() if private.search(text)}
