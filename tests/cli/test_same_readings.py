"""Readings that contradict each other: said, or taken together, whichever is given first.

The numbers are made: of a job whose power or time at a lower clock is above or below what it can
be, and of two runs one step of the clock apart that differ by noise.
"""

from pathlib import Path

import pytest

from tests.command import Capture, refuse

HEADER = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
A100, L4 = "a100-sxm4-80gb,j,j,108", "l4,j,j,58"


def table(file: Path, *rows: str) -> Path:
    """A table of those rows."""
    file.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return file


@pytest.mark.parametrize(
    ("rows", "also", "told"),
    [
        pytest.param(
            [f"{A100},1410,1593,100,350"],
            [f"{A100},840,1593,130,400"],
            "1.csv: at 840 MHz its kernels draw 1.14 times as much power as at 1410 MHz, the same "
            "work draws more at the higher clock",
            id="power-above-the-base",
        ),
        pytest.param(
            [f"{A100},1410,1593,100,350"],
            [f"{A100},1200,1593,110,200", f"{A100},840,1593,140,300"],
            "2.csv: at 840 MHz its kernels draw 1.50 times as much power as at 1200 MHz",
            id="power-above-a-further-reading",
        ),
        pytest.param(
            [f"{A100},1410,1593,100,350"],
            [f"{A100},1200,1593,117,300", f"{A100},840,1593,101,250"],
            "2.csv: at 840 MHz its kernels take 0.86 times as long as at 1200 MHz",
            id="time-below-a-further-reading",
        ),
        pytest.param(
            [f"{L4},1800,6251,100,60"],
            [f"{L4},1200,6251,130,40"] * 2,
            "is given twice",
            id="one-file-twice",
        ),
    ],
)
def test_what_cannot_be_of_one_work_is_refused(
    capsys: Capture, tmp_path: Path, rows: list[str], also: list[str], told: str
) -> None:
    """By the next clock's reading as by the base's."""
    first = table(tmp_path / "0.csv", *rows)
    names = {row: f"{number}.csv" for number, row in reversed([*enumerate(also, start=1)])}
    further = [table(tmp_path / names[row], row) for row in also]
    options = [word for file in further for word in ("--also", file)]
    assert told in refuse(capsys, tmp_path, "predict", first, *options, "--at", "engine=1000")
