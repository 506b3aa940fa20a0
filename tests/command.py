"""The command line in-process: what it prints, and the check that a refusal is clean."""

import csv
import json
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from synthetic import tidy

from mlscale.advice.answer import PlainAnswer
from mlscale.cli.advise import answered
from mlscale.cli.main import main, parser_of
from mlscale.cli.parser import Parser
from mlscale.progress import Progress

Capture = pytest.CaptureFixture[str]
Rows = list[dict[str, Any]]
Line = tuple[str, int]

COMMANDS = ("train", "predict", "import", "study")
DVFS = {"kernel": "appName", "engine_mhz": "coreF", "memory_mhz": "memF", "time_ms": "time/ms"}
BASE = (4, 800.0, 700.0)  # the mid-grid of tidy.rows()


def succeed(capsys: Capture, *arguments: object) -> tuple[str, str]:
    """Run the command, which must succeed; what it wrote on stdout and stderr."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out, err


def first_block(out: str) -> str:
    """The sentences of an answer on a terminal, as one line."""
    return " ".join(out.partition("\n\n")[0].split())


def answer_of(*words: object) -> PlainAnswer:
    """The answer to `mlscale advise` of these words."""
    arguments = parser_of(["advise"]).parse_args(["advise", *map(str, words)])
    arguments.words = ["advise", *map(str, words)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answered(arguments)


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


@dataclass(frozen=True)
class Cli:
    """The command as a test types it, and the folder in which a refusal must leave nothing."""

    capsys: Capture
    folder: Path

    def __call__(self, *words: object) -> str:
        """What it prints; it must succeed."""
        return self.both(*words)[0]

    def both(self, *words: object) -> tuple[str, str]:
        """What it wrote on stdout and on stderr."""
        return succeed(self.capsys, *words)

    def told(self, *words: object) -> str:
        """What it says beside its answer, on stderr."""
        return self.both(*words)[1]

    def json(self, *words: object) -> Any:
        """Its document."""
        return json.loads(self(*words, "--json"))

    def csv(self, *words: object) -> Rows:
        """The rows of its CSV."""
        return list(csv.DictReader(self(*words, "--format", "csv").splitlines()))

    def verdict(self, *words: object) -> str:
        """The sentences that an answer begins with, in one line."""
        return " ".join(self("advise", *words).partition("\n\n")[0].split())

    def page(self, *words: object) -> str:
        """The page that its report writes."""
        file = self.folder / "page.html"
        self("report", *words, "-o", file)
        return file.read_text(encoding="utf-8")

    def refused(self, *words: object, folder: Path | None = None) -> str:
        """Its complaint; see `refuse`."""
        return refuse(self.capsys, folder or self.folder, *words)

    def ended(self, status: int, *words: object) -> tuple[str, str]:
        """What it wrote on stdout and on stderr; it must end with that status."""
        try:
            found = main([str(word) for word in words])
        except SystemExit as stopped:  # --help exits
            found = int(str(stopped.code))
        written = self.capsys.readouterr()
        assert found == status, written.err
        return written.out, written.err

    def interrupted(self, *words: object) -> str:
        """What it says at Ctrl-C, when two parts are kept."""

        def interrupt() -> None:
            raise KeyboardInterrupt

        with when_kept(2, interrupt):
            return self.ended(130, *words)[1]  # 128 + SIGINT

    def train(self, rows: Rows, *options: object) -> Path:
        """A model file that learnt from the rows, at the mid-grid."""
        table = tidy.write_csv(self.folder / "training.csv", rows)
        model = self.folder / "trained.mlscale"
        self("train", table, "--base", "mid", "-o", model, "--no-check", *options)
        return model


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


def traced(files: Collection[str], at: Callable[[Line], object]) -> Callable[..., Any]:
    """A trace function that calls at each line of these files, in any thread."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            at((frame.f_code.co_filename, frame.f_lineno))
        return trace

    return trace
