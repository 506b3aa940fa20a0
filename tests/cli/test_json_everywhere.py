"""Every command that prints rows takes --json, and every one that draws takes -o DIR."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.cli.main import COMMANDS, parser_of

# What they print is not rows: a file they wrote, in a line, or a script for the shell.
WITHOUT_JSON = {
    "demo": "runs other commands, and shows them",
    "datasets fetch": "writes files",
    "import": "writes a table",
    "collect": "writes a table and collect.json",
    "train": "writes a model; 'show' prints it",
    "report": "writes a page",
    "completion": "prints a script",
}
DRAWS = {"demo", "study"}


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, set[str]]]:
    """Each command without sub-commands, with its options and how -o is described."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, sub_parser in action.choices.items():
                yield from leaves(sub_parser, f"{name} {word}".strip())
            return
    folders = [a for a in parser._actions if "-o" in a.option_strings and a.metavar == "DIR"]
    yield name, {*parser._option_string_actions, *(["-o DIR"] if folders else [])}


OPTIONS = dict(leaves(parser_of(COMMANDS), ""))


@pytest.mark.parametrize("command", OPTIONS)
def test_json_is_an_option_wherever_rows_are_printed(command: str) -> None:
    without = any(f"{command} ".startswith(f"{one} ") for one in WITHOUT_JSON)
    assert ("--json" in OPTIONS[command]) != without


@pytest.mark.parametrize("command", [name for name in OPTIONS if name.split()[0] in DRAWS])
def test_a_folder_is_an_option_wherever_figures_are_drawn(command: str) -> None:
    assert "-o DIR" in OPTIONS[command]


@pytest.mark.parametrize(
    "words",
    [
        ("datasets", "list"),
        ("datasets", "show", "p100"),
        ("devices", "list"),
        ("devices", "show", "p100"),
    ],
)
def test_it_is_one_document(capsys: Capture, words: tuple[str, ...]) -> None:
    out, _ = succeed(capsys, *words, "--json")
    assert json.loads(out)


def test_it_is_the_same_as_the_format_of_that_name(capsys: Capture) -> None:
    by_format, _ = succeed(capsys, "devices", "list", "--format", "json")
    assert succeed(capsys, "devices", "list", "--json") == (by_format, "")


def test_two_forms_at_once_are_refused(capsys: Capture, tmp_path: Path) -> None:
    assert "not allowed with argument" in refuse(
        capsys, tmp_path, "devices", "list", "--format", "csv", "--json"
    )
