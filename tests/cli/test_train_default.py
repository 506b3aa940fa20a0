"""The predictor that train takes where none is named, and why it is no better one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, succeed
from synthetic import bottleneck_kernels, sampled_kernels, tidy

from mlscale import load, read, train
from mlscale.data.table_files import write_table


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


def test_why_sampled_profiles_get_wu(capsys: Capture, tmp_path: Path) -> None:
    """The times of a table at one memory clock, taken for those of another too."""
    one = sampled_kernels.measurements(4).to_table()
    rows = len(one)
    numbers = {name: np.tile(values, 2) for name, values in one.numbers.items()}
    numbers["memory_mhz"][rows:] += 100
    text = {name: [*cells, *cells] for name, cells in one.text.items()}
    two = replace(one, numbers=numbers, text=text, lines=())
    write_table(two, tmp_path / "t.csv")
    given = ("train", tmp_path / "t.csv", "--base", "mid", "-o", tmp_path / "m.mlscale")
    out, _ = succeed(capsys, *given)
    assert ": 'wu' for time" in out
    why = "not 'sampled', which gives intervals: 'sampled' learns from kernels at one CU count, "
    assert why in out
    assert "1 CU count, 7 engine clocks and 2 memory clocks" in out


def test_why_sampled_profiles_without_a_share_of_the_memory_get_wu(
    capsys: Capture, tmp_path: Path
) -> None:
    table = sampled_kernels.measurements(4).without_counters(["dram_active"])
    table.write(tmp_path / "t.parquet")
    given = ("train", tmp_path / "t.parquet", "--base", "mid", "-o", tmp_path / "m.mlscale")
    out, _ = succeed(capsys, *given)
    assert ": 'wu' for time" in out
    assert "not 'sampled', which gives intervals: no training kernel has a value for 'dram" in out
