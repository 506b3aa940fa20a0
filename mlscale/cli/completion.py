"""mlscale completion: a script with which a shell completes mlscale's commands and options."""

import argparse
from collections.abc import Iterator

from mlscale.cli.main import COMMANDS, parser_of

SHELLS = ("bash", "zsh", "tcsh", "fish")
# How help texts call what a user has in a file, and in a folder.
FILES = (
    "FILE", "FILE[@CONFIG]", "W|FILE", "MODEL", "PROFILE", "PROFILES", "TABLE", "CACHE", "DEVICE",
)  # fmt: skip
FOLDERS = ("DIR",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
to switch it on:
  bash  mlscale completion bash > ~/.local/share/bash-completion/completions/mlscale
  zsh   mlscale completion zsh > DIR/_mlscale, where DIR is in $fpath before compinit
  tcsh  mlscale completion tcsh > ~/.mlscale.tcsh, and 'source ~/.mlscale.tcsh' in ~/.tcshrc
  fish  mlscale completion fish > ~/.config/fish/completions/mlscale.fish
"""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    parser = parser_of(COMMANDS)
    for action in _actions(parser):
        if action.choices is None and action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell), end="")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return every option and argument of a parser and of its sub-commands."""
    for action in parser._actions:  # noqa: SLF001, as argparse has no public list
        yield action
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from _actions(command)
