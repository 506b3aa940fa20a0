"""The layers of the package as CONTRIBUTING.md lists them: all of it, and no import goes back up.

Regression only: the order is the page's.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "mlscale"
ABOVE_ALL = {"__init__", "__main__"}  # what a user imports, and the process


def layers() -> dict[str, int]:
    """The number of the row in which a module or a folder of the package stands, from the top."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `mlscale/")]
    names = [re.findall(r"`(?:mlscale/)?(\w+)(?:\.py|/)`", row) for row in rows]
    listed = [name for row in names for name in row]
    assert len(set(listed)) == len(listed)
    return {name: number for number, row in enumerate(names) for name in row}


def imported(node: ast.AST) -> Iterator[str]:
    """The modules and folders of the package that code below a node imports as it runs."""
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.If) and ast.unparse(below.test) == "TYPE_CHECKING":
            continue
        modules = []
        if isinstance(below, ast.Import):
            modules = [name.name for name in below.names]
        elif isinstance(below, ast.ImportFrom) and below.module:
            modules = [f"{below.module}.{name.name}" for name in below.names]
        yield from (name.split(".")[1] for name in modules if name.startswith("mlscale."))
        yield from imported(below)


def test_every_module_stands_in_the_table() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"}
    there |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert there - ABOVE_ALL == set(layers())


def test_no_import_goes_back_up() -> None:
    of = layers()
    found = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own not in ABOVE_ALL:
            names = set(imported(ast.parse(path.read_text(encoding="utf-8")))) & of.keys()
            found += [f"{path.relative_to(ROOT)}: {n}" for n in names if of[n] > of[own]]
    assert not found


# Folders of a file for each command, study or tool, which CONTRIBUTING.md says; and one of few.
NO_MAP = {"cli", "cli/study", "collect"}


def test_a_folder_says_what_its_modules_hold() -> None:
    missing = []
    for init in PACKAGE.glob("*/**/__init__.py"):
        folder = init.parent.relative_to(PACKAGE).as_posix()
        said = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        if folder not in NO_MAP:
            missing += [f"{folder}/{m}.py" for m in modules if not re.search(rf"\b{m}\b", said)]
    assert not missing
