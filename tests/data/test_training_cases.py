"""Small tables on which training once failed, or kept silent: what each is answered now.

The files are in the form of public measurements (a TITAN X's, a V100's), with numbers changed at
random; what is said follows from what was changed, see the README beside them.
"""

from pathlib import Path

import pytest
from command import Capture, main, succeed

TRAIN = ("--base", "highest", "--predictor", "wu", "--clusters", "3", "-o", "m.mlscale")
NAMES = (
    "application=benchmark,kernel=kernel_name,cu_count=num_sms,engine_mhz=core_freq,"
    "memory_mhz=mem_freq,time_ms=runtime_ms"
)
ALONE = "no times: a model of power alone\n"
NO_TIMES = "error: the measurements of 'titanx' have no column 'time_ms'\n"

# The file, the command and its options, its exit status, and what it says.
CASES = [
    (
        "06-other-names-taken-for-rocm-smi",
        ("train",),
        TRAIN,
        2,
        ("'kernel' (is 'kernel_name' meant?), 'cu_count' (is 'num_sms", f" --map {NAMES} (in Py"),
    ),
    (
        "07-core_clock-no-hint",
        ("train",),
        TRAIN,
        2,
        ("'engine_mhz'; is 'core_clock' meant?", "--map engine_mhz=core_clock (in Python columns="),
    ),
    ("16-power-only", ("train",), TRAIN, 0, (ALONE, "'wu' for power, 8 kernels")),
    ("16-power-only", ("train",), (*TRAIN, "--quantity", "power"), 0, (ALONE, "'wu' for power, 8")),
    ("16-power-only", ("train",), (*TRAIN, "--quantity", "time"), 2, (NO_TIMES,)),
    ("16-power-only", ("study", "errors"), ("--quantity", "time"), 2, (NO_TIMES,)),
    ("16-power-only", ("study", "advice"), (), 2, (NO_TIMES,)),
    (
        "16-power-only",
        ("study", "errors"),
        ("--quantity", "power", "--predictor", "nearest"),
        0,
        (ALONE, "error of power [%], 8 kernels"),
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
    file = data_folder / "cases" / "training" / f"{case}.csv"
    assert main([*command, str(file), *options]) == status
    out, err = capsys.readouterr()
    for words in said:
        assert words in out + err


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
    assert f"'wu' for time, 8 kernels of {count} applications, 4 configurations of titanx" in out
    assert "features that a profile needs (7): dram_utilisation" in out
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
        ("16-power-only", "predict", "00-good", (), "the profile has no power_w, which --power g"),
        ("16-power-only", "advise", "16-power-only", (), "the model is of power alone, so no tim"),
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
