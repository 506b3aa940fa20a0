"""Files that cannot be read or written: one line, exit status 2, nothing left behind."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import COMMANDS, Capture, in_format_of, refuse
from model_files import members_of, zipped
from readers import Reader, readers
from synthetic import tidy

Attempt = Callable[[Path], str]

TOO_LONG = "n" * 300  # a file's name has at most 255 bytes (Linux, limits.h)
NO_FILE = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "header alone": (lambda path: path.write_text("kernel,time_ms\n"), "has a header but no rows"),
    "binary": (lambda path: path.write_bytes(bytes(range(256))), "is not a text file in UTF-8"),
    "directory": (Path.mkdir, "cannot be read: Is a directory"),
    "missing": (lambda _: None, "cannot be read: No such file or directory"),
}


pytestmark = pytest.mark.usefixtures("one_process", "in_an_empty_folder")


@pytest.mark.parametrize("command", [*COMMANDS, "model"])
class TestInput:
    @pytest.fixture
    def attempt(self, capsys: Capture, tmp_path: Path, command: str) -> Attempt:
        """Give the command a file to read; its complaint."""

        def run(file: Path) -> str:
            given = {
                "train": ["train", file, "--base", "mid"],
                "predict": ["predict", "simulated-gcn3.mlscale", file],
                "model": ["predict", "simulated-gcn3-profile.csv", "--model", file],
                "import": ["import", "dvfs", file, "--device", "gtx980"],
                "study": ["study", "errors", file],
            }[command]
            return refuse(capsys, tmp_path, *given, "-o", tmp_path / "output")

        return run

    @pytest.mark.parametrize(("make", "problem"), NO_FILE.values(), ids=NO_FILE.keys())
    def test_that_is_none(
        self,
        attempt: Attempt,
        tmp_path: Path,
        command: str,
        make: Callable[[Path], Any],
        problem: str,
    ) -> None:
        file = tmp_path / "given.csv"
        make(file)
        if command == "predict" and "UTF-8" in problem:
            problem = "row 1: is not text; export the profiler's report as CSV"
        if command == "predict" and file.is_dir():
            problem = "holds no Parquet file"  # a folder is a fleet
        if command == "model" and file.is_file() and file.read_bytes():
            problem = "is not a whole mlscale model file"
        assert attempt(file).startswith(f"{file}: {problem}")

    @pytest.mark.parametrize("content", [b"", b"\x00\xff not parquet", b"PAR1"])
    def test_that_is_no_parquet(self, attempt: Attempt, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "given.parquet"
        file.write_bytes(content)
        assert attempt(file).startswith((f"{file}: is ", f"{file}: has a header but no rows"))

    def test_below_a_file(self, attempt: Attempt, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        file = tmp_path / "file" / "t.csv"
        assert attempt(file) == f"{file}: cannot be read: Not a directory"

    @pytest.mark.parametrize("name", [".", "..", "/"])
    def test_that_is_a_directory_without_a_name(self, attempt: Attempt, name: str) -> None:
        problems = ("cannot be read: Is a directory", "holds no Parquet file (*.parquet)")
        assert attempt(Path(name)) in [f"{name}: {problem}" for problem in problems]

    def test_of_a_name_that_the_system_refuses(self, attempt: Attempt) -> None:
        assert attempt(Path(TOO_LONG)).startswith(f"{TOO_LONG}: ")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    @pytest.mark.parametrize("locked", ["file", "folder"])
    def test_that_may_not_be_read(self, attempt: Attempt, tmp_path: Path, locked: str) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        file = folder / "t.csv"
        file.write_text("kernel\nk\n")
        closed = folder if locked == "folder" else file
        closed.chmod(0)
        try:
            assert attempt(file) == f"{file}: cannot be read: Permission denied"
        finally:
            closed.chmod(0o700)


DEEP = b"[" * 100_000  # CPython parses 1,000 at most (sys.getrecursionlimit)
JSON_FILES = (
    "torch trace", "device file", "kernel tuner",
    "model nearest, made right", "metadata", "Parquet's metadata",
)  # fmt: skip


@pytest.fixture(scope="module")
def json_readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    """What reads each kind of JSON, by its name; `{}` of metadata is the table beside them."""
    folder = tmp_path_factory.mktemp("json")
    train = ("train", "{}", "--base", "mid", "-o", "{out}")
    return {reader.name: reader for reader in readers(folder, ("nearest",))} | {
        "metadata": Reader("", ".meta.json", b'{"origin": ""}', train),
        "Parquet's metadata": Reader("", ".parquet", b'{"origin": ""}', train),
    }


@pytest.mark.parametrize("is_whole", [True, False], ids=["alone", "as last value"])
@pytest.mark.parametrize("kind", JSON_FILES)
def test_brackets_nested_too_deeply(
    capsys: Capture, tmp_path: Path, json_readers: dict[str, Reader], kind: str, is_whole: bool
) -> None:
    reader = json_readers[kind]
    file = given = tmp_path / f"deep{reader.suffix}"

    def deep(content: bytes) -> bytes:
        return DEEP if is_whole else content[: content.rindex(b":") + 1] + DEEP

    if reader.is_made_right:
        members = members_of(reader.content)
        file.write_bytes(zipped(members | {"model.json": deep(members["model.json"])}))
    elif kind == "Parquet's metadata":
        table = pq.read_table(tidy.write_parquet(file, tidy.rows()))
        pq.write_table(table.replace_schema_metadata({"mlscale": deep(reader.content)}), file)
    else:
        file.write_bytes(deep(reader.content))
    if kind == "metadata":
        given = tidy.write_csv(tmp_path / "deep.csv", tidy.rows())
    words = {"{}": given, "{out}": tmp_path / "out.csv"}
    message = refuse(capsys, tmp_path, *(words.get(word, word) for word in reader.command))
    assert str(file) in message
    if kind == "torch trace":
        assert ("is nothing that mlscale knows" if is_whole else "is the file cut off?") in message
    else:
        assert "is not valid JSON" in message


@pytest.mark.parametrize("command", [["train", "--base", "mid"], ["study", "errors"]])
def test_a_run_where_a_table_belongs(capsys: Capture, tmp_path: Path, command: list[str]) -> None:
    """By hand: of one run, as its tool wrote it, which no table is."""
    for text, title in (
        ("power.draw [W], utilization.gpu [%]\n3 W, 9 %\n", "is of nvidia-smi --query-gpu, and"),
        ('{"traceEvents": []}\n', "is of PyTorch's profiler, Chrome trace, and no table; 'mlscale"),
        ('{"key": "mine"}\n', "is JSON; a table is CSV or Parquet, and 'mlscale import' makes"),
    ):
        file = tmp_path / "run.txt"
        file.write_text(text)
        message = refuse(capsys, tmp_path, *command, file, "-o", tmp_path / "output")
        assert message.startswith(f"{file}: {title}")


class TestOutput:
    """What a study writes is a folder, which it makes; every other command writes a file."""

    @pytest.fixture
    def attempt(self, capsys: Capture, tmp_path: Path, command: str) -> Attempt:
        """Tell the command where to write; its complaint."""
        table = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, tidy.rows()))

        def run(output: Path) -> str:
            given = {
                "train": ["train", table, "--base", "mid", "--predictor", "mean-surface"],
                "predict": ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"],
                "import": ["import", "dvfs", table, "--device", "gtx980"],
                "study": ["study", "errors", table, "--predictor", "mean-surface"],
            }[command]
            return refuse(capsys, tmp_path, *given, "-o", output)

        return run

    @pytest.mark.parametrize("command", COMMANDS)
    def test_below_a_file(self, attempt: Attempt, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("mine")
        output = tmp_path / "taken" / "out"
        assert attempt(output).startswith(f"{output}: cannot be ")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_of_a_name_that_the_system_refuses(self, attempt: Attempt) -> None:
        message = attempt(Path(TOO_LONG))
        assert message.startswith(f"{TOO_LONG}: cannot be ")
        assert message.endswith("File name too long")

    @pytest.mark.parametrize("command", ["train", "predict", "import"])
    def test_that_is_a_directory(self, attempt: Attempt, tmp_path: Path) -> None:
        (tmp_path / "taken").mkdir()
        assert attempt(tmp_path / "taken").startswith(f"{tmp_path}/taken: is a directory")

    @pytest.mark.parametrize("command", ["train", "predict", "import"])
    def test_in_a_folder_that_is_not_there(self, attempt: Attempt, tmp_path: Path) -> None:
        output = tmp_path / "nowhere" / "out"
        problem = f"cannot be written: there is no folder {tmp_path}/nowhere"
        assert attempt(output) == f"{output}: {problem}"

    @pytest.mark.parametrize("command", ["study"])
    def test_that_is_a_file_is_refused_before_the_work(
        self, attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "taken").write_text("mine")
        monkeypatch.setattr(
            "mlscale.studies.errors.part_errors", lambda *_: pytest.fail("too late")
        )
        problem = "is a file; give the name of a folder to write to"
        assert attempt(tmp_path / "taken") == f"{tmp_path}/taken: {problem}"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    @pytest.mark.parametrize("command", COMMANDS)
    def test_in_a_folder_that_is_closed(self, attempt: Attempt, tmp_path: Path) -> None:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
        message = attempt(folder / "out")
        assert message.startswith(f"{folder}/out: cannot be ")
        assert message.endswith("Permission denied")
