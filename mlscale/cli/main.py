"""The entry point: finds the subcommand, runs it, and turns errors into one line."""

import argparse
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NoReturn, TextIO

from mlscale import __version__
from mlscale.errors import DataWarning, InputError

COMMANDS = {
    "demo": "the main job on the shipped data, in under a minute",
    "datasets": "list, fetch and make data sets",
    "import": "turn a file of measurements into a tidy table",
    "collect": "measure a training set on the NVIDIA GPU at hand",
    "train": "train a model on a table of measurements",
    "predict": "predict time, power and energy of profiled kernels",
    "advise": "the clocks to set for profiled kernels, for least energy or another objective",
    "report": "write one HTML page on what a model predicts",
    "literature": "run the models of the papers",
    "study": "measure errors by cross-validation",
    "cite": "print the references of the models and data sets in use",
}


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see '{self.prog} --help'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, or 2 on bad usage or bad input."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = partial(_show, set())
        try:
            options = _parser(given).parse_args(given)
            run = importlib.import_module(_module(options.command)).run
            run(options)
            sys.stdout.flush()
        except InputError as error:
            _say(f"mlscale: error: {error}")
            return 2
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            _say(f"mlscale: error: {error.filename}: cannot be read or written: {error.strerror}")
            return 2
        except KeyboardInterrupt as stop:
            _say(f"mlscale: {str(stop) or 'interrupted'}")
            return 130
    return 0


def _show(
    said: set[str],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning about the data in one line and but once, any other as Python does."""
    if issubclass(category, DataWarning):
        if str(message) not in said:
            _say(f"mlscale: warning: {message}")
        said.add(str(message))
    else:
        print(
            warnings.formatwarning(message, category, filename, lineno, line),
            file=file or sys.stderr,
        )


def _say(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the module of the command that is asked for is imported."""
    parser = _Parser(
        prog="mlscale",
        description="Run a GPU kernel once and know how it would run anywhere.",
        epilog="'mlscale COMMAND --help' shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"mlscale {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if given[:1] == [name]:
            importlib.import_module(_module(name)).add_arguments(command)
    return parser


def _module(command: str) -> str:
    """The module of a command."""
    return {"import": "mlscale.cli.import_", "study": "mlscale.cli.study.command"}.get(
        command, f"mlscale.cli.{command}"
    )


if __name__ == "__main__":
    sys.exit(main())
