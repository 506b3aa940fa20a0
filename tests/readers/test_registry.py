"""The registry: a reader is a file and a line, and is imported when a file of its own is met."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from command import Capture, succeed
from synthetic.exports import long_page

import mlscale.readers
from mlscale.readers import registry
from mlscale.readers.registry import READERS, Kind

MADE_READER = '''"""A made tool: `made-tool --csv`; a row for each launch, with its time in ms."""

import numpy as np

from mlscale.readers.launches import Launches


def read(sheet, facts, _needed):
    for block in sheet.blocks({"what": str, "ms": float, "dram_utilisation": float}):
        facts.note("device_name", ["NVIDIA H100 80GB HBM3"])
        unknown = np.full(len(block), np.nan)
        use = {"dram_utilisation": block.numbers("dram_utilisation")}
        yield Launches(
            block.lines, block.text("what"), block.numbers("ms") / 1e3, unknown, unknown, use
        )
'''
LISTED = """
import sys
from mlscale.cli.main import main
main(sys.argv[1:])
print(*sys.modules)
"""
MADE_KIND = Kind("made_tool", "made-tool", "a made tool", "what, ms")


def test_a_new_reader_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """By hand: f takes 3 ms on average, at the base of the prediction as it was read."""
    (tmp_path / "made_tool.py").write_text(MADE_READER)
    monkeypatch.setattr(mlscale.readers, "__path__", [*mlscale.readers.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "READERS", (*READERS, MADE_KIND))
    monkeypatch.setitem(sys.modules, "mlscale.readers.made_tool", None)
    monkeypatch.delitem(sys.modules, "mlscale.readers.made_tool")
    run, table = tmp_path / "run.csv", tmp_path / "predicted.csv"
    run.write_text("what,ms,dram_utilisation\nf,2,0.9\nf,4,0.9\ng,1,0.1\n")
    succeed(capsys, "predict", run, "--base", "engine=1980,memory=2619", "--at", "engine=1980",
            "--at", "engine=990", "-o", table)  # fmt: skip
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times_ms = {(row["kernel"], float(row["engine_mhz"])): float(row["time_ms"]) for row in rows}
    assert times_ms["f", 1980] == pytest.approx(3)
    assert times_ms["g", 990] > times_ms["g", 1980] == pytest.approx(1)


@pytest.mark.parametrize("command", ["advise", "import"])
def test_an_export_of_ncu_loads_no_other_reader(tmp_path: Path, command: str) -> None:
    page = tmp_path / "run.csv"
    page.write_text(long_page())
    words = [command, page, "--device", "h100-sxm5", "--base", "engine=1000,memory=2619,cu=132"]
    words += ["-o", tmp_path / "table.csv"] if command == "import" else []
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *map(str, words)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    others = {f"mlscale.readers.{kind.module}" for kind in READERS} - {"mlscale.readers.ncu"}
    assert "mlscale.readers.ncu" in loaded
    assert loaded.isdisjoint({*others, "mlscale.readers.kernel_tuner"})


def test_every_kind_is_known_by_one_thing_and_has_a_reader() -> None:
    for kind in READERS:
        assert bool(kind.columns) + bool(kind.line) + bool(kind.json) + bool(kind.tables) == 1
        assert bool(kind.module) != bool(kind.instead)
        assert not kind.module or callable(kind.reader())
