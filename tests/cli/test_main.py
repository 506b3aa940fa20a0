"""The entry point: usage, one line for every complaint, `python -m mlscale`."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import refuse, succeed
from synthetic import tidy

import mlscale
from mlscale.cli import main as entry

USAGE = {
    "no command": ([], "required: COMMAND; see 'mlscale --help'"),
    "unknown command": (["trian", "t.csv"], "invalid choice: 'trian'"),
    "unknown option": (["predict", "m", "p", "--fast"], "unrecognized arguments: --fast"),
    "train without base": (["train", "t.csv", "-o", "m"], "required: --base"),
    "train without output": (["train", "t.csv", "--base", "mid"], "required: -o/--output"),
    "train without table": (["train", "--base", "mid", "-o", "m"], "required: TABLE"),
    "import without output": (["import", "dvfs", "f.csv"], "required: -o/--output"),
    "predict without profile": (["predict", "m.mlscale"], "name the profile to predict too"),
    "study without table": (["study", "errors"], "required: TABLE"),
    "option without value": (["study", "errors", "t.csv", "--seeds"], "--seeds: expected one"),
    "unknown study": (["study", "mistakes", "t.csv"], "invalid choice: 'mistakes'"),
}

CHOICES = {
    "device": (["devices", "show", "gtx970"], "gtx970"),
    "predictor": (["train", "t.csv", "--base", "mid", "-o", "m", "--predictor", "wo"], "wo"),
    "studied predictor": (["study", "errors", "t.csv", "--predictor", "oracle"], "oracle"),
    "features": (["train", "t.csv", "--base", "mid", "-o", "m", "--features", "rate"], "rate"),
    "protocol": (["study", "errors", "t.csv", "--protocol", "10-fold"], "10-fold"),
    "quantity": (["study", "errors", "t.csv", "--quantity", "energy"], "energy"),
    "format": (["predict", "m", "p", "--format", "xml"], "xml"),
    "incomplete": (["study", "errors", "t.csv", "--incomplete", "keep"], "keep"),
    "repetitions": (["study", "errors", "t.csv", "--repetitions", "max"], "max"),
    "clusters, none": (["train", "t.csv", "--base", "mid", "-o", "m", "--clusters", "0"], "0"),
    "clusters, half": (["study", "errors", "t.csv", "--clusters", "2.5"], "2.5"),
    "seeds, negative": (["study", "errors", "t.csv", "--seeds=-1"], "-1"),
    "seed": (["train", "t.csv", "--base", "mid", "-o", "m", "--seed", "one"], "one"),
}


FORMER = {
    ("literature", "wang-chu"): "'literature' .*folder reproduction/",
    ("study", "compare", "t.csv"): "'study compare' .*several predictors",
    ("import", "ncu", "run.csv", "-o", "t.csv"): "'import ncu' .*'import FILE …'",
    ("advise", "run.csv", "--next-profile"): "'--next-profile' .*two thirds of the clock",
}

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.mark.parametrize(("words", "told"), FORMER.items())
def test_what_went_says_what_to_use_instead(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: Sequence[str], told: str
) -> None:
    assert re.search(told, refuse(capsys, tmp_path, *words))


def test_a_file_may_be_called_as_a_command_that_went(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Path("ncu").write_text("nothing that is known")
    message = refuse(capsys, tmp_path, "import", "ncu", "-o", "t.csv")
    assert "ncu: is nothing that mlscale knows" in message


@pytest.mark.parametrize(("arguments", "problem"), USAGE.values(), ids=USAGE.keys())
def test_bad_usage_says_what_is_wrong_and_where_help_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: Sequence[str], problem: str
) -> None:
    message = refuse(capsys, tmp_path, *arguments)
    assert problem in message
    assert "--help'" in message


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["--fast"], "mlscale"),
        (["predict", "m", "p", "--fast"], "mlscale predict"),
        (["predict"], "mlscale predict"),
        (["import", "--fast"], "mlscale import"),
        (["datasets", "fetch", "--seed", "3"], "mlscale datasets fetch"),
        (["datasets", "list", "all"], "mlscale datasets list"),
        (["study", "errors", "t.csv", "--fast"], "mlscale study errors"),
    ],
)
def test_bad_usage_points_at_the_help_of_the_command_that_was_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: Sequence[str], place: str
) -> None:
    assert refuse(capsys, tmp_path, *arguments).endswith(f"; see '{place} --help'")


@pytest.mark.parametrize(("arguments", "given"), CHOICES.values(), ids=CHOICES.keys())
def test_a_bad_choice_is_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: Sequence[str], given: str
) -> None:
    # The complaint comes before the files, which do not exist, are looked for.
    message = refuse(capsys, tmp_path, *arguments)
    assert f"'{given}'" in message
    assert "--help'" in message


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        (CHOICES["predictor"][0], ["no-scaling", "mean-surface", "nearest", "wu"]),
        (CHOICES["device"][0], ["'mlscale devices list'"]),
        (CHOICES["protocol"][0], ["leave-one-application-out", "k-fold", "holdout"]),
        (USAGE["unknown command"][0], ["import", "train", "predict", "study"]),
    ],
)
def test_a_bad_choice_is_told_the_good_ones(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: Sequence[str],
    choices: Sequence[str],
) -> None:
    message = refuse(capsys, tmp_path, *arguments)
    assert [choice for choice in choices if choice not in message] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["demo", "import", "train", "predict", "study"]),
        (["train", "--help"], ["--base", "--predictor", "--leave-out"]),
        (["predict", "--help"], ["--at", "--format"]),
        (["study", "errors", "--help"], ["--protocol", "--seeds", "--json"]),
        (["import", "--help"], ["dvfs", "kernel-tuner", "--device", "--base", "--append"]),
        (["devices", "--help"], ["list", "show"]),
        (["completion", "--help"], ["bash", "zsh", "tcsh"]),
        (["--version"], [mlscale.__version__]),
    ],
)
def test_help_and_version_go_to_stdout(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        entry.main(arguments)
    out, err = capsys.readouterr()
    assert (stopped.value.code, err) == (0, "")
    assert [word for word in words if word not in out] == []


def test_an_interruption_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mlscale.data.measurements.read", interrupt)
    assert entry.main(["train", "t.csv", "--base", "mid", "-o", "m"]) == 130  # 128 + SIGINT
    assert capsys.readouterr() == ("", "mlscale: interrupted\n")


def test_other_warnings_look_as_python_shows_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a warning about the data has the command's prefix and is one line."""

    def warn(*_: object) -> None:
        warnings.simplefilter("always")
        warnings.warn("old", UserWarning, stacklevel=1)
        warnings.warn("odd\ndata", mlscale.DataWarning, stacklevel=1)
        raise mlscale.InputError("enough")

    monkeypatch.setattr("mlscale.data.measurements.read", warn)
    entry.main(["train", "t.csv", "--base", "mid", "-o", "m"])
    first, *_, last_but_one, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r".*test_main\.py:\d+: UserWarning: old", first)
    assert last_but_one == "mlscale: warning: odd data"
    assert last == "mlscale: error: enough"


