"""mlscale study classifier and importance: text, files and the pictures."""

import json
from pathlib import Path

from command import Capture, succeed
from synthetic import kernels as made

GIVEN = ("--clusters", 4, "--seeds", 1, "--protocol", "k-fold")


def test_classifier(tmp_path: Path, capsys: Capture) -> None:
    table, out = tmp_path / "made.csv", tmp_path / "out"
    made.measurements(power=False).write(table)
    printed, _ = succeed(capsys, "study", "classifier", table, *GIVEN, "-o", out)
    assert "k-fold, 4 clusters" in printed
    # Known truth: four laws that the counters tell apart; 100 % right, training and held out.
    assert "100.0     100.0" in printed
    names = {"study.json", "classifier.csv", "confusion.csv"}
    names |= {f"confusion-made-time-raw.{kind}" for kind in ("png", "svg")}
    assert {file.name for file in out.iterdir()} == names
    document = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert document["rows"][0]["accuracy"] == 100


def test_importance(tmp_path: Path, capsys: Capture) -> None:
    table, folder = tmp_path / "made.csv", tmp_path / "new"
    made.measurements(power=False).write(table)
    out, _ = succeed(capsys, "study", "importance", table, *GIVEN, "-o", folder)
    assert "made: error of time [%], wu with raw features, 12 kernels" in out
    assert all(f"\nbusy_{law} " in out for law in made.LAWS)
    assert "\nbest 1 " in out
    assert "\nall " in out
    names = {"study.json", "importance.csv"}
    names |= {f"importance-made-time-raw.{kind}" for kind in ("png", "svg")}
    assert {file.name for file in folder.iterdir()} == names
