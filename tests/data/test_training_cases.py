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
SEVEN = "with 7 counters: "
MEDIAN = "predictors take the training median for what is missing"
ELSEWHERE = (
    "error: the table of 'titanx': 4 kernels (BlackScholes, backpropBackward, binomialOptions, 1 "
    "other) of 8 without 'achieved_occupancy' at the base cu=28,engine=2000,memory=5000, but with "
    "it at cu=28,engine=1600,memory=5000: choose a base where all kernels have their counters, or"
)
LACKING = f"1 kernel (backpropForward) without 'achieved_occupancy': {MEDIAN}; profile it"
NAMES = (
    "application=benchmark,kernel=kernel_name,cu_count=num_sms,engine_mhz=core_freq,"
    "memory_mhz=mem_freq,time_ms=runtime_ms"
)
ALONE = "no times: a model of power alone\n"
NO_LOG_TIME = "with 6 counters: "
NO_TIMES = "error: the measurements of 'titanx' have no column 'time_ms'\n"

# The file, the command and its options, its exit status, and what it says.
CASES = [
    ("00-good", ("train",), TRAIN, 0, (SEVEN,)),
    ("01-base-differs-per-kernel", ("train",), TRAIN, 2, (ELSEWHERE,)),
    ("01-base-differs-per-kernel", ("study", "errors"), STUDY, 2, (ELSEWHERE,)),
    (
        "02-one-counter-missing-in-one-kernel",
        ("train",),
        TRAIN,
        0,
        (LACKING, SEVEN, "Some kernels lack occupancy"),
    ),
    (
        "02-one-counter-missing-in-one-kernel",
        ("study", "errors"),
        STUDY,
        0,
        (LACKING, " nearest ", " wu "),
    ),
    (
        "03-two-counter-sets",
        ("train",),
        TRAIN,
        0,
        (f"so that no feature but log_time_ms is common to all: {MEDIAN}; profile these",),
    ),
    ("03-two-counter-sets", ("study", "errors"), STUDY, 0, ("common to all", " wu ")),
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
        ("all kernels of 'appA', 'appB' have the same time at every configuration: is it the",),
    ),
    (
        "10-no-counters-raw+power",
        ("study", "errors"),
        ("--quantity", "power", *POWER),
        0,
        (" wu ",),
    ),
    (
        "14-seconds-under-time_ms",
        ("train",),
        TRAIN,
        0,
        ("'convolutionSeparable': its DRAM traffic is 883 times what titanx passes at memory=500",),
    ),
    (
        "06-other-names-taken-for-rocm-smi",
        ("train",),
        TRAIN,
        2,
        ("'kernel' (is 'kernel_name' meant?), 'cu_count' (is 'num_sms", f" --map {NAMES}"),
    ),
    (
        "07-core_clock-no-hint",
        ("train",),
        TRAIN,
        2,
        ("'engine_mhz'; is 'core_clock' meant?", "--map engine_mhz=core_clock"),
    ),
    ("16-power-only", ("train",), TRAIN, 0, (ALONE, "power by 'wu', from 8 kernels", NO_LOG_TIME)),
    ("16-power-only", ("train",), (*TRAIN, "--quantity", "power"), 0, (ALONE, "power by 'wu', ")),
    ("16-power-only", ("train",), (*TRAIN, "--quantity", "time"), 2, (NO_TIMES,)),
    ("16-power-only", ("study", "errors"), ("--quantity", "time"), 2, (NO_TIMES,)),
    ("16-power-only", ("study", "advice"), (), 2, (NO_TIMES,)),
    (
        "16-power-only",
        ("study", "errors"),
        ("--quantity", "power", "--predictor", "nearest"),
        0,
        (ALONE, "Power of 8 kernels"),
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
        assert words in " ".join(out.split()) + err
    assert (err == "") == (case in ("00-good", "10-no-counters-raw+power"))


@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_profile_with_few_of_the_counters(capsys: Capture, data_folder: Path) -> None:
    """Of nvprof's, by a model of all that a GTX 1080 Ti was counted with: 23 features."""
    sweep = data_folder / "dvfs" / "gtx1080ti-dvfs-real-Performance-Power.csv"
    succeed(capsys, "import", "dvfs", sweep, "-o", "t.csv")
    base = ("--base", "cu=28,engine=2000,memory=5000")
    succeed(capsys, "train", "t.csv", *base, "--predictor", "nearest", "-o", "nearest.mlscale")
    profile = data_folder / "cases" / "training" / "13-hand-profile-five-counters.csv"
    _, err = succeed(capsys, "predict", "nearest.mlscale", profile, "--notes")
    assert ": missing: l2_bytes_per_cycle, texture_bytes_per_cycle, " in err
    assert ": the profile has 7 of 23 features; the training median replaces " in err
    some = "dram_utilisation,issue_utilisation,log_time_ms"
    succeed(capsys, "train", "t.csv", *base, *TRAIN[2:], "--counters", some)
    _, err = succeed(capsys, "predict", "m.mlscale", profile, "--notes")
    assert "missing: " not in err
    assert "training median" not in err


@pytest.mark.usefixtures("in_an_empty_folder")
def test_seconds_in_a_profile(capsys: Capture, data_folder: Path) -> None:
    folder = data_folder / "cases" / "training"
    succeed(capsys, "train", folder / "00-good.csv", *TRAIN)
    profile = folder / "14-seconds-under-time_ms.csv"
    _, err = succeed(capsys, "predict", "m.mlscale", profile, "--notes")
    assert ": profile: 'convolutionSeparable': its DRAM traffic is 883 times what tit" in err


@pytest.mark.parametrize(
    ("case", "mapping"),
    [
        ("06-other-names-taken-for-rocm-smi", NAMES),
        ("07-core_clock-no-hint", "engine_mhz=core_clock"),
        ("07-core_clock-no-hint", "engine_mhz=core_clock,application=kernel"),
    ],
)
@pytest.mark.usefixtures("in_an_empty_folder")
def test_other_names_train(capsys: Capture, data_folder: Path, case: str, mapping: str) -> None:
    file = data_folder / "cases" / "training" / f"{case}.csv"
    out, err = succeed(capsys, "train", file, *TRAIN, "--map", mapping)
    count = 8 if "application=kernel" in mapping.split(",") else 7
    said = " ".join(out.split())
    assert f"time by 'wu', from 8 kernels of {count} applications at 4 settings of titanx" in said
    assert SEVEN in said
    assert err == ""


# Trained on, predicted or advised on, with what options: what is said.
@pytest.mark.parametrize(
    ("trained", "command", "file", "options", "said"),
    [
        *(
            (
                "00-good",
                "predict",
                "12-hand-profile-without-base-columns",
                options,
                "engine_mhz, memory_mhz: taken as profiled at the base cu=28,engine=2000,memory=50",
            )
            for options in ((), ("--base", "engine=2000,memory=5000"))
        ),
        (
            "00-good",
            "predict",
            "12-hand-profile-without-base-columns",
            ("--base", "engine=1600,memory=5000"),
            "the model is of titanx at cu=28,engine=2000,memory=5000, the profile of titanx at cu=",
        ),
        ("00-good", "predict", "16-power-only", (), "the profile has no column 'time_ms', and the"),
        ("16-power-only", "predict", "16-power-only", ("--format", "csv"), ",,88.5037187,1.0,,"),
        ("16-power-only", "predict", "00-good", (), "the profile has no power_w; give --power"),
        ("16-power-only", "advise", "16-power-only", (), "the model predicts power alone, not"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("in_an_empty_folder")
def test_what_a_model_says(
    capsys: Capture,
    data_folder: Path,
    trained: str,
    command: str,
    file: str,
    options: tuple[str, ...],
    said: str,
) -> None:
    folder = data_folder / "cases" / "training"
    succeed(capsys, "train", folder / f"{trained}.csv", *TRAIN)
    main([command, "m.mlscale", str(folder / f"{file}.csv"), *options])
    assert said in "".join(capsys.readouterr())
