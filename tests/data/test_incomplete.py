"""Tables with missing cells, holes that all kernels share, and clocks that jitter: what is said.

From the folder cases/training of the public data: a TITAN X's measurements, and a simulator's, with
numbers changed at random; its README says what is right.
"""

from pathlib import Path

import pandas as pd
import pytest
from command import Capture

import mlscale
from mlscale import DataWarning, InputError, Measurements
from mlscale.cli.main import main

TRAIN = ("train", "{file}", "--base", "highest", "--predictor", "wu", "--clusters", "3", "-o", "M")
STUDY = ("study", "errors", "{file}", "--base", "highest", "--predictor", "nearest", "--seeds", "1")
BY_M = ("{file}", "--model", "M")
SETTINGS, KEEP = ("--incomplete", "drop-settings"), ("--incomplete", "keep")
LEFT = (
    "--incomplete drop leaves 0 kernels, drop-settings 4 kernels x 12 configurations, keep all wi"
)
GROUPS = "13 engine clocks lie in 2 groups of +-3 MHz: observed clocks? give the requested ones, or"

# File, commands, and what the last one says, on standard output and standard error together.
CASES = (
    ("08-l-shaped-grid", [TRAIN], "has 7 of the 16 configurations of its grid, which are what mo"),
    ("08-l-shaped-grid", [TRAIN], "6 kernels of 4 applications at 7 settings of gpgpusim-fermi"),
    (
        "08-l-shaped-grid",
        [(*STUDY, "--all")],
        "error of time [%], 6 kernels, base cu=15,engine=1200,memory=9",
    ),
    ("08-l-shaped-grid", [TRAIN, ("predict", *BY_M)], "left out 9 configurations that no trai"),
    ("08-l-shaped-grid", [TRAIN, ("advise", *BY_M)], "left out 9 configurations that no train"),
    ("08-l-shaped-grid", [TRAIN, ("show", "M", "--all")], "; 9 configurations of it not measured"),
    ("09-each-kernel-lacks-another-clock", [TRAIN], LEFT),
    ("09-each-kernel-lacks-another-clock", [(*TRAIN, *KEEP)], ": 1 kernel ('binomialOptions')"),
    (
        "09-each-kernel-lacks-another-clock",
        [(*TRAIN, *KEEP)],
        "M: time by 'wu', from 7 kernels of 6 ap",
    ),
    (
        "09-each-kernel-lacks-another-clock",
        [(*TRAIN, *SETTINGS)],
        "conjugateGradient, engine_mhz 1600, engine_mhz 1800; left are 4 kernels x 12 configurat",
    ),
    (
        "09-each-kernel-lacks-another-clock",
        [(*STUDY, *KEEP, "--all")],
        "error of time [%], 7 kernels, ba",
    ),
    ("11-observed-clocks-jitter", [TRAIN], f"{GROUPS} --snap-clocks 10"),
    (
        "11-observed-clocks-jitter",
        [(*TRAIN, "--snap-clocks", "10")],
        "M: time by 'wu', from 8 kernels of 7 applications at 4 settings of titanx",
    ),
    (  # none of the cfd's rows is at 2000 MHz
        "11-observed-clocks-jitter",
        [
            (*TRAIN, "--snap-clocks", "10"),
            ("predict", *BY_M, "--at", "engine=2000", "--format", "csv"),
        ],
        "\ncfd,28,2000.0,5000.0,0.122",
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
    out, err = capsys.readouterr()
    assert said in out + err or said in " ".join(out.split())


FOLDER = ("cases", "training")


def lines(data_folder: Path, name: str) -> list[str]:
    return data_folder.joinpath(*FOLDER, f"{name}.csv").read_text().splitlines()


@pytest.mark.usefixtures("in_an_empty_folder", "one_process")
def test_holes_of_a_table_of_power_alone(
    capsys: Capture, data_folder: Path, tmp_path: Path
) -> None:
    """9 of 16 configurations were measured at none, as in the case with times."""
    table = pd.read_csv(data_folder.joinpath(*FOLDER, "08-l-shaped-grid.csv"))
    file = tmp_path / "power.csv"
    table.drop(columns="time_ms").to_csv(file, index=False)
    main([word.format(file=file) for word in TRAIN])
    capsys.readouterr()
    main(["predict", str(file), "--model", "M"])
    out, err = capsys.readouterr()
    assert "left out 9 configurations" in err
    assert "Changes of power from the base" in out  # and no time, nor a warning of NumPy's
    assert " ms" not in out
    assert "RuntimeWarning" not in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("04-unknown-axis-l1", "differ in 'l1_kb', always in 16 and 48: an axis"),
        ("05-application-time-on-every-kernel", "have the same time at every configuration"),
    ],
)
@pytest.mark.usefixtures("in_an_empty_folder", "one_process")
def test_a_lost_row_hides_nothing(
    capsys: Capture, data_folder: Path, tmp_path: Path, name: str, said: str
) -> None:
    file = tmp_path / "lost.csv"
    file.write_text("\n".join(lines(data_folder, name)[:-1]))
    main([word.format(file=file) for word in (*TRAIN, *KEEP)])
    assert said in capsys.readouterr().err


def test_a_frame_at_observed_clocks_is_at_the_base(data_folder: Path) -> None:
    table = pd.read_csv(data_folder.joinpath(*FOLDER, "11-observed-clocks-jitter.csv"))
    row = table[(table.kernel == "cfd") & (table.engine_mhz == 1997)]
    with pytest.warns(DataWarning, match="became 2"):
        snapped = Measurements.from_frame(table, snap_clocks=10)
    predictor = {"predictor": "wu", "clusters": 3}
    model = mlscale.train(snapped, "highest", **predictor)
    at_base = row.assign(engine_mhz=2000)
    assert (model.predict(row).time_ms == model.predict(at_base).time_ms).all()
    with pytest.raises(InputError, match="no row at the base"):
        model.predict(row.assign(engine_mhz=1989))
    unsnapped = mlscale.train(Measurements.from_frame(snapped.to_frame()), "highest", **predictor)
    with pytest.raises(InputError, match="no row at the base"):
        unsnapped.predict(row)


def test_steps_in_a_row_are_not_snapped_together() -> None:
    frame = pd.DataFrame(
        [
            {"device": "mine", "application": "a", "kernel": "a", "cu_count": 4,
             "engine_mhz": mhz, "memory_mhz": 900, "time_ms": 1.0}
            for mhz in (1000, 1010, 1020)
        ]
    )  # fmt: skip
    with pytest.raises(InputError, match="1000 to 1020 MHz are a row of steps within 10 MHz of"):
        Measurements.from_frame(frame, snap_clocks=10)
    with pytest.warns(DataWarning, match="3 values of engine_mhz became 1: 1010"):
        assert Measurements.from_frame(frame, snap_clocks=20).grid.engine_mhz == (1010,)
