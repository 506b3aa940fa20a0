"""Names of kernels that would steer a terminal or a page, through every command that prints names.

The export is the shipped one, written by hand, with another name for its first kernel.
"""

import csv
import json
from pathlib import Path

import pytest
from command import Capture, succeed

from mlscale.cli.text import columns
from mlscale.data.datasets import path as shipped
from mlscale.data.table_files import read_table

TRIAD = "triad(float *, const float *, const float *, float)"
LONG = f"f<{', '.join(f'n::T{i}<int>' for i in range(300))}>(float *)"
STEERING = {
    "escapes": "evil\x1b[2J\x1b]0;title\x07<script>alert(1)</script>",
    "direction": "evil\u202ebad<script>alert(1)</script>",
    "kilobytes": f"evil{LONG}<script>alert(1)</script>",
}


def export(folder: Path, name: str) -> Path:
    text = shipped("h100-by-hand.csv").read_text(encoding="utf-8")
    assert TRIAD in text
    file = folder / "run.csv"
    file.write_text(text.replace(TRIAD, name), encoding="utf-8")
    return file


def check(text: str) -> None:
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "evil" in text


@pytest.mark.parametrize("name", STEERING.values(), ids=STEERING)
class TestName:
    def test_in_advice_and_predictions(self, capsys: Capture, tmp_path: Path, name: str) -> None:
        file = export(tmp_path, name)
        for given in (
            ["advise", file, "--max-slowdown", "5"],
            ["advise", file, "--max-slowdown", "5", "--format", "csv"],
            ["predict", file, "--at", "engine=1500"],
            ["predict", file, "--at", "engine=1500", "--format", "csv"],
        ):
            out, err = succeed(capsys, *given)
            check(out)
            assert not {"\x1b", "\x07", "\u202e"} & set(err)
            if "csv" not in given:
                assert max(map(len, out.splitlines())) < 400

    def test_in_a_report(self, capsys: Capture, tmp_path: Path, name: str) -> None:
        page = tmp_path / "page.html"
        succeed(capsys, "report", export(tmp_path, name), "-o", page)
        text = page.read_text(encoding="utf-8")
        check(text)
        assert "<script>" not in text

    def test_in_a_table(self, capsys: Capture, tmp_path: Path, name: str) -> None:
        """The table has the whole name, but for controls."""
        table = tmp_path / "t.csv"
        succeed(capsys, "import", export(tmp_path, name), "-o", table)
        expected = name.replace("\x1b[2J\x1b]0;title\x07", "")
        assert next(csv.DictReader(table.read_text().splitlines()))["kernel"] == expected
        assert read_table(table).text["kernel"][0] == expected
        out, _ = succeed(capsys, "advise", table, "--max-slowdown", "5", "--format", "json")
        assert expected in [kernel["kernel"] for kernel in json.loads(out)["kernels"]]

    def test_in_an_error(self, capsys: Capture, tmp_path: Path, name: str) -> None:
        from mlscale.cli.main import main

        assert main(["advise", str(export(tmp_path, name)), "--model", f"no{name[:20]}"]) == 2
        assert not {"\x1b", "\x07", "\u202e"} & set(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "'=1"])
def test_that_a_spreadsheet_would_run(capsys: Capture, tmp_path: Path, name: str) -> None:
    """In every CSV words; a table has the name itself when it is read again."""
    file, table = export(tmp_path, name), tmp_path / "t.csv"
    at = ("--at", "engine=1500", "--format", "csv")
    texts = [
        succeed(capsys, "advise", file, "--max-slowdown", "5", "--format", "csv")[0],
        succeed(capsys, "predict", file, *at)[0],
    ]
    succeed(capsys, "import", file, "-o", table)
    for text in (*texts, table.read_text(encoding="utf-8")):
        names = {row["kernel"] for row in csv.DictReader(text.splitlines())}
        assert f"'{name}" in names
        assert name not in names
    assert name in read_table(table).text["kernel"]
    out, _ = succeed(capsys, "predict", table, "--at", "engine=1500", "--format", "json")
    assert name in {row["kernel"] for row in json.loads(out)["predictions"]}


def test_in_a_table_of_text() -> None:
    assert columns(["worst kernel"], [["a\x1b[31mb\nc\u202e"]]).splitlines()[-1] == "ab c"
