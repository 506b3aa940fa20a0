"""The reference names every key and column that the commands write."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Cli, keys

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = "".join((REFERENCE / page).read_text(encoding="utf-8") for page in ("files.md", "json.md"))
SHIPPED = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
CHEAP = ("simulated-gcn3.parquet", "--predictor", "no-scaling", "--protocol", "k-fold")


def unnamed(names: Iterator[str] | list[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if f"`{name}`" not in PAGE]


def test_of_the_json_of_predictions(cli: Cli) -> None:
    """That of advise is made from its schema: tests/test_generated.py."""
    assert unnamed(keys(cli.json("predict", *SHIPPED))) == []


@pytest.mark.parametrize("command", ["predict", "advise"])
def test_of_the_csv_of_predict_and_advise(cli: Cli, command: str) -> None:
    assert unnamed(next(csv.reader(io.StringIO(cli(command, *SHIPPED, "--format", "csv"))))) == []


@pytest.mark.parametrize(
    ("study", "more"), [("advice", ("--minimize", "time")), ("errors", ("--quantity", "time"))]
)
def test_of_studies(cli: Cli, tmp_path: Path, study: str, more: tuple[str, ...]) -> None:
    given = ("study", study, *CHEAP, *more, "--seeds", "1", "-o", tmp_path / "out")
    cli(*given)
    written = sorted((tmp_path / "out").iterdir())
    assert sorted({file.suffix for file in written}) == [".csv", ".json", ".png", ".svg"]
    tables = [file for file in written if file.suffix in (".csv", ".json")]
    assert len(tables) == (3 if study == "advice" else 4)
    for file in tables:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".csv":
            assert unnamed(next(csv.reader(io.StringIO(text)))) == [], file.name
        else:
            assert unnamed(keys(json.loads(text))) == []
