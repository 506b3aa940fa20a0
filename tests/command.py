"""The command line in-process: what it prints, and the check that a refusal is clean."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from synthetic import tidy

from mlscale.cli.main import main, parser_of
from mlscale.cli.parser import Parser
from mlscale.progress import Progress

Capture = pytest.CaptureFixture[str]
Rows = list[dict[str, Any]]

COMMANDS = ("train", "predict", "import", "study")
DVFS = {"kernel": "appName", "engine_mhz": "coreF", "memory_mhz": "memF", "time_ms": "time/ms"}
BASE = (4, 800.0, 700.0)  # the mid-grid of tidy.rows()


def succeed(capsys: Capture, *arguments: object) -> tuple[str, str]:
    """Run the command, which must succeed; what it wrote on stdout and stderr."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out, err


def refuse(capsys: Capture, folder: Path, *arguments: object) -> str:
    """Run the command, which must be refused cleanly; its complaint.

    Cleanly: status 2, one line on stderr, nothing on stdout, and every file of the folder as it
    was, so that no output and no temporary file is left.
    """
    before = _content(folder)
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.startswith("mlscale: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert _content(folder) == before
    return err.removeprefix("mlscale: error: ").rstrip("\n")


def options_of(command: str) -> set[str]:
    """The long options of a command and of its sub-commands."""

    def declared(parser: Parser) -> set[str]:
        own = {name for action in parser.declared for name in action.option_strings}
        return own.union(*map(declared, parser.commands.values()))

    return {name for name in declared(parser_of([command])) if name.startswith("--")}


def flat(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice of an answer's document: its settings, and its values without their intervals."""
    values = {name: value[0] for name, value in choice.items() if isinstance(value, list)}
    return {**choice["at"], **values}


def note_texts(document: dict[str, Any]) -> list[str]:
    """The notes of an answer's document in words."""
    return [note["text"] for note in document["notes"]]


@contextmanager
def when_kept(parts: int, do: Callable[[], object]) -> Iterator[None]:
    """In the block, do something as soon as so many parts of a study or a fleet are kept."""
    add = Progress.add

    def add_and_do(self: Progress, number: int, result: Any) -> None:
        add(self, number, result)
        if len(self.done) == parts:
            do()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "add", add_and_do)
        yield


def interrupted(capsys: Capture, *arguments: object) -> str:
    """Run the command until Ctrl-C when two parts are kept; what it says."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with when_kept(2, interrupt):
        assert main([str(argument) for argument in arguments]) == 130
    return capsys.readouterr().err


def files_in(folder: Path) -> dict[str, bytes]:
    """What the files of a folder hold, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def study_files(folder: Path) -> dict[str, Any]:
    """What the files of a study of errors hold, by name; without the seconds that it took."""
    files = files_in(folder)
    document = json.loads(files["study.json"])
    rows = tidy.read_csv(folder / "errors.csv")
    for row in (*document["rows"], *rows):
        del row["train_seconds"], row["predict_microseconds"]
    return {**files, "study.json": document, "errors.csv": rows}


def _content(folder: Path) -> dict[Path, bytes | None]:
    """Every file below the folder, with its content where it may be read."""

    def read(path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except PermissionError:
            return None

    return {path: read(path) for path in folder.rglob("*") if path.is_file()}


def at_base(rows: Sequence[dict[str, Any]]) -> Rows:
    """The rows of tidy.rows() at BASE: a profile."""
    axes = ("cu_count", "engine_mhz", "memory_mhz")
    return [row for row in rows if tuple(row[axis] for axis in axes) == BASE]


def train(capsys: Capture, folder: Path, rows: Rows, *options: object) -> Path:
    """Train on the rows at the mid-grid; the model file."""
    table, model = tidy.write_csv(folder / "training.csv", rows), folder / "trained.mlscale"
    succeed(capsys, "train", table, "--base", "mid", "-o", model, "--no-check", *options)
    return model


def in_format_of(command: str, rows: Rows) -> Rows:
    """The rows as the command reads them: the dvfs files have column names of their own."""
    if command != "import":
        return rows
    left_out = ("device", "application", "cu_count")
    return [{DVFS.get(k, k): v for k, v in row.items() if k not in left_out} for row in rows]


def keys(value: Any) -> Iterator[str]:
    """The names in a JSON document, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for one in value:
            yield from keys(one)
