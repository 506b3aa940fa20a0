"""The entry point: finds the command, runs it, and turns errors into one line."""

import argparse
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from stat import S_ISFIFO
from typing import Any

from mlscale import __version__
from mlscale.cli.parser import Parser, check_words, with_help
from mlscale.cli.terminal import print_line, tell
from mlscale.errors import InputError, NotMetError, UsageError, extra_named, kept_notes
from mlscale.parameters import in_options
from mlscale.quantities import with_units
from mlscale.text import did_you_mean, near_names, shell_line

COMMANDS = {
    "demo": "show, in a minute, which clock, the surface of a profile, and a model's error",
    "datasets": "list, show and fetch data sets",
    "devices": "list and show GPUs",
    "measure": "run a program, and log its GPU's clocks, power and energy",
    "import": "turn a file of measurements into a tidy table",
    "collect": "measure a training set on the GPU at hand",
    "train": "train a model on a table of measurements",
    "show": "show what a model was trained on and what it holds",
    "predict": "predict time, power and energy of profiled kernels",
    "advise": "name the clocks to set, for least energy or another objective",
    "report": "write one interactive HTML page: the answer, and every other setting",
    "study": "measure errors by cross-validation",
    "explain": "explain the code of a note, and what to do",
    "completion": "print a script that completes mlscale's commands in a shell",
}
HELP = """\
mlscale: choose a GPU's clock, predict kernels, train and cross-validate models

  Which clock?
    measure -- CMD   run a program, and log what advise needs
    advise FILE      which clock to set: --max-slowdown 5, --power 500
    report FILE      an interactive page: -o page.html
  One profile, the whole surface
    predict FILE     time, power and energy elsewhere: --at engine=1200
  Your sweep, a model, and how good it is
    collect          a table measured on the GPU at hand
    import FILE      a table from files of profilers and monitors
    train TABLE      a model of your own: --predictor wu, --leave-out NAME
    study errors     cross-validation: the error on applications left out
    study advice     cross-validation: what the advice costs
  Look up, and start
    explain CODE, show MODEL, devices, datasets: notes, models, GPUs, data sets
    demo             all three in a minute, on shipped data
    completion       completes commands and options in your shell

FILE: of ncu, nsys, rocprof, PyTorch, DCGM, nvidia-smi, rocm-smi or amd-smi, as
the tool wrote it. mlscale COMMAND --help shows the options of a command.
"""
EXTRAS = ("study", "train")  # commands that need the whole of the extra of that name
MODULES = {"import": "import_"}
_STUDIES_OF_WU = ("base-configuration", "cluster-count", "error-distribution", "oracle")
_TOOLS = ("auto", "ncu", "nvprof", "rocprof", "rocprofv3", "codexl", "nsys", "torch", "dcgm",
          "nvidia-smi", "rocm-smi", "amd-smi")  # fmt: skip
_SOURCES = "mlscale's source repository has it; the package does not"
FORMER = {  # words of 0.2.0, and what to use instead
    **dict.fromkeys(("literature", "cite", "datasets make"), _SOURCES),
    "study compare": "'study errors' takes several predictors and tables",
    **{f"study {name}": _SOURCES for name in _STUDIES_OF_WU},
    **{f"import {tool}": "'import FILE …' recognises the tool by the file" for tool in _TOOLS},
    "devices new": "edit what 'devices show KEY --format json' prints",
    "--next-profile": "measure at 0.6 of the clock",
}


