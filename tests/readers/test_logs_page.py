"""The logs of docs/howto/nvidia-smi.md, which were typed by hand, and its lines of Python."""

import re
from pathlib import Path

import pytest

import mlscale

DOCS = Path(__file__).parents[2] / "docs"


def test_the_python_of_the_page_gives_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "howto" / "nvidia-smi.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    answer, *_ = re.findall(
        r"^  (Set the engine clock to \d+ MHz \(now 1755\).*)$", page, re.MULTILINE
    )
    monkeypatch.chdir(DOCS)
    exec(code, {})
    assert capsys.readouterr().out.splitlines()[0].strip() == answer


def test_the_means_of_the_dcgm_log() -> None:
    """By hand from gemm-dcgmi.txt, samples 4 to 9: POWER, and SMCLK but for the idle seventh."""
    log = DOCS / "logs" / "gemm-dcgmi.txt"
    run = mlscale.import_profile(log, device="a100-sxm4-40gb", interval_s=0.1)
    watts = (231.4 + 292.7 + 298.1 + 261.5 + 297.9 + 289.3) / 6
    clock = (1410 + 1410 + 1395 + 1395 + 1410) / 5
    assert run.power_w == pytest.approx([watts])
    assert run.base.engine_mhz == clock
