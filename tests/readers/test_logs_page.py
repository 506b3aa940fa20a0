"""docs/howto/nvidia-smi.md shows what its commands print on the logs that lie beside it."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from refresh_docs import output, shown

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    folder = shutil.copytree(DOCS / "logs", tmp_path / "logs")
    page = (DOCS / "howto" / "nvidia-smi.md").read_text(encoding="utf-8")
    commands = shown(page)
    for log in folder.iterdir():
        assert any(log.name in command for command, _ in commands)
    for command, text in commands:
        assert output(command, folder) == text


def test_the_python_of_the_page_gives_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "howto" / "nvidia-smi.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    answer, *_ = re.findall(
        r"^  (Set the engine clock to \d+ MHz \(now 1755\).*)$", page, re.MULTILINE
    )
    monkeypatch.chdir(DOCS / "logs")
    exec(code, {})
    assert capsys.readouterr().out.splitlines()[0].strip() == answer


def test_the_means_of_the_dcgm_log() -> None:
    """By hand from gemm-dcgmi.txt, samples 4 to 9: POWER, and SMCLK but for the idle seventh."""
    page = (DOCS / "howto" / "nvidia-smi.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^  engine_mhz .*sm_active.*$", page, flags=re.MULTILINE)
    watts = (231.4 + 292.7 + 298.1 + 261.5 + 297.9 + 289.3) / 6
    clock = (1410 + 1410 + 1395 + 1395 + 1410) / 5
    assert f"power_w {watts:.1f}," in line
    assert f"engine_mhz {clock:.0f}," in line