@in_options()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 2 on bad input, 3 if unsure.

    `measure` returns that of its program.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed; no file is to get its number
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115, for the process
    words = with_units(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")  # names in other letters than it has
    with kept_notes(tell=lambda note: tell([note])):
        try:
            try:
                return _run(words)
            finally:
                print(end="", flush=True)  # here, where a closed pipe is answered
        except (NotMetError, InputError) as error:
            print_line(f"mlscale: error: {error}")
            return 3 if isinstance(error, NotMetError) else 2
        except BrokenPipeError:
            return 0
        except OSError as error:
            place = error.filename or "standard output"
            print_line(f"mlscale: error: {place}: cannot be read or written: {error.strerror}")
            return 2
        except KeyboardInterrupt as interrupt:
            print_line(f"mlscale: {str(interrupt) or 'interrupted'}")
            return 128 + getattr(interrupt, "number", signal.SIGINT)
        finally:
            _drop_what_is_not_taken()


def _drop_what_is_not_taken() -> None:
    """Of a closed pipe or a full disk: Python would tell of it as it ends, with a status of 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def parser_of(commands: Collection[str], shows_all: bool = True) -> Parser:
    """The parser of these commands; shows_all: of options that few need too."""
    parser = Parser(prog="mlscale", shows_all=shows_all)
    parser.add("--version", action="version", version=f"mlscale {__version__}")
    summaries = {name: COMMANDS[name] for name in COMMANDS if name in commands}
    for name, command in parser.add_commands("command", summaries).items():
        _module(name).add_arguments(command)
    return parser


def _run(words: Sequence[str]) -> int:
    """Run the command; its exit status. Raises InputError.

    The parsed arguments have, beside the options of the command, `words`, the command line.
    """
    if words and words[0] in ("help", "version"):
        words = [*words[1:], f"--{words[0]}"]
    command = words[0] if words else "--help"
    if command in ("-h", "--help"):
        print(HELP, end="")
        return 0
    _check_former(words)
    if command not in COMMANDS and not command.startswith("-"):
        raise InputError(with_help(_mended(command, words), "mlscale"))
    with extra_named(f"mlscale {command}", command if command in EXTRAS else None):
        asks_all = any(pair in pairwise(words) for pair in (("--help", "all"), ("-h", "all")))
        parser = parser_of([command], asks_all)
        below = parser.commands[command].commands if command in parser.commands else ()
        words = _with_action(words, below)
        check_words(parser, words)
        arguments, unknown = parser.parse_known_args(words)
        program = arguments.program
        if hasattr(arguments, "rest") and not any(word.startswith("-") for word in unknown):
            arguments.rest, unknown = unknown, []
        if unknown:
            said = f"unrecognized arguments: {' '.join(unknown)}"
            raise InputError(with_help(said, program))
        if any(map(_is_pipe, [*words, *(word.rpartition("@")[0] for word in words)])):
            _make_files_of_pipes(arguments)
        try:
            _check_output(arguments)
            if getattr(arguments, "map", None):
                from mlscale.cli.options import check_map

                check_map(arguments)
            arguments.words = words
            return _module(command).run(arguments) or 0
        except UsageError as error:
            raise InputError(with_help(str(error), program)) from None


def _with_action(words: Sequence[str], actions: Collection[str]) -> Sequence[str]:
    """The words with the action that they lack; 'devices h100' lists what matches."""
    if len(words) == 1 and actions:
        return [*words, "list" if "list" in actions else "--help"]
    is_name = words[0] == "devices" and not words[1].startswith("-")
    is_name = is_name and not near_names(words[1], actions)
    return [words[0], "list", *words[1:]] if is_name else words


def _mended(word: str, words: Sequence[str]) -> str:
    """What may be meant by a command that there is not."""
    if os.path.isfile(word) or "." in word:  # noqa: PTH113, which raises on long names
        advise = shell_line(["mlscale", "advise", *words])
        return f"{word} is not a command; for advice on it: {advise}"
    return f"there is no command '{word}'{did_you_mean(word, COMMANDS)}"


def _check_former(words: Sequence[str]) -> None:
    """Raise InputError on words that went with 0.3.0."""
    words = words[: words.index("--")] if "--" in words else words
    for asked in (*words[:1], " ".join(words[:2]), *words[2:]):
        if asked in FORMER and not os.path.exists(asked.rpartition(" ")[2]):  # noqa: PTH110
            raise InputError(f"'{asked}' was removed in version 0.3.0: {FORMER[asked]}")


def _check_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError where -o names a file that the command reads, which it would replace."""
    given = dict(vars(arguments))
    output = given.pop("output", None)
    if not output or not os.path.isfile(output):  # noqa: PTH113, which raises on long names
        return
    for value in given.values():
        for word in value if isinstance(value, list) else [value]:
            is_name = isinstance(word, str | os.PathLike)
            if is_name and os.path.isfile(word) and os.path.samefile(word, output):  # noqa: PTH113, PTH121
                raise UsageError(f"-o {output}: is also an input; name another file")


def _module(command: str) -> Any:
    """Return the module of a command, which has `add_arguments` and `run`."""
    return importlib.import_module(f"mlscale.cli.{MODULES.get(command, command)}")


_OPENED = re.compile(r"/dev/stdin|(?:/dev|/proc/self)/fd/(\d+)")  # its number, 0 of stdin


def _is_pipe(word: str) -> bool:
    return os.path.exists(word) and S_ISFIFO(os.stat(word).st_mode)  # noqa: PTH110, PTH116


def _make_files_of_pipes(arguments: argparse.Namespace) -> None:
    """Put files in place of pipes, but for what is written and for a program's own words."""
    for name in vars(arguments).keys() - {"output", "program_words"}:
        setattr(arguments, name, _as_files(getattr(arguments, name)))


def _as_files(value: Any) -> Any:
    from mlscale.readers.source import Source

    if isinstance(value, list):
        return [_as_files(one) for one in value]
    if isinstance(value, Source):
        return replace(value, name=_as_files(value.name))
    if not isinstance(value, str):
        return value
    name, at, settings = value.rpartition("@")
    if at and _is_pipe(name):
        return f"{_as_files(name)}@{settings}"
    return _file_of_pipe(value) if _is_pipe(value) else value


def _file_of_pipe(name: str) -> str:
    """The name of a file with what a pipe holds: its own, where it can stand for a file."""
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="mlscale-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / Path(name).name
    with Path(name).open("rb") as pipe, file.open("w+b") as copy:
        shutil.copyfileobj(pipe, copy)
        copy.flush()
        if (opened := _OPENED.fullmatch(name)) and Path("/proc/self/fd").is_dir():
            os.dup2(copy.fileno(), int(opened[1] or 0))  # the name stays, and can be read again
            return name
    return str(file)
