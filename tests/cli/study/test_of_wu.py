"""mlscale study classifier and importance: text, files and the pictures."""

import json
from pathlib import Path

from command import Capture, succeed
from mlscale.cli.study.of_wu import as_text
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


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    """Made rows: an increase of -0.001 % is 0.00, one of -0.006 % is -0.01."""
    row = {
        "what": "shuffled", "feature": "f", "n_features": 1, "chosen_percent": 0.0, "mape": 1.0,
        "standard_error": 0.0, "increase": -0.001, "increase_standard_error": 0.0, "table": "t",
        "quantity": "time", "features": "raw", "n_kernels": 2, "n_seeds": 1,
        "standard_error_over": "2 kernels",
        "base": {"cu_count": 4, "engine_mhz": 1000.0, "memory_mhz": 500.0},
    }  # fmt: skip
    document = {"study": "importance", "rows": [row], "protocol": "k-fold", "clusters": 2}
    assert "0.00      0.00" in as_text(document)
    assert "-0.00" not in as_text(document)
    row["increase"] = -0.006
    assert " -0.01 " in as_text(document)
