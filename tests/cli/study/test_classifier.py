"""mlscale study classifier: text, files and the picture."""

import json
from pathlib import Path

import pytest
from synthetic import kernels as made

from mlscale.cli.main import main


def test_text_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "made.csv", tmp_path / "out"
    made.measurements(power=False).write(table)
    given = ["study", "classifier", str(table), "--clusters", "4", "--seeds", "1"]
    given += ["--protocol", "k-fold"]
    assert main([*given, "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "k-fold, 4 clusters" in printed
    # Known truth: four laws that the counters tell apart; 100 % right, training and held out.
    assert "100.0     100.0" in printed
    names = {"study.json", "classifier.csv", "confusion.csv"}
    names |= {f"confusion-made-time-raw.{kind}" for kind in ("png", "svg")}
    assert {file.name for file in out.iterdir()} == names
    document = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert document["rows"][0]["accuracy"] == 100
