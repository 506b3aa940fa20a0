"""Find the forms that this project's documents and messages do not use.

    python tools/prose.py [FILE...]

Reads Markdown, notebooks' Markdown cells, and of Python files messages, docstrings and comments;
without FILE all documents, and mlscale. The forms, and what to write instead, are in
tools/forbidden.txt. Ends with exit status 1 where one is found.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORBIDDEN = Path(__file__).with_name("forbidden.txt")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)\s]*\)", re.MULTILINE | re.DOTALL)


def forms(text: str) -> list[tuple[re.Pattern[str], str]]:
    """Each pattern with what is better."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    pairs = (line.rsplit(" -> ", 1) for line in lines)
    return [(re.compile(form, re.IGNORECASE), better) for form, better in pairs]


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file, each passage with its first line (of a notebook, its cell)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            if cell["cell_type"] == "markdown":
                yield number, without_code("".join(cell["source"]))
    elif path.suffix == ".py":
        yield from words_in_python(text)
    else:
        yield 1, without_code(text)


def without_code(text: str) -> str:
    """Markdown with its code and the targets of its links left out, line for line."""
    return CODE.sub(lambda code: "\n" * code[0].count("\n"), text)


def words_in_python(source: str) -> Iterator[tuple[int, str]]:
    """Strings of several words, docstrings among them, and comments."""
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and " " in node.value.strip():
            yield node.lineno, without_code(node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], without_code(token.string)


def found(path: Path) -> Iterator[str]:
    """A line for each form that is found."""
    wanted = forms(FORBIDDEN.read_text(encoding="utf-8"))
    for first, text in passages(path):
        flat = text.replace("\n", " ")
        for form, better in wanted:
            for match in form.finditer(flat):
                lines = 0 if path.suffix == ".ipynb" else text.count("\n", 0, match.start())
                yield f"{path}:{first + lines}: '{match[0]}': better {better}"


def sources() -> list[Path]:
    """What is read where no file is named."""
    pages = (ROOT / "docs").rglob("*.md")
    outside = (*ROOT.glob("*.md"), *ROOT.glob(".github/*/*.md"), *ROOT.glob("[dm]*s/README.md"))
    return sorted(
        [*outside, *pages, *ROOT.glob("notebooks/*.ipynb"), *(ROOT / "mlscale").rglob("*.py")]
    )


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]] or sources()
    lines = [line for path in paths for line in found(path)]
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
