"""Numbers that no measurement gives: refused in one line, or told, by every command.

Tables are made of one law (tests/synthetic/bottleneck_kernels.py) for a GTX 980.
"""

from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from synthetic import bottleneck_kernels as made
from synthetic import tidy

from mlscale import ConfigGrid
from mlscale.cli.main import main

GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))
READ = "dram_read_transactions"
EXTREMES = [("time_ms", "1e40"), ("power_w", "1e308"), (READ, "-5")]

Files = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A table, the profiles of its kernels at the base, and a model of it."""
    folder = tmp_path_factory.mktemp("extremes")
    table, profile, model = (folder / name for name in ("t.csv", "p.csv", "m.mlscale"))
    made.measurements(6, grid=GRID).write(table)
    base = (GRID.mid.engine_mhz, GRID.mid.memory_mhz)
    rows = tidy.read_csv(table)
    at_base = [r for r in rows if (float(r["engine_mhz"]), float(r["memory_mhz"])) == base]
    tidy.write_csv(profile, at_base)
    assert main(["train", str(table), "--base", "highest", "-o", str(model)]) == 0
    return table, profile, model


def changed(path: Path, folder: Path, **values: str) -> Path:
    """The table with other values in its second row."""
    rows: list[dict[str, Any]] = [*tidy.read_csv(path)]
    rows[1] |= values
    return tidy.write_csv(folder / path.name, rows)


def commands(table: Path, profile: Path, model: Path, folder: Path) -> list[list[Any]]:
    """Every command that reads tables or profiles."""
    return [
        ["predict", profile, "--model", model],
        ["advise", profile, "--model", model],
        ["report", profile, "--model", model, "-o", folder / "r.html"],
        ["train", table, "--base", "highest", "-o", folder / "x.mlscale"],
        ["study", "errors", table, "--predictor", "nearest", "--seeds", "1"],
        ["study", "advice", table, "--predictor", "nearest", "--seeds", "1"],
    ]


@pytest.mark.parametrize(("column", "value"), EXTREMES)
def test_what_cannot_be_is_one_line(
    capsys: Capture, files: Files, tmp_path: Path, column: str, value: str
) -> None:
    table, profile = (changed(path, tmp_path, **{column: value}) for path in files[:2])
    for command in commands(table, profile, files[2], tmp_path):
        message = refuse(capsys, tmp_path, *command)
        assert f"row 3, column '{column}': " in message


def test_seconds_for_milliseconds_are_refused(
    capsys: Capture, files: Files, tmp_path: Path
) -> None:
    """More than 10 times the DRAM's peak cannot be."""
    _, profile, model = files
    rows = [{**row, "time_ms": float(row["time_ms"]) / 1000} for row in tidy.read_csv(profile)]
    seconds = tidy.write_csv(tmp_path / "s.csv", rows)
    message = refuse(capsys, tmp_path, "predict", seconds, "--model", model)
    assert "its DRAM traffic is" in message
    assert "in a table also time_ms in milliseconds and of one launch" in message


def test_a_little_more_than_the_peak_is_told(capsys: Capture, files: Files, tmp_path: Path) -> None:
    """By hand: 2 x 4 GHz x 256 bit is 256 GB/s, so 12.8e6 sectors of 32 B in 1 ms are 1.6 of it."""
    _, profile, model = files
    values = {"time_ms": "1", READ: "12.8e6", "dram_write_transactions": "0"}
    doubtful = changed(profile, tmp_path, **values)
    _, err = succeed(capsys, "predict", doubtful, "--model", model, "--notes")
    assert ": 1.60 times the possible DRAM traffic: " in err
