"""The entry point: finds the command, runs it, and turns errors into one line."""

import argparse
import gc
import importlib
import io
import os
import sys
import warnings
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from mlscale import __version__
from mlscale.cli.shown_warnings import ShownWarnings, print_line
from mlscale.errors import DataWarning, InputError, UsageError, extra_named

COMMANDS = {
    "demo": "show, in a minute, an export to advice, and the main job on simulated data",
    "datasets": "list, show and fetch data sets",
    "devices": "list and show GPUs",
    "import": "turn a file of measurements into a tidy table",
    "collect": "measure a training set on the GPU at hand",
    "train": "train a model on a table of measurements",
    "show": "show what a model was trained on and what it holds",
    "predict": "predict time, power and energy of profiled kernels",
    "advise": "name the clocks to set for profiled kernels, for least energy or another objective",
    "report": "write one HTML page on what a model predicts",
    "study": "measure errors by cross-validation",
    "completion": "print a script that completes mlscale's commands in a shell",
}
EXTRAS = ("study", "train")  # commands that need the whole of the extra of that name
FOR_FILES = {"mlscale": "advise", "mlscale study": "errors"}
MODULES = {"import": "import_", "study": "study.command"}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line and names the help of the command that was asked for."""

    _commands: Any = None

    def add_subparsers(self, **options: Any) -> Any:
        """As argparse does; options may then stand before the name of the sub-command too."""
        self._commands = super().add_subparsers(**options)
        return self._commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but refuse what this parser, or that of a sub-command, does not know.

        The parser of the sub-command that was asked for is the namespace's `parser`. Raises
        InputError.
        """
        words = list(sys.argv[1:] if args is None else args)
        namespace, unknown = super().parse_known_args(self._command_first(words), namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        vars(namespace).setdefault("parser", self)
        return namespace, unknown

    def _command_first(self, words: list[str]) -> list[str]:
        """Return the words with the sub-command in front of its options, where they precede it."""
        if self._commands is None or not words or not words[0].startswith("-"):
            return words
        names = [word for word in words if word in self._commands.choices]
        if words[0] in self._option_string_actions:
            return words
        if not names:
            usual = " ".join([self.prog, FOR_FILES.get(self.prog, ""), *words])
            hint = f"; say: {usual}" if self.prog in FOR_FILES else ""
            self.error(f"{self._commands.metavar} is missing before {words[0]}{hint}")
        words.remove(names[0])
        return [names[0], *words]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does, but tell of a file that stands where a sub-command belongs."""
        if action is self._commands and self.prog in FOR_FILES and value not in action.choices:
            usual = f"{self.prog} {FOR_FILES[self.prog]} {value}"
            if os.path.isfile(value) or os.path.splitext(value)[1]:  # noqa: PTH113, PTH122
                self.error(f"'{value}' stands where a {action.metavar} belongs; say: {usual}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Raise InputError."""
        raise InputError(f"{message}; see '{self.prog} --help'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, or 2 on bad usage or bad input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")  # names in other letters than it has
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        shown = ShownWarnings()
        warnings.showwarning = shown.show
        try:
            _refuse_other_letters(words)
            _refuse_empty(words)
            command = words[0] if words else ""
            try:
                with extra_named(f"mlscale {command}", command if command in EXTRAS else None):
                    _run(parser_of(words[:1]).parse_args(words))
            finally:
                shown.tell_repeated()
            sys.stdout.flush()
        except InputError as error:
            print_line(f"mlscale: error: {error}")
            return 2
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            place = error.filename or "standard output"
            print_line(f"mlscale: error: {place}: cannot be read or written: {error.strerror}")
            return 2
        except KeyboardInterrupt as interrupt:
            print_line(f"mlscale: {str(interrupt) or 'interrupted'}")
            return 130
    return 0


def parser_of(commands: Collection[str]) -> Parser:
    """Return the parser of these commands alone, or of all, without options, if it is none."""
    parser = Parser(
        prog="mlscale",
        description="Run a GPU kernel once and know how it would run anywhere.",
        epilog="'mlscale COMMAND --help' shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"mlscale {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = [name for name in COMMANDS if name in commands]
    for name in known or COMMANDS:
        summary = COMMANDS[name]
        command = subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if known:
            _module(name).add_arguments(command)
    return parser


def _run(options: argparse.Namespace) -> None:
    """Run the command; what is wrong with its options is told as argparse's own complaints are."""
    if not gc.isenabled():  # as in a process of its own, which begins so
        gc.freeze()
        gc.enable()
    try:
        _refuse_output_over_input(options)
        _module(options.command).run(options)
    except UsageError as error:
        options.parser.error(str(error))


def _refuse_other_letters(words: Sequence[str]) -> None:
    """Raise InputError on a name whose bytes are not UTF-8: no table or page could hold it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            name = word.encode(errors="backslashreplace").decode()
            raise InputError(f"'{name}' is not UTF-8; rename the file") from None


def _refuse_empty(words: Sequence[str]) -> None:
    """Raise InputError on a word without anything in it, which no command takes for a value."""
    for before, word in pairwise(["mlscale", *words]):
        is_option = word.startswith("--") and word.endswith("=")
        if is_option or not word.strip():
            name = word.removesuffix("=") if is_option else before
            raise InputError(
                f"nothing stands behind '{name}' but an empty word; is a variable of the shell not "
                "set?"
            )


def _refuse_output_over_input(options: argparse.Namespace) -> None:
    """Raise UsageError where -o names a file that the command reads, which it would replace."""
    given = vars(options)
    output = given.get("output")
    if not output or not os.path.isfile(output):  # noqa: PTH113, which raises on some names
        return
    for value in (value for name, value in given.items() if name != "output"):
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and os.path.isfile(word) and os.path.samefile(word, output):  # noqa: PTH113, PTH121
                raise UsageError(f"-o {output}: is read too, and would be replaced; name another")


def _module(command: str) -> Any:
    """Return the module of a command, which has `add_arguments` and `run`."""
    return importlib.import_module(f"mlscale.cli.{MODULES.get(command, command)}")
