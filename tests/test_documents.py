"""What documents and code cite is there."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlscale

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("[dm]*s/README.md")])
SOURCES = sorted(
    path
    for folder in ("mlscale", "tests", "tools", "benchmarks", "notebooks", "reproduction")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".json", ".ipynb", ".cu", ".txt"}
)
FOLDERS = "docs|mlscale|tests|tools|benchmarks|notebooks|reproduction|datasets|models"
PATH = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w")
DOCUMENT = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w")
SOURCE = re.compile(
    r"(?<![\w/.-])(?:mlscale|tests|tools|benchmarks|reproduction)/[\w/-]+\.(?:py|json|cu)\b"
)
DECISION = re.compile(r"\bdecisions? (\d{4})\b")
DOTTED = re.compile(r"(?<![\w/.-])mlscale(?:\.\w+)+(?!\.?[\w/-])")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OF_MAKE = re.compile(r"(?:`|^ {4})(?:MLSCALE_DATA=\S+ )?make ([\w-]+)", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def missing(cited: Iterator[tuple[Path, Path]]) -> list[str]:
    """Pages or sources that cite a file which is not there, and that file."""
    return [f"{where.relative_to(ROOT)}: {file}" for where, file in cited if not file.exists()]


@pytest.mark.parametrize("kind", [DOCUMENT, SOURCE], ids=["documents", "sources"])
def test_what_the_code_cites_is_there(kind: re.Pattern[str]) -> None:
    assert not missing(
        (source, ROOT / cited)
        for source in SOURCES
        for cited in kind.findall(source.read_text(encoding="utf-8"))
    )


def test_decisions_that_are_cited_are_there() -> None:
    notes = {note.name[:4] for note in (DOCS / "decisions").glob("0*.md")}
    for path in (*SOURCES, *PAGES):
        assert set(DECISION.findall(path.read_text(encoding="utf-8"))) <= notes, path


def test_files_that_the_documents_name_are_there() -> None:
    assert not missing(
        (page, ROOT / path)
        for page in PAGES
        for quoted in re.findall(r"`([^`\n]*)`", FENCED.sub("", page.read_text(encoding="utf-8")))
        for path in PATH.findall(quoted)
    )


def test_files_that_the_documents_link_to_are_there() -> None:
    assert not missing(
        (page, page.parent / target)
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    )


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page: in lower case, with hyphens, without signs."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    included = re.findall(r"^```\{include\} (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = (re.sub(r"\]\([^)]*\)|[^\w -]", "", heading).strip().lower() for heading in headings)
    found = {heading.replace(" ", "-") for heading in plain}
    return found.union(*(anchors(page.parent / file) for file in included))


def test_headings_that_the_documents_link_to_are_there() -> None:
    for page in PAGES:
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for target, heading in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
            of = page.parent / target if target else page
            assert heading in anchors(of), f"{page.relative_to(ROOT)}: {target}#{heading}"


def test_commands_of_make_in_the_documents_are_there() -> None:
    targets = re.findall(r"^([\w-]+)(?: [\w-]+)*:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {
        (page.name, target)
        for page in PAGES
        for target in OF_MAKE.findall(page.read_text(encoding="utf-8"))
    }
    assert {target for _, target in named} >= {"test", "shipped", "shipped-simulated"}
    assert not {(page, target) for page, target in named if target not in targets}


def test_the_target_shipped_makes_what_was_measured() -> None:
    """The models that answer of real GPUs; the simulated set, from a table of its own, is apart."""
    makefile = (ROOT / "Makefile").read_text()
    of_target = {
        name: re.search(rf"^{name}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        for name in ("shipped", "shipped-simulated")
    }
    recipes = {name: match[1] for name, match in of_target.items() if match}
    assert "tools/train_shipped.py" in recipes["shipped"]
    assert "RAW" not in recipes["shipped"]
    assert "tools/make_shipped.py $(RAW)" in recipes["shipped-simulated"]


def test_every_decision_is_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for note in (DOCS / "decisions").glob("0*.md"):
        assert f"({note.name})" in index


def test_every_page_stands_once_in_the_list_of_pages() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    for page in [*DOCS.glob("*.md"), *DOCS.glob("[!ad]*/*.md")]:
        name = str(page.relative_to(DOCS).with_suffix(""))
        assert listed.count(name) == (name != "index"), name


def test_names_of_the_package_in_the_documents_are_there() -> None:
    for page in PAGES:
        if page.name == "CHANGELOG.md":  # names former ones as well
            continue
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for quoted in re.findall(r"`([^`\n]*)`", text):
            for dotted in DOTTED.findall(quoted):
                assert importable(dotted), f"{page.name}: {dotted}"


def importable(dotted: str) -> bool:
    """Whether it is a module, or an attribute below one."""
    value, *names = mlscale, *dotted.split(".")[1:]
    for name in names:
        if not hasattr(value, name):
            try:
                importlib.import_module(f"{value.__name__}.{name}")
            except ImportError:
                return False
        value = getattr(value, name)
    return True


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", pages, flags=re.MULTILINE)
    assert sorted(entries) == sorted(mlscale.__all__)
