"""The predictor that train takes where none is named, and why it is no better one."""

from pathlib import Path

import numpy as np
import pytest
from command import Capture, succeed
from synthetic import bottleneck_kernels, sampled_kernels, tidy

from mlscale import load, read, train


def test_default_is_the_predictor_that_suits(capsys: Capture, tmp_path: Path) -> None:
    """Said or left away, on the command line and in Python; at the highest clocks."""
    tidy.write_csv(tmp_path / "t.csv", tidy.rows())
    model = tmp_path / "m.mlscale"
    given = ["train", tmp_path / "t.csv", "--base", "highest", "--predictor", "default"]
    out, _ = succeed(capsys, *given, "-o", model)
    assert ": 'wu' for time and power, " in out
    assert "base cu=4,engine=800,memory=" in out
    trained = train(read(tmp_path / "t.csv"), "highest", "default")
    assert {p.name for p in trained.predictors.values()} == {"wu"}
    assert trained.base == load(model).base == trained.grid.highest


@pytest.mark.parametrize(("base", "is_told"), [("mid", True), ("highest", False)])
def test_default_looks_at_the_counters_of_the_base(
    capsys: Capture, tmp_path: Path, base: str, is_told: bool
) -> None:
    """One kernel was counted at the middle of the clocks alone, so not at the highest."""
    table = bottleneck_kernels.measurements(kernels=4)
    table.counter_samples[:, 0, -1, -1, -1] = np.nan
    table.write(tmp_path / "t.csv")
    given = ("train", tmp_path / "t.csv", "--base", base, "-o", tmp_path / "m.mlscale")
    out, _ = succeed(capsys, *given)
    assert (": 'bottleneck' for time" in out) == is_told
    assert ("not 'bottleneck', which gives intervals: kernel " in out) == (not is_told)


def test_sampled_profiles_get_board_time(capsys: Capture, tmp_path: Path) -> None:
    """Their shares are not looked at, so that a table without them is as good."""
    table = sampled_kernels.measurements(4)
    for one in (table, table.without_counters(table.counter_names)):
        one.write(tmp_path / "t.parquet")
        given = ("train", tmp_path / "t.parquet", "--base", "mid", "-o", tmp_path / "m.mlscale")
        out, _ = succeed(capsys, *given)
        assert ": 'board-time' for time, " in out


@pytest.mark.parametrize("form", ["-o {}", "-o{}", "--output {}", "--output={}", "--out={}"])
def test_the_model_keeps_the_command_without_its_own_name_and_folders(
    capsys: Capture, tmp_path: Path, form: str
) -> None:
    tidy.write_csv(tmp_path / "t.csv", tidy.rows())
    model = tmp_path / "nearest"
    given = ("train", f"{tmp_path}/t.csv", "--base", "mid", "--predictor", "nearest")
    succeed(capsys, *given, *form.format(model).split())
    kept = "mlscale train t.csv --base mid --predictor nearest "
    assert load(model).card["made_by"]["command"] == kept + form.format("MODEL")


def test_a_model_called_as_its_predictor(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tidy.write_csv(tmp_path / "t.csv", tidy.rows())
    given = ("train", "t.csv", "--base", "mid", "--predictor", "nearest", "-o", "nearest")
    succeed(capsys, *given)
    kept = "mlscale train t.csv --base mid --predictor nearest -o MODEL"
    assert load("nearest").card["made_by"]["command"] == kept
