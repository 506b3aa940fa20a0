"""Files that cannot be read or written: one line, exit status 2, nothing left behind; by hand."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import COMMANDS, Capture, in_format_of, refuse
from synthetic import tidy

Attempt = Callable[[Path], str]

TOO_LONG = "n" * 300  # a file's name has at most 255 bytes (Linux, limits.h)

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

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "is empty"),
            (b"kernel,time_ms\n", "(there (is|are) no column|has a header but no rows)"),
            (bytes(range(256)), "(is not a text file in UTF-8|is not text; export)"),
        ],
        ids=["empty", "header alone", "binary"],
    )
    def test_that_is_none(
        self, attempt: Attempt, tmp_path: Path, command: str, content: bytes, problem: str
    ) -> None:
        file = tmp_path / "given.csv"
        file.write_bytes(content)
        if command == "model" and content:
            problem = "is not a whole mlscale model file"
        assert re.match(f"{file}: {problem}", attempt(file))

    def test_that_cannot_be_read(self, attempt: Attempt, tmp_path: Path, command: str) -> None:
        (tmp_path / "file").write_text("")
        for file, problem in (
            (tmp_path / "missing.csv", "No such file or directory"),
            (tmp_path / "file" / "t.csv", "Not a directory"),
            (Path(TOO_LONG), "File name too long"),
        ):
            is_name = command == "model" and file.parent == Path()
            said = "there is no such model file" if is_name else f"cannot be read: {problem}"
            assert attempt(file).startswith(f"{file}: {said}")
        is_fleet = command == "predict"  # which a folder of Parquet files is
        problem = "holds no Parquet file (*.parquet)" if is_fleet else "cannot be read: Is a direc"
        for folder in (tmp_path, Path()):
            assert attempt(folder).startswith(f"{folder}: {problem}")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_that_may_not_be_read(self, attempt: Attempt, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        file.write_text("kernel\nk\n")
        file.chmod(0)
        assert attempt(file) == f"{file}: cannot be read: Permission denied"


@pytest.mark.parametrize("command", [["train", "--base", "mid"], ["study", "errors"]])
def test_a_run_where_a_table_belongs(capsys: Capture, tmp_path: Path, command: list[str]) -> None:
    """Of one run, as its tool wrote it, which no table is."""
    for text, title in (
        ("power.draw [W], utilization.gpu [%]\n3 W, 9 %\n", "is a file of nvidia-smi --query-gpu"),
        (
            '{"traceEvents": []}\n',
            "is a file of PyTorch's profiler, Chrome trace, not a table; make a",
        ),
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
    def test_that_cannot_be(self, attempt: Attempt, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("mine")
        for output in (tmp_path / "taken" / "out", Path(TOO_LONG)):
            assert attempt(output).startswith(f"{output}: cannot be ")

    @pytest.mark.parametrize("command", ["train", "predict", "import"])
    def test_that_is_a_directory_or_in_a_folder_that_is_not_there(
        self, attempt: Attempt, tmp_path: Path
    ) -> None:
        (tmp_path / "taken").mkdir()
        assert attempt(tmp_path / "taken").startswith(f"{tmp_path}/taken: is a directory")
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
