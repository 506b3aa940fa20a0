"""A table of times and powers alone: what its rows do not say, and what its other rows tell."""

from pathlib import Path

import pytest
from command import Capture, succeed

# Of an RTX 3090: 82 SMs by the device table.
NAMES = "device,application,kernel,engine_mhz,memory_mhz,time_ms,power_w\n"
FAST, SLOW = "rtx3090,a,decode,1560,9501,28852,334\n", "rtx3090,a,decode,975,9501,39730,249.8\n"
pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")


def table(path: Path, *rows: str) -> Path:
    path.write_text("".join([NAMES, *rows]))
    return path


def test_the_only_memory_clock_and_all_cus_are_meant(tmp_path: Path, capsys: Capture) -> None:
    both = table(tmp_path / "both.csv", FAST, SLOW)
    out, _ = succeed(capsys, "advise", both, "--base", "engine=1560")
    assert "base cu=82,engine=1560,memory=9501 on rtx3090" in out


def test_other_rows_are_further_readings(tmp_path: Path, capsys: Capture) -> None:
    """The same answer as of two tables, but for what files are called."""
    both = table(tmp_path / "a.csv", FAST, SLOW)
    out, _ = succeed(capsys, "predict", both, "--base", "engine=1560", "--at", "engine=1200")
    alone, more = table(both, FAST), table(tmp_path / "more.csv", SLOW)
    of_two, _ = succeed(capsys, "predict", alone, "--also", more, "--at", "engine=1200")
    assert out == of_two
    assert "1200" in out
