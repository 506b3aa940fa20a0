"""Bad input, for every command it concerns: one line, exit status 2, nothing left behind.

Tables are those of tidy.rows(), made: two kernels at 4 configurations, the second is at row 6 to 9.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import COMMANDS, DVFS, Capture, Rows, at_base, in_format_of, refuse, succeed, train
from synthetic import tidy

from mlscale.data.datasets import path

pytestmark = pytest.mark.usefixtures("one_process")
LEFT_OUT = None


@pytest.fixture
def attempt(capsys: Capture, tmp_path: Path) -> Callable[..., str]:
    """Run a command that reads a file; it must be refused, and its complaint is given."""
    model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")

    def run(command: str, file: Path) -> str:
        arguments = {
            "train": ["train", file, "--base", "mid"],
            "predict": ["predict", model, file],
            "import": ["import", "dvfs", file, "--device", "gtx980"],
            "study": ["study", "errors", file, "--predictor", "mean-surface"],
        }[command]
        return refuse(capsys, tmp_path, *arguments, "-o", tmp_path / "output")

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


@pytest.mark.parametrize("command", ["train", "study errors"])
@pytest.mark.parametrize(
    ("base", "problem"),
    [
        ("engine=600,memory=700", "engine_mhz 600 is not on the grid; it has 400, 800"),
        ("engine=400", "'engine=400' gives no memory_mhz; one of 500, 700"),
        ("middle", "argument --base: 'middle' is no setting; cu, engine and memory are"),
    ],
)
def test_a_base_that_is_none(
    capsys: Capture, tmp_path: Path, command: str, base: str, problem: str
) -> None:
    file = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
    given = [*command.split(), file, "--base", base, "-o", tmp_path / "out"]
    assert refuse(capsys, tmp_path, *given).removeprefix("'table': ").startswith(problem)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("engine=399,memory=700", "engine_mhz 399 is outside the grid (400, 800); the model "),
        ("cu=5,engine=400,memory=700", "cu_count 5 is outside the grid (4); the model does"),
        ("engine=0,memory=700", "'0' in 'engine=0,memory=700' must be positive and finite"),
        ("400,700", "400 of what? Write engine=400 or memory=400"),
    ],
)
def test_a_target_outside_the_grid_or_malformed(
    capsys: Capture, tmp_path: Path, target: str, problem: str
) -> None:
    model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")
    profile = tidy.write_csv(tmp_path / "profile.csv", at_base(tidy.rows()))
    given = ["predict", model, profile, "--at", "engine=400,memory=500", "--at", target]
    message = refuse(capsys, tmp_path, *given, "-o", tmp_path / "out")
    assert message.removeprefix("argument --at: ").startswith(problem)


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (
            changed(at_base(tidy.rows()), 3, engine_mhz=400.0),
            "kernel 'second' has no row at the base cu=4,engine=800,memory=700; profile it there,",
        ),
        (
            changed(at_base(tidy.rows()), loads=LEFT_OUT, stores=1),
            "kernel 'first' has none of the features that the model learnt from, such as 'loads'",
        ),
        (
            changed(at_base(tidy.rows()), loads="nan", stores=1),
            "kernel 'first' has none of the features that the model learnt from, such as 'loads'",
        ),
        (
            changed(at_base(tidy.rows()), device="other-gpu"),
            "profile.csv: is of device 'other-gpu', the model of 'made-gpu'",
        ),
    ],
)
def test_a_profile_of_a_model_that_needs_loads(
    capsys: Capture, tmp_path: Path, profile: Rows, said: str
) -> None:
    model = train(capsys, tmp_path, tidy.rows(), "--predictor", "wu")
    file = tidy.write_csv(tmp_path / "profile.csv", profile)
    assert said in refuse(capsys, tmp_path, "predict", model, file, "-o", tmp_path / "out")


def test_a_simulated_model_for_a_real_gpu_is_forced(capsys: Capture, tmp_path: Path) -> None:
    """The shipped model of a simulated GCN3, and its profile as of an R9 Nano."""
    simulated = tidy.read_csv(path("simulated-gcn3-profile.csv"))
    rows = [{**row, "device": "r9nano", "memory_mhz": "500"} for row in simulated]
    file = tidy.write_csv(tmp_path / "profile.csv", rows)
    for command in ("predict", "advise"):
        given = [command, file, "--model", "simulated-gcn3"]
        said = refuse(capsys, tmp_path, *given)
        assert "learnt from simulated data of 'simulated-gcn3', which say nothing of 'r9n" in said
        assert "predict nevertheless with --force" in said
        out, _ = succeed(capsys, *given, "--force", "--json")
        assert "the model was trained on simulated data, not on measurements" in out


APART = "'wu' needs at least two training kernels whose '{}' features differ"
EQUAL_COUNTS = changed(tidy.rows(), loads=LEFT_OUT, inst_executed=5.0)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (
            tidy.rows(),
            ["--clusters", 3],
            "3 clusters cannot be made of 2 training kernels; give 1 to 2 with --clusters",
        ),
        (tidy.rows(["alone"]), [], APART.format("raw")),
        (tidy.rows(), ["--leave-out", "app-first"], APART.format("raw")),
        (EQUAL_COUNTS, ["--features", "rates"], APART.format("rates")),
        (
            changed(tidy.rows(), loads=LEFT_OUT),
            ["--predictor", "wu"],
            "the counters give no 'raw' features; there are none: profile with counters, or choose",
        ),
        (
            tidy.rows(),
            ["--leave-out", "first"],
            "there is no application 'first' to leave out; --leave-out takes app",
        ),
    ],
)
def test_a_training_that_cannot_be(
    capsys: Capture, tmp_path: Path, rows: Rows, options: list[object], said: str
) -> None:
    """Their rates differ where counters do not, by the time alone: that is no profile."""
    file = tidy.write_csv(tmp_path / "table.csv", rows)
    given = ["train", file, "--base", "mid", "-o", tmp_path / "out"]
    assert said in refuse(capsys, tmp_path, *given, *options)


@pytest.mark.parametrize(
    ("kernels", "options", "said"),
    [
        ("abc", ["--clusters", 3], "3 clusters cannot be made of 2 training kernels; give 1 to 2"),
        (["alone"], [], "the protocol 'leave-one-application-out' needs 2 applications, not 1"),
    ],
)
def test_a_study_that_cannot_be(
    capsys: Capture, tmp_path: Path, kernels: Any, options: list[object], said: str
) -> None:
    """A study of 3 kernels trains on 2."""
    file = tidy.write_csv(tmp_path / "table.csv", tidy.rows(kernels))
    given = ["study", "errors", file, *options, "-o", tmp_path / "out"]
    assert said in refuse(capsys, tmp_path, *given)


def test_several_tables(capsys: Capture, tmp_path: Path) -> None:
    files = [tidy.write_csv(tmp_path / f"{name}.csv", tidy.rows()) for name in "ab"]
    given = ["train", *files, "--base", "mid", "-o", tmp_path / "out"]
    message = refuse(capsys, tmp_path, *given)
    assert message == "'wu' learns from one TABLE at a time; see 'mlscale train --help'"


def test_what_is_good_is_taken(capsys: Capture, tmp_path: Path) -> None:
    """The tables above, left alone, are good for every command: each refusal has its one cause."""
    model = train(capsys, tmp_path, tidy.rows())
    table = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
    succeed(capsys, "predict", model, table, "-o", tmp_path / "predicted")
    succeed(capsys, "study", "errors", table, "--predictor", "mean-surface")
    file = tidy.write_csv(tmp_path / "dvfs.csv", in_format_of("import", tidy.rows()))
    succeed(capsys, "import", "dvfs", file, "--device", "gtx980", "-o", tmp_path / "imported")
