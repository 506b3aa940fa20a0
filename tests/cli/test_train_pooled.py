"""train with the tables of several GPUs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import bottleneck_kernels as made

from mlscale import load

MID = made.CLOCKS.mid


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Four kernels of the GPU in question, six of another."""
    made.measurements(4).write(tmp_path / "first.csv")
    replace(made.measurements(6, seed=3), device="gtx1080ti").write(tmp_path / "second.csv")
    return tmp_path / "first.csv", tmp_path / "second.csv"


def test_time_is_learnt_from_all_and_serves_power(
    capsys: Capture, tmp_path: Path, tables: tuple[Path, Path]
) -> None:
    """Better time, and so power, than from the first alone: all are of one law."""
    given = ["--base", "mid", "--predictor", "bottleneck"]
    succeed(capsys, "train", tables[0], *given, "-o", tmp_path / "alone")
    out, _ = succeed(capsys, "train", *tables, *given, "-o", tmp_path / "pooled")
    assert "time learnt from 1 more: gtx1080ti" in out
    alone, pooled = load(tmp_path / "alone"), load(tmp_path / "pooled")
    assert (pooled.device, pooled.base, pooled.grid) == ("gtx980", MID, made.CLOCKS)
    assert pooled.card["kernels"] == ["k0", "k1", "k2", "k3"]
    assert pooled.card["time_learnt_from"] == ["gtx980", "gtx1080ti"]
    new = made.measurements(9, seed=1)
    one, both = (model.predict(new.profiles(MID)) for model in (alone, pooled))
    for name in ("time", "power"):
        actual = new.quantity(name) / new.quantity(name)[:, :1, 2:3, 2:3]
        errors = [np.abs(found[name].values / actual - 1).mean() for found in (one, both)]
        assert errors[1] < errors[0]


def test_times_that_rise_with_the_clocks_are_said_once(capsys: Capture, tmp_path: Path) -> None:
    """Though time and power are each learnt from them."""
    table = made.measurements(4)
    rising = table.time_samples[:, :, :, ::-1, ::-1].copy()
    replace(table, time_samples=rising).write(tmp_path / "t.csv")
    _, err = succeed(capsys, "train", tmp_path / "t.csv", "--base", "mid", "-o", tmp_path / "m")
    assert err.count("longer at the highest clocks than at the lowest") == 1


def test_bad_input(capsys: Capture, tmp_path: Path, tables: tuple[Path, Path]) -> None:
    given = ["train", *tables, "--base", "mid", "-o", tmp_path / "out"]
    one_at_a_time = "'wu' learns from one TABLE at a time; see 'mlscale train --help'"
    assert refuse(capsys, tmp_path, *given, "--predictor", "wu") == one_at_a_time
    message = refuse(capsys, tmp_path, *given, "--leave-out", "none")
    assert message == f"{tables[0]}, {tables[1]}: there is no application 'none' to leave out"
