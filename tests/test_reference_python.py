"""The examples of the API's pages run on data that ship."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import mlscale

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["index", "predictors"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    text = (ROOT / "docs" / "reference" / "api" / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mlscale.DataWarning)  # the profile written by hand warns
        for code in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            exec(compile(code, page, "exec"), names)
    assert names
