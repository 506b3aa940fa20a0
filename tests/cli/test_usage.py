"""Options that do not suit each other: refused in one line, which names the command's help."""

from pathlib import Path

import pytest
from command import Capture, at_base, refuse, train
from synthetic import tidy

from mlscale.cli.main import main

TRAIN = "train t.csv --base mid -o m"
PREDICT = "predict m.mlscale p.csv"
COLLECT = "collect -o out"

REFUSED = {
    f"{TRAIN} --predictor extra-trees": (
        "--predictor: 'extra-trees' exists for studies only and cannot be trained to a file: it "
        "has no methods state and restore"
    ),
    "train t.csv ./t.csv --base mid -o m --predictor bottleneck": (
        "t.csv: is given twice, and would count twice"
    ),
    f"{TRAIN} --features table2 --features-of ncu": (
        "argument --features-of: not allowed with argument --features"
    ),
    "train t.csv --base middle -o m": (
        "argument --base: 'middle' is not a configuration; write it as cu=16,engine=800,memory=700"
    ),
    f"{PREDICT} --at cu=16,engine=fast": "argument --at: 'fast' in 'cu=16,engine=fast' is not a "
    "number",
    f"{PREDICT} --model m.mlscale": (
        "m.mlscale is a model too; give --model or MODEL PROFILE, not both"
    ),
    f"{PREDICT} --format parquet": (
        "--format parquet is not for a terminal; name a file with -o FILE"
    ),
    f"{PREDICT} --predictor nearest": (
        "argument --predictor: 'nearest' is mlscale's own, and a model file says so"
    ),
    "advise m.mlscale p.csv --max-time 0": (
        "argument --max-time: '0' is not a positive, finite number"
    ),
    "advise m.mlscale p.csv --max-slowdown -1": (
        "argument --max-slowdown: '-1' is not a finite number of at least 0"
    ),
    "collect": "name a folder for the measurements with -o DIR",
    f"{COLLECT} --dry-run --micro": "argument --micro: not allowed with argument --dry-run",
    "import t.csv -o x.csv --base cu=0": (
        "argument --base: '0' in 'cu=0' must be positive and finite"
    ),
}


def help_of(command: str) -> str:
    """The command without its operands, as its help is asked for."""
    words = command.split()
    several = words[0] == "study"
    return " ".join(["mlscale", *words[: 1 + several], "--help"])


@pytest.fixture
def folder(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a table, a profile, and a model."""
    monkeypatch.chdir(tmp_path)
    rows = tidy.rows(["a", "b", "c", "d"])
    tidy.write_csv(tmp_path / "t.csv", rows)
    tidy.write_csv(tmp_path / "p.csv", at_base(rows))
    train(capsys, tmp_path, rows, "--predictor", "mean-surface").rename("m.mlscale")
    return tmp_path


@pytest.mark.parametrize(("command", "complaint"), REFUSED.items(), ids=REFUSED.keys())
def test_is_refused(capsys: Capture, folder: Path, command: str, complaint: str) -> None:
    message = refuse(capsys, folder, *command.split())
    assert message == f"{complaint}; see '{help_of(command)}'"


@pytest.mark.parametrize("number", ["1" + 15 * "0" + "1", 400 * "9"])
def test_a_number_without_end_is_refused(capsys: pytest.CaptureFixture[str], number: str) -> None:
    assert main(["collect", "--dry-run", "--repeat", number]) == 2
    assert "is more than 1e+15" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (("predict", "p.csv", "--model", ""), "--model"),  # an unset "$MODEL" was as no --model
        (("predict", "p.csv", "--model="), "--model"),
        (("predict", " "), "predict"),
        (("",), "mlscale"),
    ],
)
def test_an_empty_word_is_refused(
    capsys: Capture, tmp_path: Path, words: tuple[str, ...], before: str
) -> None:
    said = (
        f"nothing stands behind '{before}' but an empty word; is a variable of the shell not set?"
    )
    assert refuse(capsys, tmp_path, *words) == said


def test_a_configuration_without_a_file_is_refused(capsys: Capture, folder: Path) -> None:
    assert refuse(capsys, folder, *f"{PREDICT} --also @engine=400".split()) == (
        "--also @engine=400: names no file before '@'"
    )
