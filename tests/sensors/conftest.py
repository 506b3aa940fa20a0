"""A made GPU (`synthetic/nvml.py`) in this process."""

from pathlib import Path

import pytest
from synthetic.made_gpu import MadeGpu, put_in


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeGpu:
    """One made GPU, a folder to work in, and in it the program job.sh."""
    made, work = tmp_path / "gpu", tmp_path / "work"
    made.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    return put_in(made, monkeypatch)
