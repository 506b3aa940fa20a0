"""mlscale demo: an export to advice, then the main job on the shipped, simulated data."""

import re
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse

import mlscale
from mlscale.cli.main import main
from mlscale.data.datasets import path
from mlscale.model.model import load

PAIR = r"([\d.]+) \(([\d.]+)\)"  # predicted (simulated)


def test_the_demo(capsys: Capture, tmp_path: Path) -> None:
    assert main(["demo", "-o", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    _check_advice(capsys, text)
    _check_predicted_kernel(text, tmp_path)
    _check_table_and_errors(text)
    # The PNG signature and the width in the IHDR chunk (PNG specification, 5.2 and 11.2.2).
    page = tmp_path / "training-step.html"
    assert text.splitlines()[-1].startswith(f"{page}: 28 kernels, ")
    picture = (tmp_path / "surface.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20], "big") > 1000


def _check_advice(capsys: Capture, text: str) -> None:
    """It is what the command that it shows prints."""
    command = re.search(r"^\$ mlscale (advise .*)$", text, re.MULTILINE)
    assert command is not None
    assert main(command[1].split()) == 0
    advice = capsys.readouterr().out
    assert advice.startswith("  Set the engine clock to ")
    assert f"{command[0]}\n{advice}" in text
    assert "written by hand (not measured)" in text[: text.index(advice)]
    assert text.index(advice) < text.index("Simulated data")


def _check_predicted_kernel(text: str, folder: Path) -> None:
    """Of those that its model has not seen the one that depends most on the memory clock.

    Computed anew by a loop: mean over the other axes of time at 400 over that at 1000 MHz.
    """
    data = mlscale.read(path("simulated-gcn3.parquet"))
    trained = load(folder / "model.mlscale").card["applications"]
    left_out = re.search(r"left out by random number: (.*)\.", text)
    assert left_out is not None
    assert not set(left_out[1].split(", ")) & set(trained)
    dependence = {}
    for k, kernel in enumerate(data.kernels):
        if data.applications[k] not in trained:
            slow, quick = data.time_ms[k, :, :, 0].ravel(), data.time_ms[k, :, :, 2].ravel()
            dependence[kernel] = np.prod(slow / quick) ** (1 / slow.size)
    assert f"Predicted time [ms] of {max(dependence, key=lambda k: dependence[k])}," in text


def _check_table_and_errors(text: str) -> None:
    """4 x 4 x 3 configurations; at the base, 700 MHz in the middle, the simulated time itself."""
    assert len(re.findall(PAIR, text)) == 48
    base_row = re.search(r"^ *16 +800 .*$", text, re.MULTILINE)
    assert base_row is not None
    predicted, simulated = re.findall(PAIR, base_row[0])[1]
    assert predicted == simulated
    errors = {
        line.split()[0]: float(line.split()[1])
        for line in text.splitlines()
        if re.match(r"(no-scaling|engine-bound|core-bound|memory-bound|mean-surface|wu) ", line)
    }
    assert len(errors) == 6
    assert min(errors, key=lambda name: errors[name]) == "wu"


def test_without_torch_it_says_what_it_leaves_out_and_advises(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlscale.cli.demo.LIBRARIES", ("numpy", "nosuchtorch"))
    assert main(["demo", "-o", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Not installed: nosuchtorch (pip install")
    assert "leaves out its second part: training" in out
    assert "Set the engine clock to " in out
    assert [file.name for file in (tmp_path / "demo").iterdir()] == ["training-step.html"]


def test_a_file_is_no_folder(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file: is a file;" in refuse(capsys, tmp_path, "demo", "-o", tmp_path / "file")
