"""What documents and code cite is there."""

import re
from pathlib import Path
from pydoc import locate

import pytest

import mlscale

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("[dm]*s/README.md")])
SOURCES = sorted(
    path
    for folder in ("mlscale", "tests", "tools", "benchmarks", "reproduction", "notebooks")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".json", ".ipynb", ".cu", ".txt"}
)
FOLDERS = "docs|mlscale|tests|tools|benchmarks|reproduction|datasets|models"
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


def code_spans(page: Path) -> list[str]:
    """What stands between backticks, outside blocks."""
    return re.findall(r"`([^`\n]*)`", FENCED.sub("", page.read_text(encoding="utf-8")))


CITED = {  # by what cites: the files that are to be there
    "documents in code": lambda: (
        (source, ROOT / cited)
        for source in SOURCES
        for kind in (DOCUMENT, SOURCE)
        for cited in kind.findall(source.read_text(encoding="utf-8"))
    ),
    "files in documents": lambda: (
        (page, ROOT / cited)
        for page in PAGES
        for span in code_spans(page)
        for cited in PATH.findall(span)
    ),
    "links of documents": lambda: (
        (page, page.parent / target)
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    ),
}


@pytest.mark.parametrize("kind", CITED)
def test_what_is_cited_is_there(kind: str) -> None:
    assert not [f"{where}: {file}" for where, file in CITED[kind]() if not file.exists()]


def test_decisions_that_are_cited_are_there_and_in_the_index() -> None:
    notes = {note.name[:4]: note.name for note in (DOCS / "decisions").glob("0*.md")}
    for path in (*SOURCES, *PAGES):
        assert set(DECISION.findall(path.read_text(encoding="utf-8"))) <= notes.keys(), path
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert not [name for name in notes.values() if f"({name})" not in index]


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


def test_every_page_stands_once_in_the_list_of_pages() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    pages = [page.relative_to(DOCS) for kind in ("*.md", "[!ad]*/*.md") for page in DOCS.glob(kind)]
    pages += [page.relative_to(ROOT) for page in ROOT.glob("notebooks/*.ipynb")]
    for page in pages:
        name = str(page.with_suffix(""))
        assert listed.count(name) == (name != "index"), name


def test_every_table_is_cited_by_a_page_and_written_by_a_command() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    code = [*(ROOT / "tools").glob("*.py"), *(ROOT / "reproduction").glob("*.py")]
    sources = "".join(file.read_text(encoding="utf-8") for file in code)
    for table in (DOCS / "tables").iterdir():
        assert f"tables/{table.name}" in pages, table.name
        assert f'"{table.stem}"' in sources or f'"{table.name}"' in sources, table.name


def test_names_of_the_package_in_the_documents_are_there() -> None:
    """But for those of CHANGELOG, which names former ones as well."""
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    named = {
        dotted for page in pages for span in code_spans(page) for dotted in DOTTED.findall(span)
    }
    assert not [dotted for dotted in named if locate(dotted) is None]  # as pydoc finds it


def test_commands_with_output_stand_in_console_blocks() -> None:
    """The site's build runs those alone."""
    for page in PAGES:
        if page.parent.name == "decisions":
            continue
        blocks = FENCED.findall(page.read_text(encoding="utf-8"))
        unrun = [block for block in blocks if re.search(r"^\$ ", block, re.MULTILINE)]
        assert not [block for block in unrun if not block.startswith("```console\n")], page.name


def test_the_search_of_the_site_shows_the_right_page_first() -> None:
    """By an entry of the index; the title of the page on ERR_NVGPUCTRPERM does so by itself."""
    pages = {
        words: page.stem
        for page in PAGES
        for entries in re.findall(r"^<!-- index: (.*) -->$", page.read_text("utf-8"), re.MULTILINE)
        for words in entries.split(", ")
    }
    assert pages["lock clocks"] == pages["power limit"] == "set-clocks"
    assert pages["tokens per joule"] == "servers"
    assert pages["train"] == "train"
    assert pages["cross-validation"] == "errors"
    assert pages["one-shot"] == "predict"
    assert pages["wu 2015"] == "models"
    assert pages["scikit-learn"] == "scikit-learn"
    assert (pages["docker"], pages["conda"]) == ("set-clocks", "measure")


def test_the_version_stands_in_one_place_and_is_cited() -> None:
    assert f"\nversion: {mlscale.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert changelog.partition("\n## ")[2].split()[0] == mlscale.__version__


def test_the_reference_has_every_public_name() -> None:
    api = DOCS / "reference" / "api"
    pages = "".join(page.read_text(encoding="utf-8") for page in api.glob("*.md"))
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", pages, flags=re.MULTILINE)
    assert sorted(entries) == sorted(mlscale.__all__)
