"""The layers of the package as CONTRIBUTING.md lists them: no import goes back up or in a circle.

Regression only: the order is the page's.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

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


Imports = Mapping[str, Collection[str]]


def imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """What each module imports of these, wherever it stands: in functions and for types too.

    sources: the text of each module, by its dotted name; a package stands for its __init__.
    """
    found = {}
    for module, text in sources.items():
        names = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{name.name}" for name in node.names}
                names |= whole & sources.keys() or {node.module}
        found[module] = names & sources.keys() - {module}
    return found


def circle(graph: Imports) -> list[str]:
    """A circle of modules, or of modules and folders side by side in one folder; [] without one."""
    folders = {name[:end] for name in graph for end, letter in enumerate(name) if letter == "."}
    side_by_side = []
    for folder in folders:
        depth = folder.count(".") + 2
        inside = {name for name in graph if name.startswith(f"{folder}.")}
        of = {name: ".".join(name.split(".")[:depth]) for name in inside}
        beside: dict[str, set[str]] = {}
        for name in inside:
            others = {of[other] for other in inside.intersection(graph[name])} - {of[name]}
            beside.setdefault(of[name], set()).update(others)
        side_by_side.append(beside)
    for one in (graph, *side_by_side):
        try:
            TopologicalSorter(one).prepare()
        except CycleError as error:
            return [*error.args[1]]
    return []


def of_package() -> dict[str, set[str]]:
    paths = {path: path.relative_to(ROOT).with_suffix("") for path in PACKAGE.rglob("*.py")}
    names = {path: ".".join(name.parts).removesuffix(".__init__") for path, name in paths.items()}
    return imports({name: path.read_text(encoding="utf-8") for path, name in names.items()})


def test_no_imports_go_in_a_circle() -> None:
    assert circle(of_package()) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"p.a": "import p.b", "p.b": "def f():\n    from p.a import x"},
        {"p.a": "from p import b", "p.b": "if TYPE_CHECKING:\n    from p.a import A"},
        {"p.a.x": "import p.b.x", "p.b.x": "", "p.b.y": "import p.a.y", "p.a.y": ""},
    ],
    ids=["in a function", "for a type", "of folders"],
)
def test_a_made_circle_is_found(sources: dict[str, str]) -> None:
    assert set(circle(imports(sources))) == {"p.a", "p.b"}


# Folders of a file for each command, study or tool, which CONTRIBUTING.md says; and one of few.
NO_MAP = {"cli", "collect"}


def test_a_folder_says_what_its_modules_hold() -> None:
    missing = []
    for init in PACKAGE.glob("*/**/__init__.py"):
        folder = init.parent.relative_to(PACKAGE).as_posix()
        said = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        if folder not in NO_MAP:
            missing += [f"{folder}/{m}.py" for m in modules if not re.search(rf"\b{m}\b", said)]
    assert not missing
