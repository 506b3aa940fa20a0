"""Bad input, for every command it concerns: one line, exit status 2, nothing left behind.

Tables are those of tidy.rows(), made: two kernels at 4 configurations, the second is at row 6 to 9.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import COMMANDS, DVFS, Cli, Rows, in_format_of
from synthetic import tidy

from mlscale.data.datasets import path

pytestmark = pytest.mark.usefixtures("one_process", "in_an_empty_folder")
LEFT_OUT = None


@pytest.fixture
def attempt(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Run a command that reads a file; it must be refused, and its complaint is given."""
    model = cli.train(tidy.rows(), "--predictor", "mean-surface")

    def run(command: str, file: Path) -> str:
        arguments = {
            "train": ["train", file, "--base", "mid"],
            "predict": ["predict", model, file],
            "import": ["import", "dvfs", file, "--device", "gtx980"],
            "study": ["study", "errors", file, "--predictor", "mean-surface"],
        }[command]
        return cli.refused(*arguments, "-o", tmp_path / "output")

    return run


def changed(rows: Rows, row: int | None = None, **cells: Any) -> Rows:
    """Rows with other cells in that line of the file, or in all; LEFT_OUT leaves a column out."""
    lines = [
        {**one, **cells} if row in (None, number) else one for number, one in enumerate(rows, 2)
    ]
    return [{k: v for k, v in one.items() if v is not LEFT_OUT} for one in lines]


POSITIVE = "it must be positive and finite"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("row", "column", "cell", "said"),
    [
        (None, "kernel", LEFT_OUT, "there is no column '{}'"),
        (
            7,
            "loads",
            "1,5 k",
            "row 7, column '{}': '1,5 k' is not a number; write it with a decimal point",
        ),
        (7, "engine_mhz", "fast", "row 7, column '{}': 'fast' is not a number"),
        (8, "time_ms", 0, f"row 8, column '{{}}': the value is 0; {POSITIVE}"),
        (8, "time_ms", "inf", f"row 8, column '{{}}': the value is inf; {POSITIVE}"),
        (8, "time_ms", "", f"row 8, column '{{}}': the value is not given; {POSITIVE}; leave out"),
        (4, "loads", "-inf", "row 4, column '{}': the value is inf"),
    ],
)
def test_a_table_of_any_command(
    attempt: Callable[..., str],
    tmp_path: Path,
    command: str,
    row: int | None,
    column: str,
    cell: Any,
    said: str,
) -> None:
    rows = changed(tidy.rows(), row, **{column: cell})
    file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, rows))
    name = DVFS.get(column, column) if command == "import" else column
    assert attempt(command, file).startswith(f"{file}: {said.format(name)}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_ragged_row(attempt: Callable[..., str], tmp_path: Path, command: str) -> None:
    file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, tidy.rows()))
    with file.open("a") as more:
        more.write("one,cell,more\n")
    assert attempt(command, file).startswith(f"{file}: row 10: has 3 fields, the header has")


def test_a_simulated_model_for_a_real_gpu_is_forced(cli: Cli, tmp_path: Path) -> None:
    """The shipped model of a simulated GCN3, and its profile as of an R9 Nano."""
    simulated = tidy.read_csv(path("simulated-gcn3-profile.csv"))
    rows = [{**row, "device": "r9nano", "memory_mhz": "500"} for row in simulated]
    file = tidy.write_csv(tmp_path / "profile.csv", rows)
    for command in ("predict", "advise"):
        given = [command, file, "--model", "simulated-gcn3"]
        said = cli.refused(*given)
        assert "trained on simulated data of 'simulated-gcn3', which say nothing about 'r9n" in said
        assert "predict anyway with --force" in said
        out = cli(*given, "--force", "--json")
        assert "the model was trained on simulated data, not on measurements" in out


def test_what_is_good_is_taken(cli: Cli, tmp_path: Path) -> None:
    """The tables above, left alone, are good for every command: each refusal has its one cause."""
    model = cli.train(tidy.rows())
    table = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
    cli("predict", model, table, "-o", tmp_path / "predicted")
    cli("study", "errors", table, "--predictor", "mean-surface")
    file = tidy.write_csv(tmp_path / "dvfs.csv", in_format_of("import", tidy.rows()))
    cli("import", "dvfs", file, "--device", "gtx980", "-o", tmp_path / "imported")


Attempt = Callable[[Path], str]

TOO_LONG = "n" * 300  # a file's name has at most 255 bytes (Linux, limits.h)


@pytest.mark.parametrize("command", [*COMMANDS, "model"])
class TestInput:
    @pytest.fixture
    def attempt(self, cli: Cli, tmp_path: Path, command: str) -> Attempt:
        """Give the command a file to read; its complaint."""

        def run(file: Path) -> str:
            given = {
                "train": ["train", file, "--base", "mid"],
                "predict": ["predict", "simulated-gcn3.mlscale", file],
                "model": ["predict", "simulated-gcn3-profile.csv", "--model", file],
                "import": ["import", "dvfs", file, "--device", "gtx980"],
                "study": ["study", "errors", file],
            }[command]
            return cli.refused(*given, "-o", tmp_path / "output")

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
            problem = "is (not an mlscale model |a table or log, not an mlscale model)"
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


class TestOutput:
    """What a study writes is a folder, which it makes; every other command writes a file."""

    @pytest.fixture
    def attempt(self, cli: Cli, tmp_path: Path, command: str) -> Attempt:
        """Tell the command where to write; its complaint."""
        table = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, tidy.rows()))

        def run(output: Path) -> str:
            given = {
                "train": ["train", table, "--base", "mid", "--predictor", "mean-surface"],
                "predict": ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"],
                "import": ["import", "dvfs", table, "--device", "gtx980"],
                "study": ["study", "errors", table, "--predictor", "mean-surface"],
            }[command]
            return cli.refused(*given, "-o", output)

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
