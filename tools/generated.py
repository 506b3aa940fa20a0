"""Parts of the reference that the site's build writes from the package itself.

A line '<!-- generated: NAME -->' of a page becomes what PARTS makes: the help of every command, the
tables of GPUs and of data sets, the keys of the answer's JSON. A line '<!-- index: WORDS -->' makes
entries of the index, with commas between them: the site's search shows that place first.
"""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from refresh_docs import COLUMNS, ROOT, process
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from mlscale.advice import document
from mlscale.cli.main import COMMANDS, parser_of
from mlscale.cli.parser import Parser

YES = {True: "yes", False: "no"}
SCHEMA = Path(document.__file__).with_name("schema.json")
OBJECTS = {"choice": "A choice", "effect": "An effect", "config": "A setting"}
NAMED = {"config": "setting", "interval": "`[value, low, high]`"}
MARK = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
INDEX = re.compile(r"^<!-- index: (.+) -->$", re.MULTILINE)


def commands() -> str:
    """A heading and the whole help of every command and sub-command."""
    with patch.dict(os.environ, COLUMNS=str(COLUMNS)):
        return "\n".join(_commands(parser_of(COMMANDS)))


def _commands(parser: Parser) -> Iterator[str]:
    for name in sorted(parser.commands):
        command = parser.commands[name]
        if command.commands:
            yield from _commands(command)
        else:
            yield f"## {command.prog}\n\n```text\n{command.format_help().rstrip()}\n```\n"


def gpus() -> str:
    """A table of all GPUs, from `mlscale devices list`."""
    listed = process("mlscale devices list --format csv", ROOT).stdout
    found = sorted(csv.DictReader(io.StringIO(listed)), key=lambda row: row["key"])
    head = "| key | name | CUs | engine [MHz] | memory [MHz] | power limit [W] |"
    return "\n".join([head, "|---|---|---|---|---|---|", *map(_gpu, found), ""])


def _gpu(row: dict[str, str]) -> str:
    clocks = "-".join(filter(None, (row["engine_mhz_low"], row["engine_mhz_high"])))
    name = row["name"].removeprefix("NVIDIA ")
    cells = [row["cu_count"], clocks or row["engine_mhz"], row["memory_mhz"], row["tdp_w"]]
    return "| " + " | ".join([f"`{row['key']}`", name, *cells]) + " |"


def datasets() -> str:
    """A table of all data sets, from `mlscale datasets list`."""
    listed = json.loads(process("mlscale datasets list --json", ROOT).stdout)
    head = "| name | GPU | origin | kernels | grid | counters | power |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *map(_dataset, listed), ""])


def _dataset(row: dict[str, Any]) -> str:
    grid = "x".join(str(len(steps)) for steps in row["axes"].values()) if row["axes"] else ""
    cells = [row["device"], row["origin"], row["kernels"] or "", grid, row["counters"]]
    return " | ".join([f"| `{row['name']}`", *map(str, cells), YES[row["power"]] + " |"])


def answer() -> str:
    """A table of the keys of the answer's JSON, and one for each object that stands in it often."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts = ["### The document\n", *_table(schema["properties"])]
    for name, heading in OBJECTS.items():
        parts += [f"### {heading}\n", *_table(schema["$defs"][name]["properties"])]
    return "\n".join(parts)


def _table(properties: dict[str, Any]) -> list[str]:
    return ["| key | value | |", "|---|---|---|", *_rows(properties), ""]


def _rows(properties: dict[str, Any], above: str = "") -> Iterator[str]:
    """A row for each key; those of an object in it follow as 'key.inner', or 'key[].inner'."""
    for key, value in properties.items():
        name = f"{above}{key}"
        yield f"| `{name}` | {_kind(value)} | {value['description']} |"
        for inner in (value, *value.get("anyOf", ())):
            yield from _rows(inner.get("properties", {}), f"{name}.")
            items = inner.get("items", {})
            for part in (items, *items.get("allOf", ())):
                yield from _rows(part.get("properties", {}), f"{name}[].")


def _kind(value: dict[str, Any]) -> str:
    """The type of a value, in words."""
    if "anyOf" in value:
        return " or ".join(_kind(one) for one in value["anyOf"])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return NAMED.get(name, name)
    if "allOf" in value:
        return _kind(value["allOf"][0])
    kinds = [value["type"]] if isinstance(value["type"], str) else value["type"]
    if "array" in kinds:
        kinds = [f"list of {_kind(value['items'])}", *(kind for kind in kinds if kind != "array")]
    return " or ".join(kinds)


PARTS = {"commands": commands, "gpus": gpus, "datasets": datasets, "answer": answer}


def filled(page: str) -> str:
    """The page with its generated parts and its entries of the index."""
    return INDEX.sub(index_entries, MARK.sub(lambda mark: PARTS[mark[1]](), page))


def index_entries(mark: re.Match[str]) -> str:
    """The words as main entries of Sphinx' index."""
    words = mark[1].split(", ")
    return "```{index} ! " + ", ! ".join(words) + "\n```"


def fill(app: Sphinx, page: str, text: list[str]) -> None:
    """Put the generated parts into a page's source."""
    text[0] = filled(text[0])


def pages_to_read(app: Sphinx, env: BuildEnvironment, *sets: Any) -> list[str]:
    """Pages with generated parts are read at every build: the package may have changed."""
    paths = {page: Path(env.doc2path(page)) for page in env.found_docs}
    return [page for page, path in paths.items() if MARK.search(path.read_text(encoding="utf-8"))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-get-outdated", pages_to_read)
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