class TestAsAModule:
    """`python -m mlscale`, in a process of its own."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mlscale", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_predicts(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        # mean-surface of one kernel is that kernel: tidy.rows gives it 1, 2, 3, 4 ms (closed form).
        table = tidy.write_csv(tmp_path / "table.csv", tidy.rows(["first"]))
        succeed(capsys, *f"train {table} --base mid --predictor mean-surface -o m.mlscale".split())
        done = self.run("predict", "m.mlscale", "table.csv", "--format", "csv")
        assert done.returncode == 0
        lines = [line.split(",") for line in done.stdout.splitlines()]
        time = lines[0].index("time_ms")
        times = [float(line[time]) for line in lines[1:]]
        assert times == pytest.approx([1, 2, 3, 4], rel=1e-12)

    def test_refuses_in_one_line(self) -> None:
        done = self.run("predict", "nothing.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "mlscale: error: nothing.csv: cannot be read: No such file or directory\n"
        )


def test_a_terminal_without_all_letters_gets_escapes(tmp_path: Path) -> None:
    rows = tidy.rows(("grö\u00dfer", "x", "y"))
    table, model = tidy.write_csv(tmp_path / "t.csv", rows), tmp_path / "m.mlscale"
    base = "cu=4,engine=800,memory=700"
    assert entry.main(["train", str(table), "--base", base, "-o", str(model)]) == 0
    result = subprocess.run(
        [sys.executable, "-m", "mlscale", "predict", table, "--model", model],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "gr\\xf6\\xdfer" in result.stdout
