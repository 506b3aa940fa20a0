"""Readings of runs whose files tell the clocks that were asked for, not those that ran.

A run of an H100 that takes 10 s and 300 W at 1185 MHz, its time as 1 / clock and its power as the
square of the clock, by hand; what the GPU asked for and did not keep is told by where it ran.
"""

from pathlib import Path
from typing import Any

import pytest
from command import Cli, note_texts
from synthetic.two_logs import log, without

HEADER = "device,kernel,engine_mhz,memory_mhz,time_ms,power_w,power_cap_w,engine_mhz_observed\n"
ASKED = "no file shows the actual clocks, so the requested ones are used: log them too"


def table(
    path: Path, *clocks: tuple[float, float], limit_w: object = "", tells: bool = False
) -> Path:
    """The run at each clock asked for, of which the other ran [MHz]; tells: which is a column."""
    rows = [
        f"h100-sxm5,run,{asked},1593,{1e4 * 1185 / ran},{300 * (ran / 1185) ** 2},{limit_w},"
        f"{ran if tells else ''}\n"
        for asked, ran in clocks
    ]
    path.write_text(HEADER + "".join(rows))
    return path


def of_clocks(document: Any) -> list[tuple[str, str]]:
    """What the answer notes of clocks."""
    notes = [note for note in document["notes"] if note["code"] == "L04"]
    return [(note["severity"], note["text"]) for note in notes]


LOW = (1185, 1185)


@pytest.mark.parametrize(
    ("clocks", "limit_w", "ran"),
    [
        # Even at several clocks: all ran at about 1400 MHz, as the reading below tells.
        ([(1980, 1400), (1700, 1399), LOW], "", 1400),
        ([(1980, 1400), (1700, 1399), (1500, 1401), LOW], "", 1400),
        # With nothing below it is known only that both ran at the lower one or below.
        ([(1980, 1400), (1700, 1399)], "", 1700),
        # 2.9 % for 11 % of clock, where 1185 to 1750 MHz gave 48 % for 48 %.
        ([(1935, 1800), (1750, 1750), LOW], "", 1800),
        # 419 of 420 W: two thirds of the way to 1400 MHz, (1400 / 1980)^(2/3) of 1980.
        ([(1980, 1400), LOW], 420, 1571),
    ],
)
def test_a_clock_that_was_not_kept_is_replaced(
    cli: Cli, tmp_path: Path, clocks: Any, limit_w: object, ran: float
) -> None:
    document = cli.json("advise", table(tmp_path / "t.csv", *clocks, limit_w=limit_w))
    assert document["base"]["engine_mhz"] == ran
    [(severity, told)] = of_clocks(document)
    assert severity == "warning"
    assert f"{clocks[0][0]} MHz was not reached, {ran} is assumed" in told


@pytest.mark.parametrize(
    ("clocks", "limit_w"),
    [
        ([(1980, 1980), LOW], ""),
        ([(1980, 1980), (1700, 1700), LOW], ""),
        ([(1980, 1400), LOW], ""),  # which two readings alone do not tell
        ([(1980, 1400), LOW], 500),  # nor one that is far from its limit
    ],
)
def test_what_the_readings_do_not_contradict_is_noted_alone(
    cli: Cli, tmp_path: Path, clocks: Any, limit_w: object
) -> None:
    document = cli.json("advise", table(tmp_path / "t.csv", *clocks, limit_w=limit_w))
    assert document["base"]["engine_mhz"] == 1980
    [(severity, told)] = of_clocks(document)
    assert (severity, told.startswith(ASKED)) == ("note", True)


def test_a_table_may_show_which_ran(cli: Cli, tmp_path: Path) -> None:
    """To 2 %; a limit then changes nothing, as the clock is the one that ran."""
    clocks = [(1400, 1386), LOW]
    document = cli.json("advise", table(tmp_path / "t.csv", *clocks, limit_w=420, tells=True))
    assert (document["base"]["engine_mhz"], of_clocks(document)) == (1400, [])
    document = cli.json("advise", table(tmp_path / "t.csv", (1980, 1400), LOW, tells=True))
    assert of_clocks(document)[0][1].startswith(ASKED)  # another column tells another clock


def test_a_log_shows_it_or_its_table_still_says_that_it_does_not(cli: Cli, tmp_path: Path) -> None:
    fast, slow = (
        log(tmp_path / "fast.csv", 1755, 100, 480),
        log(tmp_path / "slow.csv", 1170, 120, 300),
    )
    assert of_clocks(cli.json("advise", fast, "--also", slow)) == []
    for file in (fast, slow):
        without(file, 4)
    at = ("--base", "engine=1755")
    [(_, told)] = of_clocks(cli.json("advise", fast, *at, "--also", f"{slow}@engine=1170"))
    assert told.startswith(ASKED)
    runs = tmp_path / "runs.csv"
    cli("import", fast, *at, "--application", "run", "-o", runs)
    given = ("--base", "engine=1170", "--application", "run", "--append")
    cli("import", slow, *given, "-o", runs)
    assert [text for _, text in of_clocks(cli.json("advise", runs))] == [told]


def test_text_and_page_tell_it(cli: Cli, tmp_path: Path) -> None:
    runs = table(tmp_path / "t.csv", (1980, 1400), (1700, 1399), LOW)
    assert "warning L04: " + ASKED in cli.told("advise", runs)
    assert "1980 MHz was not reached, 1400 is assumed" in cli.page(runs)
    at = ("--at", "engine=1300")
    document = cli.json("predict", runs, *at)
    assert any("1980 MHz was not reached" in text for text in note_texts(document))
