"""What pages show below a command is printed anew when the site is built, and compared.

In a ```console block a line '$ COMMAND' is run, in the page's order, in a new folder with links
`datasets` and `logs`. The site shows what was printed now. Other words than the page's, another
number, more than 15 lines or 80 columns, or a command that fails is a warning of Sphinx.
"""

import math
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from refresh_docs import COLUMNS, ROOT, new_folder, process, refreshed, shown
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

LINES = 15
SECONDS = 60
NUMBER = re.compile(r"\d+(?:\.\d+)?")
REFRESH = "python tools/refresh_docs.py"

PRINTED: dict[str, list[str]] = {}  # by page, what its commands print now, in the page's order

logger = logging.getLogger(__name__)


def same(printed: str, before: str) -> bool:
    """Whether the words are the same, and the numbers within 0.5 % or one in their last decimal."""
    if NUMBER.sub("0", printed).split() != NUMBER.sub("0", before).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(before), strict=True)
    return all(near(*pair) for pair in pairs)


def near(printed: str, before: str) -> bool:
    """Whether two numbers differ by no more than another processor may make of them."""
    decimals = len(before.partition(".")[2])
    last = 1.001 * 10**-decimals if decimals else 0.0
    return math.isclose(float(printed), float(before), rel_tol=0.005, abs_tol=last)


def faults(command: str, before: str, folder: Path) -> tuple[str, list[str]]:
    """What the command prints now (the page's words where it fails), and what is wrong with it."""
    try:
        ended = process(command, folder, seconds=SECONDS)
    except subprocess.TimeoutExpired:
        return before, [f"takes more than {SECONDS} s"]
    printed = ended.stdout.rstrip()
    if ended.returncode:
        return before, [f"ends with exit status {ended.returncode}: {printed[-500:]}"]
    found = []
    if not same(printed, before):
        found.append(f"prints something else now:\n{printed}\n")
    lines = printed.splitlines()
    if len(lines) > LINES:
        found.append(f"prints {len(lines)} lines, above {LINES}")
    if widest := max((len(line) for line in lines if len(line) > COLUMNS), default=0):
        found.append(f"prints a line of {widest} columns, above {COLUMNS}")
    return printed, found


def check_page(path: Path) -> tuple[list[str], list[str]]:
    """What each command of a page prints now, and what is wrong with the page."""
    outputs, wrong = [], []
    with new_folder() as folder:
        for command, before in shown(path.read_text(encoding="utf-8")):
            printed, found = faults(command, before, folder)
            outputs.append(printed)
            wrong += [f"$ {command}\n{fault}" for fault in found]
    return outputs, wrong


def with_commands(env: BuildEnvironment) -> Iterator[str]:
    """The pages that show commands with what they print."""
    for page in env.found_docs:
        path = Path(env.doc2path(page))
        if path.suffix == ".md" and shown(path.read_text(encoding="utf-8")):
            yield page


def pages_to_read(app: Sphinx, env: BuildEnvironment, *sets: Any) -> list[str]:
    """Pages with commands are read at every build: the program may have changed."""
    return list(with_commands(env))


def run_commands(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Run the commands of all pages, two pages at a time, and warn of what is wrong."""
    names = list(with_commands(env))
    with ThreadPoolExecutor(2) as pool:
        checked = pool.map(check_page, [Path(env.doc2path(page)) for page in names])
        for page, (outputs, wrong) in zip(names, checked, strict=True):
            PRINTED[page] = outputs
            for fault in wrong:
                path = Path(env.doc2path(page)).relative_to(ROOT)
                logger.warning("%s\nTo write it anew: %s %s", fault, REFRESH, path, location=page)


def show_printed(app: Sphinx, page: str, text: list[str]) -> None:
    """Put what the commands printed into the page's source."""
    if page in PRINTED:
        outputs = iter(PRINTED[page])
        text[0] = refreshed(text[0], lambda _: next(outputs))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-get-outdated", pages_to_read)
    app.connect("env-before-read-docs", run_commands)
    app.connect("source-read", show_printed)
    return {"parallel_read_safe": True}
