"""mlscale completion: a script with which a shell completes mlscale's commands and options."""

import argparse
from collections.abc import Iterator

from mlscale.cli.main import COMMANDS, parser_of
from mlscale.cli.parser import Parser

SHELLS = ("bash", "zsh", "tcsh", "fish")
# How help texts call what a user has in a file, and in a folder.
FILES = (
    "FILE", "FILE[@CONFIG]", "W|FILE", "MODEL", "PROFILE", "PROFILES", "TABLE", "CACHE", "DEVICE",
)  # fmt: skip
FOLDERS = ("DIR",)


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
to switch it on:
  bash  mlscale completion bash > ~/.local/share/bash-completion/completions/mlscale
  zsh   mlscale completion zsh > DIR/_mlscale, where DIR is in $fpath before compinit
  tcsh  mlscale completion tcsh > ~/.mlscale.tcsh, and 'source ~/.mlscale.tcsh' in ~/.tcshrc
  fish  mlscale completion fish > ~/.config/fish/completions/mlscale.fish
"""
    parser.add("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    parser = parser_of(COMMANDS)
    for action in _declared(parser):
        if action.choices is None and action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell), end="")


def _declared(parser: Parser) -> Iterator[argparse.Action]:
    """Every option and argument of a parser and of its sub-commands."""
    yield from parser.declared
    for command in parser.commands.values():
        yield from _declared(command)
