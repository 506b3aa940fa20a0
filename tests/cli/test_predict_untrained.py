"""predict for a GPU that the model has no training data of."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import bottleneck_kernels as made

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements

MID = made.CLOCKS.mid
OTHER = ConfigGrid((28,), (600.0, 900.0, 1200.0), (1500.0, 3000.0, 4500.0))
AT = ["engine=600,memory=4500", "cu=28,engine=1200,memory=1500"]


def of_1080_ti(kernels: int, seed: int) -> Measurements:
    """Kernels of the same law on a GTX 1080 Ti, whose bus is 352 bits wide, not 256."""
    table = made.measurements(kernels, seed=seed, grid=OTHER)
    counters = table.counter_samples * 352 / 256
    return replace(table, device="gtx1080ti", counter_samples=counters)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a GTX 980, and tables of the other GPU at its base alone."""
    from mlscale.cli.main import main

    folder = tmp_path_factory.mktemp("untrained")
    as_measured = replace(made.measurements(12), metadata={})  # made data say nothing of others
    as_measured.write(folder / "trained.csv")
    given = ["train", folder / "trained.csv", "--base", "mid", "-o", folder / "model.mlscale"]
    assert main([str(word) for word in given]) == 0
    for name, table in (("new", of_1080_ti(3, 1)), ("peaks", of_1080_ti(9, 2))):
        table.write(folder / f"all-{name}.csv")
        lines = (folder / f"all-{name}.csv").read_text().splitlines(keepends=True)
        base = ",28,900,3000,"
        kept = [line for line in lines[1:] if base in line.replace(".0,", ",")]
        assert len(kept) == len(table.kernels)
        (folder / f"{name}.csv").write_text("".join([lines[0], *kept]))
    return folder


def predict(folder: Path, *more: object) -> list[object]:
    places = [word for config in AT for word in ("--at", config)]
    given = ["predict", folder / "model.mlscale", folder / "new.csv", "--device", "gtx1080ti"]
    return [*given, *places, *more]


def test_recovers_the_law(capsys: Capture, folder: Path) -> None:
    """Made of one law: with the peak known, little is left (2.1 % mean when written)."""
    given = predict(folder, "--peaks", folder / "peaks.csv", "--format", "json")
    found = json.loads(succeed(capsys, *given)[0])
    assert found["base"] == {"cu_count": 28, "engine_mhz": 900, "memory_mhz": 3000}
    truth = of_1080_ti(3, 1)
    errors = []
    for row in found["predictions"]:
        at = OTHER.index(OTHER.parse(f"engine={row['engine_mhz']},memory={row['memory_mhz']}"))
        true_ms = truth.time_ms[(truth.kernels.index(row["kernel"]), *at)]
        errors.append(abs(row["time_ms"] / true_ms - 1))
        assert row["time_ms_low"] < row["time_ms"] < row["time_ms_high"]
        assert row["power_w"] is None
        assert any(flag.startswith("no training data of gtx1080ti") for flag in row["flags"])
    assert len(errors) == 6
    assert np.mean(errors) < 0.03
    assert "no training data of gtx1080ti: time alone is predicted" in found["warnings"]


def test_without_peaks_says_what_was_taken(capsys: Capture, folder: Path) -> None:
    out, _ = succeed(capsys, *predict(folder))
    assert "bandwidth reached at most taken as 90% of the peak" in out


def test_the_base_among_several(capsys: Capture, folder: Path) -> None:
    alone, _ = succeed(capsys, *predict(folder))
    given = [folder / "all-new.csv" if w == folder / "new.csv" else w for w in predict(folder)]
    among, _ = succeed(capsys, *given, "--base", "engine=900,memory=3000")
    assert among == alone


def test_a_further_point(capsys: Capture, folder: Path) -> None:
    """A measured time enters: at its own configuration the prediction comes closer to it."""
    given = predict(folder, "--format", "json")
    also = ["--also", f"{folder / 'all-new.csv'}@{AT[1]}"]
    before, after = (
        json.loads(succeed(capsys, *given, *more)[0])["predictions"] for more in ([], also)
    )
    truth = of_1080_ti(3, 1).time_ms[:, 0, 2, 0]
    off = [
        np.abs([row["time_ms"] for row in rows if row["engine_mhz"] == 1200] / truth - 1).max()
        for rows in (before, after)
    ]
    assert off[1] < off[0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (["--device", "gtx9999"], "is of device 'gtx1080ti', --device says 'gtx9999'"),
        (["--base", "engine=800,memory=800"], "has no row at the base"),
        (["--peaks", "nothing.csv"], "nothing.csv: cannot be read"),
        (["--device", "p100"], "is of device 'gtx1080ti', --device says 'p100'"),
        (["--at", "cu=29,engine=800,memory=3000"], "gtx1080ti has 28 compute units, not 29"),
        (["--at", "engine=2500"], "engine_mhz 2500 is above what gtx1080ti reaches, 1911"),
        (["--at", "cu=14,engine=800,memory=3000"], "no training table has several CU counts"),
    ],
)
def test_bad_input(capsys: Capture, folder: Path, change: list[str], problem: str) -> None:
    assert problem in refuse(capsys, folder, *predict(folder), *change)


