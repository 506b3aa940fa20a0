"""Small tables on which training once failed, or kept silent: what each is answered now.

The files are in the form of public measurements (a TITAN X's, a V100's, a simulator's), with
numbers changed at random; what is said follows from what was changed, see the README beside them.
"""

import shlex
from pathlib import Path

import pandas as pd
import pytest
from command import Capture, main, succeed
from synthetic.tidy import refused

import mlscale
from mlscale import DataWarning, Measurements

pytestmark = pytest.mark.usefixtures("in_an_empty_folder", "one_process")

WU = "--base highest --predictor wu --clusters 3"
TRAIN = f"train {{}} {WU} -o m.mlscale"
STUDY = f"study errors {{}} {WU} --seeds 1"
NEAREST = "study errors {} --base highest --predictor nearest --seeds 1"
SNAPPED = f"{TRAIN} --snap-clocks 10"
SETTINGS, KEEP = f"{TRAIN} --incomplete drop-settings", f"{TRAIN} --incomplete keep"
MEDIAN = "predictors use the training median for missing values"
LACKING = f"1 kernel (backpropForward) without 'achieved_occupancy': {MEDIAN}; profile it"
ELSEWHERE = (
    "error: the table of 'titanx': 4 kernels (BlackScholes, backpropBackward, binomialOptions, 1 "
    "other) of 8 without 'achieved_occupancy' at the base cu=28,engine=2000,memory=5000, but with "
    "it at cu=28,engine=1600,memory=5000: choose a base where all kernels have their counters, or"
)
NAMES = (
    "application=benchmark,kernel=kernel_name,cu_count=num_sms,engine_mhz=core_freq,"
    "memory_mhz=mem_freq,time_ms=runtime_ms"
)
ALONE = "no times: a model of power alone\n"
NO_TIMES = "error: the measurements of 'titanx' have no column 'time_ms'\n"
TWO_SETS = f"so that no feature but log_time_ms is common to all: {MEDIAN}; profile these"
OTHER_NAMES = "'kernel' (is 'kernel_name' meant?), 'cu_count' (is 'num_sms"
LEFT_OUT = "left out 9 configurations that no train"
LEFT = (
    "--incomplete drop leaves 0 kernels, --incomplete drop-settings 4 kernels x 12 configurations,"
)
LEFT_ARE = "conjugateGradient, engine_mhz 1600, engine_mhz 1800; left are 4 kernels x 12 configurat"
GROUPS = "13 engine clocks lie in 2 groups of +-3 MHz: observed clocks? give the requested ones, or"
SHOW = "show m.mlscale --all"
AT_2000 = "predict {} --model m.mlscale --at engine=2000 --format csv"

