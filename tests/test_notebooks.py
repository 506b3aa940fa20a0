"""The tutorials run from first cell to last, and print what is committed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from printed import same

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def shown(notebook: Path) -> list[tuple[str, Any]]:
    """What each cell shows: text as it is, a picture by its kind (its bytes depend on fonts)."""
    found: list[tuple[str, Any]] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                found.append((output["name"], "".join(output["text"])))
            else:
                found.append((output["output_type"], sorted(output["data"])))
    return found


def test_there_are_six_short_ones() -> None:
    assert len(NOTEBOOKS) == 6
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        words = [
            word for cell in cells if cell["cell_type"] == "markdown" for word in cell["source"]
        ]
        assert len(" ".join(words).split()) <= 900, notebook.name
        for kind, text in shown(notebook):
            if kind == "stdout":
                lines = text.splitlines()
                assert len(lines) <= 15, notebook.name
                assert max(map(len, lines)) <= 80, notebook.name


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_shows_what_is_committed(notebook: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "run_notebooks.py", tmp_path, notebook],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    assert shown(notebook)  # a notebook without outputs would prove nothing
    now, before = shown(tmp_path / notebook.name), shown(notebook)
    assert [kind for kind, _ in now] == [kind for kind, _ in before]
    for (_, value), (_, committed) in zip(now, before, strict=True):
        assert value == committed or same(value, committed)
