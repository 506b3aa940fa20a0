"""The entry point: finds the command, runs it, and turns errors into one line."""

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from mlscale import __version__
from mlscale.cli.text import ShownWarnings, print_line
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
MODULES = {"import": "import_"}
_OF_WU = ("base-configuration", "cluster-count", "error-distribution", "oracle")
_OF_TOOLS = ("auto", "ncu", "nvprof", "rocprof", "rocprofv3", "codexl", "nsys", "torch", "dcgm",
             "nvidia-smi", "rocm-smi", "amd-smi")  # fmt: skip
FORMER = {  # words of 0.2.0, and what to use instead
    "literature": "the repository's folder reproduction/ has a script for each paper",
    "cite": "the repository's CITATION.cff has the references",
    "study compare": "'study errors' takes several predictors and tables",
    **{f"study {name}": "reproduction/wu2015.py in the repository" for name in _OF_WU},
    **{f"import {name}": "'import FILE …' knows the tool by the file" for name in _OF_TOOLS},
    "datasets make": "reproduction/make_hd7970.py in the repository",
    "devices new": "edit what 'devices show KEY --format json' prints",
    "--next-profile": "measure at two thirds of the clock",
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line and names the help of the command that was asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_defaults(parser=self)  # that of the sub-command is the one that stays

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
            _refuse_former(words)
            command = words[0] if words else ""
            try:
                with extra_named(f"mlscale {command}", command if command in EXTRAS else None):
                    _run(words)
            finally:
                shown.tell_counts()
                print(end="", flush=True)  # here, where a closed pipe is answered
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


def _run(words: Sequence[str]) -> None:
    """Run the command; what is wrong with its options is told as argparse's own complaints are.

    The options have, beside those of the command, `parser`, and `words`, the command line.
    """
    options, unknown = parser_of(words[:1]).parse_known_args(words)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        _refuse_output_over_input(options)
        options.words = words
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


def _refuse_former(words: Sequence[str]) -> None:
    """Raise InputError on a command or option that went, unless a file is called so."""
    for asked in (*words[:1], " ".join(words[:2]), *(w for w in words if w.startswith("--"))):
        if asked in FORMER and not os.path.exists(asked.rpartition(" ")[2]):  # noqa: PTH110
            raise InputError(f"'{asked}' went with version 0.3.0: {FORMER[asked]}")


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
