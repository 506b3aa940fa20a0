"""How sure an answer says to be: R by hand, and what is never high, at the command.

Runs are of an H100 at 1755 and 1170 MHz, as nvidia-smi logs them; seconds and watts are made.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli
from synthetic import frugal
from synthetic import made_runs as made
from synthetic.two_logs import log, without

from mlscale.advice.sureness import level, regret_told
from mlscale.data.datasets import path as shipped
from mlscale.model.model import train

SECONDS = {1755: 30, 1170: 36}


def logs(folder: Path, scale: float = 1, **more: Any) -> list[str]:
    """Two logs of a run."""
    return [
        str(log(folder / f"{mhz}.csv", mhz, round(10 * scale * s), watts, **more))
        for (mhz, s), watts in zip(SECONDS.items(), (480, 300), strict=True)
    ]


def why(cli: Cli, files: list[str], *more: object) -> Any:
    fast, slow = files
    return cli.json("advise", fast, "--also", slow, *more)["sure_why"]


def test_what_an_answer_may_cost_by_hand() -> None:
    """Ten draws: the second clock takes 0, 1 to 9 % more than the first; the third may not be."""
    energies = np.array([[100.0, 100.0 + more, 50.0] for more in range(10)])
    told = regret_told(energies, 1, np.array([True, True, False]))
    assert told == pytest.approx(0.081)  # the 0.9 quantile of 0, 0.01 to 0.09 is 0.081
    assert regret_told(energies, 0, np.array([True, True, False])) == 0


def test_within_a_limit_two_readings_are_enough(cli: Cli, tmp_path: Path) -> None:
    """Without one they leave more open; an answer that only may keep its limit is not tried."""
    files = logs(tmp_path)
    assert why(cli, files, "--max-slowdown", 5) == ["S01"]
    assert why(cli, files, "--max-slowdown", 99) == ["S11"]
    assert "S12" in why(cli, files, "--max-time", 29_500)


@pytest.mark.parametrize("asked", [("--minimize", "edp"), ("--max-power", 450), ("--lever", "cap")])
def test_other_questions_are_never_high(
    cli: Cli, tmp_path: Path, asked: tuple[object, ...]
) -> None:
    assert "S12" in why(cli, logs(tmp_path), *asked)


def test_nor_are_short_runs(cli: Cli, tmp_path: Path) -> None:
    """Of 1.5 and 1.8 s."""
    assert "S13" in why(cli, logs(tmp_path, 0.05))


def test_nor_is_a_run_at_its_limit(cli: Cli, tmp_path: Path) -> None:
    """480 of 490 W are 98 %."""
    files = logs(tmp_path)
    for file in map(Path, files):
        header, *rows = file.read_text().splitlines()
        lines = [f"{header}, power.limit [W]", *(f"{row}, 490.00 W" for row in rows)]
        file.write_text("\n".join(lines) + "\n")
    assert "S14" in why(cli, files)


def test_nor_are_clocks_that_no_file_shows(cli: Cli, tmp_path: Path) -> None:
    fast, slow = logs(tmp_path)
    for file in (fast, slow):
        without(Path(file), 4)
    assert "S15" in why(cli, [fast, f"{slow}@engine=1170"], "--base", "engine=1755")


def test_nor_is_a_model_that_was_tried_on_few_gpus(cli: Cli, tmp_path: Path) -> None:
    """One learnt from two GPUs: no reading makes it sure of a third."""
    tables = [made.measurements(f"gpu{seed}", seed, 0.01) for seed in range(2)]
    model = train(tables[0], made.TOP, "runs", others=[(tables[1], made.TOP)])
    model.save(tmp_path / "two.mlscale")
    asked = ("--model", tmp_path / "two.mlscale", "--force")
    assert "S12" in why(cli, logs(tmp_path), *asked)


def test_nor_is_another_vendors_gpu(cli: Cli, tmp_path: Path) -> None:
    """The model learnt from an MI325X under caps: no clock that was locked."""
    head = "device,engine_mhz,engine_mhz_observed,memory_mhz,kernel,time_ms,power_w\n"
    files = [tmp_path / "fast.csv", tmp_path / "slow.csv"]
    for file, row in zip(
        files, ("2100,2100,1300,k,30000,700", "1400,1400,1300,k,38000,430"), strict=True
    ):
        file.write_text(f"{head}mi300x,{row}\n")
    assert why(cli, list(map(str, files))) == ["S12"]


def drifting(lines: list[str]) -> list[str]:
    """From 1755 MHz down by a tenth, then back."""
    return [
        line.replace(", 1755 MHz", f", {1755 - 2 * min(n % 100, 100 - n % 100) * 2} MHz")
        for n, line in enumerate(lines)
    ]


def with_a_gap(lines: list[str]) -> list[str]:
    """No sample for 12 s."""
    return [*lines[:60], *lines[180:]]


def half_idle(lines: list[str]) -> list[str]:
    return [line.replace(", 95 %,", ", 0 %,") if n % 2 else line for n, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("change", "code", "sure"),
    [(drifting, "S16", "low"), (with_a_gap, "S17", "medium"), (half_idle, "S17", "medium")],
)
def test_nor_is_a_reading_that_a_warning_doubts(
    cli: Cli, tmp_path: Path, change: Any, code: str, sure: str
) -> None:
    fast, slow = logs(tmp_path)
    lines = Path(fast).read_text().splitlines()
    Path(fast).write_text("\n".join(change(lines)) + "\n")
    asked = ("advise", fast, "--also", slow, "--max-slowdown", 5)
    document = cli.json(*asked)
    assert (document["sure"], "S01" in document["sure_why"]) == (sure, False)
    assert code in document["sure_why"]
    out, err = cli.ended(3, *asked, "--require", "sure=high")
    assert f"How sure: {sure}." in out
    assert err.endswith(f"--require sure=high is not met: the answer is {sure}\n")


def test_nor_are_runs_of_a_set_length(cli: Cli, tmp_path: Path) -> None:
    files = [
        log(tmp_path / f"{mhz}.csv", mhz, 300, watts) for mhz, watts in ((1755, 480), (1170, 300))
    ]
    assert why(cli, list(map(str, files)), "--max-slowdown", 1) == ["S17"]


def test_nor_is_a_model_of_your_own(cli: Cli, tmp_path: Path) -> None:
    """Of kernels left out of training it is right too seldom; without intervals far too seldom."""
    model, profile = frugal.files(tmp_path)
    assert "S02" in cli.json("advise", model, profile, "--minimize", "time")["sure_why"]
    assert level(["S02"]) == "medium"
    found = cli.json("advise", model, profile, "--max-slowdown", 5)
    assert (found["sure"], found["sure_why"][0]) == ("low", "S18")


@pytest.mark.parametrize("zeros", [1, 2])
def test_counters_that_are_all_0_are_told(cli: Cli, tmp_path: Path, zeros: int) -> None:
    """Of the kernel of 40 % of the run, or of both; the cycles are counted nevertheless."""
    header, units, *rows = shipped("h100-by-hand.csv").read_text().splitlines()
    blank = [re.sub(r'"(3\.22|0\.41|14\.20|81\.50)"', '"0"', row) for row in rows[:zeros]]
    file = tmp_path / "zeros.csv"
    file.write_text("\n".join([header, units, *blank, *rows[zeros:]]) + "\n")
    document = cli.json("advise", file, "--max-slowdown", 5)
    share = "100.0" if zeros > 1 else "40.4"
    [note] = [one for one in document["notes"] if one["code"] == "T06"]
    assert note["text"].startswith(f"all counters are 0 in {share} % of the run's time, ")
    assert note["severity"] == "warning"
    assert (document["sure"] == "low") == ("S19" in document["sure_why"]) == (zeros > 1)
