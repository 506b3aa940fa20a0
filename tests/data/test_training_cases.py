"""Small tables on which training once failed, or kept silent: what each is answered now.

The files are in the form of public measurements (a TITAN X's, a V100's), with numbers changed at
random; what is said follows from what was changed, see the README beside them.
"""

from pathlib import Path

import pytest
from command import Capture, main, succeed

TRAIN = ("--base", "highest", "--predictor", "wu", "--clusters", "3", "-o", "m.mlscale")
STUDY = ("--base", "highest", "--predictor", "wu", "--clusters", "3", "--seeds", "1")
POWER = ("--predictor", "wu", "--features", "raw+power", "--seeds", "1")
SEVEN = "features (7): dram_utilisation, issue_utilisation, occupancy, "
MEDIAN = "predictors take the training median for what is missing"
ELSEWHERE = (
    "error: the table of 'titanx': 4 kernels (BlackScholes, backpropBackward, binomialOptions, 1 "
    "other) of 8 without 'achieved_occupancy' at the base cu=28,engine=2000,memory=5000, but with "
    "it at cu=28,engine=1600,memory=5000: choose a base where all kernels have their counters, or"
)
LACKING = f"1 kernel (backpropForward) without 'achieved_occupancy': {MEDIAN}; profile it"

# The file, the command and its options, its exit status, and what it says.
CASES = [
    ("00-good", ("train",), TRAIN, 0, (SEVEN, ", log_time_ms\n")),
    ("01-base-differs-per-kernel", ("train",), TRAIN, 2, (ELSEWHERE,)),
    ("01-base-differs-per-kernel", ("study", "errors"), STUDY, 2, (ELSEWHERE,)),
    (
        "02-one-counter-missing-in-one-kernel",
        ("train",),
        TRAIN,
        0,
        (LACKING, SEVEN, "; of which some training kernel lacks: occupancy\n"),
    ),
    (
        "02-one-counter-missing-in-one-kernel",
        ("study", "errors"),
        STUDY,
        0,
        (LACKING, "\nnearest ", "\nwu   "),
    ),
    (
        "03-two-counter-sets",
        ("train",),
        TRAIN,
        0,
        (f"so that no feature but log_time_ms is common to all: {MEDIAN}; profile these",),
    ),
    ("03-two-counter-sets", ("study", "errors"), STUDY, 0, ("common to all", "\nwu   ")),
    (
        "04-unknown-axis-l1",
        ("train",),
        TRAIN,
        0,
        ("the rows of one configuration differ in 'l1_kb', always in 16 and 48: an axis, not rep",),
    ),
    (
        "05-application-time-on-every-kernel",
        ("train",),
        TRAIN,
        0,
        ("all kernels of 'appA', 'appB' have one and the same time at every configuration: is it",),
    ),
    (
        "10-no-counters-raw+power",
        ("study", "errors"),
        ("--quantity", "power", *POWER),
        0,
        ("\nwu            raw+power ",),
    ),
    (
        "14-seconds-under-time_ms",
        ("train",),
        TRAIN,
        0,
        ("'convolutionSeparable': its DRAM traffic is 883 times what titanx passes at memory=500",),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("case", "command", "options", "status", "said"), CASES)
@pytest.mark.usefixtures("in_an_empty_folder")
def test_what_is_said(
    capsys: Capture,
    data_folder: Path,
    case: str,
    command: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    said: tuple[str, ...],
) -> None:
    """A good table, besides, is told nothing of."""
    file = data_folder / "cases" / "training" / f"{case}.csv"
    assert main([*command, str(file), *options]) == status
    out, err = capsys.readouterr()
    for words in said:
        assert words in out + err
    assert (err == "") == (case in ("00-good", "10-no-counters-raw+power"))


@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_profile_with_few_of_the_counters(capsys: Capture, data_folder: Path) -> None:
    """Of nvprof's, by a model of all that a GTX 1080 Ti was counted with: 23 features."""
    sweep = data_folder / "dvfs" / "gtx1080ti-dvfs-real-Performance-Power.csv"
    succeed(capsys, "import", "dvfs", sweep, "-o", "t.csv")
    base = ("--base", "cu=28,engine=2000,memory=5000")
    succeed(capsys, "train", "t.csv", *base, "--predictor", "nearest", "-o", "nearest.mlscale")
    profile = data_folder / "cases" / "training" / "13-hand-profile-five-counters.csv"
    out, _ = succeed(capsys, "predict", "nearest.mlscale", profile)
    assert "flag: mykernel: missing: l2_bytes_per_cycle, texture_bytes_per_cycle, " in out
    assert "warning: the profile gives 7 of 23 features; the training median stands for t" in out
    some = "dram_utilisation,issue_utilisation,log_time_ms"
    succeed(capsys, "train", "t.csv", *base, *TRAIN[2:], "--counters", some)
    out, _ = succeed(capsys, "predict", "m.mlscale", profile)
    assert "missing: " not in out
    assert "training median" not in out


@pytest.mark.usefixtures("in_an_empty_folder")
def test_seconds_in_a_profile(capsys: Capture, data_folder: Path) -> None:
    folder = data_folder / "cases" / "training"
    succeed(capsys, "train", folder / "00-good.csv", *TRAIN)
    out, _ = succeed(capsys, "predict", "m.mlscale", folder / "14-seconds-under-time_ms.csv")
    assert "warning: profile: 'convolutionSeparable': its DRAM traffic is 883 times what tit" in out
