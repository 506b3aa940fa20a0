"""The class of the page "Write your own predictor", saved as mine.py, beats nearest."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from refresh_docs import shown
from synthetic import bottleneck_kernels

from mlscale.data.public.nv_dvfs import read_nv_dvfs

PAGE = (Path(__file__).parents[1] / "docs" / "own-predictor.md").read_text(encoding="utf-8")
((COMMAND, SHOWN),) = shown(PAGE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's first Python block as mine.py."""
    block = re.search(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert block
    (tmp_path / "mine.py").write_text(block[1], encoding="utf-8")
    return tmp_path


def mape(folder: Path) -> dict[str, float]:
    """The mean errors that the page's command measures in the folder, by predictor."""
    study = subprocess.run(
        [sys.executable, "-m", "mlscale", *COMMAND.split()[1:], "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert study.returncode == 0, study.stderr
    return {row["predictor"]: row["mape"] for row in json.loads(study.stdout)["rows"]}


def test_beats_nearest_on_made_kernels(folder: Path) -> None:
    # made with a curve of exponent 4, and the page's class has 3: it is near, and not exact
    bottleneck_kernels.measurements(kernels=12).write(folder / "gtx980-low.parquet")
    errors = mape(folder)
    assert errors["memory-share"] < 0.6 * errors["nearest"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mlscale.DataWarning")  # the file's known faults
def test_beats_nearest_on_a_real_gpu(folder: Path, data_folder: Path) -> None:
    name = "gtx980-low-dvfs-real-small-workload-Performance-Power.csv"
    (public,) = data_folder.rglob(name)
    read_nv_dvfs(public, "gtx980").write(folder / "gtx980-low.parquet")
    errors = mape(folder)
    for predictor in ("memory-share", "nearest"):
        (row,) = re.findall(rf"^{predictor} .*$", SHOWN, flags=re.MULTILINE)
        assert errors[predictor] == pytest.approx(float(row.split()[2]), abs=0.02)
    assert errors["memory-share"] < errors["nearest"]
