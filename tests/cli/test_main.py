"""The entry point: usage, one line for every complaint, `python -m mlscale`.

Commands and complaints are by hand; figures of tidy.rows() are closed forms.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from command import Capture, at_base, refuse, succeed, train
from synthetic import tidy

import mlscale
from mlscale.cli import main as entry

TRAIN = "train t.csv --base mid -o m"
PREDICT = "predict m.mlscale p.csv"
ERRORS = "study errors t.csv"

# What is refused by its words alone, before any file is looked for: words of the complaint, and
# the command whose help it names.
USAGE = {
    "datasets list all": ("unrecognized arguments: all", "datasets list"),
    f"{ERRORS} --quick": ("there is no option --quick", "study errors"),
    "predict": ("required: FILE", "predict"),
    "train t.csv --base mid": ("required: -o/--output", "train"),
    "import dvfs f.csv": ("required: -o/--output", "import"),
    "predict m.mlscale": ("name the profile to predict too", "predict"),
    f"{PREDICT} --model m.mlscale": ("give --model or MODEL PROFILE, not both", "predict"),
    f"{PREDICT} --format xml": ("'xml'", "predict"),
    f"{PREDICT} --format parquet": ("not for a terminal; name a file with -o FILE", "predict"),
    f"{PREDICT} --at cu=16,engine=fast": ("'cu=16,engine=fast': 'fast' is not a n", "predict"),
    "advise p.csv --max-time 0": ("'0' is not a positive, finite number", "advise"),
    "advise p.csv --max-slowdown -1": ("'-1' is not a finite number of at least 0", "advise"),
    "devices list --format csv --json": ("not allowed with argument", "devices list"),
    f"{TRAIN} --predictor wo": ("no-scaling, engine-bound, core-bound", "train"),
    f"{TRAIN} --predictor extra-trees": ("exists for studies only", "train"),
    f"{TRAIN} --features table2 --features-of ncu": ("not allowed with argument", "train"),
    f"{TRAIN} --clusters 0": ("'0' is not a whole number of at least 1", "train"),
    f"{TRAIN} --seed one": ("'one' is not a whole number from 0", "train"),
    "train t.csv --base middle -o m": ("'middle' is no setting; cu, engine and", "train"),
    "train t.csv ./t.csv --base mid -o m": ("t.csv: is given twice", "train"),
    f"{ERRORS} --protocol any": ("leave-one-application-out", "study errors"),
    f"{ERRORS} --incomplete skip": ("'skip'", "study errors"),
    "import t.csv -o x.csv --base cu=0": ("'0' in 'cu=0' must be positive and finite", "import"),
    "collect": ("name a folder for the measurements with -o DIR", "collect"),
    f"collect --dry-run --repeat {400 * '9'}": ("is not a whole number", "collect"),
}
# Other refusals of a command's words.
REFUSED = {
    ("literature", "wang-chu"): "'literature' .*source repository",
    ("study", "compare", "t.csv"): "'study compare' .*several predictors",
    ("import", "ncu", "run.csv", "-o", "t.csv"): "'import ncu' .*'import FILE …'",
    ("advise", "run.csv", "--next-profile"): "'--next-profile' .*0.6 of the clock",
    ("predict", "m.mlscale", "p.csv", "--also", "@engine=400"): "names no file before '@'",
    ("predict", "none.csv"): "none.csv: cannot be read: No such file or directory",
}
pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.fixture
def files(capsys: Capture) -> Path:
    """In the current directory a table, a profile, and a model."""
    rows = tidy.rows(["a", "b", "c", "d"])
    tidy.write_csv(Path("t.csv"), rows)
    tidy.write_csv(Path("p.csv"), at_base(rows))
    train(capsys, Path.cwd(), rows, "--predictor", "mean-surface").rename("m.mlscale")
    return Path.cwd()


@pytest.mark.parametrize(("command", "complaint"), USAGE.items(), ids=USAGE)
def test_bad_usage_says_what_is_wrong_and_where_help_is(
    capsys: Capture, files: Path, command: str, complaint: tuple[str, str]
) -> None:
    said, place = complaint
    message = refuse(capsys, files, *command.split())
    assert said in message
    assert message.endswith(f"; see '{f'mlscale {place}'.rstrip()} --help'")


@pytest.mark.parametrize(("words", "told"), REFUSED.items())
def test_what_is_refused(capsys: Capture, files: Path, words: tuple[str, ...], told: str) -> None:
    assert re.search(told, refuse(capsys, files, *words))


def test_a_file_may_be_called_as_a_command_that_went(capsys: Capture, tmp_path: Path) -> None:
    Path("ncu").write_text("nothing that is known")
    message = refuse(capsys, tmp_path, "import", "ncu", "-o", "t.csv")
    assert "ncu: is nothing that mlscale knows" in message


def test_what_is_read_is_not_replaced(capsys: Capture, files: Path) -> None:
    for words in ("predict m.mlscale p.csv -o ./p.csv", "train t.csv --base mid -o t.csv"):
        assert "is also an input; name another" in refuse(capsys, files, *words.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train --help", ["--base", "--predictor", "--leave-out"]),
        ("predict --help", ["--at", "--format", "--json"]),
        ("study errors --help all", ["--protocol", "--seeds", "--json"]),
        ("import --help", ["dvfs", "kernel-tuner", "--device", "--base", "--append"]),
        ("devices --help", ["list", "show"]),
        ("completion --help", ["bash", "zsh", "tcsh"]),
        ("--version", [mlscale.__version__]),
    ],
)
def test_help_and_version_go_to_stdout(capsys: Capture, arguments: str, words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        entry.main(arguments.split())
    out, err = capsys.readouterr()
    assert (stopped.value.code, err) == (0, "")
    assert [word for word in words if word not in out] == []


@pytest.mark.parametrize("words", ["datasets list", "datasets show p100", "devices list",
                                   "devices show p100", "show kernels"])  # fmt: skip
def test_json_is_one_document(capsys: Capture, words: str) -> None:
    assert json.loads(succeed(capsys, *words.split(), "--json")[0])


def test_an_interruption_is_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mlscale.data.measurements.read", interrupt)
    assert entry.main(TRAIN.split()) == 130  # 128 + SIGINT
    assert capsys.readouterr() == ("", "mlscale: interrupted\n")


def test_warnings_of_the_data_are_a_line_once_and_others_as_python_shows_them(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(*_: object) -> None:
        warnings.simplefilter("always")
        warnings.warn("old", UserWarning, stacklevel=1)
        for _number in range(2):
            mlscale.errors.warn("T05", "odd\ndata")
        raise mlscale.InputError("enough")

    monkeypatch.setattr("mlscale.data.measurements.read", warn)
    assert entry.main(TRAIN.split()) == 2
    first, *_, data, error = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r".*test_main\.py:\d+: UserWarning: old", first)
    assert (data, error) == ("mlscale: warning T05: odd data", "mlscale: error: enough")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m mlscale` in a process of its own."""
    command = [sys.executable, "-m", "mlscale", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_as_a_module(capsys: Capture) -> None:
    """mean-surface of one kernel is that kernel: tidy.rows gives it 1, 2, 3, 4 ms."""
    tidy.write_csv(Path("t.csv"), tidy.rows(["first"]))
    succeed(capsys, *TRAIN.split(), "--predictor", "mean-surface")
    done = run("predict", "t.csv", "--model", "m", "--format", "csv")
    assert done.returncode == 0
    header, *lines = (line.split(",") for line in done.stdout.splitlines())
    times = [float(line[header.index("time_ms")]) for line in lines]
    assert times == pytest.approx([1, 2, 3, 4], rel=1e-12)
    done = run("predict", "nothing.csv")
    assert (done.returncode, done.stdout) == (2, "")
    said = "mlscale: error: nothing.csv: cannot be read: No such file or directory\n"
    assert done.stderr == said


def test_a_terminal_without_all_letters_gets_escapes(capsys: Capture) -> None:
    tidy.write_csv(Path("t.csv"), tidy.rows(("grö\u00dfer", "x", "y")))
    succeed(capsys, *TRAIN.split())
    done = run("predict", "t.csv", "--model", "m", "--kernels", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfer" in done.stdout
    assert "\\u2" not in run("predict", "t.csv", "--model", "m", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize("command", ["study", "devices", "datasets"])
def test_a_command_of_several_alone_shows_them(capsys: Capture, command: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        entry.main([command])
    assert stopped.value.code == 0
    assert f"usage: mlscale {command}" in capsys.readouterr().out