@pytest.mark.parametrize(
    ("counter", "problem"),
    [
        (0.0, "no kernel of these profiles of 'gtx1080ti' has DRAM traffic"),
        (np.nan, "'bottleneck' needs the DRAM traffic: dram_utilisation"),
    ],
)
def test_peaks_without_traffic(
    capsys: Capture, folder: Path, tmp_path: Path, counter: float, problem: str
) -> None:
    table = of_1080_ti(9, 2)
    counters = np.full_like(table.counter_samples, counter)
    replace(table, counter_samples=counters).write(tmp_path / "idle.csv")
    given = predict(folder, "--peaks", tmp_path / "idle.csv")
    assert problem in refuse(capsys, tmp_path, *given)


def test_peaks_of_another_device(capsys: Capture, folder: Path) -> None:
    message = refuse(capsys, folder, *predict(folder, "--peaks", folder / "trained.csv"))
    assert message == f"{folder}/trained.csv: is of device 'gtx980', the profile of 'gtx1080ti'"


def test_the_models_own_gpu_may_be_named(capsys: Capture, folder: Path) -> None:
    given = ["predict", folder / "model.mlscale", folder / "trained.csv"]
    named, _ = succeed(capsys, *given, "--device", "gtx980", "--base", MID)
    assert named == succeed(capsys, *given)[0]


def test_what_at_leaves_out_is_the_bases(capsys: Capture, folder: Path) -> None:
    asked = [word for word in predict(folder) if "=" not in str(word) and word != "--at"]
    short, _ = succeed(capsys, *asked, "--at", "engine=800")
    whole, _ = succeed(capsys, *asked, "--at", "engine=800,memory=3000")
    assert short == whole


def test_without_at_it_is_predicted_at_the_clocks_that_the_gpu_offers(
    capsys: Capture, folder: Path
) -> None:
    """The GTX 1080 Ti's steps are 12.65625 MHz (nvidia-smi), the profile's clocks join them."""
    asked = [word for word in predict(folder) if "=" not in str(word) and word != "--at"]
    document = json.loads(succeed(capsys, *asked, "--format", "json")[0])
    clocks = {row["engine_mhz"] for row in document["predictions"]}
    assert {900, 1607, 1911} <= clocks
    # As far down as the training table went: the same share of the highest clock.
    lowest, *_, highest = made.CLOCKS.engine_mhz
    assert lowest / highest <= min(clocks) / max(clocks) < lowest / highest + 0.01


def test_the_second_gpu_of_the_training(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    """Its own tables are used with all they hold: the grid asked for has all of their steps."""
    of_1080_ti(9, 2).write(tmp_path / "second.csv")
    given = ["train", folder / "trained.csv", tmp_path / "second.csv", "--base", "mid", "-o"]
    two = tmp_path / "two.mlscale"
    succeed(capsys, *given, two)
    asked = [
        tmp_path / "two.mlscale" if w == folder / "model.mlscale" else w for w in predict(folder)
    ]
    out, _ = succeed(capsys, *asked, "--at", "engine=700,memory=3000")
    assert "by the curve alone" not in out
    assert "warning: power is learnt from the first table: time alone is predicted" in out
    assert "no training data" not in out


def test_options_that_do_not_fit(capsys: Capture, folder: Path) -> None:
    several = [folder / "all-new.csv" if w == folder / "new.csv" else w for w in predict(folder)]
    assert "has rows at 9 configurations; say with --base" in refuse(capsys, folder, *several)


def test_a_predictor_that_cannot(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    table = folder / "trained.csv"
    given = ["train", table, "--base", "mid", "--predictor", "mean-surface", "-o"]
    mean = tmp_path / "mean.mlscale"
    succeed(capsys, *given, mean)
    asked = [
        tmp_path / "mean.mlscale" if w == folder / "model.mlscale" else w for w in predict(folder)
    ]
    message = refuse(capsys, folder, *asked)
    assert message.startswith(f"the model is of gtx980 at {MID}, the profile of gtx1080ti at ")
    assert message.endswith("'mean-surface' predicts no other GPU and base")
