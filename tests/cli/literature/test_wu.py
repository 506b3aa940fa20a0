"""mlscale literature wu: gains as text and JSON, and the pictures."""

import json
from pathlib import Path

import pytest
from command import Capture, at_base, refuse, succeed
from synthetic import kernels as made
from synthetic import tidy

COMMAND = ("literature", "wu")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "made.csv"
    made.measurements(power=False).write(path)
    return path


def test_text(capsys: Capture, table: Path) -> None:
    out, _ = succeed(capsys, *COMMAND, table)
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    # 16/4 CUs and 1000/400 MHz to the powers of the law; memory changes nothing.
    assert lines["compute0"][:4] == ["4.00", "2.50", "1.00", "10.00"]
    assert "cu 4 to 16" in out


def test_pictures_of_the_kernels_that_were_asked_for(capsys: Capture, table: Path) -> None:
    folder = table.parent / "new"
    out, _ = succeed(
        capsys, *COMMAND, table, "--kernels", "latency1,compute0", "-o", folder, "--json"
    )
    assert {file.name for file in folder.iterdir()} == {
        "fig1-scaling-made.png",
        "fig1-scaling-made.svg",
    }
    document = json.loads(out)
    assert len(document["rows"]) == 12
    assert len(document["files"]) == 2
    svg = (folder / "fig1-scaling-made.svg").read_text(encoding="utf-8")
    assert "latency1" in svg
    assert "bandwidth" not in svg
    assert "made data, not measured" in svg
    assert "engine clock 1000 MHz" in svg


def test_a_table_of_one_compute_unit_count(capsys: Capture, tmp_path: Path) -> None:
    path = tidy.write_csv(tmp_path / "small.csv", tidy.rows())
    out, _ = succeed(capsys, *COMMAND, path, "-o", tmp_path / "new")
    assert "cu 4" not in out.splitlines()[1]
    assert out.count("written: ") == 2


def test_refusals(capsys: Capture, table: Path) -> None:
    folder = table.parent / "new"
    assert "made has no kernel 'nobody'" in refuse(
        capsys, table.parent, *COMMAND, table, "--kernels", "nobody", "-o", folder
    )
    assert "--kernels: of no effect without -o DIR" in refuse(
        capsys, table.parent, *COMMAND, table, "--kernels", "compute0"
    )
    one = tidy.write_csv(table.parent / "one.csv", at_base(tidy.rows()))
    assert "one.csv: has a single configuration" in refuse(capsys, table.parent, *COMMAND, one)
    assert "two tables are named 'made'" in refuse(capsys, table.parent, *COMMAND, table, table)
