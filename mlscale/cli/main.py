"""The entry point: finds the command, runs it, and turns errors into one line."""

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Collection, Sequence
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
_STUDIES_OF_WU = ("base-configuration", "cluster-count", "error-distribution", "oracle")
_TOOLS = ("auto", "ncu", "nvprof", "rocprof", "rocprofv3", "codexl", "nsys", "torch", "dcgm",
          "nvidia-smi", "rocm-smi", "amd-smi")  # fmt: skip
FORMER = {  # words of 0.2.0, and what to use instead
    "literature": "the repository's folder reproduction/ has a script for each paper",
    "cite": "the repository's CITATION.cff has the references",
    "study compare": "'study errors' takes several predictors and tables",
    **{f"study {name}": "reproduction/wu2015.py in the repository" for name in _STUDIES_OF_WU},
    **{f"import {tool}": "'import FILE …' knows the tool by the file" for tool in _TOOLS},
    "datasets make": "reproduction/make_hd7970.py in the repository",
    "devices new": "edit what 'devices show KEY --format json' prints",
    "--next-profile": "measure at 0.6 of the clock",
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line that names the command's help.

    What it parses has `program`, what its help is asked by, such as 'mlscale study errors'.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_defaults(program=self.prog)  # that of the sub-command is the one that stays

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
        warnings.showwarning = ShownWarnings().show
        try:
            try:
                _run(words)
            finally:
                print(end="", flush=True)  # here, where a closed pipe is answered
        except InputError as error:
            print_line(f"mlscale: error: {error}")
            return 2
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
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
    """Run the command. Raises InputError.

    The parsed arguments have, beside the options of the command, `words`, the command line.
    """
    _check_words(words)
    command = words[0] if words else ""
    with extra_named(f"mlscale {command}", command if command in EXTRAS else None):
        arguments, unknown = parser_of([command]).parse_known_args(words)
        help_of = f"see '{arguments.program} --help'"
        if unknown:
            raise InputError(f"unrecognized arguments: {' '.join(unknown)}; {help_of}")
        try:
            _check_output(arguments)
            arguments.words = words
            _module(command).run(arguments)
        except UsageError as error:
            raise InputError(f"{error}; {help_of}") from None


def _check_words(words: Sequence[str]) -> None:
    """Raise InputError on words that went with 0.3.0."""
    for asked in (*words[:1], " ".join(words[:2]), *words[2:]):
        if asked in FORMER and not os.path.exists(asked.rpartition(" ")[2]):  # noqa: PTH110
            raise InputError(f"'{asked}' went with version 0.3.0: {FORMER[asked]}")


def _check_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError where -o names a file that the command reads, which it would replace."""
    given = dict(vars(arguments))
    output = given.pop("output", None)
    if not output or not os.path.isfile(output):  # noqa: PTH113, which raises on long names
        return
    for value in given.values():
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and os.path.isfile(word) and os.path.samefile(word, output):  # noqa: PTH113, PTH121
                raise UsageError(f"-o {output}: is read too, and would be replaced; name another")


def _module(command: str) -> Any:
    """Return the module of a command, which has `add_arguments` and `run`."""
    return importlib.import_module(f"mlscale.cli.{MODULES.get(command, command)}")
