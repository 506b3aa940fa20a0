"""Readings that contradict each other: said, or taken together, whichever is given first.

The numbers are made: of a job whose power or time at a lower clock is above or below what it can
be, and of two runs one step of the clock apart that differ by noise.
"""

import json
import re
from itertools import permutations
from pathlib import Path

import pytest

from tests.command import Capture, refuse, succeed

HEADER = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
A100, L4 = "a100-sxm4-80gb,j,j,108", "l4,j,j,58"
L4_SLOW, MI210_SLOW = f"{L4},900,6251,140,35", "mi210,j,j,104,660,1600,190,120"


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


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            ["l4,j,j,58,1635,6251,100,60", "l4,j,j,58,1620,6251,99.7,60.3", L4_SLOW],
            id="time-and-power-cross-by-noise",
        ),
        pytest.param(
            ["mi210,j,j,104,1530,1600,100,280", "mi210,j,j,104,1200,1600,118,200", MI210_SLOW],
            id="clocks-that-the-device-table-lacks",
        ),
    ],
)
def test_the_order_of_readings_changes_nothing(
    capsys: Capture, tmp_path: Path, rows: list[str]
) -> None:
    """Each reading may be the base: the same clocks are tried, with the same answers.

    What is measured keeps its own numbers; between, power does not fall as the clock rises.
    """
    files = [table(tmp_path / f"{number}.csv", row) for number, row in enumerate(rows)]
    answers = []
    for base, *others in permutations(files):
        options = [word for file in others for word in ("--also", file)]
        out, _ = succeed(capsys, "predict", base, *options, "--format", "json")
        found = json.loads(out)["predictions"]
        answers.append({at["engine_mhz"]: at for at in found})
    for answer in answers[1:]:
        assert answer.keys() == answers[0].keys()
        for mhz, at in answers[0].items():
            for name in ("time_ms", "power_w", "energy_mj"):
                assert answer[mhz][name] == pytest.approx(at[name], rel=1e-9)
    read_mhz = {float(row.split(",")[4]) for row in rows}
    watts = [at["power_w"] for mhz, at in sorted(answers[0].items()) if mhz not in read_mhz]
    assert watts == sorted(watts)


def test_a_kernel_without_a_second_time_is_said_to_be_so(capsys: Capture, tmp_path: Path) -> None:
    """Its time has the bounds of one clock: at 1500 of 1800 MHz from 50 to 60 ms."""
    base = table(tmp_path / "0.csv", "l4,j,k1,58,1800,6251,100,60", "l4,j,k2,58,1800,6251,50,55")
    also = table(tmp_path / "1.csv", "l4,j,k1,58,1200,6251,130,40")
    options = ("--also", also, "--at", "engine=1500", "--format", "json")
    out, _ = succeed(capsys, "predict", base, *options)
    document = json.loads(out)
    first, second = document["predictions"]
    assert [second["time_ms_low"], second["time_ms_high"]] == pytest.approx([50, 60])
    assert first["time_ms_high"] - first["time_ms_low"] < 6  # of its bounds, 100 to 120 ms
    [note] = [one for one in document["notes"] if "was measured at one clock only" in one["text"]]
    assert (note["code"], note["kernels"]) == ("R07", ["k2"])


@pytest.mark.parametrize("kernel", ["j", "ncclDevKernel_AllReduce"])
def test_over_counts_it_is_told_of_counts(capsys: Capture, tmp_path: Path, kernel: str) -> None:
    """One count bounds time by counts; intervals over counts were held on no GPU left out."""
    base = table(tmp_path / "0.csv", f"rtx-a6000,j,{kernel},84,1800,8001,100,280")
    also = table(tmp_path / "1.csv", f"rtx-a6000,j,{kernel},42,1800,8001,170,220")
    told = "".join(succeed(capsys, "predict", base, "--at", "cu=42", "--notes"))
    assert "measured at one CU count only" in told
    assert "held on" not in "".join(succeed(capsys, "predict", base, "--also", also, "--notes"))


def test_a_cap_below_all_readings_asks_for_a_third(capsys: Capture, tmp_path: Path) -> None:
    """1400 is 0.82 of 1700 MHz: half of that is 850, next to which the GPU has 855."""
    base = table(tmp_path / "0.csv", "rtx3090,j,j,82,1700,9501,100,340")
    also = table(tmp_path / "1.csv", "rtx3090,j,j,82,1400,9501,104,275")
    out, _ = succeed(capsys, "advise", base, "--also", also, "--lever", "cap", "--max-slowdown", 30)
    assert "  To know more below these clocks, run it at about 855 MHz too: --also FILE.\n" in out


def test_the_report_has_the_verdicts_lines_each_on_its_own(capsys: Capture, tmp_path: Path) -> None:
    """The first at the top, the second unfolds."""
    base = table(tmp_path / "0.csv", f"{A100},1410,1593,100,350")
    also = table(tmp_path / "1.csv", f"{A100},840,1593,130,200")
    page = tmp_path / "page.html"
    succeed(capsys, "report", base, "--also", also, "--max-slowdown", 5, "-o", page)
    text = page.read_text()
    assert re.search(r"<h1>Set \d+ MHz: ", text)
    assert re.search(r"<li>\d+ MHz would be .*, and above 5 % about ", text)
