"""Fixtures of the command line's tests: nvidia-smi's logs of one run at two clocks."""

from pathlib import Path

import pytest
from synthetic.two_logs import log


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    """10 s at 480 W."""
    return log(tmp_path / "fast.csv", 1755, 100, 480)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """1.2 times as long at two thirds of the clock."""
    return log(tmp_path / "slow.csv", 1170, 120, 300)