# File, commands, the last one's exit status, and what it says on either output.
CASES: list[tuple[str, list[str], int, list[str]]] = [
    ("00-good", [TRAIN], 0, ["with 7 counters: "]),
    ("01-base-differs-per-kernel", [TRAIN], 2, [ELSEWHERE]),
    ("01-base-differs-per-kernel", [STUDY], 2, [ELSEWHERE]),
    ("02-one-counter-missing-in-one-kernel", [TRAIN], 0,
     [LACKING, "with 7 counters: ", "Some kernels lack occupancy"]),
    ("02-one-counter-missing-in-one-kernel", [STUDY], 0, [LACKING, " nearest ", " wu "]),
    ("03-two-counter-sets", [TRAIN], 0, [TWO_SETS]),
    ("03-two-counter-sets", [STUDY], 0, ["common to all", " wu "]),
    ("04-unknown-axis-l1", [TRAIN], 0,
     ["rows of one configuration differ in 'l1_kb', always in 16 and 48: an axis, not rep"]),
    ("05-application-time-on-every-kernel", [TRAIN], 0,
     ["all kernels of 'appA', 'appB' have the same time at every configuration: is it the"]),
    ("06-other-names-taken-for-rocm-smi", [TRAIN], 2, [OTHER_NAMES, f" --map {NAMES}"]),
    ("07-core_clock-no-hint", [TRAIN], 2,
     ["'engine_mhz'; is 'core_clock' meant?", "--map engine_mhz=core_clock"]),
    ("08-l-shaped-grid", [TRAIN], 0,
     ["has 7 of the 16 configurations of its grid, which are what mo",
      "6 kernels of 4 applications at 7 settings of gpgpusim-fermi"]),
    ("08-l-shaped-grid", [f"{NEAREST} --all"], 0,
     ["error of time [%], 6 kernels, base cu=15,engine=1200,memory=9"]),
    ("08-l-shaped-grid", [TRAIN, "predict {} --model m.mlscale --notes"], 0, [LEFT_OUT]),
    ("08-l-shaped-grid", [TRAIN, "advise {} --model m.mlscale --notes"], 0, [LEFT_OUT]),
    ("08-l-shaped-grid", [TRAIN, SHOW], 0, ["; 9 configurations of it not measured"]),
    ("09-each-kernel-lacks-another-clock", [TRAIN], 2, [LEFT]),
    ("09-each-kernel-lacks-another-clock", [KEEP], 0,
     [": 1 kernel ('binomialOptions')", "m.mlscale: time by 'wu', from 7 kernels of 6 ap"]),
    ("09-each-kernel-lacks-another-clock", [SETTINGS], 0, [LEFT_ARE]),
    ("09-each-kernel-lacks-another-clock", [f"{NEAREST} --incomplete keep --all"], 0,
     ["error of time [%], 7 kernels, ba"]),
    ("10-no-counters-raw+power",
     ["study errors {} --quantity power --predictor wu --features raw+power --seeds 1"], 0,
     [" wu "]),
    ("11-observed-clocks-jitter", [TRAIN], 2, [f"{GROUPS} --snap-clocks 10"]),
    ("11-observed-clocks-jitter", [SNAPPED], 0,
     ["m.mlscale: time by 'wu', from 8 kernels of 7 applications at 4 settings of titanx"]),
    # None of the cfd's rows is at 2000 MHz.
    ("11-observed-clocks-jitter", [SNAPPED, AT_2000], 0, ["\ncfd,28,2000.0,5000.0,0.122"]),
    ("14-seconds-under-time_ms", [TRAIN], 0,
     ["'convolutionSeparable': its DRAM traffic is 883 times what titanx can transfer at memory="]),
    ("16-power-only", [TRAIN], 0, [ALONE, "power by 'wu', from 8 kernels", "with 6 counters: "]),
    ("16-power-only", [f"{TRAIN} --quantity power"], 0, [ALONE, "power by 'wu', "]),
    ("16-power-only", [f"{TRAIN} --quantity time"], 2, [NO_TIMES]),
    ("16-power-only", ["study errors {} --quantity time"], 2, [NO_TIMES]),
    ("16-power-only", ["study advice {}"], 2, [NO_TIMES]),
    ("16-power-only", ["study errors {} --quantity power --predictor nearest"], 0,
     [ALONE, "Power of 8 kernels"]),
    # Tables under their own names for columns.
    ("06-other-names-taken-for-rocm-smi", [f"{TRAIN} --map {NAMES}"], 0,
     ["time by 'wu', from 8 kernels of 7 applications at 4 settings of titanx"]),
    ("07-core_clock-no-hint", [f"{TRAIN} --map engine_mhz=core_clock"], 0,
     ["from 8 kernels of 7 applications at 4 settings of titanx", "with 7 counters: "]),
    ("07-core_clock-no-hint", [f"{TRAIN} --map engine_mhz=core_clock,application=kernel"], 0,
     ["from 8 kernels of 8 applications at 4 settings of titanx"]),
]  # fmt: skip
SILENT = ("00-good", "10-no-counters-raw+power")


@pytest.fixture
def cases(data_folder: Path) -> Path:
    return data_folder / "cases" / "training"


@pytest.mark.parametrize(("case", "commands", "status", "said"), CASES)
def test_what_is_said(
    capsys: Capture, cases: Path, case: str, commands: list[str], status: int, said: list[str]
) -> None:
    """Of a good table, and where columns' names were given, there is nothing to tell."""
    for command in commands:
        capsys.readouterr()
        assert main(shlex.split(command.format(cases / f"{case}.csv"))) in (0, status)
    out, err = capsys.readouterr()
    for words in said:
        assert words in out + err or words in " ".join(out.split())
    assert (err == "") == (case in SILENT or "--map" in commands[-1] or commands[-1] == SHOW)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("04-unknown-axis-l1", "differ in 'l1_kb', always in 16 and 48: an axis"),
        ("05-application-time-on-every-kernel", "have the same time at every configuration"),
    ],
)
def test_a_lost_row_hides_nothing(
    capsys: Capture, cases: Path, tmp_path: Path, case: str, said: str
) -> None:
    file = tmp_path / "lost.csv"
    file.write_text("\n".join((cases / f"{case}.csv").read_text().splitlines()[:-1]))
    main(shlex.split(KEEP.format(file)))
    assert said in capsys.readouterr().err


