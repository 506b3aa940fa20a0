"""The class of the page "Write your own predictor", saved as mine.py, errs as the page says.

The kernels are those of the H200 that ship; a number of a class is what the page prints of it.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from command import Cli

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "howto" / "own-predictor.md").read_text(encoding="utf-8")
CLASS, *_ = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMAND, SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_errors_are_those_of_the_page(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(CLASS, encoding="utf-8")
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # in this process
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        out = cli(*COMMAND.replace("\\\n", "").split()[1:], "--json")
    finally:
        sys.modules.pop("mine", None)
    errors = {row["predictor"]: row["mape"] for row in json.loads(out)["rows"]}
    printed = re.findall(r"^  (\S+) .*?([\d.]+) % ±", SHOWN, flags=re.MULTILINE)
    assert errors == pytest.approx({name: float(mean) for name, mean in printed}, rel=0.01)
    assert errors["memory-share"] < errors["nearest"]
