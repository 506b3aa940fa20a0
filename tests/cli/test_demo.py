"""mlscale demo: which clock, one profile's surface and the error of a model, printed and on a page.

Measured values are read off datasets/headroom-rtx5060ti.csv by hand: 8999.9 ms and 99.82 W at
2782 MHz, 9198.2 ms and 77.15 W at 2317 MHz.
"""

import re
from pathlib import Path

import pytest
from command import Cli

from mlscale.model.model import load


@pytest.fixture
def demo(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the demo prints."""
    monkeypatch.chdir(tmp_path)
    return cli("demo", "-o", "demo")


@pytest.mark.slow
def test_the_demo(cli: Cli, demo: str, tmp_path: Path) -> None:
    lines = demo.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    _check_advice(cli, demo)
    _check_training(demo, tmp_path / "demo")
    # The PNG signature and the width in the IHDR chunk (PNG specification, 5.2 and 11.2.2).
    picture = (tmp_path / "demo" / "surfaces.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20], "big") > 800
    page = (tmp_path / lines[-1]).read_text(encoding="utf-8")
    assert lines[-1] == "demo/demo.html"
    assert all(line in page for line in lines[:-2])
    linked = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert linked == ["report.html", "surfaces.svg"]
    answer = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert lines[2].split(":")[0].strip() in answer


def _check_advice(cli: Cli, text: str) -> None:
    """It comes first, is what its command answers, and what was measured stands below."""
    _, command, answer, rest = text.split("\n", 3)
    assert command.startswith("$ mlscale advise layernorm-2782.csv --also layernorm-1702.csv ")
    assert answer == cli(*command.split()[2:]).splitlines()[0]
    measured = re.search(r"Measured at 2317 MHz, .*: ([\d.]+) % slower, (\d+) % less energy", rest)
    assert measured is not None
    time, energy = 9198.2 / 8999.9, 9198.2 * 77.15 / (8999.9 * 99.82)
    assert float(measured[1]) == pytest.approx(100 * (time - 1), abs=0.051)
    assert float(measured[2]) == pytest.approx(100 * (1 - energy), abs=0.51)


def _check_training(text: str, folder: Path) -> None:
    """The kernels predicted were left out; what learnt errs less than the rules do."""
    for device, left_out in (("h100-sxm5", "stencil2d"), ("simulated-gcn3", "matrixtranspose")):
        assert left_out not in load(folder / f"{device}.mlscale").card["applications"]
    assert "an H100 (measured): error of time " in text
    assert "(simulated): error of time " in text
    found = re.findall(r"^  ([a-z-]+) +(\d+\.\d) %$", text, re.MULTILINE)
    errors = {name: float(number) for name, number in found}
    assert list(errors) == sorted(errors, key=lambda name: errors[name])
    assert {*errors} == {"wu", "bottleneck", "nearest", "mean-surface", "no-scaling"}
    assert max(errors["wu"], errors["bottleneck"]) < errors["mean-surface"]


def test_without_torch_it_says_what_it_leaves_out_and_advises(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlscale.cli.demo.LIBRARIES", ("numpy", "nosuchtorch"))
    out = cli("demo", "-o", tmp_path / "demo")
    assert "Not installed: nosuchtorch (pip install" in out
    assert "leaves out parts 2 and 3" in out
    assert "Set the engine clock to " in out
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"report.html", "demo.html"}