def test_holes_of_a_table_of_power_alone(capsys: Capture, cases: Path, tmp_path: Path) -> None:
    """9 of 16 configurations were measured at none, as in the case with times."""
    file = tmp_path / "power.csv"
    pd.read_csv(cases / "08-l-shaped-grid.csv").drop(columns="time_ms").to_csv(file, index=False)
    succeed(capsys, *shlex.split(TRAIN.format(file)))
    out, err = succeed(capsys, "predict", file, "--model", "m.mlscale", "--notes")
    assert "left out 9 configurations" in err
    assert "Changes of power from the base" in out  # and no time, nor a warning of NumPy's
    assert " ms" not in out
    assert "RuntimeWarning" not in err


def test_a_frame_at_observed_clocks_is_at_the_base(cases: Path) -> None:
    table = pd.read_csv(cases / "11-observed-clocks-jitter.csv")
    row = table[(table.kernel == "cfd") & (table.engine_mhz == 1997)]
    with pytest.warns(DataWarning, match="became 2"):
        snapped = Measurements.from_frame(table, snap_clocks=10)
    predictor = {"predictor": "wu", "clusters": 3}
    model = mlscale.train(snapped, "highest", **predictor)
    at_base = row.assign(engine_mhz=2000)
    assert (model.predict(row).time_ms == model.predict(at_base).time_ms).all()
    unsnapped = mlscale.train(Measurements.from_frame(snapped.to_frame()), "highest", **predictor)
    for other, elsewhere in ((model, row.assign(engine_mhz=1989)), (unsnapped, row)):
        with refused("no row at the base"):
            other.predict(elsewhere)


def test_steps_in_a_row_are_not_snapped_together() -> None:
    at = {"device": "mine", "application": "a", "kernel": "a", "cu_count": 4, "memory_mhz": 900}
    frame = pd.DataFrame({**at, "engine_mhz": [1000, 1010, 1020], "time_ms": 1.0})
    with refused("1000 to 1020 MHz are a chain of steps, each within 10 MHz of"):
        Measurements.from_frame(frame, snap_clocks=10)
    with pytest.warns(DataWarning, match="3 values of engine_mhz became 1: 1010"):
        assert Measurements.from_frame(frame, snap_clocks=20).grid.engine_mhz == (1010,)


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
    some = ("--counters", "dram_utilisation,issue_utilisation,log_time_ms")
    succeed(
        capsys,
        "train",
        "t.csv",
        *base,
        "--predictor",
        "wu",
        "--clusters",
        3,
        *some,
        "-o",
        "m.mlscale",
    )
    _, err = succeed(capsys, "predict", "m.mlscale", profile, "--notes")
    assert "missing: " not in err
    assert "training median" not in err


NO_AXES = "12-hand-profile-without-base-columns"
NO_TIME = "the profile has no column 'time_ms', and the"
TAKEN = "engine_mhz, memory_mhz: assumed to be profiled at the base cu=28,engine=2000,memory=50"
OTHER_BASE = "the model is of titanx at cu=28,engine=2000,memory=5000, the profile of titanx at cu="


# Trained on, the command and its file, what is said.
@pytest.mark.parametrize(
    ("trained", "command", "said"),
    [
        ("00-good", f"predict m.mlscale {NO_AXES}.csv --notes", TAKEN),
        ("00-good", f"predict m.mlscale {NO_AXES}.csv --base engine=2000,memory=5000 --notes",
         TAKEN),
        ("00-good", f"predict m.mlscale {NO_AXES}.csv --base engine=1600,memory=5000", OTHER_BASE),
        ("00-good", "predict m.mlscale 14-seconds-under-time_ms.csv --notes",
         ": profile: 'convolutionSeparable': its DRAM traffic is 883 times what tit"),
        ("00-good", "predict m.mlscale 16-power-only.csv", NO_TIME),
        ("16-power-only", "predict m.mlscale 16-power-only.csv --format csv", ",,88.5037187,1.0,,"),
        ("16-power-only", "predict m.mlscale 00-good.csv", "has no power_w; give --power"),
        ("16-power-only", "advise m.mlscale 16-power-only.csv", "model predicts only power, not"),
    ],
)  # fmt: skip
def test_what_a_model_says(
    capsys: Capture, cases: Path, trained: str, command: str, said: str
) -> None:
    succeed(capsys, *shlex.split(TRAIN.format(cases / f"{trained}.csv")))
    main([str(cases / word) if word.endswith(".csv") else word for word in command.split()])
    assert said in "".join(capsys.readouterr())
