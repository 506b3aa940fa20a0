"""The parser of the command line: its help in two lengths, and what may be meant by a slip."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, Protocol

from mlscale.errors import InputError
from mlscale.text import did_you_mean


class Group(Protocol):
    """What argparse's groups of options have."""

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """Add an option."""


class Parser(argparse.ArgumentParser):
    """A parser whose help is short, and whose complaint is one line that names that help.

    What it parses has `program`, what its help is asked by, such as 'mlscale study errors'.

    Attributes:
        shows_all: whether the help shows the options of `add_more`, as '--help all' does.
        hides: whether it hides some.
        declared: its options and arguments.
        commands: the parsers of its sub-commands, by name.
    """

    def __init__(self, shows_all: bool = False, **options: Any) -> None:
        super().__init__(add_help=False, **options)
        self.shows_all, self.hides = shows_all, False
        self.declared: list[argparse.Action] = []
        self.commands: dict[str, Parser] = {}
        self.set_defaults(program=self.prog)  # that of the sub-command is the one that stays
        self.add("-h", "--help", action="help", help="show this help and exit")

    def add(self, *names: str, group: Group | None = None, **settings: Any) -> None:
        """Add an option or argument, as `add_argument` does, to a group of this parser if one."""
        if "choices" in settings:
            settings.setdefault("type", partial(choice, choices=settings["choices"]))
        self.declared.append((group or self).add_argument(*names, **settings))

    def add_more(self, *names: str, help: str, **settings: Any) -> None:  # noqa: A002, argparse's
        """Add an option that few need: the help shows it if all is asked for."""
        self.hides |= not self.shows_all
        self.add(*names, help=help if self.shows_all else argparse.SUPPRESS, **settings)

    def add_commands(self, dest: str, summaries: Mapping[str, str]) -> "dict[str, Parser]":
        """Add a sub-command for each name, which is kept as `dest`; their parsers."""
        added = self.add_subparsers(dest=dest, required=True, metavar=dest.upper())
        for name, summary in summaries.items():
            description = f"{summary[0].upper()}{summary[1:]}."
            self.commands[name] = added.add_parser(
                name, help=summary, description=description, shows_all=self.shows_all
            )
        return self.commands

    def format_help(self) -> str:
        """The help, and how to see what it hides."""
        more = f"\nmore options: {self.prog} --help all\n" if self.hides else ""
        return super().format_help() + more

    def error(self, message: str) -> NoReturn:
        """Raise InputError."""
        raise InputError(with_help(message, self.prog))


def with_help(message: str, program: str) -> str:
    """A complaint, and what shows the help of a program, such as 'mlscale train'."""
    return f"{message}{' See' if message.endswith('?') else '; see'} '{program} --help'"


def choice(text: str, choices: Collection[str]) -> str:
    """The text, if it is one of these: an argument's `type`."""
    if text not in choices:
        hint = did_you_mean(text, choices)
        raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(choices)}{hint}")
    return text


def check_words(parser: Parser, words: Sequence[str]) -> None:
    """Raise InputError, with a suggestion, on an unknown sub-command or option."""
    if {"-h", "--help"} & set(words):
        return
    for word in words:
        if not parser.commands or word.startswith("-"):
            break
        if word not in parser.commands:
            parser.error(
                f"'{parser.prog}' has no command '{word}'{did_you_mean(word, parser.commands)}"
            )
        parser = parser.commands[word]
    options = {name for action in parser.declared for name in action.option_strings}
    for word in words[: words.index("--") if "--" in words else None]:
        name = word.partition("=")[0]
        if name.startswith("--") and not any(option.startswith(name) for option in options):
            meant = {option.strip("-"): option for option in options if option[:2] == "--"}
            hint = did_you_mean(name.strip("-").replace("_", "-"), meant, "--")
            parser.error(f"there is no option {name}{hint}")
