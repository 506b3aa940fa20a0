"""The class of the page "Write your own predictor", saved as mine.py, beats nearest."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import succeed
from public_tables import measured
from refresh_docs import shown
from synthetic import bottleneck_kernels

PAGE = (Path(__file__).parents[1] / "docs" / "own-predictor.md").read_text(encoding="utf-8")
((COMMAND, SHOWN),) = shown(PAGE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's first Python block as mine.py."""
    block = re.search(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert block
    (tmp_path / "mine.py").write_text(block[1], encoding="utf-8")
    return tmp_path


@pytest.fixture
def mape(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], dict[str, float]]]:
    """A function: the mean errors that the page's command measures in the folder, by predictor."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # in this process

    def study() -> dict[str, float]:
        out, _ = succeed(capsys, *COMMAND.split()[1:], "--json")
        return {row["predictor"]: row["mape"] for row in json.loads(out)["rows"]}

    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        yield study
    sys.modules.pop("mine", None)


def test_beats_nearest_on_made_kernels(folder: Path, mape: Callable[[], dict[str, float]]) -> None:
    # made with a curve of exponent 4, and the page's class has 3: it is near, and not exact
    bottleneck_kernels.measurements(kernels=12).write(folder / "gtx980-low.parquet")
    errors = mape()
    assert errors["memory-share"] < 0.6 * errors["nearest"]


@pytest.mark.slow
def test_beats_nearest_on_a_real_gpu(
    folder: Path, data_folder: Path, mape: Callable[[], dict[str, float]]
) -> None:
    measured(data_folder, "gtx980-low").write(folder / "gtx980-low.parquet")
    errors = mape()
    for predictor in ("memory-share", "nearest"):
        (percent,) = re.findall(rf"^  {predictor} .*?([\d.]+) % ±", SHOWN, flags=re.MULTILINE)
        assert errors[predictor] == pytest.approx(float(percent), abs=0.06)
    assert errors["memory-share"] < errors["nearest"]
