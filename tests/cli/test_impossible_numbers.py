"""Numbers that no measurement gives: refused in one line, or told, by every command.

Tables are made of one law (tests/synthetic/bottleneck_kernels.py) for a GTX 980.
"""

from pathlib import Path
from typing import Any

import pytest
from command import Cli
from synthetic import bottleneck_kernels as made
from synthetic import tidy
from synthetic.tidy import refused

from mlscale import ConfigGrid, load
from mlscale.cli.main import main

ROOT = Path(__file__).parents[2]
BY_HAND = ROOT / "datasets/h100-by-hand.csv"
FAST, SLOW = (ROOT / "docs/logs" / f"training-{mhz}.csv" for mhz in (1755, 1170))
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
    cli: Cli, files: Files, tmp_path: Path, column: str, value: str
) -> None:
    table, profile = (changed(path, tmp_path, **{column: value}) for path in files[:2])
    for command in commands(table, profile, files[2], tmp_path):
        assert f"row 3, column '{column}': " in cli.refused(*command)


def test_seconds_for_milliseconds_are_refused(cli: Cli, files: Files, tmp_path: Path) -> None:
    """More than 10 times the DRAM's peak cannot be."""
    _, profile, model = files
    rows = [{**row, "time_ms": float(row["time_ms"]) / 1000} for row in tidy.read_csv(profile)]
    seconds = tidy.write_csv(tmp_path / "s.csv", rows)
    message = cli.refused("predict", seconds, "--model", model)
    assert "its DRAM traffic is" in message
    assert "in a table also time_ms in milliseconds and of one launch" in message


def test_a_little_more_than_the_peak_is_told(cli: Cli, files: Files, tmp_path: Path) -> None:
    """By hand: 2 x 4 GHz x 256 bit is 256 GB/s, so 12.8e6 sectors of 32 B in 1 ms are 1.6 of it."""
    _, profile, model = files
    values = {"time_ms": "1", READ: "12.8e6", "dram_write_transactions": "0"}
    doubtful = changed(profile, tmp_path, **values)
    err = cli.told("predict", doubtful, "--model", model, "--notes")
    assert ": 1.60 times the possible DRAM traffic: " in err


@pytest.mark.parametrize("more", [(), ("--extrapolate",)])
def test_a_clock_far_below_the_trained_ones_is_refused(
    cli: Cli, files: Files, more: tuple[str, ...]
) -> None:
    """The GTX 980's clocks are in no table; the model knows 500 and 1000 MHz, so 167 is least."""
    command = ("predict", files[1], "--model", files[2], *more, "--at")
    told = (
        "gtx980, engine_mhz: 1 MHz is impossible, the lowest clock known is 500 MHz; is 1GHz meant?"
    )
    assert cli.refused(*command, "engine=1") == told
    assert "500 MHz; give it in MHz" in cli.refused(*command, "engine=160")
    with refused("is 1GHz meant"):
        load(files[2]).predict(files[1], at={"engine": 1})


@pytest.mark.parametrize("engine", ["1.2GHz", "1200", "120"])
def test_a_clock_that_a_gpu_may_have_is_predicted(cli: Cli, engine: str) -> None:
    """120 MHz is above a third of an H100's least, 345."""
    cli("predict", BY_HAND, "--at", f"engine={engine}")
