"""Tables with missing cells, holes that all kernels share, and clocks that jitter: what is said.

From the folder cases/training of the public data: a TITAN X's measurements, and a simulator's, with
numbers changed at random; its README says what is right.
"""

from pathlib import Path

import pytest
from command import Capture

from mlscale.cli.main import main

TRAIN = ("train", "{file}", "--base", "highest", "--predictor", "wu", "--clusters", "3", "-o", "M")
STUDY = ("study", "errors", "{file}", "--base", "highest", "--predictor", "nearest", "--seeds", "1")
BY_M = ("{file}", "--model", "M")
SETTINGS, KEEP = ("--incomplete", "drop-settings"), ("--incomplete", "keep")
LEFT = "--incomplete drop leaves 0 kernels, drop-settings 4 kernels x 12 configurations, keep all"
GROUPS = "13 engine clocks lie in 2 groups of +-3 MHz: observed clocks? give the requested ones, or"

# File, commands, and what the last one says, on standard output and standard error together.
CASES = (
    ("08-l-shaped-grid", [TRAIN], "has 7 of the 16 configurations of its grid, which are what mo"),
    ("08-l-shaped-grid", [TRAIN], "6 kernels of 4 applications, 7 configurations of gpgpusim-fer"),
    ("08-l-shaped-grid", [STUDY], "error of time [%], 6 kernels, base cu=15,engine=1200,memory=9"),
    ("08-l-shaped-grid", [TRAIN, ("predict", *BY_M)], "left out 9 configurations that no trai"),
    ("08-l-shaped-grid", [TRAIN, ("advise", *BY_M)], "left out 9 configurations that no train"),
    ("08-l-shaped-grid", [TRAIN, ("show", "M")], "; 9 configurations of it not measured"),
    ("09-each-kernel-lacks-another-clock", [TRAIN], LEFT),
    ("09-each-kernel-lacks-another-clock", [(*TRAIN, *KEEP)], ": 1 kernel ('binomialOptions')"),
    ("09-each-kernel-lacks-another-clock", [(*TRAIN, *KEEP)], "'wu' for time, 7 kernels of 6 ap"),
    (
        "09-each-kernel-lacks-another-clock",
        [(*TRAIN, *SETTINGS)],
        "conjugateGradient, engine_mhz 1600, engine_mhz 1800; left are 4 kernels x 12 configurat",
    ),
    ("09-each-kernel-lacks-another-clock", [(*STUDY, *KEEP)], "error of time [%], 7 kernels, ba"),
    ("11-observed-clocks-jitter", [TRAIN], f"{GROUPS} --snap-clocks 10"),
    (
        "11-observed-clocks-jitter",
        [(*TRAIN, "--snap-clocks", "10")],
        "8 kernels of 7 applications, 4 configurations of titanx, base cu=28,engine=2000,memory",
    ),
)


@pytest.mark.usefixtures("in_an_empty_folder", "one_process")
@pytest.mark.parametrize(("name", "commands", "said"), CASES)
def test_case(
    capsys: Capture, data_folder: Path, name: str, commands: list[tuple[str, ...]], said: str
) -> None:
    folder = data_folder / "cases" / "training"
    for words in commands:
        main([word.format(file=folder / f"{name}.csv", folder=folder) for word in words])
    assert said in "".join(capsys.readouterr())
